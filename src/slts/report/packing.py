"""Arrays, paths and numbers as short text."""

from __future__ import annotations

import base64
import string
from collections.abc import Iterable
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray

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
    parts, sizes, scales = [], [], []
    for array in arrays:
        flat = np.asarray(array, dtype=np.float64).ravel()
        peak = float(np.abs(flat).max(initial=0.0))
        # The scale has few digits. Rounding it up keeps the peak within the integers.
        scale = rounded(peak / largest * (1 + 1e-5), 6) if peak > 0 else 0.0
        # Differences of rounded running sums preserve the sums.
        running = np.rint(np.cumsum(flat / (scale or 1.0)))
        parts.append(np.diff(running, prepend=0.0).astype(f"<i{bits // 8}"))
        sizes.append(int(flat.size))
        scales.append(scale)
    data = np.concatenate(parts).tobytes() if parts else b""
    return {
        "bits": bits,
        "sizes": sizes,
        "scales": scales,
        "data": base64.b64encode(data).decode("ascii"),
    }


def pack_indices(arrays: Iterable[IntArray]) -> dict[str, Any]:
    """Write integers of at least 0 as text: as many base64 letters each as the largest needs."""
    parts = [np.asarray(array, dtype=np.int64).ravel() for array in arrays]
    flat = np.concatenate([*parts, np.empty(0, dtype=np.int64)])
    letters = 1
    while 64**letters <= flat.max(initial=0):
        letters += 1
    digits = flat[:, np.newaxis] // 64 ** np.arange(letters)[::-1] % 64
    alphabet = np.array(list(_ALPHABET))
    return {
        "letters": letters,
        "sizes": [len(part) for part in parts],
        "data": "".join(alphabet[digits.ravel()].tolist()),
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
