"""`load`, Japanese Vowels for the demo; and `read_ts`, text of the UEA and UCR archives.

Japanese Vowels is read from the folder `$SLTS_DATA` or from the wheel of aeon.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO, cast

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.errors import DataError
from slts.series import SeriesBatch, as_series

__all__ = ["load", "read_ts"]

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
Source = str | os.PathLike[str] | TextIO


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


# -- The format .ts


def read_ts(source: Source) -> tuple[SeriesBatch, AnyArray | None]:
    r"""Read series and labels from a `.ts` file.

    Series may have different lengths; all channels of a series have the same length. Missing values
    (`?` or `NaN`) become NaN. Files with time stamps or regression targets raise an error.

    Parameters
    ----------
    source : str, path or text file
        Path of a file in UTF-8, compressed if it ends in `.gz`; or an open text file.

    Returns
    -------
    series : SeriesBatch
        The series.
    labels : ndarray or None
        Class labels as text, as in the file; None if the series have no labels.

    Raises
    ------
    DataError
        If the file violates the format; the message names the line.

    Examples
    --------
    >>> import io
    >>> from slts.datasets import read_ts
    >>> file = io.StringIO("@classLabel true up down\n@data\n1,2,3:up\n2,1:down\n")
    >>> read_ts(file)
    (SeriesBatch(2 series, 1 channel, 2-3 steps, 40 bytes), array(['up', 'down'], dtype='<U4'))
    """
    with _opened(source) as (file, where):
        series, labels = parse_ts(file, where)
    return as_series(series, layout="channels_first"), labels


@contextlib.contextmanager
def _opened(source: Source) -> Iterator[tuple[Iterable[str], str]]:
    """Yield the lines of a path or file, and its name for messages."""
    if not isinstance(source, str | os.PathLike):
        yield source, str(getattr(source, "name", "the file"))
        return
    path = Path(source)
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with cast(TextIO, opener(path, "rt", encoding="utf-8-sig")) as file:
        try:
            yield file, str(path)
        except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(f"{path} is not a .ts file in UTF-8: {error}") from error


def parse_ts(lines: Iterable[str], where: str) -> tuple[list[FloatArray], AnyArray | None]:
    """Read the lines of a `.ts` file.

    Parameters
    ----------
    lines : iterable of str
        The whole file.
    where : str
        Name of the file, for error messages.

    Returns
    -------
    series : list of FloatArray
        Arrays (channels, time), with NaN for missing values.
    labels : ndarray or None
        Classes as text; None if the series have none.
    """
    stripped = ((number, line.strip()) for number, line in enumerate(lines, start=1))
    # Some old files begin comments with %.
    numbered = ((number, line) for number, line in stripped if line and line[0] not in "#%")
    classes = _classes(_read_header(numbered, where), where)
    series: list[FloatArray] = []
    labels: list[str] = []
    for number, line in numbered:
        try:
            parts = [part.strip() for part in line.split(":")]
            if classes is not None:
                labels.append(_take_label(parts, classes))
            x = _read_channels(parts)
            if series and len(x) != len(series[0]):
                raise DataError(f"{len(x)} channels, expected {len(series[0])} (as series 0)")
        except DataError as error:
            place = f"{where}, line {number} (series {len(series)})"
            raise DataError(f"{place}: {error}") from None
        series.append(x)
    if not series:
        raise DataError(f"{where} has no series after @data")
    return series, np.array(labels) if classes is not None else None


def _read_header(lines: Iterator[tuple[int, str]], where: str) -> dict[str, list[str]]:
    """Return the words after each identifier of a header, up to and including its `@data`."""
    header: dict[str, list[str]] = {}
    for number, line in lines:
        if line[0] != "@":
            raise DataError(
                f"{where}, line {number}: expected a header line that begins with @, got "
                f"{line[:40]!r}. The data begin after a line @data"
            )
        identifier, *values = line[1:].split() or [""]
        if identifier.lower() == "data":
            return header
        header[identifier.lower()] = values
    raise DataError(f"{where} has no line @data: it is not a .ts file, or it is cut off")


def _classes(header: dict[str, list[str]], where: str) -> list[str] | None:
    """Return the classes that a header lists; None if the series have none."""
    flags = {key: " ".join(values[:1]).lower() for key, values in header.items()}
    if flags.get("timestamps") == "true":
        raise DataError(
            f"{where} has timestamps (@timeStamps true), which slts does not read: resample the "
            "series to even steps and write them as plain values"
        )
    if flags.get("targetlabel") == "true":
        raise DataError(f"{where} has targets of a regression (@targetLabel true), not classes")
    if flags.get("classlabel") == "false":
        return None
    classes = header.get("classlabel", [])[1:]
    if flags.get("classlabel") != "true" or not classes:
        raise DataError(
            f"{where}: the header must have @classLabel true followed by the labels, or "
            f"@classLabel false, got {' '.join(header.get('classlabel', ['no @classLabel']))!r}"
        )
    return classes


def _take_label(parts: list[str], classes: Sequence[str]) -> str:
    """Remove the label from the end of the parts of a line, and return it."""
    if len(parts) < 2:
        raise DataError("expected values, a colon and a label")
    label = parts.pop()
    if label not in classes:
        raise DataError(
            f"label {label!r} is not one of those after @classLabel: {' '.join(classes)}"
        )
    return label


def _read_channels(parts: Sequence[str]) -> FloatArray:
    """Read the channels of a series, which have the same length."""
    if parts[0].startswith("("):
        raise DataError("values in brackets are timestamps, which slts does not read")
    channels = [_read_numbers(part, c) for c, part in enumerate(parts)]
    n_steps = len(channels[0])
    for c, channel in enumerate(channels):
        if len(channel) != n_steps:
            raise DataError(
                f"channel {c} has {len(channel)} steps and channel 0 has {n_steps}: all channels "
                "of a series must have the same length"
            )
    return np.stack(channels)


def _read_numbers(text: str, channel: int) -> FloatArray:
    """Read the values of one channel; `?` is a missing value."""
    values = []
    for step, word in enumerate(text.split(",")):
        try:
            # Python reads 1_000 as a number; no other reader of the format does.
            value = float("nan" if word.strip() == "?" else word.replace("_", "x"))
        except ValueError:
            value = np.inf
        if abs(value) == np.inf:
            raise DataError(
                f"channel {channel}, step {step} is {word!r}, expected a finite number or ?"
            )
        values.append(value)
    return np.array(values)
