"""`scan_series`, `read_series` and `iter_series`: the name of a source determines its form."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from slts.columns import Columns, ExpectedColumns, RequestedColumns, resolve_columns
from slts.columns.rows import SAMPLE_ROWS, Chunk, arrow_table
from slts.datasets.japanese_vowels import NAMES
from slts.errors import DataError
from slts.extras import LazyModule
from slts.files.arrays import DAMAGED, WholePart
from slts.files.arrow_files import open_arrow, sample_rows
from slts.files.dask_collections import BagScan, is_bag, is_collection, scan_frame
from slts.files.folders import FolderPart, series_files
from slts.files.parquet_parts import ParquetScan
from slts.files.paths import (
    PARQUET_SUFFIXES,
    STDIN,
    TABLE_SUFFIXES,
    TEXT_SUFFIXES,
    ParquetFiles,
    Paths,
    base_suffix,
    is_compressed,
    is_path_like,
    is_pattern,
)
from slts.files.scan import SeriesScan, TablePart, is_small
from slts.files.text_files import CsvTable, open_text
from slts.series.convert import is_frame
from slts.series.dataset import Dataset

pa: Any = LazyModule("pyarrow", "io")

_DATA_SUFFIXES = (*TABLE_SUFFIXES, ".ts", ".npz")
# How many times larger a compressed text file may be in memory.
_COMPRESSION = 8

_FORMS = (
    ".ts, .csv or .tsv (also compressed: .gz, .bz2, .xz or .zst), .parquet, .feather, .npz, a "
    "folder, a pattern or list of Parquet files, or - for CSV from standard input"
)


def scan_series(
    source: object,
    *,
    id: str | Sequence[str] | None = None,
    time: str | None = None,
    label: str | None = None,
    channels: str | Sequence[str] | None = None,
    expect: Sequence[str] | None = None,
    classes: Sequence[object] | None = None,
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
        A source of `read_series`, except standard input. Or a data frame of pandas or polars or an
        Arrow table, with rows in any order. Or a Dask DataFrame in long form with all rows of a
        series in one partition; or a Dask Bag of series of shape (channels, time), or of pairs
        (series, label).
    id, time, label, channels, expect, classes, groups, every
        See `read_series`.

    Returns
    -------
    SeriesScan
        The source, which can be read any number of times.

    Raises
    ------
    DataError
        If columns do not exist or cannot be guessed from the first rows.

    See Also
    --------
    read_series : Read all series of a source.
    iter_series : Read a source once, in batches.
    """
    if isinstance(source, str | os.PathLike) and os.fspath(source) == STDIN:
        raise DataError("standard input can be read only once: save it to a file to scan it")
    expected = ExpectedColumns(expect, classes)
    requested = RequestedColumns(id, time, label, channels, groups, every, expected=expected)
    return scan_source(source, requested)


