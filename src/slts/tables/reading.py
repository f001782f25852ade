"""`scan_series`, `read_series` and `iter_series`: the name of a source determines its form.

Sources without named columns are read here: `.npz`, `.ts` and published data sets.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from slts._typing import AnyArray, Layout
from slts.datasets import NAMES, TITLE, load, parse_ts
from slts.errors import DataError
from slts.series.batch import SeriesBatch
from slts.series.convert import as_series, is_frame
from slts.series.dataset import Dataset, SeriesScan, first_missing
from slts.series.values import trim_padding
from slts.tables.arrow import FramePart, ParquetScan
from slts.tables.assembly import TablePart
from slts.tables.dask_collections import BagScan, is_bag, is_collection, scan_frame
from slts.tables.files import FilesPart, find_files
from slts.tables.roles import ExpectedColumns, RequestedColumns
from slts.tables.text import CsvPart, base_suffix, open_binary, saved_stdin

_NPZ_ARRAYS = (
    "expected X of shape (n, channels, time) or (n, time); or, for series of different lengths, "
    "values of shape (all steps, channels) and offsets: batch = slts.as_series(X); "
    "np.savez(path, values=batch.values, offsets=batch.offsets, y=y)"
)
# Errors of NumPy and zipfile; an OSError names a file only if the file cannot be opened.
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, KeyError, RuntimeError,
    OverflowError, MemoryError, AttributeError, TypeError,
)  # fmt: skip


def scan_series(
    source: object,
    *,
    id: str | Sequence[str] | None = None,
    time: str | None = None,
    label: str | None = None,
    channels: str | Sequence[str] | None = None,
    expect: Sequence[str] | ExpectedColumns | None = None,
    groups: str | None = None,
    every: str | float | None = None,
) -> SeriesScan:
    """Open data that need not fit in memory, and find its columns.

    The series are read when they are needed. In long form, a table of up to 64 MiB (8 MiB if it is
    compressed text) is read as a whole, and its rows may have any order. Larger tables are read in
    batches and parts, and all rows of a series must be contiguous.

    Parameters
    ----------
    source : str, path, list of paths, data frame or Dask collection
        A file; its suffix determines the form: `.ts`; `.csv`, `.tsv`, `.parquet` or `.feather` in
        long form (one row per step) or in wide form (one row per series, one column per step;
        without header, the label is the first column); Parquet and Feather also in
        list form (one row per series, one list per channel); `.npz` (`X` and `y`, or `values`,
        `offsets` and `y`). Text files may be compressed (`.gz`, `.bz2`, `.zst`).

        Or several Parquet files that are read as one table: a folder, a pattern such as
        ``"data/part-*.parquet"``, or a list of files in the given order.

        Or several CSV files with one series each: a folder with labels in ``labels.csv``, a folder
        with one folder of such files per class, a pattern or a list. Or ``"-"`` for CSV from
        standard input, or a data set of `slts.datasets`, such as ``"japanese_vowels:train"``.

        Or a data frame of pandas or polars or an Arrow table, with rows in any order. Or a Dask
        DataFrame with all rows of a series in one partition; or a Dask Bag of series of shape
        (channels, time), or of pairs (series, label).
    id, time, label : str, optional
        Columns of a table; by default those with a usual name (see "Columns" in the guide to your
        own data). If several columns identify a series together, `id` is a list:
        ``["subject", "trial"]``.
    channels : str or sequence of str, optional
        Columns with the values: a list, or names separated by commas; ``"c1..c12"`` means all
        columns from the first to the second. By default all other columns, which must be numbers or
        booleans that are not constant in every series and do not rise in every series.
    expect : sequence of str or ExpectedColumns, optional
        Channels of a trained model, which are read in this order if the channels have names; or
        all that the model says about columns.
    groups : str, optional
        Column with the group of a series, such as the subject; constant within every series.
    every : str or float, optional
        Resample every series in long form on a regular time grid that starts at its first time. The
        interval is text such as ``"20ms"``, or a number if the times are numbers. Channels are
        interpolated linearly. By default the steps are kept, and the time only sorts them.

    Returns
    -------
    SeriesScan
        The source, which can be read any number of times.

    Raises
    ------
    DataError
        If columns do not exist, or a column has no role. The message has the call that helps.

    See Also
    --------
    read_series : Read all series of a source.
    iter_series : Read a source once, in batches.
    """
    expected = expect if isinstance(expect, ExpectedColumns) else ExpectedColumns(expect)
    requested = RequestedColumns(id, time, label, channels, groups, every, expected=expected)
    first = source[0] if isinstance(source, list | tuple) and source else source
    if isinstance(first, str | os.PathLike):
        return _scan_path(source, requested)
    if is_collection(source):
        return BagScan(source, requested) if is_bag(source) else scan_frame(source, requested)
    if is_frame(source):
        return _of_one(FramePart.of(source, requested))
    raise DataError(
        f"the source must be a path, a list of paths, a data frame, a Dask DataFrame or a Dask "
        f"Bag, got {'an empty list' if source == [] else type(source).__name__}"
    )


def read_series(source: object, *, labels: bool = True, **columns: Any) -> Dataset:
    """Read all series of a source.

    Parameters
    ----------
    source
        See `scan_series`.
    labels : bool
        Whether labels and groups are needed. If not, they may be missing.
    **columns
        Roles of columns, as for `scan_series`.

    Returns
    -------
    Dataset
        Series, labels and identifiers.
    """
    return scan_series(source, **columns).read(labels=labels)


def iter_series(
    source: object, *, labels: bool = True, batch_size: int = 1024, **columns: Any
) -> Iterator[Dataset]:
    """Read the series of a source in batches, of which only a few are in memory at any time.

    Parameters
    ----------
    source, labels, **columns
        See `read_series`.
    batch_size : int
        Largest number of series in a batch.

    Yields
    ------
    Dataset
        The next series.
    """
    yield from scan_series(source, **columns).batches(labels=labels, batch_size=batch_size)


def _scan_path(source: Any, requested: RequestedColumns) -> SeriesScan:
    """Choose the form of a source by its name."""
    if isinstance(source, str) and source == "-":
        path = saved_stdin()
        return _of_one(CsvPart.of(path, "standard input", requested), path.stat().st_size)
    if isinstance(source, str) and source.partition(":")[0] in NAMES and not os.path.exists(source):
        requested.require_none(source)
        return _of_one(WholePart(source, None, requested.expected))
    files = find_files(source)
    if files.form == "parquet":
        return ParquetScan(files, requested)
    one_per_file = requested.expected.one_file_per_series and not requested.ids
    if files.form == "text" and (one_per_file or not files.is_one):
        return _of_one(FilesPart.of(files, requested), files.n_bytes)
    path, name = files.paths[0], files.names[0]
    if files.form == "text":
        return _of_one(CsvPart.of(path, name, requested), files.n_bytes)
    if files.form == "feather":
        return _of_one(FramePart.of_feather(path, name, requested), files.n_bytes)
    requested.require_none(name)
    return _of_one(WholePart(name, path, requested.expected), files.n_bytes)


def _of_one(part: TablePart | WholePart, n_bytes: int | None = None) -> SeriesScan:
    """Scan a source with one part, which is read from beginning to end."""
    return SeriesScan(part.name, part.columns, [part], n_bytes)


# -- Sources without named columns


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
    columns = None

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
    except _DAMAGED as error:
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
