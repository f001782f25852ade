"""The paper's data sets, from the archives that UCI publishes.

The folder `$SLTS_DATA` holds the archives: `japanese_vowels.zip`, `arabic_digits.zip`,
`auslan.zip` and `robot_failures.zip`, with the members that UCI publishes. `auslan.zip` has either
the files of `tctodd.tar.gz` or that archive itself.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import slts
from slts.datasets import read_blocks
from study.paper import ROBOT_TASKS, TABLE_1

LabelledBatch = tuple[slts.SeriesBatch, npt.NDArray[Any]]

_PAGE = "https://archive.ics.uci.edu/dataset/"
_PAGES = {
    "arabic_digits": "195/spoken+arabic+digit",
    "auslan": "115/australian+sign+language+signs+high+quality",
    "robot_failures": "138/robot+execution+failures",
}
N_TRAIN = {"japanese_vowels": 270, "arabic_digits": 6600}
ALL_SIGNS, SAMPLES_PER_SIGN = 95, 27

_DIGITS = {"train": ("Train_Arabic_Digit.txt", 660), "test": ("Test_Arabic_Digit.txt", 220)}
_HAND = ("x", "y", "z", "roll", "pitch", "yaw", "thumb", "fore", "middle", "ring", "little")
_CHANNELS = {
    "arabic_digits": tuple(f"mfcc_{i}" for i in range(1, 14)),
    # Channels 1-11 lie left of the chin and move less.
    "auslan": tuple(f"{side}_{name}" for side in ("left", "right") for name in _HAND),
    "robot": ("Fx", "Fy", "Fz", "Tx", "Ty", "Tz"),
}
_SIGN = re.compile(r"(?:.*/)?tctodd(?P<session>\d+)/(?P<sign>[^/]+)-(?P<number>\d+)\.tsd")


def load(name: str, split: str | None = None, *, n_signs: int = 25) -> LabelledBatch:
    """Load a data set of the paper.

    Parameters
    ----------
    name
        One of `study.paper.TABLE_1`.
    split
        "train" or "test", for "japanese_vowels" and "arabic_digits"; by default all series, the
        training part first.
    n_signs
        For "auslan": the first signs in alphabetical order, ignoring case.

    Raises
    ------
    FileNotFoundError
        If the archive is not in `$SLTS_DATA`.
    slts.DataError
        If its content differs from what is published.
    """
    if name == "japanese_vowels":
        return slts.datasets.load(name, split)
    splits = (None, *_DIGITS) if name in N_TRAIN else (None,)
    if name not in TABLE_1 or split not in splits:
        raise slts.DataError(f"there is no data set {name!r} with a part {split!r}")
    if name == "arabic_digits":
        return _read_digits([split] if split else list(_DIGITS))
    batch, labels = _read_signs(n_signs) if name == "auslan" else _read_robot(name)
    _check(name, batch, labels, n_signs)
    return batch, labels


def _archive(name: str) -> zipfile.ZipFile:
    folder = os.environ.get("SLTS_DATA")
    path = Path(folder or "") / f"{name}.zip"
    if not folder or not path.is_file():
        raise FileNotFoundError(
            f"{name}.zip is not on this machine: download it from {_PAGE}{_PAGES[name]}, save it "
            f"under this name, and set SLTS_DATA to its folder"
        )
    return zipfile.ZipFile(path)


def _batch(series: Iterable[npt.NDArray[np.float64]], name: str) -> slts.SeriesBatch:
    batch = slts.as_series(list(series), layout="channels_first", missing="error")
    return slts.SeriesBatch(batch.values, batch.offsets, _CHANNELS[name])


def _read_digits(splits: list[str]) -> LabelledBatch:
    """Read blocks of rows; the series of a digit are together."""
    batches, labels = [], []
    with _archive("arabic_digits") as archive:
        for member, per_digit in (_DIGITS[split] for split in splits):
            series = read_blocks(archive.read(member).decode(), member)
            if len(series) != 10 * per_digit:
                raise slts.DataError(f"{member} has {len(series)} series, expected {per_digit}0")
            batches.append(_batch(series, "arabic_digits"))
            labels.append(np.repeat(np.arange(10), per_digit))
    return slts.SeriesBatch.concatenate(batches), np.concatenate(labels)


def _read_signs(n_signs: int) -> LabelledBatch:
    with _archive("auslan") as archive:
        members = archive.namelist()
        packed = next((name for name in members if name.endswith("tctodd.tar.gz")), None)
        if packed is None:
            texts = {name: archive.read(name) for name in members if _SIGN.fullmatch(name)}
        else:
            texts = _unpack(archive.read(packed))
    matches = [_SIGN.fullmatch(name) for name in texts]
    rows = [(_sign(m), int(m["session"]), int(m["number"]), m.string) for m in matches if m]
    rows.sort(key=lambda row: (row[0].lower(), *row[1:]))
    signs = list(dict.fromkeys(sign for sign, *_ in rows))
    if len(signs) != ALL_SIGNS or len(rows) != ALL_SIGNS * SAMPLES_PER_SIGN:
        raise slts.DataError(
            f"auslan.zip has {len(rows)} series of {len(signs)} signs, expected "
            f"{ALL_SIGNS * SAMPLES_PER_SIGN} of {ALL_SIGNS}"
        )
    rows = [row for row in rows if row[0] in signs[:n_signs]]
    series = (read_blocks(texts[name].decode(), name)[0] for *_, name in rows)
    return _batch(series, "auslan"), np.array([sign for sign, *_ in rows])


def _unpack(content: bytes) -> dict[str, bytes]:
    """Return the series in a tar archive."""
    texts = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            file = archive.extractfile(member) if _SIGN.fullmatch(member.name) else None
            if file is not None:
                texts[member.name] = file.read()
    return texts


def _sign(match: re.Match[str]) -> str:
    """Name of a sign. The first session calls one of them by another name."""
    return "his_hers" if match["sign"] == "her" else match["sign"]


def _read_robot(name: str) -> LabelledBatch:
    """Read series that begin with a line of text, their label."""
    assert name in ROBOT_TASKS
    member = f"{name.removeprefix('robot_')}.data"
    with _archive("robot_failures") as archive:
        text = archive.read(member).decode()
    labels = re.findall(r"^[A-Za-z]\S*", text, re.MULTILINE)
    blocks = re.split(r"^[A-Za-z].*$", text, flags=re.MULTILINE)[1:]
    series = (read_blocks(block, member)[0] for block in blocks)
    return _batch(series, "robot"), np.array(labels)


def _check(name: str, batch: slts.SeriesBatch, labels: npt.NDArray[Any], n_signs: int) -> None:
    """Raise an error unless the counts are those of the paper's Table 1."""
    facts, n_classes = TABLE_1[name], len(np.unique(labels))
    expected = (facts.instances, facts.classes)
    if name == "auslan":
        expected = (n_signs * SAMPLES_PER_SIGN, n_signs)
    if (len(batch), n_classes) != expected:
        raise slts.DataError(
            f"{name} has {len(batch)} series of {n_classes} classes, expected "
            f"{expected[0]} of {expected[1]}"
        )
