"""Sources that are read at once: `.npz` files, `.ts` files and published data sets."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.datasets import info, load
from slts.datasets.ts_format import parse_ts
from slts.errors import DataError
from slts.series.batch import SeriesBatch
from slts.series.dataset import Dataset, first_missing
from slts.series.flatten import (
    Flat,
    as_numbers,
    check_values,
    flatten_array,
    flatten_list,
    warn_if_swapped,
)
from slts.series.missing import trim_padding
from slts.tables.paths import base_suffix
from slts.tables.roles import ExpectedColumns
from slts.tables.text import open_binary

_NPZ_ARRAYS = (
    "expected X of shape (n, channels, time) or (n, time), with lengths if series are padded; or, "
    "for series of different lengths, values of shape (all steps, channels) and offsets"
)


# Errors of NumPy and zipfile; an OSError names a file only if the file cannot be opened.
DAMAGED = (
    zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, KeyError, RuntimeError,
    OverflowError,
)  # fmt: skip


@dataclass(frozen=True)
class WholePart:
    """All series of a source without named columns.

    Attributes
    ----------
    name
        The source, as it was given.
    path
        The absolute path of a file; None for a published data set.
    expected
        Channels of a trained model, in whose order named channels are returned.
    """

    name: str
    path: Path | None
    expected: ExpectedColumns

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read everything, and yield slices of it."""
        if self.path is None:
            whole = _read_published(self.name)
        elif base_suffix(self.path) == ".npz":
            whole = _read_npz(self.path, self.name, self.expected, labels=labels)
        else:
            whole = _read_ts(self.path, self.name)
        series = _in_order(whole.series, self.expected.channels)
        whole = replace(whole, series=series, share=1.0)
        return whole.batches(labels=labels, batch_size=batch_size)


def _in_order(series: SeriesBatch, expected: Sequence[str] | None) -> SeriesBatch:
    """Put named channels in the order of a model, which warns if they have other names."""
    names = series.channel_names
    if names is None or expected is None or set(expected) != set(names):
        return series
    order = [names.index(name) for name in expected]
    return series.with_values(np.ascontiguousarray(series.values[:, order]), tuple(expected))


def _read_published(name: str) -> Dataset:
    dataset, _, split = name.partition(":")
    if split and split not in ("train", "test"):
        raise DataError(f"{name}: expected train or test after the colon, got {split!r}")
    series, classes = load(dataset, split or None)
    title = info(dataset).title + (f", {split}" if split else "")
    return Dataset(series, classes, source=title)


def _read_ts(path: Path, name: str) -> Dataset:
    with open_binary(path, name) as file:
        try:
            lines = io.TextIOWrapper(file, encoding="utf-8-sig")
            series, classes = parse_ts(lines, name)
        except UnicodeDecodeError as error:
            raise DataError(f"{name} is not a .ts file in UTF-8: {error}") from error
    return _dataset(*flatten_list(series, "channels_first"), labels=classes, source=name)


def _dataset(
    values: FloatArray,
    offsets: IntArray,
    names: tuple[str, ...] | None = None,
    ids: AnyArray | None = None,
    *,
    labels: AnyArray | None,
    source: str,
) -> Dataset:
    """Check the values of series, and remove steps without a value at their ends."""
    try:
        check_values(values, offsets, names, None if ids is None else ids.tolist())
    except DataError as error:
        raise DataError(f"{source}: {error}") from error
    series = trim_padding(SeriesBatch.from_checked(values, offsets, names))
    return Dataset(series if ids is None else series.named(ids), labels, ids, source)


def _read_npz(path: Path, name: str, expected: ExpectedColumns, *, labels: bool) -> Dataset:
    """Read named arrays, without unpickling: pickles could run code."""
    try:
        # NumPy does not close a damaged file.
        with open(path, "rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if not hasattr(loaded, "files"):
                raise DataError(f"{name} is a single array, not an .npz file: {_NPZ_ARRAYS}")
            with loaded as file:
                arrays = {key: _load_array(file, key, name) for key in file.files}
    except DataError:
        raise
    except MemoryError as error:
        raise DataError(
            f"{name} does not fit into memory, or the sizes it states are damaged: {error}"
        ) from error
    except DAMAGED as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        # NumPy reads unknown content as a pickle, and its message suggests to allow that.
        reason = "" if "pickle" in str(error) else f": {error}"
        raise DataError(f"{name} is not an .npz file, or is damaged{reason}") from error
    try:
        series = _npz_series(arrays, expected.n_channels)
    except (DataError, TypeError) as error:
        raise DataError(f"{name}: {error}") from error
    classes = _one_per_series(arrays, "y", len(series), name) if labels else None
    ids = _one_per_series(arrays, "ids", len(series), name)
    return _dataset(
        series.values, series.offsets, series.channel_names, ids, labels=classes, source=name
    )


def _load_array(file: Mapping[str, AnyArray], key: str, name: str) -> AnyArray:
    try:
        return file[key]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise DataError(
            f"{name}: {key!r} is an array of Python objects, which could run code when it is "
            f"read. Save series of different lengths as two arrays instead: batch = "
            f"slts.as_series(X); np.savez(path, values=batch.values, offsets=batch.offsets, y=y)"
        ) from error


def _npz_series(arrays: Mapping[str, AnyArray], n_channels: int | None) -> SeriesBatch:
    """Return series whose values are not checked; warn if their channels are not known."""
    names = arrays["channel_names"].tolist() if "channel_names" in arrays else None
    if "values" in arrays and "offsets" in arrays:
        values, offsets = as_numbers(arrays["values"], "values"), arrays["offsets"]
    elif "X" not in arrays:
        raise DataError(f"the file holds {', '.join(arrays) or 'nothing'}: {_NPZ_ARRAYS}")
    elif "lengths" in arrays:
        values, offsets, *_ = _without_padding(arrays["X"], arrays["lengths"])
    else:
        # Arrays with as many channels as a model are not swapped, and others are an error.
        if n_channels is None:
            warn_if_swapped(arrays["X"])
        values, offsets, *_ = flatten_array(as_numbers(arrays["X"], "X"), "channels_first")
    zeros = SeriesBatch(np.zeros(values.shape), offsets, names)
    return zeros.with_values(np.ascontiguousarray(values, dtype=np.float64), zeros.channel_names)


def _without_padding(X: AnyArray, lengths: AnyArray) -> Flat:
    X = X[:, np.newaxis, :] if X.ndim == 2 else X
    fits = X.ndim == 3 and lengths.shape == X.shape[:1] and lengths.dtype.kind in "iu"
    if not fits or (lengths < 1).any() or (lengths > X.shape[-1]).any():
        raise DataError(
            f"lengths must be {len(X)} integers from 1 to {X.shape[-1]}, one per series of X"
        )
    cut = [x[:, :length] for x, length in zip(X, lengths.tolist(), strict=True)]
    return flatten_list(cut, "channels_first")


def _one_per_series(
    arrays: Mapping[str, AnyArray], key: str, n_series: int, name: str
) -> AnyArray | None:
    found = arrays.get(key)
    if found is None:
        return None
    if found.shape != (n_series,):
        raise DataError(
            f"{name}: {key} has shape {found.shape}, expected ({n_series},), one per series"
        )
    gap = first_missing(found.tolist())
    if gap is not None:
        raise DataError(f"{name}: {key}[{gap}] is missing: fill it in or drop the series")
    return found
