"""The linear separator in the space of similarities to landmarks.

``min_a (1/m) sum_i s_i [1 - l_i sum_j a_j K_ij]_+  subject to  ||a||_1 <= 1/gamma``
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from slts._typing import FloatArray
from slts.errors import warn
from slts.solvers._solvers import L1BallSystem
from slts.solvers.hinge import (
    EXACT,
    ROUGH_TOL,
    Certified,
    HingeRows,
    Multipliers,
    Solution,
    check_positive,
    minimise_over_working_sets,
    saturated_point,
)
from slts.solvers.vertex import L1Ball, minimise_to_vertex

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
