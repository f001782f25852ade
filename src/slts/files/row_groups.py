"""Parquet files cut into parts, between row groups, that can be read apart from each other.

Row groups end inside series. So a part of long form owns the series that start in its row groups:
it passes over rows that go on with the series before, and reads on behind its end until its last
series is complete. Where every row is a series, large row groups are cut too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.extras import import_extra
from slts.files.arrow_tables import (
    ParquetFile,
    check_schema,
    chunk_of,
    opened_parquet,
)
from slts.files.chunks import Chunk, plain_column
from slts.files.dataset import Columns, Dataset
from slts.files.list_form import iter_lists
from slts.files.long_form import iter_long
from slts.files.sources import ParquetSource

__all__ = ["ParquetOrigin", "ParquetPart"]

# Steps in a part; fewer where that would give fewer parts than this.
_PART_STEPS, _PARTS = 1 << 20, 16
# Pieces of a row group, at most, and steps in a piece, at least. A piece is reached by reading over
# those before it: each one costs all later ones some time.
_PIECES, _PIECE_STEPS = 8, 1 << 17
# Files behind its end that a part knows; should its last series go on, all are listed again.
_NEXT_FILES = 2
# Rows read at a time behind the end of a part: most series end soon.
_TAIL_ROWS = 1 << 12


class Spot(NamedTuple):
    """A row of a row group: number of the file, of the group there, and of the row in the group."""

    file: int
    group: int
    row: int = 0


class StoredFile(NamedTuple):
    """A file, named from the root of the source, what its folders tell, and its rows if counted."""

    name: str
    keys: Mapping[str, Any]
    n_rows: int | None


@dataclass(frozen=True)
class ParquetPart:
    """Consecutive row groups, perhaps of several files.

    Attributes
    ----------
    source
        Where all files are.
    files
        Those from where the part, or the row group before it, begins to a few behind its end: with
        all of them, the parts of many files would be large.
    first_file
        Number of the first of `files` in the whole source.
    n_files
        Number of files of the whole source.
    start, stop
        Where it begins, and what follows it; files are counted from the first of `files`.
    before
        The last row group before the part that has rows.
    first_row
        Number of rows before the part.
    n_rows
        Number of rows of the whole source.
    columns
        What the columns are.
    lists
        Whether every row is a series.
    """

    source: ParquetSource
    files: tuple[StoredFile, ...]
    first_file: int
    n_files: int
    start: Spot
    stop: Spot
    before: Spot | None
    first_row: int
    n_rows: int
    columns: Columns
    lists: bool

    @property
    def name(self) -> str:
        """File and row group where it begins."""
        row = f", row {self.start.row}" if self.start.row else ""
        path = self.source.shown(self.files[self.start.file].name)
        return f"{path}, from row group {self.start.group}{row}"

    def with_all_files(self) -> ParquetPart:
        """Return a part that knows all files behind it; they must still be the same."""
        if self.first_file + len(self.files) >= self.n_files:
            return self
        paths = self.source.files()
        found = [self.source.within(path) for path in paths]
        later = self.first_file + len(self.files)
        known = [file.name for file in self.files]
        if len(found) != self.n_files or found[self.first_file : later] != known:
            raise DataError(
                f"{self.source.name} has {len(found)} Parquet files, and had {self.n_files} when "
                f"it was scanned, or they have other names now: scan it again"
            )
        more = zip(found[later:], self.source.keys(paths)[later:], strict=True)
        return replace(self, files=(*self.files, *(StoredFile(*file, None) for file in more)))

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read the series that start in the part; there may be none."""
        if self.lists:
            yield from iter_lists(
                _Span(self),
                self.columns,
                labels=labels,
                batch_size=batch_size,
                first=self.first_row,
            )
        else:
            yield from iter_long(
                _OwnedRows(self), self.columns, labels=labels, batch_size=batch_size
            )


