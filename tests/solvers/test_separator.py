"""The separator is an optimal vertex of its linear program, which HiGHS solves too."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from slts.solvers import separator, solve_separator_path
from slts.solvers._solvers import L1BallSystem
from slts.solvers.hinge import HingeRows
from tests.data import solve_separator
from tests.solvers.problems import hinge_rows, linear_program, smallest_norm

GAMMAS = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]


def assert_optimal_vertex(solution, K, labels, weight=None):
    weight = np.ones(len(labels)) if weight is None else weight
    weight = weight / weight.sum()
    gamma, coef = solution.gamma, solution.coef
    _, expected = linear_program(K * labels[:, None], weight, 1.0 / gamma)
    margins = labels * (K @ coef)
    objective = weight @ np.maximum(1.0 - margins, 0.0)
    assert solution.converged
    assert solution.vertex
    assert solution.objective == pytest.approx(objective, rel=1e-9, abs=1e-12)
    assert abs(solution.objective - expected) <= 1e-6 * max(expected, 1e-3)
    assert solution.dual <= expected + 1e-7 * max(expected, 1e-3)
    assert solution.gap <= 1e-6 * max(solution.objective, 1e-6)
    norm = np.abs(coef).sum()
    assert norm <= (1.0 + 1e-12) / gamma
    # A basic solution: the constraints active at it determine its non-zero weights.
    used = np.flatnonzero(coef)
    if used.size:
        active = K[np.abs(margins - 1.0) < 1e-7][:, used] / np.abs(K).max()
        if norm > (1.0 - 1e-8) / gamma:
            active = np.vstack([active, np.sign(coef[used])])
        assert active.shape[0] >= used.size
        assert np.linalg.matrix_rank(active, tol=1e-11) == used.size


def noisy(rng, m, n):
    K = np.tanh(rng.normal(size=(m, n)) + rng.normal(size=(m, 1)))
    return K, np.where(K @ rng.normal(size=n) + rng.normal(size=m) > 0, 1.0, -1.0)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 1), (2, 3), (30, 5), (30, 60), (300, 40)])
def test_path_agrees_with_the_full_program_at_every_gamma(rng, m, n):
    K, labels = noisy(rng, m, n)
    order = np.array(GAMMAS)[rng.permutation(6)].tolist()
    path = solve_separator_path(K, labels, gammas=order)
    assert [solution.gamma for solution in path] == order
    for solution in path:
        assert_optimal_vertex(solution, K, labels)
    objectives = [path[order.index(gamma)].objective for gamma in GAMMAS]
    assert (np.diff(objectives) >= -1e-12).all()


DEGENERATE = {
    "duplicate rows": lambda K, y: (K[np.arange(60) // 4], y[np.arange(60) // 4]),
    "opposite labels": lambda K, y: (np.vstack([K, K]), np.concatenate([y, -y])),
    "duplicate columns": lambda K, y: (K[:, np.arange(12) // 3], y),
    "opposite columns": lambda K, y: (np.hstack([K, -K]), y),
    "zero columns": lambda K, y: (K * (np.arange(12) % 2), y),
    "all zero": lambda K, y: (np.zeros_like(K), y),
    "constant": lambda K, y: (np.full_like(K, 0.7), y),
    "rank one": lambda K, y: (np.outer(K[:, 0], K[0]), y),
    "integers": lambda K, y: (np.round(3 * K), y),
    "one class": lambda K, y: (K, np.ones(60)),
    "separable": lambda K, y: (K, np.where(K @ np.arange(1.0, 13.0) > 0, 1.0, -1.0)),
}


@pytest.mark.parametrize("kind", DEGENERATE)
def test_degenerate_data_still_give_an_optimal_vertex(rng, kind):
    K, labels = DEGENERATE[kind](*noisy(rng, 60, 12))
    for solution in solve_separator_path(K, labels, gammas=GAMMAS):
        assert_optimal_vertex(solution, K, labels)
    if kind == "separable":
        small, smaller = solve_separator_path(K, labels, gammas=[1e-5, 1e-6])
        assert small.objective <= 1e-12
        np.testing.assert_array_equal(small.coef, smaller.coef)
        norm = np.abs(small.coef).sum()
        assert norm == pytest.approx(smallest_norm(K * labels[:, None]), rel=1e-6)


@pytest.mark.parametrize("excess", [5e-8, 2e-8])
def test_a_row_that_is_almost_tight_does_not_hide_the_smallest_separator(excess):
    # The simplex method, whose tolerance is 1e-7, does not tell the third row from a tight one.
    K = np.array([[0.9, 0.1], [-0.3, 1.3], [0.25, 0.75 + excess]])
    solution = solve_separator(K, np.ones(3), gamma=0.5)
    assert solution.converged
    assert solution.vertex
    np.testing.assert_allclose(solution.coef, 1.0, rtol=1e-12)
    assert solution.objective < 1e-15


@settings(max_examples=60)
@given(data=st.data())
def test_small_problems_agree_with_the_full_program(data):
    m, n = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 5))
    entries = st.integers(-4, 4).map(lambda value: value / 4.0)
    K = data.draw(arrays(np.float64, (m, n), elements=entries))
    labels = data.draw(arrays(np.float64, m, elements=st.sampled_from([-1.0, 1.0])))
    weight = data.draw(arrays(np.float64, m, elements=st.sampled_from([0.5, 1.0, 3.0])))
    for solution in solve_separator_path(K, labels, gammas=[0.01, 0.3, 2.0], sample_weight=weight):
        assert_optimal_vertex(solution, K, labels, weight)


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
def test_scaling_similarities_scales_gamma(rng, unit):
    K, labels = noisy(rng, 80, 10)
    plain = solve_separator(K, labels, gamma=0.05)
    scaled = solve_separator(unit * K, labels, gamma=0.05 * unit)
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-9)
    np.testing.assert_allclose(unit * scaled.coef, plain.coef, rtol=1e-6, atol=1e-9)


def test_similarities_that_cannot_be_inverted_are_zero(rng):
    K, labels = rng.normal(size=(12, 4)), np.tile([1.0, -1.0], 6)
    solution = solve_separator(1e-311 * K, labels, gamma=1e-2)
    assert solution.objective == pytest.approx(1.0)
    assert np.isfinite(solution.coef).all()


def test_weights_act_as_repetitions_and_zero_as_absence(rng):
    K, labels = noisy(rng, 40, 6)
    weight = rng.integers(0, 3, size=40)
    weighted = solve_separator(K, labels, gamma=0.1, sample_weight=weight)
    repeated = solve_separator(np.repeat(K, weight, 0), np.repeat(labels, weight), gamma=0.1)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-8)


def test_gamma_above_every_similarity_uses_one_landmark(rng):
    K, labels = noisy(rng, 50, 9)
    solution = solve_separator(K, labels, gamma=1.01 * np.abs(K).max())
    assert (np.count_nonzero(solution.coef), solution.n_iter) == (1, 0)
    assert_optimal_vertex(solution, K, labels)


def test_the_simplex_method_repairs_too_few_iterations(rng):
    K, labels = noisy(rng, 300, 40)
    repaired = solve_separator(K, labels, gamma=0.01, max_iter=2)
    assert_optimal_vertex(repaired, K, labels)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.inf, np.nan])
def test_gamma_must_be_positive_and_finite(gamma):
    with pytest.raises(ValueError, match="'gamma'"):
        solve_separator(np.ones((2, 1)), [1, -1], gamma=gamma)


# A small radius binds, a large one does not.
RADII = [2.0, 50.0]


def optimum(rows, radius):
    return linear_program(rows.signed, rows.weights, radius)[0]


def bound(rows, radius, dual):
    assert dual.min() >= 0.0
    assert (dual <= rows.weights).all()
    return float(dual.sum() - radius * np.abs(rows.combine(dual)).max())


def sides_at(rows, radius, coef, near=1e-9):
    """Return the sides of a vertex; rows `near` the margin are undecided."""
    margins, columns = rows.margins(coef), np.flatnonzero(coef)
    away = np.abs(margins - 1.0)
    binding = bool(np.abs(coef).sum() > radius * (1.0 - 1e-9))
    active = separator.ActiveSet(
        np.flatnonzero(away < 1e-9), columns, np.sign(coef[columns]), binding
    )
    return separator.Sides(active, margins < 1.0 - 1e-9, np.flatnonzero(away < near))


def assert_same_sides(one, other):
    for a, b in zip((*one.active, *one[1:]), (*other.active, *other[1:]), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("radius", RADII)
def test_an_interior_solution_shows_the_sides_of_the_vertex(radius, rng):
    rows = hinge_rows(rng)
    system = L1BallSystem(rows.signed, rows.weights, radius)
    system.minimise(tol=1e-9, max_iter=100)
    sides = separator.read_sides(rows, radius, system)
    known = sides_at(rows, radius, optimum(rows, radius))
    assert known.active.binding == (radius == 2.0)
    ordered = sides.active._replace(tight=np.sort(sides.active.tight))
    assert_same_sides(sides._replace(active=ordered), known)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("steps", [3, 5])
def test_sides_do_not_depend_on_the_units_of_rows_and_weights(radius, steps, rng):
    rows, m = hinge_rows(rng), 60
    system = L1BallSystem(rows.signed, rows.weights, radius)
    # Few steps: many sides are not yet clear.
    system.minimise(tol=0.0, max_iter=steps)
    sides = separator.read_sides(rows, radius, system)
    assert 0 < sides.active.tight.size < sides.undecided.size
    for size, weight in ((1e4, 1.0), (1e-4, 1.0), (1.0, 1e4), (1.0, 1e-4)):
        other = HingeRows(size * rows.signed, weight * rows.weights)
        primal, dual = system.primal.copy(), weight * system.dual
        primal[2 * m :] /= size
        dual[2 * m :] *= size
        scaled = SimpleNamespace(primal=primal, dual=dual, coef=system.coef / size)
        assert_same_sides(separator.read_sides(other, radius / size, scaled), sides)


@pytest.mark.parametrize("radius", RADII)
def test_tight_rows_and_columns_determine_vertex_and_multipliers(radius, rng):
    rows = hinge_rows(rng)
    known = optimum(rows, radius)
    sides = sides_at(rows, radius, known)
    coef = separator.solve_active(rows, radius, sides.active)
    np.testing.assert_allclose(coef, known, rtol=1e-8)
    dual = separator.solve_multipliers(rows, sides, coef)
    margins = rows.margins(known)
    assert bound(rows, radius, dual) == pytest.approx(rows.loss(margins), rel=1e-9)
    # A row that is not tight but taken for it has the multiplier of its side, and does not decide.
    for k in (int(np.argmax(margins)), int(np.argmin(np.abs(margins - 0.5)))):
        more = sides.active._replace(tight=np.append(sides.active.tight, k))
        np.testing.assert_allclose(separator.solve_active(rows, radius, more), known, rtol=1e-8)
        below = sides.below.copy()
        below[k] = False
        again = separator.solve_multipliers(
            rows, separator.Sides(more, below, sides.undecided), coef
        )
        np.testing.assert_allclose(again, dual, atol=1e-12)


@pytest.mark.parametrize("radius", RADII)
def test_what_is_no_vertex_is_not_returned(radius, rng):
    rows = hinge_rows(rng)
    active = sides_at(rows, radius, optimum(rows, radius)).active
    wrong = {
        "too few rows": {"tight": active.tight[1:]},
        "no column": {"columns": active.columns[:0], "signs": active.signs[:0]},
        "signs": {"signs": -active.signs, "binding": False},
        "dependent rows": {"tight": np.append(active.tight[1:], active.tight[1])},
    }
    for name, changes in wrong.items():
        assert separator.solve_active(rows, radius, active._replace(**changes)) is None, name
    coef = optimum(rows, 50.0)
    norm, beyond = np.abs(coef).sum(), sides_at(rows, 50.0, coef).active
    assert separator.solve_active(rows, norm * (1.0 - 1e-6), beyond) is None
    inside = separator.solve_active(rows, norm * (1.0 - 1e-12), beyond)
    assert np.abs(inside).sum() <= norm * (1.0 - 1e-12) * (1.0 + 1e-15)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("case", ["clear", "many undecided", "nothing known", "wrong sides"])
def test_undecided_rows_are_solved_and_others_join(radius, case, rng):
    rows = hinge_rows(rng)
    known = optimum(rows, radius)
    margins = rows.margins(known)
    loss = rows.loss(margins)
    sides = sides_at(rows, radius, known, near=0.5 if case == "many undecided" else 1e-9)
    if case == "nothing known":
        # All rows taken for above the margin.
        sides = sides._replace(below=np.zeros(60, dtype=bool), undecided=np.arange(3))
    elif case == "wrong sides":
        # One row on each side taken for the other side, and a tight row left out.
        below, order = sides.below.copy(), np.argsort(margins)
        below[order[[0, -1]]] = False, True
        sides = sides._replace(below=below, undecided=sides.active.tight[1:])
    coef, dual = separator.solve_undecided(rows, radius, sides, loss + 1e-12)
    np.testing.assert_allclose(coef, known, rtol=1e-7)
    assert rows.loss(rows.margins(coef)) == pytest.approx(loss, rel=1e-9)
    assert bound(rows, radius, dual) == pytest.approx(loss, rel=1e-4)


def test_the_smallest_separator_is_that_of_all_rows(rng):
    X = rng.uniform(-1.0, 1.0, size=(3000, 6))
    truth = rng.normal(size=6)
    X = X[np.abs(X @ truth) > 0.1]
    rows = HingeRows.build(X, np.sign(X @ truth), None, "X")
    start = 30.0 * truth * [1.0, 0.8, 1.2, 1.0, 0.9, 1.1]
    expected = smallest_norm(rows.signed)
    for coef in (separator.smallest_separator(rows, start), separator._smallest_program(rows)):
        assert np.abs(coef).sum() == pytest.approx(expected, rel=1e-9)
        margins = rows.margins(coef)
        assert margins.min() >= 1.0 - 1e-9
        assert np.count_nonzero(margins < 1.0 + 1e-9) >= 6
    # Rows that cannot be separated have none.
    opposite = HingeRows(np.array([[1.0], [-1.0]]), np.full(2, 0.5))
    assert separator.smallest_separator(opposite, np.ones(1)) is None


@pytest.mark.parametrize("gamma", [0.5, 0.02])
def test_usual_problems_need_no_simplex_method(gamma, monkeypatch):
    monkeypatch.setattr(separator, "linprog", None)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows, size = hinge_rows(rng, 80, 6), 10.0 ** rng.uniform(-3, 3)
        ones, weights = np.ones(80), rows.weights
        solution = solve_separator(size * rows.signed, ones, gamma=size * gamma,
                                   sample_weight=weights)  # fmt: skip
        assert solution.vertex
        assert solution.gap <= 1e-6 * solution.objective
        separable = np.sign(rows.signed @ rng.normal(size=6))
        solution = solve_separator(size * rows.signed, separable, gamma=1e-4 * size)
        assert solution.objective <= 1e-9
        tight = np.abs(rows.signed @ solution.coef * size) < 1.0 + 1e-8
        assert np.count_nonzero(tight) >= np.count_nonzero(solution.coef)
