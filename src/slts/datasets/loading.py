"""`load` and `fetch`: find or download the files of a data set, and compare them with the facts."""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from slts._typing import AnyArray
from slts.atomic_files import atomic_file
from slts.datasets.archives import Archive, open_archive
from slts.datasets.catalogue import ALL_SIGNS, DatasetInfo, info, list_datasets
from slts.datasets.originals import has_files, read_original
from slts.errors import DataError
from slts.execution import progress_bar
from slts.extras import import_extra
from slts.series import SeriesBatch

_SPLITS = ("train", "test")
_TAR_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tar")
ATTEMPTS = 4
# Pause before the second attempt; it doubles with each further one.
PAUSE_S = 1.0
_TIMEOUT_S = (10, 60)
# The length of a compressed body is not that of the file.
_NOT_COMPRESSED = {"Accept-Encoding": "identity"}
# Bytes that are written at a time.
_CHUNK = 1 << 16
_DISK_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def load(
    name: str, split: str | None = None, *, n_classes: int | None = None
) -> tuple[SeriesBatch, AnyArray]:
    """Load one of the data sets of the UCI repository.

    Looks in the folder `$SLTS_DATA` (for the archives or for their unpacked files), in the cache
    that `fetch` fills and, for Japanese Vowels, in the aeon package.

    Parameters
    ----------
    name : str
        One of `list_datasets()`.
    split : {"train", "test"}, optional
        Part of a data set that is published in two parts ("japanese_vowels", "arabic_digits"); all
        series, the training part first, by default.
    n_classes : int, optional
        For "auslan" only: number of signs, 2 to 95; 25 by default.

    Returns
    -------
    batch : SeriesBatch
        The series, with named channels.
    labels : ndarray of shape (n_series,)
        Integers for "arabic_digits", text for the others; see `info(name).labels`.

    Raises
    ------
    FileNotFoundError
        If the data are not on this machine.
    DataError
        If there is no such data set or part, or the data contradict the published counts.
    """
    entry = info(name, n_classes=n_classes)
    if split is not None and split not in _SPLITS:
        raise DataError(f"split must be 'train', 'test' or None, got {split!r}")
    if split is not None and entry.n_train is None:
        raise DataError(
            f"{entry.name!r} has no published training and test sets: load all of it and split "
            "it, for example with sklearn.model_selection.train_test_split"
        )
    with open_dataset(entry) as archive:
        return read_checked(entry, split, archive)


def read_checked(
    entry: DatasetInfo, split: str | None, archive: Archive
) -> tuple[SeriesBatch, AnyArray]:
    """Read a data set from an archive and compare it with the published counts.

    Raises
    ------
    DataError
        If a count differs from the published one; the message names both.
    """
    splits: tuple[str | None, ...] = (split,)
    if split is None and entry.n_train is not None:
        splits = _SPLITS
    parts = [read_original(entry, part, archive) for part in splits]
    batch = SeriesBatch.concatenate(series for series, _ in parts)
    labels = np.concatenate([labels for _, labels in parts])
    sizes = {"train": entry.n_train, "test": entry.n_test, None: entry.n_series}
    counts = [
        ("series" if part is None else f"series in the {part} part", len(series), sizes[part])
        for part, (series, _) in zip(splits, parts, strict=True)
    ]
    counts.append(("classes", len(np.unique(labels)), entry.n_classes))
    wrong = [f"{found} {what}, expected {count}" for what, found, count in counts if found != count]
    shortest, longest = int(batch.lengths.min()), int(batch.lengths.max())
    low, high = entry.lengths
    # A part of a data set need not have both the shortest and the longest series.
    exact = entry.exact_lengths and split is None
    if shortest < low or longest > high or (exact and (shortest, longest) != entry.lengths):
        wrong.append(f"{shortest} to {longest} steps, expected {low} to {high}")
    if wrong:
        raise DataError(
            f"{archive.place} is not {entry.title} as published: it has {'; '.join(wrong)}"
        )
    return batch, labels


