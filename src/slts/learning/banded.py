"""Symmetric matrices in band form, reduced in the threads of a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from slts._typing import FloatArray
from slts.execution import ThreadRunner, fit_threads
from slts.learning._solvers import BAND, STRIP, Banded
from slts.learning.blas import map_rows

Part = TypeVar("Part")

# Numbers that are stored for each shift and row: triangles for substitution from either end.
STORED_DIAGONALS = 2 * (BAND + 1)
# Strips of columns below which one thread is as fast as several.
_FEW = 3
# Rows that a thread copies at once.
_ROWS = 128


class BandForm:
    """A symmetric matrix A = Q B Q', minus an outer product; B is banded.

    Products of matrices find the band, and threads share them well. Half of the work for a
    tridiagonal matrix is products of a matrix with a vector, which wait for memory.

    Parameters
    ----------
    matrix
        The matrix, both triangles.
    subtracted
        The outer product of this vector with itself is subtracted.
    shifts
        Numbers s that are added to the diagonal. They are raised until no pivot is smaller than the
        rounding error of the largest entry.
    """

    def __init__(self, matrix: FloatArray, subtracted: FloatArray, shifts: FloatArray) -> None:
        own = np.empty(matrix.shape)

        def subtract(rows: slice) -> None:
            np.multiply(subtracted[rows, np.newaxis], -subtracted, out=own[rows])
            own[rows] += matrix[rows]

        map_rows(subtract, own, _ROWS)
        self._system = Banded(own, shifts)
        self._n_shifts = len(shifts)
        for number in range(self._system.n_panels):
            self._reduce(number, len(own))
        _map(self._system.form_block, range(self._system.n_blocks))
        _map(self._system.factorise, range(self._n_shifts))

    def _reduce(self, number: int, size: int) -> None:
        """Make the columns of a panel banded, and multiply those after it."""
        system, end = self._system, (number + 1) * BAND
        system.reflect_panel(number)
        if end < size:
            strips = range(end // STRIP, system.n_strips)
            _map(partial(system.multiply, number), strips, few=len(strips) < _FEW)
            system.end_panel(number)

    def rotate(self, rows: FloatArray, *, back: bool = False) -> FloatArray:
        """Return rows Q, or rows Q'."""
        return self._system.rotate(rows, back=back)

    def solve(self, rows: FloatArray, shift: int | None = None) -> FloatArray:
        """Return rows (B + s I)^-1 for all shifts or one of them: (shifts, rows, columns)."""
        begin, end = (0, self._n_shifts) if shift is None else (shift, shift + 1)
        return self._system.solve(rows, begin, end)

    def quadratic(self, rows: FloatArray) -> FloatArray:
        """Return x (B + s I)^-1 x' of every row x, shape (rows, shifts)."""
        return self._system.quadratic(rows)


def _map(task: Callable[[Part], None], parts: Sequence[Part], *, few: bool = False) -> None:
    """Call a task that releases the GIL, in the threads of the fit."""
    runner = ThreadRunner(1 if few else fit_threads())
    for _ in runner.map(lambda part, *_: task(part), parts):
        pass
