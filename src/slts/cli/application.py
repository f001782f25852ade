"""The table of commands, and the way from errors to messages and exit codes."""

from __future__ import annotations

import contextlib
import pkgutil
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from slts import __version__
from slts.cli.terminal import CommandError
from slts.errors import DataError, ModelFileError

# Name -> module and attribute, and the line in `slts --help`: the first of the docstring.
COMMANDS = {
    "demo": ("demo:demo", "Train on Japanese Vowels, compare with the paper, write a report."),
    "fit": ("fit:fit", "Train a classifier on labelled series and save it."),
    "predict": ("predict:predict", "Predict a label and class probabilities for every series."),
    "evaluate": ("evaluate:evaluate", "Measure accuracy, log-loss and scores of every class."),
    "explain": (
        "explain:explain_prediction",
        "Show what contributes to the decision value of a class.",
    ),
    "certify": ("evaluate:certify_model", "Compute an upper bound on the error on new series."),
    "report": ("report:report", "Write a self-contained HTML page about a model."),
}
# The exit code of programs that end with SIGPIPE, as `yes | head` does.
_CLOSED_PIPE = 141
# Errors whose message tells the user what to do.
_EXPECTED = (CommandError, DataError, ModelFileError, ImportError, OSError)


class _LazyGroup(TyperGroup):
    """Commands that are imported when they are called; until then they are names with help."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return name, command and remaining arguments; the command is the imported one."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest


def load_command(name: str) -> Any:
    """Import a command of the table."""
    command = pkgutil.resolve_name(f"slts.cli.{COMMANDS[name][0]}")
    if isinstance(command, typer.Typer):
        return typer.main.get_command(command)
    single = typer.Typer(add_completion=False)
    single.command(name)(command)
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
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks. Allowed after the command too.")
    ] = False,
) -> None:
    """Options of all commands. `run` reads `debug`."""


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code."""
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        with _short_warnings(), _stop_at_signals():
            # Every command ends with SystemExit.
            application(arguments, prog_name="slts")
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            # typer ends quietly with 1 if nobody reads the output any more.
            return _CLOSED_PIPE
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Exception as error:
        if debug:
            raise
        if isinstance(error, _EXPECTED):
            sys.stderr.write(f"Error: {error}\n")
        else:
            sys.stderr.write(
                f"Error: {type(error).__name__}: {error}\nThis is a bug in slts. Run the command "
                f"with --debug to see where it happens.\n"
            )
        return 1
    return 0


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """Show the text of a warning once, without file and line."""
    shown = set[str]()

    def show(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            sys.stderr.write(f"Warning: {message}\n")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _stop_at_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does: unfinished files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        # A closed terminal sends SIGHUP twice; the second must not interrupt the removal.
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    # Windows has no SIGHUP. `nohup` ignores it, and this stays so.
    numbers = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
