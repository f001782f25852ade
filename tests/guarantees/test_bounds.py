"""The formulas against independent computations and published numbers."""

import math

import numpy as np
import pytest
from scipy import stats

from slts.guarantees import bounds
from slts.guarantees.bounds import kl_inverse

# lam * gamma^2 from the smallest to the largest of the paper's grid with gamma >= 0.01.
PAIRS = [(0.01, 0.1), (0.01, 1.0), (0.1, 0.1), (0.1, 1.0), (1.0, 0.1), (1.0, 1.0), (1.0, 10.0)]


@pytest.mark.parametrize(
    ("errors", "n", "n_models", "expected"),
    [(11, 370, 1, 0.049), (46, 2200, 1, 0.027), (3, 81, 1, 0.093), (3, 81, 18, 0.137)],
)
def test_clopper_pearson(errors, n, n_models, expected):
    value = bounds.clopper_pearson(errors, n, 0.05 / n_models)
    assert value == pytest.approx(expected, abs=5e-4)
    assert value == pytest.approx(stats.beta.ppf(1 - 0.05 / n_models, errors + 1, n - errors))
    assert stats.binom.cdf(errors, n, value) == pytest.approx(0.05 / n_models)


@pytest.mark.parametrize(
    ("pair", "radius"), list(zip(PAIRS, [224, 71, 22, 7.1, 2.2, 0.5, 0.05], strict=True))
)
def test_radius(pair, radius):
    gamma, lam = pair
    assert bounds.margin_radius(gamma, lam) == pytest.approx(radius, rel=0.03)
    by_parts = min(1 / (gamma * math.sqrt(2 * lam)), 1 / (2 * lam * gamma**2))
    assert bounds.margin_radius(gamma, lam) == pytest.approx(by_parts)


@pytest.mark.parametrize(
    ("pair", "small", "large"),
    list(
        zip(
            PAIRS,
            [8e5, 8e4, 8140, 819, 84, 8.9, 1.1],
            [2e5, 2e4, 1750, 176, 18, 1.9, 0.23],
            strict=True,
        )
    ),
)
def test_the_papers_theorem_as_printed(pair, small, large):
    tolerance = 0.15 if small > 1e4 else 0.06
    assert bounds.paper_bound(0, 270, 12, *pair, 0.05) == pytest.approx(small, rel=tolerance)
    assert bounds.paper_bound(0, 6600, 13, *pair, 0.05) == pytest.approx(large, rel=tolerance)


def test_the_papers_theorem_term_by_term():
    risk, m, d, gamma, lam, delta = 0.2, 300, 5, 0.3, 0.7, 0.1
    stability, loss = 4 * d / (gamma**2 * lam), 1 / gamma * (2 * d / lam) ** 0.5
    expected = 0.2 + stability / m + (stability + loss) * (2 * math.log(2 / delta) / m) ** 0.5
    assert bounds.paper_bound(risk, m, d, gamma, lam, delta) == pytest.approx(expected)
    assert bounds.paper_loss_bound(d, gamma, lam) == pytest.approx(loss)


@pytest.mark.parametrize(
    ("pair", "small", "large"),
    list(
        zip(
            PAIRS,
            [7870, 798, 83, 9.5, 1.4, 0.23, 0.023],
            [1530, 155, 16, 1.9, 0.27, 0.045, 0.005],
            strict=True,
        )
    ),
)
def test_stability_penalty(pair, small, large):
    assert bounds.stability_bound(0, 270, *pair, 0.05) == pytest.approx(small, rel=0.06)
    assert bounds.stability_bound(0, 6600, *pair, 0.05) == pytest.approx(large, rel=0.1)


