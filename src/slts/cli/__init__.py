"""The command ``slts`` (extra ``cli``: typer, rich). One file per command.

application.py  the commands put together; errors turned into messages and exit codes
demo.py         ``slts demo``: Japanese Vowels, beside the paper's figures
fit.py          ``slts fit``: train a classifier and save it
predict.py      ``slts predict``: label series, however many
evaluate.py     ``slts evaluate``: how good a model is on labelled series
explain.py      ``slts explain``: why a series was given its label
certify.py      ``slts certify``: what is guaranteed about a model
report.py       ``slts report``: a page about a model
datasets.py     ``slts datasets``: list, describe and download the data sets
options.py      options that several commands have
methods.py      classifiers by the names they have on the command line
data.py         users' data and models, read with a word about what was understood
large_data.py   data too large for memory, read part by part
answers.py      labels, probabilities and scores of a model
predictions.py  predictions as CSV, JSON lines or Parquet
places.py       whether a file can be written where it is asked for
terminal.py     what goes to standard output and what to standard error

Exit codes: 0 done, 1 it could not be done, 2 the command line is wrong, 130 interrupted.
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
        What follows ``slts``; None takes it from `sys.argv`.

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
