"""Progress of long work, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[float, float], None]
"""Called with (done, total); may be called from one thread only."""


@contextmanager
def progress_bar(description: str, *, show: bool) -> Iterator[Progress | None]:
    """Give a callback that draws a bar with the time left, or None when `show` is false.

    Uses rich where it is installed, else a plain line.
    """
    if not show:
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress as RichProgress
    except ImportError:
        yield _plain_line(description)
        sys.stderr.write("\n")
        return
    with RichProgress(console=Console(stderr=True)) as bars:
        task = bars.add_task(description, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _plain_line(description: str) -> Progress:
    start = time.monotonic()

    def draw(done: float, total: float) -> None:
        share = done / total if total > 0 else 1.0
        left = (time.monotonic() - start) * (1.0 / share - 1.0) if share > 0 else float("inf")
        sys.stderr.write(f"\r{description} {share:4.0%}, {left:.0f} s left ")
        sys.stderr.flush()

    return draw
