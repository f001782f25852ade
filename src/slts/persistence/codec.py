"""Values as JSON and named tensors, through a closed set of types.

None, bool, int, finite float, str and list are themselves. Everything else is an object with one
key, its tag: tuple, dict, range, float (NaN and infinities), numpy (a scalar and its dtype), array,
series (a `SeriesBatch`), record (one of the dataclasses in `RECORDS`). Nothing else can be
written, and reading makes nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from slts._typing import AnyArray
from slts.errors import ModelFileError
from slts.persistence.container import TENSOR_DTYPES
from slts.persistence.kinds import SCALAR
from slts.persistence.records import RECORDS
from slts.series import SeriesBatch

LONGEST_TEXT = 2**16
# Arrays of fixed-width text are larger than what they are made from.
_MOST_TEXT_BYTES = 64 * 2**20
_LONGEST_RANGE = 10**6
_MOST_REPEATS = 10**5
_DEEPEST = 8
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_FIXED_WIDTH = re.compile(r"([<>])U(\d{1,5})")


class Encoder:
    """Turns values into nodes of JSON; `tensors` gathers what is too large for it."""

    def __init__(self) -> None:
        self.tensors: dict[str, AnyArray] = {}

    def encode(self, value: Any, path: str, depth: int = 0) -> Any:
        """Node of a value.

        Parameters
        ----------
        value
            Of the closed set of types.
        path
            Where it stands, for tensor names and messages.
        depth
            How deep it stands.

        Raises
        ------
        TypeError
            If it, or something in it, is of another type.
        """
        if depth > _DEEPEST:
            raise TypeError(f"{path} nests deeper than {_DEEPEST} levels")
        if isinstance(value, np.ndarray):
            return {"array": self._array(value, path)}
        if isinstance(value, np.generic):
            return {"numpy": _encode_scalar(value, path)}
        if value is None or type(value) in (bool, int, float, str):
            return _encode_plain(value, path)
        if type(value) in (list, tuple):
            items = [self.encode(v, f"{path}.{i}", depth + 1) for i, v in enumerate(value)]
            return items if type(value) is list else {"tuple": items}
        if isinstance(value, dict):
            return {"dict": self._dict(value, path, depth)}
        if type(value) is range:
            return {"range": [value.start, value.stop, value.step]}
        if type(value) is SeriesBatch:
            return {"series": self._series(value, path)}
        record = RECORDS.get(type(value).__name__)
        if record is not None and type(value) is record.type:
            fields = {
                name: self.encode(getattr(value, name), f"{path}.{name}", depth + 1)
                for name in record.fields
            }
            return {"record": [type(value).__name__, fields]}
        raise TypeError(f"{path} is of type {type(value).__name__}, which no model file holds")

    def _dict(self, value: dict[Any, Any], path: str, depth: int) -> list[list[Any]]:
        pairs = []
        for i, (key, item) in enumerate(value.items()):
            name = key if isinstance(key, str) and key.isascii() and key.isidentifier() else i
            pairs.append(
                [
                    self.encode(key, f"{path} key {i}", depth + 1),
                    self.encode(item, f"{path}.{name}", depth + 1),
                ]
            )
        return pairs

    def _series(self, batch: SeriesBatch, path: str) -> dict[str, Any]:
        names = batch.channel_names
        return {
            "values": self._tensor(batch.values, f"{path}.values"),
            "offsets": self._tensor(batch.offsets, f"{path}.offsets"),
            "channel_names": None if names is None else [_encode_plain(n, path) for n in names],
        }

    def _array(self, value: AnyArray, path: str) -> dict[str, Any]:
        if type(value) not in (np.ndarray, np.memmap):
            raise TypeError(f"{path} is a {type(value).__name__}, which no model file holds")
        if value.dtype.kind in "UO":
            return {
                "dtype": value.dtype.str if value.dtype.kind == "U" else "object",
                "shape": list(value.shape),
                "items": [self._item(v, path) for v in value.ravel().tolist()],
            }
        if value.dtype.name not in TENSOR_DTYPES:
            raise TypeError(f"{path} has dtype {value.dtype}, which no model file holds")
        node: dict[str, Any] = {}
        if value.ndim > 1 and len(value) and value.strides[0] == 0:
            # One entry seen many times, such as the identity of every class.
            node["repeat"] = len(value)
            value = value[0]
        # Sums over an array in another order end in other digits.
        if value.flags.f_contiguous and not value.flags.c_contiguous:
            node["order"] = "F"
        if value.dtype.newbyteorder("<") != value.dtype:
            node["byte_order"] = "big"
        return {"tensor": self._tensor(value, path), **node}

    def _item(self, value: Any, path: str) -> Any:
        if not (value is None or SCALAR.accepts(value)):
            raise TypeError(f"{path} holds a {type(value).__name__}, which no model file holds")
        return self.encode(value, path)

    def _tensor(self, value: AnyArray, path: str) -> str:
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ModelFileError(f"{path} holds NaN or infinities")
        assert path not in self.tensors
        stored = value.astype(value.dtype.newbyteorder("<"), order="C", copy=False)
        self.tensors[path] = np.ascontiguousarray(stored).reshape(value.shape)
        return path


def _encode_plain(value: Any, path: str) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise TypeError(
            f"{path} is a text of {len(value)} characters, at most {LONGEST_TEXT} can be"
        )
    if type(value) is int and not -(2**63) <= value < 2**64:
        raise TypeError(f"{path} is an integer beyond 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def _encode_scalar(value: np.generic, path: str) -> list[Any]:
    if isinstance(value, np.str_):
        return ["str", _encode_plain(str(value), path)]
    if value.dtype.name not in TENSOR_DTYPES:
        raise TypeError(f"{path} has dtype {value.dtype}, which no model file holds")
    return [value.dtype.name, _encode_plain(value.item(), path)]


class Decoder:
    """Turns nodes back into values; every tensor is used once.

    Parameters
    ----------
    tensors
        Views of the tensors by name; what is used is taken out.
    """

    def __init__(self, tensors: Mapping[str, AnyArray]) -> None:
        self.tensors = dict(tensors)
        self._by_tag: dict[str, Callable[[Any, str], Any]] = {
            "tuple": self._tuple,
            "dict": self._dict,
            "range": _decode_range,
            "float": _decode_float,
            "numpy": _decode_scalar,
            "array": self._array,
            "series": self._series,
            "record": self._record,
        }

    def decode(self, node: Any, path: str) -> Any:
        """Value of a node, or `ModelFileError`.

        Parameters
        ----------
        node
            From a parser that bounds its depth.
        path
            Where it stands, for messages.
        """
        if isinstance(node, list):
            return [self.decode(item, path) for item in node]
        if not isinstance(node, dict):
            if isinstance(node, str) and len(node) > LONGEST_TEXT:
                raise ModelFileError(f"{path} is a text of {len(node)} characters")
            return node
        tag = next(iter(node), "")
        if len(node) != 1 or tag not in self._by_tag:
            raise ModelFileError(f"{path} has unknown content, {', '.join(node)[:40]!r}")
        return self._by_tag[tag](node[tag], path)

    def finish(self) -> None:
        """Refuse tensors that nothing refers to."""
        if self.tensors:
            raise ModelFileError(f"nothing refers to tensor {min(self.tensors)}")

    def _tuple(self, node: Any, path: str) -> tuple[Any, ...]:
        return tuple(self.decode(item, path) for item in _as_list(node, path))

    def _dict(self, node: Any, path: str) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for pair in _as_list(node, path):
            key_node, item_node = _as_list(pair, path, 2)
            key = self.decode(key_node, path)
            if not (key is None or SCALAR.accepts(key)) or key in result:
                raise ModelFileError(f"{path} has a key that is no label, or twice the same")
            result[key] = self.decode(item_node, path)
        return result

    def _series(self, node: Any, path: str) -> SeriesBatch:
        values, offsets, names = _fields(node, path, "values", "offsets", "channel_names")
        if names is not None:
            names = [_as_text(name, path) for name in _as_list(names, path)]
        rows = self._take(values, path, "float64")
        bounds = self._take(offsets, path, "int64")
        # The constructor checks shapes, bounds, names, and that all values are finite.
        return SeriesBatch(rows, bounds, names)

    def _array(self, node: Any, path: str) -> AnyArray:
        if isinstance(node, dict) and "items" in node:
            return self._items(node, path)
        if not isinstance(node, dict) or not set(node) <= {
            "tensor", "order", "byte_order", "repeat"
        }:  # fmt: skip
            raise ModelFileError(f"{path} is no array")
        repeat, order = node.get("repeat"), node.get("order", "C")
        if order not in ("C", "F") or node.get("byte_order", "big") != "big":
            raise ModelFileError(f"{path} is an array of unknown order")
        value = self._take(node.get("tensor"), path)
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ModelFileError(f"{path} holds NaN or infinities")
        value = np.asarray(value, order=order)
        if "byte_order" in node:
            value = value.astype(value.dtype.newbyteorder(">"))
        if repeat is None:
            return value
        if type(repeat) is not int or not 1 <= repeat <= _MOST_REPEATS:
            raise ModelFileError(f"{path} repeats {str(repeat)[:40]} times")
        return np.broadcast_to(value, (repeat, *value.shape))

    def _items(self, node: dict[str, Any], path: str) -> AnyArray:
        dtype, shape, items = _fields(node, path, "dtype", "shape", "items")
        items, sizes = _as_list(items, path), _as_list(shape, path)
        if len(sizes) > 8 or not all(type(n) is int and 0 <= n <= 2**31 for n in sizes):
            raise ModelFileError(f"{path} has an impossible shape")
        if prod(sizes) != len(items):
            raise ModelFileError(f"{path} has shape {sizes} and {len(items)} items")
        if dtype == "object":
            result: AnyArray = np.empty(len(items), dtype=object)
            for i, item in enumerate(items):
                value = self.decode(item, path)
                if not (value is None or SCALAR.accepts(value)):
                    raise ModelFileError(f"{path} holds something that is no label")
                result[i] = value
            return result.reshape(sizes)
        width = _FIXED_WIDTH.fullmatch(dtype) if isinstance(dtype, str) else None
        if width is None or 4 * int(width[2]) * len(items) > _MOST_TEXT_BYTES:
            raise ModelFileError(f"{path} has an unknown dtype, {str(dtype)[:40]!r}")
        texts = [_as_text(item, path) for item in items]
        result = np.array(texts, dtype=np.dtype(dtype)).reshape(sizes)
        if result.ravel().tolist() != texts:
            raise ModelFileError(f"{path} holds texts longer than its dtype, {dtype}")
        return result

    def _record(self, node: Any, path: str) -> Any:
        name, fields = _as_list(node, path, 2)
        record = RECORDS.get(name) if isinstance(name, str) else None
        if record is None:
            raise ModelFileError(f"{path} is of an unknown type, {str(name)[:40]!r}")
        if not isinstance(fields, dict) or not record.required <= fields.keys() <= set(
            record.fields
        ):
            raise ModelFileError(f"{path} must have the fields {', '.join(record.fields)}")
        values = {}
        for field, item in fields.items():
            values[field] = self.decode(item, f"{path}.{field}")
            record.fields[field].check(f"{path}.{field}", values[field])
        return record.type(**values)

    def _take(self, name: Any, path: str, dtype: str | None = None) -> AnyArray:
        """Copy of a tensor in the byte order of this machine."""
        tensor = self.tensors.pop(name, None) if isinstance(name, str) else None
        if tensor is None:
            raise ModelFileError(f"{path} refers to a tensor that is not there, or taken already")
        if dtype is not None and tensor.dtype.name != dtype:
            raise ModelFileError(f"{path} has dtype {tensor.dtype.name}, not {dtype}")
        if tensor.dtype.kind == "b" and tensor.size and tensor.view(np.uint8).max() > 1:
            raise ModelFileError(f"{path} holds truth values other than 0 and 1")
        return tensor.astype(tensor.dtype.newbyteorder("="), order="C", copy=True)


def _as_list(node: Any, path: str, length: int | None = None) -> list[Any]:
    if not isinstance(node, list) or (length is not None and len(node) != length):
        raise ModelFileError(f"{path} lacks a list where one belongs")
    return node


def _as_text(node: Any, path: str) -> str:
    if not isinstance(node, str) or len(node) > LONGEST_TEXT:
        raise ModelFileError(f"{path} lacks a text where one belongs")
    return node


def _fields(node: Any, path: str, *names: str) -> list[Any]:
    if not isinstance(node, dict) or set(node) != set(names):
        raise ModelFileError(f"{path} must have the fields {', '.join(names)}")
    return [node[name] for name in names]


def _decode_range(node: Any, path: str) -> range:
    bounds = _as_list(node, path, 3)
    if not all(type(b) is int for b in bounds) or bounds[2] == 0:
        raise ModelFileError(f"{path} is no range")
    start, stop, step = bounds
    if abs(stop - start) // abs(step) > _LONGEST_RANGE:
        raise ModelFileError(f"{path} is a range beyond {_LONGEST_RANGE} numbers")
    return range(start, stop, step)


def _decode_float(node: Any, path: str) -> float:
    if not isinstance(node, str) or node not in _NOT_FINITE:
        raise ModelFileError(f"{path} is no number")
    return _NOT_FINITE[node]


def _decode_scalar(node: Any, path: str) -> np.generic:
    dtype, value = _as_list(node, path, 2)
    if dtype == "str":
        return np.str_(_as_text(value, path))
    if not isinstance(dtype, str) or dtype not in TENSOR_DTYPES:
        raise ModelFileError(f"{path} has an unknown dtype, {str(dtype)[:40]!r}")
    kind = np.dtype(dtype).kind
    if kind == "f" and isinstance(value, dict) and set(value) == {"float"}:
        value = _decode_float(value["float"], path)
    expected = {"b": bool, "i": int, "u": int, "f": float}[kind]
    if type(value) is not expected:
        raise ModelFileError(f"{path} is no {dtype}")
    result: np.generic = np.dtype(dtype).type(value)
    if result.item() != value and value == value:
        raise ModelFileError(f"{path} does not fit into {dtype}")
    return result
