"""`fetch`: download a data set into the cache, continuing where an earlier download stopped."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path
from typing import Any

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
# Bytes per step. If the connection breaks, the unfinished step is lost.
_CHUNK = 1 << 13
_DISK_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def fetch(name: str, *, url: str | None = None, force: bool = False, progress: bool = True) -> Path:
    """Download a data set into the cache, from which `load` reads it.

    The downloaded file is compared with the published counts before it is kept. An interrupted
    download continues where it stopped, at once or in the next call. The cache is `$SLTS_CACHE`, or
    the platform's folder for caches.

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
    part = path.with_name(f"{path.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    resumed = _size(part) > 0
    while True:
        _complete(part, address, progress)
        try:
            _check_content(entry, part)
        except DataError:
            part.unlink()
            if not resumed:
                raise
            # The old beginning may come from another version of the file: download all of it.
            resumed = False
        else:
            return part.replace(path)


def _check_content(entry: DatasetInfo, path: Path) -> None:
    """Raise an error unless every data set of the archive is as published."""
    # The temporary file name would be confusing in a message.
    with open_archive(path, "the downloaded file") as archive:
        for each in map(info, list_datasets()):
            if each.archive == entry.archive:
                n_classes = ALL_SIGNS if each.name == "auslan" else None
                read_checked(info(each.name, n_classes=n_classes), None, archive)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _complete(part: Path, url: str, progress: bool) -> None:
    """Download the missing bytes of a partial file, in several attempts if necessary."""
    requests = import_extra("requests", "datasets")
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_S * 2 ** (attempt - 1))
        before = _size(part)
        try:
            if _request_rest(requests, part, url, progress):
                return
            reason = "the connection ended before the file did"
        except requests.exceptions.RequestException as error:
            reason = str(error)
            response = getattr(error, "response", None)
            refused = response is not None and response.status_code < 500
            offline = isinstance(error, requests.exceptions.ConnectionError)
            if refused or isinstance(error, ValueError) or (offline and _size(part) == before):
                # No such file, an invalid address, or no network: waiting does not help.
                raise ConnectionError(reason) from error
    kept = f"; {_size(part)} bytes are kept for the next call" if _size(part) else ""
    raise ConnectionError(f"gave up after {ATTEMPTS} attempts: {reason}{kept}")


def _request_rest(requests: Any, part: Path, url: str, progress: bool) -> bool:
    """Request the missing bytes and store them; return whether the file is complete."""
    have = _size(part)
    # A compressed transfer could be neither measured nor resumed.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT_S) as response:
        sent = response.headers.get("Content-Range", "")
        continues = response.status_code == 206
        if response.status_code == 416 or (continues and not sent.startswith(f"bytes {have}-")):
            complete = bool(sent == f"bytes */{have}")
            if not complete:
                # It belongs to another version of the file: the next attempt starts from scratch.
                part.unlink(missing_ok=True)
            return complete
        response.raise_for_status()
        # A server without ranges sends the whole file.
        start = have if continues else 0
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdigit() else None
        try:
            _store(response, part, start, total, progress)
        except OSError as error:
            if error.errno not in _DISK_FULL:
                raise
            raise OSError(
                errno.ENOSPC,
                f"no space left for the download in {part.parent}: free some space, or set "
                f"SLTS_CACHE to a folder on another disk; {_size(part)} bytes of it are kept",
            ) from error
    return total is None or _size(part) >= total


def _store(response: Any, part: Path, start: int, total: int | None, progress: bool) -> None:
    """Append the body of a response to the first `start` bytes of a partial file."""
    if total is not None and shutil.disk_usage(part.parent).free < total - start:
        raise OSError(errno.ENOSPC, "not enough free space")
    with (
        part.open("ab") as file,
        progress_bar(f"Downloading {part.stem}", show=progress) as report,
    ):
        file.truncate(start)
        for chunk in response.iter_content(_CHUNK):
            start += file.write(chunk)
            if report is not None and total is not None:
                report(start, total)
