"""The metric ``M`` of the bilinear similarity, learned from grouped aligned products.

``min_M (1/m) sum_i s_i [1 - l_i <M, Z_i> / gamma]_+ + lam ||M||_F^2``

With ``M = gamma w`` only the strength ``lam * gamma**2`` matters: the problem is a linear
support vector machine without bias in ``w``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from slts._typing import FloatArray
from slts.errors import warn
from slts.learning.equal_rows import distinct
from slts.learning.hinge import HingeRows, ray_minimiser
from slts.learning.ridge import Ridge
from slts.learning.working_set import WorkingSet

_NORM_CHUNK = 4096
_EXACT = 1e-12
# Below it a gap is judged absolutely: rounding leaves nothing relative of a primal value of 1e-17.
PRIMAL_FLOOR = 1e-9
# Strengths, relative to the one asked for, whose solution is a new start after a failure.
_DETOURS = (1.3, 0.7, 3.0)


@dataclass(frozen=True)
class MetricSolution:
    """A minimiser of the metric problem, with its certificate.

    Attributes
    ----------
    metric : ndarray of shape (d, d), or the shape of one ``Z_i``
        The matrix ``M``.
    gamma, lam : float
        The parameters the problem was solved for.
    primal : float
        Objective at ``metric``; never above one.
    dual : float
        Lower bound on the optimum, from multipliers inside their boxes.
    gap : float
        ``primal - dual``.
    loss : float
        The hinge part of ``primal``.
    n_iter : int
        Interior-point iterations (0 where the minimiser is known in closed form).
    converged : bool
        Whether ``gap <= tol * max(primal, 1e-9)``.
    """

    metric: FloatArray
    gamma: float
    lam: float
    primal: float
    dual: float
    gap: float
    loss: float
    n_iter: int
    converged: bool


def one_vs_rest_features(
    class_sums: npt.NDArray[np.floating],
    index: int,
    n_landmarks: int,
    *,
    total: npt.NDArray[np.floating] | None = None,
) -> npt.NDArray[np.floating]:
    """Return ``Z_i = (2 S_ic - sum_k S_ik) / n`` of class ``c = index`` against the rest.

    Parameters
    ----------
    class_sums : ndarray of shape (n_series, n_classes, ...)
        Aligned products summed over the landmarks of each class.
    index : int
        Position of the positive class.
    n_landmarks : int
        Number of landmarks of all classes together.
    total : ndarray of shape (n_series, ...), optional
        The class sums added up, where they serve several classes.
    """
    features: npt.NDArray[np.floating] = 2.0 * class_sums[:, index]
    features -= class_sums.sum(axis=1) if total is None else total
    features /= n_landmarks
    return features


def solve_metric(
    Z: npt.NDArray[np.floating],
    labels: npt.ArrayLike,
    *,
    gamma: float,
    lam: float,
    sample_weight: npt.ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 500,
    start: FloatArray | None = None,
) -> MetricSolution:
    """Solve for one pair of parameters; see :func:`solve_metric_path`.

    ``start`` is a guess of the metric, for instance that of a neighbouring problem.
    """
    return _solve_path(Z, labels, [(gamma, lam)], sample_weight, tol, max_iter, start)[0]


def solve_metric_path(
    Z: npt.NDArray[np.floating],
    labels: npt.ArrayLike,
    *,
    pairs: Sequence[tuple[float, float]],
    sample_weight: npt.ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> list[MetricSolution]:
    """Solve the metric problem for several ``(gamma, lam)``.

    Each distinct ``lam * gamma**2`` is solved once, from the largest to the smallest, each from the
    solution before it.

    Parameters
    ----------
    Z : ndarray of shape (n_series, d, d) or (n_series, p)
        Mean signed aligned products; float32 is read as is, arithmetic is float64.
    labels : array-like of shape (n_series,)
        +1 or -1.
    pairs : sequence of (gamma, lam)
        Parameters, both positive.
    sample_weight : array-like of shape (n_series,), optional
        Non-negative weights, scaled to mean one.
    tol : float
        Relative duality gap: ``primal - dual <= tol * max(primal, 1e-9)``.
    max_iter : int
        Interior-point iterations allowed for one strength.

    Returns
    -------
    list of MetricSolution
        In the order of ``pairs``.

    Warns
    -----
    ConvergenceWarning
        If a gap stays above ``tol``.
    """
    return _solve_path(Z, labels, pairs, sample_weight, tol, max_iter, None)


def check_pairs(pairs: Sequence[tuple[float, float]]) -> None:
    """Refuse parameters that are not positive and finite."""
    for gamma, lam in pairs:
        if not (np.isfinite([gamma, lam]).all() and gamma > 0.0 and lam > 0.0):
            raise ValueError(
                f"The 'gamma' and 'lam' must be positive and finite. Got {(gamma, lam)!r} instead."
            )


class Point(NamedTuple):
    """A solution in the units of the scaled rows."""

    coef: FloatArray
    loss: float
    primal: float
    dual: float
    n_iter: int

    def closes(self, tol: float) -> bool:
        """Whether the gap is small enough."""
        return self.primal - self.dual <= tol * max(self.primal, PRIMAL_FLOOR)


def _solve_path(
    Z: npt.NDArray[np.floating],
    labels: npt.ArrayLike,
    pairs: Sequence[tuple[float, float]],
    sample_weight: npt.ArrayLike | None,
    tol: float,
    max_iter: int,
    start: FloatArray | None,
) -> list[MetricSolution]:
    check_pairs(pairs)
    Z = np.asarray(Z)
    rows = HingeRows.build(Z.reshape(Z.shape[0], -1), labels, sample_weight)
    rows, basis = _compress(rows)
    strengths = [strength_of(gamma, lam) for gamma, lam in pairs]
    coef = None if start is None else _to_rows(start.ravel() / pairs[0][0], rows, basis)
    found: dict[float, Point] = {}
    for strength in sorted(set(strengths), reverse=True):
        found[strength] = point = _solve(rows, strength, coef, tol, max_iter)
        coef = point.coef
        warn_if_open(point, strength, tol)
    solutions = []
    for (gamma, lam), strength in zip(pairs, strengths, strict=True):
        point = found[strength]
        flat = point.coef * (gamma * rows.scale)
        flat = flat if basis is None else basis @ flat
        solutions.append(report(point, flat.reshape(Z.shape[1:]), gamma, lam, tol))
    return solutions


def warn_if_open(point: Point, strength: float, tol: float) -> None:
    """Warn if the gap is larger than asked for."""
    if not point.closes(tol):
        warn(
            f"The metric for lam*gamma^2={strength:g} has a duality gap of "
            f"{point.primal - point.dual:.2e} at objective {point.primal:.6g} (tol={tol:g}).",
            ConvergenceWarning,
        )


def report(
    point: Point, metric: FloatArray, gamma: float, lam: float, tol: float
) -> MetricSolution:
    """Return the solution with its certificate."""
    return MetricSolution(
        metric=metric,
        gamma=gamma,
        lam=lam,
        primal=point.primal,
        dual=point.dual,
        gap=point.primal - point.dual,
        loss=point.loss,
        n_iter=point.n_iter,
        converged=point.closes(tol),
    )


def solve_rows(
    rows: HingeRows, strength: float, start: FloatArray | None, tol: float, max_iter: int
) -> Point:
    """Minimise on all of ``rows`` at once; ``coef`` and ``start`` are in their units."""
    rows, basis = _compress(rows)
    start = None if start is None else _to_rows(start, rows, basis)
    point = _solve(rows, strength, start, tol, max_iter, rows.n_rows)
    coef = point.coef * rows.scale
    return point._replace(coef=coef if basis is None else basis @ coef)


def _solve(
    rows: HingeRows,
    strength: float,
    start: FloatArray | None,
    tol: float,
    max_iter: int,
    size: int | None = None,
) -> Point:
    """Minimise on ``rows``, beginning with ``size`` of them: by default what suits their number."""
    size = _working_size(rows) if size is None else size
    term = Ridge(strength * rows.scale**2)
    gradient = rows.total
    coef = gradient / (2.0 * term.strength)
    margins = rows.margins(coef)
    dual = float(rows.weights.sum()) - term.conjugate(gradient)
    loss = rows.loss(margins)
    primal = loss + term.value(coef)
    if primal - dual <= _EXACT * primal:
        # No margin exceeds one, so every multiplier is at its upper bound.
        return Point(coef, loss, primal, dual, 0)
    point = _approach(rows, term, start, tol, max_iter, size)
    for detour in _DETOURS:
        if point.closes(tol):
            break
        # Steps from an unlucky point can shrink to nothing; from a neighbour's optimum they do not.
        nearby = _approach(rows, Ridge(detour * term.strength), None, tol, max_iter, size)
        again = _approach(rows, term, nearby.coef, tol, max_iter, size)
        n_iter = point.n_iter + nearby.n_iter + again.n_iter
        best = min(point, again, key=lambda p: p.primal)
        point = best._replace(dual=max(point.dual, again.dual), n_iter=n_iter)
    return point


def _approach(
    rows: HingeRows, term: Ridge, start: FloatArray | None, tol: float, max_iter: int, size: int
) -> Point:
    """Minimise from ``start``, as far as the steps go."""
    solver = WorkingSet(rows, term, start=start, size=size, max_iter=max_iter)
    best = solver.reach(tol)
    # On its own ray the minimiser obeys loss + 2 lam ||M||^2 <= 1 exactly, however large the gap.
    margins = rows.margins(best.coef)
    factor = ray_minimiser(margins, rows.weights, square=term.value(best.coef))
    coef = factor * best.coef
    loss = rows.loss(rows.margins(coef))
    return Point(coef, loss, loss + term.value(coef), best.dual_value, solver.n_iter)


def _working_size(rows: HingeRows) -> int:
    return working_size(rows.n_rows, rows.n_columns)


def working_size(n_rows: int, n_columns: int) -> int:
    """Rows that a solve begins with."""
    return max(1000, 6 * n_columns, int(n_rows ** (2.0 / 3.0)))


def scale_rows(rows: HingeRows) -> HingeRows:
    """Scale the longest row to length one."""
    longest = 0.0
    for begin in range(0, rows.n_rows, _NORM_CHUNK):
        part = rows.features[begin : begin + _NORM_CHUNK].astype(np.float64, copy=False)
        largest = float(np.max(np.einsum("ij,ij->i", part, part)))
        if not np.isfinite(largest):
            raise ValueError("The 'Z' must be finite.")
        longest = max(longest, largest)
    return replace(rows, scale=1.0 / float(np.sqrt(longest)) if longest > 0.0 else 1.0)


def _compress(rows: HingeRows) -> tuple[HingeRows, FloatArray | None]:
    """Scale the longest row to length one; with fewer rows than columns, use their span.

    Equal rows are merged first.
    """
    rows = scale_rows(distinct(rows))
    if rows.n_rows >= rows.n_columns:
        return rows, None
    basis, triangle = np.linalg.qr(rows.features.T.astype(np.float64))
    return replace(rows, features=np.ascontiguousarray(triangle.T)), basis


def _to_rows(coef: FloatArray, rows: HingeRows, basis: FloatArray | None) -> FloatArray:
    return (coef if basis is None else coef @ basis) / rows.scale


def strength_of(gamma: float, lam: float) -> float:
    """Return ``lam * gamma**2``, rounded: equal products of different factors are one problem."""
    return float(f"{lam * gamma * gamma:.12g}")
