"""Values as JSON and named tensors, for a closed set of types.

None, bool, int, finite float, str and list are stored as JSON. Any other value is an object with
one key, its tag: tuple, dict, range, float (NaN and infinities), numpy (a scalar with its dtype),
array, series (a `SeriesBatch`), record (a dataclass of `RECORDS`) or same (the path of an earlier
record that is the same object). No other type can be written, and reading creates no other type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from slts._typing import AnyArray
from slts.errors import ModelFileError
from slts.estimators.parameters import LABEL, NOTHING
from slts.persistence.container import TENSOR_DTYPES
from slts.persistence.declarations import RECORDS
from slts.persistence.schema import require, require_kind
from slts.series import SeriesBatch

LONGEST_TEXT = 2**16
# An array of fixed-width text can be much larger than its texts.
_MOST_TEXT_BYTES = 64 * 2**20
_LONGEST_RANGE = 10**6
_MOST_REPEATS = 10**5
_DEEPEST = 8
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_FIXED_WIDTH = re.compile(r"[<>]U(\d{1,5})")
_ITEM = NOTHING | LABEL


class Encoder:
    """Turns values into JSON nodes; `tensors` collects the arrays."""

    def __init__(self) -> None:
        self.tensors: dict[str, AnyArray] = {}
        self._records: dict[int, str] = {}

    def encode(self, value: Any, path: str, depth: int = 0) -> Any:
        """Give the node of a value.

        Parameters
        ----------
        value
            Of the closed set of types.
        path
            Name of the value, for tensors and messages.
        depth
            Number of values that contain it.

        Raises
        ------
        TypeError
            If the value, or a part of it, has another type.
        """
        if depth > _DEEPEST:
            raise TypeError(f"{path} nests deeper than {_DEEPEST} levels")
        if isinstance(value, np.ndarray):
            return {"array": self._array(value, path)}
        if isinstance(value, np.str_):
            return {"numpy": ["str", _encode_plain(str(value), path)]}
        if isinstance(value, np.generic):
            _check_dtype(value, path)
            return {"numpy": [value.dtype.name, _encode_plain(value.item(), path)]}
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
        kind, structure = RECORDS.get(type(value).__name__, (None, None))
        if kind is not type(value) or structure is None:
            raise TypeError(f"{path} has type {type(value).__name__}, which files cannot store")
        if id(value) in self._records:
            return {"same": self._records[id(value)]}
        self._records[id(value)] = path
        fields = {
            name: self.encode(getattr(value, name), f"{path}.{name}", depth + 1)
            for name in structure.fields
        }
        return {"record": [kind.__name__, fields]}

    def _dict(self, value: dict[Any, Any], path: str, depth: int) -> list[list[Any]]:
        pairs = []
        for i, (key, item) in enumerate(value.items()):
            item_path = _path_in_dict(path, key, i)
            pairs.append([self._item(key, path), self.encode(item, item_path, depth + 1)])
        return pairs

    def _series(self, batch: SeriesBatch, path: str) -> dict[str, Any]:
        channels, names, times = batch.channel_names, batch.series_names, batch.times
        node: dict[str, Any] = {
            "values": self._tensor(batch.values, f"{path}.values", missing=True),
            "offsets": self._tensor(batch.offsets, f"{path}.offsets"),
            "channel_names": None if channels is None else self.encode(list(channels), path),
        }
        if names is not None:
            node["series_names"] = self.encode(list(names), path)
        if times is not None:
            # Dates are nanoseconds since 1970.
            dates = times.dtype.kind == "M"
            tensor = self._tensor(times.view(np.int64) if dates else times, f"{path}.times")
            node |= {"times": tensor, "dates": dates}
        return node

    def _array(self, value: AnyArray, path: str) -> dict[str, Any]:
        if type(value) not in (np.ndarray, np.memmap):
            raise TypeError(f"{path} is a {type(value).__name__}, which files cannot store")
        if value.dtype.kind in "UO" and value.ndim == 1:
            return {
                "dtype": value.dtype.str if value.dtype.kind == "U" else "object",
                "items": [self._item(v, path) for v in value.tolist()],
            }
        _check_dtype(value, path)
        node: dict[str, Any] = {}
        if value.ndim > 1 and len(value) and value.strides[0] == 0:
            # One entry that is repeated, such as the identity of every class.
            node["repeat"] = len(value)
            value = value[0]
        # The order of an array decides the order of sums over it, and so their last digits.
        if value.flags.f_contiguous and not value.flags.c_contiguous:
            node["order"] = "F"
        if value.dtype.newbyteorder("<") != value.dtype:
            node["byte_order"] = "big"
        return {"tensor": self._tensor(value, path), **node}

    def _item(self, value: Any, path: str) -> Any:
        if not _ITEM.accepts(value):
            raise TypeError(f"{path} has an item of type {type(value).__name__}, not a label")
        return self.encode(value, path)

    def _tensor(self, value: AnyArray, path: str, *, missing: bool = False) -> str:
        """Store an array; only values of series may be missing."""
        _check_finite(np.nan_to_num(value, nan=0.0) if missing else value, path)
        assert path not in self.tensors
        stored = value.astype(value.dtype.newbyteorder("<"), order="C", copy=False)
        self.tensors[path] = np.ascontiguousarray(stored).reshape(value.shape)
        return path


def _decode_names(node: Any, path: str) -> list[str] | None:
    return None if node is None else [_as_text(name, path) for name in _as_list(node, path)]


def _path_in_dict(path: str, key: Any, index: int) -> str:
    plain = isinstance(key, str) and key.isascii() and key.isidentifier()
    return f"{path}.{key if plain else index}"


def _encode_plain(value: Any, path: str) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise TypeError(f"{path} is a text of {len(value)} characters, the limit is {LONGEST_TEXT}")
    if type(value) is int and not -(2**63) <= value < 2**64:
        raise TypeError(f"{path} is an integer beyond 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def _check_dtype(value: AnyArray | np.generic, path: str) -> None:
    if value.dtype.name not in TENSOR_DTYPES:
        raise TypeError(f"{path} has dtype {value.dtype}, which files cannot store")


def _check_finite(value: AnyArray, path: str) -> None:
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        raise ModelFileError(f"{path} has NaN or infinite values")


class Decoder:
    """Turns nodes into values; each tensor must be used exactly once.

    Parameters
    ----------
    tensors
        By name. The values share their memory.
    """

    def __init__(self, tensors: Mapping[str, AnyArray]) -> None:
        self._unused = dict(tensors)
        self._records: dict[str, Any] = {}
        self._by_tag: dict[str, Callable[[Any, str], Any]] = {
            "tuple": self._tuple,
            "dict": self._dict,
            "range": _decode_range,
            "float": _decode_float,
            "numpy": _decode_scalar,
            "array": self._array,
            "series": self._series,
            "record": self._record,
            "same": self._same,
        }

    def decode(self, node: Any, path: str) -> Any:
        """Give the value of a node, or raise `ModelFileError`.

        Parameters
        ----------
        node
            From a parser that limits its depth.
        path
            Name of the value, for messages and for references.
        """
        if isinstance(node, list):
            return [self.decode(item, f"{path}.{i}") for i, item in enumerate(node)]
        if not isinstance(node, dict):
            return _as_text(node, path) if isinstance(node, str) else node
        tag = next(iter(node), "")
        if len(node) != 1 or tag not in self._by_tag:
            raise ModelFileError(f"{path} has the unknown tag {', '.join(node)[:40]!r}")
        return self._by_tag[tag](node[tag], path)

    def finish(self) -> None:
        """Raise `ModelFileError` if a tensor was not used."""
        require(not self._unused, f"tensor {min(self._unused, default='')} is not used")

    def _tuple(self, node: Any, path: str) -> tuple[Any, ...]:
        return tuple(self.decode(_as_list(node, path), path))

    def _dict(self, node: Any, path: str) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for i, pair in enumerate(_as_list(node, path)):
            key_node, item_node = _as_list(pair, path, 2)
            key = self.decode(key_node, path)
            if not _ITEM.accepts(key) or key in result:
                raise ModelFileError(f"{path} has a key that is repeated or not a label")
            result[key] = self.decode(item_node, _path_in_dict(path, key, i))
        return result

    def _series(self, node: Any, path: str) -> SeriesBatch:
        # Files of series without names and times lack these fields.
        given = {"series_names": None, "times": None, "dates": False}
        given |= node if isinstance(node, dict) else {}
        fields = "values", "offsets", "channel_names", "series_names", "times", "dates"
        values, offsets, names, called, times, dates = _fields(given, path, *fields)
        require(type(dates) is bool, f"{path} has times of an unknown kind")
        if times is not None:
            times = self._take(times, path, "int64" if dates else "float64")
            times = times.view("datetime64[ns]") if dates else times
        # The constructor checks shapes, offsets and names, and that no value is infinite.
        return SeriesBatch(
            self._take(values, path, "float64"), self._take(offsets, path, "int64"),
            _decode_names(names, path), series_names=_decode_names(called, path), times=times,
        )  # fmt: skip

    def _array(self, node: Any, path: str) -> AnyArray:
        if isinstance(node, dict) and "items" in node:
            return self._items(node, path)
        known = {"tensor", "order", "byte_order", "repeat"}
        if not isinstance(node, dict) or not node.keys() <= known:
            raise ModelFileError(f"{path} is not a valid array")
        repeat, order = node.get("repeat"), node.get("order", "C")
        if order not in ("C", "F") or node.get("byte_order", "big") != "big":
            raise ModelFileError(f"{path} is an array of unknown order")
        value = self._take(node.get("tensor"), path)
        _check_finite(value, path)
        value = np.asarray(value, order=order)
        if "byte_order" in node:
            value = value.astype(value.dtype.newbyteorder(">"))
        if repeat is None:
            return value
        if type(repeat) is not int or not 1 <= repeat <= _MOST_REPEATS:
            raise ModelFileError(f"{path} has the invalid number of repeats {str(repeat)[:40]}")
        return np.broadcast_to(value, (repeat, *value.shape))

    def _items(self, node: dict[str, Any], path: str) -> AnyArray:
        dtype, items = _fields(node, path, "dtype", "items")
        items = _as_list(items, path)
        if dtype == "object":
            result: AnyArray = np.empty(len(items), dtype=object)
            for i, item in enumerate(items):
                result[i] = self.decode(item, path)
                require(_ITEM.accepts(result[i]), f"{path} has an item that is not a label")
            return result
        width = _FIXED_WIDTH.fullmatch(dtype) if isinstance(dtype, str) else None
        if width is None or 4 * int(width[1]) * len(items) > _MOST_TEXT_BYTES:
            raise ModelFileError(f"{path} has the unknown dtype {str(dtype)[:40]!r}")
        texts = [_as_text(item, path) for item in items]
        result = np.array(texts, dtype=np.dtype(dtype))
        require(result.tolist() == texts, f"{path} has texts longer than its dtype, {dtype}")
        return result

    def _record(self, node: Any, path: str) -> Any:
        name, given = _as_list(node, path, 2)
        if not isinstance(name, str) or name not in RECORDS:
            raise ModelFileError(f"{path} has the unknown type {str(name)[:40]!r}")
        kind, structure = RECORDS[name]
        nodes = _fields(given, path, *structure.fields)
        values = {}
        for (field, declared), item in zip(structure.fields.items(), nodes, strict=True):
            values[field] = self.decode(item, f"{path}.{field}")
            # Before the constructor, which trusts types. Sizes and rules are checked later.
            require_kind(declared, f"{path}.{field}", values[field])
        self._records[path] = record = kind(**values)
        return record

    def _same(self, node: Any, path: str) -> Any:
        require(isinstance(node, str) and node in self._records, f"{path} refers to no record")
        return self._records[node]

    def _take(self, name: Any, path: str, dtype: str | None = None) -> AnyArray:
        """Return a tensor in the byte order of this machine, and mark it as used."""
        tensor = self._unused.pop(name, None) if isinstance(name, str) else None
        if tensor is None:
            raise ModelFileError(f"{path} refers to a tensor that is missing or already used")
        if dtype is not None and tensor.dtype.name != dtype:
            raise ModelFileError(f"{path} has dtype {tensor.dtype.name}, not {dtype}")
        if tensor.dtype.kind == "b" and tensor.size and tensor.view(np.uint8).max() > 1:
            raise ModelFileError(f"{path} has booleans other than 0 and 1")
        return tensor.astype(tensor.dtype.newbyteorder("="), order="C", copy=False)


def _as_list(node: Any, path: str, length: int | None = None) -> list[Any]:
    if not isinstance(node, list) or (length is not None and len(node) != length):
        raise ModelFileError(f"{path} must have a list{f' of {length} items' if length else ''}")
    return node


def _as_text(node: Any, path: str) -> str:
    if not isinstance(node, str) or len(node) > LONGEST_TEXT:
        raise ModelFileError(f"{path} must have a text of at most {LONGEST_TEXT} characters")
    return node


def _fields(node: Any, path: str, *names: str) -> list[Any]:
    if not isinstance(node, dict) or set(node) != set(names):
        raise ModelFileError(f"{path} must have the fields {', '.join(names)}")
    return [node[name] for name in names]


def _decode_range(node: Any, path: str) -> range:
    bounds = _as_list(node, path, 3)
    if not all(type(b) is int for b in bounds) or bounds[2] == 0:
        raise ModelFileError(f"{path} is not a valid range")
    start, stop, step = bounds
    if abs(stop - start) // abs(step) > _LONGEST_RANGE:
        raise ModelFileError(f"{path} is a range of more than {_LONGEST_RANGE} numbers")
    return range(start, stop, step)


def _decode_float(node: Any, path: str) -> float:
    require(isinstance(node, str) and node in _NOT_FINITE, f"{path} is not a number")
    return _NOT_FINITE[node]


def _decode_scalar(node: Any, path: str) -> np.generic:
    dtype, value = _as_list(node, path, 2)
    if dtype == "str":
        return np.str_(_as_text(value, path))
    if not isinstance(dtype, str) or dtype not in TENSOR_DTYPES:
        raise ModelFileError(f"{path} has the unknown dtype {str(dtype)[:40]!r}")
    kind = np.dtype(dtype).kind
    if kind == "f" and isinstance(value, dict) and set(value) == {"float"}:
        value = _decode_float(value["float"], path)
    expected = {"b": bool, "i": int, "u": int, "f": float}[kind]
    require(type(value) is expected, f"{path} is not a valid {dtype}")
    result: np.generic = np.dtype(dtype).type(value)
    if result.item() != value and value == value:
        raise ModelFileError(f"{path} is out of range for {dtype}")
    return result
