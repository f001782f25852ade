"""Parquet files as a scan whose parts can be read independently.

Parts end between row groups, and row groups end inside series. In long form, a part therefore owns
the series that start in it: it skips the rows of the series that started before, and reads beyond
its end until its last series is complete. In list form, large row groups are cut too. A small table
in long form is one part.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from slts._typing import AnyArray
from slts.columns import Columns, RequestedColumns, resolve_columns
from slts.columns.rows import NUMERIC, Chunk, kind_of, plain_type
from slts.errors import DataError
from slts.extras import LazyModule
from slts.files.arrow_files import ParquetFile, open_parquet, sample_rows
from slts.files.paths import ParquetFiles
from slts.files.scan import SeriesScan, TablePart, is_small

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

# Number of steps in a part; smaller if there would be fewer parts than `_PARTS`.
_PART_STEPS, _PARTS = 1 << 20, 16
# Largest number of segments of a row group, and smallest number of steps in a segment. Reading a
# segment means reading over the segments before it.
_SEGMENTS, _SEGMENT_STEPS = 8, 1 << 17
# Number of files after its end that a part stores. If its last series goes on beyond them, the
# files are listed again.
_NEXT_FILES = 2
# Rows that are read at once after the end of a part: most series end soon.
_TAIL_ROWS = 1 << 12


class StoredFile(NamedTuple):
    """A file: its path as it was given, columns from its folders, and its rows if counted."""

    path: str
    folder_columns: Mapping[str, Any]
    n_rows: int | None


@dataclass(frozen=True)
class ParquetPart(TablePart):
    """Consecutive rows of a table, perhaps in several files.

    Attributes
    ----------
    name
        File and row at which the part starts.
    table
        All files of the table.
    files
        Files of the part and a few after it. A part does not store all files, because the parts of
        many files would then be large.
    first_file, n_files
        Number of the first of `files` in the table, and number of files of the table.
    first_row
        Number of rows of the table before `files`.
    start, stop
        First row of the part, and first row after it, counted in the table.
    n_rows
        Number of rows of the table.
    columns, whole
        See `TablePart`.
    """

    name: str
    table: ParquetFiles
    files: tuple[StoredFile, ...]
    first_file: int
    n_files: int
    first_row: int
    start: int
    stop: int
    n_rows: int
    columns: Columns
    whole: bool

    @property
    def source(self) -> str:
        """Name of the table."""
        return self.table.name

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Chunk]:
        """Read the rows that the part owns; see `TablePart.chunks`."""
        if not self.columns.long:
            yield from self._rows(names, n_rows, self.start, self.stop)
            return
        columns = self.columns
        ids = columns.id_columns or (str(columns.id),)
        # Identifier of the series whose first rows are skipped; later, of the last series.
        last = None
        if self.start > 0:
            for chunk in self._rows(ids, n_rows, self.start - 1, self.start):
                last = columns.identifiers(chunk.rows)[-1]
        owns_rows = self.start == 0
        for chunk in self._rows(names, n_rows, self.start, self.stop):
            if not owns_rows:
                n_skipped = _n_leading(chunk, columns, last)
                if n_skipped == len(chunk):
                    continue
                chunk = chunk.between(n_skipped, len(chunk))
                owns_rows = True
            last = columns.identifiers(chunk.rows)[-1]
            yield chunk
        if not owns_rows:
            return
        for chunk in self._rows(names, _TAIL_ROWS, self.stop, None):
            n_owned = _n_leading(chunk, columns, last)
            if n_owned:
                yield chunk.between(0, n_owned)
            if n_owned < len(chunk):
                return

    def _rows(
        self, names: Sequence[str], n_rows: int, start: int, stop: int | None
    ) -> Iterator[Chunk]:
        """Read rows of the table; without `stop`, to the end of the last file."""
        part, number, before = self, 0, self.first_row
        while stop is None or before < stop:
            if number == len(part.files):
                part = part._with_all_files()
                if number == len(part.files):
                    return
            file = part.files[number]
            size = file.n_rows
            if size is None or before + size > start:
                with self._open(file, names) as opened:
                    size = opened.n_rows
                    end = None if stop is None else stop - before
                    for row, batch in opened.batches(names, n_rows, max(0, start - before), end):
                        share = min(1.0, (before + row + batch.num_rows) / self.n_rows)
                        rows = pa.Table.from_batches([batch]).select(list(names))
                        yield Chunk(rows, file.path, row, share=share)
            before += size
            number += 1

    def _with_all_files(self) -> ParquetPart:
        """Return a part that stores all files after it, which must not have changed."""
        n_known = self.first_file + len(self.files)
        if n_known >= self.n_files:
            return self
        paths = self.table.paths()
        known = [file.path for file in self.files]
        if len(paths) != self.n_files or paths[self.first_file : n_known] != known:
            raise DataError(
                f"the Parquet files of {self.table.name} changed after the scan ({self.n_files} "
                f"files then, {len(paths)} now): scan it again"
            )
        folder_columns = self.table.folder_columns(paths)
        more = zip(paths[n_known:], folder_columns[n_known:], strict=True)
        return replace(self, files=(*self.files, *(StoredFile(*file, None) for file in more)))

    @contextmanager
    def _open(self, file: StoredFile, names: Sequence[str]) -> Iterator[ParquetFile]:
        """Open a file, which must not have changed since it was scanned."""
        path = self.table.locate(file.path)
        with open_parquet(path, file.path, file.folder_columns) as opened:
            if file.n_rows is not None and opened.n_rows != file.n_rows:
                raise DataError(
                    f"{file.path} has {opened.n_rows} rows, but had {file.n_rows} when it was "
                    f"scanned: scan it again"
                )
            stored = set(opened.schema.names)
            for name in names:
                if name not in stored:
                    raise DataError(f"{file.path} has no column {name!r}, but other files have it")
            yield opened


def _n_leading(chunk: Chunk, columns: Columns, value: Any) -> int:
    """Count the rows at the beginning of a chunk that have the identifier `value`."""
    same = compute.equal(columns.identifiers(chunk.rows), value).fill_null(False)
    mask: AnyArray = same.to_numpy()
    return len(mask) if mask.all() else int(np.argmin(mask))


class _Segment(NamedTuple):
    """Rows between which a part may end: a row group, or a segment of one."""

    n_rows: int
    n_steps: int


class ParquetScan(SeriesScan):
    """Parquet files with one schema, in order; only their footers are read here.

    Parameters
    ----------
    table
        The files.
    requested
        What is known about the columns.
    """

    columns: Columns

    def __init__(self, table: ParquetFiles, requested: RequestedColumns) -> None:
        self._table = table
        self._paths = table.paths()
        self._folder_columns = table.folder_columns(self._paths)
        self._schemas: list[Any] = []
        self._files: list[StoredFile] = []
        self._segments: list[_Segment] = []
        sample = Chunk(sample_rows(self._open_files()), table.name)
        super().__init__(table.name, resolve_columns(sample, requested))

    @property
    def n_bytes(self) -> int:
        """Memory of all values as float64, computed from the footers."""
        self._read_footers(labels=False)
        return sum(segment.n_steps for segment in self._segments) * len(self.columns.channels) * 8

    def parts(self, *, labels: bool = True) -> list[ParquetPart]:
        """Return the parts, which depend on the footers only."""
        self._read_footers(labels=labels)
        n_steps = sum(segment.n_steps for segment in self._segments)
        whole = self.columns.long and is_small(self.n_bytes)
        target = max(1, n_steps if whole else min(_PART_STEPS, -(-n_steps // _PARTS)))
        # A part starts with the first segment of each stretch of `target` steps.
        cuts, row, step, stretch = [], 0, 0, -1
        for segment in self._segments:
            if step // target > stretch:
                stretch = step // target
                cuts.append(row)
            row += segment.n_rows
            step += segment.n_steps
        return [self._part(start, stop, whole) for start, stop in pairwise([*cuts, row])]

    def _part(self, start: int, stop: int, whole: bool) -> ParquetPart:
        long = self.columns.long
        first_rows = [0, *accumulate(file.n_rows or 0 for file in self._files)]
        # In long form, the row before the part is read too.
        first = bisect_right(first_rows, max(0, start - 1) if long else start) - 1
        last = bisect_left(first_rows, stop) + (_NEXT_FILES if long else 0)
        of_start = bisect_right(first_rows, start) - 1
        return ParquetPart(
            name=f"{self._files[of_start].path}, from row {start - first_rows[of_start]}",
            table=self._table,
            files=tuple(self._files[first:last]),
            first_file=first,
            n_files=len(self._files),
            first_row=first_rows[first],
            start=start,
            stop=stop,
            n_rows=first_rows[-1],
            columns=self.columns,
            whole=whole,
        )

    def _open_files(self) -> Iterator[ParquetFile]:
        for path, folder_columns in zip(self._paths, self._folder_columns, strict=True):
            with open_parquet(self._table.locate(path), path, folder_columns) as file:
                yield file

    def _read_footers(self, *, labels: bool) -> None:
        """Read the footers once, and check that the files agree on the columns to be read."""
        if not self._files:
            schemas, files, segments = [], [], []
            for file, path, folder_columns in zip(
                self._open_files(), self._paths, self._folder_columns, strict=True
            ):
                schemas.append(file.schema)
                self._check_schema(file.schema, schemas[0], path, labels=False)
                files.append(StoredFile(path, folder_columns, file.n_rows))
                for group in range(file.n_groups):
                    segments += self._cut(file, group)
            self._schemas, self._files, self._segments = schemas, files, segments
        for schema, path in zip(self._schemas, self._paths, strict=True):
            self._check_schema(schema, self._schemas[0], path, labels=labels)

    def _check_schema(self, schema: Any, first: Any, path: str, *, labels: bool) -> None:
        """Raise an error if a file differs from the first file in the columns to be read."""
        columns, first_path, present = self.columns, self._paths[0], set(schema.names)
        for name in columns.used(labels=labels):
            if name not in present:
                raise DataError(f"{path} has no column {name!r}, but {first_path} has it")
            found, other = schema.field(name).type, first.field(name).type
            # Numbers of any type are read as float64.
            is_value = name in (*columns.channels, *columns.constant)
            numbers = kind_of(found) in NUMERIC and kind_of(other) in NUMERIC
            if plain_type(found) != plain_type(other) and not (is_value and numbers):
                raise DataError(
                    f"{path}: column {name!r} has type {found}, but {other} in {first_path}: files "
                    f"that are read as one table must have the same schema"
                )

    def _cut(self, file: ParquetFile, group: int) -> list[_Segment]:
        """Cut a row group in list form; in long form it is one segment."""
        n_rows = file.group_rows(group)
        if n_rows == 0:
            return []
        if not self.columns.lists:
            return [_Segment(n_rows, n_rows)]
        n_steps = file.group_values(group, self.columns.channels[0])
        count = max(1, min(_SEGMENTS, n_rows, n_steps // _SEGMENT_STEPS))
        rows = [n_rows * k // count for k in range(count + 1)]
        steps = [n_steps * k // count for k in range(count + 1)]
        return [_Segment(rows[k + 1] - rows[k], steps[k + 1] - steps[k]) for k in range(count)]
