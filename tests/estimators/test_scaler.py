"""`SeriesScaler`: channels are scaled by the training series, in pipelines and searches."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import slts
from slts import DataError, SeriesBatch
from slts.series.channels import SCALES


def stretched(X):
    """Channels with offsets and scales of their own."""
    return [x * np.array([[1e3], [1.0], [1e-2]]) + np.array([[5.0], [100.0], [0.0]]) for x in X]


@pytest.mark.parametrize("kind", SCALES)
def test_a_pipeline_is_the_scale_of_the_classifier(kind, three):
    X, y, X_test, _ = three
    X, X_test = stretched(X), stretched(X_test)
    # Landmarks are drawn by the values of the series, which differ.
    how = {"landmarks": np.arange(12), "calibration_cv": None}
    inside = slts.BBSClassifier(scale=kind, **how).fit(X, y)
    before = make_pipeline(slts.SeriesScaler(kind), slts.BBSClassifier(**how)).fit(X, y)
    np.testing.assert_array_equal(before.predict(X_test), inside.predict(X_test))
    assert inside.score(X_test, three[3]) > slts.BBSClassifier(**how).fit(X, y).score(
        X_test, three[3]
    )


def test_training_steps_have_mean_zero_and_deviation_one(three):
    X, _, X_test, _ = three
    X = stretched(X)
    scaler = slts.SeriesScaler().fit(X)
    found = scaler.transform(X)
    np.testing.assert_allclose(found.values.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.values.std(axis=0), 1.0)
    np.testing.assert_array_equal(found.offsets, slts.as_series(X).offsets)
    new, values = scaler.transform(X_test), slts.as_series(X_test).values
    centre, spread = slts.as_series(X).values.mean(axis=0), slts.as_series(X).values.std(axis=0)
    np.testing.assert_allclose(new.values, (values - centre) / spread)


def test_channels_are_matched_by_name(three):
    batch = slts.as_series(three[0])
    named = SeriesBatch(batch.values, batch.offsets, ["u", "v", "w"])
    scaler = slts.SeriesScaler().fit(named)
    assert scaler.feature_names_in_.tolist() == ["u", "v", "w"]
    turned = SeriesBatch(batch.values[:, [2, 0, 1]], batch.offsets, ["w", "u", "v"])
    assert scaler.transform(turned) == scaler.transform(named)
    with pytest.raises(DataError, match=r"2 channels, but SeriesScaler was fitted on 3\.$"):
        scaler.transform(SeriesBatch(batch.values[:, :2], batch.offsets))
    with pytest.raises(DataError, match=r"fitted on 3\. Is the layout time_first\?"):
        scaler.transform([np.ones((9, 3))])


def test_searches_choose_the_scale(three):
    X, y, _, _ = three
    pipeline = make_pipeline(slts.SeriesScaler(), slts.OneNNClassifier())
    search = GridSearchCV(pipeline, {"seriesscaler__scale": list(SCALES)}, cv=2).fit(X, y)
    assert search.best_params_["seriesscaler__scale"] in SCALES


def test_what_cannot_be_scaled(three, tmp_path):
    X = three[0]
    with pytest.raises(ValueError, match=r"'scale' parameter of SeriesScaler must be one of"):
        slts.SeriesScaler("minmax").fit(X)
    with pytest.raises(NotFittedError):
        slts.SeriesScaler().transform(X)
    np.savez(tmp_path / "a.npz", X=np.ones((4, 1, 5)), y=[0, 1, 0, 1])
    scan = slts.scan_series(tmp_path / "a.npz")
    for call in (slts.SeriesScaler().fit, slts.SeriesScaler().fit(X).transform):
        with pytest.raises(DataError, match=r"needs series in memory\. To learn from a scan, use"):
            call(scan)
