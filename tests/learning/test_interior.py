"""The interior-point iteration itself; the problems it solves have tests of their own."""

import numpy as np
import pytest

from slts.learning.interior import Direction, minimise
from slts.learning.metric import solve_frobenius_path
from slts.learning.separator import solve_separator
from tests.learning.problems import problem


class Underflow:
    """Pairs that underflow after a few steps: there is no finite direction from there on."""

    coupled = False

    def __init__(self, broken):
        self.primal, self.dual, self.free = np.ones(2), np.ones(2), np.zeros(1)
        self._broken, self._n_factored = broken, 0

    def values(self):
        gap = float(self.primal @ self.dual)
        return gap, 0.0

    def factor(self):
        self._n_factored += 1

    def direction(self, target):
        half = target / (2.0 * self.primal)
        parts = {"primal": half, "dual": half.copy(), "free": np.zeros(1)}
        if self._n_factored == 3:
            parts[self._broken] = parts[self._broken] * np.nan
        return Direction(**parts)

    def advance(self, direction, primal_step, dual_step):
        self.primal = self.primal + primal_step * direction.primal
        self.dual = self.dual + dual_step * direction.dual
        self.free = self.free + primal_step * direction.free


@pytest.mark.parametrize("broken", ["primal", "dual", "free"])
def test_a_direction_that_is_not_finite_ends_at_the_last_point(broken):
    system = Underflow(broken)
    assert minimise(system, tol=1e-12, max_iter=50) == 2
    for part in (system.primal, system.dual, system.free):
        assert np.isfinite(part).all()


@pytest.mark.parametrize("kind", ["noisy", "heavy row"])
def test_about_ten_steps_solve_a_noisy_problem(kind, rng):
    X, y, w = problem(kind, rng, 600, 12)
    metric = solve_frobenius_path(X, y, pairs=[(1.0, 1e-3)], sample_weight=w)[0]
    separator = solve_separator(X, y, gamma=0.05, sample_weight=w)
    assert 5 <= metric.n_iter <= 11
    assert 5 <= separator.n_iter <= 11
