"""Minimise over many rows by solving problems of few rows.

Only rows near the margin decide. The working set has the rows whose margins at a reference point
are nearest to one. The other rows above one are left out; the other rows below one are replaced by
one row, their weighted mean. By convexity this problem bounds the whole from below, and it is exact
if no other row changes its side of the margin. Rows that do join the working set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.solvers.hinge import Certified, HingeRows, HingeTerm

# Minimises over some rows, from a guess of the solution.
Solve: TypeAlias = Callable[[HingeRows, FloatArray | None], Certified]

# Relative gap of a solution that is good enough as a reference.
ROUGH_TOL = 0.1
# Margins this close to one are on both sides: the side of a row must not depend on rounding.
_SLACK = 1e-9
# The working set usually has all rows that decide after two or three rounds.
_MAX_ROUNDS = 100


def minimise_over_working_sets(
    rows: HingeRows,
    term: HingeTerm,
    approximate: Solve,
    solve: Solve,
    start: FloatArray | None,
    *,
    tol: float,
    size: int | None = None,
) -> Certified:
    """Minimise loss + term over all rows.

    Parameters
    ----------
    rows, term
        The problem.
    approximate, solve
        Minimise over a sample of the rows, to ``ROUGH_TOL``, and over a working set.
    start
        A guess of the solution.
    tol
        Relative gap over all rows at which rows on the wrong side no longer matter. Zero goes on
        until there are none.
    size
        Number of rows of the sample, and of the first working set. Fewer than twice as many rows
        are solved at once. None chooses it: a solution has at most about as many rows at the margin
        as columns.
    """
    size = size or max(1000, 6 * rows.n_columns, rows.n_rows // 20)
    if rows.n_rows <= 2 * size:
        return solve(rows, start)

    step = rows.n_rows // size
    sample = HingeRows(rows.signed[::step], rows.weights[::step] / rows.weights[::step].sum())
    rough = approximate(sample, start)
    guesses = [rough.coef] if start is None else [rough.coef, start]
    coef = min(guesses, key=lambda coef: rows.loss(rows.margins(coef)) + term.value(coef))
    short, n_iter = 1.0 - rows.margins(coef), rough.n_iter
    was_below, inside = short > 0.0, np.zeros(rows.n_rows, dtype=bool)
    inside[np.argpartition(np.abs(short), size)[:size]] = True
    for _ in range(_MAX_ROUNDS):
        point = solve(_with_mean_below(rows, inside, was_below), coef)
        coef, n_iter = point.coef, n_iter + point.n_iter
        short = 1.0 - rows.margins(coef)
        loss = float(rows.weights @ np.maximum(short, 0.0))
        point = point._replace(loss=loss, n_iter=n_iter)
        moved = np.where(was_below, -short, short) > _SLACK
        wrong = np.flatnonzero(moved & ~inside)
        if wrong.size == 0 or term.closes(point, tol):
            break
        # At most double the working set, by the rows that are farthest on the wrong side.
        most = np.count_nonzero(inside)
        inside[wrong[np.argsort(-np.abs(short[wrong]))[:most]]] = True
    return point


def _with_mean_below(
    rows: HingeRows, inside: npt.NDArray[np.bool_], was_below: npt.NDArray[np.bool_]
) -> HingeRows:
    """Return the rows inside, and one row for the others that were below the margin."""
    others = np.where(was_below & ~inside, rows.weights, 0.0)
    weight = float(others.sum())
    if weight == 0.0:
        return HingeRows(rows.signed[inside], rows.weights[inside])
    mean = rows.combine(others) / weight
    return HingeRows(
        np.vstack([rows.signed[inside], mean]), np.append(rows.weights[inside], weight)
    )
