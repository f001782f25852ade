"""The interior-point iteration itself; the problems it solves have tests of their own."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from slts.learning.hinge import HingeExamples
from slts.learning.interior import (
    Direction,
    Factor,
    L1BallSystem,
    SmallestNormSystem,
    SquaredNormSystem,
    System,
    minimise,
    weighted_gram,
)
from slts.learning.metric import MetricProblem
from slts.learning.separator import SeparatorProblem


class Underflow(System):
    """Pairs that underflow after a few steps: there is no finite direction from there on."""

    def __init__(self, broken):
        self.primal, self.dual, self.coef = np.ones(2), np.ones(2), np.zeros(1)
        self._broken, self._n_factored = broken, 0

    def values(self):
        gap = float(self.primal @ self.dual)
        return gap, 0.0

    def factor(self):
        self._n_factored += 1

    def direction(self, target):
        half = target / (2.0 * self.primal)
        parts = {"primal": half, "dual": half.copy(), "coef": np.zeros(1)}
        if self._n_factored == 3:
            parts[self._broken] = parts[self._broken] * np.nan
        return Direction(**parts)


@pytest.mark.parametrize("broken", ["primal", "dual", "coef"])
def test_a_direction_that_is_not_finite_ends_at_the_last_point(broken):
    system = Underflow(broken)
    assert minimise(system, tol=1e-12, max_iter=50) == 2
    for part in (system.primal, system.dual, system.coef):
        assert np.isfinite(part).all()


def make(name, rng):
    rows = HingeExamples(rng.normal(size=(9, 4)), np.ones(9), rng.dirichlet(np.ones(9)))
    start = rng.normal(size=4)
    if name == "squared norm":
        return SquaredNormSystem(MetricProblem(0.3), 0.3, rows, start), rows
    if name == "ball":
        return L1BallSystem(SeparatorProblem(2.5), 2.5, rows), rows
    return SmallestNormSystem(rows.features, start), rows


def primal_residuals(name, system, rows):
    """Return by how much the equations of margins, coefficients and radius do not hold."""
    m, n = rows.features.shape
    short = system.primal[m : 2 * m] if name != "smallest norm" else 0.0
    residuals = [rows.features @ system.coef - 1.0 - system.primal[:m] + short]
    if name != "squared norm":
        end, slack = (-1, system.primal[-1]) if name == "ball" else (None, 0.0)
        halves = system.primal[:end][-2 * n :]
        residuals += [system.coef - halves[:n] + halves[n:]]
        residuals += [halves.sum() + slack - 2.5] if name == "ball" else []
    return np.hstack(residuals)


def dual_residuals(name, system, rows):
    """Return by how much the equations of multipliers, gradient and prices do not hold."""
    m = rows.n_rows
    gradient = system.dual[:m] @ rows.features
    if name == "squared norm":
        prices = [gradient - 2.0 * 0.3 * system.coef]
    elif name == "ball":
        price, halves = system.dual[-1], system.dual[2 * m : -1]
        prices = [np.hstack([price - gradient, price + gradient]) - halves]
    else:
        return np.hstack([1.0 - gradient, 1.0 + gradient]) - system.dual[m:]
    return np.hstack([system.dual[:m] + system.dual[m : 2 * m] - rows.weights, *prices])


SYSTEMS = ["squared norm", "ball", "smallest norm"]


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_direction_solves_the_newton_equations(name, rng):
    system, rows = make(name, rng)
    m, n = rows.features.shape
    # No equation holds, except those that all points satisfy.
    system.primal = system.primal * rng.uniform(0.5, 2.0, size=system.primal.shape)
    system.dual = system.dual * rng.uniform(0.5, 1.5, size=system.dual.shape)
    if name != "smallest norm":
        system.dual[m : 2 * m] = rows.weights - system.dual[:m]
    if name != "squared norm":
        halves = system.primal[2 * m : -1] if name == "ball" else system.primal[m:]
        system.coef = halves[:n] - halves[n:]
    system.values()
    system.factor()
    target = rng.normal(size=system.primal.shape)
    step = system.direction(target)
    products = system.primal * step.dual + system.dual * step.primal
    np.testing.assert_allclose(products, target, rtol=1e-9, atol=1e-9)
    before = primal_residuals(name, system, rows), dual_residuals(name, system, rows)
    along = (0.25, 0.25 if system.coupled else 0.5)
    system.advance(step, *along)
    after = primal_residuals(name, system, rows), dual_residuals(name, system, rows)
    for old, new, length in zip(before, after, along, strict=True):
        assert np.abs(old).max() > 0.01
        np.testing.assert_allclose(new, (1.0 - length) * old, atol=1e-9)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_first_point_is_interior_and_most_of_its_equations_hold(name, rng):
    system, rows = make(name, rng)
    assert system.primal.min() > 0.0
    assert system.dual.min() > 0.0
    m = rows.n_rows
    if name == "smallest norm":
        # The halves share the start and its mean size; products of rows are that size.
        np.testing.assert_allclose(primal_residuals(name, system, rows)[m:], 0.0, atol=1e-12)
        assert system.primal[:m].min() == 0.1
        np.testing.assert_allclose(system.primal[:m] * system.dual[:m], np.abs(system.coef).mean())
    else:
        np.testing.assert_allclose(primal_residuals(name, system, rows), 0.0, atol=1e-12)
        np.testing.assert_allclose(dual_residuals(name, system, rows)[:m], 0.0, atol=1e-12)


@pytest.mark.parametrize("name", SYSTEMS)
def test_values_bracket_the_optimum_and_meet_after_few_steps(name, rng):
    system, rows = make(name, rng)
    if name == "smallest norm":
        rows = HingeExamples(np.abs(rows.features) + 0.1, rows.labels, rows.weights)
        system = SmallestNormSystem(rows.features, np.full(4, 20.0))
    primal, dual = system.values()
    n_iter = minimise(system, tol=1e-10, max_iter=50)
    optimum = system.values()
    assert dual < optimum[1] <= optimum[0] < primal
    assert optimum[0] - optimum[1] <= 1e-10 * optimum[0]
    assert n_iter <= {"squared norm": 7, "ball": 9, "smallest norm": 9}[name]


@pytest.mark.parametrize("name", SYSTEMS)
def test_few_steps_solve_many_small_problems(name):
    n_iter = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        system, rows = make(name, rng)
        if name == "smallest norm":
            truth = rng.normal(size=4)
            signed = rows.features * np.sign(rows.features @ truth)[:, None]
            system = SmallestNormSystem(signed, truth / np.min(signed @ truth))
        n_iter += minimise(system, tol=1e-7, max_iter=50)
        primal, dual = system.values()
        assert primal - dual <= 1e-7 * primal
    assert n_iter == pytest.approx(
        {"squared norm": 68, "ball": 77, "smallest norm": 80}[name], abs=1
    )


@pytest.mark.parametrize("name", SYSTEMS)
def test_equations_of_rows_hold_beside_numbers_of_all_sizes(name, rng):
    system, rows = make(name, rng)
    system.values()
    sizes = 10.0 ** rng.uniform(-6, 6, size=system.primal.shape)
    system.primal, system.dual = system.primal * sizes, system.dual / sizes
    system.factor()
    step = system.direction(rng.normal(size=system.primal.shape))
    change = rows.features @ step.coef + primal_residuals(name, system, rows)[:9]
    if name != "smallest norm":
        difference = step.primal[:9] - step.primal[9:18]
        np.testing.assert_allclose(difference, change, rtol=1e-9, atol=1e-6)
    if name != "squared norm":
        halves = step.primal[18:-1] if name == "ball" else step.primal[9:]
        np.testing.assert_allclose(halves[:4] - halves[4:], step.coef, rtol=1e-9, atol=1e-6)


def test_the_weighted_gram_is_that_of_all_rows(rng):
    rows, weights = rng.normal(size=(5000, 3)), rng.random(5000)
    np.testing.assert_allclose(weighted_gram(rows, weights), (rows.T * weights) @ rows)


def test_a_point_outside_the_ball_is_moved_to_its_edge(rng):
    system, rows = make("ball", rng)
    system.coef = np.array([3.0, -1.0, 0.5, 0.5])
    loss, _ = system.values()
    np.testing.assert_allclose(system.coef, [1.5, -0.5, 0.25, 0.25])
    assert loss == pytest.approx(rows.loss(rows.margins(system.coef)))


def test_first_prices_are_those_of_the_rows_or_a_share_of_the_gradient(rng):
    for size in (1.0, 1e6):
        _, rows = make("ball", rng)
        rows = HingeExamples(size * rows.features, rows.labels, rows.weights)
        system = L1BallSystem(SeparatorProblem(2.5), 2.5, rows)
        products = system.primal * system.dual
        steepest = np.abs(0.5 * rows.weights @ rows.features).max()
        assert np.ptp(system.dual[18:]) == 0.0
        if size == 1.0:
            assert products[18:] == pytest.approx(products[:18].mean())
        else:
            assert system.dual[-1] == pytest.approx(3e-3 * steepest)


def test_a_matrix_that_rounding_made_indefinite_is_raised():
    almost = np.array([[4.0, 2.1], [2.1, 1.0]])
    right = np.array([1.0, -2.0])
    # A tenth of the diagonal is the first multiple of 100 times 1e-15 that is enough.
    raised = almost * [[1.1, 1.0], [1.0, 1.1]]
    found = Factor(almost.copy(), 0.0).solve(right)
    np.testing.assert_allclose(found, np.linalg.solve(raised, right))
    np.testing.assert_allclose(
        Factor(almost.copy(), 1.0).solve(right) @ (almost + np.eye(2)), right
    )
    with pytest.raises(LinAlgError):
        Factor(np.array([[1.0, 5.0], [5.0, 1.0]]), 0.0)


class Scripted(Underflow):
    """A system with given gaps."""

    def __init__(self, gaps):
        super().__init__("free")
        self.gaps, self.n_read = gaps, 0

    def values(self):
        gap = self.gaps[min(self.n_read, len(self.gaps) - 1)]
        self.n_read += 1
        return 1.0 + gap, 1.0

    def direction(self, target):
        return Direction(np.zeros(2), np.zeros(2), np.zeros(1))


def test_steps_end_where_the_gap_closes_or_no_longer_shrinks():
    assert minimise(Scripted([0.5, 0.25, 0.0625]), tol=0.1, max_iter=9) == 2
    # The gap may be the tolerance itself, relative to the floor too.
    assert minimise(Scripted([1.0]), tol=0.5, max_iter=9) == 0
    assert minimise(Scripted([1.0]), tol=0.1, max_iter=9, floor=10.0) == 0
    assert minimise(Scripted([1.0]), tol=0.1, max_iter=99) == 15
    assert minimise(Scripted([0.8, 1.0, 0.79, 0.7] + [0.7] * 99), tol=0.1, max_iter=99) == 18
    assert minimise(Scripted([0.89**k for k in range(99)]), tol=1e-9, max_iter=30) == 30
    system = Scripted([0.5, 0.4, 0.3])
    assert minimise(system, tol=0.01, max_iter=2) == 2
    assert system.n_read == 3
