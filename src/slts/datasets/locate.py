"""Where the files of a data set are: the user's folder, the cache, or the aeon package."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from slts.datasets.catalogue import DatasetInfo
from slts.datasets.originals import holds
from slts.datasets.stores import Store, open_store
from slts.errors import DataError

__all__ = ["cache_folder", "data_store", "file_name"]

_TAR_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tar")


def cache_folder() -> Path:
    """Return the folder that `fetch` downloads to: `$SLTS_CACHE`, or the platform's own.

    Returns
    -------
    Path
        The folder, which need not exist.
    """
    chosen = os.environ.get("SLTS_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    # As pooch.os_cache("slts") has it; pooch itself is needed for downloads only.
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "slts"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (
            (Path(local) if local else Path.home() / "AppData" / "Local")
            / "slts"
            / "slts"
            / "Cache"
        )
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "slts"


def file_name(entry: DatasetInfo, address: str) -> str:
    """Return the name in the cache of what an address leads to.

    Parameters
    ----------
    entry : DatasetInfo
        The data set.
    address : str
        Where it is downloaded from.

    Returns
    -------
    str
        `entry.archive`, with another suffix if the address is that of a tar archive.
    """
    suffix = next((s for s in _TAR_SUFFIXES if urlsplit(address).path.endswith(s)), None)
    return entry.archive if suffix is None else Path(entry.archive).stem + suffix


@contextmanager
def data_store(entry: DatasetInfo) -> Iterator[Store]:
    """Open the first place that has the files of a data set.

    Parameters
    ----------
    entry : DatasetInfo
        The data set.

    Yields
    ------
    Store
        Its files.

    Raises
    ------
    FileNotFoundError
        If they are nowhere; the message says where was looked, and how to get them.
    """
    looked = []
    for description, folder in _folders(entry):
        looked.append(f"{description} ({folder})")
        for path in _candidates(entry, folder):
            with open_store(path) as store:
                # An archive of this name is meant: if files are missing in it, reading says so.
                if path.is_file() or holds(entry.name, store):
                    yield store
                    return
    if not os.environ.get("SLTS_DATA"):
        looked.insert(0, "SLTS_DATA (not set)")
    wheel = "pip install aeon, whose wheel has it, or " if entry.name == "japanese_vowels" else ""
    raise FileNotFoundError(
        f"{entry.title} is not on this machine; looked in {', '.join(looked)}. "
        f"{wheel}download it with "
        f'slts.datasets.fetch("{entry.name}"), or get it from {entry.page} and set SLTS_DATA to '
        f"the folder with {entry.archive} or with what it contains"
    )


def _folders(entry: DatasetInfo) -> Iterator[tuple[str, Path]]:
    """Yield the folders to look in, with what to call them."""
    chosen = os.environ.get("SLTS_DATA")
    if chosen:
        folder = Path(chosen).expanduser()
        if not folder.is_dir():
            raise DataError(
                f"SLTS_DATA names {chosen!r}, which is not a folder: set it to the one "
                "with the data sets, or unset it"
            )
        yield "SLTS_DATA", folder
    yield "the cache", cache_folder()
    if entry.name == "japanese_vowels":
        # Found, not imported: aeon takes seconds to load, and its files are all that is needed.
        aeon = importlib.util.find_spec("aeon")
        for root in (aeon.submodule_search_locations or ()) if aeon else ():
            yield "the aeon package", Path(root) / "datasets" / "data" / "JapaneseVowels"


def _candidates(entry: DatasetInfo, folder: Path) -> Iterator[Path]:
    """Yield archives in a folder by their usual names, then the folder's own files."""
    stem = Path(entry.archive).stem
    uci = [urlsplit(address).path.rpartition("/")[2] for address in entry.addresses]
    for name in dict.fromkeys([entry.archive, *(stem + suffix for suffix in _TAR_SUFFIXES), *uci]):
        if (folder / name).is_file():
            yield folder / name
    if folder.is_dir():
        if (folder / stem).is_dir():
            yield folder / stem
        yield folder
