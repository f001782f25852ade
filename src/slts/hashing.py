"""Hash functions for arrays of 64-bit integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["splitmix64", "splitmix64_finalised"]


def splitmix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Map 64-bit integers one-to-one to well distributed ones (splitmix64)."""
    with np.errstate(over="ignore"):
        return splitmix64_finalised(values + np.uint64(0x9E3779B97F4A7C15))


def splitmix64_finalised(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply the finaliser of splitmix64, which maps zero to zero."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(values ^ (values >> np.uint64(31)))
