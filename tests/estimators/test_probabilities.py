"""Calibrated probabilities: of predictions with probability p, a share of about p is correct."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import log_loss

import slts
from slts.solvers.calibration import two_sided
from tests.data import clusters
from tests.estimators.kinds import every, quick

CALIBRATED = {
    slts.SLTSClassifier: {"n_landmarks": 20, "calibration_cv": 3},
    slts.SLTSClassifierCV: {"n_landmarks": 20, "cv": 3},
    slts.BBSClassifier: {"n_landmarks": 20, "calibration_cv": 3},
    slts.BBSClassifierCV: {"n_landmarks": 20, "cv": 3},
    slts.OneNNClassifier: {},
    slts.SimilaritySVC: {},
    slts.LocalSLTSClassifier: {"n_snippets": 400},
}


def overlapping(n_classes):
    """Classes that overlap: 300 series to learn from, 900 others."""
    X, y = clusters(1200, n_classes=n_classes, seed=n_classes, noise=2.0)
    return X[:300], y[:300], X[300:], y[300:]


def calibration_error(proba, y):
    """Expected calibration error of the answers, in ten bins of equal count."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    bins = np.array_split(np.argsort(confidence), 10)
    gaps = [abs(confidence[b].mean() - right[b].mean()) * len(b) for b in bins]
    return sum(gaps) / len(y)


@pytest.mark.slow
@every(CALIBRATED)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_calibrated_on_held_out_series(kind, n_classes):
    X, y, X_test, y_test = overlapping(n_classes)
    errors, losses = [], []
    for seed in range(3):
        model = quick(kind, **CALIBRATED[kind], random_state=seed).fit(X, y)
        _, decisions, proba = model.outputs(X_test)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        errors.append(calibration_error(proba, y_test))
        bare = softmax(two_sided(decisions), axis=1)
        losses.append([log_loss(y_test, proba), log_loss(y_test, bare)])
    assert np.mean(errors) < 0.08
    # If the decision values have the right scale by chance, there is nothing to gain.
    calibrated, uncalibrated = np.mean(losses, axis=0)
    assert calibrated < 1.02 * uncalibrated


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.1, 0.2])
def test_weights_of_snippets_do_not_raise_the_confidence(shift):
    """Strong noise: the snippets with the largest coefficients follow the training series."""

    def noisy(n, rng):
        y = np.arange(n) % 2
        return [rng.normal(size=(2, rng.integers(15, 50))) + shift * c for c in y], y

    gaps = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model = slts.LocalSLTSClassifier(random_state=seed).fit(*noisy(300, rng))
        X, y = noisy(600, rng)
        gaps.append(model.predict_proba(X).max(axis=1).mean() - model.score(X, y))
    assert np.mean(gaps) < 0.05


@every([slts.BBSClassifier, slts.SimilaritySVC, slts.OneNNClassifier, slts.LocalSLTSClassifier])
def test_confidence_in_many_separated_classes_follows_the_data(kind, rng):
    centres = rng.normal(size=(25, 8, 1))
    y = np.tile(np.arange(25), 8)
    X = [centres[c] + 0.05 * rng.normal(size=(8, rng.integers(5, 13))) for c in y]
    model = kind(1.0) if kind is slts.BBSClassifier else kind()
    proba = model.set_params(random_state=0).fit(X[:100], y[:100]).predict_proba(X[100:])
    accuracy = (proba.argmax(axis=1) == y[100:]).mean()
    assert accuracy > 0.95
    assert proba.max(axis=1).mean() > accuracy - 0.05


@pytest.mark.parametrize(
    ("kind", "overfitted"),
    [
        (slts.SLTSClassifier, {"n_landmarks": 60, "gamma": 1e-5}),
        (slts.BBSClassifier, {"n_landmarks": 60, "gamma": 1e-5}),
        (slts.SimilaritySVC, {"C": 1e3}),
        (slts.OneNNClassifier, {}),
    ],
)
def test_calibration_corrects_overfitted_decisions(kind, overfitted):
    X, y, X_test, y_test = overlapping(2)
    model = kind(random_state=0, **overfitted).fit(X, y)
    bare = softmax(two_sided(model.decision_function(X_test)), axis=1)
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.95 * log_loss(y_test, bare)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (slts.SLTSClassifier, {}),
        (slts.BBSClassifier, {}),
        (slts.SLTSClassifierCV, {"cv": 3}),
        (slts.SimilaritySVC, {}),
        (slts.LocalSLTSClassifier, {"n_snippets": 0}),
    ],
)
def test_held_out_series_keep_their_sample_weights(kind, parameters, two):
    X, y, _, _ = two
    weights = np.where(np.arange(len(y)) < 10, 5.0, 1.0)
    scores = quick(kind, **parameters).fit(X, y, sample_weight=weights).held_out_scores_
    relative = scores.weights / scores.weights.min()
    for c in (0, 1):
        np.testing.assert_allclose(np.sort(relative[scores.codes == c]), np.sort(weights[y == c]))


@every([slts.SLTSClassifier, slts.BBSClassifier, slts.SimilaritySVC, slts.OneNNClassifier,
        slts.LDMLTClassifier])  # fmt: skip
def test_without_calibration_there_are_no_probabilities(kind, two, fitted):
    X, y, X_test, _ = two
    name = "calibration_cv" if "calibration_cv" in kind().get_params() else "calibration_size"
    model = quick(kind, **{name: None}).fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert hasattr(kind(), "predict_proba")
    expected = fitted(kind, "two").decision_function(X_test)
    np.testing.assert_array_equal(model.decision_function(X_test), expected)


def test_calibration_size_limits_the_alignments_of_neighbours(three, alignments):
    X, y, X_test, _ = three
    model = slts.OneNNClassifier(calibration_size=10, random_state=0).fit(X, y)
    assert alignments == [(10, 36)]
    assert model.predict_proba(X_test).shape == (30, 3)