class _Span:
    """Rows of the row groups of a part."""

    def __init__(self, part: ParquetPart) -> None:
        self._part = part
        self._n_read = part.first_row

    @property
    def name(self) -> str:
        """Name of the whole source."""
        return self._part.source.name

    def chunks(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Chunk]:
        """Give the columns in batches of at most `rows` rows."""
        del columns
        part = self._part
        return self._between(names, rows, part.start, part.stop)

    def _between(
        self, names: Sequence[str], rows: int, start: Spot, stop: Spot | None
    ) -> Iterator[Chunk]:
        """Give the rows from one spot to before another, or to the end of the last file."""
        number = start.file
        while stop is None or Spot(number, 0) < stop:
            if number == len(self._part.files):
                # Only a series that goes on behind the part comes here.
                self._part = self._part.with_all_files()
                if number == len(self._part.files):
                    return
            begin = start if number == start.file else Spot(number, 0)
            end = stop if stop is not None and number == stop.file else None
            yield from self._in_file(names, rows, begin, end)
            number += 1

    def _in_file(
        self, names: Sequence[str], rows: int, start: Spot, stop: Spot | None
    ) -> Iterator[Chunk]:
        """Give the rows of one file."""
        stored = self._part.files[start.file]
        shown = self._part.source.shown(stored.name)
        with _unchanged(self._part.source, stored, names) as file:
            low = file.rows_before(start.group) + start.row
            high = file.n_rows if stop is None else file.rows_before(stop.group) + stop.row
            end = file.n_groups if stop is None else stop.group + (stop.row > 0)
            for row, batch in file.batches(names, rows, start.group, end):
                first, last = max(row, low), min(row + batch.num_rows, high)
                if first < last:
                    self._n_read += last - first
                    share = min(1.0, self._n_read / self._part.n_rows)
                    owned = batch.slice(first - row, last - first)
                    yield chunk_of(owned, names, shown, first, share)
                if last == high:
                    return


class _OwnedRows(_Span):
    """Rows of the series that start in a part."""

    def chunks(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Chunk]:
        """Give the columns, less the end of the series before, and with that of the last."""
        part = self._part
        assert columns.id is not None
        passing = None if part.before is None else self._last_id(columns.id, part.before)
        last = None
        for chunk in self._between(names, rows, part.start, part.stop):
            if passing is not None:
                n_passed = _leading(chunk, columns.id, passing)
                if n_passed == chunk.rows.num_rows:
                    continue
                chunk = chunk.between(n_passed, chunk.rows.num_rows)
                passing = None
            last = plain_column(chunk.rows[columns.id])[-1]
            yield chunk
        if last is None:
            return
        for chunk in self._between(names, _TAIL_ROWS, part.stop, None):
            n_owned = _leading(chunk, columns.id, last)
            if n_owned:
                yield chunk.between(0, n_owned)
            if n_owned < chunk.rows.num_rows:
                return

    def _last_id(self, id: str, spot: Spot) -> Any:
        """Read the identifier of the last row of a row group."""
        found = None
        for chunk in self._between([id], 1 << 20, spot, Spot(spot.file, spot.group + 1)):
            found = plain_column(chunk.rows[id])[-1]
        self._n_read = self._part.first_row
        return found


def _leading(chunk: Chunk, id: str, value: Any) -> int:
    """Count the rows at the beginning that have an identifier."""
    compute: Any = import_extra("pyarrow.compute", "io")
    same = compute.equal(plain_column(chunk.rows[id]), value).fill_null(False)
    mask: AnyArray = same.to_numpy()
    return len(mask) if mask.all() else int(np.argmin(mask))


@contextmanager
def _unchanged(
    source: ParquetSource, stored: StoredFile, names: Sequence[str]
) -> Iterator[ParquetFile]:
    """Open a file, which must still be the one that was scanned."""
    shown = source.shown(stored.name)
    with opened_parquet(Path(source.root, stored.name), stored.keys) as file:
        if stored.n_rows is not None and file.n_rows != stored.n_rows:
            raise DataError(
                f"{shown} has {file.n_rows} rows, and had {stored.n_rows} when it was scanned: "
                f"scan it again"
            )
        for name in names:
            if name not in file.schema.names:
                raise DataError(f"{shown} has no column {name!r}, which other files have")
        yield file


class _Group(NamedTuple):
    """A row group, or a piece of one."""

    spot: Spot
    n_rows: int
    n_steps: int


