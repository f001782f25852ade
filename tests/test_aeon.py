"""The adapter passes aeon's own checks and predicts like the adapted classifier."""

import importlib
import sys

import numpy as np
import pytest

import slts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def adapter():
    """The class AeonClassifier. Its import takes seconds, also where these tests are left out."""
    pytest.importorskip("aeon")
    from slts.aeon import AeonClassifier

    return AeonClassifier


@pytest.fixture(scope="module")
def vowels():
    load = pytest.importorskip("aeon.datasets").load_japanese_vowels
    return *load("train"), *load("test")


def test_the_default_passes_aeons_checks(adapter):
    from aeon.testing.estimator_checking import check_estimator

    check_estimator(adapter, raise_exceptions=True)


@pytest.mark.parametrize(
    "estimator",
    [
        slts.LocalSLTSClassifier(random_state=0),
        slts.SLTSClassifierCV(n_landmarks=1.0, random_state=0),
        slts.BBSClassifier(n_landmarks=1.0, random_state=0),
        slts.BBSClassifierCV(n_landmarks=1.0, random_state=0),
        slts.OneNNClassifier(),
        slts.SimilaritySVC(),
        slts.LDMLTClassifier(n_cycles=2, triplets_per_series=2.0, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_other_classifiers_pass_aeons_checks_too(adapter, estimator):
    from aeon.testing.estimator_checking import check_estimator

    check_estimator(adapter(estimator), raise_exceptions=True)


def test_ragged_series_are_classified_as_without_the_adapter(adapter, vowels):
    X, y, X_test, y_test = vowels
    assert len({x.shape[1] for x in X}) > 1
    adapted = adapter(slts.SLTSClassifier(40, random_state=0)).fit(X, y)
    plain = slts.SLTSClassifier(40, random_state=0).fit(X, y)
    np.testing.assert_array_equal(adapted.predict(X_test), plain.predict(X_test))
    np.testing.assert_array_equal(adapted.predict_proba(X_test), plain.predict_proba(X_test))
    assert adapted.score(X_test, y_test) > 0.94
    np.testing.assert_array_equal(adapted.classes_, plain.classes_)


def test_the_default_is_slts_with_its_own_defaults(adapter, vowels):
    X, y, *_ = vowels
    fitted = adapter().fit(X[:60], y[:60])
    assert type(fitted.estimator_) is slts.SLTSClassifier
    expected = slts.SLTSClassifier(n_jobs=1).get_params()
    assert fitted.estimator_.get_params() == expected


def test_threads_are_those_of_the_adapter_and_the_template_does_not_change(adapter, vowels):
    X, y, *_ = vowels
    template = slts.OneNNClassifier(n_jobs=None)
    adapted = adapter(template, n_jobs=2).fit(X[:60], y[:60])
    assert adapted.estimator_.n_jobs == 2
    assert template.n_jobs is None
    assert not hasattr(template, "classes_")


def test_without_calibration_probabilities_are_zero_or_one(adapter, vowels):
    X, y, *_ = vowels
    adapted = adapter(slts.OneNNClassifier(calibration_size=None)).fit(X[:60], y[:60])
    proba = adapted.predict_proba(X[:10])
    np.testing.assert_array_equal(np.unique(proba), [0.0, 1.0])
    np.testing.assert_array_equal(adapted.classes_[proba.argmax(axis=1)], y[:10])


def test_without_aeon_the_error_names_the_extra(monkeypatch):
    for name in ("aeon", "aeon.classification.base"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "slts.aeon", raising=False)
    with pytest.raises(ImportError, match=r'pip install "slts\[demo\]"'):
        importlib.import_module("slts.aeon")
