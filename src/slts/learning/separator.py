"""The linear separator in the space of similarities to landmarks.

``min_a (1/m) sum_i s_i [1 - l_i sum_j a_j K_ij]_+  subject to  ||a||_1 <= 1/gamma``
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from slts._typing import FloatArray
from slts.errors import warn
from slts.learning.constraint_generation import (
    ConstraintGeneration,
    QueryStream,
    most_sampled,
    solve_in_memory,
)
from slts.learning.hinge import Certified, HingeExamples, Multipliers
from slts.learning.interior import L1Ball, L1BallSystem, minimise
from slts.learning.vertex import (
    read_sides,
    smallest_separator,
    solve_active,
    solve_multipliers,
    solve_undecided,
)

# A gap is relative to this value where the mean loss is smaller, for instance zero.
_LOSS_FLOOR = 1e-2
_SEPARATED = 1e-8
_INTERIOR_TOLS = (1e2, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_INHERIT_TOL = 1e-8
# The gap of the right vertex is rounding, far below the tolerance.
_EXACT = 1e-3


@dataclass(frozen=True)
class SeparatorSolution:
    """An optimal vertex of the separator's linear program, with its certificate.

    Attributes
    ----------
    coef : ndarray of shape (n_landmarks,)
        Weights, with exact zeros.
    gamma : float
        The margin the problem was solved for.
    objective : float
        Weighted mean hinge loss of ``coef``.
    dual : float
        Lower bound on every feasible objective, from multipliers inside their boxes.
    gap : float
        ``objective - dual``.
    n_iter : int
        Interior-point iterations (0 where the optimum is known in closed form or inherited).
    converged : bool
        Whether ``gap <= tol * max(objective, 1e-2)``.
    vertex : bool
        Whether ``coef`` is a basic solution; False only if no vertex could be found.
    """

    coef: FloatArray
    gamma: float
    objective: float
    dual: float
    gap: float
    n_iter: int
    converged: bool
    vertex: bool


def solve_separator(
    K: npt.NDArray[np.floating],
    labels: npt.ArrayLike,
    *,
    gamma: float,
    sample_weight: npt.ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> SeparatorSolution:
    """Solve for one ``gamma``; see :func:`solve_separator_path`."""
    return solve_separator_path(
        K, labels, gammas=[gamma], sample_weight=sample_weight, tol=tol, max_iter=max_iter
    )[0]


def solve_separator_path(
    K: npt.NDArray[np.floating],
    labels: npt.ArrayLike,
    *,
    gammas: Sequence[float],
    sample_weight: npt.ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> list[SeparatorSolution]:
    """Solve the linear program for several ``gammas``, from the largest to the smallest.

    Parameters
    ----------
    K : ndarray of shape (n_series, n_landmarks)
        Similarities.
    labels : array-like of shape (n_series,)
        +1 or -1.
    gammas : sequence of float
        Margins; ``||coef||_1 <= 1 / gamma``.
    sample_weight : array-like of shape (n_series,), optional
        Non-negative weights, scaled to mean one.
    tol : float
        Relative duality gap.
    max_iter : int
        Interior-point iterations allowed in one linear program.

    Returns
    -------
    list of SeparatorSolution
        In the order of ``gammas``.

    Warns
    -----
    ConvergenceWarning
        If a gap stays above ``tol``.
    """
    check_gammas(gammas)
    rows = HingeExamples.build(K, labels, sample_weight, name="K")
    size = _first_size(rows.n_columns)
    gammas = [float(gamma) for gamma in gammas]
    found: dict[float, SeparatorSolution] = {}
    point: Certified | None = None
    inside = False
    for gamma in sorted(set(gammas), reverse=True):
        problem = _SeparatorProblem(1.0 / gamma)
        # An optimum strictly inside a smaller ball stays an optimal vertex in a larger one.
        if point is not None and inside and problem.closes(point, min(tol, _INHERIT_TOL)):
            point = point._replace(n_iter=0)
        else:
            start = None if point is None else point.coef
            point = solve_in_memory(problem, rows, size, start=start, tol=tol, max_iter=max_iter)
            inside = point.vertex and problem.has_inside(point.coef)
        found[gamma] = problem.report(point, gamma, tol)
        _warn_if_open(found[gamma], tol)
    return [found[gamma] for gamma in gammas]


def separator_in_parts(
    sample: HingeExamples,
    n_rows: int,
    *,
    gamma: float,
    tol: float = 1e-6,
    max_iter: int = 200,
    most_bytes: float = np.inf,
) -> QueryStream[SeparatorSolution]:
    """Solve the separator's program on rows in parts; see :func:`solve_separator`.

    The parameters, except ``gamma``, are those of :func:`slts.learning.metric_in_parts`.
    """
    gamma = float(gamma)
    check_gammas([gamma])
    problem = _SeparatorProblem(1.0 / gamma)
    size = _first_size(sample.n_columns)
    most = most_sampled(size, sample.n_columns, most_bytes)
    search = ConstraintGeneration(problem, sample.n_columns, n_rows, size, most, tol, max_iter)
    yield from search.run(sample)
    found = problem.report(search.best(), gamma, tol)
    _warn_if_open(found, tol)
    return found


def rows_of_separator(n_rows: int, n_columns: int, most_bytes: float) -> int:
    """Return about how many of ``n_rows`` rows :func:`separator_in_parts` holds in memory."""
    return min(n_rows, most_sampled(_first_size(n_columns), n_columns, most_bytes))


def _first_size(n_columns: int) -> int:
    """Return the number of rows that a solver begins with."""
    return max(2500, 10 * n_columns)


def check_gammas(gammas: Sequence[float]) -> None:
    """Raise an error if a margin is not positive and finite."""
    for gamma in gammas:
        if not (np.isfinite(gamma) and gamma > 0.0):
            raise ValueError(f"The 'gammas' must be positive and finite. Got {gamma!r} instead.")


def _warn_if_open(solution: SeparatorSolution, tol: float) -> None:
    if not solution.converged:
        warn(
            f"The separator for gamma={solution.gamma:g} has a duality gap of {solution.gap:.2e} "
            f"at objective {solution.objective:.6g} (tol={tol:g}).",
            ConvergenceWarning,
        )
    elif not solution.vertex:
        warn(
            f"The separator for gamma={solution.gamma:g} is not a vertex of its linear program, so "
            f"it may use more landmarks than it needs. Similarities to different landmarks may "
            f"have very different sizes: use normalize=True, or scale the channels.",
            ConvergenceWarning,
        )


@dataclass(frozen=True)
class _SeparatorProblem(L1Ball):
    """The linear program of the separator; ``radius`` is ``1 / gamma``."""

    floor = _LOSS_FLOOR
    slack = 1e-9
    wants_vertex = True

    def closes(self, point: Certified, tol: float) -> bool:
        """Whether the gap is small enough."""
        gap = point.loss - self.bound(point.multipliers)
        return gap <= tol * max(point.loss, self.floor)

    def has_inside(self, coef: FloatArray) -> bool:
        """Whether ``coef`` is strictly inside the ball."""
        return float(np.sum(np.abs(coef))) < self.radius * (1.0 - 1e-9)

    def closed_form(self, rows: HingeExamples) -> Certified | None:
        """Return all weight on the best landmark: optimal while no margin exceeds one."""
        gradient = rows.total
        best = int(np.argmax(np.abs(gradient)))
        coef = np.zeros(rows.n_columns)
        coef[best] = self.radius * np.sign(gradient[best])
        multipliers = Multipliers(float(rows.weights.sum()), gradient)
        point = Certified(coef, rows.loss(rows.margins(coef)), multipliers, 0)
        return point if self.closes(point, _INHERIT_TOL) else None

    def begin(self, rows: HingeExamples, start: FloatArray | None) -> _SeparatorSolver:
        """Return a solver for all rows at once; ``start`` is not used."""
        return _SeparatorSolver(self, rows)

    def report(self, point: Certified, gamma: float, tol: float) -> SeparatorSolution:
        """Return the solution with its certificate."""
        dual = self.bound(point.multipliers)
        return SeparatorSolution(
            coef=point.coef,
            gamma=gamma,
            objective=point.loss,
            dual=dual,
            gap=point.loss - dual,
            n_iter=point.n_iter,
            converged=self.closes(point, tol),
            vertex=point.vertex,
        )


class _SeparatorSolver:
    """Interior-point steps on rows in units of their largest entry, then the step to a vertex."""

    def __init__(self, problem: _SeparatorProblem, rows: HingeExamples) -> None:
        self._unit = max(float(np.max(rows.features)), -float(np.min(rows.features))) or 1.0
        self._rows = rows.scaled(1.0 / self._unit)
        self._problem = _SeparatorProblem(problem.radius * self._unit)
        self._known = self._problem.closed_form(self._rows)
        self._system = L1BallSystem(self._problem, self._rows)
        self._interior: Certified | None = None

    def approach(self, tol: float, max_iter: int) -> Certified:
        """Minimise, not to a vertex."""
        return (self._known or self._run(tol, max_iter)).in_units(self._unit)

    def finish(self, tol: float, max_iter: int) -> Certified:
        """Minimise, to a vertex."""
        return (self._known or self._cross_over(tol, max_iter)).in_units(self._unit)

    def _run(self, tol: float, max_iter: int) -> Certified:
        """Continue the interior-point steps; return the best point and the best bound so far."""
        system, last = self._system, self._interior
        n_iter = minimise(system, tol=tol, max_iter=max_iter, floor=self._problem.floor)
        point = Certified(system.coef, system.loss, system.certificate, n_iter, vertex=False)
        if last is not None:
            bound = self._with_bound(last, point).multipliers
            best = last if last.loss < point.loss else point
            point = best._replace(multipliers=bound, n_iter=n_iter)
        self._interior = point
        return point

    def _evaluate(self, coef: FloatArray, dual: FloatArray) -> Certified:
        rows = self._rows
        multipliers = Multipliers(float(dual.sum()), rows.combine(dual))
        return Certified(coef, rows.loss(rows.margins(coef)), multipliers, 0)

    def _with_bound(self, point: Certified, other: Certified) -> Certified:
        """Return the point with the better of two bounds."""
        bound = self._problem.bound
        if bound(other.multipliers) <= bound(point.multipliers):
            return point
        return point._replace(multipliers=other.multipliers)

    def _cross_over(self, tol: float, max_iter: int) -> Certified:
        """Solve with finer and finer tolerance until the interior solution shows the vertex."""
        rows, problem, radius = self._rows, self._problem, self._problem.radius
        n_iter = 0
        vertex: Certified | None = None
        for fineness in _INTERIOR_TOLS:
            interior = self._run(fineness * tol, max_iter)
            n_iter += interior.n_iter
            if interior.loss <= _SEPARATED:
                coef = smallest_separator(rows, interior.coef)
                if coef is not None and np.sum(np.abs(coef)) <= radius:
                    point = self._evaluate(coef, np.zeros(rows.n_rows))
                    if problem.closes(point, tol):
                        return point._replace(n_iter=n_iter)
            sides = read_sides(rows, radius, self._system)
            found = solve_active(rows, radius, sides)
            if found is None:
                continue
            point = self._evaluate(found, solve_multipliers(rows, sides, found))
            point = self._with_bound(point, interior)
            if problem.closes(point, tol):
                vertex = point
            if problem.closes(point, _EXACT * tol):
                break
        if vertex is not None:
            return vertex._replace(n_iter=n_iter)
        slack = 0.5 * tol * max(interior.loss, problem.floor)
        target = problem.bound(interior.multipliers) + slack
        point = self._evaluate(*solve_undecided(rows, radius, sides, target))
        point = self._with_bound(point, interior)
        if not (problem.closes(point, tol) or point.loss <= interior.loss):
            point = interior._replace(multipliers=point.multipliers)
        return point._replace(n_iter=n_iter)
