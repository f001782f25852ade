"""Plain text of numbers: rows of a matrix, and blocks of rows between blank lines."""

from __future__ import annotations

import itertools

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.errors import DataError

__all__ = ["read_blocks", "read_rows"]


def read_rows(text: str, where: str) -> FloatArray:
    """Read rows of numbers separated by white space; blank lines do not count.

    Parameters
    ----------
    text : str
        One row per line, all of equal width.
    where : str
        Name of the file, for error messages.

    Returns
    -------
    FloatArray
        Shape (rows, columns).

    Raises
    ------
    DataError
        If the text holds anything else.
    """
    lines = [line for line in text.split("\n") if line and not line.isspace()]
    if not lines:
        raise DataError(f"{where} is empty, expected rows of numbers")
    try:
        return np.loadtxt(lines, dtype=np.float64, comments=None, ndmin=2)
    except ValueError as error:
        # NumPy counts rows without the blank ones; its advice after the semicolon is not for us.
        reason = str(error).partition(";")[0]
        raise DataError(f"{where} is not rows of numbers: {reason}") from error


def read_blocks(text: str, where: str) -> tuple[FloatArray, IntArray]:
    """Read series that are blocks of rows, separated by one or more blank lines.

    Parameters
    ----------
    text : str
        Blocks of rows of numbers, a row per step.
    where : str
        Name of the file, for error messages.

    Returns
    -------
    values : FloatArray
        All rows, shape (steps, channels).
    lengths : IntArray
        Number of rows in each block.
    """
    filled = [bool(line) and not line.isspace() for line in text.split("\n")]
    lengths = [sum(1 for _ in run) for is_filled, run in itertools.groupby(filled) if is_filled]
    return read_rows(text, where), np.array(lengths, dtype=np.int64)
