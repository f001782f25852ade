"""The steps from an interior solution to a vertex, beside the linear program of HiGHS."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

from slts.solvers import solve_separator, vertex
from slts.solvers._solvers import L1BallSystem
from slts.solvers.hinge import HingeExamples
from slts.solvers.vertex import (
    Sides,
    read_sides,
    smallest_separator,
    solve_active,
    solve_multipliers,
    solve_undecided,
)

# A small radius binds, a large one does not.
RADII = [2.0, 50.0]


def noisy(rng: np.random.Generator, m: int = 60, n: int = 5) -> HingeExamples:
    X = rng.uniform(-1.0, 1.0, size=(m, n))
    y = np.sign(X @ rng.normal(size=n))
    y[rng.random(m) < 0.2] *= -1.0
    return HingeExamples(X, y, rng.dirichlet(np.full(m, 3.0)))


def optimum(rows: HingeExamples, radius: float) -> np.ndarray:
    """Return the vertex that HiGHS finds."""
    (m, n), A = rows.features.shape, rows.take(slice(None))
    upper = np.block([[-A, A, -np.eye(m)], [np.ones((1, 2 * n)), np.zeros((1, m))]])
    cost = np.concatenate([np.zeros(2 * n), rows.weights])
    x = linprog(cost, A_ub=upper, b_ub=np.append(-np.ones(m), radius), method="highs-ds").x
    return np.asarray(x[:n] - x[n : 2 * n])


def bound(rows: HingeExamples, radius: float, dual: np.ndarray) -> float:
    assert dual.min() >= 0.0
    assert np.all(dual <= rows.weights)
    return float(dual.sum() - radius * np.abs(rows.combine(dual)).max())


def sides_at(rows: HingeExamples, radius: float, coef: np.ndarray, near: float = 1e-9) -> Sides:
    """Return the sides of a vertex; rows `near` the margin are undecided."""
    margins, columns = rows.margins(coef), np.flatnonzero(coef)
    away = np.abs(margins - 1.0)
    return Sides(
        tight=np.flatnonzero(away < 1e-9),
        below=margins < 1.0 - 1e-9,
        undecided=np.flatnonzero(away < near),
        columns=columns,
        signs=np.sign(coef[columns]),
        binding=bool(np.abs(coef).sum() > radius * (1.0 - 1e-9)),
    )


@pytest.mark.parametrize("radius", RADII)
def test_an_interior_solution_shows_the_sides_of_the_vertex(radius, rng):
    rows = noisy(rng)
    system = L1BallSystem(rows.take(slice(None)), rows.weights, radius)
    system.minimise(tol=1e-9, max_iter=100)
    found, known = read_sides(rows, radius, system), sides_at(rows, radius, optimum(rows, radius))
    assert found.binding == known.binding == (radius == 2.0)
    assert sorted(found.tight) == known.tight.tolist()
    assert found.undecided.tolist() == known.tight.tolist()
    np.testing.assert_array_equal(found.below, known.below)
    np.testing.assert_array_equal(found.columns, known.columns)
    np.testing.assert_array_equal(found.signs, known.signs)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("steps", [3, 5])
def test_sides_do_not_depend_on_the_units_of_rows_and_weights(radius, steps, rng):
    rows = noisy(rng)
    system = L1BallSystem(rows.take(slice(None)), rows.weights, radius)
    # Few steps: many sides are not yet clear.
    system.minimise(tol=0.0, max_iter=steps)
    known = read_sides(rows, radius, system)
    assert 0 < known.tight.size < known.undecided.size
    m = rows.n_rows
    for size, weight in ((1e4, 1.0), (1e-4, 1.0), (1.0, 1e4), (1.0, 1e-4)):
        other = HingeExamples(size * rows.features, rows.labels, weight * rows.weights)
        primal, dual = system.primal.copy(), weight * system.dual
        primal[2 * m :] /= size
        dual[2 * m :] *= size
        scaled = SimpleNamespace(primal=primal, dual=dual, coef=system.coef / size)
        for one, two in zip(known, read_sides(other, radius / size, scaled), strict=True):
            np.testing.assert_array_equal(one, two)


def test_rows_that_are_tight_beyond_doubt_come_first():
    rows = HingeExamples(np.eye(3), np.ones(3), np.array([0.2, 0.3, 0.5]))

    class Given:
        # excess and shortfall of three rows, plus and minus of three columns, slack
        primal = np.array(
            [1e-6, 1e-9, 3.0, 2e-6, 1e-9, 1e-9] + [1.0, 1e-9, 0.5] + [1e-9] * 3 + [1.0]
        )
        dual = np.array([0.1, 0.1, 1e-9, 0.1, 0.2, 0.5] + [1e-9, 1.0, 1e-9] + [1.0] * 3 + [1e-9])
        coef = np.array([1.0, 0.0, 0.5])

    found = read_sides(rows, 2.5, Given())
    assert found.tight.tolist() == [1, 0]
    assert found.undecided.tolist() == [0, 1]
    assert found.below.tolist() == [False, False, False]
    assert found.columns.tolist() == [0, 2]
    assert found.signs.tolist() == [1.0, 1.0]
    assert not found.binding


@pytest.mark.parametrize("radius", RADII)
def test_tight_rows_and_columns_determine_vertex_and_multipliers(radius, rng):
    rows = noisy(rng)
    known = optimum(rows, radius)
    sides = sides_at(rows, radius, known)
    found = solve_active(rows, radius, sides)
    np.testing.assert_allclose(found, known, rtol=1e-8)
    dual = solve_multipliers(rows, sides, found)
    loss = rows.loss(rows.margins(known))
    assert bound(rows, radius, dual) == pytest.approx(loss, rel=1e-9)
    # A row that is not tight but taken for it has the multiplier of its side, and does not decide.
    margins = rows.margins(known)
    for k in (int(np.argmax(margins)), int(np.argmin(np.abs(margins - 0.5)))):
        more = sides._replace(tight=np.append(sides.tight, k))
        np.testing.assert_allclose(solve_active(rows, radius, more), known, rtol=1e-8)
        below = sides.below.copy()
        below[k] = False
        again = solve_multipliers(rows, more._replace(below=below), found)
        np.testing.assert_allclose(again, dual, atol=1e-12)


@pytest.mark.parametrize("radius", RADII)
def test_what_is_no_vertex_is_not_returned(radius, rng):
    rows = noisy(rng)
    sides = sides_at(rows, radius, optimum(rows, radius))
    assert solve_active(rows, radius, sides) is not None
    wrong = {
        "too few rows": sides._replace(tight=sides.tight[1:]),
        "no column": sides._replace(columns=sides.columns[:0], signs=sides.signs[:0]),
        "signs": sides._replace(signs=-sides.signs, binding=False),
        "a row that depends on another": sides._replace(
            tight=np.append(sides.tight[1:], sides.tight[1])
        ),
    }
    for name, given in wrong.items():
        assert solve_active(rows, radius, given) is None, name
    far = np.abs(optimum(rows, 50.0)).sum()
    beyond = sides_at(rows, 50.0, optimum(rows, 50.0))
    assert solve_active(rows, far * (1.0 - 1e-6), beyond) is None
    inside = solve_active(rows, far * (1.0 - 1e-12), beyond)
    assert np.abs(inside).sum() <= far * (1.0 - 1e-12) * (1.0 + 1e-15)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("near", [0.5, 1e-9])
def test_undecided_rows_are_solved_and_others_join(radius, near, rng, monkeypatch):
    rows, sizes, solve = noisy(rng), [], vertex._restricted_program
    monkeypatch.setattr(
        vertex, "_restricted_program", lambda *given: sizes.append(given[2].size) or solve(*given)
    )
    known = optimum(rows, radius)
    loss = rows.loss(rows.margins(known))
    coef, dual = solve_undecided(rows, radius, sides_at(rows, radius, known, near), loss + 1e-12)
    np.testing.assert_allclose(coef, known, rtol=1e-7)
    assert bound(rows, radius, dual) == pytest.approx(loss, rel=1e-4)
    # All rows taken for above the margin: those that are not join.
    nothing = sides_at(rows, radius, known)._replace(
        below=np.zeros(rows.n_rows, dtype=bool), undecided=np.arange(3)
    )
    coef, _ = solve_undecided(rows, radius, nothing, loss + 1e-12)
    assert rows.loss(rows.margins(coef)) == pytest.approx(loss, rel=1e-9)
    # One row on each side taken for the other side, and a tight row left out: few join.
    sides = sides_at(rows, radius, known)
    below, far = sides.below.copy(), np.argsort(rows.margins(known))
    below[far[[0, -1]]] = False, True
    sizes.clear()
    few = sides._replace(below=below, undecided=sides.tight[1:])
    coef, _ = solve_undecided(rows, radius, few, loss + 1e-12)
    assert rows.loss(rows.margins(coef)) == pytest.approx(loss, rel=1e-9)
    assert len(few.undecided) == sizes[0] < sizes[1] <= sizes[-1] < rows.n_rows


def test_without_a_program_nothing_is_found(monkeypatch, rng):
    rows = noisy(rng)
    monkeypatch.setattr(vertex, "_restricted_program", lambda *_: None)
    coef, dual = solve_undecided(rows, 1.0, sides_at(rows, 1.0, np.zeros(5)), 0.0)
    assert not coef.any()
    assert not dual.any()


@pytest.mark.parametrize("by_simplex", [False, True])
def test_the_smallest_separator_is_that_of_all_rows(by_simplex, rng, monkeypatch):
    X = rng.uniform(-1.0, 1.0, size=(8000, 6))
    truth = rng.normal(size=6)
    far = np.abs(X @ truth) > 0.1
    X, y = X[far], np.sign(X[far] @ truth)
    rows = HingeExamples(X, y, np.full(len(y), 1.0 / len(y)))
    if by_simplex:
        monkeypatch.setattr(vertex, "_NORM_TOLS", ())
    else:
        monkeypatch.setattr(vertex, "_smallest_program", None)
    # The rows of smallest margin at the start are not those that decide, so others join.
    sizes: list[int] = []
    solve = vertex._smallest_on
    monkeypatch.setattr(
        vertex,
        "_smallest_on",
        lambda rows, index, at: sizes.append(index.size) or solve(rows, index, at),
    )
    found = smallest_separator(rows, 30.0 * truth * [1.0, 0.8, 1.2, 1.0, 0.9, 1.1])
    assert sizes == sorted(set(sizes))
    # Only rows below the margin join.
    assert sizes[0] == 500 < sizes[-1] < 600
    A = rows.take(slice(None))
    known = linprog(np.ones(12), A_ub=np.hstack([-A, A]), b_ub=-np.ones(len(A)), method="highs")
    assert np.abs(found).sum() == pytest.approx(known.fun, rel=1e-9)
    margins = rows.margins(found)
    assert margins.min() >= 1.0 - 1e-9
    assert np.count_nonzero(margins < 1.0 + 1e-9) >= 6


@pytest.mark.parametrize("gamma", [0.5, 0.02])
def test_usual_problems_need_no_simplex_method(gamma, monkeypatch):
    monkeypatch.setattr(vertex, "linprog", None)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = noisy(rng, 80, 6)
        size = 10.0 ** rng.uniform(-3, 3)
        found = solve_separator(
            size * rows.features, rows.labels, gamma=size * gamma, sample_weight=rows.weights
        )
        assert found.vertex
        assert found.gap <= 1e-6 * found.objective
        separable = np.sign(rows.features @ rng.normal(size=6))
        found = solve_separator(size * rows.features, separable, gamma=1e-4 * size)
        assert found.objective <= 1e-9
        tight = np.abs(rows.features @ found.coef * size) < 1.0 + 1e-8
        assert np.count_nonzero(tight) >= np.count_nonzero(found.coef)


def test_rows_that_cannot_be_separated_have_no_smallest_separator():
    rows = HingeExamples(np.array([[1.0], [-1.0]]), np.ones(2), np.full(2, 0.5))
    assert vertex._smallest_program(rows, np.arange(2)) is None
    assert smallest_separator(rows, np.ones(1)) is None


def test_a_vertex_within_the_tolerance_of_a_program_becomes_exact(rng):
    rows = noisy(rng)
    for radius in RADII:
        known = optimum(rows, radius)
        near = known * (1.0 + 1e-8 * rng.normal(size=5))
        found = vertex._sharpen(rows, radius, np.arange(rows.n_rows), near)
        np.testing.assert_allclose(found, known, rtol=1e-11)
        assert np.abs(found).sum() <= radius * (1.0 + 1e-15)
    zero = np.zeros(5)
    assert vertex._sharpen(rows, 1.0, np.arange(rows.n_rows), zero) is zero
    # No vertex is near: the point is only moved into the ball.
    outside = np.full(5, 0.2 + 1e-8)
    found = vertex._sharpen(rows, 1.0, np.arange(rows.n_rows), outside)
    np.testing.assert_allclose(found, np.full(5, 0.2), rtol=1e-12)
