"""Array aliases shared by the whole package."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["AnyArray", "FloatArray", "IntArray", "Layout", "Missing"]

AnyArray: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
Layout: TypeAlias = Literal["channels_first", "time_first"]
Missing: TypeAlias = Literal["ignore", "interpolate", "error"]
