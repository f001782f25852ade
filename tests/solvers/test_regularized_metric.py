"""Metrics under other penalties: gaps are certificates, solvers agree, shapes are as promised."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning

from slts.solvers import REGULARIZERS, penalties, solve_metric_path
from slts.solvers.hinge import HingeRows
from slts.solvers.penalties import L1, PENALTIES, Nuclear, Semidefinite
from tests.solvers.problems import metric_problem

OTHERS = [name for name in REGULARIZERS if name != "frobenius"]
STRENGTHS = [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6]
TOL = 1e-4


def problem(kind, d=4):
    return metric_problem(kind, np.random.default_rng(0), d=d)


KINDS = ["noise", "separable", "few rows", "duplicates", "zero rows", "one class", "all zero",
         "one channel"]  # fmt: skip


def solve(Z, labels, strength, regularizer, **options):
    pairs = [(1.0, strength)]
    return solve_metric_path(Z, labels, pairs=pairs, regularizer=regularizer, **options)[0]


def value(metric, Z, labels, gamma, lam, regularizer, weights=None):
    margins = labels * np.einsum("iuv,uv->i", Z, metric) / gamma
    loss = np.average(np.maximum(1.0 - margins, 0.0), weights=weights)
    return loss + PENALTIES[regularizer](lam, len(metric)).value(np.asarray(metric).ravel())


def l1_optimum(Z, labels, lam):
    """The linear program in positive and negative parts, and slacks."""
    m = len(Z)
    X = labels[:, None] * Z.reshape(m, -1)
    p = X.shape[1]
    solution = linprog(
        np.concatenate([np.full(2 * p, lam), np.full(m, 1.0 / m)]),
        A_ub=np.hstack([-X, X, -np.eye(m)]), b_ub=-np.ones(m), bounds=(0.0, None), method="highs",
    )  # fmt: skip
    assert solution.status == 0
    return solution.fun


def factored_optimum(Z, labels, lam, regularizer, seed=0):
    """Minimum over factors: M = FG' with nuclear norm min (|F|^2 + |G|^2)/2, or M = FF'.

    With as many columns as channels a local minimum of the smoothed problem is a global one.
    """
    m, d, _ = Z.shape
    rng = np.random.default_rng(seed)
    two = regularizer == "nuclear"

    def parts(x):
        F = x[: d * d].reshape(d, d)
        return F, (x[d * d :].reshape(d, d) if two else F)

    def objective(x, width):
        F, G = parts(x)
        M = F @ G.T
        short = 1.0 - labels * np.einsum("iuv,uv->i", Z, M)
        loss = width * np.logaddexp(0.0, short / width).mean()
        slope = -labels / (1.0 + np.exp(-np.clip(short / width, -500, 500))) / m
        D = np.einsum("i,iuv->uv", slope, Z)
        if two:
            penalty = 0.5 * lam * (F**2).sum() + 0.5 * lam * (G**2).sum()
            return loss + penalty, np.concatenate([(D @ G + lam * F).ravel(),
                                                   (D.T @ F + lam * G).ravel()])  # fmt: skip
        D = D + 2.0 * lam * M
        return loss + lam * (M**2).sum(), ((D + D.T) @ F).ravel()

    x = rng.normal(size=(2 if two else 1) * d * d)
    for width in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
        x = minimize(objective, x, args=(width,), jac=True, method="L-BFGS-B",
                     options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}).x  # fmt: skip
    F, G = parts(x)
    return value(F @ G.T, Z, labels, 1.0, lam, regularizer)


@pytest.mark.parametrize("regularizer", OTHERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strength", STRENGTHS)
def test_every_solution_comes_with_a_closed_gap(regularizer, kind, strength):
    Z, labels = problem(kind)
    solution = solve(Z, labels, strength, regularizer)
    objective = value(solution.metric, Z, labels, 1.0, strength, regularizer)
    assert solution.objective == pytest.approx(objective, rel=1e-9, abs=1e-14)
    assert solution.converged
    assert -1e-12 <= solution.gap <= TOL * max(solution.objective, 1e-9)
    assert solution.objective <= 1.0 + 1e-12


@pytest.mark.parametrize("kind", ["noise", "separable", "few rows", "duplicates"])
@pytest.mark.parametrize("strength", [1e-1, 1e-2, 1e-3, 1e-5])
def test_the_l1_optimum_is_that_of_the_linear_program(kind, strength):
    Z, labels = problem(kind)
    solution = solve(Z, labels, strength, "l1")
    optimum = l1_optimum(Z, labels, strength)
    assert solution.dual <= optimum * (1 + 1e-9) + 1e-12
    assert optimum <= solution.objective * (1 + 1e-9)
    assert solution.objective <= optimum * (1 + TOL)


@pytest.mark.parametrize("regularizer", ["nuclear", "mahalanobis"])
@pytest.mark.parametrize("kind", ["noise", "separable", "few rows"])
@pytest.mark.parametrize("strength", [1e-1, 1e-2, 1e-3])
def test_matrix_optima_are_those_of_a_descent_over_factors(regularizer, kind, strength):
    Z, labels = problem(kind, d=3)
    solution = solve(Z, labels, strength, regularizer)
    descent = factored_optimum(Z, labels, strength, regularizer)
    # The bound is below whatever another method finds, which is not far from it.
    assert solution.dual <= descent * (1 + 1e-9)
    assert solution.objective <= descent * (1 + TOL)
    assert descent <= solution.objective * (1 + 2e-3)


def planted(d=6, m=300, seed=0):
    """Labels that depend on one entry and one direction only, with noise."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, d, d)) / d
    labels = np.sign(Z[:, 0, 1] + 0.05 * rng.normal(size=m))
    return Z, labels


