"""`fetch`: download of the UCI originals into the cache, resumed where it broke off."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slts.datasets.catalogue import ALL_SIGNS, DatasetInfo, info, list_datasets
from slts.datasets.loading import read_checked
from slts.datasets.locate import cache_folder, file_name
from slts.datasets.resume import ResumingDownloader
from slts.datasets.stores import open_store
from slts.errors import DataError
from slts.extras import import_extra

__all__ = ["fetch"]


def fetch(name: str, *, url: str | None = None, force: bool = False, progress: bool = True) -> Path:
    """Download a data set into the cache, from which `load` reads it.

    What arrives is compared with the published counts before it is kept. A download that breaks
    off goes on where it stopped, at once or in the next call. The cache is `$SLTS_CACHE`, or the
    platform's folder for caches.

    Parameters
    ----------
    name : str
        One of `list_datasets()`; the five robot sets come in one archive.
    url : str, optional
        Address to download from, instead of `info(name).addresses`. The variable `SLTS_MIRROR`
        names a base address that stands in for all of them: `<mirror>/<archive>`.
    force : bool
        Whether to download what the cache has already; it is replaced only by a good file.
    progress : bool
        Whether to show a bar on standard error, if that is a terminal.

    Returns
    -------
    Path
        The archive in the cache.

    Raises
    ------
    ImportError
        If pooch is not installed: ``pip install "slts[datasets]"``.
    ConnectionError
        If no address gives the file.
    DataError
        If there is no such data set, or what arrives is not it.
    OSError
        If the cache cannot be written, or its disk is full.
    """
    entry = info(name)
    folder = cache_folder()
    addresses = _addresses(entry, url)
    cached = [folder / file_name(entry, address) for address in addresses]
    present = next((path for path in cached if path.is_file()), None)
    if present is not None and not force:
        return present
    failures: list[str] = []
    unreachable = False
    for address, path in zip(addresses, cached, strict=True):
        try:
            return _download(entry, address, path, progress=progress)
        except DataError as error:
            failures.append(f"{address}: {error}")
        except ConnectionError as error:
            failures.append(f"{address}: {error}")
            unreachable = True
    message = (
        f"{entry.title} could not be downloaded: {'; '.join(failures)}. You can get it by hand "
        f"from {entry.page} and put it into {folder} as {entry.archive}, or set SLTS_DATA to its "
        "folder"
    )
    raise ConnectionError(message) if unreachable else DataError(message)


def _addresses(entry: DatasetInfo, url: str | None) -> tuple[str, ...]:
    if url is not None:
        return (url,)
    mirror = os.environ.get("SLTS_MIRROR")
    return (f"{mirror.rstrip('/')}/{entry.archive}",) if mirror else entry.addresses


def _download(entry: DatasetInfo, address: str, path: Path, *, progress: bool) -> Path:
    """Download one address to a path; the path changes only if the file is good."""
    pooch = import_extra("pooch", "datasets")
    fresh = path.with_name(f"{path.name}.new")
    # pooch would take a file of that name, left by a crash, for the download itself.
    fresh.unlink(missing_ok=True)
    downloader = ResumingDownloader(
        part=path.with_name(f"{path.name}.part"), check=_checker(entry), progress=progress
    )
    with _quiet(pooch):
        pooch.retrieve(
            address, known_hash=None, fname=fresh.name, path=path.parent, downloader=downloader
        )
    fresh.replace(path)
    return path


def _checker(entry: DatasetInfo) -> Callable[[Path], None]:
    """Give the check of a downloaded file: every data set in the archive is as published."""
    same_archive = [info(name) for name in list_datasets() if info(name).archive == entry.archive]

    def check(path: Path) -> None:
        # The temporary name of the file would only puzzle the reader of a message.
        with open_store(path, "what came") as store:
            for each in same_archive:
                whole = info("auslan", n_classes=ALL_SIGNS) if each.name == "auslan" else each
                read_checked(whole, None, store)

    return check


@contextmanager
def _quiet(pooch: Any) -> Iterator[None]:
    """Keep pooch from advising, on standard error, to note down the hash of the file."""
    logger: logging.Logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
