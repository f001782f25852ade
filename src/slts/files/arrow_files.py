"""Parquet and Arrow files, read in record batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from slts.columns.facts import FROM_FOLDER
from slts.columns.rows import SAMPLE_ROWS, kind_of
from slts.errors import DataError
from slts.extras import LazyModule
from slts.files.scan import BATCH_BYTES

pa: Any = LazyModule("pyarrow", "io")
parquet: Any = LazyModule("pyarrow.parquet", "io")

# Number of rows from which the columns are guessed if every row is a series.
_SAMPLE_LISTS = 200
# Bytes that are read at once: less than a batch, because lists differ in length.
_READ_BYTES = BATCH_BYTES * 3 // 4
# Read-ahead per column. Without a limit, Arrow holds a whole row group in memory.
_BUFFER_BYTES = 1 << 18


class ParquetFile:
    """An open Parquet file; columns from names of folders follow its own columns.

    Parameters
    ----------
    path
        The file.
    name
        Name for messages.
    folder_columns
        Arrow scalars by name: columns that are constant in the file.
    """

    def __init__(self, path: Path, name: str, folder_columns: Mapping[str, Any]) -> None:
        self._file = parquet.ParquetFile(
            # Arrow reads a relative path with a colon as a URL.
            path.absolute(),
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )
        self._name = name
        self._folder_columns = folder_columns
        self.schema = self._file.schema_arrow
        for column, value in folder_columns.items():
            if column in self.schema.names:
                raise DataError(
                    f"{name} has a column {column!r} and lies in a folder {column}=..., which also "
                    f"defines it. Rename the folder, or give the files of one such folder"
                )
            self.schema = self.schema.append(pa.field(column, value.type, metadata=FROM_FOLDER))
        self.n_rows: int = self._file.metadata.num_rows
        self.n_groups: int = self._file.num_row_groups

    def batches(
        self, names: Sequence[str] | None, n_rows: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Read the rows from `start` to before `stop`, in batches of at most `n_rows` rows.

        Yields the number of the first row with each batch. Batches are smaller if rows are large.
        All columns are read if `names` is None.
        """
        stop = self.n_rows if stop is None else min(stop, self.n_rows)
        wanted = self.schema.names if names is None else names
        stored = [name for name in wanted if name not in self._folder_columns]
        row = 0
        for group in range(self.n_groups):
            if row + self.group_rows(group) <= start or row >= stop:
                row += self.group_rows(group)
                continue
            with _read_errors(f"{self._name}, row group {group}"):
                for batch in self._file.iter_batches(
                    min(n_rows, self._rows_at_once(group, stored)),
                    row_groups=[group],
                    columns=None if names is None else stored,
                ):
                    first, last = max(row, start), min(row + batch.num_rows, stop)
                    if first < last:
                        owned = batch.slice(first - row, last - first)
                        yield first, self._with_folder_columns(owned, wanted)
                    row += batch.num_rows
                    if row >= stop:
                        return

    def group_rows(self, group: int) -> int:
        """Return the number of rows of a row group."""
        return int(self._file.metadata.row_group(group).num_rows)

    def group_values(self, group: int, name: str) -> int:
        """Return the number of values of a column in a row group; lists count all their values."""
        if name not in self._positions:
            raise DataError(
                f"{self._name} cannot be read, the file may be damaged: its row groups have no "
                f"column {name!r}"
            )
        columns = self._file.metadata.row_group(group)
        return int(columns.column(self._positions[name]).num_values)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _with_folder_columns(self, batch: Any, names: Sequence[str]) -> Any:
        fields = [self.schema.field(name) for name in names if name in self._folder_columns]
        if not fields:
            return batch
        columns = [pa.repeat(self._folder_columns[f.name], batch.num_rows) for f in fields]
        schema = pa.schema([*batch.schema, *fields])
        return pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema)

    def _rows_at_once(self, group: int, names: Sequence[str]) -> int:
        """Return how many rows of average size have about the size of a batch."""
        n_values = sum(self.group_values(group, name) for name in names)
        return max(1, _READ_BYTES * self.group_rows(group) // max(1, 8 * n_values))

    @cached_property
    def _positions(self) -> dict[str, int]:
        """Position of the values of each column in a row group."""
        # `_file.schema` and the footer refer to each other, which would keep both in memory.
        group = self._file.metadata.row_group(0)
        paths = [group.column(position).path_in_schema for position in range(group.num_columns)]
        places = {path: i for i, path in enumerate(paths)}
        # Lists have paths such as x.list.element; names may have dots too.
        for i, path in enumerate(paths):
            for name in accumulate(path.split("."), "{}.{}".format):
                places.setdefault(name, i)
        return places


class ArrowFile:
    """An open file in Arrow's own format: Feather V2, or a stream."""

    def __init__(self, path: Path, name: str) -> None:
        self._name = name
        self._map = pa.memory_map(str(path))
        try:
            self._reader = pa.ipc.open_file(self._map)
        except pa.ArrowInvalid:
            self._map.seek(0)
            self._reader = pa.ipc.open_stream(self._map)
        self.schema = self._reader.schema

    def batches(self, names: Sequence[str] | None, n_rows: int) -> Iterator[tuple[int, Any]]:
        """Read all rows, as `ParquetFile.batches` does."""
        row = 0
        for stored in self._record_batches():
            batch = stored if names is None else stored.select(list(names))
            for start in range(0, batch.num_rows, n_rows):
                yield row + start, batch.slice(start, n_rows)
            row += batch.num_rows

    def close(self) -> None:
        """Close the file."""
        self._map.close()

    def _record_batches(self) -> Iterator[Any]:
        if hasattr(self._reader, "num_record_batches"):
            for index in range(self._reader.num_record_batches):
                with _read_errors(f"{self._name}, record batch {index}"):
                    yield self._reader.get_batch(index)
        else:
            with _read_errors(self._name):
                yield from self._reader


@contextmanager
def open_parquet(path: Path, name: str, folder_columns: Mapping[str, Any]) -> Iterator[ParquetFile]:
    """Open a Parquet file and read its footer."""
    # This gives the usual errors if the file does not exist or must not be read.
    path.open("rb").close()
    with _read_errors(name):
        file = ParquetFile(path, name, folder_columns)
    with closing(file):
        yield file


@contextmanager
def open_arrow(path: Path, name: str) -> Iterator[ArrowFile]:
    """Open a file in Arrow's own format."""
    path.open("rb").close()
    with _read_errors(name):
        file = ArrowFile(path, name)
    with closing(file):
        yield file


@contextmanager
def _read_errors(where: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        text = str(error).strip().split("\n")[0]
        raise DataError(f"{where} cannot be read, the file may be damaged: {text}") from error


def sample_rows(files: Iterable[ParquetFile | ArrowFile]) -> Any:
    """Read the first rows of files with one schema, as a `pyarrow.Table`.

    Columns of lists are not read, because only their type is needed; their values are null.
    """
    schema, names, batches, n_missing = None, None, [], SAMPLE_ROWS
    for file in files:
        if schema is None:
            schema = file.schema
            scalars = [field.name for field in schema if kind_of(field.type) != "list"]
            # Names that are repeated raise an error later, and cannot be read by name.
            if len(scalars) < len(schema) == len(set(schema.names)):
                names, n_missing = scalars, _SAMPLE_LISTS
        if file.schema != schema:
            break
        for _, batch in file.batches(names, n_missing):
            batches.append(batch if names is None else _with_nulls(batch, schema))
            n_missing -= batch.num_rows
            if n_missing <= 0:
                return pa.Table.from_batches(batches, schema=schema)
    return pa.Table.from_batches(batches, schema=schema)


def _with_nulls(batch: Any, schema: Any) -> Any:
    """Add columns that were not read."""
    present = set(batch.schema.names)
    columns = [
        batch.column(field.name) if field.name in present else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
