"""The exceptions of slts, and its warnings."""

from __future__ import annotations

import sys
import warnings

__all__ = ["DataError", "ModelFileError", "warn"]


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
