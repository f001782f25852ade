"""Read-only access to files in a folder, a zip or a tar archive, without unpacking to disk."""

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

__all__ = ["Store", "open_store", "tar_store"]

MAX_BYTES = 256 * 2**20
"""Most that may come out of one archive: eight times the largest of the data sets."""
MAX_FILES = 100_000
MAX_DEPTH = 3

# What the two modules raise on damaged, encrypted or exotic archives.
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
)


class Store:
    """Named files that can be read one by one.

    Parameters
    ----------
    place : str
        Where the files are, for error messages.
    names : list of str
        Paths within the place, with forward slashes.
    read : callable
        Gives the content of one of them.
    """

    def __init__(self, place: str, names: list[str], read: Callable[[str], bytes]) -> None:
        self.place = place
        # Shallow first, so that the nearest of several copies is taken.
        self.names = sorted(names, key=lambda name: (name.count("/"), name))
        self._read = read

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        bytes
            The whole content.
        """
        with _damage_reported(f"{self.place}: {name}"):
            return self._read(name)

    def find(self, file_name: str) -> str | None:
        """Return the nearest path that ends in a file name, whatever its case.

        Parameters
        ----------
        file_name : str
            Last part of the path.

        Returns
        -------
        str or None
            A member of `names`.
        """
        wanted = file_name.lower()
        return next((n for n in self.names if n.lower().rpartition("/")[2] == wanted), None)


@contextmanager
def _damage_reported(what: str) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        raise DataError(
            f"{what} cannot be read, it is damaged or not what it claims: {error}"
        ) from (error)


@contextmanager
def open_store(path: Path, place: str | None = None) -> Iterator[Store]:
    """Open a folder, a zip or a (compressed) tar archive.

    Parameters
    ----------
    path : Path
        An existing folder or file; what kind of archive it is, its content tells.
    place : str, optional
        What to call it in error messages; its path by default.

    Yields
    ------
    Store
        Readable while the context lasts.

    Raises
    ------
    DataError
        If the file is no archive, is damaged, or would unpack to an absurd size.
    """
    place = str(path) if place is None else place
    if path.is_dir():
        yield Store(place, list(_walk(path)), lambda name: _read_file(path / name))
    elif zipfile.is_zipfile(path):
        with _damage_reported(place):
            archive = zipfile.ZipFile(path)
        with archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            _check_size(place, len(members), sum(member.file_size for member in members))
            names = [member.filename for member in members if _visible(member.filename)]
            yield Store(place, names, archive.read)
    else:
        yield tar_store(_read_file(path), place)


def tar_store(content: bytes, place: str) -> Store:
    """Read the files of a tar archive, compressed or not, into memory.

    Parameters
    ----------
    content : bytes
        The archive.
    place : str
        Where it came from, for error messages.

    Returns
    -------
    Store
        Its plain files; links and devices are left out.
    """
    files: dict[str, bytes] = {}
    total = 0
    with _damage_reported(place):
        if not tarfile.is_tarfile(io.BytesIO(content)):
            raise DataError(f"{place} is neither a zip nor a tar archive, or it is cut off")
    with (
        _damage_reported(place),
        tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive,
    ):
        for member in archive:
            # Checked before the next header is sought, which would unpack this member.
            total += member.size
            _check_size(place, len(files), total)
            data = archive.extractfile(member) if member.isfile() else None
            if data is not None and _visible(member.name):
                files[member.name.removeprefix("./")] = data.read()
    return Store(place, list(files), files.__getitem__)


def _walk(folder: Path) -> Iterator[str]:
    """Yield the files of a folder, at most `MAX_DEPTH` folders down."""
    count = 0
    # Links are followed: data often lie on another disk. The depth limit ends any circle.
    for root, folders, files in os.walk(folder, followlinks=True):
        inner = Path(root).relative_to(folder)
        hidden = [name for name in folders if name.startswith(".")]
        folders[:] = [] if len(inner.parts) >= MAX_DEPTH else sorted(set(folders) - set(hidden))
        for name in files:
            count += 1
            if count > MAX_FILES:
                raise DataError(
                    f"{folder} holds more than {MAX_FILES} files: name the folder of the data sets"
                )
            if not name.startswith("."):
                yield (inner / name).as_posix()


def _read_file(path: Path) -> bytes:
    _check_size(str(path), 1, path.stat().st_size)
    return path.read_bytes()


def _visible(name: str) -> bool:
    """Tell whether an archive member is a file of the data rather than of the packing system."""
    parts = name.removeprefix("./").split("/")
    return "__MACOSX" not in parts and not any(part.startswith(".") for part in parts)


def _check_size(place: str, n_files: int, n_bytes: int) -> None:
    if n_bytes > MAX_BYTES or n_files > MAX_FILES:
        raise DataError(
            f"{place} would unpack to {n_bytes / 2**20:.0f} MiB in {n_files} files, more than any "
            f"of the data sets ({MAX_BYTES // 2**20} MiB, {MAX_FILES} files): it is not one of them"
        )
