"""Where data are and in which form: told by the name, before anything is read."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from slts.datasets import info, list_datasets, load
from slts.datasets.ts_format import parse_ts
from slts.errors import DataError
from slts.files import folders
from slts.files.arrays import read_npz
from slts.files.arrow_tables import (
    ARROW_SUFFIXES,
    PARQUET_SUFFIXES,
    ArrowTable,
)
from slts.files.chunks import Table
from slts.files.columns import Wanted, kind_of, resolve_columns
from slts.files.csv_tables import CsvTable
from slts.files.dataset import Columns, Dataset
from slts.files.list_form import iter_lists
from slts.files.long_form import iter_long
from slts.files.opening import STDIN, base_suffix, is_compressed, open_source
from slts.files.sources import ParquetSource, Paths, is_pattern
from slts.series import SeriesBatch, as_series

__all__ = ["TABLES", "Place", "understood"]

TABLES = (".csv", ".tsv", *PARQUET_SUFFIXES, *ARROW_SUFFIXES)
_FORMS = (
    ".ts, .csv or .tsv (these also with .gz, .bz2, .xz or .zst after it), .parquet, .feather, "
    ".npz, a folder, a pattern or list of Parquet files, or - for CSV from standard input"
)


def understood(table: Table, wanted: Wanted) -> tuple[Columns, bool]:
    """Return what the columns are, and whether every row is a series."""
    columns = resolve_columns(table.sample, wanted, table.name, place=table.place)
    kinds = {kind_of(table.sample.schema.field(name).type) for name in columns.channels}
    return columns, kinds == {"list"}


def _in_order(found: Dataset, expect: Sequence[str] | None) -> Dataset:
    """Bring named channels into the order of a model's; say so if they are others."""
    names = found.series.channel_names
    if names is None or expect is None or tuple(expect) == names:
        return found
    series, notes = found.series, found.notes
    if set(expect) == set(names):
        order = [names.index(name) for name in expect]
        values = np.ascontiguousarray(series.values[:, order])
        series = SeriesBatch.from_checked(values, series.offsets, tuple(expect))
    else:
        notes += (
            f"channels are {', '.join(names)}, and the model was trained with "
            f"{', '.join(expect)}: taken in this order",
        )
    return replace(found, series=series, notes=notes)


class Place:
    """Where the data are, and in which form.

    Parameters
    ----------
    path
        Name of a file, a folder or a data set, ``"-"``, a pattern, or a list of Parquet files.
    wanted
        What the caller says about the columns.
    """

    def __init__(self, path: Paths, wanted: Wanted) -> None:
        self.source = ParquetSource.at(path)
        self._given = self.source.name
        self._path = Path(self._given)
        self.wanted = wanted
        self.parquet: list[Path] = []
        self._is_named = False
        self._suffix = ".csv" if self._given == STDIN else base_suffix(self._given)
        if not isinstance(path, str | os.PathLike) or is_pattern(self._given):
            self.parquet = self.source.files()
            return
        name = self._given.partition(":")[0]
        self._is_named = not self._path.exists() and name in list_datasets()
        if self._is_named or self._given == STDIN:
            return
        if self._path.is_dir():
            self.parquet = self.source.files()
        elif not self._path.exists():
            raise FileNotFoundError(
                f"{self._given}: there is no such file, folder or data set (`slts datasets` lists "
                f"those it knows)"
            )
        elif self._suffix in PARQUET_SUFFIXES and not is_compressed(path):
            self.parquet = [self._path]
        elif self._suffix not in (*TABLES, ".ts", ".npz"):
            raise DataError(f"{self._given}: the form of the file is not known; expected {_FORMS}")
        elif is_compressed(path) and self._suffix not in (".csv", ".tsv", ".ts"):
            raise DataError(
                f"{self._given}: {self._suffix} files cannot be read while they are compressed as "
                f"a whole; decompress it first (the form compresses its own contents)"
            )

    @property
    def is_table(self) -> bool:
        """Whether the columns have to be found first."""
        if self._is_named:
            return False
        return bool(self.parquet) or (self._suffix in TABLES and not self._path.is_dir())

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder with one CSV per series."""
        return self._path.is_dir() and not self.is_table and not self._is_named

    @contextmanager
    def table(self) -> Iterator[Table]:
        """Open the table."""
        if self.parquet:
            yield ArrowTable(self._given, self.parquet, self.source.keys(self.parquet))
        elif self._suffix in (".csv", ".tsv"):
            with open_source(self._given) as source:
                yield CsvTable(source, self._suffix)
        else:
            yield ArrowTable(self._given, [self._path])

    def batches(
        self, *, labels: bool, batch_size: int, columns: Columns | None = None, lists: bool = False
    ) -> Iterator[Dataset]:
        """Read everything; what `understood` said of a table saves finding it out again."""
        if self.is_table:
            with self.table() as table:
                if columns is None:
                    columns, lists = understood(table, self.wanted)
                read = iter_lists if lists else iter_long
                yield from read(table, columns, labels=labels, batch_size=batch_size)
        elif self.is_folder:
            self._require_series_files()
            yield from folders.iter_folder(
                self._path, self.wanted, labels=labels, batch_size=batch_size
            )
        else:
            whole = _in_order(self._whole(labels), self.wanted.expect)
            for start in range(0, len(whole), batch_size):
                yield whole[start : start + batch_size]

    def n_bytes(self) -> int | None:
        """Size on disk, where it is about that of the numbers in memory."""
        if self._is_named or self._given == STDIN:
            return None
        files = folders.series_files(self._path) if self.is_folder else [self._path]
        if any(is_compressed(file) for file in files):
            return None
        if self._suffix == ".npz" and zipfile.is_zipfile(self._path):
            with zipfile.ZipFile(self._path) as archive:
                return sum(entry.file_size for entry in archive.infolist())
        return sum(file.stat().st_size for file in files)

    def _require_series_files(self) -> None:
        if not folders.series_files(self._path):
            held = sorted(file.name for file in self._path.iterdir())[:5]
            raise DataError(
                f"{self._given} holds neither Parquet files nor one CSV per series"
                + (f"; name one of its files, such as {self._path / held[0]}" if held else "")
            )

    def _whole(self, labels: bool) -> Dataset:
        self._refuse_columns()
        if self._is_named:
            return self._named(labels)
        if self._suffix == ".npz":
            return read_npz(self._path, labels=labels)
        with open_source(self._path) as source:
            try:
                lines = io.TextIOWrapper(source.stream, encoding="utf-8-sig")
                found, classes = parse_ts(lines, str(self._path))
            except UnicodeDecodeError as error:
                raise DataError(f"{self._given} is not a .ts file in UTF-8: {error}") from error
        return Dataset(as_series(found), classes if labels else None, None, self._given, share=1.0)

    def _refuse_columns(self) -> None:
        wanted = self.wanted
        roles = ("id", "time", "label", "channels")
        given = [role for role in roles if getattr(wanted, role) is not None]
        if given:
            raise DataError(
                f"{self._given} has no named columns, so --{given[0]} ({given[0]}=) has no meaning"
            )

    def _named(self, labels: bool) -> Dataset:
        name, _, split = self._given.partition(":")
        if split and split not in ("train", "test"):
            raise DataError(f"{self._given}: after the colon goes train or test, not {split!r}")
        series, classes = load(name, split or None)
        return Dataset(
            series,
            classes if labels else None,
            None,
            f"{info(name).title}{', ' + split if split else ''}",
            share=1.0,
        )
