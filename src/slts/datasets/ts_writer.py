"""`write_ts`: write series and labels to a `.ts` file."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.atomic_files import whole_file
from slts.errors import DataError
from slts.series import SeriesBatch, as_series
from slts.series.flatten import Flat, flatten_list

__all__ = ["write_ts"]


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
        Series in any form that `as_series` takes. NaN is written as a missing value, `?`.
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
        fresh = stack.enter_context(whole_file(path))
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
    yield f"@missing {_text(bool(np.isnan(values).any()))}"
    yield f"@univariate {_text(n_channels == 1)}"
    if n_channels > 1:
        yield f"@dimensions {n_channels}"
    yield f"@equalLength {_text(equal)}"
    if equal:
        yield f"@seriesLength {lengths[0]}"


def _text(flag: bool) -> str:
    return "true" if flag else "false"


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
            raise DataError("y holds floats, which are targets and have no class_labels")
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
