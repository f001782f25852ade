"""Minimise hinge loss + regularizer on the few rows that decide, certified on all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.learning.hinge import HingeRows, HingeSystem, Regularizer
from slts.learning.interior import minimise

_FIRST_TOL = 1e-3
_SAMPLE_TOL = 1e-2
_SAMPLE_RATIO = 8
_DRAWN_PER_COLUMN = 200
_MAX_SAMPLES = 6
_WORTHWHILE = 0.5  # share of the error that a second sample may leave


def most_drawn(size: int, n_columns: int, most_bytes: float = np.inf) -> int:
    """Return how many rows a guess is made of, at most; fewer than 2 ``size`` decide nothing."""
    within = int(min(_DRAWN_PER_COLUMN * n_columns, most_bytes / (8 * n_columns)))
    return max(2 * size, within)


def error_left(n_columns: int, n_drawn: int) -> float:
    """Return the share of the error of margins that a solution on rows drawn within it leaves."""
    # Noise of the gradient over density of the rows: both are known of the rows within.
    return float(4.0 * np.sqrt(n_columns / n_drawn))


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
    set, which never shrinks, so :meth:`reach` is finite; values are always those of all rows. The
    set begins with the rows whose margin at a guess is within the error of the guess.

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
        self._size = size
        whole = rows.n_rows <= 2 * size
        self._first_tol = 0.0 if whole else _FIRST_TOL
        coef = np.zeros(rows.n_columns) if start is None else start
        margins = np.zeros(rows.n_rows) if start is None else rows.margins(coef)
        self._inside = np.ones(rows.n_rows, dtype=bool)
        if not whole:
            coef, margins, count = self._improve(coef, margins)
            self._inside[np.argpartition(np.abs(1.0 - margins), count)[count:]] = False
        self._dual = np.where(margins < 1.0, rows.weights, 0.0)
        self._best = Certified(coef, np.zeros(rows.n_rows), self._value(coef, margins), 0.0, False)
        self._restrict(coef)

    def reach(self, tol: float) -> Certified:
        """Continue until ``primal - dual <= tol * max(primal, floor)``, or progress ends."""
        target = max(self._first_tol, 0.3 * tol) * self._unit()
        self._first_tol = 0.0
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
                self._join(np.flatnonzero(wrong), margins)
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
        coef, multipliers = self.system.coef, self.system.multipliers()
        self._dual[self.working] = multipliers
        margins = self._rows.margins(coef)
        value = self._value(coef, margins)
        gradient = multipliers @ self._taken + self._linear
        bound = float(self._dual.sum()) - self._term.conjugate(gradient)
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
        self._taken, self._linear = rows.take(self.working), rows.combine(fixed)
        self.system: HingeSystem = self._term.system(
            self._taken, rows.weights[self.working], self._linear, coef
        )

    def _join(self, wrong: npt.NDArray[np.intp], margins: FloatArray) -> None:
        """Take the rows that are most wrong, at most as many as there are already."""
        limit = max(self._size, self.working.size)
        if wrong.size > limit:
            score = self._rows.weights[wrong] * np.abs(1.0 - margins[wrong])
            wrong = wrong[np.argpartition(-score, limit)[:limit]]
        self._inside[wrong] = True

    def _value(self, coef: FloatArray, margins: FloatArray) -> float:
        return self._rows.loss(margins) + self._term.value(coef)

    def _improve(self, coef: FloatArray, margins: FloatArray) -> tuple[FloatArray, FloatArray, int]:
        """Return a better guess, its margins, and how many rows are within their error.

        A random choice of the rows within the error, with the exact sum of all others, gives a
        guess with a fraction of the error, until the rows within are few.
        """
        rows = self._rows
        most = most_drawn(self._size, rows.n_columns)
        few = max(self._size, min(rows.n_rows // _SAMPLE_RATIO, most))
        shrink = error_left(rows.n_columns, few)
        value, error = self._value(coef, margins), np.inf
        rng = np.random.default_rng(0)
        for _ in range(_MAX_SAMPLES if shrink <= _WORTHWHILE else 1):
            near = np.flatnonzero(np.abs(1.0 - margins) <= error)
            if near.size <= few:
                break
            weights = rows.weights[near]
            # Heavy rows, such as those that stand for many equal ones, are always chosen.
            light = np.minimum(weights, weights.sum() / few)
            chance = np.minimum(1.0, weights * (few / light.sum()))
            lucky = rng.random(near.size) < chance
            fixed = np.where(margins < 1.0, rows.weights, 0.0)
            fixed[near] = 0.0
            system = self._term.system(
                rows.take(near[lucky]), (weights / chance)[lucky], rows.combine(fixed), coef
            )
            # The objective is flat to second order: margins must be far better than the error.
            error = min(error, 1.0)
            gap = _SAMPLE_TOL * error**2 * max(value, self._floor)
            self.n_iter += minimise(system, gap=gap, max_iter=self._max_iter).n_iter
            found = rows.margins(system.coef)
            reached = self._value(system.coef, found)
            if reached < value:
                coef, margins, value = system.coef, found, reached
            elif error < 1.0:
                # The step went beyond the rows that could hold it.
                error *= 4.0
                continue
            error *= shrink
        return coef, margins, min(max(near.size, self._size), few)
