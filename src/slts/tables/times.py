"""Times as text, and series on a regular time grid."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.batch import offsets_of
from slts.tables.columns import INEXACT

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

# How text is read as time, with an example.
TIME_FORMS = {
    "number": "0.5",
    "timestamp": "2024-01-31 12:00:00",
    "zoned": "2024-01-31 12:00:00Z",
}
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "h": 3.6e12}
# Dates that are clear but not ISO 8601: 2024/01/31 and 31.01.2024.
_OTHER_DATES = {
    r"^(\d{4})/(\d\d)/(\d\d)": r"\1-\2-\3",
    r"^(\d\d)\.(\d\d)\.(\d{4})": r"\3-\2-\1",
}
# Largest number of steps of the grid, in rows of the table: a smaller interval is a mistake.
_MOST_STEPS = 1000
# Largest rounding error of a time, in steps.
_TOLERANCE = 1e-6


def parse_times(column: Any, form: str) -> Any:
    """Read text as numbers or timestamps; raise `pyarrow.ArrowInvalid` for any other text.

    Integers that float64 cannot represent, such as nanoseconds since 1970, stay integers.
    """
    if form == "number":
        column = compute.utf8_trim_whitespace(column)
        numbers = column.cast(pa.float64())
        largest = compute.max(compute.abs(numbers)).as_py() or 0.0
        return column.cast(pa.int64()) if INEXACT <= largest < math.inf else numbers
    for pattern, written in _OTHER_DATES.items():
        column = compute.replace_substring_regex(column, pattern, written)
    return column.cast(pa.timestamp("ns", "UTC" if form == "zoned" else None))


def time_form(column: Any) -> str | None:
    """Return how the first value of a text column is read as time; None if it is none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from slts.tables.times import time_form
    >>> time_form(pa.array(["2024-03-01 00:00:03.25"])), time_form(pa.array(["01.03.2024 12:30"]))
    ('timestamp', 'timestamp')
    >>> time_form(pa.array(["3/1/2024"]))
    """
    present = column.filter(compute.not_equal(column, "").fill_null(False))[:1]
    return next((f for f in TIME_FORMS if len(present) and _has_form(present, f)), None)


def _has_form(column: Any, form: str) -> bool:
    try:
        parse_times(column, form)
    except pa.ArrowInvalid:
        return False
    return True


def first_other_time(column: Any, form: str) -> int:
    """Return the first row whose text does not have a form."""
    return next(k for k in range(len(column)) if not _has_form(column[k : k + 1], form))


def grid_step(every: str, source: str, *, timestamps: bool) -> float:
    """Return the step of a time grid: in nanoseconds for timestamps, else in the unit of the time.

    Examples
    --------
    >>> from slts.tables.times import grid_step
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
    >>> from slts.tables.times import same_step
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
