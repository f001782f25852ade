"""Missing values in every classifier, in memory and in scans, and in what is made from a model."""

from functools import cache

import numpy as np
import pytest

import slts
from slts.report import write_report
from tests.data import scan_of, with_gaps
from tests.estimators.kinds import ROW_MAPPED, every, every_kind, quick

NAN = np.nan


@pytest.fixture(scope="module")
def gappy(two):
    X, y, X_test, y_test = two
    return with_gaps(X, 0.3), y, with_gaps(X_test, 0.3, seed=1), y_test


@pytest.fixture(scope="module")
def fit_gappy(gappy):
    """Models of `gappy`, each fitted once."""
    return cache(lambda kind: quick(kind).fit(*gappy[:2]))


@every_kind
def test_series_with_gaps_are_learned_and_predicted(kind, gappy, fit_gappy, tmp_path):
    _, _, X_test, y_test = gappy
    model = fit_gappy(kind)
    decisions = model.decision_function(X_test)
    assert np.isfinite(decisions).all()
    assert model.score(X_test, y_test) >= 0.8
    # One series gives the same numbers alone and in a batch, and after the model was saved.
    alone = [model.decision_function([x])[0] for x in X_test]
    np.testing.assert_allclose(decisions, alone, atol=1e-12)
    slts.save(model, tmp_path / "m.slts")
    loaded = slts.load(tmp_path / "m.slts")
    np.testing.assert_array_equal(loaded.decision_function(X_test), decisions)


@every_kind
def test_padding_with_nan_changes_nothing(kind, gappy, fit_gappy):
    X, y, X_test, _ = gappy
    longest = max(x.shape[1] for x in [*X, *X_test])
    padded, padded_test = (
        np.stack(
            [np.pad(x, [(0, 0), (0, longest - x.shape[1])], constant_values=NAN) for x in some]
        )
        for some in (X, X_test)
    )
    np.testing.assert_array_equal(
        quick(kind).fit(padded, y).decision_function(padded_test),
        fit_gappy(kind).decision_function(X_test),
    )


@every(ROW_MAPPED)
@pytest.mark.parametrize("homogeneous", [False, True])
def test_steps_without_a_value_are_left_out(kind, homogeneous, gappy):
    X, y, X_test, _ = gappy
    model = quick(kind, homogeneous=homogeneous).fit(X, y)
    steps = [np.insert(x, [0, 2, 2, x.shape[1] - 1], NAN, axis=1) for x in X_test]
    np.testing.assert_array_equal(model.decision_function(steps), model.decision_function(X_test))


@every_kind
def test_a_channel_that_is_never_observed_adds_nothing(kind, two):
    X, y, X_test, _ = two
    X, X_test = ([np.vstack([x, np.full(x.shape[1], NAN)]) for x in some] for some in (X, X_test))
    with pytest.warns(UserWarning, match="channel 3 has no value"):
        model = quick(kind).fit(X, y)
    assert np.isfinite(model.decision_function(X_test)).all()


@every_kind
def test_a_scan_gives_the_same_model_as_the_arrays(kind, gappy, fit_gappy):
    X, y, X_test, _ = gappy
    scanned = quick(kind).fit(scan_of((X[:12], y[:12]), (X[12:], y[12:])))
    expected = fit_gappy(kind).decision_function(X_test)
    np.testing.assert_allclose(scanned.decision_function(X_test), expected, atol=1e-12)


@every([slts.SLTSClassifier, slts.LocalSLTSClassifier])
def test_features_certificates_and_reports_accept_gaps(kind, gappy, fit_gappy, tmp_path):
    _, _, X_test, y_test = gappy
    model = fit_gappy(kind)
    assert np.isfinite(model.transform(X_test)).all()
    assert slts.certify(model, X_test, y_test).bounds[0].value < 1.0
    assert slts.summarize(model, X_test).channel_importance.shape[1] >= 3
    write_report(model, tmp_path / "page.html", X=X_test, y=y_test)


def test_the_default_classifier_finds_a_motif_between_gaps():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(scale=0.3, size=(80, 2, 60))
    for x, c, start in zip(X, y, rng.integers(0, 40, size=80), strict=True):
        x[0, start : start + 20] += 2.0 * np.sin(np.arange(20) / (2.0 if c else 4.0))
    X = with_gaps(X, 0.3)
    model = slts.LocalSLTSClassifier(random_state=0).fit(X[:50], y[:50])
    assert model.score(X[50:], y[50:]) >= 0.9
