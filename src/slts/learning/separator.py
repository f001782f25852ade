"""The linear separator in the space of similarities to landmarks.

``min_a (1/m) sum_i s_i [1 - l_i sum_j a_j K_ij]_+  subject to  ||a||_1 <= 1/gamma``
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from slts._typing import FloatArray
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
_LOSS_FLOOR = 1e-2
_SEPARATED = 1e-8
_INTERIOR_TOLS = (1e2, 1.0, 1e-1, 1e-2)
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
    rows = HingeRows.build(K, labels, sample_weight)
    largest = max(float(np.max(rows.features)), -float(np.min(rows.features)))
    if not np.isfinite(largest):
        raise ValueError("The 'K' must be finite.")
    rows = replace(rows, scale=1.0 / largest if largest > 0.0 else 1.0)
    for gamma in gammas:
        if not (np.isfinite(gamma) and gamma > 0.0):
            raise ValueError(f"The 'gammas' must be positive and finite. Got {gamma!r} instead.")
    found: dict[float, SeparatorSolution] = {}
    point: _Point | None = None
    for gamma in sorted(set(gammas), reverse=True):
        point = _solve(rows, L1Ball(1.0 / (gamma * rows.scale)), point, tol, max_iter)
        found[gamma] = solution = _report(rows, gamma, point, tol)
        if not solution.converged:
            warnings.warn(
                f"The separator for gamma={gamma:g} has a duality gap of {solution.gap:.2e} at "
                f"objective {solution.objective:.6g} (tol={tol:g}).",
                ConvergenceWarning,
                stacklevel=2,
            )
    return [found[gamma] for gamma in gammas]


class _Point(NamedTuple):
    """A vertex and multipliers in the units of the scaled rows, with both values."""

    coef: FloatArray
    dual: FloatArray
    objective: float
    bound: float
    n_iter: int
    inside: bool
    vertex: bool = True

    def with_bound(self, interior: Certified) -> _Point:
        if interior.dual_value <= self.bound:
            return self
        return self._replace(dual=interior.dual, bound=interior.dual_value)

    def closes(self, tol: float) -> bool:
        return self.objective - self.bound <= tol * max(self.objective, _LOSS_FLOOR)


def _report(rows: HingeRows, gamma: float, point: _Point, tol: float) -> SeparatorSolution:
    return SeparatorSolution(
        coef=point.coef * rows.scale,
        gamma=gamma,
        objective=point.objective,
        dual=point.bound,
        gap=point.objective - point.bound,
        n_iter=point.n_iter,
        converged=point.closes(tol),
        vertex=point.vertex,
    )


def _evaluate(
    rows: HingeRows, ball: L1Ball, coef: FloatArray, dual: FloatArray, n_iter: int
) -> _Point:
    bound = float(dual.sum()) - ball.conjugate(rows.combine(dual))
    inside = bool(np.sum(np.abs(coef)) < ball.radius * (1.0 - 1e-9))
    return _Point(coef, dual, rows.loss(rows.margins(coef)), bound, n_iter, inside)


def _solve(rows: HingeRows, ball: L1Ball, last: _Point | None, tol: float, max_iter: int) -> _Point:
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
        size=max(2500, 10 * rows.n_columns),
        max_iter=max_iter,
        floor=_LOSS_FLOOR,
    )
    return _cross_over(rows, ball, solver, tol)


def _cross_over(rows: HingeRows, ball: L1Ball, solver: WorkingSet, tol: float) -> _Point:
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
    slack = 0.5 * tol * max(interior.primal_value, _LOSS_FLOOR)
    coef, dual = solve_undecided(rows, ball.radius, sides, interior.dual_value + slack)
    point = _evaluate(rows, ball, coef, dual, solver.n_iter).with_bound(interior)
    if point.closes(tol) or point.objective <= interior.primal_value:
        return point
    return point._replace(
        coef=interior.coef, objective=interior.primal_value, inside=False, vertex=False
    )


def _single_landmark(rows: HingeRows, ball: L1Ball) -> _Point:
    """Put all weight on the best landmark: optimal while no margin exceeds one."""
    gradient = rows.combine(rows.weights)
    best = int(np.argmax(np.abs(gradient)))
    coef = np.zeros(rows.n_columns)
    coef[best] = ball.radius * np.sign(gradient[best])
    return _evaluate(rows, ball, coef, rows.weights, 0)
