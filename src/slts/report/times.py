"""The user's times along a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.report.downsampling import Bins


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
