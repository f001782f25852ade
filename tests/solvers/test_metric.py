"""The metric of the paper's penalty: gaps are certificates, and other solvers agree."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from slts.solvers import solve_metric_path
from tests.data import solve_metric, solve_separator
from tests.solvers.problems import metric_problem

STRENGTHS = [1e3, 1.0, 0.1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9]


def objective(metric, Z, labels, gamma, lam):
    margins = labels * (Z.reshape(len(Z), -1) @ metric.ravel()) / gamma
    loss = float(np.maximum(1.0 - margins, 0.0).mean())
    return loss, loss + lam * float(np.sum(metric**2))


def assert_certified(solution, Z, labels, tol=1e-6):
    loss, value = objective(solution.metric, Z, labels, solution.gamma, solution.lam)
    # Rounding of margins equal to one is absolute, hence the absolute part.
    assert solution.objective == pytest.approx(value, rel=1e-9, abs=1e-14)
    assert solution.loss == pytest.approx(loss, rel=1e-6, abs=1e-9)
    assert solution.converged
    assert -1e-12 <= solution.gap <= tol * solution.objective
    assert solution.loss + 2.0 * solution.lam * np.sum(solution.metric**2) <= 1.0 + 1e-9


def reference_value(Z, labels, strength):
    """Optimum by sequential least squares on the primal with slacks, v = sqrt(strength) w."""
    X = Z.reshape(len(Z), -1) * labels[:, None] / np.sqrt(strength)
    m, p = X.shape
    gradient = np.append(np.zeros(p), np.full(m, 1.0 / m))
    result = minimize(
        lambda x: gradient @ x + x[:p] @ x[:p],
        np.append(np.zeros(p), np.ones(m)),
        jac=lambda x: gradient + 2.0 * np.append(x[:p], np.zeros(m)),
        bounds=[(None, None)] * p + [(0.0, None)] * m,
        constraints={
            "type": "ineq",
            "fun": lambda x: X @ x[:p] + x[p:] - 1.0,
            "jac": lambda _: np.hstack([X, np.eye(m)]),
        },
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    v = result.x[:p]
    return float(np.maximum(1.0 - X @ v, 0.0).mean() + v @ v)


@pytest.mark.parametrize("kind", [
    "noisy", "separable", "opposite duplicates", "duplicates", "zero rows", "all zero",
    "collinear", "ill-conditioned", "one class",
])  # fmt: skip
@pytest.mark.parametrize("shape", [(60, 3), (12, 6), (2, 2)])
def test_gap_is_certified_over_twelve_orders_of_magnitude(rng, kind, shape):
    Z, labels = metric_problem(kind, rng, *shape)
    for solution in solve_metric_path(Z, labels, pairs=[(1.0, lam) for lam in STRENGTHS]):
        assert_certified(solution, Z, labels)
        if kind == "opposite duplicates":
            np.testing.assert_allclose(solution.objective, 1.0, rtol=1e-6)


@pytest.mark.parametrize("kind", ["noisy", "separable", "collinear", "zero rows", "duplicates"])
@pytest.mark.parametrize("strength", [0.1, 1e-2, 1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("shape", [(30, 3), (6, 3)])
def test_optimum_agrees_with_sequential_least_squares(rng, kind, strength, shape):
    Z, labels = metric_problem(kind, rng, *shape)
    solution = solve_metric(Z, labels, gamma=1.0, lam=strength, tol=1e-7)
    expected = reference_value(Z, labels, strength)
    assert solution.objective <= expected * (1.0 + 1e-6)
    assert solution.objective == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("strength", [1e-1, 1e-2, 1e-3])
def test_optimum_agrees_with_liblinear(rng, strength):
    Z, labels = metric_problem("noisy", rng, 200, 3)
    C = 1.0 / (2.0 * strength * len(Z))
    how = {"tol": 1e-10, "max_iter": 1_000_000, "random_state": 0}
    machine = LinearSVC(loss="hinge", C=C, fit_intercept=False, **how)
    machine.fit(Z.reshape(len(Z), -1), labels)
    solution = solve_metric(Z, labels, gamma=1.0, lam=strength, tol=1e-8)
    _, value = objective(machine.coef_.reshape(3, 3), Z, labels, 1.0, strength)
    assert solution.objective == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(solution.metric.ravel(), machine.coef_[0], atol=1e-3)


def test_strong_penalty_has_a_closed_form(rng):
    Z, labels = metric_problem("noisy", rng)
    strength = 0.5 * np.max(np.sum(Z**2, axis=(1, 2)))
    solution = solve_metric(Z, labels, gamma=2.0, lam=strength / 4.0)
    mean = np.einsum("i,ijk->jk", labels, Z) / len(Z)
    np.testing.assert_allclose(solution.metric, mean * 2.0 / (2.0 * strength), rtol=1e-12)
    assert solution.n_iter == 0


@given(data=st.data())
def test_small_problems_are_certified(data):
    m, d = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    entries = st.integers(-4, 4).map(lambda value: value / 8.0)
    Z = data.draw(arrays(np.float64, (m, d, d), elements=entries))
    labels = data.draw(arrays(np.float64, m, elements=st.sampled_from([-1.0, 1.0])))
    lam = data.draw(st.sampled_from(STRENGTHS))
    assert_certified(solve_metric(Z, labels, gamma=1.0, lam=lam), Z, labels)


@pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-5])
@pytest.mark.parametrize("ratio", [0.1, 1.0])
def test_separator_fits_no_worse_than_the_metric_it_follows(rng, lam, ratio):
    # The weights l'/(n gamma) lie in the ball of the linear program when its gamma is no larger.
    gamma, signs = 0.3, np.where(np.arange(8) < 4, 1.0, -1.0)
    products = rng.normal(size=(50, 8, 3, 3)) / 6.0
    labels = np.where(rng.random(50) < 0.5, 1.0, -1.0)
    Z = np.einsum("j,ijab->iab", signs, products) / 8
    metric = solve_metric(Z, labels, gamma=gamma, lam=lam)
    similarities = np.einsum("ab,ijab->ij", metric.metric, products)
    separator = solve_separator(similarities, labels, gamma=ratio * gamma)
    assert separator.objective <= metric.loss + 1e-9


def test_too_few_iterations_warn_and_the_result_says_so(rng):
    Z, labels = metric_problem("noisy", rng)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        solution = solve_metric(Z, labels, gamma=1.0, lam=1e-4, max_iter=2)
    assert not solution.converged
    assert solution.gap > 1e-6 * solution.objective
    assert solution.loss + 2.0 * solution.lam * np.sum(solution.metric**2) <= 1.0 + 1e-9


def test_a_start_that_stalls_is_left_by_a_detour():
    # 27 series of 5 channels on which plain steps shrank to nothing at a few strengths.
    stalling = np.load(Path(__file__).parent / "data" / "stalling_metric.npz")
    for strength in 9e-7 * np.linspace(0.9, 1.1, 81):
        assert solve_metric(stalling["Z"], stalling["l"], gamma=1.0, lam=strength).converged


@pytest.mark.parametrize(
    ("gamma", "regularizer"), [(1e200, "frobenius"), (1e-200, "frobenius"), (1e-160, "nuclear")]
)
def test_a_strength_out_of_the_range_of_numbers_is_an_error(gamma, regularizer):
    Z = np.array([[[1.0, 0.0], [0.0, 0.5]], [[-1.0, 0.2], [0.3, 0.0]]])
    with pytest.raises(ValueError, match="parameters gamma="):
        solve_metric(Z, [1, -1], gamma=gamma, lam=1.0, regularizer=regularizer)
