"""The command ``slts`` (extra ``cli``: typer, rich).

application.py  the table of commands; errors become messages and exit codes
demo.py         ``slts demo``: Japanese Vowels, compared with the paper
fit.py          ``slts fit``: train a classifier and save it
predict.py      ``slts predict``: write labels and probabilities of any number of series
evaluate.py     ``slts evaluate``: measure a model on labelled series; ``slts certify``
explain.py      ``slts explain``: explain the prediction for one series
report.py       ``slts report``: an HTML page about a model
options.py      options that several commands have; the models, series and files that they name
terminal.py     results on standard output, messages on standard error

A command is imported when it is called, so ``slts --help`` needs neither NumPy nor scikit-learn.
Exit codes: 0 success, 1 failure, 2 wrong command line, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Any

from slts.extras import import_extra

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line.

    Parameters
    ----------
    arguments
        The words after ``slts``; None takes them from `sys.argv`.

    Returns
    -------
    int
        The exit code.
    """
    try:
        import_extra("typer", "cli")
        import_extra("rich", "cli")
    except ImportError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    from slts.cli.application import run

    if arguments is None:
        signal.signal(signal.SIGTERM, _terminate)
        arguments = sys.argv[1:]
    return run(list(arguments))


def _terminate(number: int, frame: Any) -> None:
    """End as Ctrl-C does, so that unfinished files are removed."""
    raise SystemExit(128 + number)
