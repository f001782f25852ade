"""Writing of `.ts` files."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.atomic_files import whole_file
from slts.errors import DataError
from slts.series import as_series
from slts.series.flatten import flatten_list

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
    """Write series and labels to a `.ts` file, from which `read_ts` gives back the same.

    The file appears under its name when it is complete, replacing one that is there.

    Parameters
    ----------
    path : str or path
        File to write, in UTF-8; compressed if it ends in `.gz`.
    X : object
        Series of any form that `as_series` takes. A list of arrays may hold NaN, which is
        written as a missing value, `?`.
    y : array-like of shape (n_series,), optional
        Labels. Floating-point numbers are written as targets of a regression, everything else
        as class labels, which must not contain white space or colons.
    problem_name : str
        Name of the data set, one word.
    class_labels : sequence, optional
        The classes for the header, in order; those in `y`, sorted, by default. Give them if the
        file holds a part of the data in which a class may be absent.
    comment : str
        Text for the head of the file.

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
    _write(Path(path), _all_lines(lines, values, offsets, labels))


def _flat(X: object) -> tuple[FloatArray, IntArray]:
    """Return values and offsets; lists may hold NaN, which a batch may not."""
    if isinstance(X, list | tuple):
        try:
            values, offsets = flatten_list(X, "channels_first")
        except (DataError, TypeError):
            batch = as_series(X)  # lists of data frames
            values, offsets = batch.values, batch.offsets
    else:
        batch = as_series(X)
        values, offsets = batch.values, batch.offsets
    if np.isinf(values).any():
        raise DataError("the series hold infinite values, for which .ts files have no form")
    if len(offsets) < 2:
        raise DataError("there is no series to write: a .ts file holds at least one")
    return values, offsets


def _facts(values: FloatArray, offsets: IntArray) -> Iterator[str]:
    """Yield the header lines that describe the series."""
    lengths = np.diff(offsets)
    n_channels = values.shape[1]
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
            raise DataError("class_labels are given, but there is no y")
        return None, "@classLabel false"
    array: AnyArray = np.asarray(y)
    if array.shape != (n_series,):
        raise DataError(f"y must have one label for each of {n_series} series, got {array.shape}")
    if array.dtype.kind == "f":
        if class_labels is not None:
            raise DataError("y holds floats, which are targets and have no class_labels")
        return ["?" if np.isnan(v) else repr(v) for v in array.tolist()], "@targetLabel true"
    labels = [str(label) for label in array.tolist()]
    classes = (
        [str(label) for label in np.unique(array).tolist()]
        if class_labels is None
        else [str(label) for label in class_labels]
    )
    for label in dict.fromkeys((*classes, *labels)):
        if label.split() != [label] or ":" in label:
            raise DataError(
                f"label {label!r} cannot be written: a .ts file takes labels without white space "
                "and colons"
            )
        if label not in classes:
            raise DataError(f"label {label!r} is not in class_labels: {' '.join(classes)}")
    return labels, f"@classLabel true {' '.join(classes)}"


def _all_lines(
    header: list[str], values: FloatArray, offsets: IntArray, labels: list[str] | None
) -> Iterator[str]:
    yield from header
    for i, (start, stop) in enumerate(pairwise(offsets.tolist())):
        # repr gives the shortest text from which the same float is read.
        parts = [
            ",".join("?" if v != v else repr(v) for v in channel)
            for channel in values[start:stop].T.tolist()
        ]
        if labels is not None:
            parts.append(labels[i])
        yield ":".join(parts)


def _write(path: Path, lines: Iterator[str]) -> None:
    with whole_file(path) as fresh, fresh.open("xb") as raw:
        if path.suffix.lower() == ".gz":
            # No name and time in it: equal data make equal files.
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                for line in lines:
                    packed.write(f"{line}\n".encode())
        else:
            for line in lines:
                raw.write(f"{line}\n".encode())
