"""Files opened for reading: compressed or not, and standard input."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from slts.errors import DataError
from slts.extras import import_extra

__all__ = ["STDIN", "Source", "base_suffix", "is_compressed", "open_source"]

STDIN = "-"
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


class Source:
    """An open file, its name for messages, and how much of it has been read."""

    def __init__(self, stream: BinaryIO, name: str, raw: BinaryIO | None, size: int) -> None:
        self.stream = stream
        self.name = name
        self._raw = raw
        self._size = size

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end.

        `read` of a buffered pipe goes on waiting in C when a signal comes between two pieces of
        data; here Python looks for signals after every piece.
        """
        read = getattr(self.stream, "read1", self.stream.read)
        pieces, missing = [], size
        while missing > 0:
            piece = read(missing)
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    @property
    def share(self) -> float | None:
        """Share of the bytes on disk that have been read; None for standard input."""
        if self._raw is None or self._size == 0:
            return None
        return min(1.0, self._raw.tell() / self._size)


def base_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix that tells the form, without that of a compression.

    Examples
    --------
    >>> from slts.files.opening import base_suffix
    >>> base_suffix("data/train.CSV.gz"), base_suffix("train.ts")
    ('.csv', '.ts')
    """
    path = Path(path)
    if is_compressed(path):
        path = path.with_suffix("")
    return path.suffix.lower()


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether a name ends in the suffix of a compression."""
    return Path(path).suffix.lower() in _COMPRESSED


@contextmanager
def open_source(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Open a file, or standard input for ``"-"``, and decompress it by its suffix.

    Parameters
    ----------
    path : str or path
        Name of the file.

    Yields
    ------
    Source
        Bytes, decompressed; damage found while they are read becomes `DataError`.
    """
    if os.fspath(path) == STDIN:
        yield Source(_stdin(), "standard input", None, 0)
        return
    path = Path(path)
    with path.open("rb") as raw:
        try:
            with _decompressed(raw, path.suffix.lower()) as stream:
                yield Source(stream, str(path), raw, path.stat().st_size)
        except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError) as error:
            raise DataError(f"{path} is damaged, or not compressed as it is named: {error}") from (
                error
            )


def _stdin() -> BinaryIO:
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("- stands for standard input, and there is none")
    # Tests and notebooks put text streams in its place.
    buffer = getattr(sys.stdin, "buffer", None)
    if buffer is None:
        return io.BytesIO(sys.stdin.read().encode())
    return cast(BinaryIO, buffer)


@contextmanager
def _decompressed(raw: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    stream: Any
    if suffix == ".gz":
        stream = gzip.GzipFile(fileobj=raw)
    elif suffix == ".bz2":
        stream = bz2.BZ2File(raw)
    elif suffix == ".xz":
        stream = lzma.LZMAFile(raw)  # noqa: SIM115 - entered below
    elif suffix == ".zst":
        arrow: Any = import_extra("pyarrow", "io")
        stream = arrow.CompressedInputStream(raw, "zstd")
    else:
        yield raw
        return
    with stream:
        try:
            yield stream
        except OSError as error:
            # bz2 and zstd have no exception of their own for damage.
            if error.errno is None and suffix in (".bz2", ".zst"):
                raise DataError(
                    f"{raw.name} is damaged, or not compressed as it is named: {error}"
                ) from error
            raise
