"""A downloader for pooch that goes on where an earlier attempt broke off."""

from __future__ import annotations

import errno
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slts.errors import DataError
from slts.extras import import_extra

__all__ = ["ResumingDownloader"]

ATTEMPTS = 4
PAUSE_S = 1.0
"""Pause before the second attempt; it doubles with each further one."""
_TIMEOUT_S = (10, 60)
_CHUNK = 1 << 13
"""Bytes per step, few: of a connection that breaks, the last unfinished step is lost."""
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


class ResumingDownloader:
    """Downloads over HTTP to a partial file, asking only for what it lacks.

    Called by pooch with an address and a temporary file, which it fills once the download is
    complete and has passed the check; until then all is in the partial file.

    Parameters
    ----------
    part : Path
        The partial file. Broken downloads stay in it; a complete but wrong one does not.
    check : callable
        Raises `DataError` if the file at the given path is not the wanted one.
    progress : bool
        Whether to show a bar on standard error, if that is a terminal.
    """

    def __init__(self, part: Path, check: Callable[[Path], None], *, progress: bool) -> None:
        self._part = part
        self._check = check
        self._progress = progress

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Download `url` to `output_file`; the signature is the one pooch calls."""
        resumed = self._size() > 0
        while True:
            self._complete(url)
            try:
                self._check(self._part)
                break
            except DataError:
                self._part.unlink()
                if not resumed:
                    raise
                # The beginning may stem from another version of the file: once more, from scratch.
                resumed = False
        self._part.replace(output_file)

    def _size(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _complete(self, url: str) -> None:
        """Bring the partial file to its full size, in several attempts if need be."""
        requests = import_extra("requests", "datasets")
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE_S * 2 ** (attempt - 1))
            have = self._size()
            try:
                if self._attempt(requests, url):
                    return
                reason = "the connection ended before the file did"
            except requests.exceptions.HTTPError as error:
                if error.response.status_code < 500:
                    raise ConnectionError(str(error)) from error
                reason = str(error)
            except requests.exceptions.RequestException as error:
                reason = str(error)
                unreachable = isinstance(error, requests.exceptions.ConnectionError)
                if isinstance(error, ValueError) or (unreachable and self._size() == have):
                    # A malformed address, or no network: waiting will not help.
                    raise ConnectionError(reason) from error
        kept = f"; {self._size()} bytes are kept for the next try" if self._size() else ""
        raise ConnectionError(f"gave up after {ATTEMPTS} attempts: {reason}{kept}")

    def _attempt(self, requests: Any, url: str) -> bool:
        """Ask for what is lacking and store what comes; tell whether the file is complete."""
        have = self._size()
        # Unpacked on the way, a file could be neither measured nor resumed.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT_S) as response:
            if response.status_code == 416:
                if _whole_size(response) == have:
                    return True
                self._part.unlink()
                return False
            response.raise_for_status()
            # A server may send the whole file, or more of it than was asked for.
            start = _first_byte(response) if response.status_code == 206 else 0
            if start is None or start > have:
                self._part.unlink()
                return False
            have = start
            length = response.headers.get("Content-Length", "")
            total = have + int(length) if length.isdigit() else None
            self._store(response, have, total)
        return total is None or self._size() >= total

    def _store(self, response: Any, have: int, total: int | None) -> None:
        """Append the body of a response to the first `have` bytes of the partial file."""
        tqdm = import_extra("tqdm", "datasets").tqdm if self._progress else None
        try:
            self._make_room((total or have) - have)
            with self._part.open("ab") as file:
                file.truncate(have)
                bar = tqdm and tqdm(
                    total=total,
                    initial=have,
                    desc=self._part.stem,
                    unit="B",
                    unit_scale=True,
                    disable=None,
                )
                try:
                    for chunk in response.iter_content(_CHUNK):
                        file.write(chunk)
                        if bar is not None:
                            bar.update(len(chunk))
                finally:
                    if bar is not None:
                        bar.close()
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise OSError(
                errno.ENOSPC,
                f"no space left for the download in {self._part.parent}: make room, or set "
                f"SLTS_CACHE to a folder on another disk; {self._size()} bytes of it are kept",
            ) from error

    def _make_room(self, n_bytes: int) -> None:
        """Raise the error of a full disk before the disk is full."""
        if shutil.disk_usage(self._part.parent).free < n_bytes:
            raise OSError(errno.ENOSPC, "not enough free space")


def _first_byte(response: Any) -> int | None:
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _whole_size(response: Any) -> int | None:
    match = re.match(r"bytes \*/(\d+)", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None
