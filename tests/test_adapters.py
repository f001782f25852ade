"""The adapters pass the checks of aeon and of sktime, and predict like the adapted classifier."""

import importlib
import sys

import numpy as np
import pytest

import slts

pytestmark = pytest.mark.slow
EXTRAS = {"aeon": "demo", "sktime": "sktime"}


def adapter_of(library):
    """The adapter. Its import takes seconds, also where these tests are left out."""
    pytest.importorskip(library)
    return getattr(importlib.import_module(f"slts.{library}"), f"{library.capitalize()}Classifier")


@pytest.fixture(params=EXTRAS)
def adapter(request):
    return adapter_of(request.param)


def as_frame(series):
    """A frame with an (instance, time) index."""
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame(x.T, columns=["u", "v"]) for x in series]
    return pd.concat(frames, keys=range(len(series)), names=["instance", "time"])


@pytest.fixture
def ragged(adapter):
    """Series in the form of the library, the same series as a list, and labels."""
    rng = np.random.default_rng(0)
    y = np.tile(["low", "mid", "high"], 20)
    shift = {"low": -1.0, "mid": 0.0, "high": 1.0}
    X = [rng.normal(size=(2, rng.integers(8, 20))) + shift[label] for label in y]
    return as_frame(X) if adapter.__name__ == "SktimeClassifier" else X, X, y


@pytest.mark.parametrize("estimator", [
    None, slts.LocalSLTSClassifier(random_state=0),
    slts.SLTSClassifierCV(n_landmarks=1.0, random_state=0),
    slts.BBSClassifier(n_landmarks=1.0, random_state=0),
    slts.BBSClassifierCV(n_landmarks=1.0, random_state=0), slts.OneNNClassifier(),
    slts.SimilaritySVC(), slts.LDMLTClassifier(n_cycles=2, triplets_per_series=2.0, random_state=0),
], ids=lambda estimator: type(estimator).__name__)  # fmt: skip
def test_every_classifier_passes_aeons_checks(estimator):
    adapter = adapter_of("aeon")
    from aeon.testing.estimator_checking import check_estimator

    check_estimator(adapter if estimator is None else adapter(estimator), raise_exceptions=True)


@pytest.mark.filterwarnings("default")
def test_the_default_passes_sktimes_checks():
    adapter = adapter_of("sktime")
    from sktime.utils.estimator_checks import check_estimator

    check_estimator(adapter, raise_exceptions=True, verbose=False)


def test_ragged_series_are_classified_as_without_the_adapter(adapter, ragged):
    given, X, y = ragged
    adapted = adapter(slts.SLTSClassifier(20, random_state=0)).fit(given, y)
    plain = slts.SLTSClassifier(20, random_state=0).fit(X, y)
    np.testing.assert_array_equal(adapted.predict(given), plain.predict(X))
    np.testing.assert_array_equal(adapted.predict_proba(given), plain.predict_proba(X))
    np.testing.assert_array_equal(adapted.classes_, plain.classes_)
    if given is not X:
        assert adapted.estimator_.feature_names_in_.tolist() == ["u", "v"]


def test_series_with_missing_values_are_passed_on(adapter, ragged):
    given, X, y = ragged
    gaps = [x.copy() for x in X]
    for x in gaps:
        x[0, ::5] = np.nan
    some = gaps if given is X else as_frame(gaps)
    adapted = adapter(slts.SLTSClassifier(20, random_state=0)).fit(some, y)
    assert adapted.get_tag("capability:missing_values")
    plain = slts.SLTSClassifier(20, random_state=0).fit(gaps, y)
    np.testing.assert_array_equal(adapted.predict(some), plain.predict(gaps))


def test_the_default_is_slts_with_its_own_defaults(adapter, ragged):
    fitted = adapter().fit(ragged[0], ragged[2])
    assert type(fitted.estimator_) is slts.SLTSClassifier
    assert fitted.estimator_.get_params() == slts.SLTSClassifier(n_jobs=1).get_params()


def test_threads_are_those_of_the_adapter_and_the_template_does_not_change(adapter, ragged):
    template = slts.OneNNClassifier(n_jobs=None)
    adapted = adapter(template, n_jobs=2).fit(ragged[0], ragged[2])
    assert adapted.estimator_.n_jobs == 2
    assert template.n_jobs is None
    assert not hasattr(template, "classes_")


def test_without_calibration_probabilities_are_zero_or_one(adapter, ragged):
    given, _, y = ragged
    adapted = adapter(slts.OneNNClassifier(calibration_size=None)).fit(given, y)
    proba = adapted.predict_proba(given)
    np.testing.assert_array_equal(np.unique(proba), [0.0, 1.0])
    np.testing.assert_array_equal(adapted.classes_[proba.argmax(axis=1)], adapted.predict(given))


@pytest.mark.parametrize("library", EXTRAS)
def test_without_the_library_the_error_names_the_extra(library, monkeypatch):
    for name in (library, f"{library}.classification.base"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"slts.{library}", raising=False)
    with pytest.raises(ImportError, match=rf'pip install "slts\[{EXTRAS[library]}\]"'):
        importlib.import_module(f"slts.{library}")
