"""The metric ``M`` of the bilinear similarity, learned from grouped aligned products.

``min_M (1/m) sum_i s_i [1 - l_i <M, Z_i> / gamma]_+ + lam penalty(M)``

frobenius    ||M||_F^2                      the penalty of the paper
nuclear      sum of singular values         low rank
l1           sum of |entries|               sparse
mahalanobis  ||M||_F^2, M = M' >= 0         K_M is a scalar product of linearly mapped rows

With ``M = gamma w`` only the strength ``lam * gamma**2`` matters for the first and last, and
``lam * gamma`` for the others. The first is a linear support vector machine without bias in ``w``,
which the interior-point method solves; for the others see penalties.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.solvers.hinge import (
    EXACT,
    HingeRows,
    Solution,
    check_positive,
    saturated_point,
)
from slts.solvers.penalties import PENALTIES

REGULARIZERS = tuple(PENALTIES)
# Their penalty is ||M||_F^2, with or without a convex cone: strongly convex, zero at M = 0.
SQUARED_NORMS = ("frobenius", "mahalanobis")
# Below it, squares of the strength vanish.
_LEAST_STRENGTH = 1e-150


@dataclass(frozen=True)
class MetricSolution(Solution):
    """A minimiser of the metric problem, with its certificate.

    Attributes
    ----------
    metric : ndarray of shape (d, d), or the shape of one ``Z_i``
        The matrix ``M``. The objective at it is at most one.
    lam : float
        The penalty the problem was solved for.
    loss : float
        The hinge part of ``objective``.
    """

    metric: FloatArray
    lam: float
    loss: float


def problem_strength(gamma: float, lam: float, regularizer: str) -> float:
    """Return the one number that determines a metric up to its scale.

    It is rounded: equal products of different factors are one problem.
    """
    check_positive("gamma", gamma)
    check_positive("lam", lam)
    squared = regularizer in SQUARED_NORMS
    strength = float(f"{lam * gamma * (gamma if squared else 1.0):.12g}")
    if not _LEAST_STRENGTH <= strength < np.inf:
        raise ValueError(
            f"The parameters gamma={gamma:g} and lam={lam:g} are too large or too small: "
            f"lam*gamma{'^2' if squared else ''} must be finite and at least {_LEAST_STRENGTH:g}. "
            f"Got {strength:g}."
        )
    return strength


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
        Mean signed aligned products; arithmetic is float64.
    labels : array-like of shape (n_series,)
        +1 or -1.
    pairs : sequence of (gamma, lam)
        Parameters, both positive.
    regularizer : str
        One of `REGULARIZERS`.
    sample_weight : array-like of shape (n_series,), optional
        Non-negative weights, scaled to mean one.
    tol : float, optional
        Relative duality gap: ``objective - dual <= tol * max(objective, 1e-9)``. None is 1e-6 for
        ``"frobenius"``, 1e-4 for the others.
    max_iter : int
        Steps allowed for one strength.

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
    strengths = [problem_strength(gamma, lam, regularizer) for gamma, lam in pairs]
    Z = np.asarray(Z)
    if regularizer != "frobenius" and (Z.ndim != 3 or Z.shape[1] != Z.shape[2]):
        raise ValueError(f"The 'Z' must have shape (n_series, d, d). Got {Z.shape} instead.")
    if tol is None:
        tol = 1e-6 if regularizer == "frobenius" else 1e-4
    rows = HingeRows.build(Z.reshape(Z.shape[0], -1), labels, sample_weight, name="Z")
    unit = rows.longest
    rows = rows.scaled(1.0 / unit)
    basis: FloatArray | None = None
    if regularizer == "frobenius" and rows.n_rows < rows.n_columns:
        # The solution is in the span of the rows, and multipliers prove the same bound there.
        basis, triangle = np.linalg.qr(rows.signed.T)
        rows = HingeRows(np.ascontiguousarray(triangle.T), rows.weights)

    solutions: dict[float, MetricSolution] = {}
    start: FloatArray | None = None
    for strength in sorted(set(strengths), reverse=True):
        penalty = PENALTIES[regularizer](strength, Z.shape[-1]).in_units(unit)
        point = saturated_point(rows, penalty)
        if not penalty.closes(point, EXACT):
            point = penalty.minimise(rows, point, start, tol, max_iter)
        start = point.coef
        coef = (start if basis is None else basis @ start) / unit
        solution = MetricSolution(
            gamma=1.0,
            lam=strength,
            metric=coef.reshape(Z.shape[1:]),
            objective=penalty.primal(point),
            dual=penalty.bound(point.multipliers),
            loss=point.loss,
            n_iter=point.n_iter,
            converged=penalty.closes(point, tol),
        )
        product = "lam*gamma^2" if regularizer in SQUARED_NORMS else "lam*gamma"
        solution.warn_if_open(f"{regularizer} metric for {product}={strength:g}", tol)
        solutions[strength] = solution
    return [
        replace(solutions[s], gamma=gamma, lam=lam, metric=gamma * solutions[s].metric)
        for (gamma, lam), s in zip(pairs, strengths, strict=True)
    ]
