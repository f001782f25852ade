"""Sources that are read at once: `.npz` files, `.ts` files and published data sets."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from slts._typing import AnyArray, Layout
from slts.datasets.japanese_vowels import TITLE, load
from slts.datasets.ts_format import parse_ts
from slts.errors import DataError
from slts.series.batch import SeriesBatch
from slts.series.convert import as_series
from slts.series.dataset import Dataset, first_missing
from slts.series.missing import trim_padding
from slts.tables.paths import base_suffix
from slts.tables.roles import ExpectedColumns
from slts.tables.text import open_binary

_NPZ_ARRAYS = (
    "expected X of shape (n, channels, time) or (n, time); or, for series of different lengths, "
    "values of shape (all steps, channels) and offsets: batch = slts.as_series(X); "
    "np.savez(path, values=batch.values, offsets=batch.offsets, y=y)"
)
# Errors of NumPy and zipfile; an OSError names a file only if the file cannot be opened.
DAMAGED = (
    zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, KeyError, RuntimeError,
    OverflowError, MemoryError,
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
            whole = self._read_npz(self.path, labels)
        else:
            whole = _read_ts(self.path, self.name)
        names, expected = whole.series.channel_names, self.expected.channels
        if names is not None and expected is not None and set(names) == set(expected):
            order = [names.index(name) for name in expected]
            values = np.ascontiguousarray(whole.series.values[:, order])
            whole = replace(whole, series=whole.series.with_values(values, tuple(expected)))
        return replace(whole, share=1.0).batches(labels=labels, batch_size=batch_size)

    def _read_npz(self, path: Path, labels: bool) -> Dataset:
        arrays = _arrays(path, self.name)
        # Arrays with as many channels as a model are not swapped, and others are an error.
        layout: Layout | None = None if self.expected.n_channels is None else "channels_first"
        names = arrays["channel_names"].tolist() if "channel_names" in arrays else None
        try:
            if "values" in arrays and "offsets" in arrays:
                values, offsets = arrays["values"], arrays["offsets"]
            elif "X" in arrays:
                batch = as_series(arrays["X"], layout=layout)
                values, offsets = batch.values, batch.offsets
            else:
                raise DataError(f"the file holds {', '.join(arrays) or 'nothing'}: {_NPZ_ARRAYS}")
            series = trim_padding(SeriesBatch(values, offsets, names))
            ids = _one_per_series(arrays, "ids", len(series))
            classes = _one_per_series(arrays, "y", len(series)) if labels else None
        except (DataError, TypeError) as error:
            raise DataError(f"{self.name}: {error}") from error
        return Dataset(series if ids is None else series.named(ids), classes, ids, self.name)


def _read_published(name: str) -> Dataset:
    dataset, _, split = name.partition(":")
    if split and split not in ("train", "test"):
        raise DataError(f"{name}: expected train or test after the colon, got {split!r}")
    series, classes = load(dataset, split or None)
    title = TITLE + (f", {split}" if split else "")
    return Dataset(series, classes, source=title)


def _read_ts(path: Path, name: str) -> Dataset:
    with open_binary(path, name) as file:
        try:
            with io.TextIOWrapper(file, encoding="utf-8-sig") as lines:
                series, classes = parse_ts(lines, name)
        except UnicodeDecodeError as error:
            raise DataError(f"{name} is not a .ts file in UTF-8: {error}") from error
    try:
        return Dataset(as_series(series, layout="channels_first"), classes, source=name)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error


def _arrays(path: Path, name: str) -> Mapping[str, AnyArray]:
    """Read named arrays, without unpickling: pickles could run code."""
    try:
        # NumPy does not close a damaged file.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except (*DAMAGED, AttributeError, TypeError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        # NumPy suggests to allow pickles, which could run code.
        reason = "it holds Python objects" if "pickle" in str(error) else error
        raise DataError(f"{name} cannot be read ({reason}): {_NPZ_ARRAYS}") from error


def _one_per_series(arrays: Mapping[str, AnyArray], key: str, n_series: int) -> AnyArray | None:
    values = arrays.get(key)
    if values is None:
        return None
    if values.shape != (n_series,):
        raise DataError(f"{key} has shape {values.shape}, expected ({n_series},), one per series")
    gap = first_missing(values.tolist())
    if gap is not None:
        raise DataError(f"{key}[{gap}] is missing: fill it in or drop the series")
    return values
