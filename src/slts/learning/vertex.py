"""From an interior solution of the separator's linear program to a vertex of its optimal face.

A vertex is determined by its non-zero columns, its tight rows (margin exactly one) and, if it
binds, the radius. These are read from the interior solution and solved for directly. If they do not
determine a vertex (ties, duplicated columns), the simplex method finds one in a small linear
program over the undecided rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack

from slts._typing import FloatArray
from slts.learning._solvers import L1BallSystem, SmallestNormSystem
from slts.learning.hinge import HingeExamples

IndexArray = npt.NDArray[np.intp]

_DECISIVE = 1e4
_ROUNDING = 1e-9
_TRACE = 1e-5
_MAX_ROUNDS = 12
_NORM_TOLS = (1e-3, 1e-5, 1e-7)


class Sides(NamedTuple):
    """Tight, below-margin and undecided rows, and the columns that are not zero.

    The tight rows are sorted: those that are tight beyond doubt come first.
    """

    tight: IndexArray
    below: npt.NDArray[np.bool_]
    undecided: IndexArray
    columns: IndexArray
    signs: FloatArray
    binding: bool


def read_sides(rows: HingeExamples, radius: float, system: L1BallSystem) -> Sides:
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
    signs = np.sign(system.coef[columns])
    index = np.flatnonzero(tight)
    doubt = np.maximum(excess[index] / lower[index], shortfall[index] / upper[index])
    index = index[np.argsort(doubt)]
    return Sides(index, below, np.flatnonzero(undecided), columns, signs, binding)


def solve_active(rows: HingeExamples, radius: float, sides: Sides) -> FloatArray | None:
    """Solve margin = 1 on the tight rows (and norm = radius); None unless that is a vertex.

    Margins may be so close to one that rows seem tight that are not. The first rows then decide.
    """
    enough = sides.columns.size - sides.binding
    found = _solve_tight(rows, radius, sides)
    if found is None and sides.tight.size > enough:
        found = _solve_tight(rows, radius, sides._replace(tight=sides.tight[:enough]))
    return found


def _solve_tight(rows: HingeExamples, radius: float, sides: Sides) -> FloatArray | None:
    count = sides.columns.shape[0]
    matrix = _active_matrix(rows, sides)
    if count == 0:
        return None
    right = np.ones(matrix.shape[0])
    if sides.binding:
        right[-1] = radius
    values, _, rank, _ = np.linalg.lstsq(matrix, right, rcond=1e-13)
    off = np.abs(matrix @ values - right) > _ROUNDING * np.abs(right)
    if rank < count or off.any() or np.any(values * sides.signs <= 0.0):
        return None
    norm = float(np.sum(np.abs(values)))
    if norm > radius * (1.0 + _ROUNDING):
        return None
    coef = np.zeros(rows.n_columns)
    coef[sides.columns] = values * min(1.0, radius / norm)
    return coef


def solve_multipliers(rows: HingeExamples, sides: Sides, coef: FloatArray) -> FloatArray:
    """Return multipliers that make the gradient equal to the price on the non-zero columns.

    ``coef`` is the vertex, which tells the tight rows from those that only seemed so.
    """
    dual = np.where(sides.below, rows.weights, 0.0)
    short = 1.0 - rows.take(sides.tight) @ coef
    dual[sides.tight] = np.where(short > 0.0, rows.weights[sides.tight], 0.0)
    sides = sides._replace(tight=sides.tight[np.abs(short) <= 10.0 * _ROUNDING])
    dual[sides.tight] = 0.0
    matrix = _active_matrix(rows, sides).T
    right = -rows.combine(dual)[sides.columns]
    values = np.linalg.lstsq(matrix, right, rcond=np.finfo(float).eps)[0]
    if sides.binding:
        values = values[:-1]
    dual[sides.tight] = np.clip(values, 0.0, rows.weights[sides.tight])
    return dual


def _active_matrix(rows: HingeExamples, sides: Sides) -> FloatArray:
    matrix = rows.take(sides.tight)[:, sides.columns]
    return np.vstack([matrix, sides.signs]) if sides.binding else matrix


def solve_undecided(
    rows: HingeExamples, radius: float, sides: Sides, loss_target: float
) -> tuple[FloatArray, FloatArray]:
    """Solve the linear program of the undecided rows; add other rows until the loss is small."""
    inside = np.zeros(rows.n_rows, dtype=bool)
    inside[sides.undecided] = True
    best, best_loss = (np.zeros(rows.n_columns), np.zeros(rows.n_rows)), np.inf
    for attempt in range(_MAX_ROUNDS + 1):
        if attempt == _MAX_ROUNDS:
            inside[:] = True
        dual = np.where(sides.below & ~inside, rows.weights, 0.0)
        index = np.flatnonzero(inside)
        # A tiny price for the norm selects a vertex of small norm among many optima.
        price = _TRACE if attempt < _MAX_ROUNDS // 2 else 0.0
        found = _restricted_program(rows, radius, index, rows.combine(dual), price)
        if found is None:
            inside[:] = True
            continue
        coef = _sharpen(rows, radius, index, found[0])
        dual[index] = found[1]
        margins = rows.margins(coef)
        loss = rows.loss(margins)
        if loss < best_loss:
            best, best_loss = (coef, dual), loss
        if loss <= loss_target or inside.all():
            break
        wrong = ~inside & np.where(dual > 0.0, margins > 1.0, margins < 1.0)
        if not wrong.any():
            wrong = ~inside & (np.abs(margins - 1.0) < 10.0 ** (attempt - 6))
        inside |= wrong
    return best


def smallest_separator(rows: HingeExamples, start: FloatArray) -> FloatArray | None:
    """Return the vertex of smallest L1 norm whose margins are all at least one, if found.

    ``start`` separates the rows. The search begins with the rows of smallest margin there.
    """
    margins = rows.margins(start)
    size = min(rows.n_rows, max(500, 5 * rows.n_columns))
    inside = np.zeros(rows.n_rows, dtype=bool)
    inside[np.argpartition(margins, size - 1)[:size]] = True
    while True:
        coef = _smallest_on(rows, np.flatnonzero(inside), start)
        if coef is None:
            return None
        wrong = ~inside & (rows.margins(coef) < 1.0 - _ROUNDING)
        if not wrong.any():
            return coef
        inside |= wrong


def _smallest_on(rows: HingeExamples, index: IndexArray, start: FloatArray) -> FloatArray | None:
    matrix = rows.take(index)
    m, n = matrix.shape
    system = SmallestNormSystem(matrix, start)
    for tol in _NORM_TOLS:
        system.minimise(tol=tol, max_iter=100)
        primal, dual, near = system.primal, system.dual, system.coef
        norm = float(np.sum(np.abs(near)))
        used = primal[m:] / norm > dual[m:]
        columns = np.flatnonzero(used[:n] | used[n:])
        tight = dual[:m] / norm > primal[:m]
        signs = np.sign(near[columns])
        order = np.argsort(primal[:m][tight] / dual[:m][tight])
        sides = Sides(index[tight][order], tight, index, columns, signs, False)
        coef = solve_active(rows, np.inf, sides)
        if coef is not None and np.min(matrix @ coef) >= 1.0 - _ROUNDING:
            return coef
    return _smallest_program(rows, index)


def _smallest_program(rows: HingeExamples, index: IndexArray) -> FloatArray | None:
    """Minimise ``||a||_1`` with every margin of ``rows[index]`` at least one, by simplex."""
    n = rows.n_columns
    matrix = rows.take(index)
    result = linprog(
        np.ones(2 * n),
        A_ub=np.hstack([-matrix, matrix]),
        b_ub=-np.ones(index.size),
        method="highs-ds",
    )
    if result.status != 0:
        return None
    return _sharpen(rows, np.inf, index, result.x[:n] - result.x[n:])


def _restricted_program(
    rows: HingeExamples, radius: float, index: IndexArray, linear: FloatArray, price: float
) -> tuple[FloatArray, FloatArray] | None:
    """Minimise ``hinge(rows[index]) - <linear, a>`` over the ball by the simplex method.

    ``price``, in units of the mean weight, is the cost of the norm of ``a``.
    """
    n = rows.n_columns
    matrix, weights = rows.take(index), rows.weights[index]
    unit = float(weights.mean()) if index.size else 1.0  # keeps the costs far from tolerances
    cost = np.concatenate([-linear, linear, weights]) / unit
    cost[: 2 * n] += price
    signed = csr_array(matrix)
    norm = csr_array(np.concatenate([np.ones(2 * n), np.zeros(index.size)])[np.newaxis])
    upper = vstack([hstack([-signed, signed, -eye_array(index.size)]), norm], format="csc")
    right = np.append(-np.ones(index.size), radius)
    result = linprog(cost, A_ub=upper, b_ub=right, method="highs-ds")
    if result.status != 0:
        return None
    multipliers = np.clip(-unit * result.ineqlin.marginals[:-1], 0.0, weights)
    return result.x[:n] - result.x[n : 2 * n], multipliers


def _sharpen(rows: HingeExamples, radius: float, index: IndexArray, coef: FloatArray) -> FloatArray:
    """Solve directly for the vertex that a linear program found within its tolerance."""
    norm = float(np.sum(np.abs(coef)))
    if norm == 0.0:
        return coef
    columns = np.flatnonzero(coef)
    away = np.abs(rows.take(index) @ coef - 1.0)
    order = np.argsort(away)
    sides = Sides(
        tight=index[order][: np.count_nonzero(away < 1e-6)],
        below=np.zeros(0, dtype=bool),
        undecided=index,
        columns=columns,
        signs=np.sign(coef[columns]),
        binding=norm > radius * (1.0 - _ROUNDING),
    )
    sharp = solve_active(rows, radius, sides)
    return coef * min(1.0, radius / norm) if sharp is None else sharp
