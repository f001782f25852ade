"""The exceptions that slts raises on purpose, and how it warns."""

from __future__ import annotations

import sys
import warnings

__all__ = ["DataError", "ModelFileError", "warn"]


class DataError(ValueError):
    """Series that cannot be used; the message says which one, why, and what to do."""


class ModelFileError(Exception):
    """A model file that cannot be written, read or trusted."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package that led here, by whatever way."""
    frame, level = sys._getframe(), 1
    while frame.f_back and (frame.f_globals.get("__name__") or "").partition(".")[0] == "slts":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
