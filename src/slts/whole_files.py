"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a fresh name beside `path`; what is written there gets its name at the end.

    Whoever reads `path` sees the old file or the new one, even if the process or the machine stops
    in between. A symbolic link stays: the file it leads to is replaced. If the block fails or is
    interrupted, the fresh file is removed.
    """
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(place.parent))
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a folder", str(place))
    # Not tempfile: its files are readable by their owner only, and would stay so. The suffix stays
    # last, for some writers choose their format by it.
    # Names have at most 255 bytes, and letters may have several.
    stem = os.fsencode(place.stem)[:100].decode("utf-8", "ignore")
    fresh = place.with_name(f".{stem}.{secrets.token_hex(8)}.part{place.suffix}")
    try:
        yield fresh
        _sync(fresh)
        os.replace(fresh, place)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(fresh)
        raise
    # So that the new name survives a power cut; systems that cannot do it say so by an OSError.
    with suppress(OSError):
        _sync(place.parent)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to `path`, whole or not at all."""
    with whole_file(path) as fresh, open(fresh, "xb") as file:
        file.write(content)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
