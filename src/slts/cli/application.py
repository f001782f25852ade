"""The commands put together, and what becomes of errors."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from slts import __version__
from slts.cli import datasets, reproduce
from slts.cli.terminal import CommandError
from slts.errors import DataError, ModelFileError

application = typer.Typer(
    name="slts",
    help="Learned similarity for ragged multivariate time series.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
application.command("reproduce")(reproduce.reproduce_study)
application.add_typer(datasets.commands, name="datasets")

# Errors that say what the user can do; a traceback would only hide it.
_EXPECTED = (CommandError, DataError, ModelFileError, ImportError, OSError)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"slts {__version__}")
        raise typer.Exit


@application.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")
    ] = False,
) -> None:
    """Options of all commands; `run` has seen to `debug`."""


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code."""
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        # It ends every command, wrong ones too, with SystemExit.
        application(arguments, prog_name="slts")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except _EXPECTED as error:
        if debug:
            raise
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except Exception as error:
        if debug:
            raise
        sys.stderr.write(
            f"Error: {type(error).__name__}: {error}\nThis is not your mistake; --debug shows "
            f"where it happened.\n"
        )
        return 1
    return 0
