"""`scan_series`, `read_series` and `iter_series`: the name of a source determines its form."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from slts.datasets.japanese_vowels import NAMES
from slts.errors import DataError
from slts.series.convert import is_frame
from slts.series.dataset import Dataset
from slts.tables.arrays import DAMAGED, WholePart
from slts.tables.arrow import FramePart, ParquetScan
from slts.tables.dask_collections import BagScan, is_bag, is_collection, scan_frame
from slts.tables.folders import CsvPart, FilesPart
from slts.tables.paths import (
    DATA_SUFFIXES,
    PARQUET_SUFFIXES,
    STDIN,
    TEXT_SUFFIXES,
    Files,
    base_suffix,
    is_compressed,
    is_path_like,
    is_pattern,
)
from slts.tables.roles import ExpectedColumns, RequestedColumns
from slts.tables.scan import SeriesScan, TablePart, is_small
from slts.tables.text import CsvFile, saved_stdin

# How many times larger a compressed text file may be in memory.
_COMPRESSION = 8

_FORMS = (
    ".ts, .csv or .tsv (also compressed: .gz, .bz2 or .zst), .parquet, .feather, .npz, a "
    "folder, a pattern or list of files, or - for CSV from standard input"
)


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
        without header, the label is the first or the last column); Parquet and Feather also in
        list form (one row per series, one list per channel); `.npz` (`X` and `y`, or `values`,
        `offsets` and `y`). Text files may be compressed (`.gz`, `.bz2`, `.zst`).

        Or several Parquet files that are read as one table: a folder, a pattern such as
        ``"data/part-*.parquet"``, or a list of files in the given order. Folders inside with names
        such as ``label=a`` define a column ``label``.

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
    known = expect if isinstance(expect, ExpectedColumns) else ExpectedColumns(expect)
    requested = RequestedColumns(id, time, label, channels, groups, every, expected=known)
    return scan_source(source, requested)


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


def scan_source(source: object, requested: RequestedColumns) -> SeriesScan:
    """Choose the form of a source."""
    if is_path_like(source):
        if isinstance(source, str | os.PathLike):
            return _scan_path(os.fspath(source), requested)
        return _scan_files(Files.listed(source), requested)
    if is_collection(source):
        return BagScan(source, requested) if is_bag(source) else scan_frame(source, requested)
    if is_frame(source):
        return _of_part(FramePart.of(source, requested))
    is_empty = isinstance(source, list | tuple) and not source
    raise DataError(
        f"the source must be a path, a list of paths, a data frame, a Dask DataFrame or a Dask "
        f"Bag, got {'an empty list' if is_empty else type(source).__name__}"
    )


def _scan_path(name: str, requested: RequestedColumns) -> SeriesScan:
    """Choose the form of a source by its name."""
    path, suffix = Path(name).absolute(), base_suffix(name)
    if name == STDIN:
        return _scan_csv("standard input", saved_stdin(), requested)
    if is_pattern(name):
        return _scan_files(Files.matching(name), requested)
    if not path.exists():
        if name.partition(":")[0] in NAMES:
            requested.require_none(name)
            return SeriesScan(name, None, [WholePart(name, None, requested.expected)])
        raise FileNotFoundError(
            f"{name}: there is no such file, folder or data set. (Only local files can be read: "
            f"download others, mount their storage, or use a Dask data frame.)"
        )
    if path.is_dir():
        files = Files.in_folder(name)
        if files is None:
            raise _no_data_in(name, path)
        return _scan_files(files, requested)
    if suffix not in DATA_SUFFIXES:
        raise DataError(
            f"{name} has an unknown suffix; expected {_FORMS}. Rename a text file to .csv or .tsv, "
            f"and save other tables as CSV"
        )
    if is_compressed(path) and suffix not in (*TEXT_SUFFIXES, ".ts"):
        raise DataError(
            f"{name}: compressed {suffix} files cannot be read. Decompress it first. The format "
            f"itself compresses its contents"
        )
    if suffix in PARQUET_SUFFIXES:
        return _scan_files(Files.listed([name]), requested)
    if suffix in (".ts", ".npz"):
        requested.require_none(name)
        part = WholePart(name, path, requested.expected)
        return SeriesScan(name, None, [part], _size_in_memory([path]))
    if suffix in TEXT_SUFFIXES:
        return _scan_csv(name, path, requested)
    return _of_part(FramePart.of_feather(path, name, requested), [path])


def _scan_csv(name: str, path: Path, requested: RequestedColumns) -> SeriesScan:
    """Scan one CSV file: a table, or one series for a model that was trained on such files."""
    if requested.expected.one_file_per_series and not requested.ids:
        return _scan_files(Files(name, path.parent, (str(path),)), requested)
    table = CsvFile.at(path, name)
    columns = table.resolve(requested)
    size = path.stat().st_size * (_COMPRESSION if is_compressed(path) else 1)
    return _of_part(CsvPart(name, table, columns, is_small(size)), [path])


def _scan_files(files: Files, requested: RequestedColumns) -> SeriesScan:
    """Scan Parquet files as one table, or CSV files with one series each."""
    if files.is_parquet:
        return ParquetScan(files, requested)
    return _of_part(FilesPart.of(files, requested), files.paths)


def _no_data_in(name: str, path: Path) -> DataError:
    first = min((file.name for file in path.iterdir() if file.is_file()), default=None)
    hint = "" if first is None else f". Give one of its files, such as {Path(name, first)}"
    if first is not None and first.lower().endswith((".txt", ".dat", ".data")):
        hint = f". Its files, such as {first}, must end in .csv or .tsv to be read as text"
    return DataError(
        f"{name} has neither Parquet files nor CSV files with series, nor folders with CSV files, "
        f"one folder per class{hint}"
    )


def _of_part(part: TablePart, files: Sequence[Path] = ()) -> SeriesScan:
    """Scan a table with one part, which is read from beginning to end."""
    return SeriesScan(part.name, part.columns, [part], _size_in_memory(files))


def _size_in_memory(files: Sequence[Path]) -> int | None:
    """Return the size of files, which is similar to the size in memory; None if compressed."""
    if not files or any(is_compressed(file) for file in files):
        return None
    if files[0].suffix.lower() == ".npz":
        # What is wrong with a damaged file is said when it is read.
        with suppress(*DAMAGED), zipfile.ZipFile(files[0]) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    return sum(file.stat().st_size for file in files)
