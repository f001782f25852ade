"""The metric ``M`` of the bilinear similarity, learned from grouped aligned products.

``min_M (1/m) sum_i s_i [1 - l_i <M, Z_i> / gamma]_+ + lam ||M||_F^2``

With ``M = gamma w`` only the strength ``lam * gamma**2`` matters: the problem is a linear
support vector machine without bias in ``w``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.learning.constraint_generation import QueryStream, solve_in_memory, solve_in_parts
from slts.learning.hinge import (
    Certified,
    HingeExamples,
    HingeProblem,
    Multipliers,
    Solution,
    ray_minimiser,
)
from slts.learning.interior import SquaredNormSystem, minimise

_NORM_CHUNK = 4096
_EXACT = 1e-12
# A gap is relative to this value where the primal value is smaller: rounding is absolute.
PRIMAL_FLOOR = 1e-9
# Strengths, relative to the one asked for, whose solution is a new start after a failure.
_DETOURS = (1.3, 0.7, 3.0)


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


def solve_frobenius_path(
    Z: npt.NDArray[np.floating],
    labels: npt.ArrayLike,
    *,
    pairs: Sequence[tuple[float, float]],
    sample_weight: npt.ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 500,
    start: FloatArray | None = None,
) -> list[MetricSolution]:
    """`slts.learning.solve_metric_path` for the squared norm; ``Z`` may have rows of any shape.

    Each distinct ``lam * gamma**2`` is solved once, from the largest to the smallest, each from the
    solution before it. ``start`` is a guess of the first metric.
    """
    check_pairs(pairs)
    Z = np.asarray(Z)
    rows = HingeExamples.build(Z.reshape(Z.shape[0], -1), labels, sample_weight, name="Z")
    rows, basis = _span(rows)
    coef = None if start is None else start.ravel() / pairs[0][0]
    if coef is not None and basis is not None:
        coef = coef @ basis
    strengths = [strength_of(gamma, lam) for gamma, lam in pairs]
    found: dict[float, Certified] = {}
    for strength in sorted(set(strengths), reverse=True):
        problem = MetricProblem(strength)
        point = solve_in_memory(problem, rows, start=coef, tol=tol, max_iter=max_iter)
        found[strength], coef = point, point.coef
    solutions: list[MetricSolution] = []
    for pair, strength in zip(pairs, strengths, strict=True):
        is_new = strength not in strengths[: len(solutions)]
        solution = MetricProblem(strength).report(found[strength], pair, tol, warn=is_new)
        flat = solution.metric if basis is None else basis @ solution.metric
        solutions.append(replace(solution, metric=flat.reshape(Z.shape[1:])))
    return solutions


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
    check_pairs([(gamma, lam)])
    problem = MetricProblem(strength_of(gamma, lam))
    point = yield from solve_in_parts(
        problem, sample, n_rows, tol=tol, max_iter=max_iter, most_bytes=most_bytes
    )
    return problem.report(point, (gamma, lam), tol)


def strength_of(gamma: float, lam: float) -> float:
    """Return ``lam * gamma**2``, rounded: equal products of different factors are one problem."""
    return float(f"{lam * gamma * gamma:.12g}")


def check_pairs(pairs: Sequence[tuple[float, float]]) -> None:
    """Raise an error if a parameter is not positive and finite."""
    for gamma, lam in pairs:
        if not (np.isfinite([gamma, lam]).all() and gamma > 0.0 and lam > 0.0):
            raise ValueError(
                f"The 'gamma' and 'lam' must be positive and finite. Got {(gamma, lam)!r} instead."
            )


def largest_row_norm(rows: HingeExamples) -> float:
    """Return the length of the longest row, or one if all rows are zero."""
    longest = 0.0
    for begin in range(0, rows.n_rows, _NORM_CHUNK):
        part = rows.features[begin : begin + _NORM_CHUNK].astype(np.float64, copy=False)
        longest = max(longest, float(np.max(np.einsum("ij,ij->i", part, part))))
    if not np.isfinite(longest):
        raise ValueError("The squared norms of the rows must be finite. Scale the features down.")
    return float(np.sqrt(longest)) or 1.0


def _span(rows: HingeExamples) -> tuple[HingeExamples, FloatArray | None]:
    """If there are fewer rows than columns, return coordinates in their span, and its basis."""
    if rows.n_rows >= rows.n_columns:
        return rows, None
    basis, triangle = np.linalg.qr(rows.features.T.astype(np.float64))
    return replace(rows, features=np.ascontiguousarray(triangle.T)), basis


@dataclass(frozen=True)
class MetricProblem(HingeProblem):
    """The metric problem in ``w = M / gamma``: hinge + ``strength * ||w||^2``."""

    strength: float
    floor = PRIMAL_FLOOR
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

    def report(
        self, point: Certified, pair: tuple[float, float], tol: float, *, warn: bool = True
    ) -> MetricSolution:
        """Return the solution for ``(gamma, lam)``, whose metric is flat; warn if it is open."""
        gamma, lam = pair
        found = MetricSolution(
            gamma=gamma,
            lam=lam,
            metric=gamma * point.coef,
            objective=self.primal(point),
            dual=self.bound(point.multipliers),
            loss=point.loss,
            n_iter=point.n_iter,
            converged=self.closes(point, tol),
        )
        if warn:
            found.warn_if_open(f"metric for lam*gamma^2={self.strength:g}", tol)
        return found


class _MetricSolver:
    """Interior-point steps on rows in units of the longest one."""

    def __init__(
        self, problem: MetricProblem, rows: HingeExamples, start: FloatArray | None
    ) -> None:
        self._unit = largest_row_norm(rows)
        self._rows = rows.scaled(1.0 / self._unit)
        self._problem = MetricProblem(problem.strength / self._unit**2)
        self._known = self._problem.closed_form(self._rows)
        start = np.zeros(rows.n_columns) if start is None else start * self._unit
        self._system = self._system_of(self._problem, start)

    def _system_of(self, problem: MetricProblem, start: FloatArray) -> SquaredNormSystem:
        return SquaredNormSystem(problem, problem.strength, self._rows, start)

    def finish(self, tol: float, max_iter: int) -> Certified:
        """Minimise."""
        return (self._known or self._solve(tol, max_iter)).in_units(self._unit)

    approach = finish

    def _solve(self, tol: float, max_iter: int) -> Certified:
        """Continue the interior-point steps, and start again from other points if they stall."""
        problem = self._problem
        point = self._run(tol, max_iter)
        for detour in _DETOURS:
            if problem.closes(point, tol):
                break
            # Steps from an unlucky point can shrink to nothing. They do not from the optimum of a
            # similar problem.
            similar = MetricProblem(detour * problem.strength)
            nearby = self._system_of(similar, np.zeros(self._rows.n_columns))
            n_iter = minimise(nearby, tol=tol, max_iter=max_iter, floor=problem.floor)
            self._system = self._system_of(problem, nearby.coef)
            again = self._run(tol, max_iter)
            point = problem.best_of(point, again._replace(n_iter=n_iter + again.n_iter))
        return point

    def _run(self, tol: float, max_iter: int) -> Certified:
        problem, system = self._problem, self._system
        n_iter = minimise(system, tol=tol, max_iter=max_iter, floor=problem.floor)
        # On its own ray the minimiser satisfies loss + 2 lam ||M||^2 <= 1, however large the gap.
        square = problem.value(system.coef)
        factor = ray_minimiser(system.margins, self._rows.weights, square=square)
        loss = self._rows.loss(factor * system.margins)
        return Certified(factor * system.coef, loss, system.certificate, n_iter)
