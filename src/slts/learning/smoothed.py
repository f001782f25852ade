"""Minimise hinge loss + penalty by Newton steps on a smoothed problem, ever less smoothed.

The hinge ``[u]_+`` becomes ``min_x x - width (log x + log(x - u))``, whose slope lies strictly
between 0 and 1: multipliers are inside their boxes, and a lower bound comes with every point. The
functions are self-concordant, so damped Newton steps arrive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from slts._typing import FloatArray
from slts.learning.hinge import HingeRows
from slts.learning.penalties import Penalty

_SHRINK = 0.15
_SMALLEST_WIDTH = 1e-13
_STEPS_PER_WIDTH = 60
# Widths tried beyond the first whose gap is small enough, in search of exact zeros.
_MORE_WIDTHS = 4
_SHORTEST = 1e-10
_LIFT = 1e-14
# A width is left once the next Newton step promises less than this share of it.
_CENTRED = 0.01
# Rows that together change the Newton matrix by a smaller share are left out of it.
_NEGLIGIBLE = 1e-3
# What counts as zero, from bold to timid, in units of the smoothing.
_CUTS = (1e4, 1e3, 1e2, 1e1, 0.0)


class SmoothedOutcome(NamedTuple):
    """A primal point and a lower bound."""

    coef: FloatArray
    loss: float
    primal: float
    dual: float
    n_iter: int

    def closes(self, tol: float, floor: float) -> bool:
        """Whether the gap is at most ``tol * max(primal, floor)``."""
        return self.primal - self.dual <= tol * max(self.primal, floor)


def minimise_smoothed(
    rows: HingeRows, penalty: Penalty, *, tol: float, floor: float, max_iter: int
) -> SmoothedOutcome:
    """Minimise until the gap is at most ``tol * max(primal, floor)``, or steps are used up.

    Parameters
    ----------
    rows, penalty
        The problem; rows no longer than about one.
    tol, floor
        Relative gap, and the primal value below which it is judged as if at this value.
    max_iter
        Newton steps allowed.

    Returns
    -------
    SmoothedOutcome
        Of the points within the gap the simplest: entries, singular values or eigenvalues that are
        zero but for the smoothing are zero.
    """
    width, n_iter, n_closed = 1.0, 0, 0
    coef = penalty.start(width)
    best: SmoothedOutcome | None = None
    while True:
        centre = _centre(rows, penalty, coef, width, max_iter - n_iter)
        coef, n_iter = centre.coef, n_iter + centre.n_iter
        gradient = rows.combine(centre.multipliers)
        dual = penalty.bound(float(centre.multipliers.sum()), gradient)
        best, simple = _improve(rows, penalty, best, centre, width, dual, tol, floor)
        best = best._replace(n_iter=n_iter)
        n_closed += best.closes(tol, floor)
        if simple or n_closed > _MORE_WIDTHS or n_iter >= max_iter or width < _SMALLEST_WIDTH:
            return best
        width *= _SHRINK


class _Centre(NamedTuple):
    """Where the Newton steps for one width end, and multipliers of the rows there."""

    coef: FloatArray
    multipliers: FloatArray
    n_iter: int


class _Step(NamedTuple):
    """A Newton step, the change of the multipliers with it, and twice the decrease it promises."""

    coef: FloatArray
    multipliers: FloatArray
    promise: float


def _improve(
    rows: HingeRows,
    penalty: Penalty,
    best: SmoothedOutcome | None,
    centre: _Centre,
    width: float,
    dual: float,
    tol: float,
    floor: float,
) -> tuple[SmoothedOutcome, bool]:
    """Return the simplest point within the gap and True, or else the best point and False."""
    if best is not None:
        dual = max(dual, best.dual)
    for cut in _CUTS:
        coef = penalty.simplify(centre.coef, width, cut)
        # What was dropped leaves margins a little short of one.
        coef = coef * penalty.best_scale(coef, rows.margins(coef), rows.weights)
        loss = rows.loss(rows.margins(coef))
        point = SmoothedOutcome(coef, loss, loss + penalty.value(coef), dual, 0)
        if cut > 0.0 and point.closes(tol, floor):
            return point, True
        if best is None or point.primal < best.primal:
            best = point
    assert best is not None
    return best._replace(dual=dual), False


def _centre(
    rows: HingeRows, penalty: Penalty, coef: FloatArray, width: float, budget: int
) -> _Centre:
    """Newton steps for one width."""
    margins = rows.margins(coef)
    n_iter = 0
    while True:
        multipliers, curvature = _hinge_slopes(rows, margins, width)
        step = _newton(rows, penalty, coef, multipliers, curvature, width)
        last = step.promise <= _CENTRED * width or n_iter >= min(budget, _STEPS_PER_WIDTH)
        change = np.zeros(0) if last else rows.margins(step.coef)
        length = 0.0 if last else _step_length(rows, penalty, coef, margins, step, change, width)
        if length == 0.0:
            # Multipliers one step ahead: to first order they meet the dual constraint exactly.
            ahead = multipliers + step.multipliers
            return _Centre(coef, np.clip(ahead, 0.0, rows.weights), n_iter)
        coef, margins, n_iter = coef + length * step.coef, margins + length * change, n_iter + 1


def _step_length(
    rows: HingeRows,
    penalty: Penalty,
    coef: FloatArray,
    margins: FloatArray,
    step: _Step,
    change: FloatArray,
    width: float,
) -> float:
    """Halve the step until it decreases the smoothed objective; 0 if rounding forbids it."""
    here = _smooth_loss(rows, margins, width) + penalty.smooth_value(coef, width)
    length = 1.0
    while length > _SHORTEST:
        there = _smooth_loss(rows, margins + length * change, width)
        there += penalty.smooth_value(coef + length * step.coef, width)
        if there <= here - 0.1 * length * step.promise:
            return length
        length *= 0.5
    return 0.0


def _newton(
    rows: HingeRows,
    penalty: Penalty,
    coef: FloatArray,
    multipliers: FloatArray,
    curvature: FloatArray,
    width: float,
) -> _Step:
    smooth = penalty.smooth(coef, width)
    slope = smooth.gradient - rows.combine(multipliers)
    # In units of the penalty's curvature the Newton matrix is I + A'A.
    units = 1.0 / np.sqrt(smooth.curvature)
    A = smooth.frame.project(rows.take(np.arange(rows.n_rows)))
    A *= np.sqrt(curvature)[:, np.newaxis]
    A *= units
    heavy = np.flatnonzero(np.einsum("ij,ij->i", A, A) > _NEGLIGIBLE / rows.n_rows)
    A = A[heavy]
    right = smooth.frame.project(slope[np.newaxis])[0] * units
    solution, image = _solve_identity_plus(A, right)
    change = np.zeros_like(multipliers)
    change[heavy] = np.sqrt(curvature[heavy]) * image
    return _Step(smooth.frame.lift(-solution * units), change, float(solution @ right))


def _solve_identity_plus(A: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve ``(I + A'A) x = right`` on the smaller side; return x and A x, free of cancellation."""
    n, p = A.shape
    if n >= p:
        solution = _solve_positive(A.T @ A, right)
        return solution, A @ solution
    image = _solve_positive(A @ A.T, A @ right)
    return right - A.T @ image, image


def _solve_positive(gram: FloatArray, right: FloatArray) -> FloatArray:
    diagonal = np.einsum("ii->i", gram)
    diagonal += 1.0
    while True:
        try:
            return np.asarray(cho_solve(cho_factor(gram, lower=True), right))
        except LinAlgError:
            # Positive definite up to rounding.
            diagonal += _LIFT * float(diagonal.max())


def _smooth_loss(rows: HingeRows, margins: FloatArray, width: float) -> float:
    short = 1.0 - margins
    half = width + np.hypot(width, 0.5 * short)
    values = 0.5 * short + half - width * np.log(2.0 * width * half)
    return float(rows.weights @ values)


def _hinge_slopes(
    rows: HingeRows, margins: FloatArray, width: float
) -> tuple[FloatArray, npt.NDArray[np.float64]]:
    """Return multipliers between zero and the weights, and the curvature of every row."""
    short = 1.0 - margins
    root = np.hypot(width, 0.5 * short)
    half = width + root
    below = width / (half - 0.5 * np.minimum(short, 0.0))
    multipliers = np.where(short > 0.0, 0.5 + 0.25 * short / half, below)
    return rows.weights * multipliers, rows.weights * width / (4.0 * root * half)
