"""Chunks of a table: their rows are checked and assembled into series.

In long form, one row is one step. Blocks and row groups end inside series, so the last series of a
chunk waits for the next chunk. All other series are complete, because the rows of a series must be
contiguous: an identifier that is repeated later is an error. Only a part that is read whole may
have its rows in any order.

In list form, one row is one series, with a list of values per channel. In wide form, one row is one
series too, with one channel and one column per step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.columns import Columns
from slts.columns.rows import Chunk, TimeForm, joined_identifier, parse_times
from slts.errors import DataError
from slts.extras import LazyModule
from slts.files.dataset import Dataset, Unusable
from slts.files.resampling import on_grid
from slts.series import SeriesBatch
from slts.series.flatten import check_values
from slts.series.frames import read_long
from slts.series.missing import trim_padding
from slts.series.naming import names_of, plain_times
from slts.series.source import Digests, identifier_digests

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

# Largest size of a table in long form that is one part and is read whole.
_SMALL_BYTES = 64 * 2**20
# Approximate size of the values of a batch, whatever the number of series in it. A larger series
# is a batch of its own.
BATCH_BYTES = 1 << 24
# Largest number of rows in long form that are read at once; fewer if there are many channels.
_CHUNK_ROWS = 1 << 16
_TIME_EXAMPLES: dict[TimeForm, str] = {
    "number": "0.5",
    "moment": "2024-01-31 12:00:00",
    "zoned": "2024-01-31 12:00:00Z",
    "clock": "12:00:00",
}
# Decimal digits that float64 represents exactly.
_EXACT_DIGITS = 15


class TablePart:
    """A part of a table that can be read on its own.

    Attributes
    ----------
    columns
        Role of each column.
    whole
        Whether all rows are read before series are assembled, so that rows may have any order.
    """

    columns: Columns
    whole: bool = False

    @property
    def name(self) -> str:
        """Name for messages."""
        raise NotImplementedError

    @property
    def source(self) -> str:
        """Name of the whole table."""
        return self.name

    @property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels, if they have names."""
        return self.columns.channel_names

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
        rows = pa.concat_tables(chunks)
        starts = np.concatenate([[0], np.flatnonzero(_changes(rows[parts[0].columns.id])) + 1])
        yield _assemble(rows, starts, parts[0], labels, 1.0)


# -- Long form


def _long_batches(parts: Sequence[TablePart], labels: bool, batch_size: int) -> Iterator[Dataset]:
    columns = parts[0].columns
    most = _batch_rows(columns)
    pending = _PendingRows(columns.id)
    share: float | None = None

    def next_batch() -> Dataset:
        rows, starts = pending.take(batch_size, most)
        return _assemble(rows, starts, parts[0], labels, share)

    for chunk in _checked_chunks(parts, labels):
        pending.add(chunk)
        share = chunk.share
        while pending.n_complete and (pending.n_complete >= batch_size or pending.n_rows >= most):
            yield next_batch()
    pending.finish()
    while pending.n_complete:
        yield next_batch()


