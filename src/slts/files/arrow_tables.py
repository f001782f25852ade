"""Parquet and Arrow files as one table read in row-group batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from slts.errors import DataError
from slts.extras import import_extra
from slts.files.chunks import BATCH_BYTES, Chunk, plain_type
from slts.files.columns import NUMERIC, OF_FOLDER, kind_of
from slts.files.dataset import Columns

__all__ = [
    "ARROW_SUFFIXES",
    "PARQUET_SUFFIXES",
    "ArrowTable",
    "ParquetFile",
    "check_schema",
    "chunk_of",
    "opened_parquet",
]

PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".feather", ".arrow", ".ipc")

# Rows that are looked at to tell the columns apart; fewer where every row is a series.
_SAMPLE_ROWS, _SAMPLE_LISTS = 20_000, 200
# Values read at a time: a little less than a batch, as lists differ in length.
_READ_BYTES = BATCH_BYTES * 3 // 4
# Bytes of every column read ahead. Without, all of a row group is in memory, whatever its size.
_BUFFER_BYTES = 1 << 18


class ArrowTable:
    """Files of one schema, read one after the other as if they were one.

    Parameters
    ----------
    name
        What to call them.
    paths
        The files, in order.
    keys
        Columns that folders stand for, one after the other for the files; None if there are none.
    """

    def __init__(
        self, name: str, paths: Sequence[Path], keys: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        self.name = name
        self._files = list(zip(paths, keys or [{}] * len(paths), strict=True))

    @cached_property
    def sample(self) -> Any:
        """The first rows; lists are left out, as only their type is looked at."""
        pa: Any = import_extra("pyarrow", "io")
        schema, batches, missing = None, [], _SAMPLE_ROWS
        names: list[str] | None = None
        for path, keys in self._files:
            with _opened(path, keys) as file:
                if schema is None:
                    schema = file.schema
                    lists = any(kind_of(field.type) == "list" for field in schema)
                    if lists:
                        missing = _SAMPLE_LISTS
                        names = [field.name for field in schema if kind_of(field.type) != "list"]
                if file.schema != schema:
                    break
                for _, batch in file.batches(names, missing):
                    batches.append(batch if names is None else _with_nulls(batch, schema))
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
        expected, origin, done = None, "", 0
        total = 0
        for path, keys in self._files:
            with _opened(path, keys) as file:
                total += file.n_rows or 0
        for path, keys in self._files:
            with _opened(path, keys) as file:
                if expected is None:
                    expected, origin = file.schema, path.name
                check_schema(file.schema, expected, columns, names, str(path), origin)
                for start, batch in file.batches(names, rows):
                    done += batch.num_rows
                    share = min(1.0, done / total) if total else None
                    yield chunk_of(batch, names, str(path), start, share)


def _with_nulls(batch: Any, schema: Any) -> Any:
    """Put in columns that were not read."""
    pa: Any = import_extra("pyarrow", "io")
    columns = [
        batch.column(field.name)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def chunk_of(
    batch: Any, names: Sequence[str], where: str, start: int, share: float | None
) -> Chunk:
    """Make a chunk of a record batch whose first row is row `start` of the file `where`."""
    pa: Any = import_extra("pyarrow", "io")
    return Chunk(pa.Table.from_batches([batch]).select(list(names)), _Place(where, start), share)


class _Place:
    """Names rows of a file, counted from 0 as data frames do."""

    def __init__(self, name: str, start: int) -> None:
        self._name = name
        self._start = start

    def __call__(self, row: int) -> str:
        return f"{self._name}, row {self._start + row}"


class ParquetFile:
    """An open file of row groups; columns that its folders stand for come after its own."""

    def __init__(self, path: Path, keys: Mapping[str, Any]) -> None:
        pa: Any = import_extra("pyarrow", "io")
        parquet: Any = import_extra("pyarrow.parquet", "io")
        self._path = path
        self._file = parquet.ParquetFile(
            # Arrow takes a relative path with a colon for an address.
            path.absolute(),
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )
        self._keys = keys
        self._stored: list[str] = self._file.schema_arrow.names
        self.schema = self._file.schema_arrow
        for name, value in keys.items():
            if name in self._stored:
                raise DataError(
                    f"{path} has a column {name!r}, and lies in a folder {name}=...: which of the "
                    f"two is meant? Rename the folder, or give the files of one such folder"
                )
            self.schema = self.schema.append(pa.field(name, value.type, metadata=OF_FOLDER))
        self.n_rows: int = self._file.metadata.num_rows
        self.n_groups: int = self._file.num_row_groups

    def batches(
        self, names: Sequence[str] | None, rows: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Read row groups from `start` to before `stop`; with each batch comes its first row.

        A batch has at most `rows` rows, and fewer where rows are large.
        """
        first = self.rows_before(start)
        wanted = self.schema.names if names is None else names
        stored = [name for name in wanted if name not in self._keys]
        for group in range(start, self.n_groups if stop is None else stop):
            with _errors(f"{self._path}, row group {group}"):
                # A generator: what is wrong with a row group shows when its batches are taken.
                for batch in self._file.iter_batches(
                    min(rows, self._rows_at_a_time(group, stored)),
                    row_groups=[group],
                    columns=None if names is None else stored,
                ):
                    yield first, self._with_keys(batch, wanted)
                    first += batch.num_rows

    def _with_keys(self, batch: Any, names: Sequence[str]) -> Any:
        pa: Any = import_extra("pyarrow", "io")
        fields = [self.schema.field(name) for name in names if name in self._keys]
        if not fields:
            return batch
        columns = [pa.repeat(self._keys[field.name], batch.num_rows) for field in fields]
        schema = pa.schema([*batch.schema, *fields])
        return pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema)

    def rows_before(self, group: int) -> int:
        """Number of rows before a row group."""
        return sum(self.group_rows(number) for number in range(group))

    def group_rows(self, group: int) -> int:
        """Number of rows of a row group."""
        return int(self._file.metadata.row_group(group).num_rows)

    def group_values(self, group: int, name: str) -> int:
        """Number of values of a column in a row group: of all lists together, if it has lists."""
        columns = self._file.metadata.row_group(group)
        return int(columns.column(self._leaves[name]).num_values)

    def _rows_at_a_time(self, group: int, names: Sequence[str]) -> int:
        """Rows that are about as large as a batch, if lists are as long as they are on average."""
        n_values = sum(self.group_values(group, name) for name in names)
        return max(1, _READ_BYTES * self.group_rows(group) // max(1, 8 * n_values))

    @cached_property
    def _leaves(self) -> dict[str, int]:
        """Position of the column of values that belongs to each column, perhaps of lists."""
        # Not from `_file.schema`: it and the footer hold each other, so that both would stay.
        group = self._file.metadata.row_group(0)
        paths = [group.column(position).path_in_schema for position in range(group.num_columns)]
        return {
            name: next(i for i, p in enumerate(paths) if p == name or p.startswith(f"{name}."))
            for name in self._stored
        }

    def close(self) -> None:
        """Close it."""
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

    def batches(self, names: Sequence[str] | None, rows: int) -> Iterator[tuple[int, Any]]:
        first = 0
        for stored in self._stored():
            batch = stored if names is None else stored.select(list(names))
            for start in range(0, batch.num_rows, rows):
                yield first + start, batch.slice(start, rows)
            first += batch.num_rows

    def close(self) -> None:
        self._map.close()


@contextmanager
def _opened(path: Path, keys: Mapping[str, Any]) -> Iterator[ParquetFile | _ArrowFile]:
    """Open a file by its suffix."""
    if path.suffix.lower() in PARQUET_SUFFIXES:
        with opened_parquet(path, keys) as parquet:
            yield parquet
        return
    _require_readable(path)
    with _errors(str(path)):
        file = _ArrowFile(path)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def opened_parquet(path: Path, keys: Mapping[str, Any]) -> Iterator[ParquetFile]:
    """Open a Parquet file and read its footer; `keys` are columns that its folders stand for."""
    _require_readable(path)
    with _errors(str(path)):
        file = ParquetFile(path, keys)
    try:
        yield file
    finally:
        file.close()


def _require_readable(path: Path) -> None:
    """Give the usual messages where the file is absent or may not be read."""
    with path.open("rb"):
        pass


@contextmanager
def _errors(where: str) -> Iterator[None]:
    pa: Any = import_extra("pyarrow", "io")
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        text = str(error).strip().split("\n")[0]
        raise DataError(f"{where} cannot be read, the file may be damaged: {text}") from error


def check_schema(
    schema: Any, expected: Any, columns: Columns, names: Sequence[str], where: str, origin: str
) -> None:
    """Refuse a file that does not agree with the first one on the columns that are used."""
    for name in names:
        if name not in schema.names:
            raise DataError(f"{where} has no column {name!r}, which {origin} has")
        found, first = schema.field(name).type, expected.field(name).type
        # Numbers of any width become float64 anyway.
        both_numbers = kind_of(found) in NUMERIC and kind_of(first) in NUMERIC
        same = plain_type(found) == plain_type(first)
        if not same and not (name in columns.channels and both_numbers):
            raise DataError(
                f"{where}: column {name!r} has type {found}, and {first} in {origin}: files that "
                f"are read as one table must have one schema"
            )
