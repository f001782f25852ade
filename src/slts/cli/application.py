"""The table of commands, and the way from errors to messages and exit codes."""

from __future__ import annotations

import pkgutil
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from slts import __version__
from slts.cli.terminal import CommandError
from slts.errors import DataError, ModelFileError

# Name -> module and function, and the line in `slts --help`: the first of the docstring.
COMMANDS = {
    "demo": ("demo:demo", "Train on Japanese Vowels, compare with the paper, write a report."),
    "fit": ("fit:fit", "Train a classifier on labelled series and save it."),
    "predict": ("predict:predict", "Predict a label and class probabilities for every series."),
    "evaluate": ("evaluate:evaluate", "Measure accuracy, log-loss and scores of every class."),
    "explain": ("explain:explain_prediction", "Show what contributes to a decision value."),
    "certify": ("evaluate:certify_model", "Compute an upper bound on the error on new series."),
    "report": ("report:report", "Write a self-contained HTML page about a model."),
}
# Errors whose message tells the user what to do; a missing GPU is a RuntimeError.
_EXPECTED = (CommandError, DataError, ModelFileError, ImportError, OSError, RuntimeError)


class _LazyGroup(TyperGroup):
    """Commands that are imported when they are called; until then they are names with help."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return name, command and remaining arguments; the command is the imported one."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest


def load_command(name: str) -> Any:
    """Import a command of the table."""
    function = pkgutil.resolve_name(f"slts.cli.{COMMANDS[name][0]}")
    # In Markdown, lines of a paragraph of a docstring are joined.
    single = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    single.command(name)(function)
    return typer.main.get_command(single)


application = typer.Typer(
    name="slts",
    cls=_LazyGroup,
    help="Classify time series of different lengths, explain decisions and bound errors.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _name, (_, _help) in COMMANDS.items():
    application.command(_name, help=_help)(lambda: None)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"slts {__version__}")
        raise typer.Exit


@application.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of `slts` itself."""


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code; other errors are bugs and are not caught."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # Every command ends with SystemExit.
            application(arguments, prog_name="slts")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except _EXPECTED as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    return 0


def _show_warning(message: Warning | str, *args: Any, **kwargs: Any) -> None:
    """Show the text of a warning, without file and line."""
    sys.stderr.write(f"Warning: {message}\n")