def _batch_rows(columns: Columns) -> int:
    return max(1, BATCH_BYTES // (8 * len(columns.channels)))


def _checked_chunks(parts: Sequence[TablePart], labels: bool) -> Iterator[Chunk]:
    columns = parts[0].columns
    names = columns.used(labels=labels)
    n_rows = min(_CHUNK_ROWS, max(1, _batch_rows(columns) // 4))
    for part in parts:
        for chunk in part.chunks(names, n_rows):
            if len(chunk):
                yield _check_chunk(chunk, columns, names)


def _assemble(
    rows: Any, starts: IntArray, part: TablePart, labels: bool, share: float | None
) -> Dataset:
    """Make series from checked rows, whose identifier changes at `starts`."""
    columns = part.columns
    if columns.every is not None:
        rows, starts = on_grid(rows, columns)
    ids = np.asarray(rows[columns.id].take(starts).to_pylist())
    label = columns.label if labels else None
    same_series = np.ones(rows.num_rows, dtype=bool)
    same_series[starts] = False
    same_series = same_series[1:]
    notes: tuple[str, ...] = ()
    times = None
    needs_care = len(set(ids.tolist())) < len(ids)
    if columns.time is not None:
        times = rows[columns.time].to_numpy()
        needs_care |= bool((same_series & (times[1:] <= times[:-1])).any())
        if (same_series & (times[1:] < times[:-1])).any() and not columns.rising:
            notes = (f"steps were sorted by {columns.time!r}: the rows are not in order of time",)
    for name in columns.constant if label is None else (label, *columns.constant):
        needs_care |= bool((same_series & _changes(rows[name])).any())
    if needs_care:
        # Rows must be sorted, or there is an error to report.
        series, classes = _sorted_series(rows, part, label)
        ids = np.asarray(rows[columns.id].unique().to_pylist())
    else:
        values = np.empty((rows.num_rows, len(columns.channels)))
        for c, name in enumerate(columns.channels):
            values[:, c] = rows[name].to_numpy()
        offsets = np.append(starts, rows.num_rows)
        series = SeriesBatch.from_checked(
            values, offsets, part.channel_names, names_of(ids, columns.id),
            None if times is None else plain_times(times),
        )  # fmt: skip
        classes = None if label is None else rows[label].take(starts).to_numpy()
    if classes is not None and classes.dtype == object:
        classes = np.asarray(classes.tolist())
    groups = _groups(rows, part) if labels and columns.groups is not None else None
    found = Dataset(series, classes, ids, part.source, columns, notes, share, groups=groups)
    return usable(found, columns.channels, skip=columns.skip)


def _groups(rows: Any, part: TablePart) -> AnyArray:
    """Return the group of each series, in the order of their first rows."""
    column = rows[part.columns.groups]
    ids = rows[part.columns.id].combine_chunks().dictionary_encode()
    codes = ids.indices.to_numpy()
    first = np.unique(codes, return_index=True)[1]
    groups = column.take(first)
    row = _first_true(compute.not_equal(column, groups.take(codes)).combine_chunks())
    if row is not None:
        raise DataError(
            f"{part.source}: {part.columns.groups!r} (groups) varies in series "
            f"{ids[row].as_py()!r}: {groups[int(codes[row])].as_py()!r} and "
            f"{column[row].as_py()!r}; a series must be in one group"
        )
    return np.asarray(groups.to_pylist())


def usable(
    dataset: Dataset,
    channels: Sequence[str] | None,
    *,
    skip: bool,
    steps: Sequence[str] | None = None,
) -> Dataset:
    """Trim series to the last step with a value; raise an error for those that cannot be used.

    With `skip`, these are left out. Messages have the names of the channels or, in wide form, of
    the columns of the steps.
    """
    dataset = replace(dataset, series=trim_padding(dataset.series))
    values, offsets = dataset.series.values, dataset.series.offsets
    ids = None if dataset.ids is None else dataset.ids.tolist()
    if not skip:
        try:
            check_values(values, offsets, channels, ids)
        except DataError as error:
            raise DataError(f"{dataset.source}: {error}") from error
        return dataset
    unusable = []
    for position, (begin, end) in enumerate(pairwise(offsets.tolist())):
        reason = _why_unusable(values[begin:end], channels, steps)
        if reason is not None:
            unusable.append(Unusable(position, None if ids is None else ids[position], reason))
    keep = np.ones(len(dataset), dtype=bool)
    keep[[one.position for one in unusable]] = False
    return replace(dataset[keep], unusable=tuple(unusable)) if unusable else dataset


def _why_unusable(
    series: FloatArray, channels: Sequence[str] | None, steps: Sequence[str] | None
) -> str | None:
    infinite = np.argwhere(np.isinf(series))
    if len(infinite):
        step, channel = infinite[0]
        place = f"({steps[step]!r})" if steps is not None else f"of channel {channel}"
        place = place if channels is None else f"of {channels[channel]!r}"
        return f"step {step} {place} is infinite or not a number"
    return "it has no values" if np.isnan(series).all() else None


def _sorted_series(
    rows: Any, part: TablePart, label: str | None
) -> tuple[SeriesBatch, AnyArray | None]:
    columns = part.columns
    assert columns.id is not None
    try:
        found: Any = read_long(rows, replace(columns, label=label), check=False)
    except DataError as error:
        raise DataError(f"{part.source}: {error}") from error
    series, classes = (found, None) if label is None else found
    return series.with_values(series.values, part.channel_names), classes


def _changes(column: Any) -> AnyArray:
    """Tell for every row but the first whether its value differs from the one before."""
    column = column.combine_chunks()
    differs = compute.not_equal(column[1:], column[:-1]).fill_null(True)
    result: AnyArray = differs.to_numpy(zero_copy_only=False)
    return result


class _PendingRows:
    """Rows that have been read but not yet returned, and the rows at which their series start."""

    def __init__(self, id: str | None) -> None:
        self._id = id
        self._tables: list[Any] = []
        self._starts: IntArray = np.empty(0, dtype=np.int64)
        self._last_id: list[object] = []
        self._seen = _SeenIds()
        self._finished = False
        self.n_rows = 0

    @property
    def n_complete(self) -> int:
        """Number of series to which no row can be added."""
        return len(self._starts) - (not self._finished and len(self._starts) > 0)

    def add(self, chunk: Chunk) -> None:
        """Append rows."""
        ids = chunk.rows[self._id]
        starts = np.flatnonzero(_changes(ids)) + 1
        if [ids[0].as_py()] != self._last_id:
            starts = np.concatenate([[0], starts])
        new = ids.take(starts).to_pylist()
        repeated = self._seen.add(new)
        if repeated is not None:
            raise DataError(
                f"{chunk.place(int(starts[repeated]))}: series {new[repeated]!r} is repeated after "
                f"other series. All rows of a series must be contiguous to be read in batches: "
                f"sort the data by {self._id!r}"
            )
        self._starts = np.concatenate([self._starts, starts + self.n_rows])
        self._tables.append(chunk.rows)
        self.n_rows += len(chunk)
        self._last_id = [ids[-1].as_py()]

    def finish(self) -> None:
        """Mark the last series as complete."""
        self._finished = True

    def take(self, n_series: int, n_rows: int) -> tuple[Any, IntArray]:
        """Remove the first complete series; return their rows, and the row at which each starts.

        Returns at most `n_series` series and `n_rows` rows, but at least one series.
        """
        ends = np.append(self._starts[1:], self.n_rows)
        n_fitting = int(np.searchsorted(ends, n_rows, side="right"))
        count = max(1, min(n_series, self.n_complete, n_fitting))
        starts, stop = self._starts[:count], int(ends[count - 1])
        table = pa.concat_tables(self._tables)
        self._tables = [table.slice(stop)] if stop < self.n_rows else []
        self._starts = self._starts[count:] - stop
        self.n_rows -= stop
        return table.slice(0, stop), starts


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
    label = columns.label if labels else None
    chunks = chain.from_iterable(part.chunks(names, batch_size) for part in parts)
    cut = chain.from_iterable(chunk.cut(batch_size) for chunk in chunks)
    for chunk in chain.from_iterable(_cut_by_size(chunk, columns) for chunk in cut):
        series, ids = read(chunk, columns), None
        if columns.id is not None:
            found_ids = identifiers(chunk.rows, columns)
            _require_present(chunk, columns, columns.id, _missing(found_ids))
            ids = np.asarray(found_ids.to_pylist())
            series = series.named(names_of(ids, columns.id))
        found = Dataset(
            series,
            None if label is None else _scalars(chunk, label, columns),
            ids,
            source,
            columns,
            share=chunk.share,
            groups=_scalars(chunk, columns.groups, columns) if labels and columns.groups else None,
        )
        wide = columns.wide
        yield usable(
            found,
            None if wide else columns.channels,
            skip=columns.skip,
            steps=columns.channels if wide else None,
        )


def _cut_by_size(chunk: Chunk, columns: Columns) -> Iterator[Chunk]:
    """Cut a chunk into pieces that are not larger than a batch."""
    if columns.wide:
        yield from chunk.cut(_batch_rows(columns))
        return
    lengths = compute.list_value_length(chunk.rows[columns.channels[0]]).fill_null(0)
    ends = np.cumsum(lengths.to_numpy().astype(np.int64)) * 8 * len(columns.channels)
    start, n_bytes = 0, 0
    while start < len(ends):
        n_fitting = int(np.searchsorted(ends, n_bytes + BATCH_BYTES, side="right"))
        stop = max(start + 1, n_fitting)
        yield chunk.between(start, stop)
        start, n_bytes = stop, int(ends[stop - 1])


def _scalars(chunk: Chunk, name: str, columns: Columns) -> AnyArray:
    column = plain_column(chunk.rows[name])
    _require_present(chunk, columns, name, _missing(column))
    return np.asarray(column.to_pylist())


def _series_of_steps(chunk: Chunk, columns: Columns) -> SeriesBatch:
    """Read series in wide form."""
    numbers = pa.float64()
    arrays = [chunk.rows[name].cast(numbers, safe=False) for name in columns.channels]
    values: FloatArray = np.stack([array.to_numpy() for array in arrays], axis=1)
    if not columns.skip:
        missing, infinite = np.isnan(values).all(axis=1), np.isinf(values)
        if missing.any():
            row = int(np.argmax(missing))
            raise DataError(f"{chunk.place(row)}: the series has no values; drop the row")
        if infinite.any():
            row, step = (int(k) for k in np.argwhere(infinite)[0])
            raise DataError(
                f"{chunk.place(row)}: step {step} ({columns.channels[step]!r}) is infinite; clip "
                f"it or drop the row"
            )
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
                f"{columns.channels[0]!r} has {lengths[row]}; all channels of a series must have "
                f"the same number of steps"
            )
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    flat = np.ascontiguousarray(np.stack([values for values, _ in channels], axis=1))
    return SeriesBatch.from_checked(flat, offsets, columns.channels)


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
    row = _first_true(column.is_null())
    if row is not None and not columns.skip:
        raise DataError(f"{chunk.place(row)}: {name!r} is missing; drop the row")
    lengths = compute.list_value_length(column).fill_null(0)
    lengths = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    if (lengths == 0).any() and not columns.skip:
        row = int(np.argmax(lengths == 0))
        raise DataError(f"{chunk.place(row)}: {name!r} has no steps; drop the row")
    values: FloatArray
    values = column.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = np.isinf(values)
    if infinite.any() and not columns.skip:
        position = int(np.argmax(infinite))
        row = int(np.searchsorted(np.cumsum(lengths), position, side="right"))
        step = position - int(lengths[:row].sum())
        raise DataError(
            f"{chunk.place(row)}: step {step} of {name!r} is infinite; clip it or drop the row"
        )
    return values, lengths


# -- Checks


def _check_chunk(chunk: Chunk, columns: Columns, names: Sequence[str]) -> Chunk:
    """Raise an error for infinite values and for rows without id, time or label, in long form.

    In the result, channels are float64 and other columns have the type of `plain_type`.
    """
    arrays = []
    kept = [name for name in names if name not in columns.id_columns or name == columns.groups]
    if columns.id_columns:
        ids = identifiers(chunk.rows, columns)
        _require_present(chunk, columns, str(columns.id), ids.is_null())
        arrays.append(ids)
    for name in kept:
        column = chunk.rows[name]
        if name in columns.constant:
            column = column.cast(pa.float64(), safe=False)
        elif name in columns.channels:
            if column.type != pa.float64():
                column = column.cast(pa.float64(), safe=False)
            infinite = np.isinf(column.to_numpy())
            if infinite.any() and not columns.skip:
                place = _place_in_series(chunk, columns, int(np.argmax(infinite)))
                raise DataError(f"{place}: {name!r} is infinite; clip it or drop the series")
        else:
            column = plain_column(column)
            _require_present(chunk, columns, name, _missing(column))
            if name == columns.time:
                column = _times(chunk, columns, column)
        arrays.append(column)
    joined = [str(columns.id)] if columns.id_columns else []
    return replace(chunk, rows=pa.table(arrays, names=[*joined, *kept]))


def _times(chunk: Chunk, columns: Columns, column: Any) -> Any:
    """Read times that are text; raise an error if they are not as in the first rows."""
    is_text, form = pa.types.is_string(column.type), columns.time_form
    expected = "numbers or moments" if form is None else f"text such as {_TIME_EXAMPLES[form]}"
    if is_text != (form is not None):
        raise DataError(
            f"{chunk.place(0)}: {columns.time!r} (time) holds {column[0].as_py()!r}, expected "
            f"{expected}, as in the first rows"
        )
    if form is None:
        return column
    try:
        return parse_times(column, form)
    except pa.ArrowInvalid:
        row = next(k for k, text in enumerate(column.to_pylist()) if not _is_time(text, form))
        place = _place_in_series(chunk, columns, row)
        raise DataError(
            f"{place}: {columns.time!r} (time) holds {column[row].as_py()!r}, expected {expected}"
        ) from None


def _is_time(text: str, form: TimeForm) -> bool:
    try:
        parse_times(pa.array([text]), form)
    except pa.ArrowInvalid:
        return False
    return True


def plain_column(column: Any) -> Any:
    """Return a column whose type does not depend on how it was stored."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    target = plain_type(column.type)
    return column if column.type == target else column.cast(target)


def plain_type(dtype: Any) -> Any:
    """Return the type in which identifiers, times and labels of type `dtype` are read."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return pa.string()
    if pa.types.is_float16(dtype):
        # Arrow cannot compare float16.
        return pa.float32()
    if pa.types.is_decimal(dtype) and dtype.precision <= _EXACT_DIGITS:
        return pa.float64() if dtype.scale > 0 else pa.int64()
    return dtype


def first_missing(values: Sequence[Any]) -> int | None:
    """Return the position of the first missing value: None, NaN or empty text."""
    for position, value in enumerate(values):
        is_nan = isinstance(value, float | np.floating) and np.isnan(value)
        if value is None or is_nan or (isinstance(value, str) and value == ""):
            return position
    return None


def _missing(column: Any) -> Any:
    """Tell which values of a plain Arrow column are missing, as `first_missing` does."""
    found = column.is_null(nan_is_null=True)
    if pa.types.is_string(column.type):
        found = compute.or_(found, compute.equal(column, "").fill_null(False))
    return found


def _first_true(mask: Any) -> int | None:
    found: AnyArray = mask.to_numpy(zero_copy_only=False) if len(mask) else np.empty(0, bool)
    return int(np.argmax(found)) if found.any() else None


def _require_present(chunk: Chunk, columns: Columns, name: str, missing: Any) -> None:
    row = _first_true(missing.combine_chunks())
    if row is None:
        return
    named = ("id", "time", "label", "groups")
    role = {getattr(columns, role): role for role in named}[name]
    place = _place_in_series(chunk, columns, row)
    raise DataError(f"{place}: {name!r} ({role}) is missing; fill it in or drop the row")


def identifiers(rows: Any, columns: Columns) -> Any:
    """Return the column of identifiers of rows as they were read."""
    if columns.id_columns:
        return joined_identifier(rows, columns.id_columns)
    return plain_column(rows[columns.id])


def _place_in_series(chunk: Chunk, columns: Columns, row: int) -> str:
    id = None if columns.id is None else identifiers(chunk.rows, columns)[row].as_py()
    return chunk.place(row) if id is None or id == "" else f"{chunk.place(row)} (series {id!r})"
