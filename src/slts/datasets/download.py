"""`fetch`: download a data set into the cache."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path
from typing import Any

from slts.atomic_files import whole_file
from slts.datasets.archives import open_archive
from slts.datasets.catalogue import ALL_SIGNS, DatasetInfo, info, list_datasets
from slts.datasets.loading import cache_folder, cached_name, read_checked
from slts.errors import DataError
from slts.execution import progress_bar
from slts.extras import import_extra

__all__ = ["fetch"]

ATTEMPTS = 4
# Pause before the second attempt; it doubles with each further one.
PAUSE_S = 1.0
_TIMEOUT_S = (10, 60)
# The length of a compressed body is not that of the file.
_NOT_COMPRESSED = {"Accept-Encoding": "identity"}
# Bytes that are written at a time.
_CHUNK = 1 << 16
_DISK_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def fetch(name: str, *, url: str | None = None, force: bool = False, progress: bool = True) -> Path:
    """Download a data set into the cache, from which `load` reads it.

    The downloaded file is compared with the published counts before it is kept. A download whose
    connection breaks starts again, a few times. The cache is `$SLTS_CACHE`, or the platform's
    folder for caches.

    Parameters
    ----------
    name : str
        One of `list_datasets()`. The five robot data sets come in one archive.
    url : str, optional
        Address to download from, instead of `info(name).addresses`. The variable `SLTS_MIRROR`
        names a base address that replaces all of them: `<mirror>/<archive>`.
    force : bool
        Whether to download a data set that the cache already has. The old file is replaced only by
        a correct one.
    progress : bool
        Whether to report progress on standard error.

    Returns
    -------
    Path
        The archive in the cache.

    Raises
    ------
    ImportError
        If requests is not installed: ``pip install "slts[datasets]"``.
    ConnectionError
        If no address gives the file.
    DataError
        If there is no such data set, or the downloaded file is not the data set.
    OSError
        If the cache cannot be written, or its disk is full.
    """
    entry, folder = info(name), cache_folder()
    mirror = os.environ.get("SLTS_MIRROR")
    addresses = entry.addresses
    if url is not None:
        addresses = (url,)
    elif mirror:
        addresses = (f"{mirror.rstrip('/')}/{entry.archive}",)
    paths = [folder / cached_name(entry, address) for address in addresses]
    cached = next((path for path in paths if path.is_file()), None)
    if cached is not None and not force:
        return cached
    failures: list[str] = []
    unreachable = False
    for address, path in zip(addresses, paths, strict=True):
        try:
            return _download(entry, address, path, progress=progress)
        except (DataError, ConnectionError) as error:
            failures.append(f"{address}: {error}")
            unreachable |= isinstance(error, ConnectionError)
    message = (
        f"{entry.title} could not be downloaded: {'; '.join(failures)}. You can download it "
        f"yourself from {entry.page} and save it in {folder} as {entry.archive}, or set SLTS_DATA "
        "to its folder"
    )
    raise ConnectionError(message) if unreachable else DataError(message)


def _download(entry: DatasetInfo, address: str, path: Path, *, progress: bool) -> Path:
    """Download an address to a path; the file at the path changes only if the download is good."""
    requests = import_extra("requests", "datasets")
    errors = requests.exceptions
    path.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_S * 2 ** (attempt - 1))
        try:
            with requests.get(
                address, headers=_NOT_COMPRESSED, stream=True, timeout=_TIMEOUT_S
            ) as response:
                response.raise_for_status()
                with whole_file(path) as new:
                    if _store(response, new, path, progress, errors.RequestException):
                        _check_content(entry, new)
                        return path
                    raise errors.ChunkedEncodingError("the connection ended before the file did")
        except errors.RequestException as error:
            reason = str(error)
            refused = error.response is not None and error.response.status_code < 500
            if refused or isinstance(error, ValueError | errors.ConnectionError):
                # No such file, an invalid address, or no network: waiting does not help.
                raise ConnectionError(reason) from error
        except OSError as error:
            if error.errno not in _DISK_FULL:
                raise
            raise OSError(
                errno.ENOSPC,
                f"no space left for the download in {path.parent}: free some space, or set "
                f"SLTS_CACHE to a folder on another disk",
            ) from error
    raise ConnectionError(f"gave up after {ATTEMPTS} attempts: {reason}")


def _store(response: Any, new: Path, path: Path, progress: bool, broken: type[Exception]) -> bool:
    """Write the body of a response to a new file; return False if the connection breaks."""
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdigit() else None
    done = 0
    try:
        if total is not None and shutil.disk_usage(path.parent).free < total:
            raise OSError(errno.ENOSPC, "not enough free space")
        with (
            new.open("wb") as file,
            progress_bar(f"Downloading {path.name}", show=progress) as report,
        ):
            for chunk in response.iter_content(_CHUNK):
                done += file.write(chunk)
                if total is not None:
                    report(done, total)
    except broken:
        return False
    return total is None or done >= total


def _check_content(entry: DatasetInfo, path: Path) -> None:
    """Raise an error unless every data set of the archive is as published."""
    # The temporary file name would be confusing in a message.
    with open_archive(path, "the downloaded file") as archive:
        for each in map(info, list_datasets()):
            if each.archive == entry.archive:
                n_classes = ALL_SIGNS if each.name == "auslan" else None
                read_checked(info(each.name, n_classes=n_classes), None, archive)
