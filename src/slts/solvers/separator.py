"""The linear separator in the space of similarities to landmarks.

``min_a (1/m) sum_i s_i [1 - l_i sum_j a_j K_ij]_+  subject to  ||a||_1 <= 1/gamma``

The solution is a vertex of this linear program. A vertex is determined by its non-zero columns, its
tight rows (margin exactly one) and, if it binds, the radius. These are read from an interior
solution and solved for directly. If they do not determine a vertex (ties, duplicated columns), the
simplex method finds one in a small linear program over the undecided rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack
from sklearn.exceptions import ConvergenceWarning

from slts._typing import FloatArray
from slts.errors import warn
from slts.solvers._solvers import L1BallSystem, SmallestNormSystem
from slts.solvers.hinge import (
    EXACT,
    ROUGH_TOL,
    Certified,
    HingeRows,
    HingeTerm,
    Multipliers,
    Solution,
    check_positive,
    minimise_over_working_sets,
    saturated_point,
)

# An optimum whose gap and norm leave this much is one in a larger ball too.
_INHERIT_TOL = 1e-8


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
        Relative duality gap: ``objective - dual <= tol * max(objective, 1e-2)``.
    max_iter : int
        Interior-point iterations allowed in one linear program.

    Returns
    -------
    list of SeparatorSolution
        In the order of ``gammas``.

    Warns
    -----
    ConvergenceWarning
        If a gap stays above ``tol``, or a solution is not a vertex.
    """
    check_positive("gamma", *gammas)
    rows = HingeRows.build(K, labels, sample_weight, name="K")
    largest = float(np.max(np.abs(rows.signed)))
    # The inverse of a smaller number is infinite.
    unit = largest if largest >= np.finfo(np.float64).tiny else 1.0
    rows = rows.scaled(1.0 / unit)
    solutions: dict[float, SeparatorSolution] = {}
    point: Certified | None = None
    inside = False
    for gamma in sorted(set(gammas), reverse=True):
        ball = L1Ball(unit / gamma)
        start, first = None if point is None else point.coef, saturated_point(rows, ball)
        # An optimum strictly inside a smaller ball stays an optimal vertex in a larger one.
        if point is not None and inside and ball.closes(point, min(tol, _INHERIT_TOL)):
            point = point._replace(n_iter=0)
        elif ball.closes(first, EXACT):
            point = first
        else:
            # Without rows on the wrong side, a vertex over the working set is one over all rows.
            approximate = partial(_approximate, ball=ball, max_iter=max_iter)
            solve = partial(minimise_to_vertex, ball=ball, tol=tol, max_iter=max_iter)
            point = minimise_over_working_sets(rows, ball, approximate, solve, start, tol=0.0)
        norm = float(np.sum(np.abs(point.coef)))
        inside = point.vertex and norm < ball.radius * (1.0 - _INHERIT_TOL)
        solution = SeparatorSolution(
            gamma=gamma,
            coef=point.coef / unit,
            objective=point.loss,
            dual=ball.bound(point.multipliers),
            n_iter=point.n_iter,
            converged=ball.closes(point, tol),
            vertex=point.vertex,
        )
        solution.warn_if_open(f"separator for gamma={gamma:g}", tol)
        if solution.converged and not solution.vertex:
            warn(
                f"The separator for gamma={gamma:g} is not a vertex of its linear program, so it "
                f"may use more landmarks than it needs. Similarities to different landmarks may "
                f"have very different sizes: use normalize=True, or scale the channels.",
                ConvergenceWarning,
            )
        solutions[gamma] = solution
    return [solutions[gamma] for gamma in gammas]


def _approximate(
    rows: HingeRows, start: FloatArray | None, *, ball: L1Ball, max_iter: int
) -> Certified:
    """Take interior-point steps to a rough solution; they do not profit from a start."""
    system = L1BallSystem(rows.signed, rows.weights, ball.radius)
    n_iter = system.minimise(tol=ROUGH_TOL, max_iter=max_iter, floor=ball.floor)
    return Certified(
        system.coef, system.loss, Multipliers(*system.certificate), n_iter, vertex=False
    )


