"""Parts of tables, read in batches: rows are sorted, and assembled into series.

In long form, chunks end inside series, so the last series of a chunk waits for the next chunk. All
other series are complete, because the rows of a series must be contiguous: an identifier that is
repeated later is an error. Only a part that is read whole may have its rows in any order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.batch import SeriesBatch, names_of, offsets_of, plain_times
from slts.series.dataset import Columns, Dataset, call
from slts.series.values import trim_padding
from slts.tables.rows import (
    FILE_ID,
    Rows,
    checked_rows,
    first_true,
    first_wrong,
    place_in_series,
)

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

# Largest size of a table in long form that is one part and is read whole.
SMALL_BYTES = 64 * 2**20
# Approximate size of the values of a batch, whatever the number of series in it. A larger series
# is a batch of its own.
BATCH_BYTES = 1 << 24
# Largest number of rows in long form that are read at once; fewer if there are many channels.
_CHUNK_ROWS = 1 << 16
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "h": 3.6e12}
# Largest number of steps of the grid, in rows of the table: a smaller interval is a mistake.
_MOST_STEPS = 1000
# Largest rounding error of a time, in steps.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class TablePart:
    """A part of a table that can be read on its own.

    Attributes
    ----------
    name, source
        Names of the part and of the whole table, for messages.
    columns
        Role of each column.
    whole
        Whether all rows are read before series are assembled, so that rows may have any order.
    """

    name: str
    source: str
    columns: Columns
    whole: bool

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
        for rows in self.chunks(self.columns.used(labels=labels), n_rows):
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
        for rows in self.chunks(columns.used(labels=labels), batch_size):
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


class Steps(NamedTuple):
    """Values of all steps, series by series in the order of time, and bounds of the series."""

    values: FloatArray
    offsets: IntArray
    times: AnyArray | None = None
    notes: tuple[str, ...] = ()


def steps_of(rows: Rows, checked: Any, columns: Columns) -> Steps:
    """Return the steps of rows, which `checked_rows` has checked, in the form of the table."""
    if columns.form == "long":
        return _long_steps(checked, *_series(checked["id"], whole=True), columns, rows.origin.name)
    if columns.form == "wide":
        channels = [checked[str(c)].to_numpy() for c in range(len(columns.channels))]
        values = np.stack(channels, axis=1).reshape(-1, 1)
        return Steps(values, len(channels) * np.arange(len(rows) + 1))
    arrays, lengths = _flat_lists(rows, columns)
    values = np.ascontiguousarray(np.stack([arrays[name] for name in columns.channels], axis=1))
    return Steps(values, offsets_of(lengths), arrays.get(str(columns.time)))


def read_series_of_rows(rows: Rows, columns: Columns, source: str, *, labels: bool) -> Dataset:
    """Read series, one per row: wide form and list form."""
    checked = checked_rows(rows, columns, labels=labels)
    steps = steps_of(rows, checked, columns)

    def place(row: int) -> str:
        return place_in_series(rows, columns, row)

    return _dataset(steps, checked, np.arange(len(rows)), columns, source, place, rows.share)


def assemble(
    checked: Any, columns: Columns, source: str, *, share: float | None, whole: bool = False
) -> Dataset:
    """Make series from checked rows in long form, with all rows of the series.

    The rows of a series are contiguous, unless a table is read `whole`. Series have the order of
    their first rows.
    """
    codes, first = _series(checked["id"], whole=whole)
    for role in (role for role in ("label", "groups") if role in checked.column_names):
        column, each = checked[role], checked[role].take(first)
        row = first_true(compute.not_equal(column, each.take(codes)))
        if row is not None:
            raise DataError(
                f"{source}: {getattr(columns, role)!r} ({role}) varies in series "
                f"{checked['id'][row].as_py()!r}: {each[int(codes[row])].as_py()!r} and "
                f"{column[row].as_py()!r}. It must be the same in all rows of a series."
                f"{_several_ids(columns)}"
            )
    steps = _long_steps(checked, codes, first, columns, source)

    def place(series: int) -> str:
        return f"{source}: series {checked['id'][int(first[series])].as_py()!r}"

    return _dataset(steps, checked, first, columns, source, place, share)


def _several_ids(columns: Columns) -> str:
    if columns.id == FILE_ID:
        return ""
    names = columns.id_columns or (str(columns.id),)
    return (
        f" If rows with equal {columns.id!r} are several series, name all columns that identify "
        f"one: {call('id', *names, '...')}."
    )


def _dataset(
    steps: Steps,
    checked: Any,
    first: IntArray,
    columns: Columns,
    source: str,
    place: Callable[[int], str],
    share: float | None,
) -> Dataset:
    """Make a data set; steps without values at the ends of series are removed.

    `first` is a row of every series, and `place` names a series for messages.
    """
    values, offsets, times, notes = steps
    if columns.every is not None:
        assert times is not None
        values, times, offsets = on_grid(values, times, offsets, columns.every, source)
    of_series = {
        role: _plain_array(checked[role].take(first))
        for role in ("id", "label", "groups")
        if role in checked.column_names
    }
    ids, channels = of_series.get("id"), columns.channel_names
    names = None if ids is None else names_of(ids, columns.id)
    known = None if times is None else plain_times(times)
    series = trim_padding(SeriesBatch.from_checked(values, offsets, channels, names, known))
    missing = np.isnan(series.values).all(axis=1)
    empty = np.logical_and.reduceat(missing, series.offsets[:-1])
    if empty.any():
        raise DataError(f"{place(int(np.argmax(empty)))}: the series has no values. Leave it out")
    labels, groups = of_series.get("label"), of_series.get("groups")
    return Dataset(series, labels, ids, source, columns, notes, share, groups)


def _plain_array(column: Any) -> AnyArray:
    """Convert an Arrow column without missing values; text becomes an array of text."""
    array: AnyArray = column.to_numpy()
    return np.asarray(array.tolist()) if array.dtype == object else array


# -- One row per step


def _series(ids: Any, *, whole: bool) -> tuple[IntArray, IntArray]:
    """Return the number of the series of every row, and the first row of every series."""
    if whole:
        ids = ids.combine_chunks()
        codes: IntArray = ids.dictionary_encode().indices.to_numpy()
        return codes, np.unique(codes, return_index=True)[1]
    first = series_starts(ids)
    return np.repeat(np.arange(len(first)), np.diff(np.append(first, len(ids)))), first


def series_starts(ids: Any) -> IntArray:
    """Return the rows at which another series starts."""
    ids = ids.combine_chunks()
    new = compute.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    return np.flatnonzero(np.append(True, new))


def _long_steps(
    checked: Any, codes: IntArray, first: IntArray, columns: Columns, source: str
) -> Steps:
    """Sort rows by series and time."""
    offsets = offsets_of(np.bincount(codes))
    is_mixed = bool((np.diff(codes) < 0).any())
    order: Any = np.argsort(codes, kind="stable") if is_mixed else slice(None)
    times, notes = None, tuple[str, ...]()
    if columns.time is not None:
        times = checked["time"].to_numpy()
        rises = times[order][1:] > times[order][:-1]
        if not (rises | (np.diff(codes[order]) != 0)).all():
            ids = checked["id"].take(first)
            order = _sorted_by_time(codes, times, ids, columns, source)
            notes = (f"steps were sorted by {columns.time!r}: the rows are not in order of time",)
        times = times[order]
    elif is_mixed:
        raise DataError(
            f"{source}: rows of different series are mixed, and there is no time column, so that "
            f"the order of the steps is not known. Name the time: time='...' (--time ...). If the "
            f"rows of every series are in order, sort the table by {columns.id!r} first"
        )
    values = np.empty((len(codes), len(columns.channels)))
    for c in range(len(columns.channels)):
        values[:, c] = checked[str(c)].to_numpy()[order]
    return Steps(values, offsets, times, notes)


def _sorted_by_time(
    codes: IntArray, times: AnyArray, ids: Any, columns: Columns, source: str
) -> IntArray:
    """Return the order of rows by series and time, which must differ within a series."""
    order: IntArray = np.lexsort((times, codes))
    ordered = times[order]
    twice = (np.diff(codes[order]) == 0) & (ordered[1:] == ordered[:-1])
    if twice.any():
        row = order[int(np.argmax(twice))]
        raise DataError(
            f"{source}: time {times[row]!s} occurs twice in series "
            f"{ids[int(codes[row])].as_py()!r}. If another column names channels, as after melt, "
            f"give every channel a column: table.pivot(...) in pandas.{_several_ids(columns)} "
            f"Otherwise drop or average the duplicates"
        )
    return order


# -- One row per series


def _flat_lists(rows: Rows, columns: Columns) -> tuple[Mapping[str, AnyArray], IntArray]:
    """Return the concatenated lists of channels and times, and the number of steps of each row."""
    names = [*columns.channels, *([columns.time] if columns.time is not None else [])]
    flat, lengths = {}, None
    for name in names:
        column = rows.table[name].combine_chunks()
        counts: IntArray = column.value_lengths().fill_null(0).to_numpy().astype(np.int64)
        lengths = counts if lengths is None else lengths
        wrong = (counts == 0) | (counts != lengths)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{place_in_series(rows, columns, row)}: {name!r} has {counts[row]} steps and "
                f"{names[0]!r} has {lengths[row]}: all lists of a series must have the same number "
                f"of steps, at least one. Drop the row, or correct it"
            )
        flat[name] = _flat_values(rows, columns, name, column.flatten(), counts)
    assert lengths is not None
    return flat, lengths


def _flat_values(
    rows: Rows, columns: Columns, name: str, values: Any, lengths: IntArray
) -> AnyArray:
    """Return the values of lists; infinite ones and times that do not rise are errors."""
    bounds = np.cumsum(lengths)
    if name == columns.time:
        times: AnyArray = values.to_numpy(zero_copy_only=False)
        starts = np.zeros(len(times), bool)
        starts[bounds[:-1]] = True
        wrong: AnyArray = ~(times[1:] > times[:-1]) & ~starts[1:]
        if wrong.any():
            row = int(np.searchsorted(bounds, int(np.argmax(wrong)) + 1, side="right"))
            place = place_in_series(rows, columns, row)
            raise DataError(f"{place}: the times in {name!r} do not increase: sort the lists")
        return times
    numbers: FloatArray = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    position = first_wrong(values, numbers)
    if position is not None:
        row = int(np.searchsorted(bounds, position, side="right"))
        raise DataError(
            f"{place_in_series(rows, columns, row)}: step {position - bounds[row] + lengths[row]} "
            f"of {name!r} is {values[position].as_py()}, which is infinite or has more digits than "
            f"float64 represents. Correct the value, or drop the series"
        )
    return numbers


# -- Steps on a time grid


def grid_step(every: str, source: str, *, timestamps: bool) -> float:
    """Return the step of a time grid: in nanoseconds for timestamps, else in the unit of the time.

    Examples
    --------
    >>> from slts.tables.assembly import grid_step
    >>> grid_step("20ms", "a.csv", timestamps=True), grid_step("0.5", "b.csv", timestamps=False)
    (20000000.0, 0.5)
    """
    number, unit = _number_and_unit(every)
    example = "a duration such as 20ms, 1s or 5min" if timestamps else "a number such as 0.02"
    step = number * (_NANOSECONDS.get(unit, math.nan) if timestamps else 1.0)
    if not 0.0 < step < math.inf or (unit and not timestamps):
        held = "holds timestamps" if timestamps else "holds numbers, whose unit is not known"
        raise DataError(
            f"{source}: every (--every) must be {example}, because the time {held}; got {every}"
        )
    return step


def same_step(one: str | None, other: str | None) -> bool:
    """Whether two intervals are equal, whatever their units; None is no grid.

    Examples
    --------
    >>> from slts.tables.assembly import same_step
    >>> same_step("20ms", "0.02s"), same_step("0.02", "0.02s"), same_step(None, "1")
    (True, False, False)
    """
    if one is None or other is None:
        return one is other
    (a, unit), (b, other_unit) = _number_and_unit(one), _number_and_unit(other)
    sizes = a * _NANOSECONDS.get(unit, 1), b * _NANOSECONDS.get(other_unit, 1)
    return bool(unit) == bool(other_unit) and math.isclose(*sizes, rel_tol=1e-9)


def _number_and_unit(every: str) -> tuple[float, str]:
    match = re.fullmatch(r"\s*(\d*\.?\d+(?:e[+-]?\d+)?)\s*([a-z]*)\s*", every)
    return (0.0, "") if match is None else (float(match[1]), match[2])


def on_grid(
    values: FloatArray, times: AnyArray, offsets: IntArray, every: str, source: str
) -> tuple[FloatArray, AnyArray, IntArray]:
    """Interpolate the channels of every series linearly, from its first time in equal steps.

    The times increase within each series.
    """
    unit = None
    if times.dtype.kind in "Mm":
        unit = f"{'datetime' if times.dtype.kind == 'M' else 'timedelta'}64[ns]"
        times = times.astype(unit).astype(np.int64)
    step = grid_step(every, source, timestamps=unit is not None)
    starts, stops = offsets[:-1], offsets[1:]
    # Rounding must not remove the last step.
    lengths = np.floor((times[stops - 1] - times[starts]) / step + _TOLERANCE).astype(np.int64) + 1
    if lengths.sum() > _MOST_STEPS * len(times):
        raise DataError(
            f"{source}: every={every} (--every {every}) is too small for these times: "
            f"{len(times):,} rows would become {lengths.sum():,}"
        )
    is_whole = times.dtype.kind in "iu" and step < 2.0**62 and step == int(step)
    passed = [np.arange(n) * (int(step) if is_whole else step) for n in lengths]
    series = [
        np.column_stack(
            [
                _interpolated(grid, times[a:b] - times[a], channel, _TOLERANCE * step)
                for channel in values[a:b].T
            ]
        )
        for grid, a, b in zip(passed, starts, stops, strict=True)
    ]
    grids = np.concatenate([times[a] + grid for a, grid in zip(starts, passed, strict=True)])
    if unit is not None:
        grids = grids.astype(unit)
    return np.ascontiguousarray(np.concatenate(series)), grids, offsets_of(lengths)


def _interpolated(
    grid: FloatArray, times: FloatArray, values: FloatArray, tolerance: float
) -> FloatArray:
    """Interpolate between observed values; before the first and after the last, they are NaN."""
    observed, result = ~np.isnan(values), np.full(len(grid), np.nan)
    if observed.any():
        known = times[observed]
        inside = (grid >= known[0] - tolerance) & (grid <= known[-1] + tolerance)
        result[inside] = np.interp(grid[inside], known, values[observed])
    return result
