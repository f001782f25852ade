"""What a value may be, and how to say so."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slts.errors import ModelFileError
from slts.series import SeriesBatch


@dataclass(frozen=True)
class Kind:
    """A set of values with a name.

    Parameters
    ----------
    text
        The name, as it follows "must be".
    accepts
        Whether a value is one of them.
    """

    text: str
    accepts: Callable[[Any], bool]

    def __or__(self, other: Kind) -> Kind:
        return Kind(f"{self.text} or {other.text}", lambda v: self.accepts(v) or other.accepts(v))

    def check(self, name: str, value: Any) -> None:
        """Raise `ModelFileError` unless the value is one of them."""
        if not self.accepts(value):
            shown = repr(value)
            shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
            raise ModelFileError(f"{name} must be {self.text}, and is {shown}")


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not _is_truth(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not _is_truth(value)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


NOTHING = Kind("None", lambda v: v is None)
TRUTH = Kind("True or False", _is_truth)
# Where 0 and 1 are taken for truth values.
SWITCH = Kind("True or False", lambda v: _is_truth(v) or _is_finite(v))
INTEGER = Kind("an integer", _is_integer)
REAL = Kind("a number", _is_number)
FINITE = Kind("a finite number", _is_finite)
POSITIVE = Kind("a positive finite number", lambda v: _is_finite(v) and v > 0)
TEXT = Kind("text", lambda v: isinstance(v, str))
TEXTS = Kind(
    "a list of texts",
    lambda v: isinstance(v, list | tuple) and all(isinstance(item, str) for item in v),
)
SCALAR = Kind("a label", lambda v: isinstance(v, str) or _is_truth(v) or _is_number(v))
SERIES = Kind("series", lambda v: isinstance(v, SeriesBatch) and len(v) > 0)
NUMBERS = Kind(
    "a list of numbers",
    lambda v: (
        isinstance(v, range)
        or (isinstance(v, np.ndarray) and v.ndim == 1 and v.dtype.kind in "iuf")
        or (isinstance(v, list | tuple) and all(map(_is_number, v)))
    ),
)
SPLITS = Kind("a list of splits", lambda v: isinstance(v, list | tuple) and len(v) > 0)


def at_least(least: int) -> Kind:
    """Integers from `least` on."""
    return Kind(f"an integer >= {least}", lambda v: _is_integer(v) and v >= least)


def between(least: int, most: int) -> Kind:
    """Integers from `least` to `most`."""
    return Kind(
        f"an integer from {least} to {most}", lambda v: _is_integer(v) and least <= v <= most
    )


def one_of(*texts: str) -> Kind:
    """One of a few texts."""
    names = ", ".join(map(repr, texts))
    return Kind(names, lambda v: isinstance(v, str) and v in texts)


def array(dtype: str, axes: int) -> Kind:
    """Arrays of one dtype and so many axes; the codec has made sure that they are finite."""
    return Kind(
        f"an array of {dtype} with {axes} axes",
        lambda v: isinstance(v, np.ndarray) and v.dtype == np.dtype(dtype) and v.ndim == axes,
    )


def instance(kind: type) -> Kind:
    """Instances of one class."""
    return Kind(f"of type {kind.__name__}", lambda v: type(v) is kind)


def tuple_of(item: Kind) -> Kind:
    """Tuples whose items are all of one kind."""
    return Kind(
        f"a tuple, each item {item.text}", lambda v: type(v) is tuple and all(map(item.accepts, v))
    )


def dict_of(key: Kind, item: Kind) -> Kind:
    """Dicts whose keys and items are of one kind each."""
    return Kind(
        f"a dict, each key {key.text}, each item {item.text}",
        lambda v: (
            type(v) is dict and all(map(key.accepts, v)) and all(map(item.accepts, v.values()))
        ),
    )
