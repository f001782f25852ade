"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Errors of a full disk: no space left, quota exceeded, file too large.
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a new name beside `path`; the file written there replaces `path` at the end.

    Readers of `path` see the old file or the new one, even if the process or the machine stops
    during writing. If `path` is a symbolic link, its target is replaced. If the block raises an
    error or is interrupted, the new file is removed.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a folder", str(target))
    # Not tempfile: only the owner could read its files. The suffix stays last, because some writers
    # choose the format by it. The stem is cut, because names have at most 255 bytes.
    stem = os.fsencode(target.stem)[:100].decode("utf-8", "ignore")
    temporary = target.with_name(f".{stem}.{secrets.token_hex(8)}.part{target.suffix}")
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None and error.errno in _FULL:
            # These errors name no file, or the temporary one.
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise
    # Make the new name survive a power failure. Systems that cannot do this raise an OSError.
    with suppress(OSError):
        _sync(target.parent)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to `path`, completely or not at all."""
    with whole_file(path) as temporary, open(temporary, "xb") as file:
        file.write(content)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
