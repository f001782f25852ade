"""Read-only access to the files in a folder, a zip or a tar archive, without unpacking to disk."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from slts.errors import DataError

__all__ = ["Archive", "open_archive", "read_tar"]

# Largest unpacked size of an archive: eight times the largest data set.
MAX_BYTES = 256 * 2**20
MAX_FILES = 100_000
MAX_DEPTH = 3

# What zipfile and tarfile raise on damaged, encrypted or unsupported archives.
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
)


class Archive:
    """Named files that are read one by one.

    Parameters
    ----------
    place : str
        Where the files are, for error messages.
    names : list of str
        Paths within the place, with forward slashes.
    read : callable
        Returns the content of one of them.
    """

    def __init__(self, place: str, names: list[str], read: Callable[[str], bytes]) -> None:
        self.place = place
        # Files near the root come first, so that `find` prefers them to copies in subfolders.
        self.names = sorted(names, key=lambda name: (name.count("/"), name))
        self._read = read

    def text(self, name: str) -> str:
        """Return the content of a text file in UTF-8, with plain line ends."""
        try:
            return self.read(name).decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise DataError(f"{self.place}: {name} is not text in UTF-8: {error}") from error

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with _report_damage(f"{self.place}: {name}"):
            return self._read(name)

    def find(self, file_name: str) -> str | None:
        """Return the first path with the given file name, ignoring case; None if there is none."""
        wanted = file_name.lower()
        return next((n for n in self.names if n.lower().rpartition("/")[2] == wanted), None)


@contextmanager
def _report_damage(what: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except _BROKEN as error:
        raise DataError(
            f"{what} cannot be read: it is damaged or has another format: {error}"
        ) from (error)


@contextmanager
def open_archive(path: Path, place: str | None = None) -> Iterator[Archive]:
    """Open a folder, a zip or a (compressed) tar archive.

    Parameters
    ----------
    path : Path
        An existing folder or file. The content decides which kind of archive it is.
    place : str, optional
        Its name in error messages; the path by default.

    Yields
    ------
    Archive
        Readable while the context lasts.

    Raises
    ------
    DataError
        If the file is not an archive, is damaged, or would unpack to an absurd size.
    """
    place = str(path) if place is None else place
    if path.is_dir():
        yield Archive(place, list(_walk(path)), lambda name: _read_file(path / name))
    elif zipfile.is_zipfile(path):
        with _report_damage(place):
            archive = zipfile.ZipFile(path)
        with archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            _check_size(place, len(members), sum(member.file_size for member in members))
            names = [member.filename for member in members if _is_data(member.filename)]
            yield Archive(place, names, archive.read)
    else:
        yield read_tar(_read_file(path), place)


def read_tar(content: bytes, place: str) -> Archive:
    """Read the plain files of a tar archive, compressed or not, into memory.

    Links and devices are left out.
    """
    files: dict[str, bytes] = {}
    total = 0
    with _report_damage(place):
        if not tarfile.is_tarfile(io.BytesIO(content)):
            raise DataError(f"{place} is neither a zip nor a tar archive, or it is cut off")
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
            for member in archive:
                # Check before the next iteration: looking for the next header unpacks this member.
                total += member.size
                _check_size(place, len(files), total)
                data = archive.extractfile(member) if member.isfile() else None
                if data is not None and _is_data(member.name):
                    files[member.name.removeprefix("./")] = data.read()
    return Archive(place, list(files), files.__getitem__)


def _walk(folder: Path) -> Iterator[str]:
    """Yield the files of a folder and of subfolders, at most `MAX_DEPTH` levels deep."""
    count = 0
    # Follow links, because data often lie on another disk. The depth limit ends any loop.
    for root, folders, files in os.walk(folder, followlinks=True):
        inner = Path(root).relative_to(folder)
        visible = sorted(name for name in folders if not name.startswith("."))
        folders[:] = visible if len(inner.parts) < MAX_DEPTH else []
        count += len(files)
        if count > MAX_FILES:
            raise DataError(
                f"{folder} holds more than {MAX_FILES} files: name the folder of the data sets"
            )
        yield from ((inner / name).as_posix() for name in files if not name.startswith("."))


def _read_file(path: Path) -> bytes:
    _check_size(str(path), 1, path.stat().st_size)
    return path.read_bytes()


def _is_data(name: str) -> bool:
    """Whether an archive member is neither hidden nor a file of the packing system."""
    parts = name.removeprefix("./").split("/")
    return "__MACOSX" not in parts and not any(part.startswith(".") for part in parts)


def _check_size(place: str, n_files: int, n_bytes: int) -> None:
    if n_bytes > MAX_BYTES or n_files > MAX_FILES:
        raise DataError(
            f"{place} would unpack to {n_bytes / 2**20:.0f} MiB in {n_files} files, more than any "
            f"of the data sets ({MAX_BYTES // 2**20} MiB, {MAX_FILES} files): it is not one of them"
        )
