"""The exceptions that slts raises on purpose."""

from __future__ import annotations

__all__ = ["DataError", "ModelFileError"]


class DataError(ValueError):
    """Series that cannot be used; the message says which one, why, and what to do."""


class ModelFileError(Exception):
    """A model file that cannot be written, read or trusted."""
