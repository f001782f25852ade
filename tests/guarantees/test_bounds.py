"""The formulas against independent computations and published numbers."""

import math

import numpy as np
import pytest
from scipy import stats

from slts.guarantees import bounds

# Penalties of the paper's theorem, by gamma and lam of its grid: for 270 series with 12 channels
# and for 6600 with 13.
PUBLISHED = {
    (0.01, 0.1): (8e5, 2e5),
    (0.01, 1.0): (8e4, 2e4),
    (0.1, 0.1): (8140, 1750),
    (0.1, 1.0): (819, 176),
    (1.0, 0.1): (84, 18),
    (1.0, 1.0): (8.9, 1.9),
    (1.0, 10.0): (1.1, 0.23),
}


@pytest.mark.parametrize("pair", PUBLISHED, ids=str)
def test_penalties_have_the_published_size(pair):
    penalties = [bounds.paper_bound(0, m, d, *pair, 0.05) for m, d in ((270, 12), (6600, 13))]
    assert penalties == pytest.approx(PUBLISHED[pair], rel=0.15)


def test_the_papers_theorem_term_by_term():
    risk, m, d, gamma, lam, delta = 0.2, 300, 5, 0.3, 0.7, 0.1
    stability, loss = 4 * d / (gamma**2 * lam), 1 / gamma * (2 * d / lam) ** 0.5
    expected = 0.2 + stability / m + (stability + loss) * (2 * math.log(2 / delta) / m) ** 0.5
    assert bounds.paper_bound(risk, m, d, gamma, lam, delta) == pytest.approx(expected)


@pytest.mark.parametrize("excluded", [0, 30])
def test_the_stability_bound_term_by_term(excluded):
    """With landmarks in the sample, and with an inexact solver."""
    gamma, lam, m = 0.5, 0.4, 200
    kappa, p, left = 1 / (lam * gamma**2), bounds.margin_radius(gamma, lam), m - excluded
    assert p == min(1 / (gamma * math.sqrt(2 * lam)), 1 / (2 * lam * gamma**2))
    spread = 2 * left * kappa / m + min(1 + p, 2 * p)
    expected = 0.3 + kappa / m + spread * math.sqrt(math.log(1 / 0.05) / (2 * left))
    value = bounds.stability_bound(0.3, m, gamma, lam, 0.05, excluded=excluded, gap=0.0)
    assert value == pytest.approx(expected)
    inexact = bounds.stability_bound(0.3, m, gamma, lam, 0.05, excluded=excluded, gap=1e-4)
    assert inexact == pytest.approx(value + 2 * math.sqrt(1e-4 / lam) / gamma)


@pytest.mark.parametrize("delta", [0.6, 0.05, 1e-4])
@pytest.mark.parametrize("m", [10, 270, 100_000])
def test_the_corrected_theorem_is_below_the_papers(m, delta):
    for strength in np.geomspace(1e-9, 1e3, 49):
        stability = bounds.stability_bound(0.1, m, 1.0, strength, delta, excluded=0, gap=0.0)
        assert stability < bounds.paper_bound(0.1, m, 1, 1.0, strength, delta)


@pytest.mark.parametrize(
    ("errors", "n", "n_models", "expected"),
    [(11, 370, 1, 0.049), (46, 2200, 1, 0.027), (3, 81, 1, 0.093), (3, 81, 18, 0.137)],
)
def test_clopper_pearson_has_the_published_values(errors, n, n_models, expected):
    value = bounds.clopper_pearson(errors, n, 0.05 / n_models)
    assert value == pytest.approx(expected, abs=5e-4)
    assert stats.binom.cdf(errors, n, value) == pytest.approx(0.05 / n_models)


@pytest.mark.parametrize("delta", [0.3, 1e-9, 1e-200])
def test_clopper_pearson_at_its_ends(delta):
    assert bounds.clopper_pearson(0, 30, delta) == pytest.approx(1 - delta ** (1 / 30))
    assert bounds.clopper_pearson(29, 30, delta) == pytest.approx((1 - delta) ** (1 / 30))
    assert bounds.clopper_pearson(30, 30, delta) == 1.0


def test_intervals_of_accuracies_leave_2_5_percent_on_each_side():
    assert bounds.accuracy_interval(20, 20) == pytest.approx((0.025 ** (1 / 20), 1.0))
    assert bounds.accuracy_interval(0, 20) == pytest.approx((0.0, 1 - 0.025 ** (1 / 20)))
    assert bounds.group_accuracy_interval(1.0, 12) == pytest.approx((0.025 ** (1 / 12), 1.0))
    assert bounds.group_accuracy_interval(0.0, 12) == pytest.approx((0.0, 1 - 0.025 ** (1 / 12)))


@pytest.mark.parametrize("q", [0.0, 1e-6, 0.2, 0.9, 1.0])
@pytest.mark.parametrize("budget", [0.0, 1e-4, 0.1, 3.0])
def test_kl_inverse_is_the_largest_p_within_budget(q, budget):
    p = float(bounds.kl_inverse(q, budget))
    grid = np.linspace(q, 1.0, 200_001)
    # Written out, so as not to rest on the code under test.
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(q > 0, q * np.log(q / grid), 0.0)
        second = np.where(q < 1, (1 - q) * np.log((1 - q) / (1 - grid)), 0.0)
    largest = grid[first + second <= budget + 1e-15].max()
    assert p == pytest.approx(largest, abs=1.01e-5)
    assert q == 1.0 or p >= largest - 1e-7
    # Pinsker's inequality.
    assert q <= p <= q + math.sqrt(budget / 2) + 1e-12
