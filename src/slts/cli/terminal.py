"""Output: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table


class CommandError(Exception):
    """What the user asked for cannot be done; the message says why and what to do."""


def diagnostics() -> Console:
    """The console for progress and messages."""
    return Console(stderr=True, highlight=False)


def show_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table; plain columns if the output is not a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        for row in [header, *rows]:
            typer.echo("\t".join(row))
        return
    table = Table(*header)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def show_json(content: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False))


def duration(seconds: float) -> str:
    """Seconds in words people read.

    Examples
    --------
    >>> from slts.cli.terminal import duration
    >>> duration(42), duration(150), duration(7500)
    ('42 s', '2 min 30 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
