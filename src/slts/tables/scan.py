"""`SeriesScan`: series that are read whenever they are needed; tables are read here in batches.

In long form, chunks end inside series, so the last series of a chunk waits for the next chunk. All
other series are complete, because the rows of a series must be contiguous: an identifier that is
repeated later is an error. Only a part that is read whole may have its rows in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from slts._typing import IntArray
from slts.errors import DataError
from slts.extras import LazyModule
from slts.quantities import format_bytes
from slts.series.dataset import Columns, Dataset, join
from slts.series.source import Part
from slts.tables.assembly import (
    assemble,
    checked_rows,
    read_series_of_rows,
    series_starts,
    used_columns,
)
from slts.tables.columns import Rows, call

pa: Any = LazyModule("pyarrow", "io")

# Largest size of a table in long form that is one part and is read whole.
SMALL_BYTES = 64 * 2**20
# Approximate size of the values of a batch, whatever the number of series in it. A larger series
# is a batch of its own.
BATCH_BYTES = 1 << 24
# Largest number of rows in long form that are read at once; fewer if there are many channels.
_CHUNK_ROWS = 1 << 16
# Number of series that are read at once if all are wanted.
_MANY = 1 << 14


class SeriesScan:
    """Series that are not kept in memory but read when needed, in batches or in parts.

    `scan_series` makes it. Iteration yields batches of 1024 series with labels.

    Attributes
    ----------
    name
        Name for messages.
    columns
        Role of each column; None for sources without named columns.
    """

    def __init__(
        self,
        name: str,
        columns: Columns | None = None,
        parts: Sequence[Part] = (),
        n_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.columns = columns
        self._parts = parts
        self._n_bytes = n_bytes

    @property
    def n_bytes(self) -> int | None:
        """Approximate memory of all series as float64, if it is known."""
        return self._n_bytes

    @cached_property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels, if they have names."""
        if self.columns is not None:
            return self.columns.channel_names
        return next(self.batches(labels=False, batch_size=1)).series.channel_names

    @property
    def requires_unique_ids(self) -> bool:
        """Whether identifiers must not be repeated."""
        return self.columns is not None and self.columns.id is not None

    def parts(self, *, labels: bool = True) -> Sequence[Part]:
        """Return parts that can be read independently, also by other processes.

        Parameters
        ----------
        labels : bool
            Whether labels will be read. If not, files need not agree on them.

        Returns
        -------
        sequence of parts
            In order. Every series is in exactly one part; some parts may have no series.
        """
        del labels
        return self._parts

    def batches(self, *, labels: bool = True, batch_size: int = 1024) -> Iterator[Dataset]:
        """Read all series in batches.

        Parameters
        ----------
        labels : bool
            Whether labels are needed. If not, they may be missing.
        batch_size : int
            Largest number of series in a batch.

        Yields
        ------
        Dataset
            The next series.
        """
        if batch_size < 1:
            raise DataError(f"batch_size must be at least 1, got {batch_size}")
        seen, is_empty = set[object](), True
        for part in self.parts(labels=labels):
            for batch in part.batches(labels=labels, batch_size=batch_size):
                for id in [] if batch.ids is None else batch.ids.tolist():
                    if id in seen and self.columns is not None:
                        raise DataError(f"{part.name}: {_repeated(id, self.columns)}")
                    seen.add(id)
                is_empty = False
                yield batch
        if is_empty:
            raise DataError(f"{self.name} has no series")

    def read(self, *, labels: bool = True) -> Dataset:
        """Read all series into memory."""
        return join(self.batches(labels=labels, batch_size=_MANY))

    def __iter__(self) -> Iterator[Dataset]:
        """Read all series in batches."""
        return self.batches()

    def __repr__(self) -> str:
        """Return a line with source, columns and size."""
        texts = [self.name]
        if self.columns is not None:
            texts.append(str(self.columns))
        if self.n_bytes is not None:
            texts.append(f"about {format_bytes(self.n_bytes)}")
        return f"SeriesScan({'; '.join(texts)})"


def _repeated(id: object, columns: Columns) -> str:
    """Return what is wrong if an identifier is repeated."""
    if columns.form == "long":
        return (
            f"series {id!r} is repeated after other series. All rows of a series must be "
            f"contiguous in a large table: sort it by {columns.id!r}"
        )
    return (
        f"series {id!r} is repeated, but every row is a series. If {columns.id!r} does not "
        f"identify a series, name all columns that do: {call('id', str(columns.id), '...')}"
    )


