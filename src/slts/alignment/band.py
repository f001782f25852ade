"""Bands: which cells (i, j) of the grid a path may use."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np

from slts.errors import DataError

# `Band::Kind` in native/job.hpp, BAND in cuda/kernel.cu.
_NONE, _SAKOE_CHIBA, _ITAKURA = range(3)


@dataclass(frozen=True, slots=True)
class Itakura:
    """Parallelogram: paths at most `max_slope` times steeper or flatter than the straight path.

    Parameters
    ----------
    max_slope
        At least 1; 1 admits the straight path only.
    """

    max_slope: float = 2.0

    def __post_init__(self) -> None:
        slope = self.max_slope
        is_number = isinstance(slope, numbers.Real) and not isinstance(slope, bool)
        if not (is_number and 1.0 <= slope < np.inf):
            raise ValueError(
                f"The 'max_slope' parameter of Itakura must be a finite number >= 1. "
                f"Got {self.max_slope!r} instead."
            )


Band = int | Itakura | None
"""None (no band), a Sakoe-Chiba radius in steps, or an Itakura parallelogram."""


def native_band(band: Band) -> tuple[int, float]:
    """Check `band` and return the kernel's (kind, parameter)."""
    if band is None:
        return _NONE, 0.0
    if isinstance(band, Itakura):
        return _ITAKURA, float(band.max_slope)
    if isinstance(band, numbers.Integral) and not isinstance(band, bool) and band >= 0:
        # No series is longer than this. A larger radius would overflow in the kernel.
        return _SAKOE_CHIBA, float(min(int(band), 2**40))
    raise ValueError(
        f"The 'band' parameter must be None, an int >= 0 (Sakoe-Chiba radius in steps) or "
        f"Itakura(max_slope). Got {band!r} instead."
    )


def no_path_error(band: Band, one: str, n: int, other: str, m: int) -> DataError:
    """Make the error for a band that admits no path between two series."""
    return DataError(
        f"band={band!r} admits no path between {one} (length {n}) and {other} (length "
        f"{m}): use a larger max_slope, a Sakoe-Chiba radius, or band=None."
    )
