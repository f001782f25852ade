r"""JSON and arrays as the bytes of a safetensors file.

The metadata of the header has one entry, ``"slts"``: a JSON text that begins with the SHA-256 of
the whole file (computed with zeros in place of its 64 digits), the number of the format, and the
version of slts that wrote the file. Other formats state their number and version in the same way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from slts._typing import AnyArray
from slts.errors import ModelFileError

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
