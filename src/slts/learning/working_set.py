"""Minimise hinge loss + regularizer on the few rows that decide, certified on all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.learning.hinge import HingeRows, HingeSystem, Regularizer
from slts.learning.interior import minimise

_SAMPLE_TOL = 1e-2
_SAMPLE_RATIO = 8
_FIRST_TOL = 1e-3


class Certified(NamedTuple):
    """A primal and a dual feasible point of the full problem."""

    coef: FloatArray
    dual: FloatArray
    primal_value: float
    dual_value: float
    converged: bool


class WorkingSet:
    """Rows near the margin, solved exactly while all others are held constant.

    A row outside keeps its multiplier at 0 (margin above one) or at its weight (below one), which
    makes it a constant or linear term. Rows that turn out to be on the wrong side join the working
    set, which never shrinks, so :meth:`reach` is finite; values are always those of all rows.

    Parameters
    ----------
    rows, term : HingeRows, Regularizer
        The problem ``hinge(rows) + term``.
    start : ndarray, optional
        A guess, used when it is better than the solution of a random sample.
    size : int
        Rows to begin with; up to twice as many rows are simply all taken.
    max_iter : int
        Interior-point iterations allowed in one call of :meth:`reach`.
    floor : float
        Primal values below it count as ``floor`` in the relative gap.
    """

    def __init__(
        self,
        rows: HingeRows,
        term: Regularizer,
        *,
        start: FloatArray | None,
        size: int,
        max_iter: int,
        floor: float = 0.0,
    ) -> None:
        self._rows, self._term = rows, term
        self._max_iter, self._floor = max_iter, floor
        self.n_iter = 0
        self._whole = rows.n_rows <= 2 * size
        coef, margins = self._guess(start, 0 if self._whole else size)
        self._inside = np.ones(rows.n_rows, dtype=bool)
        if not self._whole:
            self._inside[:] = False
            self._inside[np.argpartition(np.abs(1.0 - margins), size)[:size]] = True
        self._dual = np.where(margins < 1.0, rows.weights, 0.0)
        self._best = Certified(
            coef, np.zeros(rows.n_rows), rows.loss(margins) + term.value(coef), 0.0, False
        )
        self._restrict(coef)

    def reach(self, tol: float) -> Certified:
        """Continue until ``primal - dual <= tol * max(primal, floor)``, or progress ends."""
        target = (0.3 * tol if self._whole else max(_FIRST_TOL, 0.3 * tol)) * self._unit()
        budget = self._max_iter
        while True:
            outcome = minimise(self.system, gap=target, max_iter=budget)
            self.n_iter += outcome.n_iter
            budget -= outcome.n_iter
            margins = self._update()
            gap, unit = self._best.primal_value - self._best.dual_value, self._unit()
            if gap <= tol * unit:
                return self._best._replace(converged=True)
            dual = self._dual
            wrong = ~self._inside & np.where(dual > 0.0, margins > 1.0, margins < 1.0)
            if wrong.any():
                # While rows change sides the inner problem is not worth solving to the end.
                target = max(0.01 * gap, 0.1 * tol * unit)
                self._inside |= wrong
                if 2 * np.count_nonzero(self._inside) > self._rows.n_rows:
                    self._inside[:] = True
                self._restrict(self.system.coef)
            elif outcome.converged and target > 1e-6 * tol * unit:
                target = min(0.1 * target, 0.3 * tol * unit)
            else:
                return self._best
            if budget <= 0:
                return self._best

    def _unit(self) -> float:
        return max(self._best.primal_value, self._floor)

    def _update(self) -> FloatArray:
        """Evaluate the current point on all rows and keep what is best on either side."""
        rows, coef = self._rows, self.system.coef
        self._dual[self.working] = self.system.multipliers()
        margins = rows.margins(coef)
        value = rows.loss(margins) + self._term.value(coef)
        bound = float(self._dual.sum()) - self._term.conjugate(rows.combine(self._dual))
        if value < self._best.primal_value:
            self._best = self._best._replace(coef=coef, primal_value=value)
        if bound > self._best.dual_value:
            self._best = self._best._replace(dual=self._dual.copy(), dual_value=bound)
        return margins

    def _restrict(self, coef: FloatArray) -> None:
        """Build the system of the working rows; the others enter through their multipliers."""
        self.working: npt.NDArray[np.intp] = np.flatnonzero(self._inside)
        fixed = self._dual.copy()
        fixed[self.working] = 0.0
        rows = self._rows
        self.system: HingeSystem = self._term.system(
            rows.take(self.working), rows.weights[self.working], rows.combine(fixed), coef
        )

    def _guess(self, start: FloatArray | None, size: int) -> tuple[FloatArray, FloatArray]:
        """Return the better of ``start`` and a loose solution on a sample, with its margins."""
        rows, term = self._rows, self._term
        coef = np.zeros(rows.n_columns) if start is None else start
        margins = rows.margins(coef)
        if size == 0:
            return coef, margins
        count = max(size, rows.n_rows // _SAMPLE_RATIO)
        index = np.sort(np.random.default_rng(0).choice(rows.n_rows, count, replace=False))
        # A sample of the sample guesses for it, and so on down to one that is solved whole.
        sample = WorkingSet(
            rows.subset(index), term, start=start, size=size, max_iter=self._max_iter
        )
        found = sample.reach(_SAMPLE_TOL).coef
        self.n_iter += sample.n_iter
        sampled = rows.margins(found)
        if rows.loss(sampled) + term.value(found) < rows.loss(margins) + term.value(coef):
            return found, sampled
        return coef, margins
