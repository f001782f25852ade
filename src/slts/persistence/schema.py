"""The vocabulary of declarations: kinds with named sizes, and structures made of them.

Arrays, series and tuples name their axes, as in
``array("float64", "problems", "landmarks")``. The first use of a name binds its size, and every
later use must agree. Inside a tuple, ``[i]`` in a name stands for the index of the item, so that
``"rank[i]"`` can differ between items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from slts.errors import ModelFileError
from slts.estimators.parameters import Kind
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
                    f"{owner} must have shape ({', '.join(names)}), where {known}, but "
                    f"has shape {shape}"
                )


def require_kind(kind: Kind, name: str, value: Any) -> None:
    """Raise `ModelFileError` unless the value is accepted."""
    if not kind.accepts(value):
        shown = repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
        raise ModelFileError(f"{name} must be {kind.text}, but is {shown}")


def where(kind: Kind, text: str, holds: Callable[[Any], object]) -> Kind:
    """Restrict a kind to values with a property, which is checked after all sizes."""

    def inspect(name: str, value: Any, sizes: Sizes) -> None:
        kind.inspect(name, value, sizes)
        require(holds(value), f"{name} must be {text}")

    return Kind(f"{kind.text}, {text}", kind.accepts, inspect)


def array(dtype: str | None, *axes: str) -> Kind:
    """Arrays with named axes, of one dtype or any; the codec has checked that floats are finite."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, np.ndarray) or value.ndim != len(axes):
            return False
        return dtype is None or value.dtype == np.dtype(dtype)

    def inspect(name: str, value: Any, sizes: Sizes) -> None:
        sizes.agree(name, axes, value.shape)

    return Kind(f"an array of {dtype or 'any dtype'} with {len(axes)} axes", accepts, inspect)


def codes(axis: str, of: str, *, each: bool = False) -> Kind:
    """Indices below the size `of` along an axis; with `each`, every one of them occurs."""
    kind = array("int64", axis)

    def inspect(name: str, value: Any, sizes: Sizes) -> None:
        kind.inspect(name, value, sizes)
        known, found = np.arange(sizes[of]), np.unique(value)
        usable = np.array_equal(found, known) if each else np.isin(found, known).all()
        what = "each index" if each else "indices"
        require(usable, f"{name} must have {what} of the {of}, and no other")

    return Kind(kind.text, kind.accepts, inspect)


def series(count: str, channels: str) -> Kind:
    """Batches of series with named sizes."""

    def inspect(name: str, value: SeriesBatch, sizes: Sizes) -> None:
        sizes.agree(name, (count, channels), (len(value), value.n_channels))

    return Kind("series", lambda v: isinstance(v, SeriesBatch), inspect)


def tuple_of(item: Kind, count: str | None = None) -> Kind:
    """Tuples of items of one kind, with a named length if `count` is given."""

    def inspect(name: str, value: tuple[Any, ...], sizes: Sizes) -> None:
        if count is not None:
            sizes.agree(name, (count,), (len(value),))
        for i, v in enumerate(value):
            require_kind(item, f"{name}[{i}]", v)
            item.inspect(f"{name}[{i}]", v, sizes.item(i))

    return Kind("a tuple", lambda v: type(v) is tuple, inspect)


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
        rule: Callable[[Any], None] | None = None,
        **fields: Kind,
    ) -> None:
        self.fields, self._sizes, self._rule = fields, sizes, rule

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise `ModelFileError` unless the object is as declared; `name` is empty for a model."""
        labels = {field: f"{name}.{field}" if name else field for field in self.fields}
        for field, kind in self.fields.items():
            require_kind(kind, labels[field], getattr(value, field))
        for derived, count in self._sizes.items():
            sizes.agree(name or "the model", (derived,), (count(value, sizes),))
        for field, kind in self.fields.items():
            kind.inspect(labels[field], getattr(value, field), sizes)
        if self._rule is not None:
            self._rule(value)