@pytest.mark.parametrize(
    ("pair", "small", "large"),
    list(
        zip(
            PAIRS,
            [49, 15.6, 5.0, 1.6, 0.57, 0.15, 0.015],
            [9.0, 2.8, 0.91, 0.30, 0.11, 0.028, 0.003],
            strict=True,
        )
    ),
)
def test_a_priori_norm_penalty(pair, small, large):
    assert bounds.a_priori_norm_bound(0, 216, *pair, 0.05) == pytest.approx(small, rel=0.06)
    assert bounds.a_priori_norm_bound(0, 6500, *pair, 0.05) == pytest.approx(large, rel=0.1)


@pytest.mark.parametrize("delta", [0.6, 0.05, 1e-4])
@pytest.mark.parametrize("m", [10, 270, 100_000])
def test_the_norm_bound_dominates_the_stability_bound(m, delta):
    for strength in np.geomspace(1e-9, 1e3, 49):
        norm = bounds.a_priori_norm_bound(0.1, m, 1.0, strength, delta)
        assert norm <= bounds.stability_bound(0.1, m, 1.0, strength, delta) * (1 + 1e-12)


def test_sharp_constants_beat_the_papers():
    for gamma, lam in PAIRS:
        sharp = bounds.stability_bound(0.1, 270, gamma, lam, 0.05)
        assert sharp < bounds.paper_bound(0.1, 270, 1, gamma, lam, 0.05)


def test_only_lam_gamma_squared_matters():
    one, other = (0.1, 0.1), (0.01, 10.0)
    assert bounds.stability_bound(0.1, 50, *one, 0.05) == pytest.approx(
        bounds.stability_bound(0.1, 50, *other, 0.05)
    )
    assert bounds.norm_hinge_bound(0.1, 0.05, 0.5, 50, *one, 0.05) == pytest.approx(
        bounds.norm_hinge_bound(0.1, 0.005, 0.5, 50, *other, 0.05)
    )


def test_stability_with_landmarks_in_the_sample_and_an_inexact_solver():
    gamma, lam, m, n = 0.5, 0.4, 200, 30
    kappa = 1 / (lam * gamma**2)
    p = bounds.margin_radius(gamma, lam)
    beta, left = kappa / m, m - n
    width = (2 * left * beta + min(1 + p, 2 * p)) * math.sqrt(math.log(1 / 0.05) / (2 * left))
    value = bounds.stability_bound(0.3, m, gamma, lam, 0.05, excluded=n)
    assert value == pytest.approx(0.3 + beta + width)
    inexact = bounds.stability_bound(0.3, m, gamma, lam, 0.05, excluded=n, gap=1e-4)
    assert inexact == pytest.approx(value + 2 * math.sqrt(1e-4 / lam) / gamma)


def test_norm_hinge_bound_by_hand():
    risk, norm, square, m, gamma, lam, delta = 0.07, 0.2, 0.3, 216, 0.1, 0.1, 0.05
    p = math.sqrt(1 / (2 * lam * gamma**2))
    radius = min(p * 2 ** (-k / 2) for k in range(20) if p * 2 ** (-k / 2) >= norm / gamma)
    z2 = float(kl_inverse(square, math.log(2 / delta) / m))
    expected = risk + 2 * radius * math.sqrt(z2 / m)
    expected += min(1 + radius, 2 * radius) * math.sqrt(math.log(40 / delta) / (2 * m))
    value = bounds.norm_hinge_bound(risk, norm, square, m, gamma, lam, delta)
    assert value == pytest.approx(expected, rel=1e-6)


def test_norm_hinge_bound_at_the_ends_of_its_grid():
    p = bounds.margin_radius(1.0, 2.0)
    assert bounds.norm_hinge_bound(0.1, p, 1.0, 50, 1.0, 2.0, 0.05) > 0.1
    tiny = bounds.norm_hinge_bound(0.1, 0.0, 1.0, 50, 1.0, 2.0, 0.05)
    assert tiny == pytest.approx(0.1, abs=2 * p * 2**-9.5)
    with pytest.raises(ValueError, match="exceeds"):
        bounds.norm_hinge_bound(0.1, 1.01 * p, 1.0, 50, 1.0, 2.0, 0.05)