# ---- from an interior solution to a vertex


IndexArray = npt.NDArray[np.intp]

# A pair is undecided unless one member is this many times the other.
_DECISIVE = 1e4
# Relative error of a direct solution.
_ROUNDING = 1e-9
# Mean loss below which all margins can be one.
_SEPARATED = 1e-8
# Tolerances of the interior solutions, relative to that of the vertex, until one shows the vertex.
_INTERIOR_TOLS = (1e2, 1.0, 1e-1, 1e-2, 1e-3)
# The gap of the right vertex is rounding, far below the tolerance.
_ROUNDED = 1e-3
# Tolerances of the interior solutions that may show the smallest separator.
_NORM_TOLS = (1e-3, 1e-5, 1e-7)


@dataclass(frozen=True)
class L1Ball(HingeTerm):
    """Zero where ``||a||_1 <= radius``; every point passed here is inside."""

    radius: float
    # The mean loss may be zero.
    floor = 1e-2

    def value(self, coef: FloatArray) -> float:
        """Return zero."""
        return 0.0

    def bound(self, multipliers: Multipliers) -> float:
        """Return the lower bound that the multipliers prove."""
        return multipliers.total - self.radius * float(np.max(np.abs(multipliers.gradient)))

    def minimiser(self, gradient: FloatArray) -> FloatArray:
        """Return all weight on the landmark of steepest gradient."""
        coef = np.zeros(len(gradient))
        best = int(np.argmax(np.abs(gradient)))
        coef[best] = self.radius * np.sign(gradient[best])
        return coef


def minimise_to_vertex(
    rows: HingeRows, start: FloatArray | None, *, ball: L1Ball, tol: float, max_iter: int
) -> Certified:
    """Take interior-point steps to finer and finer tolerances until they show the vertex."""
    system = L1BallSystem(rows.signed, rows.weights, ball.radius)
    vertex, n_iter = None, 0
    for fineness in _INTERIOR_TOLS:
        n_iter += system.minimise(tol=fineness * tol, max_iter=max_iter, floor=ball.floor)
        interior = Certified(
            system.coef, system.loss, Multipliers(*system.certificate), n_iter, vertex=False
        )
        if interior.loss <= _SEPARATED:
            coef = smallest_separator(rows, interior.coef)
            if coef is not None and np.sum(np.abs(coef)) <= ball.radius:
                point = _certify(rows, ball, coef, np.zeros(rows.n_rows), interior)
                if ball.closes(point, tol):
                    return point
        sides = read_sides(rows, ball.radius, system)
        coef = solve_active(rows, ball.radius, sides.active)
        if coef is None:
            continue
        point = _certify(rows, ball, coef, solve_multipliers(rows, sides, coef), interior)
        if ball.closes(point, tol):
            vertex = point
        if ball.closes(point, _ROUNDED * tol):
            break
    if vertex is not None:
        return vertex._replace(n_iter=n_iter)
    slack = 0.5 * tol * max(interior.loss, ball.floor)
    target = ball.bound(interior.multipliers) + slack
    solved = solve_undecided(rows, ball.radius, sides, target)
    if solved is not None:
        point = _certify(rows, ball, *solved, interior)
        if ball.closes(point, tol) or point.loss <= interior.loss:
            return point
    return interior


def _certify(
    rows: HingeRows, ball: L1Ball, coef: FloatArray, dual: FloatArray, interior: Certified
) -> Certified:
    """Return a vertex with the better of its bound and that of the interior solution."""
    bounds = Multipliers(float(dual.sum()), rows.combine(dual)), interior.multipliers
    loss = rows.loss(rows.margins(coef))
    return Certified(coef, loss, max(bounds, key=ball.bound), interior.n_iter)


class ActiveSet(NamedTuple):
    """The equations of a vertex: tight rows, non-zero columns with signs, and the radius.

    The rows are sorted: those that are tight beyond doubt come first.
    """

    tight: IndexArray
    columns: IndexArray
    signs: FloatArray
    binding: bool

    def matrix(self, rows: HingeRows) -> FloatArray:
        """Return the left sides, shape (equations, columns)."""
        matrix = rows.signed[np.ix_(self.tight, self.columns)]
        return np.vstack([matrix, self.signs]) if self.binding else matrix


