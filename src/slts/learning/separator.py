"""The linear separator in the space of similarities to landmarks.

``min_a (1/m) sum_i s_i [1 - l_i sum_j a_j K_ij]_+  subject to  ||a||_1 <= 1/gamma``
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
from slts.learning.hinge import HingeRows
from slts.learning.l1ball import L1Ball
from slts.learning.vertex import (
    read_sides,
    smallest_separator,
    solve_active,
    solve_multipliers,
    solve_undecided,
)
from slts.learning.working_set import Certified, WorkingSet

# Below this mean loss a gap is judged absolutely: an optimum of zero has no relative gap.
LOSS_FLOOR = 1e-2
_SEPARATED = 1e-8
_INTERIOR_TOLS = (1e2, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_INHERIT_TOL = 1e-8


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

    @property
    def n_nonzero(self) -> int:
        """Number of landmarks in use."""
        return int(np.count_nonzero(self.coef))


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
    rows = distinct(HingeRows.build(K, labels, sample_weight))
    rows = scale_rows(rows)
    check_gammas(gammas)
    gammas = [float(gamma) for gamma in gammas]
    found: dict[float, SeparatorSolution] = {}
    point: Point | None = None
    for gamma in sorted(set(gammas), reverse=True):
        point = _solve(rows, L1Ball(1.0 / (gamma * rows.scale)), point, tol, max_iter)
        found[gamma] = report(point, point.coef * rows.scale, gamma, tol)
        warn_if_open(found[gamma], tol)
    return [found[gamma] for gamma in gammas]


def check_gammas(gammas: Sequence[float]) -> None:
    """Refuse margins that are not positive and finite."""
    for gamma in gammas:
        if not (np.isfinite(gamma) and gamma > 0.0):
            raise ValueError(f"The 'gammas' must be positive and finite. Got {gamma!r} instead.")


def scale_rows(rows: HingeRows) -> HingeRows:
    """Scale the largest entry to one."""
    largest = max(float(np.max(rows.features)), -float(np.min(rows.features)))
    if not np.isfinite(largest):
        raise ValueError("The 'K' must be finite.")
    return replace(rows, scale=1.0 / largest if largest > 0.0 else 1.0)


class Point(NamedTuple):
    """A vertex and multipliers in the units of the scaled rows, with both values."""

    coef: FloatArray
    dual: FloatArray
    objective: float
    bound: float
    n_iter: int
    inside: bool
    vertex: bool = True

    def with_bound(self, interior: Certified) -> Point:
        """Return the point with the better bound of two."""
        if interior.dual_value <= self.bound:
            return self
        return self._replace(dual=interior.dual, bound=interior.dual_value)

    def closes(self, tol: float) -> bool:
        """Whether the gap is small enough."""
        return self.objective - self.bound <= tol * max(self.objective, LOSS_FLOOR)


def warn_if_open(solution: SeparatorSolution, tol: float) -> None:
    """Warn if the gap is larger than asked for."""
    if not solution.converged:
        warn(
            f"The separator for gamma={solution.gamma:g} has a duality gap of {solution.gap:.2e} "
            f"at objective {solution.objective:.6g} (tol={tol:g}).",
            ConvergenceWarning,
        )


def report(point: Point, coef: FloatArray, gamma: float, tol: float) -> SeparatorSolution:
    """Return the solution with its certificate."""
    return SeparatorSolution(
        coef=coef,
        gamma=gamma,
        objective=point.objective,
        dual=point.bound,
        gap=point.objective - point.bound,
        n_iter=point.n_iter,
        converged=point.closes(tol),
        vertex=point.vertex,
    )


def solve_rows(rows: HingeRows, gamma: float, tol: float, max_iter: int) -> Point:
    """Minimise on all of ``rows`` at once; ``coef`` is in their units."""
    rows = scale_rows(distinct(rows))
    point = _solve(rows, L1Ball(1.0 / (gamma * rows.scale)), None, tol, max_iter, rows.n_rows)
    return point._replace(coef=point.coef * rows.scale)


def approach_rows(
    rows: HingeRows, gamma: float, tol: float, max_iter: int
) -> tuple[FloatArray, int]:
    """Return a point near the optimum on ``rows``, not a vertex, and the iterations it took."""
    rows = scale_rows(distinct(rows))
    ball = L1Ball(1.0 / (gamma * rows.scale))
    solver = WorkingSet(
        rows, ball, start=None, size=rows.n_rows, max_iter=max_iter, floor=LOSS_FLOOR
    )
    return solver.reach(tol).coef * rows.scale, solver.n_iter


def _evaluate(
    rows: HingeRows, ball: L1Ball, coef: FloatArray, dual: FloatArray, n_iter: int
) -> Point:
    bound = float(dual.sum()) - ball.conjugate(rows.combine(dual))
    inside = bool(np.sum(np.abs(coef)) < ball.radius * (1.0 - 1e-9))
    return Point(coef, dual, rows.loss(rows.margins(coef)), bound, n_iter, inside)


def working_size(n_columns: int) -> int:
    """Rows that a solve begins with."""
    return max(2500, 10 * n_columns)


def _solve(
    rows: HingeRows,
    ball: L1Ball,
    last: Point | None,
    tol: float,
    max_iter: int,
    size: int | None = None,
) -> Point:
    """Minimise on ``rows``, beginning with ``size`` of them: by default what suits the columns."""
    if last is not None and last.inside:
        # An optimum strictly inside a smaller ball stays optimal in a larger one.
        inherited = _evaluate(rows, ball, last.coef, last.dual, 0)
        if inherited.closes(min(tol, _INHERIT_TOL)):
            return inherited
    single = _single_landmark(rows, ball)
    if single.closes(_INHERIT_TOL):
        return single
    solver = WorkingSet(
        rows,
        ball,
        start=None if last is None else last.coef,
        size=working_size(rows.n_columns) if size is None else size,
        max_iter=max_iter,
        floor=LOSS_FLOOR,
    )
    return _cross_over(rows, ball, solver, tol)


def _cross_over(rows: HingeRows, ball: L1Ball, solver: WorkingSet, tol: float) -> Point:
    """Solve ever more finely until the interior solution tells the vertex."""
    for fineness in _INTERIOR_TOLS:
        interior = solver.reach(fineness * tol)
        if interior.primal_value <= _SEPARATED:
            coef = smallest_separator(rows, interior.coef)
            if coef is not None and np.sum(np.abs(coef)) <= ball.radius:
                return _evaluate(rows, ball, coef, np.zeros(rows.n_rows), solver.n_iter)
        sides = read_sides(rows, ball.radius, solver, interior)
        found = solve_active(rows, ball.radius, sides)
        if found is None:
            continue
        multipliers = solve_multipliers(rows, sides)
        point = _evaluate(rows, ball, found, multipliers, solver.n_iter).with_bound(interior)
        if point.closes(tol):
            return point
    slack = 0.5 * tol * max(interior.primal_value, LOSS_FLOOR)
    coef, dual = solve_undecided(rows, ball.radius, sides, interior.dual_value + slack)
    point = _evaluate(rows, ball, coef, dual, solver.n_iter).with_bound(interior)
    if point.closes(tol) or point.objective <= interior.primal_value:
        return point
    return point._replace(
        coef=interior.coef, objective=interior.primal_value, inside=False, vertex=False
    )


def _single_landmark(rows: HingeRows, ball: L1Ball) -> Point:
    """Put all weight on the best landmark: optimal while no margin exceeds one."""
    gradient = rows.total
    best = int(np.argmax(np.abs(gradient)))
    coef = np.zeros(rows.n_columns)
    coef[best] = ball.radius * np.sign(gradient[best])
    bound = float(rows.weights.sum()) - ball.conjugate(gradient)
    return Point(coef, rows.weights, rows.loss(rows.margins(coef)), bound, 0, inside=False)
