"""Parquet and Arrow files, and folders of them, as one table read in row-group batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from slts.errors import DataError
from slts.extras import import_extra
from slts.files.chunks import Chunk
from slts.files.columns import NUMERIC, kind_of
from slts.files.dataset import Columns

__all__ = ["ARROW_SUFFIXES", "PARQUET_SUFFIXES", "ArrowTable"]

PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".feather", ".arrow", ".ipc")

# Rows that are looked at to tell the columns apart; fewer where every row is a series.
_SAMPLE_ROWS, _SAMPLE_LISTS = 20_000, 200


class ArrowTable:
    """Files of one schema, read one after the other as if they were one.

    Parameters
    ----------
    name
        What to call them.
    paths
        The files, in order.
    """

    def __init__(self, name: str, paths: Sequence[Path]) -> None:
        self.name = name
        self._paths = paths

    @cached_property
    def sample(self) -> Any:
        """The first rows."""
        pa: Any = import_extra("pyarrow", "io")
        schema, batches, missing = None, [], _SAMPLE_ROWS
        for path in self._paths:
            with _opened(path) as file:
                if schema is None:
                    schema = file.schema
                    lists = any(kind_of(field.type) == "list" for field in schema)
                    missing = _SAMPLE_LISTS if lists else _SAMPLE_ROWS
                if file.schema != schema:
                    break
                for batch in file.batches(None, missing):
                    batches.append(batch)
                    missing -= batch.num_rows
                    if missing <= 0:
                        break
            if missing <= 0:
                break
        return pa.Table.from_batches(batches, schema=schema)

    def place(self, row: int) -> str:
        """Name a row of the sample, counted from 0."""
        return _Place(self.name, 0)(row)

    def chunks(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Chunk]:
        """Give the columns in batches of at most `rows` rows."""
        pa: Any = import_extra("pyarrow", "io")
        expected, origin, done = None, "", 0
        total = 0
        for path in self._paths:
            with _opened(path) as file:
                total += file.n_rows or 0
        for path in self._paths:
            with _opened(path) as file:
                if expected is None:
                    expected, origin = file.schema, path.name
                _check_schema(file.schema, expected, columns, names, str(path), origin)
                first = 0
                for batch in file.batches(names, rows):
                    start, first = first, first + batch.num_rows
                    done += batch.num_rows
                    table = pa.Table.from_batches([batch]).select(list(names))
                    place = _Place(str(path), start)
                    yield Chunk(table, place, min(1.0, done / total) if total else None)


class _Place:
    """Names rows of a file, counted from 0 as data frames do."""

    def __init__(self, name: str, start: int) -> None:
        self._name = name
        self._start = start

    def __call__(self, row: int) -> str:
        return f"{self._name}, row {self._start + row}"


class _ParquetFile:
    def __init__(self, path: Path) -> None:
        parquet: Any = import_extra("pyarrow.parquet", "io")
        self._path = path
        self._file = parquet.ParquetFile(path)
        self.schema = self._file.schema_arrow
        self.n_rows: int | None = self._file.metadata.num_rows

    def batches(self, names: Sequence[str] | None, rows: int) -> Iterator[Any]:
        for group in range(self._file.num_row_groups):
            with _errors(f"{self._path}, row group {group}"):
                # A generator: what is wrong with a row group shows when its batches are taken.
                yield from self._file.iter_batches(
                    rows, row_groups=[group], columns=None if names is None else list(names)
                )

    def close(self) -> None:
        self._file.close()


class _ArrowFile:
    """Arrow's own format: Feather V2, or a stream."""

    n_rows: int | None = None

    def __init__(self, path: Path) -> None:
        pa: Any = import_extra("pyarrow", "io")
        self._path = path
        self._map = pa.memory_map(str(path))
        try:
            self._reader = pa.ipc.open_file(self._map)
        except pa.ArrowInvalid:
            self._map.seek(0)
            self._reader = pa.ipc.open_stream(self._map)
        self.schema = self._reader.schema

    def _stored(self) -> Iterator[Any]:
        if hasattr(self._reader, "num_record_batches"):
            for index in range(self._reader.num_record_batches):
                with _errors(f"{self._path}, record batch {index}"):
                    yield self._reader.get_batch(index)
        else:
            with _errors(str(self._path)):
                yield from self._reader

    def batches(self, names: Sequence[str] | None, rows: int) -> Iterator[Any]:
        for stored in self._stored():
            batch = stored if names is None else stored.select(list(names))
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    def close(self) -> None:
        self._map.close()


@contextmanager
def _opened(path: Path) -> Iterator[_ParquetFile | _ArrowFile]:
    parquet = path.suffix.lower() in PARQUET_SUFFIXES
    # Opening it here gives the usual messages where the file is absent or may not be read.
    with path.open("rb"):
        pass
    with _errors(str(path)):
        file = _ParquetFile(path) if parquet else _ArrowFile(path)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def _errors(where: str) -> Iterator[None]:
    pa: Any = import_extra("pyarrow", "io")
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        text = str(error).strip().split("\n")[0]
        raise DataError(f"{where} cannot be read, the file may be damaged: {text}") from error


def _check_schema(
    schema: Any, expected: Any, columns: Columns, names: Sequence[str], where: str, origin: str
) -> None:
    """Files of one folder must agree on the columns that are used."""
    for name in names:
        if name not in schema.names:
            raise DataError(f"{where} has no column {name!r}, which {origin} has")
        found, first = schema.field(name).type, expected.field(name).type
        # Numbers of any width become float64 anyway.
        both_numbers = kind_of(found) in NUMERIC and kind_of(first) in NUMERIC
        if found != first and not (name in columns.channels and both_numbers):
            raise DataError(
                f"{where}: column {name!r} has type {found}, and {first} in {origin}: the files of "
                f"one folder must have one schema"
            )
