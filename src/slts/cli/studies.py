"""What the commands that run a study share: their options, how they end, what they say."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from slts.cli.progress import observing
from slts.cli.terminal import CommandError, Voice, show_json
from slts.extras import import_extra
from slts.study import Record
from slts.study.ledger import LedgerBusyError

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for results, tables and figures.")]
Processes = Annotated[
    int, typer.Option("--jobs", "-j", min=0, help="Processes; 0 takes all processors.")
]
Splits = Annotated[
    int | None, typer.Option("--splits", min=1, help="How many; 10, or 2 with --fast.")
]
Tables = Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")]

P = TypeVar("P")
T = TypeVar("T")


def parsed(parse: Callable[[str | None], T], only: str | None) -> T:
    """What `--only` means."""
    import_extra("matplotlib", "plots")
    try:
        return parse(only)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from error


def with_splits(protocol: P, splits: int | None) -> P:
    """The protocol, with another number of splits if one is asked for."""
    if splits is None:
        return protocol
    return dataclasses.replace(protocol, n_splits=splits)  # type: ignore[type-var]


def command_line(name: str, out: Path, only: str | None, splits: int | None, *, fast: bool) -> str:
    """The command that goes on with a run."""
    words = ["slts", *name.split(), "--out", str(out)]
    words += [] if only is None else ["--only", only]
    words += [] if splits is None else ["--splits", str(splits)]
    return shlex.join([*words, *(["--fast"] if fast else [])])


def run_study(
    run: Callable[..., Record],
    out: Path,
    command: str,
    *,
    jobs: int,
    quiet: bool,
    as_json: bool,
    left_out: Callable[[list[str]], str],
    **options: Any,
) -> None:
    """Run a study into a folder, and say what came of it.

    Parameters
    ----------
    run
        The study; it is given the folder, `options`, and how to run.
    out, command
        The folder, and the command that goes on with it.
    jobs, quiet, as_json
        As the options say.
    left_out
        What to say of what is missing, by names.
    **options
        For `run`.
    """
    if out.exists() and not out.is_dir():
        raise CommandError(f"{out} is not a folder")
    try:
        with observing(quiet) as observer:
            found = run(
                out, jobs=jobs or os.cpu_count() or 1, command=command, observer=observer, **options
            )
    except LedgerBusyError as error:
        raise CommandError(str(error)) from error
    except KeyboardInterrupt:
        sys.stderr.write(f"Stopped; what is finished is kept. To go on: {command}\n")
        raise typer.Exit(130) from None
    if as_json:
        show_json({"run": found.run, "tables": found.tables})
    else:
        typer.echo(str(out / "index.html"))
    voice, failures = Voice(quiet), found.outcome.failures
    for key, why in failures.items():
        voice.say(f"Failed {key}: {why}")
    if failures:
        voice.say("Failed units are tried again by the next run.")
    if found.run["missing"]:
        voice.say(left_out(list(found.run["missing"])))
    if failures:
        raise typer.Exit(1)
