r"""JSON and tensors as the bytes of a safetensors file.

The header's metadata has one entry, ``"slts"``: a JSON text that begins with the format version and
the SHA-256 of the whole file, taken with zeros in place of its own 64 digits.

safetensors writes the files. They are read here, by a stricter reader: every size that the header
declares is compared with the size of the file before anything is allocated for it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

import numpy as np

from slts._typing import AnyArray
from slts.errors import ModelFileError
from slts.persistence.strict_json import dump, parse

FORMAT = 1
# A header holds names and reports, not data; parsed, it takes some twenty times its size.
MOST_HEADER_BYTES = 8 * 2**20
_MOST_TENSORS = 4096
_MOST_AXES = 8
_LONGEST_AXIS = 2**40
_ENTRY = "slts"
_NO_HASH = "0" * 64
_HASH = re.compile(rb'\\"sha256\\":\\"([0-9a-f]{64})\\"')
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")
_NAME = re.compile(r"[A-Za-z0-9_.]{1,200}")
_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "F32": "float32",
    "F64": "float64",
}  # fmt: skip
TENSOR_DTYPES = frozenset(_DTYPES.values())


@dataclass(frozen=True)
class Container:
    """What a file holds: the JSON document, and read-only views of the tensors by name."""

    document: dict[str, Any]
    tensors: dict[str, AnyArray]


def pack(document: Mapping[str, Any], tensors: Mapping[str, AnyArray]) -> bytes:
    """Bytes of the file; the same for the same content.

    Parameters
    ----------
    document
        What JSON can hold. Format version and hash are added.
    tensors
        C-contiguous little-endian arrays of `TENSOR_DTYPES`.
    """
    from safetensors.numpy import save

    text = dump({"format": FORMAT, "sha256": _NO_HASH, **document})
    content = save(dict(tensors), metadata={_ENTRY: text})
    found = _HASH.search(content)
    assert found is not None
    begin, end = found.span(1)
    digest = hashlib.sha256(content).hexdigest().encode("ascii")
    return b"".join((content[:begin], digest, content[end:]))


def unpack(file: BinaryIO, size: int, version: str) -> Container:
    """Read a file of `size` bytes and check everything that can be checked without its meaning.

    Parameters
    ----------
    file
        Open for reading, at its beginning.
    size
        Its number of bytes.
    version
        Of this library, for the message about newer formats.

    Raises
    ------
    ModelFileError
        With the reason; the caller adds the name of the file.
    """
    header = _read_header(file, size)
    entries = parse(_as_text(header))
    document = _document(entries, version)
    layout = _tensor_layout(entries, size - 8 - len(header))
    payload = file.read(size - 8 - len(header) + 1)
    if len(payload) != size - 8 - len(header):
        raise ModelFileError("it changed while it was read")
    _check_hash(header, payload, document)
    return Container(document, {name: view(payload) for name, view in layout.items()})


def _read_header(file: BinaryIO, size: int) -> bytes:
    if size == 0:
        raise ModelFileError("it is empty")
    beginning = file.read(9)
    length = int.from_bytes(beginning[:8], "little")
    if len(beginning) < 9 or beginning[8:] != b"{" or length > MOST_HEADER_BYTES:
        hint = ""
        if beginning[:2] in (b"\x80\x04", b"\x80\x05", b"PK"):
            hint = ", but looks like a pickle or an archive: open it with what made it"
        raise ModelFileError(f"it is no model file of slts{hint}")
    if size < 8 + length:
        raise ModelFileError(
            f"it is truncated: its header has {length} bytes, and only {size - 8} are there"
        )
    header = b"{" + file.read(length - 1) if length else b""
    if len(header) != length:
        raise ModelFileError("it changed while it was read")
    return header


def _as_text(header: bytes) -> str:
    try:
        return header.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelFileError(f"its header is not UTF-8 ({error.reason})") from error


def _document(entries: Any, version: str) -> dict[str, Any]:
    """The JSON document inside the header, of a format that can be read."""
    metadata = entries.get("__metadata__") if isinstance(entries, dict) else None
    text = metadata.get(_ENTRY) if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(text, str) or len(metadata) != 1:
        raise ModelFileError("it is a safetensors file, but no model file of slts")
    document = parse(text)
    number = document.get("format") if isinstance(document, dict) else None
    if not isinstance(document, dict) or type(number) is not int or number < 1:
        raise ModelFileError("it does not say which format it has")
    writer = document.get("slts")
    if not isinstance(writer, str) or not _VERSION.fullmatch(writer):
        raise ModelFileError("it does not say which slts wrote it")
    if number > FORMAT:
        raise ModelFileError(
            f"it was written by slts {writer}, format {number}; this slts, {version}, reads up to "
            f"format {FORMAT}: upgrade slts"
        )
    return document


@dataclass(frozen=True)
class _View:
    """Where a tensor lies in the payload."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    def __call__(self, payload: bytes) -> AnyArray:
        if self.begin == self.end:
            return np.zeros(self.shape, dtype=self.dtype)
        stored = np.dtype(self.dtype).newbyteorder("<")
        count = prod(self.shape)
        flat: AnyArray = np.frombuffer(payload, stored, count=count, offset=self.begin)
        return flat.reshape(self.shape)