@pytest.mark.parametrize("strength", [1e-1, 3e-2, 1e-2])
def test_each_penalty_gives_the_shape_it_is_chosen_for(strength):
    Z, labels = planted()
    rank = {r: np.linalg.matrix_rank(solve(Z, labels, strength, r).metric) for r in REGULARIZERS}
    entries = {r: np.count_nonzero(solve(Z, labels, strength, r).metric) for r in REGULARIZERS}
    assert rank["nuclear"] < rank["frobenius"] == 6
    assert entries["l1"] < entries["frobenius"] == 36
    metric = solve(Z, labels, strength, "mahalanobis").metric
    np.testing.assert_array_equal(metric, metric.T)
    assert np.linalg.eigvalsh(metric)[0] >= -1e-12 * np.abs(metric).max()


@pytest.mark.parametrize("regularizer", OTHERS)
def test_beyond_the_largest_useful_penalty_the_metric_is_known_without_iterations(regularizer):
    Z, labels = problem("noise")
    mean = np.einsum("i,iuv->uv", labels, Z) / len(Z)
    solution = solve(Z, labels, 50.0, regularizer)
    assert solution.n_iter == 0
    if regularizer == "mahalanobis":
        w, V = np.linalg.eigh(0.5 * (mean + mean.T))
        expected = (V * np.maximum(w, 0.0)) @ V.T / 100.0
        np.testing.assert_allclose(solution.metric, expected, atol=1e-15)
    else:
        assert not solution.metric.any()


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_weights_are_repetitions_and_units_do_not_matter(regularizer):
    Z, labels = problem("noise")
    counts = np.random.default_rng(3).integers(0, 4, size=len(Z))
    weighted = solve(Z, labels, 1e-2, regularizer, sample_weight=counts, tol=1e-6)
    repeated = solve(Z.repeat(counts, axis=0), labels.repeat(counts), 1e-2, regularizer, tol=1e-6)
    assert weighted.gap <= 1e-6 * weighted.objective
    assert weighted.objective == pytest.approx(repeated.objective, rel=2e-6)
    # Only the product of gamma (or its square) and lam matters.
    degree = 1 if regularizer in ("nuclear", "l1") else 2
    pairs = [(0.1, 0.1), (0.01, 0.1 * 10.0**degree)]
    one, other = solve_metric_path(Z, labels, pairs=pairs, regularizer=regularizer)
    assert one.objective == other.objective
    np.testing.assert_allclose(one.metric / 0.1, other.metric / 0.01, rtol=1e-12)
    for factor, dtype in ((1e-6, np.float64), (1e6, np.float64), (1.0, np.float32)):
        scaled = solve((factor * Z).astype(dtype), labels, 1e-3 * factor**degree, regularizer)
        plain = solve(Z, labels, 1e-3, regularizer)
        assert scaled.converged
        assert scaled.objective == pytest.approx(plain.objective, rel=2 * TOL)


