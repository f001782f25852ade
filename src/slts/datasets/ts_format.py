"""`.ts` files, the text format of the UEA and UCR archives of time series: read and write."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TextIO, cast

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.atomic_files import atomic_file
from slts.errors import DataError
from slts.series import SeriesBatch, as_series
from slts.series.flatten import Flat, flatten_list

__all__ = ["parse_ts", "read_ts", "write_ts"]

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
    reader = _DataReader(_read_header(numbered, where), where)
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
            label = None if reader.classes is None else ""
            label = np.nan if reader.has_target else label
        series.append(x)
        if label is not None:
            labels.append(label)
    if not series:
        raise DataError(f"{where} has no series after @data")
    if wrong:
        n_channels = max(1, *map(len, series))
        series = [x if x.size else np.full((n_channels, 1), np.nan) for x in series]
    return series, np.array(labels) if labels else None


def _read_header(lines: Iterator[tuple[int, str]], where: str) -> dict[str, list[str]]:
    """Read a header up to and including its `@data`. Unknown identifiers are ignored."""
    found: dict[str, list[str]] = {}
    for number, line in lines:
        if line[0] != "@":
            raise DataError(
                f"{where}, line {number}: expected a header line that begins with @, got "
                f"{line[:40]!r}. The data begin after a line @data"
            )
        identifier, *values = line[1:].split()
        key = {"dimension": "dimensions"}.get(identifier.lower(), identifier.lower())
        if key == "data":
            if values:
                raise DataError(f"{where}, line {number}: @data must be alone on its line")
            return found
        # Some files have two problem names.
        if key != "problemname" and found.get(key, values) != values:
            raise DataError(
                f"{where}, line {number}: @{identifier} {' '.join(values)} contradicts the earlier "
                f"@{identifier} {' '.join(found[key])}"
            )
        found[key] = values
    raise DataError(f"{where} has no line @data: it is not a .ts file, or it is cut off")


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
    """Reads data lines, and checks each against the header and the first series.

    Parameters
    ----------
    header
        The words after each identifier of the header. What it does not say is not checked.
    where
        Name of the file, for error messages.

    Attributes
    ----------
    classes
        The classes; None if the series have no class.
    has_target
        Whether each series has a number to predict instead of a class.
    """

    def __init__(self, header: dict[str, list[str]], where: str) -> None:
        flags = {key: _flag(key, header[key], where) for key in _FLAGS & header.keys()}
        counts = {key: _count(key, header[key], where) for key in _COUNTS & header.keys()}
        if flags.get("timestamps"):
            raise DataError(
                f"{where} has timestamps (@timeStamps true), which slts does not read: resample "
                "the series to even steps and write them as plain values"
            )
        self.has_target = flags.get("targetlabel", False)
        self.classes: list[str] | None = None
        if "classlabel" not in header and not self.has_target:
            raise DataError(
                f"{where} does not say whether its series have labels: add @classLabel true "
                "followed by the labels, @classLabel false, or @targetLabel true"
            )
        if "classlabel" in header and _flag("classLabel", header["classlabel"][:1], where):
            self.classes = header["classlabel"][1:]
            if not self.classes:
                raise DataError(f"{where}: @classLabel true must be followed by the labels")
            if self.has_target:
                raise DataError(
                    f"{where} has both @classLabel true and @targetLabel true: remove one"
                )
        self._n_channels, self._said = counts.get("dimensions"), "as in the first series"
        if flags.get("univariate"):
            self._n_channels, self._said = 1, "@univariate true"
        elif self._n_channels:
            self._said = f"@dimensions {self._n_channels}"
        self._equal_length = flags.get("equallength")
        # With unequal lengths, some files give the largest length.
        self._n_steps = None if self._equal_length is False else counts.get("serieslength")

    def read(self, line: str) -> tuple[FloatArray, str | float | None]:
        """Return the series of a line, channels first, and its label."""
        if line[0] == "(":
            raise DataError("values in brackets are timestamps, which slts does not read")
        parts = [part.strip() for part in line.split(":")]
        label = self._label(parts)
        if self._n_channels is None:
            self._n_channels = len(parts)
        if len(parts) != self._n_channels:
            raise DataError(f"{len(parts)} channels, expected {self._n_channels} ({self._said})")
        channels = [self._numbers(part, c) for c, part in enumerate(parts)]
        n_steps = len(channels[0])
        for c, channel in enumerate(channels):
            if len(channel) != n_steps:
                raise DataError(
                    f"channel {c} has {len(channel)} steps and channel 0 has {n_steps}: all "
                    "channels of a series must have the same length"
                )
        if self._equal_length and self._n_steps is None:
            self._n_steps = n_steps
        if self._n_steps not in (None, n_steps):
            raise DataError(
                f"{n_steps} steps, expected {self._n_steps} as in the others (@equalLength, "
                "@seriesLength)"
            )
        return np.stack(channels), label

    def _label(self, parts: list[str]) -> str | float | None:
        """Remove the label from the end of a line, and return it."""
        if self.classes is None and not self.has_target:
            return None
        if len(parts) < 2:
            raise DataError("expected values, a colon and a label")
        text = parts.pop()
        if self.classes is not None:
            if text not in self.classes:
                raise DataError(
                    f"label {text!r} is not one of those after @classLabel: "
                    f"{' '.join(self.classes)}"
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


# -- Writing


def write_ts(
    path: str | os.PathLike[str],
    X: object,
    y: object = None,
    *,
    problem_name: str = "data",
    class_labels: Sequence[object] | None = None,
    comment: str = "",
) -> None:
    """Write series and labels to a `.ts` file that `read_ts` reads back exactly.

    The file gets its name when it is complete, and replaces an older one.

    Parameters
    ----------
    path : str or path
        File to write, in UTF-8; compressed if it ends in `.gz`.
    X : object
        Series in any form that `as_series` accepts. NaN is written as a missing value, `?`.
    y : array-like of shape (n_series,), optional
        Labels. Floating-point numbers are written as regression targets, everything else as class
        labels, which must not contain white space or colons.
    problem_name : str
        Name of the data set, one word.
    class_labels : sequence, optional
        The classes for the header, in order; by default those in `y`, sorted. Pass them if the file
        is a part of a data set and may lack a class.
    comment : str
        Comment at the top of the file.

    Raises
    ------
    DataError
        If the format cannot hold the data.
    """
    values, offsets = _flat(X)
    labels, label_line = _labels(y, class_labels, len(offsets) - 1)
    if problem_name.split() != [problem_name]:
        raise DataError(f"problem_name must be one word, got {problem_name!r}")
    lines = [f"#{line}" for line in comment.splitlines()]
    lines += [f"@problemName {problem_name}", *_facts(values, offsets), label_line, "@data"]
    with contextlib.ExitStack() as stack:
        fresh = stack.enter_context(atomic_file(path))
        file: io.BufferedIOBase = stack.enter_context(fresh.open("wb"))
        if Path(path).suffix.lower() == ".gz":
            # Store neither name nor time: equal data make equal files.
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        file.writelines(f"{line}\n".encode() for line in lines)
        file.writelines(f"{line}\n".encode() for line in _data_lines(values, offsets, labels))


def _flat(X: object) -> tuple[FloatArray, IntArray]:
    """Return values and offsets. Lists are written whole; a batch ends with an observed step."""
    flat: Flat | SeriesBatch | None = None
    if isinstance(X, list | tuple):
        # It may also be a list of data frames.
        with contextlib.suppress(DataError, TypeError):
            flat = flatten_list(X, "channels_first")
    flat = as_series(X) if flat is None else flat
    values, offsets = flat.values, flat.offsets
    if np.isinf(values).any():
        raise DataError("the series hold infinite values, which a .ts file cannot represent")
    if len(offsets) < 2:
        raise DataError("there is no series to write: a .ts file holds at least one")
    return values, offsets


def _facts(values: FloatArray, offsets: IntArray) -> Iterator[str]:
    """Yield the header lines that describe the series."""
    lengths, n_channels = np.diff(offsets), values.shape[1]
    equal = bool((lengths == lengths[0]).all())
    yield "@timeStamps false"
    yield f"@missing {np.isnan(values).any()}".lower()
    yield f"@univariate {n_channels == 1}".lower()
    if n_channels > 1:
        yield f"@dimensions {n_channels}"
    yield "@equalLength true" if equal else "@equalLength false"
    if equal:
        yield f"@seriesLength {lengths[0]}"


def _labels(
    y: object, class_labels: Sequence[object] | None, n_series: int
) -> tuple[list[str] | None, str]:
    """Return the labels as text, and the header line that announces them."""
    if y is None:
        if class_labels is not None:
            raise DataError("class_labels are given, but y is None")
        return None, "@classLabel false"
    array: AnyArray = np.asarray(y)
    if array.shape != (n_series,):
        raise DataError(f"y must have one label for each of {n_series} series, got {array.shape}")
    if array.dtype.kind == "f":
        if class_labels is not None:
            raise DataError("y holds floats, which are targets: they have no class_labels")
        return ["?" if np.isnan(v) else repr(v) for v in array.tolist()], "@targetLabel true"
    labels = [str(label) for label in array.tolist()]
    known = np.unique(array).tolist() if class_labels is None else class_labels
    classes = [str(label) for label in known]
    for label in dict.fromkeys((*classes, *labels)):
        if label.split() != [label] or ":" in label:
            raise DataError(
                f"label {label!r} cannot be written: labels in a .ts file have no white space and "
                "no colons"
            )
        if label not in classes:
            raise DataError(f"label {label!r} is not in class_labels: {' '.join(classes)}")
    return labels, f"@classLabel true {' '.join(classes)}"


def _data_lines(values: FloatArray, offsets: IntArray, labels: list[str] | None) -> Iterator[str]:
    for i, (start, stop) in enumerate(pairwise(offsets.tolist())):
        # repr is the shortest text that is read as the same float.
        parts = [
            ",".join("?" if v != v else repr(v) for v in channel)
            for channel in values[start:stop].T.tolist()
        ]
        yield ":".join(parts if labels is None else [*parts, labels[i]])
