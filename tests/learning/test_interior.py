"""The interior-point iteration itself; the problems it solves have tests of their own."""

import numpy as np
import pytest

from slts.learning.interior import Direction, System, minimise


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
