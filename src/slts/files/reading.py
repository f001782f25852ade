"""`read_series` and `iter_series`: users' data, the form chosen by the name."""

from __future__ import annotations

import io
import os
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
from slts.files.arrow_tables import ARROW_SUFFIXES, PARQUET_SUFFIXES, ArrowTable
from slts.files.chunks import Table
from slts.files.columns import Wanted, kind_of, resolve_columns
from slts.files.csv_tables import CsvTable
from slts.files.dataset import Columns, Dataset, join
from slts.files.list_form import iter_lists
from slts.files.long_form import iter_long, read_long
from slts.files.opening import STDIN, base_suffix, is_compressed, open_source
from slts.series import SeriesBatch, as_series

__all__ = ["TABLES", "iter_series", "read_series"]

TABLES = (".csv", ".tsv", *PARQUET_SUFFIXES, *ARROW_SUFFIXES)
_FORMS = (
    ".ts, .csv or .tsv (these also with .gz, .bz2, .xz or .zst after it), .parquet, .feather, "
    ".npz, a folder, or - for CSV from standard input"
)


def read_series(
    path: str | os.PathLike[str],
    *,
    id: str | None = None,
    time: str | None = None,
    label: str | None = None,
    channels: Sequence[str] | None = None,
    expect: Sequence[str] | None = None,
    labels: bool = True,
) -> Dataset:
    """Read all series of a file.

    Parameters
    ----------
    path : str or path
        A file whose suffix tells its form: `.ts`; `.csv`, `.tsv`, `.parquet` or `.feather` in long
        form (one row per step; Parquet and Feather also with one row per series and a list per
        channel); `.npz` (`X` and `y`, or `values`, `offsets` and `y`). Text files may be
        compressed (`.gz`, `.bz2`, `.xz`, `.zst`). Or a folder of Parquet files; a folder with one
        CSV per series, and labels in `labels.csv`; ``"-"``, CSV on standard input; or a data set of
        `slts.datasets`, such as ``"japanese_vowels:train"``.
    id, time, label : str, optional
        Columns of a table; guessed by default, and the guess is in `Dataset.columns`.
    channels : sequence of str, optional
        Columns with the values; ``"c1..c12"`` stands for those from one to the other. All other
        columns of numbers by default.
    expect : sequence of str, optional
        Channels of a trained model: taken, in this order, from data that name their channels;
        `channels` may name others, that stand for them one after the other.
    labels : bool
        Whether labels are wanted. If not, they may be missing.

    Returns
    -------
    Dataset
        Series, labels and identifiers.

    Raises
    ------
    DataError
        If something is wrong with the file; the message names the file, the place and the remedy.

    See Also
    --------
    iter_series : The same batch by batch.
    """
    wanted = Wanted(id, time, label, _listed(channels), expect)
    place = _Place(path, wanted, labels)
    if place.is_table:
        with place.table() as table:
            columns, lists = _understood(table, wanted)
            if lists:
                return join(iter_lists(table, columns, labels=labels, batch_size=1 << 14))
            return read_long(table, columns, labels=labels)
    return join(place.batches(1 << 14))


def iter_series(
    path: str | os.PathLike[str],
    *,
    id: str | None = None,
    time: str | None = None,
    label: str | None = None,
    channels: Sequence[str] | None = None,
    expect: Sequence[str] | None = None,
    labels: bool = True,
    batch_size: int = 1024,
) -> Iterator[Dataset]:
    """Read the series of a file batch by batch.

    Of CSV, Parquet and Feather, and of folders, no more than a few batches are in memory at any
    time, however long the file. Rows of a series in long form must stand together.

    Parameters
    ----------
    path, id, time, label, channels, expect, labels
        As for `read_series`.
    batch_size : int
        Series in a batch, at most.

    Yields
    ------
    Dataset
        The next series.
    """
    if batch_size < 1:
        raise DataError(f"batch_size must be at least 1, got {batch_size}")
    wanted = Wanted(id, time, label, _listed(channels), expect)
    place = _Place(path, wanted, labels)
    if not place.is_table:
        yield from place.batches(batch_size)
        return
    with place.table() as table:
        columns, lists = _understood(table, wanted)
        read = iter_lists if lists else iter_long
        yield from read(table, columns, labels=labels, batch_size=batch_size)


