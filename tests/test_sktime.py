"""The adapter passes sktime's own checks and predicts like the adapted classifier."""

import importlib
import sys

import numpy as np
import pytest

import slts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def adapter():
    """The class SktimeClassifier. Its import takes seconds, also where these tests are left out."""
    pytest.importorskip("sktime")
    from slts.sktime import SktimeClassifier

    return SktimeClassifier


@pytest.fixture(scope="module")
def ragged():
    """A frame with an (instance, time) index, its series as a list, and labels."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = np.tile(["low", "mid", "high"], 20)
    shift = {"low": -1.0, "mid": 0.0, "high": 1.0}
    X = [rng.normal(size=(2, rng.integers(8, 20))) + shift[label] for label in y]
    frames = [pd.DataFrame(x.T, columns=["u", "v"]) for x in X]
    return pd.concat(frames, keys=range(60), names=["instance", "time"]), X, y


@pytest.mark.filterwarnings("default")
def test_the_default_passes_sktimes_checks(adapter):
    from sktime.utils.estimator_checks import check_estimator

    check_estimator(adapter, raise_exceptions=True, verbose=False)


def test_ragged_series_are_classified_as_without_the_adapter(adapter, ragged):
    panel, X, y = ragged
    adapted = adapter(slts.SLTSClassifier(20, random_state=0)).fit(panel, y)
    plain = slts.SLTSClassifier(20, random_state=0).fit(X, y)
    np.testing.assert_array_equal(adapted.predict(panel), plain.predict(X))
    np.testing.assert_array_equal(adapted.predict_proba(panel), plain.predict_proba(X))
    np.testing.assert_array_equal(adapted.classes_, plain.classes_)
    assert adapted.estimator_.feature_names_in_.tolist() == ["u", "v"]


def test_series_with_missing_values_are_passed_on(adapter, ragged):
    panel, _, y = ragged
    gaps = panel.copy()
    gaps.iloc[::5, 0] = np.nan
    adapted = adapter(slts.SLTSClassifier(20, random_state=0)).fit(gaps, y)
    assert adapted.get_tag("capability:missing_values")
    series = [frame.to_numpy().T for _, frame in gaps.groupby(level=0)]
    plain = slts.SLTSClassifier(20, random_state=0).fit(series, y)
    np.testing.assert_array_equal(adapted.predict(gaps), plain.predict(series))


def test_threads_are_those_of_the_adapter_and_the_template_does_not_change(adapter, ragged):
    panel, _, y = ragged
    template = slts.OneNNClassifier(n_jobs=None)
    adapted = adapter(template, n_jobs=2).fit(panel, y)
    assert adapted.estimator_.n_jobs == 2
    assert template.n_jobs is None
    assert not hasattr(template, "classes_")


def test_without_calibration_probabilities_are_zero_or_one(adapter, ragged):
    panel, _, y = ragged
    adapted = adapter(slts.OneNNClassifier(calibration_size=None)).fit(panel, y)
    proba = adapted.predict_proba(panel)
    np.testing.assert_array_equal(np.unique(proba), [0.0, 1.0])
    np.testing.assert_array_equal(adapted.classes_[proba.argmax(axis=1)], adapted.predict(panel))


def test_without_sktime_the_error_names_the_extra(monkeypatch):
    for name in ("sktime", "sktime.classification.base"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "slts.sktime", raising=False)
    with pytest.raises(ImportError, match=r'pip install "slts\[sktime\]"'):
        importlib.import_module("slts.sktime")