def read_series(
    path: Paths,
    *,
    id: str | Sequence[str] | None = None,
    time: str | None = None,
    label: str | None = None,
    channels: str | Sequence[str] | None = None,
    expect: Sequence[str] | None = None,
    classes: Sequence[object] | None = None,
    groups: str | None = None,
    every: str | float | None = None,
    labels: bool = True,
) -> Dataset:
    """Read all series of a source.

    Parameters
    ----------
    path : str, path, or list of them
        A file; its suffix determines the form: `.ts`; `.csv`, `.tsv`, `.parquet` or `.feather` in
        long form (one row per step) or in wide form (one row per series, one column per step;
        without header, the label is the first or the last column); Parquet and Feather also in
        list form (one row per series, one list per channel); `.npz` (`X` and `y`, or `values`,
        `offsets` and `y`). Text files may be compressed (`.gz`, `.bz2`, `.xz`, `.zst`).

        Or several Parquet files that are read as one table: a folder, a pattern such as
        ``"data/part-*.parquet"``, or a list of files in the given order. Folders inside with names
        such as ``label=a`` define a column ``label``.

        Or a folder with one CSV file per series, and labels in ``labels.csv``; a folder with one
        folder of such files per class; ``"-"`` for CSV from standard input; or a data set of
        `slts.datasets`, such as ``"japanese_vowels:train"``.
    id, time, label : str, optional
        Columns of a table. They are guessed by default; `Dataset.columns` has the guess. If several
        columns identify a series together, `id` is a list: ``["subject", "trial"]``.
    channels : str or sequence of str, optional
        Columns with the values: a list, or names separated by commas; ``"c1..c12"`` means all
        columns from the first to the second. By default all other columns of numbers and booleans
        that are not constant within every series and do not count steps.
    expect : sequence of str, optional
        Channels of a trained model, which are read in this order if the channels have names.
        `channels` may name other columns, which replace them one by one.
    classes : sequence, optional
        Labels of a trained model. If `label` is not given, the column that holds them is used,
        among those that are not channels.
    groups : str, optional
        Column with the group of a series, such as the subject; constant within every series.
    every : str or float, optional
        Resample every series in long form on a regular time grid that starts at its first time. The
        interval is text such as ``"20ms"``, or a number if the times are numbers. Channels are
        interpolated linearly. By default the steps are kept, and the time only sorts them.
    labels : bool
        Whether labels and groups are needed. If not, they may be missing.

    Returns
    -------
    Dataset
        Series, labels and identifiers.

    Raises
    ------
    DataError
        If the source cannot be used; the message names the file, the position and a remedy.

    See Also
    --------
    iter_series : Read a source in batches.
    """
    expected = ExpectedColumns(expect, classes)
    requested = RequestedColumns(id, time, label, channels, groups, every, expected=expected)
    return scan_source(path, requested).read(labels=labels)


def iter_series(
    path: Paths,
    *,
    id: str | Sequence[str] | None = None,
    time: str | None = None,
    label: str | None = None,
    channels: str | Sequence[str] | None = None,
    expect: Sequence[str] | None = None,
    classes: Sequence[object] | None = None,
    groups: str | None = None,
    every: str | float | None = None,
    labels: bool = True,
    batch_size: int = 1024,
    on_error: Literal["raise", "skip"] = "raise",
) -> Iterator[Dataset]:
    """Read the series of a source in batches.

    Only a few batches of a table or a folder are in memory at any time. Small tables in long form
    are read as a whole (see `scan_series`).

    Parameters
    ----------
    path, id, time, label, channels, expect, classes, groups, every, labels
        See `read_series`.
    batch_size : int
        Largest number of series in a batch.
    on_error : {"raise", "skip"}
        What to do with a series that has an infinite value, a cell that is not a number, or no
        value at all: raise an error, or leave it out and give the reason in `Dataset.unusable`.

    Yields
    ------
    Dataset
        The next series.
    """
    skip, expected = on_error == "skip", ExpectedColumns(expect, classes)
    requested = RequestedColumns(id, time, label, channels, groups, every, skip, expected=expected)
    yield from scan_source(path, requested).batches(labels=labels, batch_size=batch_size)


def scan_source(source: object, requested: RequestedColumns) -> SeriesScan:
    """Choose the form of a source; standard input can be read only once."""
    if is_path_like(source):
        return _scan_files(ParquetFiles.at(source), requested)
    if is_collection(source):
        return BagScan(source, requested) if is_bag(source) else scan_frame(source, requested)
    if is_frame(source):
        return _of_table(MemoryTable.of(source, requested))
    is_empty = isinstance(source, list | tuple) and not source
    raise DataError(
        f"the source must be a path, a list of paths, a data frame, a Dask DataFrame or a Dask "
        f"Bag, got {'an empty list' if is_empty else type(source).__name__}"
    )


def _scan_files(files: ParquetFiles, requested: RequestedColumns) -> SeriesScan:
    """Choose the form of a source by its name."""
    if not isinstance(files.given, str) or is_pattern(files.given):
        return ParquetScan(files, requested)
    name = files.given
    path, suffix = files.locate(name), base_suffix(name)
    if name == STDIN:
        with open_text(STDIN, name) as file:
            table = CsvTable(file, ".csv")
        return _of_table(FilePart("standard input", path, table.resolve(requested), stdin=table))
    if not path.exists():
        if name.partition(":")[0] in NAMES:
            requested.require_none(name)
            return SeriesScan(name, None, [WholePart(name, None, requested)])
        near = _similar_name(path)
        hint = "" if near is None else f". Did you mean {near}?"
        raise FileNotFoundError(
            f"{name}: there is no such file or folder, and it is not {NAMES[0]}{hint}"
        )
    if path.is_dir():
        return _scan_folder(files, path, requested)
    if suffix not in _DATA_SUFFIXES:
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
        return ParquetScan(files, requested)
    if suffix in (".ts", ".npz"):
        requested.require_none(name)
        return SeriesScan(name, None, [WholePart(name, path, requested)], _size_in_memory([path]))
    return _of_table(FilePart.at(name, path, requested), [path])


