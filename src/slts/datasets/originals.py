"""The files of each data set as its donors wrote them, turned into series and labels."""

from __future__ import annotations

import io
import re
from collections import Counter
from itertools import pairwise

import numpy as np

from slts._typing import AnyArray
from slts.datasets.blocks import read_blocks, read_rows
from slts.datasets.catalogue import ALL_SIGNS, SAMPLES_PER_SIGN, DatasetInfo
from slts.datasets.stores import Store, tar_store
from slts.datasets.ts_format import parse_ts
from slts.errors import DataError
from slts.series import SeriesBatch, as_series

__all__ = ["holds", "read_part"]

Part = tuple[SeriesBatch, AnyArray]

# Files of the training and the test part, in each form they are found in.
_DIVIDED: dict[str, tuple[tuple[str, str], ...]] = {
    "japanese_vowels": (
        ("JapaneseVowels_TRAIN.ts", "JapaneseVowels_TEST.ts"),
        ("ae.train", "ae.test"),
    ),
    "arabic_digits": (("Train_Arabic_Digit.txt", "Test_Arabic_Digit.txt"),),
}
# Blocks of rows carry no labels: the classes follow one another, so many series each.
_CLASS_SIZES = {
    "ae.train": (30,) * 9,
    "ae.test": (31, 35, 88, 44, 29, 24, 40, 50, 29),
    "train_arabic_digit.txt": (660,) * 10,
    "test_arabic_digit.txt": (220,) * 10,
}
_CLASSES: dict[str, AnyArray] = {
    "japanese_vowels": np.array([str(speaker) for speaker in range(1, 10)]),
    "arabic_digits": np.arange(10),
}
_SIGN = re.compile(r"(?P<root>|.*/)tctodd(?P<session>\d+)/(?P<sign>[^/]+)-(?P<number>\d+)\.tsd")
_SIGN_ARCHIVES = ("tctodd.tar.gz", "tctodd.tar.bz2", "tctodd.tar")


def holds(name: str, store: Store) -> bool:
    """Tell whether a store has the files of a data set, going by their names.

    Parameters
    ----------
    name : str
        Name of the data set.
    store : Store
        Folder or archive.

    Returns
    -------
    bool
        True if nothing is missing.
    """
    if name in _DIVIDED:
        return any(all(store.find(file) for file in pair) for pair in _DIVIDED[name])
    if name == "auslan":
        unpacked = any(_SIGN.fullmatch(member) for member in store.names)
        return unpacked or any(store.find(file) for file in _SIGN_ARCHIVES)
    return store.find(_robot_file(name)) is not None


def read_part(entry: DatasetInfo, split: str | None, store: Store) -> Part:
    """Read a data set or one part of it.

    Parameters
    ----------
    entry : DatasetInfo
        Which one, and for Auslan how many signs of it.
    split : {"train", "test"} or None
        The part; None for the whole of a set that does not come divided.
    store : Store
        Folder or archive with the files.

    Returns
    -------
    batch : SeriesBatch
        The series, with named channels.
    labels : ndarray
        One per series.

    Raises
    ------
    DataError
        If files are missing or do not hold what they should.
    """
    if split is not None:
        return _read_divided(entry, split, store)
    if entry.name == "auslan":
        return _read_auslan(entry, store)
    return _read_robot(entry, store)


def _read_divided(entry: DatasetInfo, split: str, store: Store) -> Part:
    for pair in _DIVIDED[entry.name]:
        member = store.find(pair[0 if split == "train" else 1])
        if member is None:
            continue
        text = _text(store, member)
        if member.lower().endswith(".ts"):
            series, labels = parse_ts(io.StringIO(text), f"{store.place}: {member}")
            if labels is None:
                raise DataError(f"{store.place}: {member} has no class labels")
            batch = as_series(series)
            return _named(batch.values, batch.offsets, entry, store), labels
        values, lengths = read_blocks(text, f"{store.place}: {member}")
        sizes = _CLASS_SIZES[member.lower().rpartition("/")[2]]
        if len(lengths) != sum(sizes):
            raise DataError(
                f"{store.place}: {member} holds {len(lengths)} series, expected {sum(sizes)}"
            )
        return _named(values, _offsets(lengths), entry, store), np.repeat(
            _CLASSES[entry.name], sizes
        )
    files = " or ".join(pair[0 if split == "train" else 1] for pair in _DIVIDED[entry.name])
    raise DataError(f"{store.place} holds no {files}")


