"""Goodness: its linear program, and the landmarks it needs."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slts.guarantees import goodness, landmarks_needed


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
    cap, steps = min(1.0, 1 / (3 * tau)), np.linspace(0, 1, 61)
    grid = [np.array([a, b, 1 - a - b]) for a, b in itertools.product(steps, steps)]
    allowed = [w for w in grid if w.min() >= -1e-12 and w.max() <= cap + 1e-12]
    best = min(loss(K, y, landmark_y, gamma, weights) for weights in allowed)
    assert result.epsilon <= best + 1e-9
    assert result.epsilon == pytest.approx(loss(K, y, landmark_y, gamma, result.weights))
    assert result.weights.sum() == pytest.approx(1.0)
    assert 0 <= result.weights.min() <= result.weights.max() <= cap * (1 + 1e-9)
    assert result.tau_attained == pytest.approx(1 / (3 * result.weights.max()))
    if tau == 1.0:
        assert result.epsilon == pytest.approx(loss(K, y, landmark_y, gamma, np.full(3, 1 / 3)))


def test_only_the_ratio_of_similarity_and_margin_matters():
    K, y, landmark_y = random_problem(3)
    for gamma, tau in itertools.product((0.07, 2.1), (0.3, 1.0)):
        scaled = goodness(7 * K, y, landmark_y, 7 * gamma, tau).epsilon
        assert scaled == pytest.approx(goodness(K, y, landmark_y, gamma, tau).epsilon)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.02, 3.0))
def test_nondecreasing_in_tau(seed, gamma):
    K, y, landmark_y = random_problem(seed)
    values = [goodness(K, y, landmark_y, gamma, tau).epsilon for tau in (0.2, 0.4, 0.7, 0.9, 1.0)]
    assert np.all(np.diff(values) >= -1e-9)


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
    with pytest.raises(ValueError, match=r"'delta'"):
        landmarks_needed(0.1, 1.0, delta=delta)
