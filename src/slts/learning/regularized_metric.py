"""The metric under other penalties than the paper's.

``min_M (1/m) sum_i s_i [1 - l_i <M, Z_i> / gamma]_+ + lam penalty(M)``

frobenius    ||M||_F^2                      the paper's; see metric.py
nuclear      sum of singular values         low rank
l1           sum of |entries|               sparse
mahalanobis  ||M||_F^2, M = M' >= 0         K_M is a scalar product of linearly mapped rows

With ``M = gamma w`` only ``lam * gamma**2`` matters for the first and last, ``lam * gamma`` for the
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from slts._typing import FloatArray
from slts.errors import warn
from slts.learning.hinge import HingeRows
from slts.learning.metric import (
    MetricSolution,
    check_pairs,
    scale_rows,
    solve_metric_path,
    strength_of,
)
from slts.learning.penalties import L1, Nuclear, Penalty, Semidefinite
from slts.learning.smoothed import SmoothedOutcome, minimise_smoothed

REGULARIZERS = ("frobenius", "nuclear", "l1", "mahalanobis")
# Their penalty is ||M||_F^2, with or without a convex cone: strongly convex, zero at M = 0.
SQUARED_NORMS = ("frobenius", "mahalanobis")
_EXACT = 1e-12
_PRIMAL_FLOOR = 1e-9


def check_regularizer(value: Any, owner: str) -> str:
    """Return the name of a penalty, or raise an error that names the parameter."""
    if not isinstance(value, str) or value not in REGULARIZERS:
        raise ValueError(
            f"The 'regularizer' parameter of {owner} must be one of {REGULARIZERS}. "
            f"Got {value!r} instead."
        )
    return value


def penalty_of(metric: FloatArray, regularizer: str) -> float:
    """Return the penalty of a matrix, without ``lam``."""
    if regularizer == "nuclear":
        return float(np.linalg.svd(metric, compute_uv=False).sum())
    if regularizer == "l1":
        return float(np.abs(metric).sum())
    return float(np.sum(metric * metric))


def problem_strength(gamma: float, lam: float, regularizer: str) -> float:
    """Return the one number that a metric depends on, up to its scale: problems share it."""
    if regularizer in SQUARED_NORMS:
        return strength_of(gamma, lam)
    return float(f"{lam * gamma:.12g}")


def solve_regularized_path(
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
        Mean signed aligned products.
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
    check_regularizer(regularizer, "solve_regularized_path")
    if regularizer == "frobenius":
        return solve_metric_path(
            Z, labels, pairs=pairs, sample_weight=sample_weight,
            tol=1e-6 if tol is None else tol, max_iter=max_iter,
        )  # fmt: skip
    tol = 1e-4 if tol is None else tol
    check_pairs(pairs)
    Z = np.asarray(Z)
    if Z.ndim != 3 or Z.shape[1] != Z.shape[2]:
        raise ValueError(f"The 'Z' must have shape (n_series, d, d). Got {Z.shape} instead.")
    rows = scale_rows(HingeRows.build(Z.reshape(len(Z), -1), labels, sample_weight))
    found: dict[float, SmoothedOutcome] = {}
    solutions = []
    for gamma, lam in pairs:
        strength = problem_strength(gamma, lam, regularizer)
        if strength not in found:
            found[strength] = _solve(rows, strength, regularizer, tol, max_iter)
            _warn_if_open(found[strength], regularizer, strength, tol)
        point = found[strength]
        solutions.append(
            MetricSolution(
                metric=(gamma * rows.scale * point.coef).reshape(Z.shape[1:]),
                gamma=gamma,
                lam=lam,
                primal=point.primal,
                dual=point.dual,
                gap=point.primal - point.dual,
                loss=point.loss,
                n_iter=point.n_iter,
                converged=point.closes(tol, _PRIMAL_FLOOR),
            )
        )
    return solutions


def _solve(
    rows: HingeRows, strength: float, regularizer: str, tol: float, max_iter: int
) -> SmoothedOutcome:
    order = int(np.sqrt(rows.n_columns))
    if regularizer == "mahalanobis":
        return _solve_semidefinite(
            rows, Semidefinite(strength * rows.scale**2, order), tol, max_iter
        )
    strength = strength * rows.scale
    penalty: Penalty
    penalty = Nuclear(strength, order) if regularizer == "nuclear" else L1(strength, order**2)
    zero = np.zeros(rows.n_columns)
    dual = penalty.bound(1.0, rows.combine(rows.weights))
    if 1.0 - dual <= _EXACT:
        # The penalty outweighs every descent from zero.
        return SmoothedOutcome(zero, 1.0, 1.0, dual, 0)
    return minimise_smoothed(rows, penalty, tol=tol, floor=_PRIMAL_FLOOR, max_iter=max_iter)


def _solve_semidefinite(
    rows: HingeRows, penalty: Semidefinite, tol: float, max_iter: int
) -> SmoothedOutcome:
    gradient = rows.combine(rows.weights)
    coef, dual = penalty.minimiser(gradient), penalty.bound(1.0, gradient)
    loss = rows.loss(rows.margins(coef))
    primal = loss + penalty.value(coef)
    if primal - dual <= _EXACT * primal:
        # No margin exceeds one, so every multiplier is at its upper bound.
        return SmoothedOutcome(coef, loss, primal, dual, 0)
    return minimise_smoothed(rows, penalty, tol=tol, floor=_PRIMAL_FLOOR, max_iter=max_iter)


def _warn_if_open(point: SmoothedOutcome, regularizer: str, strength: float, tol: float) -> None:
    if point.closes(tol, _PRIMAL_FLOOR):
        return
    name = "lam*gamma^2" if regularizer in SQUARED_NORMS else "lam*gamma"
    warn(
        f"The {regularizer} metric for {name}={strength:g} has a duality gap of "
        f"{point.primal - point.dual:.2e} at objective {point.primal:.6g} (tol={tol:g}).",
        ConvergenceWarning,
    )
