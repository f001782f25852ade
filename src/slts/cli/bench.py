"""``slts bench``: accuracy beside other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slts.bench import FAST, FULL, compare_accuracy, parse_only
from slts.cli.options import Quiet
from slts.cli.studies import (
    Out,
    Processes,
    Splits,
    Tables,
    command_line,
    parsed,
    run_study,
    with_splits,
)

commands = typer.Typer(help="Measure against other methods.", no_args_is_help=True)


@commands.callback()
def _group() -> None:
    """Measure against other methods."""


@commands.command()
def accuracy(
    out: Out = Path("accuracy"),
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            help="Data sets and methods, for instance auslan,local,minirocket, or choices.",
        ),
    ] = None,
    jobs: Processes = 0,
    splits: Splits = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="2 splits and few training series: a look in minutes.")
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", help="Write the report as Markdown to this file as well."),
    ] = None,
    only_write: Annotated[
        bool, typer.Option("--only-write", help="Run nothing; report what results there are.")
    ] = False,
    quiet: Quiet = False,
    as_json: Tables = False,
) -> None:
    """Compare the classifiers on the paper's data sets: with their ablations, and with aeon's.

    Every result is kept at once: a run that was stopped goes on when it is started again with the
    same folder. Once all results are there, the report is written anew in seconds.
    """
    wanted = parsed(parse_only, only)
    run_study(
        compare_accuracy,
        out,
        command_line("bench accuracy", out, only, splits, fast=fast),
        jobs=jobs,
        quiet=quiet,
        as_json=as_json,
        left_out=lambda names: f"Left out, the report says why: {', '.join(names)}.",
        protocol=with_splits(FAST if fast else FULL, splits),
        wanted=wanted,
        markdown=markdown,
        only_write=only_write,
    )
