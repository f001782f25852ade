"""The metric ``M`` of the bilinear similarity, learned from grouped aligned products.

``min_M (1/m) sum_i s_i [1 - l_i <M, Z_i> / gamma]_+ + lam penalty(M)``

frobenius    ||M||_F^2                      the penalty of the paper
nuclear      sum of singular values         low rank
l1           sum of |entries|               sparse
mahalanobis  ||M||_F^2, M = M' >= 0         K_M is a scalar product of linearly mapped rows

With ``M = gamma w`` only the strength ``lam * gamma**2`` matters for the first and last, and
``lam * gamma`` for the others. The first is a linear support vector machine without bias in ``w``,
which the interior-point method solves; for the others see smoothed_newton.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.learning._solvers import SquaredNormSystem
from slts.learning.constraint_generation import QueryStream, solve_in_memory, solve_in_parts
from slts.learning.hinge import (
    Certified,
    HingeExamples,
    HingeProblem,
    HingeTerm,
    Multipliers,
    Solution,
    check_positive,
    ray_minimiser,
)
from slts.learning.penalties import L1, METRIC_FLOOR, Nuclear, Penalty, Semidefinite
from slts.learning.smoothed_newton import minimise_smoothed

REGULARIZERS = ("frobenius", "nuclear", "l1", "mahalanobis")
# Their penalty is ||M||_F^2, with or without a convex cone: strongly convex, zero at M = 0.
SQUARED_NORMS = ("frobenius", "mahalanobis")
_EXACT = 1e-12
# Below it, squares of the strength vanish.
_LEAST_STRENGTH = 1e-150
# Strengths, relative to the one asked for, whose solution is a new start after a failure.
_RESTART_STRENGTHS = (1.3, 0.7, 3.0)


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


def term_of(regularizer: str, strength: float, order: int) -> MetricProblem | Penalty:
    """Return a penalty of matrices with ``order`` rows and columns."""
    if regularizer == "frobenius":
        return MetricProblem(strength)
    if regularizer == "nuclear":
        return Nuclear(strength, order)
    return L1(strength, order) if regularizer == "l1" else Semidefinite(strength, order)


def problem_strength(gamma: float, lam: float, regularizer: str) -> float:
    """Return the one number that determines a metric up to its scale.

    It is rounded: equal products of different factors are one problem.
    """
    squared = regularizer in SQUARED_NORMS
    strength = float(f"{lam * gamma * (gamma if squared else 1.0):.12g}")
    if not _LEAST_STRENGTH <= strength < np.inf:
        raise ValueError(
            f"The parameters gamma={gamma:g} and lam={lam:g} are too large or too small: "
            f"lam*gamma{'^2' if squared else ''} must be finite and at least {_LEAST_STRENGTH:g}. "
            f"Got {strength:g}."
        )
    return strength


def solve_metric(
    Z: npt.NDArray[np.floating],
    labels: npt.ArrayLike,
    *,
    gamma: float,
    lam: float,
    **options: Any,
) -> MetricSolution:
    """Solve for one pair of parameters.

    The options are ``regularizer``, ``sample_weight``, ``tol`` and ``max_iter`` of
    :func:`solve_metric_path`.
    """
    return next(solve_metric_path(Z, labels, pairs=[(gamma, lam)], **options))


def solve_metric_path(
    Z: npt.NDArray[np.floating],
    labels: npt.ArrayLike,
    *,
    pairs: Sequence[tuple[float, float]],
    regularizer: str = "frobenius",
    sample_weight: npt.ArrayLike | None = None,
    tol: float | None = None,
    max_iter: int = 500,
) -> Iterator[MetricSolution]:
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
        Relative duality gap: ``objective - dual <= tol * max(objective, 1e-9)``. None is 1e-6 for
        ``"frobenius"``, 1e-4 for the others.
    max_iter : int
        Steps allowed for one strength.

    Returns
    -------
    iterator of MetricSolution
        In the order of ``pairs``. A solution is computed when it is asked for, from those of the
        larger strengths.

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
    for gamma, lam in pairs:
        check_positive("gamma", gamma)
        check_positive("lam", lam)
    Z = np.asarray(Z)
    if regularizer != "frobenius" and (Z.ndim != 3 or Z.shape[1] != Z.shape[2]):
        raise ValueError(f"The 'Z' must have shape (n_series, d, d). Got {Z.shape} instead.")
    if tol is None:
        tol = 1e-6 if regularizer == "frobenius" else 1e-4
    rows = HingeExamples.build(Z.reshape(Z.shape[0], -1), labels, sample_weight, name="Z")
    strengths = [problem_strength(gamma, lam, regularizer) for gamma, lam in pairs]
    descending = sorted(set(strengths), reverse=True)
    terms = {s: term_of(regularizer, s, Z.shape[-1]) for s in descending}
    solve: Callable[..., Iterator[Certified]] = _newton_path
    if regularizer == "frobenius":
        solve = _interior_path
    points, known = solve(rows, list(terms.values()), tol, max_iter), dict[float, Certified]()

    def point(strength: float) -> Certified:
        while strength not in known:
            known[descending[len(known)]] = next(points)
        return known[strength]

    return (
        replace(
            _report(terms[s], point(s), pair, tol, regularizer, warn=s not in strengths[:k]),
            metric=(pair[0] * point(s).coef).reshape(Z.shape[1:]),
        )
        for k, (pair, s) in enumerate(zip(pairs, strengths, strict=True))
    )


def _interior_path(
    rows: HingeExamples, problems: Sequence[MetricProblem], tol: float, max_iter: int
) -> Iterator[Certified]:
    """Solve each problem from the solution before it, in the span of the rows."""
    basis: FloatArray | None = None
    if rows.n_rows < rows.n_columns:
        basis, triangle = np.linalg.qr(rows.features.T.astype(np.float64))
        rows = replace(rows, features=np.ascontiguousarray(triangle.T))
    start: FloatArray | None = None
    for problem in problems:
        point = solve_in_memory(problem, rows, start=start, tol=tol, max_iter=max_iter)
        start = point.coef
        # Multipliers prove the same bound in the span.
        yield point if basis is None else point._replace(coef=basis @ point.coef)


def _newton_path(
    rows: HingeExamples, penalties: Sequence[Penalty], tol: float, max_iter: int
) -> Iterator[Certified]:
    """Solve each problem on rows in units of the longest one."""
    unit = rows.longest()
    rows = rows.scaled(1.0 / unit)
    for penalty in penalties:
        yield minimise_smoothed(rows, penalty.in_units(unit), tol, max_iter).in_units(unit)


def metric_in_parts(
    sample: HingeExamples,
    n_rows: int,
    *,
    gamma: float,
    lam: float,
    tol: float = 1e-6,
    max_iter: int = 500,
    most_bytes: float = np.inf,
) -> QueryStream[MetricSolution]:
    """Solve the metric problem on rows in parts; see `slts.learning.solve_metric`.

    Parameters
    ----------
    sample, n_rows, tol, max_iter, most_bytes
        See :func:`slts.learning.constraint_generation.solve_in_parts`.
    gamma, lam : float
        Parameters, both positive.

    Returns
    -------
    generator of queries
        Sent the replies of all parts, it returns the solution, whose ``metric`` is flat.

    Warns
    -----
    ConvergenceWarning
        If the gap stays above ``tol``.
    """
    check_positive("gamma", gamma)
    check_positive("lam", lam)
    problem = MetricProblem(problem_strength(gamma, lam, "frobenius"))
    point = yield from solve_in_parts(
        problem, sample, n_rows, tol=tol, max_iter=max_iter, most_bytes=most_bytes
    )
    return _report(problem, point, (gamma, lam), tol, "frobenius", warn=True)


def _report(
    term: HingeTerm,
    point: Certified,
    pair: tuple[float, float],
    tol: float,
    regularizer: str,
    *,
    warn: bool,
) -> MetricSolution:
    """Return the solution for ``(gamma, lam)``, with a flat metric; warn if its gap is open."""
    gamma, lam = pair
    found = MetricSolution(
        gamma=gamma,
        lam=lam,
        metric=gamma * point.coef,
        objective=term.primal(point),
        dual=term.bound(point.multipliers),
        loss=point.loss,
        n_iter=point.n_iter,
        converged=term.closes(point, tol),
    )
    if warn:
        product = "lam*gamma^2" if regularizer in SQUARED_NORMS else "lam*gamma"
        strength = problem_strength(gamma, lam, regularizer)
        found.warn_if_open(f"{regularizer} metric for {product}={strength:g}", tol)
    return found


@dataclass(frozen=True)
class MetricProblem(HingeProblem):
    """The metric problem in ``w = M / gamma``: hinge + ``strength * ||w||^2``."""

    strength: float
    floor = METRIC_FLOOR
    slack = 0.0
    wants_vertex = False

    @staticmethod
    def first_size(n_rows: int, n_columns: int) -> int:
        """Return the number of rows that constraint generation begins with."""
        return max(1000, 6 * n_columns, int(n_rows ** (2.0 / 3.0)))

    def value(self, coef: FloatArray) -> float:
        """Return the penalty."""
        return self.strength * float(coef @ coef)

    def bound(self, multipliers: Multipliers) -> float:
        """Return the lower bound that the multipliers prove."""
        gradient = multipliers.gradient
        return multipliers.total - float(gradient @ gradient) / (4.0 * self.strength)

    def closed_form(self, rows: HingeExamples) -> Certified | None:
        """Return the minimiser if no margin exceeds one: every multiplier is at its weight."""
        multipliers = Multipliers(float(rows.weights.sum()), rows.total)
        coef = rows.total / (2.0 * self.strength)
        if float(coef @ rows.total) > (1.0 + _EXACT) * multipliers.total:
            return None  # the mean margin exceeds one
        point = Certified(coef, rows.loss(rows.margins(coef)), multipliers, 0)
        return point if self.closes(point, _EXACT) else None

    def begin(self, rows: HingeExamples, start: FloatArray | None) -> _MetricSolver:
        """Return a solver for all rows at once; ``start`` is a guess."""
        return _MetricSolver(self, rows, start)


class _MetricSolver:
    """Interior-point steps on rows in units of the longest one."""

    def __init__(
        self, problem: MetricProblem, rows: HingeExamples, start: FloatArray | None
    ) -> None:
        self._unit = rows.longest()
        self._rows = rows.scaled(1.0 / self._unit)
        self._problem = MetricProblem(problem.strength / self._unit**2)
        self._known = self._problem.closed_form(self._rows)
        start = np.zeros(rows.n_columns) if start is None else start * self._unit
        self._system = self._system_of(self._problem, start)

    def _system_of(self, problem: MetricProblem, start: FloatArray) -> SquaredNormSystem:
        rows = self._rows
        return SquaredNormSystem(rows.features, rows.weights, problem.strength, start)

    def finish(self, tol: float, max_iter: int) -> Certified:
        """Minimise."""
        return (self._known or self._solve(tol, max_iter)).in_units(self._unit)

    approach = finish

    def _solve(self, tol: float, max_iter: int) -> Certified:
        """Continue the interior-point steps, and start again from other points if they stall."""
        problem = self._problem
        point = self._run(tol, max_iter)
        for restart in _RESTART_STRENGTHS:
            if problem.closes(point, tol):
                break
            # Steps from an unlucky point can shrink to nothing. They do not from the optimum of a
            # similar problem.
            similar = MetricProblem(restart * problem.strength)
            nearby = self._system_of(similar, np.zeros(self._rows.n_columns))
            n_iter = nearby.minimise(tol=tol, max_iter=max_iter, floor=problem.floor)
            self._system = self._system_of(problem, nearby.coef)
            again = self._run(tol, max_iter)
            point = problem.best_of(point, again._replace(n_iter=n_iter + again.n_iter))
        return point

    def _run(self, tol: float, max_iter: int) -> Certified:
        problem, system = self._problem, self._system
        n_iter = system.minimise(tol=tol, max_iter=max_iter, floor=problem.floor)
        # On its own ray the minimiser satisfies loss + 2 lam ||M||^2 <= 1, however large the gap.
        coef, margins = system.coef, system.margins
        factor = ray_minimiser(margins, self._rows.weights, square=problem.value(coef))
        loss = self._rows.loss(factor * margins)
        return Certified(factor * coef, loss, Multipliers(*system.certificate), n_iter)
