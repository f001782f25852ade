"""The metric under any penalty; that of the squared norm is solved in metric.py.

``min_M (1/m) sum_i s_i [1 - l_i <M, Z_i> / gamma]_+ + lam penalty(M)``

frobenius    ||M||_F^2                      the penalty of the paper; see metric.py
nuclear      sum of singular values         low rank
l1           sum of |entries|               sparse
mahalanobis  ||M||_F^2, M = M' >= 0         K_M is a scalar product of linearly mapped rows

With ``M = gamma w`` only ``lam * gamma**2`` matters for the first and last, ``lam * gamma`` for the
others.

The method: Newton steps on a smoothed problem whose width shrinks. The hinge ``[u]_+`` becomes
``min_x x - width (log x + log(x - u))``, whose slope lies strictly between 0 and 1: multipliers are
inside their boxes, and every point has a lower bound. The functions are self-concordant, so damped
Newton steps converge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from slts._typing import FloatArray
from slts.learning.hinge import HingeExamples, Multipliers
from slts.learning.metric import (
    PRIMAL_FLOOR,
    MetricSolution,
    check_pairs,
    largest_row_norm,
    solve_frobenius_path,
    strength_of,
)
from slts.learning.penalties import L1, Nuclear, Penalty, Semidefinite

REGULARIZERS = ("frobenius", "nuclear", "l1", "mahalanobis")
# Their penalty is ||M||_F^2, with or without a convex cone: strongly convex, zero at M = 0.
SQUARED_NORMS = ("frobenius", "mahalanobis")
_EXACT = 1e-12
_SHRINK = 0.15
_SMALLEST_WIDTH = 1e-13
_STEPS_PER_WIDTH = 60
# Widths tried after the first one that closes the gap, to find exact zeros.
_MORE_WIDTHS = 4
_SHORTEST = 1e-10
_LIFT = 1e-14
# The steps for one width end when the next one promises a decrease below this share of the width.
_CENTRED = 0.01
# Rows that together change the Newton matrix by a smaller share are left out of it.
_NEGLIGIBLE = 1e-3
# Thresholds for zero, from large to small, in units of the smoothing.
_CUTS = (1e4, 1e3, 1e2, 1e1, 0.0)


def penalty_of(metric: FloatArray, regularizer: str) -> float:
    """Return the penalty of a matrix, without ``lam``."""
    if regularizer == "nuclear":
        return float(np.linalg.svd(metric, compute_uv=False).sum())
    if regularizer == "l1":
        return float(np.abs(metric).sum())
    return float(np.sum(metric * metric))


def problem_strength(gamma: float, lam: float, regularizer: str) -> float:
    """Return the one number that determines a metric up to its scale."""
    if regularizer in SQUARED_NORMS:
        return strength_of(gamma, lam)
    return float(f"{lam * gamma:.12g}")


def solve_metric(
    Z: npt.NDArray[np.floating],
    labels: npt.ArrayLike,
    *,
    gamma: float,
    lam: float,
    **options: Any,
) -> MetricSolution:
    """Solve for one pair of parameters; `options` are those of :func:`solve_metric_path`."""
    return solve_metric_path(Z, labels, pairs=[(gamma, lam)], **options)[0]


def solve_metric_path(
    Z: npt.NDArray[np.floating],
    labels: npt.ArrayLike,
    *,
    pairs: Sequence[tuple[float, float]],
    regularizer: str = "frobenius",
    sample_weight: npt.ArrayLike | None = None,
    tol: float | None = None,
    max_iter: int = 500,
) -> list[MetricSolution]:
    """Solve the metric problem for several ``(gamma, lam)``; each strength is solved once.

    Parameters
    ----------
    Z : ndarray of shape (n_series, d, d)
        Mean signed aligned products; float32 is read as is, arithmetic is float64.
    labels : array-like of shape (n_series,)
        +1 or -1.
    pairs : sequence of (gamma, lam)
        Parameters, both positive.
    regularizer : str
        One of `REGULARIZERS`.
    sample_weight : array-like of shape (n_series,), optional
        Non-negative weights, scaled to mean one.
    tol : float, optional
        Relative duality gap: ``primal - dual <= tol * max(primal, 1e-9)``. None is 1e-6 for
        ``"frobenius"``, 1e-4 for the others.
    max_iter : int
        Newton steps allowed for one strength.

    Returns
    -------
    list of MetricSolution
        In the order of ``pairs``.

    Warns
    -----
    ConvergenceWarning
        If a gap stays above ``tol``.
    """
    if regularizer not in REGULARIZERS:
        raise ValueError(
            f"The 'regularizer' parameter of solve_metric_path must be one of {REGULARIZERS}. "
            f"Got {regularizer!r} instead."
        )
    if regularizer == "frobenius":
        return solve_frobenius_path(
            Z, labels, pairs=pairs, sample_weight=sample_weight,
            tol=1e-6 if tol is None else tol, max_iter=max_iter,
        )  # fmt: skip
    tol = 1e-4 if tol is None else tol
    check_pairs(pairs)
    Z = np.asarray(Z)
    if Z.ndim != 3 or Z.shape[1] != Z.shape[2]:
        raise ValueError(f"The 'Z' must have shape (n_series, d, d). Got {Z.shape} instead.")
    rows = HingeExamples.build(Z.reshape(len(Z), -1), labels, sample_weight, name="Z")
    unit = largest_row_norm(rows)
    rows = rows.scaled(1.0 / unit)
    found: dict[float, _Solved] = {}
    solutions = []
    for gamma, lam in pairs:
        strength = problem_strength(gamma, lam, regularizer)
        is_new = strength not in found
        if is_new:
            penalty = _penalty(strength, unit, regularizer, Z.shape[1])
            found[strength] = _solve(rows, penalty, tol, max_iter)
        coef, loss, primal, dual, n_iter = found[strength]
        metric = (gamma / unit * coef).reshape(Z.shape[1:])
        solutions.append(
            MetricSolution(
                gamma=gamma,
                lam=lam,
                metric=metric,
                objective=primal,
                dual=dual,
                loss=loss,
                n_iter=n_iter,
                converged=found[strength].closes(tol),
            )
        )
        if is_new:
            product = "lam*gamma^2" if regularizer in SQUARED_NORMS else "lam*gamma"
            name = f"{regularizer} metric for {product}={strength:g}"
            solutions[-1].warn_if_open(name, tol)
    return solutions


def _penalty(strength: float, unit: float, regularizer: str, order: int) -> Penalty:
    """Return the penalty of metrics of rows in units of ``unit``."""
    if regularizer == "mahalanobis":
        return Semidefinite(strength / unit**2, order)
    if regularizer == "nuclear":
        return Nuclear(strength / unit, order)
    return L1(strength / unit, order)


class _Solved(NamedTuple):
    """A primal point and a lower bound."""

    coef: FloatArray
    loss: float
    primal: float
    dual: float
    n_iter: int

    def closes(self, tol: float) -> bool:
        """Whether the gap is small enough."""
        return self.primal - self.dual <= tol * max(self.primal, PRIMAL_FLOOR)


def _solve(rows: HingeExamples, penalty: Penalty, tol: float, max_iter: int) -> _Solved:
    """Minimise until the gap closes, or the Newton steps are used up.

    Of the points within the gap the simplest is returned: entries, singular values or eigenvalues
    that are zero except for the smoothing are zero.
    """
    whole = Multipliers(1.0, rows.total)
    coef, dual = penalty.minimiser(whole.gradient), penalty.bound(whole)
    best = _evaluate(rows, penalty, coef, dual)
    if best.primal - dual <= _EXACT * best.primal:
        # No margin exceeds one, so every multiplier is at its upper bound.
        return best
    width, n_iter, n_closed = 1.0, 0, 0
    coef = penalty.start(width)
    while True:
        centre = _centre(rows, penalty, coef, width, max_iter - n_iter)
        coef, n_iter = centre.coef, n_iter + centre.n_iter
        total, gradient = float(centre.multipliers.sum()), rows.combine(centre.multipliers)
        dual = max(best.dual, penalty.bound(Multipliers(total, gradient)))
        best, simple = _improve(rows, penalty, best, coef, width, dual, tol)
        best = best._replace(n_iter=n_iter)
        n_closed += best.closes(tol)
        if simple or n_closed > _MORE_WIDTHS or n_iter >= max_iter or width < _SMALLEST_WIDTH:
            return best
        width *= _SHRINK


def _evaluate(rows: HingeExamples, penalty: Penalty, coef: FloatArray, dual: float) -> _Solved:
    loss = rows.loss(rows.margins(coef))
    return _Solved(coef, loss, loss + penalty.value(coef), dual, 0)


def _improve(
    rows: HingeExamples,
    penalty: Penalty,
    best: _Solved,
    centre: FloatArray,
    width: float,
    dual: float,
    tol: float,
) -> tuple[_Solved, bool]:
    """Return the simplest point within the gap and True, or else the best point and False."""
    best = best._replace(dual=dual)
    for cut in _CUTS:
        coef = penalty.simplify(centre, width, cut)
        # Without the dropped values, margins are a little short of one.
        coef = coef * penalty.best_scale(coef, rows.margins(coef), rows.weights)
        point = _evaluate(rows, penalty, coef, dual)
        if cut > 0.0 and point.closes(tol):
            return point, True
        if point.primal < best.primal:
            best = point
    return best, False


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


def _centre(
    rows: HingeExamples, penalty: Penalty, coef: FloatArray, width: float, budget: int
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
            # Multipliers after one more step satisfy the dual constraint to first order.
            ahead = multipliers + step.multipliers
            return _Centre(coef, np.clip(ahead, 0.0, rows.weights), n_iter)
        coef, margins, n_iter = coef + length * step.coef, margins + length * change, n_iter + 1


def _step_length(
    rows: HingeExamples,
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
    rows: HingeExamples,
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
    features = np.asarray(rows.features, dtype=np.float64)
    A = smooth.frame.project(features) * np.sqrt(curvature)[:, np.newaxis]
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
            # The matrix is positive definite except for rounding.
            diagonal += _LIFT * float(diagonal.max())


def _smooth_loss(rows: HingeExamples, margins: FloatArray, width: float) -> float:
    short = 1.0 - margins
    half = width + np.hypot(width, 0.5 * short)
    values = 0.5 * short + half - width * np.log(2.0 * width * half)
    return float(rows.weights @ values)


def _hinge_slopes(
    rows: HingeExamples, margins: FloatArray, width: float
) -> tuple[FloatArray, npt.NDArray[np.float64]]:
    """Return multipliers between zero and the weights, and the curvature of every row."""
    short = 1.0 - margins
    root = np.hypot(width, 0.5 * short)
    half = width + root
    below = width / (half - 0.5 * np.minimum(short, 0.0))
    multipliers = np.where(short > 0.0, 0.5 + 0.25 * short / half, below)
    return rows.weights * multipliers, rows.weights * width / (4.0 * root * half)
