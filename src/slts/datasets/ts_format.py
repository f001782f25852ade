"""`read_ts`: `.ts` files, the text format of the UEA and UCR archives of time series."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, cast

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.errors import DataError
from slts.series import SeriesBatch, as_series

__all__ = ["parse_ts", "read_ts"]

Source = str | os.PathLike[str] | TextIO

_FLAGS = {"timestamps", "missing", "univariate", "equallength", "targetlabel"}
_COUNTS = {"dimensions", "serieslength"}


def read_ts(source: Source) -> tuple[SeriesBatch, AnyArray | None]:
    r"""Read series and labels from a `.ts` file.

    Series may have different lengths; all channels of a series have the same length. Missing values
    (`?` or `NaN`) become NaN. Files with time stamps raise an error.

    Parameters
    ----------
    source : str, path or text file
        Path of a file in UTF-8, compressed if it ends in `.gz`; or an open text file.

    Returns
    -------
    series : SeriesBatch
        The series.
    labels : ndarray or None
        Class labels as text, as in the file; floats if the header has `@targetLabel true`; None if
        the series have no labels.

    Raises
    ------
    DataError
        If the file violates the format or its own header; the message names the line.

    See Also
    --------
    write_ts : Write such a file.

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
    return as_series(series), labels


@contextmanager
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


def parse_ts(
    lines: Iterable[str], where: str, wrong: dict[int, str] | None = None
) -> tuple[list[FloatArray], AnyArray | None]:
    """Read the lines of a `.ts` file.

    Parameters
    ----------
    lines : iterable of str
        The whole file.
    where : str
        Name of the file, for error messages.
    wrong : dict, optional
        Gets position and reason of every series that cannot be read; None raises an error instead.

    Returns
    -------
    series : list of FloatArray
        Arrays (channels, time), with NaN for missing values. A series that cannot be read is NaN.
    labels : ndarray or None
        Classes as text, targets as floats, None if there are neither.
    """
    stripped = ((number, line.strip()) for number, line in enumerate(lines, start=1))
    # Some old files begin comments with %.
    numbered = ((number, line) for number, line in stripped if line and line[0] not in "#%")
    header = _read_header(numbered, where)
    reader = _DataReader(header)
    labels: list[str | float] = []
    series: list[FloatArray] = []
    for number, line in numbered:
        label: str | float | None
        try:
            x, label = reader.read(line)
        except DataError as error:
            if wrong is None:
                place = f"{where}, line {number} (series {len(series)})"
                raise DataError(f"{place}: {error}") from None
            wrong[len(series)] = str(error)
            x = np.empty((0, 0))
            label = None if header.class_labels is None else ""
            label = np.nan if header.target else label
        series.append(x)
        if label is not None:
            labels.append(label)
    if not series:
        raise DataError(f"{where} has no series after @data")
    if wrong:
        n_channels = max(1, *map(len, series))
        series = [x if x.size else np.full((n_channels, 1), np.nan) for x in series]
    return series, np.array(labels) if labels else None


@dataclass(frozen=True)
class _Header:
    """What the header says about the data; None where it says nothing.

    Attributes
    ----------
    univariate, equal_length
        Whether series have one channel, and the same length.
    dimensions, series_length
        Number of channels, common number of steps.
    class_labels
        The classes; None if the series have no class.
    target
        Whether each series has a number to predict instead of a class.
    """

    univariate: bool | None
    equal_length: bool | None
    dimensions: int | None
    series_length: int | None
    class_labels: tuple[str, ...] | None
    target: bool


def _read_header(lines: Iterator[tuple[int, str]], where: str) -> _Header:
    """Read a header up to and including its `@data`. Unknown identifiers are ignored."""
    found: dict[str, list[str]] = {}
    for number, line in lines:
        if line[0] != "@":
            raise DataError(
                f"{where}, line {number}: expected a header line that begins with @, got "
                f"{line[:40]!r}; the data begin after a line @data"
            )
        identifier, *values = line[1:].split()
        key = {"dimension": "dimensions"}.get(identifier.lower(), identifier.lower())
        if key == "data":
            if values:
                raise DataError(f"{where}, line {number}: @data must be alone on its line")
            return _header(found, where)
        # Some files have two problem names.
        if key != "problemname" and found.get(key, values) != values:
            raise DataError(
                f"{where}, line {number}: @{identifier} {' '.join(values)} contradicts the earlier "
                f"@{identifier} {' '.join(found[key])}"
            )
        found[key] = values
    raise DataError(f"{where} has no line @data: it is not a .ts file, or it is cut off")


