"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Errors of a full disk: no space left, quota exceeded, file too large.
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a new empty file beside `path`; at the end it replaces `path`.

    Readers of `path` see the old file or the new one, even if the process or the machine stops
    during writing. If `path` is a symbolic link, its target is replaced. If the block raises an
    error or is interrupted, the new file is removed. Files that killed processes left are removed
    by the next call for the same `path`.

    A device or a FIFO, such as `/dev/stdout`, is not replaced: it gets the complete content at the
    end, and nothing after an error.
    """
    try:
        if is_stream(path):
            with _copied(path) as temporary:
                yield temporary
        else:
            with _replaced(Path(os.path.realpath(path))) as temporary:
                yield temporary
    except OSError as error:
        if error.errno is None or error.errno not in _FULL:
            raise
        # These errors name no file, or the temporary one.
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to `path`, completely or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a device, a FIFO or a socket."""
    try:
        # Not `realpath`: /dev/stdout may be a link to a pipe without a name.
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def _copied(path: str | os.PathLike[str]) -> Iterator[Path]:
    # Opened first: a reader of a FIFO sees its end even if the block raises an error.
    with open(path, "wb") as stream, tempfile.TemporaryDirectory(prefix="slts-") as folder:
        temporary = Path(folder, f"new{Path(path).suffix}")
        temporary.touch()
        yield temporary
        with open(temporary, "rb") as file:
            shutil.copyfileobj(file, stream)


@contextmanager
def _replaced(target: Path) -> Iterator[Path]:
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a folder", str(target))
    # Not tempfile: only the owner could read its files. The suffix stays last, because some writers
    # choose the format by it. The stem is cut, because names have at most 255 bytes.
    stem = os.fsencode(target.stem)[:100].decode("utf-8", "ignore")
    before, after = f".{stem}.", f".part{target.suffix}"
    _remove_abandoned(target.parent, before, after)
    temporary, handle = _new_file(target.parent, before, after)
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        if handle is not None:
            os.close(handle)
    # Make the new name survive a power failure. Systems that cannot do this raise an OSError.
    with suppress(OSError):
        _sync(target.parent)


def _new_file(folder: Path, before: str, after: str) -> tuple[Path, int | None]:
    """Create a file with a lock that ends with the process, and return its name and handle."""
    while True:
        path = folder / f"{before}{secrets.token_hex(8)}{after}"
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if not _lock(handle):
            # Windows does not rename open files.
            os.close(handle)
            return path, None
        # Another process may have removed the file before the lock.
        if os.fstat(handle).st_nlink:
            return path, handle
        os.close(handle)


def _remove_abandoned(folder: Path, before: str, after: str) -> None:
    """Remove files of `_new_file` that no process has locked. Files that cannot be locked stay."""
    for path in folder.glob(f"{glob.escape(before)}{'[0-9a-f]' * 16}{glob.escape(after)}"):
        with suppress(OSError), open(path, "rb+") as file:
            if _lock(file.fileno(), wait=False):
                os.unlink(path)


def _lock(handle: int, *, wait: bool = True) -> bool:
    """Lock an open file; return False if another process has, or if the system cannot."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
