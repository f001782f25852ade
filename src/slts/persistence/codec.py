"""Model files as bytes: values as JSON and named arrays, in a safetensors file with a digest.

The metadata of the header has one entry, ``"slts"``: a JSON text that begins with the SHA-256 of
the whole file (computed with zeros in place of its 64 digits), the number of the format, and the
version of slts that wrote the file. Other formats state their number and version in the same way.

Values are of a closed set of types. None, bool, int, str, finite float and list are stored as JSON.
Any other value is an object with a tag: tuple, dict, range, float (NaN and infinities), numpy (a
scalar with its dtype), labels (an array of Python objects), array (the name of an array), or class
(a dataclass of the table, with its fields). No other type can be written, and reading creates no
other type. Nodes describe themselves, as parameters may hold any of these types. The fields of
dataclasses are compared with their annotations before the constructor, which may trust them, is
called.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import reprlib
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import ModelFileError
from slts.series import SeriesBatch

FORMAT = 4
_ENTRY = "slts"
_NO_DIGEST = "0" * 64


def library_version() -> str:
    """Version of slts, imported late because the package imports this module."""
    from slts import __version__

    return __version__


def pack(document: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> bytes:
    """Make the bytes of a file; the same content gives the same bytes.

    Arrays must be C-contiguous and little-endian.
    """
    from safetensors.numpy import save

    head = {"sha256": _NO_DIGEST, "format": FORMAT, "slts": library_version()}
    text = json.dumps({**head, **document}, allow_nan=False, separators=(",", ":"))
    content: bytes = save(dict(arrays), metadata={_ENTRY: text})
    # The metadata precede the names of arrays, so this is the place of the digest.
    begin = content.index(_NO_DIGEST.encode())
    digest = _digest(content, begin).encode()
    return b"".join((content[:begin], digest, content[begin + len(digest) :]))


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the document and the arrays of a file, or raise `ModelFileError` with the reason."""
    from safetensors.numpy import load

    size = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + size])
        document = json.loads(header["__metadata__"][_ENTRY])
        stated, number, writer = str(document["sha256"]), document["format"], document["slts"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ModelFileError("it is not a model file of slts, or it is incomplete") from error
    if number != FORMAT:
        raise ModelFileError(
            f"it was written by slts {str(writer)[:20]} in format {str(number)[:20]}, and this "
            f"slts, {library_version()}, reads format {FORMAT}. Load it with the version that "
            f"wrote it, or train the model again"
        )
    if _digest(content, content.find(stated.encode(errors="replace"))) != stated:
        raise ModelFileError("its content does not match its digest: it is damaged or was edited")
    try:
        return document, load(content)
    except Exception as error:
        raise ModelFileError(f"its arrays cannot be read ({error})") from error


def _digest(content: bytes, begin: int) -> str:
    """Return the SHA-256 of a file whose digest begins at a byte."""
    digest = hashlib.sha256(content[:begin] + _NO_DIGEST.encode())
    digest.update(memoryview(content)[begin + len(_NO_DIGEST) :])
    return digest.hexdigest()


# ---- values


class Stored(NamedTuple):
    """What a stored field may hold."""

    annotation: Any
    # Whether numbers may be NaN or infinite: `field(metadata={"nan": True})`.
    nan: bool = False


# The arguments of its constructor, which checks them.
_SERIES = {
    "values": Stored(FloatArray, nan=True),
    "offsets": Stored(IntArray),
    "channel_names": Stored(tuple[str, ...] | None),
    "series_names": Stored(tuple[str, ...] | None),
    "times": Stored(AnyArray | None),
}


def stored_fields(kind: type) -> Mapping[str, Stored]:
    """Fields of a dataclass that files store: the public arguments of its constructor."""
    if kind is SeriesBatch:
        return _SERIES
    hints = get_type_hints(kind)
    return {
        f.name: Stored(hints[f.name], f.metadata.get("nan", False))
        for f in fields(kind)
        if f.init and not f.name.startswith("_")
    }


class Codec:
    """Encodes values as JSON nodes and arrays, and decodes them.

    Parameters
    ----------
    classes
        The dataclasses that may be stored; their names must differ.
    arrays
        Arrays to decode from. Encoding adds arrays.
    anonymous
        Whether values that have a method `anonymous` are encoded without identifiers.
    """

    def __init__(
        self,
        classes: Iterable[type],
        arrays: Mapping[str, AnyArray] | None = None,
        *,
        anonymous: bool = False,
    ) -> None:
        self.arrays: dict[str, AnyArray] = dict(arrays or {})
        self._classes = {kind.__name__: kind for kind in classes}
        self._anonymous = anonymous
        # By memory and layout; the arrays are kept, so that no other array gets their memory.
        self._encoded: dict[tuple[Any, ...], tuple[str, AnyArray]] = {}
        self._decoded: dict[str, Any] = {}

    # ---- values to nodes

    def encode(self, value: Any, path: str) -> Any:
        """Return the node of a value, or raise `TypeError` with the path of an unknown type."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list or kind is tuple:
            items = [self.encode(item, f"{path}.{i}") for i, item in enumerate(value)]
            return items if kind is list else {"tuple": items}
        if kind is dict:
            items = [self.encode(item, f"{path}.{i}") for i, item in enumerate(value.values())]
            return {"dict": [[self.encode(k, path), v] for k, v in zip(value, items, strict=True)]}
        if kind is range:
            return {"range": [value.start, value.stop, value.step]}
        if isinstance(value, np.generic) and _is_plain(value.dtype):
            return {"numpy": [value.dtype.str, self.encode(value.item(), path)]}
        if kind in (np.ndarray, np.memmap):
            return self._encode_array(value, path)
        if self._classes.get(kind.__name__) is kind:
            return self._encode_record(value, path)
        raise TypeError(f"{path} has type {kind.__name__}, which files cannot store")

    def _encode_record(self, value: Any, path: str) -> dict[str, Any]:
        if self._anonymous and hasattr(value, "anonymous"):
            value = value.anonymous()
        names = stored_fields(type(value))
        nodes = {name: self.encode(getattr(value, name), f"{path}.{name}") for name in names}
        return {"class": type(value).__name__, **nodes}

    def _encode_array(self, value: AnyArray, path: str) -> dict[str, Any]:
        if value.dtype == object and value.ndim == 1:
            return {"labels": [self.encode(item, path) for item in value]}
        stored = value.astype(value.dtype.newbyteorder("<"), order="C", copy=False)
        node = {}
        if value.dtype.kind in "UM":
            # Text as code points, dates as integers.
            node["dtype"] = stored.dtype.str
            stored = stored[..., np.newaxis].view(np.uint32 if value.dtype.kind == "U" else "<i8")
        elif not _is_plain(value.dtype):
            raise TypeError(f"{path} has dtype {value.dtype}, which files cannot store")
        if value.flags.f_contiguous and not value.flags.c_contiguous:
            # The order of an array decides the order of sums over it, and so their last digits.
            node["order"] = "F"
        key = value.__array_interface__["data"], value.shape, value.strides, value.dtype.str
        if key not in self._encoded:
            while path in self.arrays:
                path += "+"
            self.arrays[path] = stored
            self._encoded[key] = path, value
        return {"array": self._encoded[key][0], **node}

    # ---- nodes to values

    def decode(self, node: Any, path: str) -> Any:
        """Return the value of a node, or raise `ModelFileError` with the path of what is wrong."""
        try:
            return self._decode(node, path)
        except ModelFileError:
            raise
        except Exception as error:
            raise ModelFileError(f"{path} is not valid: {error}") from error

    def decode_fields(
        self, nodes: Mapping[str, Any], declared: Mapping[str, Stored], path: str = ""
    ) -> dict[str, Any]:
        """Return values by name, which must be as declared."""
        if nodes.keys() != declared.keys():
            names = ", ".join(sorted(nodes.keys() ^ declared.keys()))
            raise ModelFileError(f"{path or 'it'} has missing or unknown fields: {names}")
        values = {}
        for name, (annotation, nan) in declared.items():
            where = f"{path}.{name}" if path else name
            values[name] = value = self.decode(nodes[name], where)
            if not conforms(value, annotation):
                shown = value.dtype if isinstance(value, np.ndarray) else reprlib.repr(value)
                text = annotation.__name__ if isinstance(annotation, type) else annotation
                raise ModelFileError(f"{where} must be {text}, got {shown}")
            if not nan and not _is_finite(value):
                raise ModelFileError(f"{where} has NaN or infinite values")
        return values

    def _decode(self, node: Any, path: str) -> Any:
        match node:
            case None | bool() | int() | float() | str():
                return node
            case list():
                return [self.decode(item, f"{path}.{i}") for i, item in enumerate(node)]
            case {"tuple": list(items)}:
                return tuple(self.decode(items, path))
            case {"dict": list(pairs)}:
                keys = self.decode([key for key, _ in pairs], path)
                return dict(zip(keys, self.decode([v for _, v in pairs], path), strict=True))
            case {"range": [start, stop, step]}:
                return range(start, stop, step)
            case {"float": str(text)}:
                return float(text)
            case {"numpy": [str(dtype), item]} if _is_plain(np.dtype(dtype)):
                return np.dtype(dtype).type(self.decode(item, path))
            case {"labels": list(items)}:
                return np.fromiter(self.decode(items, path), dtype=object, count=len(items))
            case {"array": str(name)}:
                return self._decode_array(self.arrays[name], node)
            case {"class": str(name)} if name in self._classes:
                # Maps share their landmarks: equal nodes are one object, as before saving.
                key = json.dumps(node)
                if key not in self._decoded:
                    kind, nodes = self._classes[name], dict(node)
                    del nodes["class"]
                    values = self.decode_fields(nodes, stored_fields(kind), path)
                    self._decoded[key] = kind(**values)
                return self._decoded[key]
        raise ModelFileError(f"{path} has an unknown form or class: {reprlib.repr(node)}")

    def _decode_array(self, stored: AnyArray, node: Mapping[str, Any]) -> AnyArray:
        array = stored.view(node["dtype"])[..., 0] if "dtype" in node else stored
        return np.asfortranarray(array) if "order" in node else array


# ---- values and annotations


def conforms(value: Any, annotation: Any) -> bool:
    """Whether a decoded value has the type of an annotation.

    Arrays may have any number of axes: `__post_init__` checks shapes.
    """
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(conforms(value, arg) for arg in args)
    if origin is Literal:
        return value in args
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _is_of(value.dtype, *get_args(args[1]))
    if origin is tuple and Ellipsis not in args:
        fits = isinstance(value, tuple) and len(value) == len(args)
        return fits and all(map(conforms, value, args))
    if origin is not None:
        if not isinstance(value, origin):
            return False
        # Keys and values of a mapping, or the items of a list or tuple.
        parts = [value, value.values()] if isinstance(value, Mapping) else [value]
        pairs = zip(parts, args, strict=False)
        return all(conforms(item, arg) for part, arg in pairs for item in part)
    if annotation is float or annotation is int:
        number = numbers.Real if annotation is float else numbers.Integral
        return isinstance(value, number) and not isinstance(value, bool)
    if annotation is bool:
        return isinstance(value, bool | np.bool_)
    # Decoding has made no other dataclasses than those of the table.
    return isinstance(value, annotation) if not _is_protocol(annotation) else is_dataclass(value)


def _is_protocol(annotation: type) -> bool:
    # `typing.is_protocol` is new in Python 3.13.
    return getattr(annotation, "_is_protocol", False)


def _is_of(dtype: np.dtype[Any], scalar: Any) -> bool:
    if scalar is Any or isinstance(scalar, TypeVar):
        return True
    return issubclass(dtype.type, get_origin(scalar) or scalar)


def _is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether safetensors can store numbers of a dtype; also text, for scalars."""
    return dtype.kind in "biuU" or (dtype.kind == "f" and dtype.itemsize <= 8)


def _is_finite(value: Any) -> bool:
    """Whether all numbers in a value are finite; dataclasses have checked their fields."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    if isinstance(value, np.ndarray | np.floating | float):
        return np.asarray(value).dtype.kind != "f" or bool(np.isfinite(value).all())
    return True
