"""How long the runs took that filled a folder, one line of JSON each."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slts.study.ledger import Ledger

SESSIONS = "sessions.jsonl"

Session = dict[str, Any]


@contextmanager
def timed(path: Path, ledger: Ledger, protocol: str, jobs: int) -> Iterator[None]:
    """Add a line if units get finished meanwhile, interrupted or not; a kill leaves none."""
    before, start = len(ledger.read()), time.monotonic()
    try:
        yield
    finally:
        finished = len(ledger.read()) - before
        if finished:
            seconds = round(time.monotonic() - start, 1)
            line = {"protocol": protocol, "units": finished, "jobs": jobs, "seconds": seconds}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def read_sessions(path: Path, protocol: str) -> list[Session]:
    """Sessions of one protocol; lines that make no sense are passed over."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            session = json.loads(line)
        except ValueError:
            continue
        whole = isinstance(session, dict) and {"units", "jobs", "seconds"} <= session.keys()
        if whole and session.get("protocol") == protocol:
            found.append(session)
    return found


def describe(sessions: list[Session]) -> str:
    """What the sessions came to, in words; nothing if none is known.

    Examples
    --------
    >>> from slts.study.sessions import describe
    >>> describe([{"units": 5, "jobs": 2, "seconds": 90.0}])
    '5 units in 1.5 minutes with 2 processes'
    """
    return ", ".join(
        f"{s['units']} {_plural(s['units'], 'unit')} in {s['seconds'] / 60:.1f} minutes with "
        f"{s['jobs']} {_plural(s['jobs'], 'process', 'es')}"
        for s in sessions
    )


def _plural(count: int, word: str, ending: str = "s") -> str:
    return word if count == 1 else word + ending
