"""`SeriesScan`: series that are read whenever they are needed; tables are read here in batches.

In long form, one row is one step. Blocks and row groups end inside series, so the last series of a
chunk waits for the next chunk. All other series are complete, because the rows of a series must be
contiguous: an identifier that is repeated later is an error. Only a part that is read whole may
have its rows in any order.

In list form, one row is one series, with a list of values per channel. In wide form, one row is one
series too, with one channel and one column per step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.columns import Columns
from slts.columns.rows import Chunk
from slts.errors import DataError
from slts.extras import LazyModule
from slts.quantities import format_bytes
from slts.series import SeriesBatch
from slts.series.batch import offsets_of
from slts.series.dataset import Dataset, checked, join
from slts.series.long_tables import assemble, checked_rows, plain_array, role_columns
from slts.series.naming import names_of
from slts.series.source import Digests, Part, identifier_digests

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

# Largest size of a table in long form that is one part and is read whole.
_SMALL_BYTES = 64 * 2**20
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
        """Whether series are assembled from rows, so that identifiers must not be repeated."""
        columns = self.columns
        return columns is not None and columns.id is not None and columns.long

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
        parts: Sequence[Any] = self.parts(labels=labels)
        if self.requires_unique_ids and len(parts) > 1:
            found = read_batches(parts, labels=labels, batch_size=batch_size)
        else:
            found = chain.from_iterable(
                part.batches(labels=labels, batch_size=batch_size) for part in parts
            )
        is_empty = True
        for batch in found:
            is_empty = False
            yield batch
        if is_empty:
            raise DataError(f"{self.name} has no series")

    def read(self, *, labels: bool = True) -> Dataset:
        """Read all series into memory; in long form, rows may have any order."""
        if self.requires_unique_ids:
            tables: Sequence[Any] = self.parts(labels=labels)
            return join(read_whole(tables, labels=labels))
        return join(self.batches(labels=labels, batch_size=_MANY))

    def __iter__(self) -> Iterator[Dataset]:
        """Read all series in batches."""
        return self.batches()

    def __repr__(self) -> str:
        """Return a line with source, columns and size."""
        known = [self.name]
        if self.columns is not None:
            known.append(str(self.columns))
        if self.n_bytes is not None:
            known.append(f"about {format_bytes(self.n_bytes)}")
        return f"SeriesScan({'; '.join(known)})"


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
    whole: bool = False

    @property
    def source(self) -> str:
        """Name of the whole table."""
        return self.name

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Chunk]:
        """Read some columns, in chunks of at most about `n_rows` rows."""
        raise NotImplementedError

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read the series of the part; there may be none."""
        if not self.columns.long or not self.whole:
            yield from read_batches([self], labels=labels, batch_size=batch_size)
            return
        for found in read_whole([self], labels=labels):
            yield from found.batches(labels=labels, batch_size=batch_size)


def is_small(n_bytes: int) -> bool:
    """Tell whether a table in long form is one part that is read whole."""
    return n_bytes <= _SMALL_BYTES


def read_batches(parts: Sequence[TablePart], *, labels: bool, batch_size: int) -> Iterator[Dataset]:
    """Read consecutive parts of a table in batches; memory does not grow with their size.

    In long form, 8 bytes per series are kept to detect repeated identifiers.
    """
    read = _long_batches if parts[0].columns.long else _row_batches
    return read(parts, labels, batch_size)


def read_whole(parts: Sequence[TablePart], *, labels: bool) -> Iterator[Dataset]:
    """Read parts of a table in long form with rows in any order; one batch, or none if empty."""
    chunks = [chunk.rows for chunk in _checked_chunks(parts, labels)]
    if chunks:
        yield _assemble(pa.concat_tables(chunks), parts[0], labels, 1.0)


def _assemble(rows: Any, part: TablePart, labels: bool, share: float | None) -> Dataset:
    columns = part.columns
    found = assemble(rows, columns, part.source, labels=labels, share=share)
    return checked(found, columns.channels)


# -- Long form


def _long_batches(parts: Sequence[TablePart], labels: bool, batch_size: int) -> Iterator[Dataset]:
    columns, seen = parts[0].columns, _SeenIds()
    most = _batch_rows(columns)
    # Rows that have been read but not yet returned, the rows at which their series start, and the
    # last identifier.
    tables, starts, n_rows, last = list[Any](), list[int](), 0, list[object]()
    for chunk in _checked_chunks(parts, labels):
        ids = chunk.rows[columns.id].combine_chunks()
        changes = compute.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
        new = np.flatnonzero(np.append([ids[0].as_py()] != last, changes))
        last, found = [ids[-1].as_py()], ids.take(new).to_pylist()
        repeated = seen.add(found)
        if repeated is not None:
            raise DataError(
                f"{chunk.place(int(new[repeated]))}: series {found[repeated]!r} is repeated after "
                f"other series. All rows of a series must be contiguous to be read in batches: "
                f"sort the data by {columns.id!r}"
            )
        starts += (new + n_rows).tolist()
        tables.append(chunk.rows)
        n_rows += len(chunk)
        if len(starts) > 1 and (len(starts) > batch_size or n_rows >= most):
            # The last series may go on in the next chunk.
            table, stop = pa.concat_tables(tables), starts[-1]
            for a, b in _grouped(np.array(starts[1:]), most, batch_size):
                rows = table.slice(starts[a], starts[b] - starts[a])
                yield _assemble(rows, parts[0], labels, chunk.share)
            tables, starts, n_rows = [table.slice(stop)], [0], n_rows - stop
    starts.append(n_rows)
    for a, b in _grouped(np.array(starts[1:]), most, batch_size):
        rows = pa.concat_tables(tables).slice(starts[a], starts[b] - starts[a])
        yield _assemble(rows, parts[0], labels, 1.0)


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