class Sides(NamedTuple):
    """The active set of an interior solution, and its rows below the margin and undecided."""

    active: ActiveSet
    below: npt.NDArray[np.bool_]
    undecided: IndexArray


def read_sides(rows: HingeRows, radius: float, system: L1BallSystem) -> Sides:
    """Compare the two members of every complementary pair, each in its natural unit."""
    m, n = rows.n_rows, rows.n_columns
    primal, dual = system.primal, system.dual
    excess, shortfall = primal[:m], primal[m : 2 * m]
    lower, upper = dual[: 2 * m].reshape(2, m) / rows.weights
    tight = (lower > excess) & (upper > shortfall)
    undecided = (_DECISIVE * lower > excess) & (_DECISIVE * upper > shortfall)
    below = (upper <= shortfall) & ~tight
    unit = float(np.max(np.abs(rows.total))) or 1.0
    binding = bool(primal[-1] / radius < dual[-1] / unit)
    price = float(dual[-1]) if binding else unit
    used = primal[2 * m : -1] / radius > dual[2 * m : -1] / price
    columns = np.flatnonzero(used[:n] | used[n:])
    index = np.flatnonzero(tight)
    doubt = np.maximum(excess[index] / lower[index], shortfall[index] / upper[index])
    index = index[np.argsort(doubt)]
    active = ActiveSet(index, columns, np.sign(system.coef[columns]), binding)
    return Sides(active, below, np.flatnonzero(undecided))


def solve_active(rows: HingeRows, radius: float, active: ActiveSet) -> FloatArray | None:
    """Solve margin = 1 on the tight rows (and norm = radius); None unless that is a vertex.

    Margins may be so close to one that rows seem tight that are not. The first rows then decide.
    """
    n_columns = active.columns.size
    enough = n_columns - active.binding
    if n_columns == 0:
        return None
    for count in sorted({active.tight.size, min(active.tight.size, enough)}, reverse=True):
        matrix = active._replace(tight=active.tight[:count]).matrix(rows)
        right = np.ones(len(matrix))
        if active.binding:
            right[-1] = radius
        values, _, rank, _ = np.linalg.lstsq(matrix, right, rcond=1e-13)
        off = np.abs(matrix @ values - right) > _ROUNDING * np.abs(right)
        norm = float(np.sum(np.abs(values)))
        is_vertex = rank == n_columns and not off.any() and np.all(values * active.signs > 0.0)
        if is_vertex and norm <= radius * (1.0 + _ROUNDING):
            coef = np.zeros(rows.n_columns)
            coef[active.columns] = values * min(1.0, radius / norm)
            return coef
    return None


def solve_multipliers(rows: HingeRows, sides: Sides, coef: FloatArray) -> FloatArray:
    """Return multipliers that make the gradient equal to the price on the non-zero columns.

    ``coef`` is the vertex, which tells the tight rows from those that only seemed so.
    """
    active, dual = sides.active, np.where(sides.below, rows.weights, 0.0)
    short = 1.0 - rows.signed[active.tight] @ coef
    dual[active.tight] = np.where(short > 0.0, rows.weights[active.tight], 0.0)
    active = active._replace(tight=active.tight[np.abs(short) <= 10.0 * _ROUNDING])
    dual[active.tight] = 0.0
    right = -rows.combine(dual)[active.columns]
    values = np.linalg.lstsq(active.matrix(rows).T, right, rcond=np.finfo(float).eps)[0]
    values = values[: active.tight.size]
    dual[active.tight] = np.clip(values, 0.0, rows.weights[active.tight])
    return dual


