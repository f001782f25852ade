"""The interior-point iteration itself; the problems it solves have tests of their own."""

import numpy as np
import pytest

from slts.learning.hinge import HingeExamples
from slts.learning.interior import (
    Direction,
    L1BallSystem,
    SmallestNormSystem,
    SquaredNormSystem,
    System,
    minimise,
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
