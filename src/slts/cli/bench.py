"""``slts bench``: accuracy beside other libraries."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from slts.bench import FAST, FULL, Comparison, compare_accuracy, parse_only
from slts.cli.options import Quiet
from slts.cli.progress import observing
from slts.cli.terminal import CommandError, Voice, show_json
from slts.extras import import_extra
from slts.study.ledger import LedgerBusyError

commands = typer.Typer(help="Measure against other methods.", no_args_is_help=True)


@commands.callback()
def _group() -> None:
    """Measure against other methods."""


@commands.command()
def accuracy(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for results, tables and figures.")
    ] = Path("accuracy"),
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            help="Data sets and methods, for instance auslan,local,minirocket, or choices.",
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, help="Processes; 0 takes all processors.")
    ] = 0,
    splits: Annotated[
        int | None, typer.Option("--splits", min=1, help="How many; 10, or 2 with --fast.")
    ] = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """Compare the classifiers on the paper's data sets: with their ablations, and with aeon's.

    Every result is kept at once: a run that was stopped goes on when it is started again with the
    same folder. Once all results are there, the report is written anew in seconds.
    """
    import_extra("matplotlib", "plots")
    try:
        wanted = parse_only(only)
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
            found = compare_accuracy(
                out,
                protocol=protocol,
                wanted=wanted,
                jobs=jobs or os.cpu_count() or 1,
                command=command,
                markdown=markdown,
                observer=observer,
                only_write=only_write,
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
    words = ["slts", "bench", "accuracy", "--out", str(out)]
    words += [] if only is None else ["--only", only]
    words += [] if splits is None else ["--splits", str(splits)]
    return shlex.join([*words, *(["--fast"] if fast else [])])


def _tell(found: Comparison, out: Path, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        show_json({"run": found.run, "tables": found.tables})
    else:
        typer.echo(str(out / "index.html"))
    voice = Voice(quiet)
    for key, why in found.outcome.failures.items():
        voice.say(f"Failed {key}: {why}")
    if found.outcome.failures:
        voice.say("Failed units are tried again by the next run.")
    if found.run["missing"]:
        voice.say(f"Left out, the report says why: {', '.join(found.run['missing'])}.")
