"""Progress of a run of many units: a bar at a terminal, lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from slts.cli.terminal import diagnostics
from slts.execution import duration
from slts.study.runner import Observer, Report

# Without a terminal: a line at most this often, in seconds.
_LINE_EVERY = 5.0


@contextmanager
def observing(quiet: bool) -> Iterator[Observer | None]:
    """Give what `slts.study.runner.run_units` tells where it stands; None if quiet."""
    if quiet:
        yield None
    elif not diagnostics().is_terminal:
        yield _Lines()
    else:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TextColumn("{task.fields[left]}"), console=diagnostics()) as bars:
            task = bars.add_task("Starting", total=None, left="")

            def draw(report: Report) -> None:
                name = report.unit.key if report.unit else "Running"
                bars.update(
                    task,
                    description=name,
                    completed=report.done,
                    total=report.total,
                    left=_left(report),
                )

            yield draw


class _Lines:
    """Progress as lines, for logs: the first, the last, and some in between."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, report: Report) -> None:
        now = time.monotonic()
        if report.unit and report.done < report.total and now - self._last < _LINE_EVERY:
            return
        self._last = now
        name = report.unit.key if report.unit else "starting"
        left = f", {_left(report)}" if report.seconds_left is not None else ""
        sys.stderr.write(f"[{report.done}/{report.total}] {name}{left}\n")
        sys.stderr.flush()


def _left(report: Report) -> str:
    return "" if report.seconds_left is None else f"about {duration(report.seconds_left)} left"
