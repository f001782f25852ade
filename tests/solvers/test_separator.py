from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from slts.solvers import SeparatorSolution, separator, solve_separator, solve_separator_path

GAMMAS = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]


def full_program(K: np.ndarray, labels: np.ndarray, gamma: float, weight: np.ndarray) -> float:
    """Optimum of the whole linear program with split variables and slacks, by HiGHS."""
    unit = np.abs(K).max() or 1.0
    A = K * labels[:, None] / unit
    m, n = A.shape
    upper = np.block([[-A, A, -np.eye(m)], [np.ones((1, 2 * n)), np.zeros((1, m))]])
    result = linprog(
        np.concatenate([np.zeros(2 * n), weight / weight.mean()]),
        A_ub=upper,
        b_ub=np.append(-np.ones(m), unit / gamma),
        method="highs",
    )
    return float(result.fun) / m


def assert_optimal_vertex(
    solution: SeparatorSolution,
    K: np.ndarray,
    labels: np.ndarray,
    weight: npt.NDArray[np.float64] | None = None,
) -> None:
    weight = np.ones(len(labels)) if weight is None else weight
    gamma, coef = solution.gamma, solution.coef
    expected = full_program(K, labels, gamma, weight)
    margins = labels * (K @ coef)
    objective = np.average(np.maximum(1.0 - margins, 0.0), weights=weight)
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


def noisy_problem(rng: np.random.Generator, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    K = np.tanh(rng.normal(size=(m, n)) + rng.normal(size=(m, 1)))
    labels = np.where(K @ rng.normal(size=n) + rng.normal(size=m) > 0, 1.0, -1.0)
    return K, labels


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 1), (2, 3), (30, 5), (30, 60), (300, 40)])
def test_path_agrees_with_the_full_program_at_every_gamma(
    rng: np.random.Generator, m: int, n: int
) -> None:
    K, labels = noisy_problem(rng, m, n)
    for gamma, solution in zip(GAMMAS, solve_separator_path(K, labels, gammas=GAMMAS), strict=True):
        assert solution.gamma == gamma
        assert_optimal_vertex(solution, K, labels)


def degenerate(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    K, labels = noisy_problem(rng, 60, 12)
    if kind == "duplicate rows":
        repeat = rng.integers(15, size=60)
        return K[repeat], labels[repeat]
    if kind == "duplicate rows, opposite labels":
        return np.vstack([K, K]), np.concatenate([labels, -labels])
    if kind == "duplicate columns":
        return K[:, rng.integers(4, size=12)], labels
    if kind == "opposite columns":
        return np.hstack([K, -K]), labels
    if kind == "zero columns":
        return K * (np.arange(12) % 2), labels
    if kind == "all zero":
        return np.zeros_like(K), labels
    if kind == "constant":
        return np.full_like(K, 0.7), labels
    if kind == "rank one":
        return np.outer(K[:, 0], K[0]), labels
    if kind == "integers":
        return np.round(3 * K), labels
    if kind == "one class":
        return K, np.ones(60)
    if kind == "separable":
        return K, np.where(K @ np.arange(1.0, 13.0) > 0, 1.0, -1.0)
    raise AssertionError(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "duplicate rows",
        "duplicate rows, opposite labels",
        "duplicate columns",
        "opposite columns",
        "zero columns",
        "all zero",
        "constant",
        "rank one",
        "integers",
        "one class",
        "separable",
    ],
)
def test_degenerate_data_still_give_an_optimal_vertex(rng: np.random.Generator, kind: str) -> None:
    K, labels = degenerate(kind, rng)
    for solution in solve_separator_path(K, labels, gammas=GAMMAS):
        assert_optimal_vertex(solution, K, labels)


@pytest.mark.parametrize("excess", [5e-8, 2e-8])
def test_a_row_that_is_almost_tight_does_not_hide_the_smallest_separator(excess: float) -> None:
    # The simplex method, whose tolerance is 1e-7, does not tell the third row from a tight one.
    K = np.array([[0.9, 0.1], [-0.3, 1.3], [0.25, 0.75 + excess]])
    solution = solve_separator(K, np.ones(3), gamma=0.5)
    assert solution.converged
    assert solution.vertex
    np.testing.assert_allclose(solution.coef, 1.0, rtol=1e-12)
    assert solution.objective < 1e-15


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_small_problems_agree_with_the_full_program(data: st.DataObject) -> None:
    m, n = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 5))
    entries = st.integers(-4, 4).map(lambda value: value / 4.0)
    K = data.draw(arrays(np.float64, (m, n), elements=entries))
    labels = data.draw(arrays(np.float64, m, elements=st.sampled_from([-1.0, 1.0])))
    weight = data.draw(arrays(np.float64, m, elements=st.sampled_from([0.5, 1.0, 3.0])))
    for solution in solve_separator_path(K, labels, gammas=[0.01, 0.3, 2.0], sample_weight=weight):
        assert_optimal_vertex(solution, K, labels, weight)


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
def test_scaling_similarities_scales_gamma(rng: np.random.Generator, unit: float) -> None:
    K, labels = noisy_problem(rng, 80, 10)
    plain = solve_separator(K, labels, gamma=0.05)
    scaled = solve_separator(unit * K, labels, gamma=0.05 * unit)
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-9)
    np.testing.assert_allclose(unit * scaled.coef, plain.coef, rtol=1e-6, atol=1e-9)