def _batch_rows(columns: Columns) -> int:
    return max(1, BATCH_BYTES // (8 * len(columns.channels)))


def _checked_chunks(parts: Sequence[TablePart], labels: bool) -> Iterator[Chunk]:
    columns = parts[0].columns
    names = columns.used(labels=labels)
    n_rows = min(_CHUNK_ROWS, max(1, _batch_rows(columns) // 4))
    for part in parts:
        for chunk in part.chunks(names, n_rows):
            if len(chunk):
                yield checked_rows(chunk, columns, labels=labels)


class _SeenIds:
    """A set of 64-bit digests in sorted runs: 8 bytes per identifier, a Python set takes 60."""

    def __init__(self) -> None:
        self._runs: list[Digests] = []

    def add(self, ids: Sequence[object]) -> int | None:
        """Add identifiers; return the position of the first one that was added before."""
        if not ids:
            return None
        digests = identifier_digests(ids)
        order = np.argsort(digests, kind="stable")
        repeated = np.zeros(len(digests), dtype=bool)
        repeated[order[1:]] = np.diff(digests[order]) == 0
        for run in self._runs:
            positions = np.minimum(np.searchsorted(run, digests), len(run) - 1)
            repeated |= run[positions] == digests
        if repeated.any():
            return int(np.argmax(repeated))
        self._runs.append(digests[order])
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            self._runs.append(np.sort(np.concatenate([self._runs.pop(), self._runs.pop()])))
        return None


# -- List form and wide form


def _row_batches(parts: Sequence[TablePart], labels: bool, batch_size: int) -> Iterator[Dataset]:
    columns, source = parts[0].columns, parts[0].source
    read = _series_of_steps if columns.wide else _series_of_lists
    names = columns.used(labels=labels)
    chunks = chain.from_iterable(part.chunks(names, batch_size) for part in parts)
    for chunk in chain.from_iterable(_cut(chunk, columns, batch_size) for chunk in chunks):
        roles = role_columns(chunk, columns, labels=labels)
        ids = np.asarray(roles.pop("id").to_pylist()) if "id" in roles else None
        arrays = {role: plain_array(column) for role, column in roles.items()}
        series = read(chunk, columns)
        if ids is not None:
            series = series.named(names_of(ids, columns.id))
        found = Dataset(
            series, arrays.get("label"), ids, source, columns, share=chunk.share,
            groups=arrays.get("groups"),
        )  # fmt: skip
        yield checked(
            found,
            None if columns.wide else columns.channels,
            steps=columns.channels if columns.wide else None,
            place=chunk.place,
        )


def _cut(chunk: Chunk, columns: Columns, batch_size: int) -> Iterator[Chunk]:
    """Cut a chunk into batches."""
    lengths: IntArray = np.ones(len(chunk), dtype=np.int64)
    if columns.lists:
        column = chunk.rows[columns.channels[0]]
        lengths = compute.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    for start, stop in _grouped(np.cumsum(lengths), _batch_rows(columns), batch_size):
        yield chunk.between(start, stop)


def _series_of_steps(chunk: Chunk, columns: Columns) -> SeriesBatch:
    """Read series in wide form."""
    arrays = [chunk.rows[name].cast(pa.float64(), safe=False) for name in columns.channels]
    values: FloatArray = np.stack([array.to_numpy() for array in arrays], axis=1)
    offsets = np.arange(len(values) + 1, dtype=np.int64) * values.shape[1]
    return SeriesBatch.from_checked(values.reshape(-1, 1), offsets, None)


def _series_of_lists(chunk: Chunk, columns: Columns) -> SeriesBatch:
    channels = [_flat_values(chunk, name, columns) for name in columns.channels]
    if columns.skip:
        longest = np.max([counts for _, counts in channels], axis=0)
        channels = [_with_gaps(*channel, np.maximum(longest, 1)) for channel in channels]
    _, lengths = channels[0]
    for name, (_, counts) in zip(columns.channels, channels, strict=True):
        if (counts != lengths).any():
            row = int(np.argmax(counts != lengths))
            raise DataError(
                f"{chunk.place(row)}: {name!r} has {counts[row]} steps and "
                f"{columns.channels[0]!r} has {lengths[row]}: all channels of a series must have "
                f"the same number of steps"
            )
    flat = np.ascontiguousarray(np.stack([values for values, _ in channels], axis=1))
    return SeriesBatch.from_checked(flat, offsets_of(lengths), columns.channel_names)


def _with_gaps(
    values: FloatArray, lengths: IntArray, wanted: IntArray
) -> tuple[FloatArray, IntArray]:
    """Give series without a list as many missing values as wanted."""
    empty = lengths == 0
    places = np.repeat(np.cumsum(lengths)[empty], wanted[empty])
    return np.insert(values, places, np.nan), np.where(empty, wanted, lengths)


def _flat_values(chunk: Chunk, name: str, columns: Columns) -> tuple[FloatArray, IntArray]:
    """Return the concatenated values of a channel, and the number of steps of every series."""
    column = chunk.rows[name].combine_chunks()
    lengths: IntArray = compute.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    if (lengths == 0).any() and not columns.skip:
        row = int(np.argmax(lengths == 0))
        what = "has no steps" if column[row].is_valid else "is missing"
        raise DataError(f"{chunk.place(row)}: {name!r} {what}: drop the row")
    values = column.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values, lengths