def _auslan_store(store: Store) -> Store | None:
    """Return the store that has the recordings themselves: this one or the archive in it."""
    if any(_SIGN.fullmatch(name) for name in store.names):
        return store
    for file in _SIGN_ARCHIVES:
        member = store.find(file)
        if member is not None:
            return tar_store(store.read(member), f"{store.place}: {member}")
    return None


def _read_auslan(entry: DatasetInfo, store: Store) -> Part:
    inner = _auslan_store(store)
    matches = [match for name in (inner.names if inner else ()) if (match := _SIGN.fullmatch(name))]
    if inner is None or not matches:
        raise DataError(
            f"{store.place} holds neither tctodd1/<sign>-<number>.tsd and so on nor tctodd.tar.gz"
        )
    # Should a folder hold two copies, one of them is read, not a mixture.
    matches = [match for match in matches if match["root"] == matches[0]["root"]]
    sizes = Counter(_sign(match) for match in matches)
    odd = sorted(sign for sign, size in sizes.items() if size != SAMPLES_PER_SIGN)
    if len(sizes) != ALL_SIGNS or odd:
        count = f", {sizes[odd[0]]} series of {odd[0]!r}" if odd else ""
        raise DataError(
            f"{inner.place} holds {len(matches)} series of {len(sizes)} signs{count}; expected "
            f"{ALL_SIGNS * SAMPLES_PER_SIGN}, {SAMPLES_PER_SIGN} of each of {ALL_SIGNS} signs"
        )
    chosen = sorted(sizes, key=str.lower)[: entry.n_classes]
    matches = [match for match in matches if _sign(match) in chosen]
    matches.sort(key=lambda m: (_sign(m).lower(), int(m["session"]), int(m["number"])))
    rows = [
        read_rows(_text(inner, match.string), f"{inner.place}: {match.string}") for match in matches
    ]
    for match, block in zip(matches, rows, strict=True):
        if block.shape[1] != entry.n_channels:
            raise DataError(
                f"{inner.place}: {match.string} has {block.shape[1]} channels, expected "
                f"{entry.n_channels}"
            )
    values = np.concatenate(rows)
    offsets = _offsets(np.array([len(block) for block in rows]))
    return _named(values, offsets, entry, inner), np.array([_sign(match) for match in matches])


def _sign(match: re.Match[str]) -> str:
    """Name of the sign; the first session calls one of them differently."""
    return "his_hers" if match["sign"] == "her" else match["sign"]


def _robot_file(name: str) -> str:
    return f"{name.removeprefix('robot_')}.data"


def _read_robot(entry: DatasetInfo, store: Store) -> Part:
    """Read series that open with a line of text, their label."""
    member = store.find(_robot_file(entry.name))
    if member is None:
        raise DataError(f"{store.place} holds no {_robot_file(entry.name)}")
    lines = [line for line in _text(store, member).split("\n") if line and not line.isspace()]
    heads = [i for i, line in enumerate(lines) if line.lstrip()[0].isalpha()]
    if not heads or heads[0] != 0:
        raise DataError(f"{store.place}: {member} does not begin with a label")
    lengths = np.array([stop - start - 1 for start, stop in pairwise([*heads, len(lines)])])
    labels = np.array([lines[head].strip() for head in heads])
    if (lengths == 0).any():
        first = int(np.argmin(lengths))
        raise DataError(
            f"{store.place}: {member} has no rows under label {first + 1}, {str(labels[first])!r}"
        )
    labelled = set(heads)
    rows = "\n".join(line for i, line in enumerate(lines) if i not in labelled)
    return _named(
        read_rows(rows, f"{store.place}: {member}"), _offsets(lengths), entry, store
    ), labels


def _text(store: Store, member: str) -> str:
    try:
        return store.read(member).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{store.place}: {member} is not text: {error}") from error


def _offsets(lengths: AnyArray) -> AnyArray:
    return np.concatenate([[0], np.cumsum(lengths)])


def _named(values: AnyArray, offsets: AnyArray, entry: DatasetInfo, store: Store) -> SeriesBatch:
    """Make the batch, unless the channels are not as many as there are names for."""
    if values.shape[1] != entry.n_channels:
        raise DataError(
            f"{store.place} is not {entry.title}: its series have {values.shape[1]} channels, "
            f"expected {entry.n_channels}"
        )
    return SeriesBatch(values, offsets, entry.channel_names)