def test_similarities_that_cannot_be_inverted_are_zero(rng: np.random.Generator) -> None:
    K, labels = rng.normal(size=(12, 4)), np.tile([1.0, -1.0], 6)
    found = solve_separator(1e-311 * K, labels, gamma=1e-2)
    assert found.objective == pytest.approx(1.0)
    assert np.isfinite(found.coef).all()


def test_weights_act_as_repetitions_and_zero_as_absence(rng: np.random.Generator) -> None:
    K, labels = noisy_problem(rng, 40, 6)
    weight = rng.integers(0, 3, size=40)
    weighted = solve_separator(K, labels, gamma=0.1, sample_weight=weight)
    repeated = solve_separator(np.repeat(K, weight, 0), np.repeat(labels, weight), gamma=0.1)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-8)


def test_gamma_above_every_similarity_uses_one_landmark(rng: np.random.Generator) -> None:
    K, labels = noisy_problem(rng, 50, 9)
    solution = solve_separator(K, labels, gamma=1.01 * np.abs(K).max())
    assert np.count_nonzero(solution.coef) == 1
    assert solution.n_iter == 0
    assert_optimal_vertex(solution, K, labels)


def test_separable_data_get_one_smallest_separator_for_all_small_gammas(
    rng: np.random.Generator,
) -> None:
    K, labels = degenerate("separable", rng)
    small, smaller = solve_separator_path(K, labels, gammas=[1e-5, 1e-6])
    assert small.objective <= 1e-12
    np.testing.assert_array_equal(small.coef, smaller.coef)
    n = K.shape[1]
    A = K * labels[:, None]
    smallest = linprog(np.ones(2 * n), A_ub=np.hstack([-A, A]), b_ub=-np.ones(len(A)))
    assert np.abs(small.coef).sum() == pytest.approx(smallest.fun, rel=1e-6)


def test_objective_never_falls_as_gamma_grows(rng: np.random.Generator) -> None:
    K, labels = noisy_problem(rng, 200, 20)
    solutions = solve_separator_path(K, labels, gammas=np.geomspace(1e-3, 3.0, 15).tolist())
    assert np.all(np.diff([solution.objective for solution in solutions]) >= -1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_are_solved_through_a_working_set(
    rng: np.random.Generator, dtype: type[np.floating]
) -> None:
    K, labels = noisy_problem(rng, 12000, 8)
    K = K.astype(dtype)
    path = solve_separator_path(K, labels, gammas=[0.01, 0.3])
    assert all(solution.converged for solution in path)
    assert all(solution.gap <= 1e-9 for solution in path)


def test_too_few_iterations_warn_and_the_result_says_so(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    K, labels = noisy_problem(rng, 300, 40)
    # The linear program behind the interior point would repair any start, so it is disabled too.
    monkeypatch.setattr("slts.solvers.vertex._restricted_program", lambda *_: None)
    with pytest.warns(ConvergenceWarning, match="gamma=0.01"):
        solution = solve_separator(K, labels, gamma=0.01, max_iter=2)
    assert not solution.converged
    assert not solution.vertex
    assert solution.gap > 1e-6 * solution.objective


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.inf, np.nan])
def test_gamma_must_be_positive_and_finite(gamma: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        solve_separator(np.ones((2, 1)), [1, -1], gamma=gamma)


def test_bad_shapes_labels_and_weights_are_named() -> None:
    with pytest.raises(ValueError, match="labels"):
        solve_separator(np.ones((2, 1)), [1, 0], gamma=1.0)
    with pytest.raises(ValueError, match="2-D"):
        solve_separator(np.ones(2), [1, -1], gamma=1.0)
    with pytest.raises(ValueError, match="sample_weight"):
        solve_separator(np.ones((2, 1)), [1, -1], gamma=1.0, sample_weight=[0.0, 0.0])
    with pytest.raises(ValueError, match="finite"):
        solve_separator(np.array([[np.nan], [1.0]]), [1, -1], gamma=1.0)


def test_a_solution_that_is_not_a_vertex_is_a_warning(monkeypatch, rng):
    K, labels = rng.normal(size=(40, 6)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    run = separator._SeparatorSolver._run
    # No vertex is found: the interior solution is returned.
    monkeypatch.setattr(separator._SeparatorSolver, "_cross_over", run)
    with pytest.warns(ConvergenceWarning, match=r"is not a vertex of its linear program"):
        found = solve_separator(K, labels, gamma=0.1)
    assert found.converged
    assert not found.vertex
