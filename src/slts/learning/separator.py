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
from slts.learning._solvers import L1BallSystem
from slts.learning.constraint_generation import QueryStream, solve_in_memory, solve_in_parts
from slts.learning.hinge import (
    Certified,
    HingeExamples,
    HingeProblem,
    Multipliers,
    Solution,
    check_positive,
)
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
_INSIDE = 1e-9
# The gap of the right vertex is rounding, far below the tolerance.
_EXACT = 1e-3


@dataclass(frozen=True)
class SeparatorSolution(Solution):
    """An optimal vertex of the separator's linear program, with its certificate.

    Attributes
    ----------
    coef : ndarray of shape (n_landmarks,)
        Weights, with exact zeros. The objective is their weighted mean hinge loss.
    vertex : bool
        Whether ``coef`` is a basic solution; False only if no vertex could be found.
    """

    coef: FloatArray
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
    """Solve for one ``gamma``; the other parameters are those of :func:`solve_separator_path`."""
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
    check_positive("gamma", *gammas)
    rows = HingeExamples.build(K, labels, sample_weight, name="K")
    found: dict[float, SeparatorSolution] = {}
    point: Certified | None = None
    inside = False
    for gamma in sorted(set(gammas), reverse=True):
        problem = SeparatorProblem(1.0 / gamma)
        # An optimum strictly inside a smaller ball stays an optimal vertex in a larger one.
        if point is not None and inside and problem.closes(point, min(tol, _INHERIT_TOL)):
            point = point._replace(n_iter=0)
        else:
            start = None if point is None else point.coef
            point = solve_in_memory(problem, rows, start=start, tol=tol, max_iter=max_iter)
            norm = float(np.sum(np.abs(point.coef)))
            inside = point.vertex and norm < problem.radius * (1.0 - _INSIDE)
        found[gamma] = problem.report(point, gamma, tol)
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

    The parameters, except ``gamma``, are those of
    :func:`slts.learning.constraint_generation.solve_in_parts`.
    """
    check_positive("gamma", gamma)
    problem = SeparatorProblem(1.0 / gamma)
    point = yield from solve_in_parts(
        problem, sample, n_rows, tol=tol, max_iter=max_iter, most_bytes=most_bytes
    )
    return problem.report(point, gamma, tol)


@dataclass(frozen=True)
class SeparatorProblem(HingeProblem):
    """The linear program of the separator: hinge loss where ``||a||_1 <= radius = 1 / gamma``."""

    radius: float
    floor = _LOSS_FLOOR
    slack = 1e-9
    wants_vertex = True

    @staticmethod
    def first_size(n_rows: int, n_columns: int) -> int:
        """Return the number of rows that constraint generation begins with."""
        return max(2500, 10 * n_columns)

    def value(self, coef: FloatArray) -> float:
        """Return zero: every point passed here is inside the ball."""
        return 0.0

    def bound(self, multipliers: Multipliers) -> float:
        """Return the lower bound that the multipliers prove."""
        return multipliers.total - self.radius * float(np.max(np.abs(multipliers.gradient)))

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
        """Return the solution; warn if it is open, or not a vertex."""
        found = SeparatorSolution(
            gamma=gamma,
            coef=point.coef,
            objective=point.loss,
            dual=self.bound(point.multipliers),
            n_iter=point.n_iter,
            converged=self.closes(point, tol),
            vertex=point.vertex,
        )
        found.warn_if_open(f"separator for gamma={gamma:g}", tol)
        if found.converged and not found.vertex:
            warn(
                f"The separator for gamma={gamma:g} is not a vertex of its linear program, so it "
                f"may use more landmarks than it needs. Similarities to different landmarks may "
                f"have very different sizes: use normalize=True, or scale the channels.",
                ConvergenceWarning,
            )
        return found


class _SeparatorSolver:
    """Interior-point steps on rows in units of their largest entry, then the step to a vertex."""

    def __init__(self, problem: SeparatorProblem, rows: HingeExamples) -> None:
        largest = max(float(np.max(rows.features)), -float(np.min(rows.features)))
        # The inverse of a smaller number is infinite.
        self._unit = largest if largest >= np.finfo(np.float64).tiny else 1.0
        self._rows = rows.scaled(1.0 / self._unit)
        self._problem = SeparatorProblem(problem.radius * self._unit)
        self._known = self._problem.closed_form(self._rows)
        rows, radius = self._rows, self._problem.radius
        self._system = L1BallSystem(rows.features, rows.weights, radius)

    def approach(self, tol: float, max_iter: int) -> Certified:
        """Minimise, not to a vertex."""
        return (self._known or self._run(tol, max_iter)).in_units(self._unit)

    def finish(self, tol: float, max_iter: int) -> Certified:
        """Minimise, to a vertex."""
        return (self._known or self._cross_over(tol, max_iter)).in_units(self._unit)

    def _run(self, tol: float, max_iter: int) -> Certified:
        """Continue the interior-point steps."""
        system = self._system
        n_iter = system.minimise(tol=tol, max_iter=max_iter, floor=self._problem.floor)
        multipliers = Multipliers(*system.certificate)
        return Certified(system.coef, system.loss, multipliers, n_iter, vertex=False)

    def _evaluate(self, coef: FloatArray, dual: FloatArray, interior: Certified) -> Certified:
        """Return a vertex, with its own bound or that of the interior point."""
        rows, bound = self._rows, self._problem.bound
        own = Multipliers(float(dual.sum()), rows.combine(dual))
        multipliers = max(own, interior.multipliers, key=bound)
        return Certified(coef, rows.loss(rows.margins(coef)), multipliers, interior.n_iter)

    def _cross_over(self, tol: float, max_iter: int) -> Certified:
        """Solve with finer and finer tolerance until the interior solution shows the vertex."""
        rows, problem, radius = self._rows, self._problem, self._problem.radius
        zero, vertex = np.zeros(rows.n_columns), None
        interior = Certified(zero, float(rows.weights.sum()), Multipliers(0.0, zero), 0, False)
        for fineness in _INTERIOR_TOLS:
            interior = problem.best_of(interior, self._run(fineness * tol, max_iter))
            if interior.loss <= _SEPARATED:
                coef = smallest_separator(rows, interior.coef)
                if coef is not None and np.sum(np.abs(coef)) <= radius:
                    point = self._evaluate(coef, np.zeros(rows.n_rows), interior)
                    if problem.closes(point, tol):
                        return point
            sides = read_sides(rows, radius, self._system)
            found = solve_active(rows, radius, sides)
            if found is None:
                continue
            point = self._evaluate(found, solve_multipliers(rows, sides, found), interior)
            if problem.closes(point, tol):
                vertex = point
            if problem.closes(point, _EXACT * tol):
                break
        if vertex is not None:
            return vertex._replace(n_iter=interior.n_iter)
        slack = 0.5 * tol * max(interior.loss, problem.floor)
        target = problem.bound(interior.multipliers) + slack
        point = self._evaluate(*solve_undecided(rows, radius, sides, target), interior)
        if problem.closes(point, tol) or point.loss <= interior.loss:
            return point
        return interior._replace(multipliers=point.multipliers)