def _tensor_layout(entries: dict[str, Any], n_bytes: int) -> dict[str, _View]:
    """Check that the tensors fill the payload exactly, each as large as its shape says."""
    tensors = {name: entry for name, entry in entries.items() if name != "__metadata__"}
    if len(tensors) > _MOST_TENSORS:
        raise ModelFileError(f"it declares {len(tensors)} tensors, at most {_MOST_TENSORS} can be")
    layout = {name: _checked_view(name, entry) for name, entry in tensors.items()}
    position = 0
    for name, view in sorted(layout.items(), key=lambda item: (item[1].begin, item[1].end)):
        if view.begin != position:
            raise ModelFileError(f"tensor {name} begins at byte {view.begin}, not at {position}")
        position = view.end
    if position != n_bytes:
        state = "truncated" if position > n_bytes else "too long"
        raise ModelFileError(
            f"it is {state}: its header declares {position} bytes of numbers, and {n_bytes} are "
            f"there"
        )
    return layout


def _checked_view(name: str, entry: Any) -> _View:
    if not _NAME.fullmatch(name):
        raise ModelFileError(f"a tensor has the name {name[:40]!r}")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"tensor {name} is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ModelFileError(f"tensor {name} has an unknown dtype, {str(dtype)[:40]!r}")
    if not _are_sizes(shape) or len(shape) > _MOST_AXES or max(shape, default=0) > _LONGEST_AXIS:
        raise ModelFileError(f"tensor {name} has an impossible shape, {str(shape)[:80]}")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ModelFileError(f"tensor {name} has impossible offsets, {str(offsets)[:80]}")
    needed = prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
    if offsets[1] - offsets[0] != needed:
        raise ModelFileError(
            f"tensor {name} of shape {shape} needs {needed} bytes and has {offsets[1] - offsets[0]}"
        )
    return _View(_DTYPES[dtype], tuple(shape), offsets[0], offsets[1])


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)


def _check_hash(header: bytes, payload: bytes, document: dict[str, Any]) -> None:
    found = _HASH.search(header)
    stored = b"" if found is None else found.group(1)
    if found is None or document.get("sha256") != stored.decode("ascii"):
        raise ModelFileError("it has no content hash where one belongs: it is damaged")
    begin, end = found.span(1)
    digest = hashlib.sha256(len(header).to_bytes(8, "little"))
    digest.update(header[:begin] + _NO_HASH.encode("ascii") + header[end:])
    digest.update(payload)
    if digest.hexdigest().encode("ascii") != stored:
        raise ModelFileError(
            "its content does not match its hash: the file is damaged or was edited"
        )
