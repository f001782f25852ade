"""`SeriesScaler`: channels are scaled by the training series, in pipelines and searches."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import slts
from slts import DataError, SeriesBatch
from slts.series.channels import SCALES
from tests.data import scan_of


@pytest.fixture(scope="module")
def stretched(three):
    """The problem of three classes with another offset and scale of each channel."""
    factors, shifts = np.array([[1e3], [1.0], [1e-2]]), np.array([[5.0], [100.0], [0.0]])
    X, y, X_test, y_test = three
    return [x * factors + shifts for x in X], y, [x * factors + shifts for x in X_test], y_test


@pytest.mark.parametrize("kind", SCALES)
def test_a_pipeline_is_the_scale_of_the_classifier(kind, stretched):
    X, y, X_test, y_test = stretched
    # Landmarks are drawn by the values of the series, which differ.
    how = {"landmarks": np.arange(12), "calibration_cv": None}
    inside = slts.BBSClassifier(scale=kind, **how).fit(X, y)
    before = make_pipeline(slts.SeriesScaler(kind), slts.BBSClassifier(**how)).fit(X, y)
    np.testing.assert_array_equal(before.predict(X_test), inside.predict(X_test))
    unscaled = slts.BBSClassifier(**how).fit(X, y)
    assert inside.score(X_test, y_test) > unscaled.score(X_test, y_test)


def test_series_are_scaled_by_the_moments_of_the_training_steps(stretched):
    X, X_test = map(slts.as_series, (stretched[0], stretched[2]))
    scaled = slts.SeriesScaler().fit(X).transform(X_test)
    centre, spread = X.values.mean(axis=0), X.values.std(axis=0)
    np.testing.assert_allclose(scaled.values, (X_test.values - centre) / spread)
    np.testing.assert_array_equal(scaled.offsets, X_test.offsets)


def test_channels_are_matched_by_name(three):
    batch = slts.as_series(three[0])
    named = SeriesBatch(batch.values, batch.offsets, ["u", "v", "w"])
    scaler = slts.SeriesScaler().fit(named)
    assert scaler.feature_names_in_.tolist() == ["u", "v", "w"]
    turned = SeriesBatch(batch.values[:, [2, 0, 1]], batch.offsets, ["w", "u", "v"])
    assert scaler.transform(turned) == scaler.transform(named)
    with pytest.raises(DataError, match="2 channels, but SeriesScaler was fitted on 3"):
        scaler.transform(SeriesBatch(batch.values[:, :2], batch.offsets))
    with pytest.raises(DataError, match=r"fitted on 3\. Is the layout time_first"):
        scaler.transform([np.ones((9, 3))])


def test_searches_choose_the_scale(three):
    X, y, _, _ = three
    pipeline = make_pipeline(slts.SeriesScaler(), slts.OneNNClassifier())
    search = GridSearchCV(pipeline, {"seriesscaler__scale": list(SCALES)}, cv=2).fit(X, y)
    assert search.best_params_["seriesscaler__scale"] in SCALES


def test_what_cannot_be_scaled(three):
    X, y = three[:2]
    with pytest.raises(ValueError, match="'scale' parameter of SeriesScaler"):
        slts.SeriesScaler("minmax").fit(X)
    with pytest.raises(NotFittedError):
        slts.SeriesScaler().transform(X)
    for call in (slts.SeriesScaler().fit, slts.SeriesScaler().fit(X).transform):
        with pytest.raises(DataError, match="needs series in memory"):
            call(scan_of((X, y)))
