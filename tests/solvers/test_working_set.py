"""Working sets give the solution of all rows, from few rows near the margin."""

from functools import partial

import numpy as np
import pytest

from slts.solvers import hinge
from slts.solvers.hinge import HingeRows, SquaredNorm
from slts.solvers.separator import L1Ball, minimise_to_vertex
from tests.data import solve_metric, solve_separator
from tests.solvers.problems import KINDS, linear_program, problem

M, N, SIZE, TOL = 1500, 4, 60, 1e-6


class Search:
    """Minimise over working sets, and remember their sizes."""

    def __init__(self, rows, term, start=None, size=SIZE):
        self.sizes = []
        if isinstance(term, SquaredNorm):
            steps = partial(hinge.interior_minimiser, penalty=term, max_iter=200)
            tol = TOL
        else:
            steps = partial(minimise_to_vertex, ball=term, max_iter=200)
            tol = 0.0
        solve = partial(self._logged, partial(steps, tol=TOL))
        rough = partial(steps, tol=hinge.ROUGH_TOL)
        self.point = hinge.minimise_over_working_sets(
            rows, term, rough, solve, start, tol=tol, size=size
        )

    def _logged(self, solve, rows, start):
        self.sizes.append(rows.n_rows)
        return solve(rows, start)


def terms(rows, kind):
    """A weak and a strong metric penalty, or a large and a small ball."""
    unit = np.linalg.norm(rows.signed, axis=1).max() or 1.0
    if kind == "metric":
        return [SquaredNorm(strength * unit**2, 2) for strength in (1e-1, 1e-3, 1e-6)]
    return [L1Ball(radius / unit) for radius in (1.0, 5.0, 1000.0)]


@pytest.mark.parametrize("term", ["metric", "separator"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_solution_is_that_of_all_rows_at_once(kind, term, rng):
    rows = HingeRows.build(*problem(kind, rng, M, N), "X")
    if kind == "all zero":
        # The closed form is found before working sets are used.
        return
    for each in terms(rows, term):
        search, whole = Search(rows, each), Search(rows, each, size=M)
        assert each.closes(search.point, 1.01 * TOL)
        assert search.point.loss == pytest.approx(rows.loss(rows.margins(search.point.coef)))
        values = each.primal(search.point), each.primal(whole.point)
        assert values[0] == pytest.approx(values[1], rel=3 * TOL, abs=3 * TOL * each.floor)
        assert whole.sizes == [rows.n_rows]
        if kind == "separable":
            assert max(search.sizes) < M // 2


@pytest.mark.parametrize("kind", ["noisy", "separable", "weights", "heavy row", "few values"])
def test_separators_are_those_of_the_full_program(kind, rng):
    rows = HingeRows.build(*problem(kind, rng, M, N), "X")
    for ball in terms(rows, "separator"):
        point = Search(rows, ball).point
        _, optimum = linear_program(rows.signed, rows.weights, ball.radius)
        assert abs(point.loss - optimum) <= TOL * max(optimum, 1e-2)
        assert ball.bound(point.multipliers) <= optimum + 1e-9
        assert point.vertex


@pytest.mark.parametrize("guess", ["solution", "opposite", "far"])
def test_a_bad_guess_costs_rows_not_accuracy(guess, rng):
    rows = HingeRows.build(*problem("noisy", rng, M, N), "X")
    term = SquaredNorm(1e-3, 2)
    known = Search(rows, term).point
    start = {"solution": 1.0, "opposite": -1.0, "far": 1e6}[guess] * known.coef
    search = Search(rows, term, start)
    assert term.primal(search.point) == pytest.approx(term.primal(known), rel=2 * TOL)


def test_equal_rows_are_solved_in_few_rounds(rng):
    """Two in five rows are the same, and near the margin."""
    X = 0.3 * rng.normal(size=(15_000, 16))
    y = np.where(rng.random(15_000) < 0.5, 1.0, -1.0)
    X[:, 0] += 0.3 * y
    X[:, 15] = 0.0
    same = rng.random(15_000) < 0.4
    X[same], y[same] = np.eye(16)[15], 1.0
    signed, owner = np.unique(X * y[:, None], axis=0, return_inverse=True)
    weights = np.bincount(owner.ravel()) / 15_000.0
    for solve, how in ((solve_separator, {}), (solve_metric, {"lam": 0.1})):
        merged = solve(signed, np.ones(len(signed)), gamma=0.1, sample_weight=weights, **how)
        solution = solve(X, y, gamma=0.1, **how)
        assert solution.converged
        assert solution.objective == pytest.approx(merged.objective, rel=2 * TOL)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_are_certified(dtype, rng):
    X, y, w = problem("noisy", rng, 20_000, 9)
    X = X.astype(dtype)
    for lam in (0.1, 1e-3, 1e-6):
        metric = solve_metric(X, y, gamma=1.0, lam=lam, sample_weight=w)
        loss = w @ np.maximum(1.0 - y * (X.astype(float) @ metric.metric), 0.0)
        assert metric.converged
        assert metric.loss == pytest.approx(loss, rel=1e-6)
    for gamma in (0.01, 0.3):
        separator = solve_separator(X, y, gamma=gamma, sample_weight=w)
        loss = w @ np.maximum(1.0 - y * (X.astype(float) @ separator.coef), 0.0)
        assert separator.converged
        assert separator.vertex
        assert separator.objective == pytest.approx(loss, rel=1e-6)
        assert separator.gap <= 1e-9
