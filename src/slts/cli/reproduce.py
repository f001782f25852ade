"""``slts reproduce``: the paper's experimental study."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from slts.cli.progress import observing
from slts.cli.terminal import CommandError, diagnostics, show_json
from slts.extras import import_extra
from slts.study import FAST, FULL, Reproduction, parse_parts, reproduce
from slts.study.ledger import LedgerBusyError


def reproduce_study(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for results, tables and figures.")
    ] = Path("reproduction"),
    only: Annotated[
        str | None,
        typer.Option("--only", help="Parts, for instance table2,figure2; all by default."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, help="Processes; 0 takes all processors.")
    ] = 0,
    splits: Annotated[
        int | None, typer.Option("--splits", min=1, help="How many; 10, or 2 with --fast.")
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="2 splits and small grids: a look in minutes.")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write the tables as Markdown to this file.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """Repeat the paper's experiments and compare with its tables and figures.

    Every result is kept at once: a run that was stopped goes on when it is started again with the
    same folder. Once all results are there, the report is written anew in seconds.
    """
    import_extra("matplotlib", "plots")
    try:
        parts = parse_parts(only)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from error
    protocol = FAST if fast else FULL
    if splits is not None:
        protocol = dataclasses.replace(protocol, n_splits=splits)
    if out.exists() and not out.is_dir():
        raise CommandError(f"{out} is not a folder")
    command = _command(out, only, splits, fast)
    try:
        with observing(quiet) as observer:
            found = reproduce(
                out,
                protocol=protocol,
                parts=parts,
                jobs=jobs or os.cpu_count() or 1,
                command=command,
                markdown=markdown,
                observer=observer,
            )
    except LedgerBusyError as error:
        raise CommandError(str(error)) from error
    except KeyboardInterrupt:
        sys.stderr.write(f"Stopped; what is finished is kept. To go on: {command}\n")
        raise typer.Exit(130) from None
    _tell(found, out, as_json=as_json, quiet=quiet)
    if found.outcome.failures:
        raise typer.Exit(1)


def _command(out: Path, only: str | None, splits: int | None, fast: bool) -> str:
    words = ["slts", "reproduce", "--out", str(out)]
    words += [] if only is None else ["--only", only]
    words += [] if splits is None else ["--splits", str(splits)]
    return shlex.join([*words, *(["--fast"] if fast else [])])


def _tell(found: Reproduction, out: Path, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        show_json({"run": found.run, "tables": found.tables})
    else:
        typer.echo(str(out / "index.html"))
    if quiet:
        return
    console = diagnostics()
    lines = [f"Failed {key}: {why}" for key, why in found.outcome.failures.items()]
    if found.outcome.failures:
        lines.append("Failed units are tried again by the next run.")
    if found.run["missing"]:
        lines.append(
            f"Left out, for they are not on this machine: {', '.join(found.run['missing'])}. "
            f"Download each with `slts datasets fetch NAME`, or set SLTS_DATA to a folder with "
            f"their archives; the report says where to get them."
        )
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