class TablePart:
    """A part of a table that can be read on its own.

    Attributes
    ----------
    name
        Name for messages.
    columns
        Role of each column.
    whole
        Whether all rows are read before series are assembled, so that rows may have any order.
    """

    name: str
    columns: Columns
    whole: bool

    @property
    def source(self) -> str:
        """Name of the whole table."""
        return self.name

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Rows]:
        """Read some columns, in chunks of at most about `n_rows` rows."""
        raise NotImplementedError

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read the series of the part; there may be none. Memory does not grow with its size."""
        if self.columns.form != "long":
            yield from self._row_batches(labels, batch_size)
        elif not self.whole:
            yield from self._long_batches(labels, batch_size)
        elif tables := list(self._checked_chunks(labels)):
            table = _joined([table for table, _ in tables])
            dataset = assemble(table, self.columns, self.source, share=tables[-1][1], whole=True)
            yield from dataset.batches(labels=labels, batch_size=batch_size)

    def _checked_chunks(self, labels: bool) -> Iterator[tuple[Any, float | None]]:
        n_rows = min(_CHUNK_ROWS, max(1, _batch_rows(self.columns) // 4))
        for rows in self.chunks(used_columns(self.columns, labels=labels), n_rows):
            if len(rows):
                yield checked_rows(rows, self.columns, labels=labels), rows.share

    def _long_batches(self, labels: bool, batch_size: int) -> Iterator[Dataset]:
        most = _batch_rows(self.columns)
        # Rows that were read but not yet returned. The last series may go on in the next chunk.
        waiting, starts, share = None, np.empty(0, np.int64), None
        for table, share in self._checked_chunks(labels):
            waiting = table if waiting is None else _joined([waiting, table])
            starts = series_starts(waiting["id"])
            if len(starts) > 1 and (len(starts) > batch_size or len(waiting) >= most):
                yield from self._assembled(waiting, starts, batch_size, share)
                waiting, starts = waiting.slice(starts[-1]), np.zeros(1, np.int64)
        if waiting is not None:
            yield from self._assembled(waiting, np.append(starts, len(waiting)), batch_size, share)

    def _assembled(
        self, rows: Any, bounds: IntArray, batch_size: int, share: float | None
    ) -> Iterator[Dataset]:
        """Yield complete series, of which `bounds` are the first rows and the end."""
        for a, b in _grouped(bounds[1:], _batch_rows(self.columns), batch_size):
            batch = rows.slice(bounds[a], bounds[b] - bounds[a])
            yield assemble(batch, self.columns, self.source, share=share)

    def _row_batches(self, labels: bool, batch_size: int) -> Iterator[Dataset]:
        columns = self.columns
        for rows in self.chunks(used_columns(columns, labels=labels), batch_size):
            lengths: IntArray = np.ones(len(rows), dtype=np.int64)
            if columns.form == "lists":
                lists = rows.table[columns.channels[0]].combine_chunks()
                lengths = lists.value_lengths().fill_null(0).to_numpy().astype(np.int64)
            for start, stop in _grouped(np.cumsum(lengths), _batch_rows(columns), batch_size):
                batch = rows.between(start, stop)
                yield read_series_of_rows(batch, columns, self.source, labels=labels)


def _joined(tables: Sequence[Any]) -> Any:
    return pa.concat_tables(tables, promote_options="permissive")


def _batch_rows(columns: Columns) -> int:
    """Return how many rows have about the size of a batch."""
    return max(1, BATCH_BYTES // (8 * len(columns.channels)))


def _grouped(ends: IntArray, most: int, count: int) -> Iterator[tuple[int, int]]:
    """Divide consecutive series into groups; yield the first of each, and the first after it.

    A group has at most `count` series and the size `most`; a larger series is alone. `ends` are
    the sums of the sizes up to every series.
    """
    first, size = 0, 0
    while first < len(ends):
        n_fitting = int(np.searchsorted(ends, size + most, side="right")) - first
        stop = first + max(1, min(count, n_fitting))
        yield first, stop
        first, size = stop, int(ends[stop - 1])