@contextmanager
def open_dataset(entry: DatasetInfo) -> Iterator[Archive]:
    """Open the first place that has the files of a data set.

    Raises
    ------
    FileNotFoundError
        If no place has them; the message names the places and says how to get the files.
    """
    searched = [] if os.environ.get("SLTS_DATA") else ["SLTS_DATA (not set)"]
    for description, folder in _folders(entry):
        searched.append(f"{description} ({folder})")
        for path in _candidates(entry, folder):
            with open_archive(path) as archive:
                # A file with the name of the archive is always used: if it lacks files, reading
                # it says which.
                if path.is_file() or has_files(entry.name, archive):
                    yield archive
                    return
    wheel = "pip install aeon, whose wheel has it, or " if entry.name == "japanese_vowels" else ""
    raise FileNotFoundError(
        f"{entry.title} is not on this machine. Searched: {', '.join(searched)}. To get it, {wheel}"
        f'call slts.datasets.fetch("{entry.name}"), or download it from {entry.page} and set '
        f"SLTS_DATA to the folder with {entry.archive} or with its unpacked files"
    )


def _folders(entry: DatasetInfo) -> Iterator[tuple[str, Path]]:
    """Yield the folders to search, each with a description."""
    chosen = os.environ.get("SLTS_DATA")
    if chosen:
        folder = Path(chosen).expanduser()
        if not folder.is_dir():
            raise DataError(
                f"SLTS_DATA is {chosen!r}, which is not a folder: set it to the folder of the data "
                "sets, or unset it"
            )
        yield "SLTS_DATA", folder
    yield "the cache", cache_folder()
    if entry.name == "japanese_vowels":
        # Find aeon without importing it: that takes seconds, and only its files are needed.
        aeon = importlib.util.find_spec("aeon")
        for root in (aeon.submodule_search_locations or ()) if aeon else ():
            yield "the aeon package", Path(root) / "datasets" / "data" / "JapaneseVowels"


def _candidates(entry: DatasetInfo, folder: Path) -> Iterator[Path]:
    """Yield the archives in a folder by their usual names, then folders with unpacked files."""
    stem = Path(entry.archive).stem
    published = [urlsplit(address).path.rpartition("/")[2] for address in entry.addresses]
    names = [entry.archive, *(stem + suffix for suffix in _TAR_SUFFIXES), *published]
    yield from (folder / name for name in dict.fromkeys(names) if (folder / name).is_file())
    yield from (path for path in (folder / stem, folder) if path.is_dir())


def cache_folder() -> Path:
    """Return the folder that `fetch` downloads to: `$SLTS_CACHE`, or the platform's own."""
    chosen = os.environ.get("SLTS_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "slts"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        base = Path(local) if local else Path.home() / "AppData" / "Local"
        return base / "slts" / "slts" / "Cache"
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "slts"


def cached_name(entry: DatasetInfo, address: str) -> str:
    """Return the file name in the cache: `entry.archive`, with the suffix of a tar archive."""
    suffix = next((s for s in _TAR_SUFFIXES if urlsplit(address).path.endswith(s)), None)
    return entry.archive if suffix is None else Path(entry.archive).stem + suffix


# -- Download


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
                with atomic_file(path) as new:
                    _store(response, new, path, progress, errors)
                    _check_content(entry, new)
                    return path
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


def _store(response: Any, new: Path, path: Path, progress: bool, errors: Any) -> None:
    """Write the body of a response to a new file."""
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdigit() else None
    done, broken = 0, errors.ChunkedEncodingError("the connection ended before the file did")
    if total is not None and shutil.disk_usage(path.parent).free < total:
        raise OSError(errno.ENOSPC, "not enough free space")
    with new.open("wb") as file, progress_bar(f"Downloading {path.name}", show=progress) as report:
        try:
            for chunk in response.iter_content(_CHUNK):
                done += file.write(chunk)
                if total is not None:
                    report(done, total)
        except errors.RequestException as error:
            # Whatever breaks the connection now: another attempt may help.
            raise broken from error
    if total is not None and done < total:
        raise broken


def _check_content(entry: DatasetInfo, path: Path) -> None:
    """Raise an error unless every data set of the archive is as published."""
    # The temporary file name would be confusing in a message.
    with open_archive(path, "the downloaded file") as archive:
        for each in map(info, list_datasets()):
            if each.archive == entry.archive:
                n_classes = ALL_SIGNS if each.name == "auslan" else None
                read_checked(info(each.name, n_classes=n_classes), None, archive)
