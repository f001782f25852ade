"""Rows of a table in long form, resampled on a regular grid of time."""

from __future__ import annotations

from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.columns import Columns
from slts.columns.rows import grid_step
from slts.errors import DataError
from slts.extras import LazyModule

pa: Any = LazyModule("pyarrow", "io")

# Largest number of steps of the grid, in rows of the table: a smaller distance is a mistake.
_MOST_STEPS = 1000


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
    if _is_an_error(rows, columns, order, same, times):
        return rows, np.flatnonzero(np.append(True, np.diff(ids.indices.to_numpy()) != 0))
    starts = np.flatnonzero(np.append(True, ~same))
    step = grid_step(columns.every, moments=unit is not None)
    grids = _grids(times, starts, step, columns)
    lengths = [len(grid) for grid in grids]
    bounds = [*starts.tolist(), len(times)]
    found: dict[str, Any] = {}
    for name in rows.column_names:
        if name == columns.time:
            values = np.concatenate(grids)
            found[name] = pa.array(values) if unit is None else pa.array(values.astype(unit))
        elif name in columns.channels:
            channel = rows[name].to_numpy()[order]
            found[name] = np.concatenate(
                [
                    np.interp(grid - times[a], times[a:b] - times[a], channel[a:b])
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
    rows: Any, columns: Columns, order: IntArray, same: AnyArray, times: AnyArray
) -> bool:
    """Whether times are repeated, or a column varies within a series that must not."""
    single = [columns.label, columns.groups, *columns.constant]
    for name in (name for name in single if name in rows.column_names):
        codes = rows[name].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
        if (same & (np.diff(codes[order]) != 0)).any():
            return True
    unsorted = columns.rising and (np.diff(order)[same] < 0).any()
    return bool(unsorted or (same & (np.diff(times) == 0)).any())


def _grids(
    times: AnyArray, starts: IntArray, step: float, columns: Columns
) -> list[FloatArray | IntArray]:
    ends = np.append(starts[1:], len(times)) - 1
    # Rounding must not remove the last step.
    counts = np.floor((times[ends] - times[starts]) / step + 1e-6).astype(np.int64) + 1
    if counts.sum() > _MOST_STEPS * len(times):
        raise DataError(
            f"every={columns.every} is too small for the time {columns.time!r}: {len(times):,} "
            f"rows would become {counts.sum():,}"
        )
    whole = times.dtype.kind in "iu" and step == int(step)
    exact = int(step) if whole else step
    return [times[a] + np.arange(n) * exact for a, n in zip(starts, counts, strict=True)]
