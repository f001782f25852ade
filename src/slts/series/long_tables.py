"""Tables in long form, one row per step: rows are checked, sorted and assembled into series.

Data frames in memory and the rows of files take the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.columns import Columns
from slts.columns.facts import SeriesRows
from slts.columns.rows import Chunk, TimeForm, grid_step, parse_times, plain_column
from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.batch import SeriesBatch, offsets_of
from slts.series.dataset import Dataset
from slts.series.naming import names_of, plain_times

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

_TIME_EXAMPLES: dict[TimeForm, str] = {
    "number": "0.5",
    "timestamp": "2024-01-31 12:00:00",
    "zoned": "2024-01-31 12:00:00Z",
    "clock": "12:00:00",
}
# How to overrule a guess.
_HOW_TO_OVERRIDE = "name the channels with --channels (channels=), and the time with --time (time=)"
# Largest number of steps of the grid, in rows of the table: a smaller distance is a mistake.
_MOST_STEPS = 1000
# Largest rounding error of a time, in steps.
_TOLERANCE = 1e-6
# In nanoseconds.
_QUARTER_DAY = 6 * 3600 * 10**9


def role_columns(chunk: Chunk, columns: Columns, *, labels: bool) -> dict[str, Any]:
    """Return identifiers, times, labels and groups by their roles; none may be missing."""
    found = {}
    for name, role in columns.roles(labels=labels).items():
        is_id = role == "id"
        column = columns.identifiers(chunk.rows) if is_id else plain_column(chunk.rows[name])
        missing = column.is_null(nan_is_null=True)
        if pa.types.is_string(column.type):
            missing = compute.or_(missing, compute.equal(column, "").fill_null(False))
        row = first_true(missing)
        if row is not None:
            place = place_in_series(chunk, columns, row)
            raise DataError(f"{place}: {name!r} ({role}) is missing: fill it in or drop the row")
        found[role] = column
    return found


def first_true(mask: Any) -> int | None:
    """Return the first row of an Arrow mask that is true."""
    found: AnyArray = mask.to_numpy(zero_copy_only=False) if len(mask) else np.empty(0, bool)
    return int(np.argmax(found)) if found.any() else None


def place_in_series(chunk: Chunk, columns: Columns, row: int) -> str:
    """Return file, row and, if there is one, identifier."""
    id = None if columns.id is None else columns.identifiers(chunk.rows)[row].as_py()
    return chunk.place(row) if id is None or id == "" else f"{chunk.place(row)} (series {id!r})"


def checked_rows(chunk: Chunk, columns: Columns, *, labels: bool) -> Chunk:
    """Raise an error for infinite values and for rows without id, time or label.

    In the result, channels are float64 and other columns have the type of `plain_type`.
    """
    roles = role_columns(chunk, columns, labels=labels)
    if columns.time is not None:
        roles["time"] = _read_times(chunk, columns, roles["time"])
    found = {name: roles[role] for name, role in columns.roles(labels=labels).items()}
    for name in (*columns.channels, *columns.constant):
        found[name] = chunk.rows[name].cast(pa.float64(), safe=False)
        infinite = np.isinf(found[name].to_numpy())
        if name in columns.channels and infinite.any() and not columns.skip:
            place = place_in_series(chunk, columns, int(np.argmax(infinite)))
            raise DataError(f"{place}: {name!r} is infinite: clip it or drop the series")
    return replace(chunk, rows=pa.table(found))


def _read_times(chunk: Chunk, columns: Columns, column: Any) -> Any:
    """Read times; raise an error if they are not finite, or not as in the first rows."""
    is_text, form = pa.types.is_string(column.type), columns.time_form
    expected = "finite numbers or timestamps"
    if form is not None:
        expected = f"text such as {_TIME_EXAMPLES[form]}"
    if is_text != (form is not None):
        raise DataError(
            f"{chunk.place(0)}: {columns.time!r} (time) holds {column[0].as_py()!r}, expected "
            f"{expected}, as in the first rows"
        )
    try:
        times = column if form is None else parse_times(column, form)
        is_float = pa.types.is_floating(times.type)
        row = first_true(compute.invert(compute.is_finite(times))) if is_float else None
        if row is None:
            return times
    except pa.ArrowInvalid:
        assert form is not None
        row = next(k for k, text in enumerate(column.to_pylist()) if not _is_time(text, form))
    place = place_in_series(chunk, columns, row)
    raise DataError(
        f"{place}: {columns.time!r} (time) holds {column[row].as_py()!r}, expected {expected}"
    )


def _is_time(text: str, form: TimeForm) -> bool:
    try:
        parse_times(pa.array([text]), form)
    except pa.ArrowInvalid:
        return False
    return True


def assemble(
    rows: Any, columns: Columns, source: str, *, labels: bool, share: float | None = None
) -> Dataset:
    """Make series from checked rows in any order, which hold all steps of their series.

    Series have the order of their first rows. Raises an error if rows contradict what was guessed
    from the first rows, or if a label or a group varies within a series.
    """
    encoded = rows[columns.id].combine_chunks().dictionary_encode()
    ids, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    steps, offsets = SeriesRows(codes), offsets_of(np.bincount(codes))
    of_series: dict[str, AnyArray] = {}
    for name, role in columns.roles(labels=labels).items():
        if role in ("label", "groups"):
            column, each = rows[name], rows[name].take(steps.order[offsets[:-1]])
            row = first_true(compute.not_equal(column, each.take(codes)))
            if row is not None:
                known = columns.id_columns or (columns.id,)
                raise DataError(
                    f"{source}: {name!r} ({role}) varies in series {ids[codes[row]]!r}: "
                    f"{each[int(codes[row])].as_py()!r} and {column[row].as_py()!r}. It must be "
                    f"the same in all rows of a series. If rows with equal {columns.id!r} belong "
                    f"to several series, name all columns that identify one: "
                    f"{' '.join(f'--id {name}' for name in known)} --id ... "
                    f"(id=[{', '.join(map(repr, known))}, ...])"
                )
            of_series[role] = plain_array(each)
    for name in columns.constant:
        varying = steps.varying(rows[name].to_numpy())
        if len(varying):
            raise DataError(
                f"{source}: column {name!r} is constant in every series of the first rows, so it "
                f"is not a channel, but it varies in series {ids[varying[0]]!r}: {_HOW_TO_OVERRIDE}"
            )
    # Rows that are in order already are not copied.
    is_mixed = bool((np.diff(codes) < 0).any())
    order: Any = steps.order if is_mixed else slice(None)
    times, notes = None, tuple[str, ...]()
    if columns.time is None and is_mixed:
        notes = (
            "rows of different series are mixed, and there is no time column: the steps of a "
            "series are in the order of its rows",
        )
    if columns.time is not None:
        times = rows[columns.time].to_numpy()
        unordered = steps.not_increasing(times)
        if len(unordered) and columns.rising:
            raise DataError(
                f"{source}: column {columns.time!r} increases in every series of the first rows, "
                f"so it is the time, but it does not increase in series {ids[unordered[0]]!r}: "
                f"{_HOW_TO_OVERRIDE}"
            )
        if len(unordered):
            _raise_if_past_midnight(rows[columns.time], steps, columns, ids, source)
            order = sorted_rows(codes, times, ids, source)
            notes = (f"steps were sorted by {columns.time!r}: the rows are not in order of time",)
        times = times[order]
    values = np.empty((len(codes), len(columns.channels)))
    for c, name in enumerate(columns.channels):
        values[:, c] = rows[name].to_numpy()[order]
    if columns.every is not None:
        assert times is not None
        values, times, offsets = _on_grid(values, times, offsets, columns, source)
    series = SeriesBatch.from_checked(
        values, offsets, columns.channel_names, names_of(ids, columns.id),
        None if times is None else plain_times(times),
    )  # fmt: skip
    return Dataset(
        series, of_series.get("label"), np.asarray(ids), source, columns, notes, share,
        groups=of_series.get("groups"),
    )  # fmt: skip


def _raise_if_past_midnight(
    times: Any, steps: SeriesRows, columns: Columns, ids: Sequence[object], source: str
) -> None:
    """Raise an error if times of day start again within a series: they do not order its steps.

    A time that falls by less than a quarter of a day may as well be in a row that is not in order.
    """
    if pa.types.is_time(times.type):
        times = times.cast(pa.time64("ns"))
    elif columns.time_form != "clock":
        return
    again = steps.starting_again(times.cast(pa.int64()).to_numpy(), _QUARTER_DAY)
    if len(again):
        raise DataError(
            f"{source}: the times of day {columns.time!r} start again within series "
            f"{ids[again[0]]!r}, as at midnight, so they do not order its steps. Add the dates, "
            f"name another column with --time (time=), or drop the column if the rows are in "
            f"order. If all times are of one day, sort the rows"
        )


def sorted_rows(codes: IntArray, times: AnyArray, ids: Sequence[object], where: str) -> IntArray:
    """Return the order of rows by series and time, which must differ within a series.

    Parameters
    ----------
    codes, times
        Number of the series, and time, of every row.
    ids
        Identifiers of the series, for messages.
    where
        Name of the table, for messages.
    """
    if times.dtype.kind in "fmM" and not np.isfinite(times).all():
        row = int(np.argmin(np.isfinite(times)))
        raise DataError(f"{where}: the time in row {row} is {times[row]!s}: drop the row")
    try:
        ranks: IntArray = np.unique(times, return_inverse=True)[1]
    except TypeError as error:
        raise DataError(f"{where}: the times cannot be sorted: {error}") from error
    order: IntArray = np.lexsort((ranks, codes))
    twice = (np.diff(codes[order]) == 0) & (np.diff(ranks[order]) == 0)
    if twice.any():
        row = order[int(np.argmax(twice))]
        raise DataError(
            f"{where}: time {times[row]!s} occurs twice in the series with id {ids[codes[row]]!r}: "
            "drop or average the duplicates. If this id has several series, name all columns that "
            "identify one: --id subject --id trial (id=['subject', 'trial'])"
        )
    return order


def plain_array(column: Any) -> AnyArray:
    """Convert an Arrow column without missing values; text becomes an array of text."""
    found: AnyArray = column.to_numpy()
    return np.asarray(found.tolist()) if found.dtype == object else found


# -- Regular time grid


def _on_grid(
    values: FloatArray, times: AnyArray, offsets: IntArray, columns: Columns, source: str
) -> tuple[FloatArray, AnyArray, IntArray]:
    """Interpolate the channels of every series linearly, from its first time in equal steps.

    The times increase within each series.
    """
    unit = None
    if times.dtype.kind in "Mm":
        unit = f"{'datetime' if times.dtype.kind == 'M' else 'timedelta'}64[ns]"
        times = times.astype(unit).astype(np.int64)
    elif times.dtype.kind not in "iuf":
        raise DataError(
            f"{source}: --every (every=) cannot resample the time {columns.time!r}, which has no "
            f"dates"
        )
    step = grid_step(str(columns.every), source, timestamps=unit is not None)
    starts, stops = offsets[:-1], offsets[1:]
    # Rounding must not remove the last step.
    lengths = np.floor((times[stops - 1] - times[starts]) / step + _TOLERANCE).astype(np.int64) + 1
    if lengths.sum() > _MOST_STEPS * len(times):
        raise DataError(
            f"{source}: --every (every=) {columns.every} is too small for the time "
            f"{columns.time!r}: {len(times):,} rows would become {lengths.sum():,}"
        )
    is_whole = times.dtype.kind in "iu" and step < 2.0**62 and step == int(step)
    passed = [np.arange(n) * (int(step) if is_whole else step) for n in lengths]
    found = [
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
    return np.ascontiguousarray(np.concatenate(found)), grids, offsets_of(lengths)


def _interpolated(
    grid: FloatArray, times: FloatArray, values: FloatArray, tolerance: float
) -> FloatArray:
    """Interpolate between observed values; before the first and after the last, they are missing.

    An infinite value is an error: it stays, at the next step.
    """
    observed, found = np.isfinite(values), np.full(len(grid), np.nan)
    if observed.any():
        known = times[observed]
        inside = (grid >= known[0] - tolerance) & (grid <= known[-1] + tolerance)
        found[inside] = np.interp(grid[inside], known, values[observed])
    infinite = np.searchsorted(grid, times[np.isinf(values)])
    found[np.minimum(infinite, len(grid) - 1)] = np.inf
    return found
