"""The commands put together, and what becomes of errors."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from slts import __version__
from slts.cli import certify, datasets, demo, evaluate, explain, fit, predict, report
from slts.cli.terminal import CommandError
from slts.errors import DataError, ModelFileError

application = typer.Typer(
    name="slts",
    help="Learned similarity for ragged multivariate time series.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
# In the order of `slts --help`. A group of commands is a typer.Typer in a file of its own.
_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "fit": fit.fit,
    "predict": predict.predict,
    "evaluate": evaluate.evaluate,
    "explain": explain.explain_prediction,
    "certify": certify.certify_model,
    "report": report.report,
}
_GROUPS = {"datasets": datasets.commands}

for _name, _command in _COMMANDS.items():
    application.command(_name)(_command)
for _name, _group in _GROUPS.items():
    application.add_typer(_group, name=_name)

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
        with _short_warnings(), _stopped_by_signal():
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


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """Show what a warning says, not which line of slts said it."""

    def show(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        sys.stderr.write(f"Warning: {message}\n")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _stopped_by_signal() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does: unfinished files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
