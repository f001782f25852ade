"""The file of results: one line of JSON per finished unit, appended and never rewritten."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows has no advisory locks of this kind; there nothing is locked.
    fcntl = None  # type: ignore[assignment]

Result = dict[str, Any]


class LedgerBusyError(RuntimeError):
    """Another run is writing to the same file."""


class Ledger:
    """Results of one protocol; lines of other protocols are kept and left alone.

    Parameters
    ----------
    path
        The file; made when the first result comes.
    digests
        Hashes of the protocol by kind of unit (see `Protocol.digests`).
    """

    def __init__(self, path: Path, digests: Mapping[str, str]) -> None:
        self.path, self.digests = path, digests

    def read(self) -> dict[str, Result]:
        """Results by key. A line that is not whole, as a kill leaves it, does not count."""
        found: dict[str, Result] = {}
        if not self.path.exists():
            return found
        with self.path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                entry = _parsed(line)
                if entry is not None and entry["protocol"] == self._digest(entry["key"]):
                    found[entry["key"]] = entry["result"]
        return found

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """Open the file for `append`; one run at a time."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise LedgerBusyError(
                        f"another run is writing to {self.path}: wait for it, or choose another "
                        f"folder"
                    ) from error
            if file.tell() and not _ends_with_newline(self.path):
                # What follows must not be glued to a torn line.
                file.write(b"\n")
            yield file

    def append(self, file: IO[bytes], key: str, result: Result) -> None:
        """Write one result and see it safely to the disk."""
        entry = {"key": key, "protocol": self._digest(key), "result": result}
        file.write(json.dumps(entry, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())

    def _digest(self, key: str) -> str | None:
        return self.digests.get(key.partition("/")[0])


def _parsed(line: str) -> dict[str, Any] | None:
    if not line.endswith("\n"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(entry, dict) and {"key", "protocol", "result"} <= entry.keys()
    return entry if whole else None


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
