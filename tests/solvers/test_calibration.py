"""Scales turn decision values into probabilities, by maximum likelihood of right predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar
from scipy.special import softmax, xlog1py, xlogy

from slts.solvers import calibration
from slts.solvers.calibration import fit_scale, probabilities

VALUES = st.floats(-50, 50, allow_subnormal=False)


def scales_by_definition(decisions, codes, weights):
    """Minimise the loss of being right with the confidence, for all series and by prediction."""
    (n, k), rows = decisions.shape, np.arange(len(codes))
    predicted = decisions.argmax(axis=1)
    smoothed = np.where(predicted == codes, n + 0.5, 0.5) / (n + 1)

    def best(of, right):
        def loss(log_scale):
            confidence = softmax(np.exp(log_scale) * decisions[of], axis=1).max(axis=1)
            wrong = xlog1py(1 - right[of], -confidence)
            return -weights[of] @ (xlogy(right[of], confidence) + wrong)

        return np.exp(minimize_scalar(loss, bounds=(-6, 6), options={"xatol": 1e-9}).x)

    common = best(rows, smoothed)
    # The common scale counts as 16 series of a class.
    counts = np.bincount(predicted, minlength=k)[predicted]
    targets = counts * smoothed + 16 * softmax(common * decisions, axis=1).max(axis=1)
    targets /= counts + 16
    by_class = [rows[predicted == c] for c in range(k)]
    return [best(of, targets) if len(of) else common for of in by_class]


def drawn(scale, k, n, rng):
    """Decision values whose softmax at `scale` gives the labels their chances."""
    decisions = rng.normal(size=(n, k))
    chances = softmax(scale * decisions, axis=1)
    codes = np.array([rng.choice(k, p=p) for p in chances])
    return decisions, codes


@pytest.mark.parametrize("n", [60, 600])
def test_scales_are_those_of_their_definition(n, rng):
    decisions, codes = drawn(2.0, 3, n, rng)
    # The fourth class is never predicted, and gets the common scale.
    decisions = np.column_stack([decisions, np.full(n, -50.0)])
    for weights in (np.ones(n), rng.uniform(0.2, 5.0, size=n)):
        expected = scales_by_definition(decisions, codes, weights)
        np.testing.assert_allclose(fit_scale(decisions, codes, weights), expected, rtol=1e-5)
    unweighted = fit_scale(decisions, codes)
    np.testing.assert_array_equal(unweighted, fit_scale(decisions, codes, np.ones(n)))


def test_the_labels_of_one_class_only_are_noisy(rng):
    # Series of class 0 have the decision -0.1, and 45% of them are labelled 1. Series of class 1
    # have the decision 1 and the right label.
    truth = rng.random(1000) < 0.5
    decisions = np.where(truth, -0.1, 1.0)
    codes = np.where(truth & (rng.random(1000) < 0.55), 0, 1)
    proba = probabilities(decisions, fit_scale(decisions, codes))
    assert proba[truth, 0].mean() == pytest.approx(0.55, abs=0.04)
    assert proba[~truth, 1].min() > 0.97


@pytest.mark.parametrize("k", [2, 5, 25, 200])
def test_confidence_in_separated_classes_does_not_depend_on_their_number(k):
    n = 2 * k
    codes = np.arange(n) % k
    decisions = np.where(codes[:, np.newaxis] == np.arange(k), 1.0, -1.0)
    decisions[np.arange(n), (codes + 1) % k] = 0.0
    proba = probabilities(decisions, fit_scale(decisions, codes))
    np.testing.assert_allclose(proba[np.arange(n), codes], (n + 0.5) / (n + 1), rtol=0, atol=0.02)


def test_a_weight_of_two_is_a_series_twice(rng):
    decisions, codes = drawn(1.0, 3, 300, rng)
    weights = rng.integers(1, 4, size=300).astype(float)
    weighted = fit_scale(decisions, codes, weights)
    twice = np.repeat(np.arange(300), weights.astype(int))
    repeated = fit_scale(decisions[twice], codes[twice])
    # Weights leave the number of series, which smooths.
    np.testing.assert_allclose(weighted, repeated, rtol=0.05)
    assert not np.allclose(weighted, fit_scale(decisions, codes), rtol=0.02)


def test_validation_counts_series_by_weight_and_groups_once():
    decisions, codes = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1, 0, 0, 1])
    weights, series = np.array([5.0, 1.0, 1.0, 1.0]), np.array([0, 1, 2, 2])
    held_out = calibration.HeldOutDecisions(decisions, codes, weights)
    validation = calibration.Validation.of("held-out", held_out, series)
    assert validation == calibration.Validation("held-out", 3, 6 / 8)
    groups = np.array(["a", "a", "b", "b"])
    validation = calibration.Validation.of("held-out", held_out._replace(groups=groups), series)
    assert validation == calibration.Validation("held-out", 3, 6 / 8, 2, (5 / 6 + 1 / 2) / 2)


@pytest.mark.parametrize("factor", [1e-3, 10.0, 1e3])
def test_probabilities_do_not_depend_on_the_unit_of_the_decisions(factor, rng):
    decisions, codes = drawn(1.0, 4, 200, rng)
    plain = probabilities(decisions, fit_scale(decisions, codes))
    scaled = probabilities(factor * decisions, fit_scale(factor * decisions, codes))
    np.testing.assert_allclose(scaled, plain, rtol=0, atol=1e-3)


def test_decisions_that_tell_nothing_give_equal_probabilities(rng):
    decisions, codes = rng.normal(size=(400, 3)), rng.integers(3, size=400)
    codes[decisions.argmax(axis=1) == codes] += 1
    proba = probabilities(decisions, fit_scale(decisions, codes % 3))
    np.testing.assert_allclose(proba, 1 / 3, rtol=0, atol=1e-3)


@given(arrays(float, st.tuples(st.integers(1, 20), st.integers(3, 6)), elements=VALUES))
def test_probabilities_sum_to_one_and_keep_the_order(decisions):
    proba = probabilities(decisions, np.linspace(0.5, 3.0, decisions.shape[1]))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    best = proba[np.arange(len(proba)), decisions.argmax(axis=1)]
    np.testing.assert_array_equal(best, proba.max(axis=1))


@given(arrays(float, st.integers(1, 20), elements=VALUES))
def test_one_decision_is_split_between_two_classes(decisions):
    np.testing.assert_array_equal(
        calibration.two_sided(decisions), np.stack([-decisions, decisions], axis=1)
    )
    proba = probabilities(decisions, 0.5)
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-decisions)), rtol=1e-9, atol=1e-15)


def test_extreme_decisions_overflow_nowhere():
    decisions = np.array([[1e300, -1e300, 0.0], [-1e300, 1e300, 0.0]])
    scale = fit_scale(decisions, np.array([0, 1]))
    assert np.isfinite(scale).all()
    assert np.isfinite(probabilities(decisions, scale)).all()
