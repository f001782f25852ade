"""The vocabulary of declarations: kinds of values, named sizes, and structures made of both.

A kind says what a value may be. Arrays, series and tuples name their axes, as in
``array("float64", "problems", "landmarks")``. The first use of a name binds its size, and every
later use must agree. Inside a tuple, ``[i]`` in a name stands for the index of the item, so that
``"rank[i]"`` can differ between items.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from slts.errors import ModelFileError
from slts.series import SeriesBatch


def require(condition: object, reason: str) -> None:
    """Raise `ModelFileError` with the reason unless the condition is true."""
    if not condition:
        raise ModelFileError(reason)


class Sizes:
    """Sizes by name; all are at least 1."""

    def __init__(self, known: dict[str, int] | None = None, index: str = "[i]") -> None:
        self._known = {} if known is None else known
        self._index = index

    def item(self, index: int) -> Sizes:
        """Give the same sizes, with `index` in place of ``i`` in their names."""
        return Sizes(self._known, f"[{index}]")

    def __getitem__(self, name: str) -> int:
        return self._known[name.replace("[i]", self._index)]

    def agree(self, owner: str, names: tuple[str, ...], shape: tuple[int, ...]) -> None:
        """Bind the names to a shape, or raise `ModelFileError` if they are bound to another."""
        names = tuple(name.replace("[i]", self._index) for name in names)
        for name, size in zip(names, shape, strict=True):
            if size < 1 or self._known.setdefault(name, size) != size:
                known = ", ".join(f"{n} = {self._known.get(n, '?')}" for n in dict.fromkeys(names))
                raise ModelFileError(
                    f"{owner} must have shape ({', '.join(names)}), where {known}; "
                    f"it has shape {shape}"
                )


def _nothing_inside(name: str, value: Any, sizes: Sizes) -> None:
    """Accept a value that has no parts."""


@dataclass(frozen=True)
class Kind:
    """A set of values with a name.

    Parameters
    ----------
    text
        The name, as it follows "must be".
    accepts
        Whether a value belongs to the set, apart from sizes.
    inspect
        Checks the parts of an accepted value, and its sizes.
    """

    text: str
    accepts: Callable[[Any], bool]
    inspect: Callable[[str, Any, Sizes], None] = _nothing_inside

    def __or__(self, other: Kind) -> Kind:
        def inspect(name: str, value: Any, sizes: Sizes) -> None:
            (self if self.accepts(value) else other).inspect(name, value, sizes)

        def accepts(value: Any) -> bool:
            return self.accepts(value) or other.accepts(value)

        return Kind(f"{self.text} or {other.text}", accepts, inspect)

    def where(self, text: str, holds: Callable[[Any], object]) -> Kind:
        """Restrict the set to values with a property, which is checked after all sizes."""

        def inspect(name: str, value: Any, sizes: Sizes) -> None:
            self.inspect(name, value, sizes)
            require(holds(value), f"{name} must be {text}")

        return Kind(f"{self.text}, {text}", self.accepts, inspect)

    def require(self, name: str, value: Any) -> None:
        """Raise `ModelFileError` unless the value is accepted."""
        if not self.accepts(value):
            shown = repr(value)
            shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
            raise ModelFileError(f"{name} must be {self.text}, and is {shown}")

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise `ModelFileError` unless the value and all its parts are as declared."""
        self.require(name, value)
        self.inspect(name, value, sizes)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not _is_bool(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not _is_bool(value)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _is_numbers(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "iuf"
    return isinstance(value, range) or (
        isinstance(value, list | tuple) and all(map(_is_number, value))
    )


NOTHING = Kind("None", lambda v: v is None)
BOOL = Kind("True or False", _is_bool)
# For parameters that users may also set to 0 or 1.
SWITCH = Kind("True or False", lambda v: _is_bool(v) or _is_finite(v))
INTEGER = Kind("an integer", _is_integer)
NUMBER = Kind("a number", _is_number)
FINITE = Kind("a finite number", _is_finite)
POSITIVE = Kind("a positive finite number", lambda v: _is_finite(v) and v > 0)
NUMBERS = Kind("a list of numbers", _is_numbers)
TEXT = Kind("text", lambda v: isinstance(v, str))
LABEL = Kind("a label", lambda v: isinstance(v, str) or _is_bool(v) or _is_number(v))


def between(least: int, most: int) -> Kind:
    """Integers from `least` to `most`."""
    text = f"an integer from {least} to {most}"
    return Kind(text, lambda v: _is_integer(v) and least <= v <= most)


def at_least(least: int) -> Kind:
    """Integers from `least` on."""
    return Kind(f"an integer >= {least}", lambda v: _is_integer(v) and v >= least)


def size(least: int, name: str) -> Kind:
    """Integers from `least` on that give the size with a name."""
    kind = at_least(least)
    return Kind(kind.text, kind.accepts, lambda owner, v, sizes: sizes.agree(owner, (name,), (v,)))


def one_of(*texts: str) -> Kind:
    """One of a few texts."""
    return Kind(" or ".join(map(repr, texts)), lambda v: isinstance(v, str) and v in texts)


def some_of(*texts: str) -> Kind:
    """One of a few texts, or a list of them."""
    one = one_of(*texts)
    items = Kind(
        f"a list of {one.text}",
        lambda v: isinstance(v, list | tuple) and all(map(one.accepts, v)),
    )
    return one | items


def array(dtype: str, *axes: str) -> Kind:
    """Arrays with a dtype and named axes; the codec has checked that floats are finite."""

    def accepts(value: Any) -> bool:
        return _is_array(value, len(axes)) and bool(value.dtype == np.dtype(dtype))

    def inspect(name: str, value: Any, sizes: Sizes) -> None:
        sizes.agree(name, axes, value.shape)

    return Kind(f"an array of {dtype} with {len(axes)} axes", accepts, inspect)


def labels(axis: str) -> Kind:
    """One axis of distinct labels of any type, sorted."""
    kind = Kind(
        "an array with one axis",
        lambda v: _is_array(v, 1),
        lambda name, v, sizes: sizes.agree(name, (axis,), v.shape),
    )
    return kind.where("sorted and distinct", lambda v: np.array_equal(np.unique(v), v))


def codes(axis: str, of: str) -> Kind:
    """Indices along an axis; each index below the size `of` occurs."""
    kind = array("int64", axis)

    def inspect(name: str, value: Any, sizes: Sizes) -> None:
        kind.inspect(name, value, sizes)
        found = np.array_equal(np.unique(value), np.arange(sizes[of]))
        require(found, f"{name} must contain each index of the {of}, and no other")

    return Kind(kind.text, kind.accepts, inspect)


def series(count: str, channels: str, steps: str | None = None) -> Kind:
    """Batches of series with named sizes."""
    names = (count, channels) if steps is None else (count, channels, steps)

    def inspect(name: str, value: SeriesBatch, sizes: Sizes) -> None:
        sizes.agree(name, names, (len(value), value.n_channels, value.n_steps)[: len(names)])

    return Kind("series", lambda v: isinstance(v, SeriesBatch), inspect)


def tuple_of(item: Kind, count: str | None = None) -> Kind:
    """Tuples of items of one kind, with a named length if `count` is given."""

    def inspect(name: str, value: tuple[Any, ...], sizes: Sizes) -> None:
        if count is not None:
            sizes.agree(name, (count,), (len(value),))
        for i, v in enumerate(value):
            item.check(f"{name}[{i}]", v, sizes.item(i))

    return Kind("a tuple", lambda v: type(v) is tuple, inspect)


def dict_of(key: Kind, item: Kind) -> Kind:
    """Dicts with one kind of keys and one kind of items."""

    def accepts(value: Any) -> bool:
        return (
            type(value) is dict
            and all(map(key.accepts, value))
            and all(map(item.accepts, value.values()))
        )

    return Kind(f"a dict with keys {key.text} and items {item.text}", accepts)


def _is_array(value: Any, n_axes: int) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == n_axes


def _no_rule(value: Any) -> None:
    """Accept any object."""


class Structure:
    """What the attributes of an object may be, and how they must fit together.

    Parameters
    ----------
    sizes
        Sizes that follow from attributes and from earlier sizes. They are bound before the axes of
        the attributes.
    rule
        Raises `ModelFileError` for what kinds and sizes cannot express.
    **fields
        Kind of each attribute, in the order of the checks.
    """

    def __init__(
        self,
        *,
        sizes: Mapping[str, Callable[[Any, Sizes], int]] = MappingProxyType({}),
        rule: Callable[[Any], None] = _no_rule,
        **fields: Kind,
    ) -> None:
        self.fields, self._sizes, self._rule = fields, sizes, rule

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise `ModelFileError` unless the object is as declared; `name` is empty for a model."""
        labels = {field: f"{name}.{field}" if name else field for field in self.fields}
        for field, kind in self.fields.items():
            kind.require(labels[field], getattr(value, field))
        for derived, count in self._sizes.items():
            sizes.agree(name or "the model", (derived,), (count(value, sizes),))
        for field, kind in self.fields.items():
            kind.inspect(labels[field], getattr(value, field), sizes)
        self._rule(value)
