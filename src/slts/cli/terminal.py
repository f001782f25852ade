"""Results on standard output, messages on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

import typer


class CommandError(Exception):
    """A request that cannot be fulfilled; the message tells why and what to do."""


class Messages:
    """What a command prints beside its result; nothing if it is quiet."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self._lines: set[str] = set()

    def say(self, line: str) -> None:
        """Print a line on standard error, unless it was printed before."""
        if not self.quiet and line not in self._lines:
            self._lines.add(line)
            # Not through typer: a progress bar redirects this stream.
            sys.stderr.write(f"{line}\n")

    def done(self, text: str) -> None:
        """Print on standard output what a command has written."""
        if not self.quiet:
            typer.echo(text)


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
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
