"""Probabilities mean what they say: of answers held with probability p, about p are right."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import log_loss

import slts
from slts.learning.calibration import two_sided
from tests.estimators.conftest import make_ragged

KINDS = [
    slts.SLTSClassifier,
    slts.SLTSClassifierCV,
    slts.BBSClassifier,
    slts.BBSClassifierCV,
    slts.OneNNClassifier,
    slts.SimilaritySVC,
]


def overlapping(k):
    """Classes that overlap: 300 series to learn from, 900 others."""
    X, y = make_ragged(k, 1200 // k, seed=k, noise=2.0)
    return X[:300], y[:300], X[300:], y[300:]


def calibration_error(proba, y):
    """Expected calibration error of the answers, in ten bins of equal count."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    bins = np.array_split(np.argsort(confidence), 10)
    gaps = [abs(confidence[b].mean() - right[b].mean()) * len(b) for b in bins]
    return sum(gaps) / len(y)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_calibrated_on_what_was_held_out(kind, n_classes):
    X, y, X_test, y_test = overlapping(n_classes)
    size = {} if kind in KINDS[4:] else {"n_landmarks": 20}
    model = kind(random_state=0, **size).fit(X, y)
    proba = model.predict_proba(X_test)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert calibration_error(proba, y_test) < 0.08
    # Where the decision values happen to have the right scale, there is nothing to gain.
    bare = softmax(two_sided(model.decision_function(X_test)), axis=1)
    assert log_loss(y_test, proba) < 1.005 * log_loss(y_test, bare)


@pytest.mark.parametrize(
    "model",
    [
        slts.SLTSClassifier(60, gamma=1e-5, random_state=0),
        slts.BBSClassifier(60, gamma=1e-5, random_state=0),
        slts.SimilaritySVC(C=1e3, random_state=0),
        slts.OneNNClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_overfitted_decisions_are_not_taken_at_face_value(model):
    X, y, X_test, y_test = overlapping(2)
    model.fit(X, y)
    bare = softmax(two_sided(model.decision_function(X_test)), axis=1)
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.95 * log_loss(y_test, bare)


@pytest.mark.parametrize("kind", [slts.SLTSClassifier, slts.BBSClassifier, slts.SimilaritySVC])
def test_without_calibration_there_are_no_probabilities(kind, two):
    X, y, X_test, _ = two
    model = kind(calibration_cv=None, random_state=0).fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert hasattr(kind(), "predict_proba")
    plain = kind(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X_test), plain.decision_function(X_test))


@pytest.mark.parametrize("kind", [slts.OneNNClassifier, slts.LDMLTClassifier])
def test_neighbours_without_calibration_have_no_probabilities(kind, two):
    X, y, _, _ = two
    quick = {"n_cycles": 1, "triplets_per_series": 1.0} if kind is slts.LDMLTClassifier else {}
    assert not hasattr(kind(calibration_size=None, **quick).fit(X, y), "predict_proba")


def test_neighbours_are_calibrated_on_few_series_when_asked(three, alignments):
    X, y, X_test, _ = three
    model = slts.OneNNClassifier(calibration_size=10, random_state=0).fit(X, y)
    assert alignments == [(10, 36)]
    assert model.predict_proba(X_test).shape == (30, 3)
