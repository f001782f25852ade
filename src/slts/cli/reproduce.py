"""``slts reproduce``: the paper's experimental study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
from slts.study import FAST, FULL, parse_parts, reproduce


def reproduce_study(
    out: Out = Path("reproduction"),
    only: Annotated[
        str | None,
        typer.Option("--only", help="Parts, for instance table2,figure2; all by default."),
    ] = None,
    jobs: Processes = 0,
    splits: Splits = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="2 splits and small grids: a look in minutes.")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write the tables as Markdown to this file.")
    ] = None,
    quiet: Quiet = False,
    as_json: Tables = False,
) -> None:
    """Repeat the paper's experiments and compare with its tables and figures.

    Every result is kept at once: a run that was stopped goes on when it is started again with the
    same folder. Once all results are there, the report is written anew in seconds.
    """
    parts = parsed(parse_parts, only)
    run_study(
        reproduce,
        out,
        command_line("reproduce", out, only, splits, fast=fast),
        jobs=jobs,
        quiet=quiet,
        as_json=as_json,
        left_out=_left_out,
        protocol=with_splits(FAST if fast else FULL, splits),
        parts=parts,
        markdown=markdown,
    )


def _left_out(names: list[str]) -> str:
    return (
        f"Left out, for they are not on this machine: {', '.join(names)}. Download each with "
        f"`slts datasets fetch NAME`, or set SLTS_DATA to a folder with their archives; the report "
        f"says where to get them."
    )
