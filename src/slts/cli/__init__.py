"""The command ``slts`` (extra ``cli``: typer, rich).

application.py  the table of commands; errors become messages and exit codes
demo.py         ``slts demo``: Japanese Vowels, compared with the paper
fit.py          ``slts fit``: train a classifier and save it
predict.py      ``slts predict``: write labels and probabilities of any number of series
evaluate.py     ``slts evaluate``: measure a model; ``slts certify``: bound its error
explain.py      ``slts explain``: explain the prediction for one series
report.py       ``slts report``: an HTML page about a model
options.py      options that several commands have
data.py         models and data that a command reads, paths that it writes to
terminal.py     results on standard output, messages on standard error

A command is imported when it is called, so ``slts --help`` needs neither NumPy nor scikit-learn.
Exit codes: 0 success, 1 failure, 2 wrong command line, 130 interrupted, 129 and
143 stopped by SIGHUP and SIGTERM, 141 output closed by its reader.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

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

    return run(list(sys.argv[1:] if arguments is None else arguments))
