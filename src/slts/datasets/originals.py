"""The files of each data set as its donors published them, read into series and labels."""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.datasets.archives import Archive, read_tar
from slts.datasets.catalogue import ALL_SIGNS, SAMPLES_PER_SIGN, DatasetInfo
from slts.datasets.ts_format import parse_ts
from slts.errors import DataError
from slts.series import SeriesBatch, as_series
from slts.series.flatten import offsets_of

__all__ = ["has_files", "read_original"]

LabelledSeries = tuple[SeriesBatch, AnyArray]

# The file of a part in each published form, and the number of series of each class. Files without
# labels are sorted by class.
_PARTS: dict[str, dict[str, tuple[tuple[str, ...], tuple[int, ...]]]] = {
    "japanese_vowels": {
        "train": (("JapaneseVowels_TRAIN.ts", "ae.train"), (30,) * 9),
        "test": (("JapaneseVowels_TEST.ts", "ae.test"), (31, 35, 88, 44, 29, 24, 40, 50, 29)),
    },
    "arabic_digits": {
        "train": (("Train_Arabic_Digit.txt",), (660,) * 10),
        "test": (("Test_Arabic_Digit.txt",), (220,) * 10),
    },
}
_CLASSES: dict[str, AnyArray] = {
    "japanese_vowels": np.array([str(speaker) for speaker in range(1, 10)]),
    "arabic_digits": np.arange(10),
}
_SIGN = re.compile(r"(?P<root>|.*/)tctodd(?P<session>\d+)/(?P<sign>[^/]+)-(?P<number>\d+)\.tsd")
_SIGN_ARCHIVES = ("tctodd.tar.gz", "tctodd.tar.bz2", "tctodd.tar")


def has_files(name: str, archive: Archive) -> bool:
    """Whether an archive has all files of a data set, judged by their names."""
    if name in _PARTS:
        return all(any(map(archive.find, files)) for files, _ in _PARTS[name].values())
    if name == "auslan":
        unpacked = any(_SIGN.fullmatch(member) for member in archive.names)
        return unpacked or any(archive.find(file) for file in _SIGN_ARCHIVES)
    return archive.find(_robot_file(name)) is not None


def read_original(entry: DatasetInfo, split: str | None, archive: Archive) -> LabelledSeries:
    """Read a data set, or its part "train" or "test" if it has parts.

    Raises
    ------
    DataError
        If files are missing or have the wrong content.
    """
    if split is not None:
        return _read_split(entry, split, archive)
    if entry.name == "auslan":
        return _read_auslan(entry, archive)
    return _read_robot(entry, archive)


def _read_split(entry: DatasetInfo, split: str, archive: Archive) -> LabelledSeries:
    files, sizes = _PARTS[entry.name][split]
    member = next(filter(None, map(archive.find, files)), None)
    if member is None:
        raise DataError(f"{archive.place} has no {' or '.join(files)}")
    text, where = archive.text(member), f"{archive.place}: {member}"
    if member.lower().endswith(".ts"):
        series, labels = parse_ts(io.StringIO(text), where)
        if labels is None:
            raise DataError(f"{where} has no class labels")
        batch = as_series(series)
        return _batch(batch.values, batch.lengths, entry, archive), labels
    lines = text.split("\n")
    # Blank lines separate the series.
    blocks = itertools.groupby(lines, key=lambda line: bool(line.strip()))
    lengths = [sum(1 for _ in block) for filled, block in blocks if filled]
    values = _read_rows(lines, where)
    if len(lengths) != sum(sizes):
        raise DataError(f"{where} has {len(lengths)} series, expected {sum(sizes)}")
    return _batch(values, lengths, entry, archive), np.repeat(_CLASSES[entry.name], sizes)


