"""Progress of long work on standard error: a bar in a terminal or notebook, else lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.util import find_spec

Progress = Callable[[float, float], None]
"""Called with (done, total); may be called from one thread only."""

Bar = Callable[[str], AbstractContextManager[Progress]]
"""Makes a progress bar with a description."""


def silent(done: float, total: float) -> None:
    """Show no progress."""


# Seconds between lines; work that takes longer than the second number ends with a line.
_LINE_EVERY, _LONG = 30.0, 10.0


@contextmanager
def progress_bar(description: str, *, show: bool) -> Iterator[Progress]:
    """Yield a callback that draws a bar, or `silent` if `show` is false.

    Uses rich if it is installed, else a plain line; outside a terminal, `progress_lines`.
    """
    if not show:
        yield silent
    elif not _is_interactive():
        with progress_lines(description, _write_line) as tell:
            yield lambda done, total: tell(f"{_share(done, total):.0%}")
    elif find_spec("rich") is None:
        yield lambda done, total: _write_line(f"\r{description} {_share(done, total):4.0%}", end="")
        _write_line("")
    else:
        from rich.console import Console
        from rich.progress import Progress as RichProgress

        with RichProgress(console=Console(stderr=True)) as bars:
            task = bars.add_task(description, total=None)
            yield lambda done, total: bars.update(task, completed=done, total=total)


def _is_interactive() -> bool:
    """Whether standard error is a terminal or a notebook."""
    if find_spec("rich") is None:
        return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal or console.is_jupyter


def _write_line(line: str, end: str = "\n") -> None:
    # It is missing under pythonw, and it may be closed; the work goes on.
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{line}{end}")
            sys.stderr.flush()


@contextmanager
def progress_lines(description: str, say: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """Yield a function that takes the state of the work and passes it to `say` twice a minute.

    Work of more than a few seconds ends with a line.
    """
    start = told = time.monotonic()
    state = ""

    def tell(now_at: str) -> None:
        nonlocal told, state
        state, now = f"{now_at}, ", time.monotonic()
        if now - told >= _LINE_EVERY:
            told = now
            say(f"{description}: {state}{duration(now - start)}")

    yield tell
    seconds = time.monotonic() - start
    if seconds > _LONG:
        say(f"{description}: {state}done in {duration(seconds)}")


def duration(seconds: float) -> str:
    """Return a duration as text.

    Examples
    --------
    >>> from slts.execution.progress import duration
    >>> duration(42), duration(150), duration(7500)
    ('42 s', '2 min 30 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _share(done: float, total: float) -> float:
    return done / total if total > 0 else 1.0