@pytest.mark.parametrize(
    ("strength", "margin_norm", "penalty"),
    [(1e-4, 17.5, 4.7), (1e-3, 6.0, 1.6), (1e-2, 2.3, 0.68)],
)
def test_norm_hinge_penalty_has_the_published_size(strength, margin_norm, penalty):
    # The mean square of the features was not published; its range brackets the number.
    low, high = (
        bounds.norm_hinge_bound(0, margin_norm, square, 216, 1.0, strength, 0.05)
        for square in (0.0, 1.0)
    )
    assert low < penalty < high


def test_hold_out_hinge_bound_is_hoeffdings():
    value = bounds.hold_out_hinge_bound(0.2, 0.3, 500, 0.1, 0.05)
    assert value == pytest.approx(0.2 + 4 * math.sqrt(math.log(20) / 1000))
    narrow = bounds.hold_out_hinge_bound(0.9, 0.01, 500, 0.1, 0.05)
    assert narrow == pytest.approx(0.9 + 0.2 * math.sqrt(math.log(20) / 1000))


def test_pac_bayes_bound_by_brute_force(rng):
    cosines = np.clip(rng.normal(0.4, 0.2, size=300), -1, 1)
    found = bounds.pac_bayes_bound(cosines, 0.05, extra=2.0)
    best = np.inf
    scales = 0.5 * (math.sqrt(600) / 0.5) ** (np.arange(24) / 23)
    for mu in scales:
        for s in np.arange(13) * 0.25:
            gibbs = np.mean(stats.norm.cdf(s - mu * cosines))
            budget = (mu**2 / 2 + math.log(2 * math.sqrt(300) * 24 * 13 / 0.05) + 2.0) / 300
            grid = np.linspace(gibbs, 1 - 1e-12, 20_001)
            kl = gibbs * np.log(gibbs / grid) + (1 - gibbs) * np.log((1 - gibbs) / (1 - grid))
            best = min(best, grid[kl <= budget].max() / stats.norm.cdf(s))
    assert found == pytest.approx(best, abs=1e-4)


def test_pac_bayes_gibbs_loss_is_that_of_the_posterior(rng):
    """Phi(s - mu q) is the probability that a draw from N(mu w, I) has a margin below s."""
    w, x = np.array([0.6, 0.8]), np.array([1.0, 0.2])
    q = w @ x / np.linalg.norm(x)
    draws = rng.normal(size=(200_000, 2)) + 3.0 * w
    below = np.mean(draws @ x / np.linalg.norm(x) < 1.5)
    assert below == pytest.approx(stats.norm.cdf(1.5 - 3.0 * q), abs=5e-3)


def test_pac_bayes_refuses_fewer_than_eight_examples():
    with pytest.raises(ValueError, match="at least 8"):
        bounds.pac_bayes_bound(np.ones(7), 0.05)


@pytest.mark.parametrize(
    ("m", "k", "expected"),
    [(6500, 10, 0.040), (3250, 10, 0.058), (6500, 30, 0.069), (3250, 30, 0.106)],
)
def test_compression_bound_has_the_published_values(m, k, expected):
    value = bounds.compression_bound(round(0.01 * m), m, 100, k, k - 1, 0.05, radius_binds=True)
    assert value == pytest.approx(expected, abs=1.5e-3)


@pytest.mark.parametrize("binds", [True, False])
def test_compression_bound_by_counting(binds):
    errors, m, n, k, t, delta = 2, 60, 5, 3, 2 if binds else 3, 0.1
    choices = 2 * n * math.comb(n, k) * math.comb(m, t) * (2**k if binds else 1)
    value = bounds.compression_bound(errors, m, n, k, t, delta, radius_binds=binds)
    assert stats.binom.cdf(errors, m - t, value) == pytest.approx(delta / choices)
