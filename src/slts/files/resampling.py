"""Rows of a table in long form, resampled on a regular grid of time."""

from __future__ import annotations

from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.columns import Columns
from slts.columns.facts import SeriesRows
from slts.columns.rows import grid_step
from slts.errors import DataError
from slts.extras import LazyModule

pa: Any = LazyModule("pyarrow", "io")

# Largest number of steps of the grid, in rows of the table: a smaller distance is a mistake.
_MOST_STEPS = 1000
# Largest rounding error of a time, in steps.
_TOLERANCE = 1e-6


def on_grid(rows: Any, columns: Columns) -> tuple[Any, IntArray]:
    """Interpolate the channels of every series linearly, from its first time in equal steps.

    Parameters
    ----------
    rows
        Checked rows with all steps of their series, in any order.
    columns
        Their roles; `every` is the distance of the steps.

    Returns
    -------
    rows, starts
        The steps on the grid, and the row at which each series starts. Rows that are an error, such
        as times that are repeated in a series, are returned unchanged: assembly explains it.
    """
    assert columns.every is not None
    ids = rows[columns.id].combine_chunks().dictionary_encode()
    codes: IntArray = ids.indices.to_numpy()
    times, unit = _numbers(rows[columns.time].to_numpy(), columns)
    order: IntArray = np.lexsort((times, codes))
    codes, times = codes[order], times[order]
    same = codes[1:] == codes[:-1]
    if _is_an_error(rows, columns, order, codes, times):
        return rows, np.flatnonzero(np.append(True, np.diff(ids.indices.to_numpy()) != 0))
    starts = np.flatnonzero(np.append(True, ~same))
    step = grid_step(columns.every, moments=unit is not None)
    grids = _grids(times, starts, step, columns)
    lengths = [len(grid) for grid in grids]
    bounds = [*starts.tolist(), len(times)]
    # Rounding must not make the last step missing.
    tolerance = _TOLERANCE * step
    found: dict[str, Any] = {}
    for name in rows.column_names:
        if name == columns.time:
            values = np.concatenate(grids)
            found[name] = pa.array(values) if unit is None else pa.array(values.astype(unit))
        elif name in columns.channels:
            channel = rows[name].to_numpy()[order]
            found[name] = np.concatenate(
                [
                    _interpolated(grid - times[a], times[a:b] - times[a], channel[a:b], tolerance)
                    for grid, a, b in zip(grids, bounds[:-1], bounds[1:], strict=True)
                ]
            )
        else:
            found[name] = rows[name].take(np.repeat(order[starts], lengths))
    return pa.table(found), np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)


def _numbers(times: AnyArray, columns: Columns) -> tuple[AnyArray, str | None]:
    """Return times as numbers, moments as nanoseconds; and the type of moments."""
    if times.dtype.kind in "iuf":
        return times, None
    if times.dtype.kind not in "Mm":
        raise DataError(f"every: the time {columns.time!r} has no dates, and cannot be resampled")
    unit = "datetime64[ns]" if times.dtype.kind == "M" else "timedelta64[ns]"
    return times.astype(unit).astype(np.int64), unit


def _is_an_error(
    rows: Any, columns: Columns, order: IntArray, series: IntArray, times: AnyArray
) -> bool:
    """Whether times are repeated, or a column varies within a series that must not."""
    same = series[1:] == series[:-1]
    for name in (columns.label, columns.groups):
        if name in rows.column_names:
            codes = rows[name].combine_chunks().dictionary_encode().indices.to_numpy()
            if (same & (np.diff(codes[order]) != 0)).any():
                return True
    for name in columns.constant:
        if len(SeriesRows(series).varying(rows[name].to_numpy()[order])):
            return True
    unsorted = columns.rising and (np.diff(order)[same] < 0).any()
    return bool(unsorted or (same & (np.diff(times) == 0)).any())


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


def _grids(
    times: AnyArray, starts: IntArray, step: float, columns: Columns
) -> list[FloatArray | IntArray]:
    ends = np.append(starts[1:], len(times)) - 1
    # Rounding must not remove the last step.
    counts = np.floor((times[ends] - times[starts]) / step + _TOLERANCE).astype(np.int64) + 1
    if counts.sum() > _MOST_STEPS * len(times):
        raise DataError(
            f"every={columns.every} is too small for the time {columns.time!r}: {len(times):,} "
            f"rows would become {counts.sum():,}"
        )
    whole = times.dtype.kind in "iu" and step == int(step)
    exact = int(step) if whole else step
    return [times[a] + np.arange(n) * exact for a, n in zip(starts, counts, strict=True)]