def _listed(channels: Sequence[str] | None) -> Sequence[str] | None:
    return [channels] if isinstance(channels, str) else channels


def _understood(table: Table, wanted: Wanted) -> tuple[Columns, bool]:
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


class _Place:
    """Where the data are, and in which form."""

    def __init__(self, path: str | os.PathLike[str], wanted: Wanted, labels: bool) -> None:
        self._given = os.fspath(path)
        self._path = Path(path)
        self._wanted = wanted
        self._labels = labels
        self._suffix = ".csv" if self._given == STDIN else base_suffix(path)
        self._parquet: list[Path] = []
        name = self._given.partition(":")[0]
        self._is_named = not self._path.exists() and name in list_datasets()
        if self._is_named or self._given == STDIN:
            return
        if self._path.is_dir():
            self._parquet = sorted(
                file
                for file in self._path.rglob("*")
                if file.suffix.lower() in PARQUET_SUFFIXES and not file.name.startswith((".", "_"))
            )
        elif not self._path.exists():
            raise FileNotFoundError(
                f"{self._given}: there is no such file, folder or data set (`slts datasets` lists "
                f"those it knows)"
            )
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
        return bool(self._parquet) or (self._suffix in TABLES and not self._path.is_dir())

    @contextmanager
    def table(self) -> Iterator[Table]:
        """Open the table."""
        if self._parquet:
            yield ArrowTable(self._given, self._parquet)
        elif self._suffix in (".csv", ".tsv"):
            with open_source(self._given) as source:
                yield CsvTable(source, self._suffix)
        else:
            yield ArrowTable(self._given, [self._path])

    def batches(self, batch_size: int) -> Iterator[Dataset]:
        """Give what is no table."""
        if self._path.is_dir() and not self._is_named:
            self._require_series_files()
            yield from folders.iter_folder(
                self._path, self._wanted, labels=self._labels, batch_size=batch_size
            )
            return
        whole = _in_order(self._whole(), self._wanted.expect)
        for start in range(0, len(whole), batch_size):
            part = whole[start : start + batch_size]
            yield part

    def _require_series_files(self) -> None:
        if not folders.series_files(self._path):
            held = sorted(file.name for file in self._path.iterdir())[:5]
            raise DataError(
                f"{self._given} holds neither Parquet files nor one CSV per series"
                + (f"; name one of its files, such as {self._path / held[0]}" if held else "")
            )

    def _whole(self) -> Dataset:
        self._refuse_columns()
        if self._is_named:
            return self._named()
        if self._suffix == ".npz":
            return read_npz(self._path, labels=self._labels)
        with open_source(self._path) as source:
            try:
                lines = io.TextIOWrapper(source.stream, encoding="utf-8-sig")
                found, labels = parse_ts(lines, str(self._path))
            except UnicodeDecodeError as error:
                raise DataError(f"{self._given} is not a .ts file in UTF-8: {error}") from error
        return Dataset(
            as_series(found), labels if self._labels else None, None, self._given, share=1.0
        )

    def _refuse_columns(self) -> None:
        wanted = self._wanted
        roles = ("id", "time", "label", "channels")
        given = [role for role in roles if getattr(wanted, role) is not None]
        if given:
            raise DataError(
                f"{self._given} has no named columns, so --{given[0]} ({given[0]}=) has no meaning"
            )

    def _named(self) -> Dataset:
        name, _, split = self._given.partition(":")
        if split and split not in ("train", "test"):
            raise DataError(f"{self._given}: after the colon goes train or test, not {split!r}")
        series, labels = load(name, split or None)
        return Dataset(
            series,
            labels if self._labels else None,
            None,
            f"{info(name).title}{', ' + split if split else ''}",
            share=1.0,
        )