def _read_auslan(entry: DatasetInfo, archive: Archive) -> LabelledSeries:
    if not any(map(_SIGN.fullmatch, archive.names)):
        packed = next(filter(None, map(archive.find, _SIGN_ARCHIVES)), None)
        if packed is not None:
            archive = read_tar(archive.read(packed), f"{archive.place}: {packed}")
    matches = [match for name in archive.names if (match := _SIGN.fullmatch(name))]
    if not matches:
        raise DataError(
            f"{archive.place} has neither tctodd1/<sign>-<number>.tsd and so on nor tctodd.tar.gz"
        )
    # If a folder has two copies, read one of them, not a mixture.
    matches = [match for match in matches if match["root"] == matches[0]["root"]]
    sizes = Counter(_sign(match) for match in matches)
    odd = sorted(sign for sign, size in sizes.items() if size != SAMPLES_PER_SIGN)
    if len(sizes) != ALL_SIGNS or odd:
        count = f", {sizes[odd[0]]} series of {odd[0]!r}" if odd else ""
        raise DataError(
            f"{archive.place} has {len(matches)} series of {len(sizes)} signs{count}; expected "
            f"{ALL_SIGNS * SAMPLES_PER_SIGN}, {SAMPLES_PER_SIGN} of each of {ALL_SIGNS} signs"
        )
    chosen = sorted(sizes, key=str.lower)[: entry.n_classes]
    matches = [match for match in matches if _sign(match) in chosen]
    matches.sort(key=lambda m: (_sign(m).lower(), int(m["session"]), int(m["number"])))
    rows = []
    for name in (match.string for match in matches):
        rows.append(_read_rows(archive.text(name).split("\n"), f"{archive.place}: {name}"))
        if rows[-1].shape[1] != entry.n_channels:
            raise DataError(
                f"{archive.place}: {name} has {rows[-1].shape[1]} channels, expected "
                f"{entry.n_channels}"
            )
    batch = _batch(np.concatenate(rows), map(len, rows), entry, archive)
    return batch, np.array([_sign(match) for match in matches])


def _sign(match: re.Match[str]) -> str:
    """Name of a sign. The first session uses another name for one of them."""
    return "his_hers" if match["sign"] == "her" else match["sign"]


def _robot_file(name: str) -> str:
    return f"{name.removeprefix('robot_')}.data"


def _read_robot(entry: DatasetInfo, archive: Archive) -> LabelledSeries:
    """Read series that begin with a line of text, their label."""
    member = archive.find(_robot_file(entry.name))
    if member is None:
        raise DataError(f"{archive.place} has no {_robot_file(entry.name)}")
    where = f"{archive.place}: {member}"
    lines = [line.strip() for line in archive.text(member).split("\n") if line.strip()]
    is_label = [line[0].isalpha() for line in lines]
    if not any(is_label[:1]):
        raise DataError(f"{where} does not begin with a label")
    starts = np.append(np.flatnonzero(is_label), len(lines))
    lengths, labels = np.diff(starts) - 1, np.array([lines[start] for start in starts[:-1]])
    if (lengths == 0).any():
        first = int(np.argmin(lengths))
        raise DataError(f"{where} has no rows under label {first + 1}, {str(labels[first])!r}")
    rows = [line for line, label in zip(lines, is_label, strict=True) if not label]
    return _batch(_read_rows(rows, where), lengths, entry, archive), labels


def _read_rows(lines: list[str], where: str) -> FloatArray:
    """Read rows of numbers separated by white space, all of equal width; skip blank lines."""
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise DataError(f"{where} is empty, expected rows of numbers")
    try:
        return np.loadtxt(lines, dtype=np.float64, comments=None, ndmin=2)
    except ValueError as error:
        # What NumPy says after the semicolon is advice on its own parameters.
        reason = str(error).partition(";")[0]
        raise DataError(f"{where} does not consist of rows of numbers: {reason}") from error


def _batch(
    values: FloatArray, lengths: Iterable[int], entry: DatasetInfo, archive: Archive
) -> SeriesBatch:
    """Build a batch with named channels; raise an error if their number is wrong."""
    if values.shape[1] != entry.n_channels:
        raise DataError(
            f"{archive.place} is not {entry.title}: its series have {values.shape[1]} channels, "
            f"expected {entry.n_channels}"
        )
    batch = SeriesBatch(values, offsets_of(lengths), entry.channel_names)
    # The published series are complete.
    return as_series(batch, missing="error")
