"""Output: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from slts.execution import progress_lines


class CommandError(Exception):
    """What the user asked for cannot be done; the message says why and what to do."""


@cache
def diagnostics() -> Console:
    """The console for progress and messages; one, so that messages go above a bar."""
    return Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Voice:
    """What a command says besides its result, on standard error.

    Parameters
    ----------
    quiet
        Say nothing.
    verbose
        Say more.
    """

    quiet: bool = False
    verbose: bool = False

    def say(self, text: str) -> None:
        """Print a line, unless quiet."""
        if not self.quiet:
            diagnostics().print(text, markup=False, soft_wrap=True)

    def detail(self, text: str) -> None:
        """Print a line if verbose."""
        if self.verbose:
            self.say(text)

    @property
    def shows_progress(self) -> bool:
        """Whether progress is told: by bars at a terminal, by lines elsewhere."""
        return not self.quiet

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, float | None], None]]:
        """Give a function that is told how many are done, and which share of all that is.

        It draws a bar at a terminal, and prints a line now and then elsewhere.
        """
        if self.quiet or not diagnostics().is_terminal:
            with progress_lines(what, self.say) as tell:
                yield lambda count, share: tell(
                    f"{count:,} series" + ("" if share is None else f", {share:.0%}")
                )
            return
        columns = (
            TextColumn(what),
            BarColumn(),
            TextColumn("{task.fields[count]:,} series"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=diagnostics()) as bars:
            task = bars.add_task(what, total=None, count=0)

            def draw(count: int, share: float | None) -> None:
                total = None if share is None else 1.0
                bars.update(task, completed=share or 0.0, total=total, count=count)

            yield draw


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table; plain columns if the output is not a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        for row in [[title]] * bool(title) + [header, *rows]:
            typer.echo("\t".join(row))
        return
    table = Table(title=title or None, title_justify="left")
    for position, name in enumerate(header):
        table.add_column(name, justify="right" if position else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def show_json(content: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(plain(content), indent=1, allow_nan=False, ensure_ascii=False))


def plain(value: Any) -> Any:
    """Turn arrays and their numbers into what JSON can hold; NaN becomes null.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.cli.terminal import plain
    >>> plain({"a": np.array([1.0, np.nan]), 3: np.int64(2)})
    {'a': [1.0, None], '3': 2}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
