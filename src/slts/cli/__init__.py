"""The command ``slts`` (extra ``cli``: typer, rich). One file per command.

application.py  the commands put together; errors turned into messages and exit codes
terminal.py     what goes to standard output and what to standard error
reproduce.py    ``slts reproduce``: the paper's experimental study
datasets.py     ``slts datasets``: list, describe and download the data sets
__main__.py     ``python -m slts.cli``

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