class ParquetOrigin:
    """Parquet files of one schema, in order; only their footers are read here.

    Parameters
    ----------
    source
        Where they are.
    paths
        The files.
    columns
        What the columns are.
    lists
        Whether every row is a series.
    """

    def __init__(
        self, source: ParquetSource, paths: Sequence[Path], columns: Columns, lists: bool
    ) -> None:
        self.name = source.name
        # Parts are read by other processes too, and after this one has changed its folder.
        self._source = source.absolute()
        self.columns = columns
        self.in_rows = not lists
        self._paths = [path.absolute() for path in paths]
        self._keys = source.keys(paths)
        self._lists = lists
        self._schemas: list[Any] = []
        self._files: list[StoredFile] = []
        self._groups: list[_Group] = []

    @property
    def channel_names(self) -> tuple[str, ...]:
        """Names of the columns with the values."""
        return self.columns.channels

    @property
    def n_bytes(self) -> int:
        """Size of all values, as the footers tell it."""
        self._look(labels=False)
        return sum(group.n_steps for group in self._groups) * len(self.columns.channels) * 8

    def parts(self, *, labels: bool) -> list[ParquetPart]:
        """Cut between row groups; where, depends on the footers only."""
        self._look(labels=labels)
        n_steps = sum(group.n_steps for group in self._groups)
        n_rows = sum(group.n_rows for group in self._groups)
        target = max(1, min(_PART_STEPS, -(-n_steps // _PARTS)))
        parts: list[ParquetPart] = []
        before: Spot | None = None
        first_row = 0
        cuts = [*self._cuts(target), len(self._groups)]
        for start, stop in pairwise(cuts):
            owned = self._groups[start:stop]
            parts.append(self._part(start, stop, before, first_row, n_rows))
            before = next((g.spot for g in reversed(owned) if g.n_rows), before)
            first_row += sum(group.n_rows for group in owned)
        return parts

    def _cuts(self, target: int) -> Iterator[int]:
        """Yield the first row group of every part: those that begin in one stretch of steps."""
        stretch, steps = -1, 0
        for number, group in enumerate(self._groups):
            if number == 0 or (group.n_rows and steps // target > stretch):
                stretch = steps // target
                yield number
            steps += group.n_steps

    def _part(
        self, start: int, stop: int, before: Spot | None, first_row: int, n_rows: int
    ) -> ParquetPart:
        first = self._groups[start].spot
        end = self._groups[stop].spot if stop < len(self._groups) else Spot(len(self._files), 0)
        low = first.file if before is None or self._lists else before.file
        high = end.file + (end > Spot(end.file, 0)) + (0 if self._lists else _NEXT_FILES)
        return ParquetPart(
            source=self._source,
            files=tuple(self._files[low:high]),
            first_file=low,
            n_files=len(self._files),
            start=first._replace(file=first.file - low),
            stop=end._replace(file=end.file - low),
            before=None if before is None else before._replace(file=before.file - low),
            first_row=first_row,
            n_rows=n_rows,
            columns=self.columns,
            lists=self._lists,
        )

    def _look(self, *, labels: bool) -> None:
        """Read the footers, once, and see that they agree on the columns to be read."""
        names = self.columns.used(labels=labels)
        for path, schema in zip(self._paths, self._schemas, strict=False):
            self._check(schema, names, path)
        for number in range(len(self._schemas), len(self._paths)):
            path, keys = self._paths[number], self._keys[number]
            with opened_parquet(path, keys) as file:
                self._check(file.schema, names, path)
                self._schemas.append(file.schema)
                self._files.append(StoredFile(self._source.within(path), keys, file.n_rows))
                for group in range(file.n_groups):
                    self._groups += self._pieces(file, Spot(number, group))

    def _check(self, schema: Any, names: Sequence[str], path: Path) -> None:
        expected = self._schemas[0] if self._schemas else schema
        origin = self._paths[0].name
        shown = self._source.shown(self._source.within(path))
        check_schema(schema, expected, self.columns, names, shown, origin)

    def _pieces(self, file: ParquetFile, spot: Spot) -> list[_Group]:
        """Cut a row group where every row is a series."""
        n_rows = file.group_rows(spot.group)
        if not self._lists:
            return [_Group(spot, n_rows, n_rows)]
        n_steps = file.group_values(spot.group, self.columns.channels[0])
        count = max(1, min(_PIECES, n_rows, n_steps // _PIECE_STEPS))
        rows = [n_rows * piece // count for piece in range(count + 1)]
        steps = [n_steps * piece // count for piece in range(count + 1)]
        return [
            _Group(spot._replace(row=rows[i]), rows[i + 1] - rows[i], steps[i + 1] - steps[i])
            for i in range(count)
        ]
