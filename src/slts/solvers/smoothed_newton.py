"""Minimise hinge + penalty of a matrix by Newton steps on a smoothed problem whose width shrinks.

The hinge ``[u]_+`` becomes ``min_x x - width (log x + log(x - u))``, whose slope lies strictly
between 0 and 1: multipliers are inside their boxes, and every point has a lower bound. The
functions are self-concordant, so damped Newton steps converge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.solvers._solvers import solve_definite
from slts.solvers.hinge import Certified, HingeRows, Multipliers
from slts.solvers.penalties import Smooth, SmoothedPenalty

_SHRINK = 0.15
_SMALLEST_WIDTH = 1e-13
_STEPS_PER_WIDTH = 60
# Widths tried after the first one that closes the gap, to find exact zeros.
_MORE_WIDTHS = 4
_SHORTEST = 1e-10
# The steps for one width end when the next one promises a decrease below this share of the width.
_CENTRED = 0.01
# Rows that together change the Newton matrix by a smaller share are left out of it.
_NEGLIGIBLE = 1e-3
# Thresholds for zero, from large to small, in units of the smoothing.
_CUTS = (1e4, 1e3, 1e2, 1e1, 0.0)


def minimise_smoothed(
    rows: HingeRows, penalty: SmoothedPenalty, best: Certified, tol: float, max_iter: int
) -> Certified:
    """Improve a point until the gap closes, or the Newton steps are used up.

    Of the points within the gap the simplest is returned: entries, singular values or eigenvalues
    that are zero except for the smoothing are zero.
    """
    width, n_closed = 1.0, 0
    coef = penalty.start(width)
    while True:
        coef, multipliers, n_iter = _centre(rows, penalty, coef, width, max_iter - best.n_iter)
        own = Multipliers(float(multipliers.sum()), rows.combine(multipliers))
        bound = max(best.multipliers, own, key=penalty.bound)
        best = best._replace(multipliers=bound, n_iter=best.n_iter + n_iter)
        best, simple = _improve(rows, penalty, best, coef, width, tol)
        n_closed += penalty.closes(best, tol)
        used_up = best.n_iter >= max_iter or width < _SMALLEST_WIDTH
        if simple or n_closed > _MORE_WIDTHS or used_up:
            return best
        width *= _SHRINK


def _evaluate(
    rows: HingeRows, coef: FloatArray, multipliers: Multipliers, n_iter: int = 0
) -> Certified:
    return Certified(coef, rows.loss(rows.margins(coef)), multipliers, n_iter)


def _improve(
    rows: HingeRows,
    penalty: SmoothedPenalty,
    best: Certified,
    centre: FloatArray,
    width: float,
    tol: float,
) -> tuple[Certified, bool]:
    """Return the simplest point within the gap and True, or else the best point and False."""
    for cut in _CUTS:
        coef = penalty.simplify(centre, width, cut)
        # Without the dropped values, margins are a little short of one.
        coef = coef * penalty.best_scale(coef, rows.margins(coef), rows.weights)
        point = _evaluate(rows, coef, best.multipliers, best.n_iter)
        if cut > 0.0 and penalty.closes(point, tol):
            return point, True
        best = min(best, point, key=penalty.primal)
    return best, False


class _Step(NamedTuple):
    """A Newton step, the change of the multipliers with it, and twice the decrease it promises."""

    coef: FloatArray
    multipliers: FloatArray
    promise: float


def _centre(
    rows: HingeRows, penalty: SmoothedPenalty, coef: FloatArray, width: float, budget: int
) -> tuple[FloatArray, FloatArray, int]:
    """Take the Newton steps for one width; return where they end, multipliers, and their number."""
    margins, smooth = rows.margins(coef), penalty.smooth(coef, width)
    n_iter = 0
    while True:
        multipliers, curvature = _hinge_slopes(rows, margins, width)
        step = _newton(rows, smooth, multipliers, curvature)
        last = step.promise <= _CENTRED * width or n_iter >= min(budget, _STEPS_PER_WIDTH)
        change, length = rows.margins(step.coef), 0.0 if last else 1.0
        here = smooth.value + _smooth_loss(rows, margins, width)
        while length > 0.0:
            # Halve the step until it decreases the smoothed objective.
            ahead = penalty.smooth(coef + length * step.coef, width)
            there = ahead.value + _smooth_loss(rows, margins + length * change, width)
            if there <= here - 0.1 * length * step.promise:
                break
            length = 0.5 * length if length > _SHORTEST else 0.0
        if length == 0.0:
            # Multipliers after one more step satisfy the dual constraint to first order.
            return coef, np.clip(multipliers + step.multipliers, 0.0, rows.weights), n_iter
        coef, margins, smooth = coef + length * step.coef, margins + length * change, ahead
        n_iter += 1


def _newton(
    rows: HingeRows, smooth: Smooth, multipliers: FloatArray, curvature: FloatArray
) -> _Step:
    slope = smooth.gradient - rows.combine(multipliers)
    # In units of the penalty's curvature the Newton matrix is I + A'A.
    units = 1.0 / np.sqrt(smooth.curvature)
    A = smooth.frame.project(rows.signed) * np.sqrt(curvature)[:, np.newaxis]
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
    if n == 0:
        # LAPACK takes no empty right-hand side.
        return right, np.empty(0)
    if n >= p:
        solution = solve_definite(A.T @ A, 1.0, right)
        return solution, A @ solution
    image = solve_definite(A @ A.T, 1.0, A @ right)
    return right - A.T @ image, image


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
