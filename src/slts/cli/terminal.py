"""Results on standard output; messages and progress on standard error."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


class CommandError(Exception):
    """A request that cannot be fulfilled; the message tells why and what to do."""


@cache
def diagnostics() -> Console:
    """Return the console for messages; one for all, so that messages go above progress bars."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Messages:
    """What a command prints on standard error.

    Parameters
    ----------
    quiet
        Print neither messages nor what was written; results that are asked for are printed.
    verbose
        Print details too.
    """

    quiet: bool = False
    verbose: bool = False
    _printed: set[str] = field(default_factory=set, init=False, repr=False)

    def say(self, text: str) -> None:
        """Print a line, unless quiet."""
        if not self.quiet:
            diagnostics().print(text, markup=False, soft_wrap=True)

    def say_once(self, text: str) -> None:
        """Print a line, unless quiet or printed before."""
        if text not in self._printed:
            self._printed.add(text)
            self.say(text)

    def done(self, text: str) -> None:
        """Print on standard output what a command has written, unless quiet."""
        if not self.quiet:
            typer.echo(text)

    def detail(self, text: str) -> None:
        """Print a line if verbose."""
        if self.verbose:
            self.say(text)

    @property
    def shows_progress(self) -> bool:
        """Whether progress is shown: as bars in a terminal, as lines elsewhere."""
        return not self.quiet

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, float | None], None]]:
        """Yield a function that shows progress, given the number of series and their share."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        from slts.execution import progress_lines

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

    @contextmanager
    def echo_log(self) -> Iterator[None]:
        """Print what the library logs meanwhile, such as its memory plan."""
        logger, handler = logging.getLogger("slts"), logging.Handler()
        handler.emit = lambda record: self.say(record.getMessage())  # type: ignore[method-assign]
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.setLevel(level)
            logger.removeHandler(handler)


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table; columns separated by tabs if standard output is not a terminal."""
    from rich.console import Console
    from rich.table import Table

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
    """Convert arrays and NumPy scalars to JSON types; NaN and infinity become null.

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
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
