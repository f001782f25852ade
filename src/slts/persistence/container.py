r"""JSON and tensors as the bytes of a safetensors file.

The metadata of the header has one entry, ``"slts"``: a JSON text that begins with the format number
and the SHA-256 of the whole file, computed with zeros in place of its own 64 digits.

safetensors writes and reads the tensors: it compares every size that the header declares with the
size of the file before it allocates memory. The header is parsed here first, because the JSON in it
must be strict and short.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from slts._typing import AnyArray
from slts.errors import ModelFileError

FORMAT = 2
# A header holds names and reports, not data. Parsing takes about twenty times its size.
MOST_HEADER_BYTES = 8 * 2**20
_ENTRY = "slts"
_NO_HASH = "0" * 64
_HASH = re.compile(rb'\\"sha256\\":\\"([0-9a-f]{64})\\"')
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")
_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "F32": "float32",
    "F64": "float64",
}  # fmt: skip
TENSOR_DTYPES = frozenset(_DTYPES.values())

_DEEPEST = 32
# 64-bit integers have at most 20 digits, and repr of a float has at most 24 characters.
_LONGEST_NUMBER = 32
# Possessive, and without need of a closing quote: the time is linear in any text.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def library_version() -> str:
    """Version of slts, imported late because the package imports this module."""
    from slts import __version__

    return __version__


def pack(document: Mapping[str, Any], tensors: Mapping[str, AnyArray]) -> bytes:
    """Make the bytes of a file; the same content gives the same bytes.

    Parameters
    ----------
    document
        Values that JSON can hold. The format number, the hash and the version are added.
    tensors
        C-contiguous little-endian arrays of `TENSOR_DTYPES`.
    """
    from safetensors.numpy import save

    head = {"format": FORMAT, "sha256": _NO_HASH, "slts": library_version()}
    content = save(dict(tensors), metadata={_ENTRY: dump_json({**head, **document})})
    if int.from_bytes(content[:8], "little") > MOST_HEADER_BYTES:
        raise ModelFileError(
            f"its names, parameters and reports take more than {MOST_HEADER_BYTES} bytes"
        )
    found = _HASH.search(content)
    assert found is not None
    begin, end = found.span(1)
    digest = hashlib.sha256(content).hexdigest().encode("ascii")
    return b"".join((content[:begin], digest, content[end:]))


def unpack(file: BinaryIO, size: int) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Read a file and check everything that does not depend on what it means.

    Parameters
    ----------
    file
        Open for reading, at its beginning.
    size
        Its number of bytes.

    Returns
    -------
    document : dict
        The JSON document.
    tensors : dict
        The tensors by name.

    Raises
    ------
    ModelFileError
        With the reason, without the name of the file.
    """
    from safetensors import SafetensorError, deserialize

    header = _read_header(file, size)
    try:
        entries = parse_json(header.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ModelFileError(f"its header is not UTF-8 ({error.reason})") from error
    document = _document(entries)
    del entries["__metadata__"]
    if not all(isinstance(entry, dict) and len(entry) == 3 for entry in entries.values()):
        raise ModelFileError("its tensors must be described by dtype, shape and data_offsets")
    file.seek(0)
    content = file.read(size + 1)
    try:
        tensors = dict(deserialize(content))
    except SafetensorError as error:
        problem = _size_problem(entries, 8 + len(header), len(content)) or f"damaged ({error})"
        raise ModelFileError(f"it is {problem}") from error
    _check_hash(content, document)
    return document, {name: _array(name, tensor) for name, tensor in tensors.items()}


def _read_header(file: BinaryIO, size: int) -> bytes:
    if size == 0:
        raise ModelFileError("it is empty")
    beginning = file.read(9)
    length = int.from_bytes(beginning[:8], "little")
    if beginning[8:] != b"{" or not 1 <= length <= MOST_HEADER_BYTES:
        hint = ""
        if beginning[:2] in (b"\x80\x04", b"\x80\x05", b"PK"):
            hint = ", but looks like a pickle or an archive: open it with the program that wrote it"
        raise ModelFileError(f"it is not a model file of slts{hint}")
    if size < 8 + length:
        raise ModelFileError(
            f"it is truncated: its header has {length} bytes, but only {size - 8} are present"
        )
    header = b"{" + file.read(length - 1)
    if len(header) != length:
        raise ModelFileError("it changed during reading")
    return header


def _size_problem(entries: dict[str, Any], begin: int, size: int) -> str:
    """Compare the size of a file with the end of its last tensor, which its header declares."""
    try:
        expected = max((begin + entry["data_offsets"][1] for entry in entries.values()), default=0)
    except (KeyError, TypeError, IndexError):
        return ""
    if size == expected:
        return ""
    found = f"it has {size:,} bytes, expected {expected:,}"
    return f"truncated: {found}" if size < expected else f"too long: {found}"


def _document(entries: Any) -> dict[str, Any]:
    """Give the JSON document inside the header, if its format can be read."""
    metadata = entries.get("__metadata__") if isinstance(entries, dict) else None
    text = metadata.get(_ENTRY) if isinstance(metadata, dict) and len(metadata) == 1 else None
    if not isinstance(text, str):
        raise ModelFileError("it is a safetensors file, but not a model file of slts")
    document = parse_json(text)
    number = document.get("format") if isinstance(document, dict) else None
    if not isinstance(document, dict) or type(number) is not int or number < 1:
        raise ModelFileError("it does not state its format")
    writer = document.get("slts")
    if not isinstance(writer, str) or not _VERSION.fullmatch(writer):
        raise ModelFileError("it does not state which version of slts wrote it")
    if number != FORMAT:
        remedy = "train the model again and save it, or load it with the version that wrote it"
        raise ModelFileError(
            f"it was written by slts {writer} in format {number}, and this slts, "
            f"{library_version()}, reads format {FORMAT} only: "
            f"{'upgrade slts' if number > FORMAT else remedy}"
        )
    return document


def _array(name: str, tensor: dict[str, Any]) -> AnyArray:
    if tensor["dtype"] not in _DTYPES:
        raise ModelFileError(f"tensor {name[:40]!r} has the unknown dtype {tensor['dtype']}")
    stored = np.dtype(_DTYPES[tensor["dtype"]]).newbyteorder("<")
    return np.ndarray(tensor["shape"], stored, buffer=tensor["data"])


def _check_hash(content: bytes, document: dict[str, Any]) -> None:
    found = _HASH.search(content)
    stored = b"" if found is None else found.group(1)
    if found is None or document.get("sha256") != stored.decode("ascii"):
        raise ModelFileError("it is damaged: its content hash is missing")
    begin, end = found.span(1)
    digest = hashlib.sha256(content[:begin] + _NO_HASH.encode("ascii"))
    digest.update(memoryview(content)[end:])
    if digest.hexdigest().encode("ascii") != stored:
        raise ModelFileError(
            "its content does not match its hash: the file is damaged or was edited"
        )


def parse_json(text: str) -> Any:
    """Parse JSON from an untrusted file; the caller limits its length.

    Raises
    ------
    ModelFileError
        If the text is not JSON, nests deeper than 32 levels, repeats a key, or has a number that is
        not a 64-bit integer or a finite float.
    """
    # Check the depth first: the parser recurses, and it would crash under a high recursion limit.
    bare = np.frombuffer(_STRING.sub("", text).encode("utf-8", "replace"), dtype=np.uint8)
    opening = (bare == ord("[")) | (bare == ord("{"))
    closing = (bare == ord("]")) | (bare == ord("}"))
    depth = np.cumsum(opening.astype(np.int8) - closing, dtype=np.int64)
    if depth.max(initial=0) > _DEEPEST:
        raise ModelFileError(f"its header nests deeper than {_DEEPEST} levels")
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its header is not valid JSON ({error})") from error


def dump_json(value: Any) -> str:
    """Write JSON in ASCII, without spaces and with keys in their order."""
    return json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ModelFileError("its header repeats a key")
    return result


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER or not -(2**63) <= int(digits) < 2**64:
        raise ModelFileError(f"its header has an integer beyond 64 bits, {digits[:24]}")
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > _LONGEST_NUMBER or not math.isfinite(float(digits)):
        raise ModelFileError(f"its header has a number outside the range of floats, {digits[:24]}")
    return float(digits)


def _constant(name: str) -> Any:
    raise ModelFileError(f"its header has {name}, which is not JSON")