def _similar_name(path: Path) -> str | None:
    """Return the name of data in the same folder that is similar, of the same suffix if any is."""
    if not path.parent.is_dir():
        return None
    others = [f for f in path.parent.iterdir() if f.is_dir() or base_suffix(f) in _DATA_SUFFIXES]
    # Compare stems: a common suffix does not make two names similar.
    near = get_close_matches(path.stem, {file.stem for file in others}, n=1)
    names = sorted(file.name for file in others if file.stem in near)
    return min(names, key=lambda name: base_suffix(name) != base_suffix(path), default=None)


def _scan_folder(files: ParquetFiles, path: Path, requested: RequestedColumns) -> SeriesScan:
    if files.paths():
        return ParquetScan(files, requested)
    texts = series_files(path)
    if not texts:
        first = min((file.name for file in path.iterdir() if file.is_file()), default=None)
        hint = (
            "" if first is None else f". Give one of its files, such as {Path(files.name, first)}"
        )
        if first is not None and first.lower().endswith((".txt", ".dat", ".data")):
            hint = f". Its files, such as {first}, must end in .csv or .tsv to be read as text"
        raise DataError(
            f"{files.name} has neither Parquet files nor CSV files with series, nor folders with "
            f"CSV files, one folder per class{hint}"
        )
    return _of_table(FolderPart.at(files.name, path, requested), texts)


def _of_table(part: TablePart, files: Sequence[Path] = ()) -> SeriesScan:
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


@dataclass(frozen=True)
class FilePart(TablePart):
    """All of a CSV or Arrow file; or CSV from standard input, which can be read only once."""

    name: str
    path: Path
    columns: Columns
    whole: bool = False
    stdin: CsvTable | None = None

    @classmethod
    def at(cls, name: str, path: Path, requested: RequestedColumns) -> FilePart:
        """Find the columns in the first rows."""
        if base_suffix(path) in TEXT_SUFFIXES:
            with open_text(path, name) as text:
                columns = CsvTable(text, base_suffix(path)).resolve(requested)
        else:
            with open_arrow(path, name) as file:
                columns = resolve_columns(Chunk(sample_rows([file]), name), requested)
        size = path.stat().st_size * (_COMPRESSION if is_compressed(path) else 1)
        return cls(name, path, columns, is_small(size))

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Chunk]:
        """Read some columns; see `TablePart.chunks`."""
        if self.stdin is not None:
            yield from self.stdin.chunks(self.columns, names)
        elif base_suffix(self.path) in TEXT_SUFFIXES:
            with open_text(self.path, self.name) as text:
                yield from CsvTable(text, base_suffix(self.path)).chunks(self.columns, names)
        else:
            with open_arrow(self.path, self.name) as file:
                for row, batch in file.batches(names, n_rows):
                    yield Chunk(pa.Table.from_batches([batch]), self.name, row)


@dataclass(frozen=True)
class MemoryTable(TablePart):
    """A data frame in memory, as an Arrow table."""

    rows: Any
    columns: Columns
    name = "the data frame"
    whole = True

    @classmethod
    def of(cls, frame: object, requested: RequestedColumns) -> MemoryTable:
        """Find the columns in the first rows."""
        rows = arrow_table(frame, cls.name)
        return cls(rows, resolve_columns(Chunk(rows.slice(0, SAMPLE_ROWS), cls.name), requested))

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Chunk]:
        """Read some columns; see `TablePart.chunks`."""
        return Chunk(self.rows.select(list(names)), self.name).cut(n_rows)
