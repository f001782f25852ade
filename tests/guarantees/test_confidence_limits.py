"""Inverses of tails against scipy's own, and against their definitions."""

import math

import numpy as np
import pytest
from scipy import stats

from slts.guarantees.bounds import (
    accuracy_interval,
    binomial_upper,
    group_accuracy_interval,
    kl_bernoulli,
    kl_inverse,
    log_binomial,
)


@pytest.mark.parametrize(("errors", "n"), [(0, 1), (0, 50), (3, 81), (46, 2200), (79, 80)])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-9])
def test_binomial_upper_is_the_quantile_of_a_beta_distribution(errors, n, delta):
    expected = stats.beta.isf(delta, errors + 1, n - errors)
    assert binomial_upper(errors, n, math.log(delta)) == pytest.approx(expected, rel=1e-9)


def test_binomial_upper_works_where_delta_underflows():
    # (1 - q)^n = delta without errors, whatever delta.
    q = binomial_upper(0, 3000, -2000.0)
    assert 3000 * math.log1p(-q) == pytest.approx(-2000.0)


def test_all_wrong_is_one():
    assert binomial_upper(5, 5, math.log(0.05)) == 1.0


def test_intervals_of_accuracies_leave_2_5_percent_on_each_side():
    assert accuracy_interval(20, 20) == pytest.approx((0.025 ** (1 / 20), 1.0))
    assert accuracy_interval(0, 20) == pytest.approx((0.0, 1 - 0.025 ** (1 / 20)))
    assert group_accuracy_interval(1.0, 12) == pytest.approx((0.025 ** (1 / 12), 1.0))
    assert group_accuracy_interval(0.0, 12) == pytest.approx((0.0, 1 - 0.025 ** (1 / 12)))


@pytest.mark.parametrize("q", [0.0, 1e-6, 0.2, 0.9, 1.0])
@pytest.mark.parametrize("budget", [0.0, 1e-4, 0.1, 3.0])
def test_kl_inverse_is_the_largest_p_within_budget(q, budget):
    p = float(kl_inverse(q, budget))
    assert q <= p <= 1.0
    grid = np.linspace(q, 1.0, 200_001)
    # Written out, so as not to rest on the code under test.
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(q > 0, q * np.log(q / grid), 0.0)
        second = np.where(q < 1, (1 - q) * np.log((1 - q) / (1 - grid)), 0.0)
    largest = grid[first + second <= budget + 1e-15].max()
    assert p == pytest.approx(largest, abs=1.01e-5)
    assert q == 1.0 or p >= largest - 1e-7


def test_kl_inverse_takes_arrays_and_is_never_below_its_root():
    q = np.array([0.1, 0.5])[:, np.newaxis]
    budget = np.array([0.01, 0.2, 1.0])
    p = kl_inverse(q, budget)
    assert p.shape == (2, 3)
    np.testing.assert_allclose(kl_bernoulli(q, p), np.broadcast_to(budget, p.shape), rtol=1e-9)


def test_kl_inverse_is_at_most_pinskers():
    q, budget = np.meshgrid(np.linspace(0, 1, 21), np.geomspace(1e-4, 1, 9))
    assert np.all(kl_inverse(q, budget) <= q + np.sqrt(budget / 2) + 1e-12)


def test_log_binomial():
    assert log_binomial(100, 10) == pytest.approx(math.log(math.comb(100, 10)))
    assert log_binomial(7, 0) == 0.0
