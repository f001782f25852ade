"""`load`: Japanese Vowels, from the folder `$SLTS_DATA` or from the wheel of aeon."""

from __future__ import annotations

import importlib.util
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.datasets.ts_format import parse_ts
from slts.errors import DataError
from slts.series import SeriesBatch, as_series

NAMES = ("japanese_vowels",)
TITLE = "Japanese Vowels"

_PAGE = "https://archive.ics.uci.edu/dataset/128/japanese+vowels"
# The name in SLTS_DATA, and the name of a download from UCI.
_ARCHIVES = ("japanese_vowels.zip", "japanese+vowels.zip")
_FILES = {
    "train": ("JapaneseVowels_TRAIN.ts", "ae.train"),
    "test": ("JapaneseVowels_TEST.ts", "ae.test"),
}
# Published number of series of each speaker.
_COUNTS = {"train": (30,) * 9, "test": (31, 35, 88, 44, 29, 24, 40, 50, 29)}
_SPEAKERS = tuple("123456789")
_CHANNELS = tuple(f"cepstrum_{i}" for i in range(1, 13))
_DAMAGED = (zipfile.BadZipFile, zlib.error, UnicodeDecodeError, NotImplementedError)

Folder = Path | zipfile.Path


def load(name: str, split: str | None = None) -> tuple[SeriesBatch, AnyArray]:
    """Load the data set of the demo.

    Looks in the folder `$SLTS_DATA`, for the files or for the archive `japanese_vowels.zip`, and
    then in the package aeon.

    Parameters
    ----------
    name : str
        "japanese_vowels".
    split : {"train", "test"}, optional
        Published part of the data set; by default all series, the training part first.

    Returns
    -------
    batch : SeriesBatch
        640 series of 12 cepstral coefficients.
    labels : ndarray of shape (n_series,)
        The speaker, text from "1" to "9".

    Raises
    ------
    FileNotFoundError
        If the data are not on this machine; the message says how to get them.
    DataError
        If there is no such data set or part, or the data contradict the published counts.
    """
    if name not in NAMES:
        raise DataError(f"name must be 'japanese_vowels', got {name!r}")
    if split not in (None, *_FILES):
        raise DataError(f"split must be 'train', 'test' or None, got {split!r}")
    folder = _find_folder()
    try:
        parts = [_read_part(folder, part) for part in ([split] if split else _FILES)]
    except _DAMAGED as error:
        raise DataError(f"{folder} is damaged: {error}") from error
    batch = SeriesBatch.concatenate(series for series, _ in parts)
    return batch, np.concatenate([labels for _, labels in parts])


def _find_folder() -> Folder:
    """Return the first folder or archive that has the files."""
    for folder in _folders():
        if all(any((folder / name).is_file() for name in names) for names in _FILES.values()):
            return folder
    raise FileNotFoundError(
        f"{TITLE} is not on this machine. Install aeon, whose wheel has it: pip install "
        f'"slts[demo]". Or download it from {_PAGE} and set SLTS_DATA to the folder of '
        f"{_ARCHIVES[0]}"
    )


def _folders() -> Iterator[Folder]:
    if os.environ.get("SLTS_DATA"):
        folder = Path(os.environ["SLTS_DATA"]).expanduser()
        if not folder.is_dir():
            raise DataError(f"SLTS_DATA must be a folder, got {str(folder)!r}")
        yield from (folder, folder / NAMES[0])
        for archive in (folder / name for name in _ARCHIVES):
            if archive.is_file():
                try:
                    yield zipfile.Path(archive)
                except zipfile.BadZipFile as error:
                    raise DataError(f"{archive} is damaged: {error}") from error
    # Importing aeon takes seconds, and only its files are needed.
    aeon = importlib.util.find_spec("aeon")
    for root in (aeon.submodule_search_locations or ()) if aeon else ():
        yield Path(root) / "datasets" / "data" / "JapaneseVowels"


def _read_part(folder: Folder, part: str) -> tuple[SeriesBatch, AnyArray]:
    """Read a part and compare it with the published counts."""
    file = next(f for name in _FILES[part] if (f := folder / name).is_file())
    text = file.read_text(encoding="utf-8-sig")
    labels: AnyArray | None
    if file.name.endswith(".ts"):
        series, labels = parse_ts(text.splitlines(), str(file))
    else:
        # The file has no labels: its series are sorted by speaker.
        series, labels = read_blocks(text, str(file)), np.repeat(_SPEAKERS, _COUNTS[part])
    counts = () if labels is None else tuple(int(np.sum(labels == s)) for s in _SPEAKERS)
    if labels is None or counts != _COUNTS[part] or len(series) != len(labels):
        raise DataError(
            f"{file} is not {TITLE} as published: it has {len(series)} series, {counts} of the "
            f"speakers, expected {sum(_COUNTS[part])}, {_COUNTS[part]}"
        )
    batch = as_series(series, layout="channels_first", missing="error")
    if batch.n_channels != len(_CHANNELS):
        raise DataError(f"{file} has {batch.n_channels} channels, expected {len(_CHANNELS)}")
    return SeriesBatch(batch.values, batch.offsets, _CHANNELS), labels


def read_blocks(text: str, where: str) -> list[FloatArray]:
    """Read series (channels, time) from rows of numbers; blank lines separate the series."""
    try:
        blocks = re.split(r"\n\s*\n", text.strip())
        return [np.loadtxt(block.splitlines(), comments=None, ndmin=2).T for block in blocks]
    except ValueError as error:
        # What NumPy says after the semicolon is advice on its own parameters.
        reason = str(error).partition(";")[0]
        raise DataError(f"{where} does not consist of rows of numbers: {reason}") from error
