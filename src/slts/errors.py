"""The exceptions of slts, its warnings, and a check that many functions share."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sized

__all__ = ["DataError", "ModelFileError", "check_one_per_series", "warn"]


class DataError(ValueError):
    """Raised for unusable data. The message says which series, why, and what to do."""


class ModelFileError(Exception):
    """Raised for a model file that cannot be written, read or trusted."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the last line outside this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back and (frame.f_globals.get("__name__") or "").partition(".")[0] == "slts":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_one_per_series(
    n_series: int, values: Sized, name: str, nouns: str, advice: str = ""
) -> None:
    """Raise an error unless there are as many values as series.

    The message names the parameter, what the values are, and what else the user can do.
    """
    if len(values) != n_series:
        raise DataError(
            f"X and {name} have inconsistent lengths: {n_series} series and {len(values)} {nouns}."
            f"{advice}"
        )
