"""Arrays as short text: small integers, one scale per array, base64."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np

from slts._typing import FloatArray

# One less than the integers hold: a sum that is kept may push an entry up by one.
_LARGEST = {8: 126, 16: 32766}


def pack(arrays: Iterable[FloatArray], *, bits: int) -> dict[str, Any]:
    """Write arrays one after another, in units of a share of their largest entry.

    What a reader adds up, such as contributions, still gives the sum.

    Parameters
    ----------
    arrays
        Of any shapes; they are flattened.
    bits
        8 or 16; an entry is off by less than one part in 126, or 32766, of the largest.

    Returns
    -------
    dict
        Sizes, scales and one base64 text, little endian; `unpack` reverses it.
    """
    largest = _LARGEST[bits]
    parts, sizes, scales = [], [], []
    for array in arrays:
        flat = np.asarray(array, dtype=np.float64).ravel()
        peak = float(np.abs(flat).max(initial=0.0))
        # The scale is written short; rounding it up keeps the peak within the integers.
        scale = short(peak / largest * (1 + 1e-5), 6) if peak > 0 else 0.0
        # Differences of rounded running sums: the sum of any run is off by one unit at most.
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


def unpack(packed: dict[str, Any]) -> list[FloatArray]:
    """The arrays of `pack`, flat and rounded."""
    flat = np.frombuffer(base64.b64decode(packed["data"]), dtype=f"<i{packed['bits'] // 8}")
    ends = np.cumsum(packed["sizes"])[:-1]
    parts = np.split(flat, ends)
    return [part * scale for part, scale in zip(parts, packed["scales"], strict=True)]


def short(value: float, digits: int = 4) -> float:
    """A number with few significant digits, which JSON writes in few characters."""
    return float(f"{value:.{digits}g}")


def shorts(values: Any, digits: int = 4) -> Any:
    """`short` for every number of an array, as nested lists."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return short(float(array), digits)
    return [shorts(row, digits) for row in array]