@pytest.mark.parametrize("regularizer", OTHERS)
def test_an_open_gap_warns_and_says_how_open(regularizer):
    Z, labels = problem("noise")
    with pytest.warns(ConvergenceWarning, match=f"{regularizer} metric .* duality gap of"):
        solution = solve(Z, labels, 1e-4, regularizer, max_iter=2)
    assert not solution.converged
    assert solution.gap > TOL * solution.objective
    objective = value(solution.metric, Z, labels, 1.0, 1e-4, regularizer)
    assert solution.objective == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize(("change", "message"), [
    ({"regularizer": "ridge"}, "'regularizer'"), ({"regularizer": None}, "'regularizer'"),
    ({"pairs": [(0.0, 1.0)]}, "'gamma' must be positive"),
    ({"pairs": [(1.0, np.inf)]}, "'lam' must be positive"), ({"Z": np.zeros((60, 3, 4))}, "'Z'"),
    ({"Z": np.full((60, 4, 4), np.nan)}, "'Z'"), ({"labels": np.zeros(60)}, "'labels'"),
])  # fmt: skip
def test_what_makes_no_sense_is_named(change, message):
    Z, labels = problem("noise")
    arguments = {"Z": Z, "labels": labels, "pairs": [(1.0, 1.0)], "regularizer": "l1"} | change
    Z, labels = arguments.pop("Z"), arguments.pop("labels")
    with pytest.raises(ValueError, match=message):
        solve_metric_path(Z, labels, **arguments)


PENALTY_LIST = [L1(0.3, 4), Nuclear(0.3, 4), Semidefinite(0.3, 4)]


@pytest.mark.parametrize("penalty", PENALTY_LIST, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("rank", [0, 2, 4])
@pytest.mark.parametrize("width", [1.0, 1e-2])
def test_derivatives_of_the_smoothed_penalties_are_those_of_differences(penalty, rank, width):
    rng = np.random.default_rng(4)
    F, G = rng.normal(size=(4, rank)), rng.normal(size=(4, rank))
    W = F @ F.T + 0.5 * np.eye(4) if isinstance(penalty, Semidefinite) else F @ G.T
    coef, step = W.ravel(), 1e-4
    smooth = penalty.smooth(coef, width)
    for _ in range(5):
        D = rng.normal(size=(4, 4))
        D = (D + D.T if isinstance(penalty, Semidefinite) else D).ravel()
        up, down = (penalty.smooth(coef + s * step * D, width).value for s in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(smooth.gradient @ D, rel=1e-4, abs=1e-6)
        coordinates = smooth.frame.project(D[np.newaxis])[0]
        second = (up + down - 2 * smooth.value) / step**2
        assert second == pytest.approx(smooth.curvature @ coordinates**2, rel=1e-3, abs=1e-5)
        np.testing.assert_allclose(smooth.frame.lift(coordinates), D, atol=1e-12)


@pytest.mark.parametrize("width", [1.0, 1e-2])
def test_slopes_and_curvatures_of_the_smoothed_hinge_are_those_of_differences(width):
    margins, weights = np.array([-2.0, 0.5, 1.0, 1.01, 4.0]), np.array([0.1, 0.3, 0.2, 0.15, 0.25])
    rows, step = HingeRows(np.ones((5, 1)), weights), 1e-4 * width
    slopes, curvatures = penalties._hinge_slopes(rows, margins, width)
    for k, side in enumerate(step * np.eye(5)):
        up, down = (penalties._smooth_loss(rows, margins + s * side, width) for s in (1, -1))
        assert (down - up) / (2 * step) == pytest.approx(slopes[k], rel=1e-6, abs=1e-9)
    up, down = (penalties._hinge_slopes(rows, margins + s * step, width)[0] for s in (1, -1))
    np.testing.assert_allclose((down - up) / (2 * step), curvatures, rtol=1e-6, atol=1e-9)
    # Without a width it is the hinge.
    assert penalties._smooth_loss(rows, margins, 1e-12) == pytest.approx(rows.loss(margins))


def test_a_newton_step_solves_the_equations_of_penalty_and_rows(rng):
    Z, weights = rng.normal(size=(30, 9)), rng.dirichlet(np.ones(30))
    rows, penalty, width = HingeRows(Z, weights), L1(0.3, 3), 0.5
    coef = rng.normal(size=9)
    smooth = penalty.smooth(coef, width)
    slopes, curvatures = penalties._hinge_slopes(rows, rows.margins(coef), width)
    step = penalties._newton(rows, smooth, slopes, curvatures)
    slope = smooth.gradient - slopes @ Z
    known = -np.linalg.solve(np.diag(smooth.curvature) + (Z.T * curvatures) @ Z, slope)
    np.testing.assert_allclose(step.coef, known, rtol=1e-9)
    np.testing.assert_allclose(step.multipliers, -curvatures * (Z @ known), rtol=1e-9)
    assert step.promise == pytest.approx(-slope @ known)
