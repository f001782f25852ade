"""What a series may hold: real, finite numbers. Errors name the place and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray, Layout
from slts.errors import DataError

__all__ = ["as_numbers", "check_finite", "check_layout", "is_sparse"]

_NUMBER_KINDS = "biuf"


def check_layout(layout: str) -> None:
    """Raise `DataError` unless `layout` is one of the two known ones."""
    if layout not in get_args(Layout):
        raise DataError(f"layout must be 'channels_first' or 'time_first', got {layout!r}")


def is_sparse(x: object) -> bool:
    """Tell whether `x` looks like a sparse matrix, without importing any sparse library."""
    return hasattr(x, "nnz") and hasattr(x, "toarray")


def as_numbers(x: object, where: str) -> AnyArray:
    """Convert `x` to an array of real numbers of any width.

    Parameters
    ----------
    x : object
        Array-like.
    where : str
        What `x` is, for error messages: "X" or "series 3".

    Returns
    -------
    AnyArray
        Array whose dtype is boolean, integer or floating; shares memory with `x` if it can.

    Raises
    ------
    TypeError
        If `x` is sparse or holds Python objects that are not numbers.
    DataError
        If `x` is ragged, complex, text or time.
    """
    # Most series of a list are plain arrays already: leave early.
    if type(x) is np.ndarray and x.dtype.kind in _NUMBER_KINDS:
        return x
    if isinstance(x, np.ma.MaskedArray):
        # A masked entry is a missing value: make it NaN, so that it is reported, not unmasked.
        x = np.ma.filled(x.astype(np.float64), np.nan) if np.ma.is_masked(x) else x.data
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise DataError(
            f"{where} is not rectangular ({error}): every channel of a series must have the same "
            "number of steps"
        ) from error
    kind = array.dtype.kind
    if kind in _NUMBER_KINDS:
        return array
    if is_sparse(x):  # NumPy wraps sparse matrices as single objects
        raise TypeError(
            f"{where} is sparse ({type(x).__name__}), which slts does not support: "
            "convert it with .toarray()"
        )
    if kind == "O":
        return _from_objects(array, where)
    if kind == "c":
        raise DataError(
            f"Complex data not supported: {where} has dtype {array.dtype}; "
            "pass its real and imaginary parts as two channels"
        )
    raise DataError(f"{where} has dtype {array.dtype}, expected real numbers: convert it first")


def _from_objects(array: AnyArray, where: str) -> FloatArray:
    """Convert Python objects to float64; text is refused even where it reads as a number."""
    text = next((v for v in array.flat if isinstance(v, str | bytes)), None)
    if text is not None:
        raise DataError(f"{where} holds the string {text!r}, expected numbers: convert it first")
    try:
        return array.astype(np.float64)
    except TypeError as error:
        raise TypeError(f"{where} holds something that is not a number: {error}") from error
    except ValueError as error:
        raise DataError(f"{where} cannot be read as numbers: {error}") from error


def check_finite(
    values: FloatArray,
    offsets: IntArray,
    channel_names: Sequence[str] | None = None,
    series_names: Sequence[object] | None = None,
) -> None:
    """Raise `DataError` at the first NaN or infinity, naming series, step and channel.

    Parameters
    ----------
    values : FloatArray
        Flat values, shape (steps, channels).
    offsets : IntArray
        Bounds of the series in `values`.
    channel_names : Sequence[str] or None
        Names to show next to the channel number.
    series_names : Sequence[object] or None
        Identifiers to show next to the series number.
    """
    finite = np.isfinite(values)
    if finite.all():
        return
    row, channel = divmod(int(np.argmin(finite)), values.shape[1])
    series = int(np.searchsorted(offsets, row, side="right")) - 1
    place = f"series {series}"
    if series_names is not None:
        place += f" (id {series_names[series]!r})"
    place += f", step {row - int(offsets[series])}, channel {channel}"
    if channel_names is not None:
        place += f" ({channel_names[channel]!r})"
    value = values[row, channel]
    if np.isnan(value):
        raise DataError(
            f"{place} is NaN: missing values are not dropped silently; impute them, or pass "
            "padded=True to as_series if NaN only fills up the ends of short series"
        )
    raise DataError(f"{place} is {value}: every value must be finite; clip or remove it")
