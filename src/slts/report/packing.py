"""Arrays, paths, times and numbers in the short form in which the page holds them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray

# More steps are not legible in a picture as wide as the page.
MOST_STEPS = 120
# One less than the largest integer: preserving sums can increase an entry by one.
_LARGEST = {8: 126, 16: 32766}


def pack(array: Any, bits: int = 16) -> str:
    """Write an array as integers with a scale; the least integer stands for a missing value.

    The sum of any run of entries is off by at most one unit.

    Parameters
    ----------
    array
        An array of any shape; it is flattened.
    bits
        8 or 16. The unit is the largest entry divided by 126 or 32766.

    Returns
    -------
    str
        Bits, scale and the integers in base64, little endian. The page's script reads it.
    """
    flat = np.asarray(array, dtype=np.float64).ravel()
    missing = np.isnan(flat)
    flat = np.where(missing, 0.0, flat)
    peak = float(np.abs(flat).max(initial=0.0))
    # The scale has few digits. Rounding it up keeps the peak within the integers.
    scale = rounded(peak / _LARGEST[bits] * (1 + 1e-5), 6) if peak > 0 else 0.0
    # Differences of rounded running sums preserve the sums.
    running = np.rint(np.cumsum(flat / (scale or 1.0)))
    integers = np.diff(running, prepend=0.0).astype(f"<i{bits // 8}")
    integers[missing] = -(2 ** (bits - 1))
    return f"{bits} {scale} {base64.b64encode(integers.tobytes()).decode()}"


def moves(path: IntArray) -> str:
    """Write a path as digits: 3 is a step of both series, 2 of the first only, 1 of the second."""
    text = ""
    for di, dj in np.diff(path, axis=0).tolist():
        both = min(di, dj)
        text += "3" * both + "2" * (di - both) + "1" * (dj - both)
    return text


def rounded(values: Any, digits: int = 4) -> Any:
    """Round to significant digits: a number to a float, an array to nested lists."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return float(f"{array:.{digits}g}")
    return [rounded(row, digits) for row in array]


class Bins:
    """The steps of one series in at most `MOST_STEPS` bins of consecutive steps.

    Attributes
    ----------
    count
        Number of bins.
    of_step
        The bin of every step; it starts at 0 and increases by at most one.
    first
        First step of every bin.
    """

    def __init__(self, n_steps: int) -> None:
        self.count = min(n_steps, MOST_STEPS)
        self.of_step: IntArray = np.arange(n_steps) * self.count // n_steps
        self.first: IntArray = np.searchsorted(self.of_step, np.arange(self.count))

    def sample(self, rows: FloatArray) -> FloatArray:
        """The first row of every bin, shape (bins, ...)."""
        return rows[self.first]

    def sums(self, terms: FloatArray) -> FloatArray:
        """Sums over the steps of every bin, along the first axis. The total does not change."""
        return np.asarray(np.add.reduceat(terms, self.first, axis=0))


def bin_path(path: IntArray, series: Bins, other: Bins) -> IntArray:
    """Map the steps of a path to bins, from the first bins to the last ones.

    A model that averages neighbouring steps has paths with fewer steps than the series. Such a path
    is spread over the whole series.
    """
    columns = []
    for steps, bins in zip(path.T, (series, other), strict=True):
        spread = steps * len(bins.of_step) // (int(steps[-1]) + 1)
        columns.append(np.append(bins.of_step[spread], bins.count - 1))
    return np.column_stack(columns)


def clock(times: AnyArray | None, bins: Bins) -> dict[str, Any] | None:
    """First time of a series, a number or a date, and the time or seconds that pass after it.

    ``passed`` has the first step of every bin, then the last step. None without times.
    """
    if times is None:
        return None
    passed, start = times - times[0], times[0]
    if times.dtype.kind == "M":
        passed = passed / np.timedelta64(1, "s")
        start = str(np.datetime_as_string(start, unit="ms"))
    else:
        start = float(start)
    drawn = passed[np.append(bins.first, len(times) - 1)]
    return {"start": start, "span": float(passed[-1]), "passed": pack(drawn)}