def _header(found: dict[str, list[str]], where: str) -> _Header:
    flags = {key: _flag(key, found[key], where) for key in _FLAGS & found.keys()}
    counts = {key: _count(key, found[key], where) for key in _COUNTS & found.keys()}
    if flags.get("timestamps"):
        raise DataError(
            f"{where} has time stamps (@timeStamps true), which slts does not read: resample the "
            "series to even steps and write them as plain values"
        )
    target = flags.get("targetlabel", False)
    if "classlabel" not in found and not target:
        raise DataError(
            f"{where} does not say whether its series have labels: add @classLabel true followed "
            "by the labels, @classLabel false, or @targetLabel true"
        )
    classes = None
    if "classlabel" in found and _flag("classLabel", found["classlabel"][:1], where):
        classes = tuple(found["classlabel"][1:])
        if not classes:
            raise DataError(f"{where}: @classLabel true must be followed by the labels")
        if target:
            raise DataError(f"{where} has both @classLabel true and @targetLabel true: remove one")
    return _Header(
        univariate=flags.get("univariate"),
        equal_length=flags.get("equallength"),
        dimensions=counts.get("dimensions"),
        series_length=counts.get("serieslength"),
        class_labels=classes,
        target=target,
    )


def _flag(key: str, values: list[str], where: str) -> bool:
    text = " ".join(values).lower()
    if text not in ("true", "false"):
        raise DataError(f"{where}: @{key} must be true or false, got {text!r}")
    return text == "true"


def _count(key: str, values: list[str], where: str) -> int:
    text = " ".join(values)
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise DataError(f"{where}: @{key} must be a positive integer, got {text!r}")
    return int(text)


class _DataReader:
    """Reads data lines, and checks each against the header and the first series."""

    def __init__(self, header: _Header) -> None:
        self._header = header
        self._n_channels = 1 if header.univariate else header.dimensions
        # With unequal lengths, some files give the largest length.
        self._n_steps = None if header.equal_length is False else header.series_length

    def read(self, line: str) -> tuple[FloatArray, str | float | None]:
        """Return the series of a line, channels first, and its label."""
        if line[0] == "(":
            raise DataError("values in brackets are time stamps, which slts does not read")
        parts = [part.strip() for part in line.split(":")]
        label = self._label(parts)
        if self._n_channels is None:
            self._n_channels = len(parts)
        if len(parts) != self._n_channels:
            source = "as in the first series"
            if self._header.univariate:
                source = "@univariate true"
            elif self._header.dimensions:
                source = f"@dimensions {self._header.dimensions}"
            raise DataError(f"{len(parts)} channels, expected {self._n_channels} ({source})")
        channels = [self._numbers(part, c) for c, part in enumerate(parts)]
        n_steps = len(channels[0])
        for c, channel in enumerate(channels):
            if len(channel) != n_steps:
                raise DataError(
                    f"channel {c} has {len(channel)} steps and channel 0 has {n_steps}: all "
                    "channels of a series must have the same length"
                )
        if self._header.equal_length and self._n_steps is None:
            self._n_steps = n_steps
        if self._n_steps not in (None, n_steps):
            raise DataError(
                f"{n_steps} steps, expected {self._n_steps} as in the others (@equalLength, "
                "@seriesLength)"
            )
        return np.stack(channels), label

    def _label(self, parts: list[str]) -> str | float | None:
        """Remove the label from the end of a line, and return it."""
        classes = self._header.class_labels
        if classes is None and not self._header.target:
            return None
        if len(parts) < 2:
            raise DataError("expected values, a colon and a label")
        text = parts.pop()
        if classes is not None:
            if text not in classes:
                raise DataError(
                    f"label {text!r} is not one of those after @classLabel: {' '.join(classes)}"
                )
            return text
        target = _number(text)
        if target is None:
            raise DataError(f"target {text!r} is not a number")
        return target

    def _numbers(self, text: str, channel: int) -> FloatArray:
        """Read the values of one channel."""
        words = text.split(",")
        try:
            # NumPy is ten times as fast as the loop below, which knows all rules of the format.
            values = np.array(words, dtype=np.float64)
            if "_" not in text and np.isfinite(values).all():
                return values
        except ValueError:
            pass
        numbers = [_number(word) for word in words]
        for step, (word, number) in enumerate(zip(words, numbers, strict=True)):
            place = f"channel {channel}, step {step}"
            if number is None:
                raise DataError(f"{place}: {word!r} is not a number")
            if np.isinf(number):
                raise DataError(f"{place} is {number}, expected a finite number")
        return np.array(numbers, dtype=np.float64)


def _number(text: str) -> float | None:
    """Return a number, NaN for a missing one, None for anything else."""
    if text.strip() == "?":
        return float("nan")
    try:
        # Python reads 1_000 as a number; no other reader of the format does.
        return None if "_" in text else float(text)
    except ValueError:
        return None