def solve_undecided(
    rows: HingeRows, radius: float, sides: Sides, loss_target: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return a vertex and multipliers by the simplex method, or None.

    The linear program has the undecided rows first, then also those that moved to the other side,
    and in the last round all rows.
    """
    inside = np.zeros(rows.n_rows, dtype=bool)
    inside[sides.undecided] = True
    for is_last in (False, False, False, True):
        inside |= is_last
        dual = np.where(sides.below & ~inside, rows.weights, 0.0)
        index = np.flatnonzero(inside)
        solved = _restricted_program(rows, radius, index, rows.combine(dual))
        if solved is None:
            inside[:] = True
            continue
        coef, dual[index] = _sharpen(rows, radius, index, solved[0]), solved[1]
        margins = rows.margins(coef)
        if is_last or rows.loss(margins) <= loss_target:
            return coef, dual
        inside |= np.where(sides.below, margins > 1.0, margins < 1.0)
    return None


def _restricted_program(
    rows: HingeRows, radius: float, index: IndexArray, linear: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Minimise ``hinge(rows[index]) - <linear, a>`` over the ball by the simplex method."""
    n = rows.n_columns
    weights = rows.weights[index]
    unit = float(weights.mean()) if index.size else 1.0  # keeps the costs far from tolerances
    signed = csr_array(rows.signed[index])
    norm = csr_array(np.concatenate([np.ones(2 * n), np.zeros(index.size)])[np.newaxis])
    result = linprog(
        np.concatenate([-linear, linear, weights]) / unit,
        A_ub=vstack([hstack([-signed, signed, -eye_array(index.size)]), norm], format="csc"),
        b_ub=np.append(-np.ones(index.size), radius),
        method="highs-ds",
    )
    if result.status != 0:
        return None
    multipliers = np.clip(-unit * result.ineqlin.marginals[:-1], 0.0, weights)
    return result.x[:n] - result.x[n : 2 * n], multipliers


def smallest_separator(rows: HingeRows, start: FloatArray) -> FloatArray | None:
    """Return the vertex of smallest L1 norm whose margins are all at least one, or None.

    ``start`` separates the rows.
    """
    m, n = rows.n_rows, rows.n_columns
    system = SmallestNormSystem(rows.signed, start)
    for tol in _NORM_TOLS:
        system.minimise(tol=tol, max_iter=100)
        primal, dual, near = system.primal, system.dual, system.coef
        norm = float(np.sum(np.abs(near)))
        used = primal[m:] / norm > dual[m:]
        columns = np.flatnonzero(used[:n] | used[n:])
        tight = np.flatnonzero(dual[:m] / norm > primal[:m])
        tight = tight[np.argsort(primal[tight] / dual[tight])]
        active = ActiveSet(tight, columns, np.sign(near[columns]), binding=False)
        coef = solve_active(rows, np.inf, active)
        if coef is not None and rows.margins(coef).min() >= 1.0 - _ROUNDING:
            return coef
    return _smallest_program(rows)


def _smallest_program(rows: HingeRows) -> FloatArray | None:
    """Minimise ``||a||_1`` with every margin at least one, by the simplex method."""
    n = rows.n_columns
    result = linprog(
        np.ones(2 * n),
        A_ub=np.hstack([-rows.signed, rows.signed]),
        b_ub=-np.ones(rows.n_rows),
        method="highs-ds",
    )
    if result.status != 0:
        return None
    return _sharpen(rows, np.inf, np.arange(rows.n_rows), result.x[:n] - result.x[n:])


def _sharpen(rows: HingeRows, radius: float, index: IndexArray, coef: FloatArray) -> FloatArray:
    """Solve directly for the vertex that a linear program found within its tolerance."""
    norm = float(np.sum(np.abs(coef)))
    if norm == 0.0:
        return coef
    columns = np.flatnonzero(coef)
    away = np.abs(rows.signed[index] @ coef - 1.0)
    order = np.argsort(away)
    active = ActiveSet(
        tight=index[order][: np.count_nonzero(away < 1e-6)],
        columns=columns,
        signs=np.sign(coef[columns]),
        binding=norm > radius * (1.0 - _ROUNDING),
    )
    sharp = solve_active(rows, radius, active)
    return coef * min(1.0, radius / norm) if sharp is None else sharp
