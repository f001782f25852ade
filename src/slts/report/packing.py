"""Arrays, paths, times and numbers in the short form in which the page holds them."""

from __future__ import annotations

import base64
import string
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray

# More steps are not legible in a picture as wide as the page.
MOST_STEPS = 120
# One less than the largest integer: preserving sums can increase an entry by one.
_LARGEST = {8: 126, 16: 32766}
_ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"


def pack(arrays: Iterable[FloatArray], *, bits: int) -> dict[str, Any]:
    """Write arrays as integers with one scale per array.

    The sum of any run of entries is off by at most one unit.

    Parameters
    ----------
    arrays
        Arrays of any shape; they are flattened.
    bits
        8 or 16. The unit is the largest entry of an array divided by 126 or 32766.

    Returns
    -------
    dict
        Sizes, scales and one base64 text, little endian. The page's script reads it.
    """
    largest = _LARGEST[bits]
    parts, scales = [], []
    for array in arrays:
        flat = np.asarray(array, dtype=np.float64).ravel()
        peak = float(np.abs(flat).max(initial=0.0))
        # The scale has few digits. Rounding it up keeps the peak within the integers.
        scale = rounded(peak / largest * (1 + 1e-5), 6) if peak > 0 else 0.0
        # Differences of rounded running sums preserve the sums.
        running = np.rint(np.cumsum(flat / (scale or 1.0)))
        parts.append(np.diff(running, prepend=0.0))
        scales.append(scale)
    return _packed(parts, scales, bits)


def pack_integers(arrays: Iterable[IntArray]) -> dict[str, Any]:
    """Write integers exactly, in the form of `pack` with as few bits as the largest needs."""
    parts = [np.asarray(array).ravel() for array in arrays]
    largest = max((int(np.abs(part).max(initial=0)) for part in parts), default=0)
    bits = next(bits for bits in (8, 16, 32) if largest < 2 ** (bits - 1))
    return _packed(parts, [1] * len(parts), bits)


def _packed(parts: list[AnyArray], scales: Sequence[float], bits: int) -> dict[str, Any]:
    data = b"".join(part.astype(f"<i{bits // 8}").tobytes() for part in parts)
    return {
        "bits": bits,
        "sizes": [part.size for part in parts],
        "scales": scales,
        "data": base64.b64encode(data).decode("ascii"),
    }


def pack_path(path: IntArray) -> str:
    """Write a path as text: three moves per base64 letter, two bits per move.

    Move 3 is a step of both series, 2 of the first only, 1 of the second only; 0 is padding.
    """
    moves: list[int] = []
    for di, dj in np.diff(path, axis=0).tolist():
        both = min(di, dj)
        moves += [3] * both + [2] * (di - both) + [1] * (dj - both)
    moves += [0] * (-len(moves) % 3)
    codes = np.array(moves, dtype=np.int64).reshape(-1, 3) @ [16, 4, 1]
    return "".join(_ALPHABET[k] for k in codes)


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


def clock(times: AnyArray) -> dict[str, Any]:
    """First and last time of a series: numbers, or a date and the seconds after it."""
    dates = times.dtype.kind == "M"
    start = np.datetime_as_string(times[0], unit="ms") if dates else float(times[0])
    return {"start": str(start) if dates else start, "span": float(_since_first(times)[-1])}


def times_of_bins(times: AnyArray, bins: Bins) -> FloatArray:
    """Time of the first step of every bin, and of the last step, since the first step."""
    return np.asarray(_since_first(times)[np.append(bins.first, len(times) - 1)])


def _since_first(times: AnyArray) -> FloatArray:
    passed = times - times[0]
    if passed.dtype.kind == "m":
        passed = passed / np.timedelta64(1, "s")
    return np.asarray(passed, dtype=np.float64)
