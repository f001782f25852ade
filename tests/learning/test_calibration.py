"""One scale turns decision values into probabilities, by maximum likelihood on smoothed targets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax, softmax

from slts.learning.calibration import fit_scale, probabilities, two_sided

VALUES = st.floats(-50, 50, allow_subnormal=False)


def smoothed_loss(scale, decisions, codes):
    n, k = decisions.shape
    targets = np.full((n, k), 1.0 / (n + k))
    targets[np.arange(n), codes] = (n + 1.0) / (n + k)
    return -np.sum(targets * log_softmax(scale * decisions, axis=1))


def drawn(scale, k, n, rng):
    """Decision values whose softmax at `scale` gives the labels their chances."""
    decisions = rng.normal(size=(n, k))
    chances = softmax(scale * decisions, axis=1)
    codes = np.array([rng.choice(k, p=p) for p in chances])
    return decisions, codes


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_the_scale_that_drew_the_labels_is_found(k, scale, rng):
    decisions, codes = drawn(scale, k, 4000, rng)
    assert fit_scale(decisions, codes) == pytest.approx(scale, rel=0.1, abs=0.05)


@pytest.mark.parametrize("k", [2, 5])
def test_the_scale_is_the_minimum_on_a_fine_grid(k, rng):
    decisions, codes = drawn(2.0, k, 60, rng)
    found = fit_scale(decisions, codes)
    losses = [smoothed_loss(s, decisions, codes) for s in np.geomspace(1e-3, 1e3, 2000)]
    assert smoothed_loss(found, decisions, codes) <= min(losses) + 1e-6


@pytest.mark.parametrize("factor", [1e-3, 10.0, 1e3])
def test_probabilities_do_not_depend_on_the_unit_of_the_decisions(factor, rng):
    decisions, codes = drawn(1.0, 4, 200, rng)
    plain = probabilities(decisions, fit_scale(decisions, codes))
    scaled = probabilities(factor * decisions, fit_scale(factor * decisions, codes))
    np.testing.assert_allclose(scaled, plain, rtol=0, atol=1e-3)


@pytest.mark.parametrize("n", [2, 10, 1000])
def test_separated_series_get_no_certainty(n):
    codes = np.arange(n) % 2
    proba = probabilities(2.0 * codes - 1, fit_scale(2.0 * codes - 1, codes))
    # The smoothed target itself: (n + 1) of n + 2.
    np.testing.assert_allclose(proba[np.arange(n), codes], (n + 1) / (n + 2), rtol=0, atol=1e-3)


def test_decisions_that_tell_nothing_give_equal_probabilities(rng):
    decisions, codes = rng.normal(size=(400, 3)), rng.integers(3, size=400)
    codes[decisions.argmax(axis=1) == codes] += 1
    proba = probabilities(decisions, fit_scale(decisions, codes % 3))
    np.testing.assert_allclose(proba, 1 / 3, rtol=0, atol=1e-3)


@given(arrays(float, st.tuples(st.integers(1, 20), st.integers(3, 6)), elements=VALUES))
def test_probabilities_sum_to_one_and_keep_the_order(decisions):
    proba = probabilities(decisions, 1.7)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    best = proba[np.arange(len(proba)), decisions.argmax(axis=1)]
    np.testing.assert_array_equal(best, proba.max(axis=1))


@given(arrays(float, st.integers(1, 20), elements=VALUES))
def test_one_decision_is_split_between_two_classes(decisions):
    np.testing.assert_array_equal(two_sided(decisions), np.stack([-decisions, decisions], axis=1))
    proba = probabilities(decisions, 0.5)
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-decisions)), rtol=1e-9, atol=1e-15)


def test_extreme_decisions_overflow_nowhere():
    decisions = np.array([[1e300, -1e300, 0.0], [-1e300, 1e300, 0.0]])
    scale = fit_scale(decisions, np.array([0, 1]))
    assert np.isfinite(scale)
    assert np.isfinite(probabilities(decisions, scale)).all()
