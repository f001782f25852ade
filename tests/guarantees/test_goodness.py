"""Goodness: its linear program, its bounds, and the landmarks it needs."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slts
from slts.guarantees import (
    goodness,
    goodness_bound,
    goodness_profile,
    landmarks_needed,
    population_goodness,
)


def random_problem(seed, m=15, n=4):
    rng = np.random.default_rng(seed)
    signs = np.array([-1.0, 1.0])
    return rng.uniform(-1, 1, size=(m, n)), rng.choice(signs, m), rng.choice(signs, n)


def loss(K, y, landmark_y, gamma, weights):
    return np.maximum(0, 1 - y * (K @ (weights * landmark_y)) / gamma).mean()


@pytest.mark.parametrize("tau", [1.0, 0.7, 0.5, 0.25, 0.05])
@pytest.mark.parametrize("gamma", [0.05, 0.5, 2.0])
def test_no_weights_on_a_fine_grid_are_better(gamma, tau):
    K, y, landmark_y = random_problem(1, n=3)
    result = goodness(K, y, landmark_y, gamma, tau)
    cap, steps, best = min(1.0, 1 / (3 * tau)), np.linspace(0, 1, 61), np.inf
    for a, b in itertools.product(steps, steps):
        weights = np.array([a, b, 1 - a - b])
        if weights.min() >= -1e-12 and weights.max() <= cap + 1e-12:
            best = min(best, loss(K, y, landmark_y, gamma, weights))
    assert result.epsilon <= best + 1e-9
    assert result.epsilon == pytest.approx(loss(K, y, landmark_y, gamma, result.weights))
    assert result.weights.sum() == pytest.approx(1.0)
    assert 0 <= result.weights.min() <= result.weights.max() <= cap * (1 + 1e-9)
    assert result.tau_attained == pytest.approx(1 / (3 * result.weights.max()))
    if tau == 1.0:
        assert result.epsilon == pytest.approx(loss(K, y, landmark_y, gamma, np.full(3, 1 / 3)))


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.02, 3.0))
def test_nondecreasing_in_tau(seed, gamma):
    K, y, landmark_y = random_problem(seed)
    values = [goodness(K, y, landmark_y, gamma, tau).epsilon for tau in (0.2, 0.4, 0.7, 0.9, 1.0)]
    assert np.all(np.diff(values) >= -1e-9)


def test_only_the_ratio_of_similarity_and_margin_matters():
    K, y, landmark_y = random_problem(2)
    one = goodness(K, y, landmark_y, 0.3, 0.6).epsilon
    assert goodness(7 * K, y, landmark_y, 2.1, 0.6).epsilon == pytest.approx(one)


def test_not_monotone_in_gamma_on_japanese_vowels():
    X, y = slts.datasets.load("japanese_vowels", "train")
    order = np.random.default_rng(0).permutation(len(X))
    rows, columns = order[54:], order[:54]
    K = slts.similarity(X[rows], X[columns], objective="cost")
    labels = np.where(y == np.unique(y)[2], 1.0, -1.0)
    profile = goodness_profile(
        K, labels[rows], labels[columns], gammas=(0.01, 0.3, 3.0), taus=(0.25, 1.0)
    )
    assert profile.epsilon.shape == (3, 2)
    assert profile.epsilon[0, 1] > profile.epsilon[1, 1] < profile.epsilon[2, 1]
    assert np.all(profile.epsilon[:, 0] <= profile.epsilon[:, 1])
    cell = goodness(K, labels[rows], labels[columns], 0.3, 0.25)
    assert profile.epsilon[1, 0] == pytest.approx(cell.epsilon)
    assert profile.tau_attained[1, 0] == pytest.approx(cell.tau_attained)


def test_the_default_grid_of_a_profile_ends_at_one(rng):
    profile = goodness_profile(rng.normal(size=(6, 4)), [1, -1] * 3, [1, -1] * 2)
    assert list(profile.gammas) == [0.01, 0.03, 0.1, 0.3, 1.0]
    assert list(profile.taus) == [0.1, 0.25, 0.5, 0.75, 1.0]


def test_bounds_by_hand():
    log = math.log(1 / 0.05)
    spread = (1 + 10) ** 2 / 216 + 4 * 100 / 54
    value = goodness_bound(0.2, 216, 54, 0.1, 0.05)
    assert value == pytest.approx(0.2 + math.sqrt(log / 2 * spread))
    # The published penalty for Japanese Vowels at gamma = 0.1.
    assert value - 0.2 == pytest.approx(3.6, abs=0.2)
    wide = goodness_bound(0.2, 100, 50, 4.0, 0.05)
    assert wide == pytest.approx(0.2 + math.sqrt(log / 2 * (0.25 / 100 + 0.25 / 50)))
    assert population_goodness(0.1, 2.0, 100, 0.05) == pytest.approx(
        0.1 + 0.2 * (1 + math.sqrt(2 * log))
    )


@pytest.mark.parametrize(
    ("gamma", "epsilon", "paper", "sharp"),
    [
        (0.01, 0.1, 2.9e8, 1.2e7),
        (0.1, 0.1, 2.1e6, 1.2e5),
        (0.1, 0.5, 6.5e4, 4750),
        (1, 0.5, 480, 48),
    ],
)
def test_published_numbers_of_landmarks(gamma, epsilon, paper, sharp):
    needed = landmarks_needed(epsilon, gamma)
    assert needed.paper == pytest.approx(paper, rel=0.025)
    assert needed.sharp == pytest.approx(sharp, rel=0.025)
    assert needed.paper_delta == pytest.approx(min(0.05, 0.99 * gamma * epsilon / 4))


def test_landmarks_for_a_small_reasonable_set():
    """Enough of them are reasonable, except with probability delta/2."""
    epsilon, gamma, tau, delta = 0.5, 0.8, 0.3, 0.1
    needed = landmarks_needed(epsilon, gamma, tau, delta)
    log = math.log(2 / delta)
    wanted = (1 + math.sqrt(2 * log)) ** 2 / (gamma * epsilon) ** 2
    mean = needed.sharp * tau
    assert mean - math.sqrt(2 * mean * log) == pytest.approx(wanted, rel=0.01)
    reasonable = np.random.default_rng(0).binomial(needed.sharp, tau, size=5000)
    assert np.mean(reasonable < wanted) <= delta / 2
    paper = 2 / tau * (math.log(2 / 0.099) * (1 + 16 / 0.16))
    assert needed.paper == pytest.approx(paper, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        *[({"tau": tau}, "'tau'") for tau in (0.0, 1.1, -1.0)],
        *[({"gamma": gamma}, "'gamma'") for gamma in (0.0, -1.0, np.inf, np.nan)],
        ({"y": [1.0]}, "shapes"),
        ({"y": np.zeros(15)}, r"\+1 or -1"),
        ({"K": np.full((15, 4), np.nan)}, "finite"),
    ],
)
def test_invalid_problems_raise_an_error(change, match):
    K, y, landmark_y = random_problem(0)
    problem = {"K": K, "y": y, "landmark_y": landmark_y, "gamma": 0.1, "tau": 1.0}
    with pytest.raises(ValueError, match=match):
        goodness(**problem | change)


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_delta_is_a_probability(delta):
    for bound in (
        lambda: landmarks_needed(0.1, 0.1, 1.0, delta),
        lambda: goodness_bound(0.1, 20, 5, 0.1, delta),
        lambda: population_goodness(0.1, 1.0, 5, delta),
    ):
        with pytest.raises(ValueError, match=r"'delta'"):
            bound()
    with pytest.raises(ValueError, match="'epsilon'"):
        landmarks_needed(0.0, 0.1)
