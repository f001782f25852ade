"""Rows, one per step, put together to series.

Chunks end where the file's blocks and row groups do, so a series may lie in several. The one at the
end of a chunk waits for the next chunk; all others are complete, because rows of a series must
stand together: an identifier that comes back is an error, since the series before was given away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from slts._typing import AnyArray, IntArray
from slts.errors import DataError
from slts.extras import import_extra
from slts.files.chunks import Chunk, Table, check_chunk
from slts.files.dataset import Columns, Dataset
from slts.series import as_series

__all__ = ["iter_long", "read_long"]

# Rows taken from a file at a time, and rows after which a batch is given though it is not full.
_CHUNK_ROWS = 1 << 16
_BATCH_ROWS = 1 << 20


def read_long(table: Table, columns: Columns, *, labels: bool) -> Dataset:
    """Read a whole table; rows of a series need not stand together.

    Parameters
    ----------
    table : Table
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
    return _Converter(table.name, columns, labels)(pa.concat_tables(chunks), 1.0)


def iter_long(
    table: Table, columns: Columns, *, labels: bool, batch_size: int
) -> Iterator[Dataset]:
    """Read a table batch by batch; memory does not grow with its length.

    What grows is a memory of identifiers, eight bytes a series.

    Parameters
    ----------
    table : Table
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
    share: float | None = None
    for chunk in _checked(table, columns, labels):
        waiting.add(chunk)
        share = chunk.share
        while waiting.n_complete >= batch_size:
            yield convert(waiting.take(batch_size), share)
        if waiting.n_rows >= _BATCH_ROWS and waiting.n_complete:
            yield convert(waiting.take(waiting.n_complete), share)
    if waiting.n_rows + waiting.n_taken == 0:
        raise DataError(f"{table.name} has no rows")
    waiting.finish()
    while waiting.n_complete:
        count = min(batch_size, waiting.n_complete)
        yield convert(waiting.take(count), share)


def _checked(table: Table, columns: Columns, labels: bool) -> Iterator[Chunk]:
    label = columns.label if labels else None
    names = [name for name in (columns.id, columns.time, label) if name is not None]
    names += columns.channels
    for chunk in table.chunks(columns, names, _CHUNK_ROWS):
        if chunk.rows.num_rows:
            yield check_chunk(chunk, columns, names)


class _Converter:
    """Makes series of rows, and notes what it had to put in order."""

    def __init__(self, name: str, columns: Columns, labels: bool) -> None:
        self._name = name
        self._columns = columns
        self._label = columns.label if labels else None

    def __call__(self, rows: Any, share: float | None) -> Dataset:
        columns = self._columns
        assert columns.id is not None
        ids = np.asarray(rows[columns.id].unique().to_pylist())
        notes: tuple[str, ...] = ()
        if columns.time is not None and _out_of_order(rows, columns.id, columns.time):
            notes = (f"steps were sorted by {columns.time!r}: the file has them out of order",)
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
        return Dataset(series, _tidy(labels), ids, self._name, columns, notes, share)


def _tidy(labels: AnyArray | None) -> AnyArray | None:
    """Return labels as an array of text or numbers rather than of objects."""
    if labels is None or labels.dtype != object:
        return labels
    return np.asarray(labels.tolist())


def _out_of_order(rows: Any, id: str, time: str) -> bool:
    times = rows[time].to_numpy()
    if len(times) < 2:
        return False
    back = times[1:] < times[:-1]
    if not back.any():
        return False
    same = ~_changes(rows[id])
    return bool((back & same).any())


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
        self._starts: list[int] = []
        self._last: object = None
        self._seen = _SeenIds()
        self._finished = False
        self.n_rows = 0
        self.n_taken = 0

    @property
    def n_complete(self) -> int:
        """Number of series that cannot grow any more."""
        return len(self._starts) - (not self._finished and bool(self._starts))

    def add(self, chunk: Chunk) -> None:
        """Put rows at the end."""
        ids = chunk.rows[self._id]
        starts = np.flatnonzero(_changes(ids)) + 1
        if self.n_rows + self.n_taken == 0 or ids[0].as_py() != self._last:
            starts = np.concatenate([[0], starts])
        fresh = ids.take(starts).to_pylist() if len(starts) else []
        again = self._seen.add(fresh)
        if again is not None:
            raise DataError(
                f"{chunk.place(int(starts[again]))}: series {fresh[again]!r} comes back after "
                f"other series; rows of a series must stand together to be read piece by piece. "
                f"Sort the file by {self._id!r}"
            )
        self._starts += (starts + self.n_rows).tolist()
        self._tables.append(chunk.rows)
        self.n_rows += chunk.rows.num_rows
        self._last = ids[-1].as_py()

    def finish(self) -> None:
        """Say that no row follows."""
        self._finished = True

    def take(self, count: int) -> Any:
        """Give away the rows of the first complete series."""
        stop = self._starts[count] if count < len(self._starts) else self.n_rows
        everything = self._pa.concat_tables(self._tables)
        self._tables = [everything.slice(stop)] if stop < self.n_rows else []
        self._starts = [start - stop for start in self._starts[count:]]
        self.n_rows -= stop
        self.n_taken += stop
        return everything.slice(0, stop)


class _SeenIds:
    """A set of hashes in sorted runs, eight bytes each: a Python set would take sixty."""

    def __init__(self) -> None:
        self._runs: list[IntArray] = []

    def add(self, ids: Sequence[object]) -> int | None:
        """Remember identifiers; return the position of the first one known before."""
        if not ids:
            return None
        # Not `hash`, which is the same for -1 and -2.
        digests = (blake2b(repr(id).encode(), digest_size=8).digest() for id in ids)
        hashes = np.frombuffer(b"".join(digests), dtype=np.int64)
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
