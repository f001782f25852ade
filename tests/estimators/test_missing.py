"""Missing values in every classifier, in memory, in files, and in what is made from a model."""

from functools import cache

import numpy as np
import pytest

import slts
from slts.datasets import write_ts
from slts.report import write_report
from tests.estimators.kinds import ROW_MAPPED, every, every_kind, quick

NAN = np.nan


def with_gaps(X, share, seed=0):
    """Remove values at random; the last step keeps its first value."""
    rng = np.random.default_rng(seed)
    gappy = []
    for x in X:
        removed = np.where(rng.random(x.shape) < share, NAN, x)
        removed[0, -1] = x[0, -1]
        gappy.append(removed)
    return gappy


@pytest.fixture(scope="module")
def gappy(two):
    X, y, X_test, y_test = two
    return with_gaps(X, 0.3), y, with_gaps(X_test, 0.3, seed=1), y_test


@pytest.fixture(scope="module")
def fit_gappy(gappy):
    """Models of `gappy`, each fitted once."""
    return cache(lambda kind: quick(kind).fit(*gappy[:2]))


@every_kind
def test_series_with_gaps_are_learned_and_predicted(kind, gappy, fit_gappy):
    _, _, X_test, y_test = gappy
    model = fit_gappy(kind)
    assert np.isfinite(model.decision_function(X_test)).all()
    assert model.score(X_test, y_test) >= 0.8
    # One series gives the same numbers alone and in a batch.
    alone = [model.decision_function([x])[0] for x in X_test]
    np.testing.assert_allclose(model.decision_function(X_test), alone, atol=1e-12)


@every_kind
def test_padding_with_nan_changes_nothing(kind, gappy, fit_gappy):
    X, y, X_test, _ = gappy
    expected = fit_gappy(kind).decision_function(X_test)
    longest = max(x.shape[1] for x in [*X, *X_test])
    padded = [
        np.stack(
            [np.pad(x, ((0, 0), (0, longest - x.shape[1])), constant_values=NAN) for x in some]
        )
        for some in (X, X_test)
    ]
    found = quick(kind).fit(padded[0], y).decision_function(padded[1])
    np.testing.assert_array_equal(found, expected)


@every(ROW_MAPPED)
@pytest.mark.parametrize("homogeneous", [False, True])
def test_steps_without_a_value_are_left_out(kind, homogeneous, gappy, fit_gappy):
    X, y, X_test, _ = gappy
    expected = quick(kind, homogeneous=True).fit(X, y) if homogeneous else fit_gappy(kind)
    steps = [np.insert(x, [0, 2, 2, x.shape[1] - 1], NAN, axis=1) for x in X_test]
    np.testing.assert_array_equal(
        expected.decision_function(steps), expected.decision_function(X_test)
    )


@every_kind
def test_a_channel_that_is_never_observed_adds_nothing(kind, two):
    X, y, X_test, _ = two
    more = [[np.vstack([x, np.full(x.shape[1], NAN)]) for x in some] for some in (X, X_test)]
    with pytest.warns(UserWarning, match=r"channel \d has no value in any training series"):
        model = quick(kind).fit(more[0], y)
    assert np.isfinite(model.decision_function(more[1])).all()


@every_kind
def test_files_keep_landmarks_with_gaps(kind, gappy, fit_gappy, tmp_path):
    X_test = gappy[2]
    model = fit_gappy(kind)
    slts.save(model, tmp_path / "m.slts")
    loaded = slts.load(tmp_path / "m.slts")
    np.testing.assert_array_equal(loaded.decision_function(X_test), model.decision_function(X_test))


@pytest.mark.parametrize("kind", [slts.SLTSClassifier, slts.LocalSLTSClassifier])
def test_a_scan_gives_the_same_model_as_the_arrays(kind, gappy, fit_gappy, tmp_path):
    X, y, X_test, _ = gappy
    write_ts(tmp_path / "train.ts", X, y)
    scanned = quick(kind).fit(slts.scan_series(tmp_path / "train.ts"))
    expected = fit_gappy(kind).decision_function(X_test)
    np.testing.assert_allclose(scanned.decision_function(X_test), expected, atol=1e-12)


@pytest.mark.parametrize("kind", [slts.SLTSClassifier, slts.LocalSLTSClassifier])
def test_features_certificates_and_reports_accept_gaps(kind, gappy, fit_gappy, tmp_path):
    _, _, X_test, y_test = gappy
    model = fit_gappy(kind)
    features = model.transform(X_test)
    assert np.isfinite(features).all()
    assert slts.certify(model, X_test, y_test).bounds[0].value < 1.0
    assert slts.summarize(model, X_test).channel_importance.shape[1] >= 3
    write_report(model, tmp_path / "page.html", X=X_test, y=y_test)
    assert "gaps are interpolated" in (tmp_path / "page.html").read_text()


def test_the_default_classifier_finds_a_motif_between_gaps():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = []
    for c in y:
        x = rng.normal(scale=0.3, size=(2, 60))
        start = rng.integers(0, 40)
        x[0, start : start + 20] += 2.0 * np.sin(np.arange(20) / (2.0 if c else 4.0))
        X.append(x)
    X = with_gaps(X, 0.3)
    model = slts.LocalSLTSClassifier(random_state=0).fit(X[:50], y[:50])
    assert model.score(X[50:], y[50:]) >= 0.9
