"""Rows, one per step, put together to series.

Chunks end where the file's blocks and row groups do, so a series may lie in several. The one at the
end of a chunk waits for the next chunk; all others are complete, because rows of a series must
stand together: an identifier that comes back is an error, since the series before was given away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from slts._typing import AnyArray, IntArray
from slts.errors import DataError
from slts.extras import import_extra
from slts.files.chunks import BATCH_BYTES, Chunk, Rows, check_chunk
from slts.files.dataset import Columns, Dataset
from slts.series import SeriesBatch, as_series
from slts.series.source import Digests, identifier_digests

__all__ = ["SeenIds", "iter_long", "read_long"]

# Rows taken from a file at a time, at most; fewer where there are many channels.
_CHUNK_ROWS = 1 << 16


def read_long(table: Rows, columns: Columns, *, labels: bool) -> Dataset:
    """Read a whole table; rows of a series need not stand together.

    Parameters
    ----------
    table : Rows
        One row per step.
    columns : Columns
        Its columns.
    labels : bool
        Whether to read labels, if there are any.

    Returns
    -------
    Dataset
        Series in order of first appearance.
    """
    pa: Any = import_extra("pyarrow", "io")
    chunks = [chunk.rows for chunk in _checked(table, columns, labels)]
    if not chunks:
        raise DataError(f"{table.name} has no rows")
    rows = pa.concat_tables(chunks)
    starts = np.concatenate([[0], np.flatnonzero(_changes(rows[columns.id])) + 1])
    return _Converter(table.name, columns, labels)(rows, starts, 1.0)


def iter_long(table: Rows, columns: Columns, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
    """Read a table batch by batch; memory does not grow with its length.

    What grows is a memory of identifiers, eight bytes a series.

    Parameters
    ----------
    table : Rows
        One row per step, rows of a series together.
    columns : Columns
        Its columns.
    labels : bool
        Whether to read labels, if there are any.
    batch_size : int
        Series in a batch, at most.

    Yields
    ------
    Dataset
        The next series.
    """
    convert = _Converter(table.name, columns, labels)
    assert columns.id is not None
    waiting = _Waiting(columns.id)
    most = _rows_of_a_batch(columns)
    share: float | None = None
    for chunk in _checked(table, columns, labels):
        waiting.add(chunk)
        share = chunk.share
        while waiting.n_complete and (waiting.n_complete >= batch_size or waiting.n_rows >= most):
            yield convert(*waiting.take(batch_size, most), share)
    waiting.finish()
    while waiting.n_complete:
        yield convert(*waiting.take(batch_size, most), share)


def _rows_of_a_batch(columns: Columns) -> int:
    return max(1, BATCH_BYTES // (8 * len(columns.channels)))


def _checked(table: Rows, columns: Columns, labels: bool) -> Iterator[Chunk]:
    names = columns.used(labels=labels)
    rows = min(_CHUNK_ROWS, max(1, _rows_of_a_batch(columns) // 4))
    for chunk in table.chunks(columns, names, rows):
        if chunk.rows.num_rows:
            yield check_chunk(chunk, columns, names)


class _Converter:
    """Makes series of rows, and notes what it had to put in order."""

    def __init__(self, name: str, columns: Columns, labels: bool) -> None:
        self._name = name
        self._columns = columns
        self._label = columns.label if labels else None

    def __call__(self, rows: Any, starts: IntArray, share: float | None) -> Dataset:
        """Convert rows whose identifier changes at `starts`."""
        columns = self._columns
        assert columns.id is not None
        ids = np.asarray(rows[columns.id].take(starts).to_pylist())
        inside = np.ones(rows.num_rows, dtype=bool)
        inside[starts] = False
        notes: tuple[str, ...] = ()
        rises = True
        if columns.time is not None:
            times = rows[columns.time].to_numpy()
            rises = not (inside[1:] & (times[1:] <= times[:-1])).any()
            if not rises and (inside[1:] & (times[1:] < times[:-1])).any():
                notes = (f"steps were sorted by {columns.time!r}: the file has them out of order",)
        varies = self._label is not None and (inside[1:] & _changes(rows[self._label])).any()
        if not rises or varies or len(set(ids.tolist())) < len(ids):
            # Rows to be sorted, or an error to be told.
            return self._sorted(rows, notes, share)
        values = np.empty((rows.num_rows, len(columns.channels)))
        for c, name in enumerate(columns.channels):
            values[:, c] = rows[name].to_numpy()
        offsets = np.append(starts, rows.num_rows)
        series = SeriesBatch.from_checked(values, offsets, columns.channels)
        labels = None if self._label is None else rows[self._label].take(starts).to_numpy()
        return Dataset(series, _tidy(labels), ids, self._name, columns, notes, share)

    def _sorted(self, rows: Any, notes: tuple[str, ...], share: float | None) -> Dataset:
        columns = self._columns
        assert columns.id is not None
        try:
            found: Any = as_series(
                rows,
                id=columns.id,
                time=columns.time,
                channels=columns.channels,
                label=self._label,
            )
        except DataError as error:
            raise DataError(f"{self._name}: {error}") from error
        series, labels = found if self._label is not None else (found, None)
        ids = np.asarray(rows[columns.id].unique().to_pylist())
        return Dataset(series, _tidy(labels), ids, self._name, columns, notes, share)


def _tidy(labels: AnyArray | None) -> AnyArray | None:
    """Return labels as an array of text or numbers rather than of objects."""
    if labels is None or labels.dtype != object:
        return labels
    return np.asarray(labels.tolist())


def _changes(ids: Any) -> AnyArray:
    """Tell for every row but the first whether its identifier differs from the one before."""
    compute: Any = import_extra("pyarrow.compute", "io")
    ids = ids.combine_chunks()
    differ = compute.not_equal(ids[1:], ids[:-1])
    result: AnyArray = differ.to_numpy(zero_copy_only=False)
    return result


class _Waiting:
    """Rows that have been read and not been given away, and where their series begin."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._pa: Any = import_extra("pyarrow", "io")
        self._tables: list[Any] = []
        # First rows of the series waiting, counted from the first row waiting.
        self._starts: IntArray = np.empty(0, dtype=np.int64)
        self._last: object = None
        self._seen = SeenIds()
        self._finished = False
        self.n_rows = 0
        self.n_taken = 0

    @property
    def n_complete(self) -> int:
        """Number of series that cannot grow any more."""
        return len(self._starts) - (not self._finished and len(self._starts) > 0)

    def add(self, chunk: Chunk) -> None:
        """Put rows at the end."""
        ids = chunk.rows[self._id]
        starts = np.flatnonzero(_changes(ids)) + 1
        if self.n_rows + self.n_taken == 0 or ids[0].as_py() != self._last:
            starts = np.concatenate([[0], starts])
        fresh = ids.take(starts).to_pylist()
        again = self._seen.add(fresh)
        if again is not None:
            raise DataError(
                f"{chunk.place(int(starts[again]))}: series {fresh[again]!r} comes back after "
                f"other series; rows of a series must stand together to be read piece by piece. "
                f"Sort the file by {self._id!r}"
            )
        self._starts = np.concatenate([self._starts, starts + self.n_rows])
        self._tables.append(chunk.rows)
        self.n_rows += chunk.rows.num_rows
        self._last = ids[-1].as_py()

    def finish(self) -> None:
        """Say that no row follows."""
        self._finished = True

    def take(self, n_series: int, n_rows: int) -> tuple[Any, IntArray]:
        """Give away the rows of the first complete series, and where each begins.

        No more series and rows than told, but at least one series.
        """
        # Series that begin within the rows, less the one that goes on behind them.
        begun = int(np.searchsorted(np.append(self._starts, self.n_rows), n_rows, side="right"))
        count = max(1, min(n_series, self.n_complete, begun - 1))
        starts = self._starts[:count]
        stop = int(self._starts[count]) if count < len(self._starts) else self.n_rows
        everything = self._pa.concat_tables(self._tables)
        self._tables = [everything.slice(stop)] if stop < self.n_rows else []
        self._starts = self._starts[count:] - stop
        self.n_rows -= stop
        self.n_taken += stop
        return everything.slice(0, stop), starts


class SeenIds:
    """A set of hashes in sorted runs, eight bytes each: a Python set would take sixty."""

    def __init__(self) -> None:
        self._runs: list[Digests] = []

    def add(self, ids: Sequence[object] | AnyArray) -> int | None:
        """Remember identifiers; return the position of the first one known before."""
        if len(ids) == 0:
            return None
        # Not `hash`, which is the same for -1 and -2.
        hashes = identifier_digests(ids)
        known = np.zeros(len(hashes), dtype=bool)
        for run in self._runs:
            positions = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            known |= run[positions] == hashes
        order = np.argsort(hashes, kind="stable")
        known[order[1:]] |= np.diff(hashes[order]) == 0
        if known.any():
            return int(np.argmax(known))
        self._runs.append(hashes[order])
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort()
            self._runs.append(merged)
        return None
