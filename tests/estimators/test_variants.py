"""Scales of the channels, the constant channel, and penalties of the metric."""

import numpy as np
import pytest

import slts
from slts.features.row_map import SCALES, ChannelScale
from tests.estimators.kinds import ROW_MAPPED, every, quick

REGULARIZERS = ["frobenius", "nuclear", "l1", "mahalanobis"]
COLLAPSES = pytest.mark.filterwarnings("ignore:The metric of class:UserWarning")


# -- scales


@pytest.fixture(scope="module")
def offsets():
    """Two classes that differ in a small channel, beside one with a large offset."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = []
    for c in y:
        loud, quiet = rng.normal(size=(2, rng.integers(6, 12)))
        X.append(np.stack([1e4 + loud, 1e-2 * (quiet + np.where(c, 1.5, -1.5))]))
    return X[:40], y[:40], X[40:], y[40:]


@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        *((kind, SCALES[0]) for kind in ROW_MAPPED),
        *((slts.OneNNClassifier, scale) for scale in SCALES[1:]),
    ],
)
def test_a_scale_makes_small_channels_count(kind, scale, offsets):
    X, y, X_test, y_test = offsets
    assert kind().scale is None
    assert quick(kind, scale=scale).fit(X, y).score(X_test, y_test) >= 0.9


@every(ROW_MAPPED)
def test_channels_of_very_different_spreads_need_a_scale(kind, two):
    X, y = two[0], two[1]
    unequal = [x * np.array([[1.0], [1e-3], [0.5]]) for x in X]
    with pytest.warns(UserWarning, match=r"'channel 0', .* 'channel 1'.*scale='standard'"):
        quick(kind).fit(unequal, y)
    # Constant channels and scaled ones are fine: warnings are errors here.
    quick(kind, scale="standard").fit(unequal, y)
    quick(kind).fit([x * np.array([[1.0], [0.0], [0.5]]) for x in X], y)


@every([slts.SLTSClassifier, slts.BBSClassifier, slts.OneNNClassifier, slts.SimilaritySVC])
@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_is_that_of_the_training_steps(kind, scale, two):
    X, y, X_test, _ = two
    training, test = slts.as_series(X), slts.as_series(X_test)
    channel_scale = ChannelScale.fit(training, scale)

    def scaled(batch):
        return slts.SeriesBatch(channel_scale(batch.values), batch.offsets)

    # Keys depend on the values, so landmarks are named and nothing else is drawn.
    how = {"calibration_cv": None}
    if kind is slts.OneNNClassifier:
        how = {"calibration_size": None}
    else:
        how |= {"C": 1.0} if kind is slts.SimilaritySVC else {"landmarks": np.arange(12)}
    inside = quick(kind, scale=scale, **how).fit(X, y)
    outside = quick(kind, **how).fit(scaled(training), y)
    expected = outside.decision_function(scaled(test))
    atol = 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(inside.decision_function(test), expected, rtol=0, atol=atol)
    if hasattr(inside, "landmarks_"):
        # Landmarks are kept as they were, for people to look at.
        assert inside.landmarks_ == training[inside.landmark_indices_]


# -- the constant channel: with one channel, unit rows keep nothing but the sign


@pytest.fixture(scope="module")
def amplitudes():
    """Positive univariate series that differ in height alone."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = [np.where(c, 3.0, 1.0) + 0.3 * rng.random((1, rng.integers(5, 10))) for c in y]
    return X[:60], y[:60], X[60:], y[60:]


@every(ROW_MAPPED)
@pytest.mark.parametrize("homogeneous", ["auto", True, False])
@COLLAPSES
def test_amplitude_is_learned_with_the_constant_channel_only(kind, homogeneous, amplitudes):
    X, y, X_test, y_test = amplitudes
    accuracy = quick(kind, homogeneous=homogeneous).fit(X, y).score(X_test, y_test)
    assert accuracy >= 0.95 if homogeneous else accuracy == 0.5


@every([slts.SLTSClassifier, slts.BBSClassifier])
@pytest.mark.parametrize(
    ("channels", "homogeneous", "size"),
    [(1, "auto", 2), (1, False, 1), (2, "auto", 2), (2, True, 3), (2, False, 2)],
)
@COLLAPSES
def test_metrics_have_the_size_of_the_rows_that_are_aligned(kind, channels, homogeneous, size):
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, channels, 5)) + y[:, None, None]
    model = quick(kind, homogeneous=homogeneous, calibration_cv=None).fit(X, y)
    assert model.metrics_.shape == (1, size, size)
    assert model.landmarks_.n_channels == channels


def test_the_constant_is_the_root_mean_square_of_the_training_rows(amplitudes):
    X, y, X_test, _ = amplitudes
    model = slts.SLTSClassifier(10, random_state=0).fit(X, y)
    constant = np.sqrt(np.mean(np.concatenate([x.ravel() for x in X]) ** 2))

    def extended(series):
        return [np.vstack([x, np.full_like(x, constant)]) for x in series]

    T = slts.aligned_products(extended(X_test), extended(list(model.landmarks_)))
    expected = np.einsum("ijde,de,j->i", T, model.metrics_[0], model.coef_[0])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.decision_function(X_test), expected, rtol=0, atol=1e-9 * scale)


# -- penalties


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "regularizer"),
    [
        *((slts.SLTSClassifier, regularizer) for regularizer in REGULARIZERS),
        (slts.SLTSClassifierCV, "nuclear"),
    ],
)
def test_every_penalty_learns_and_reports_its_gap(kind, regularizer, three, alignments):
    X, y, X_test, y_test = three
    assert kind().regularizer == "frobenius"
    model = quick(kind, regularizer=regularizer).fit(X, y)
    assert alignments == [(36, 12)]
    assert model.score(X_test, y_test) >= 0.5
    assert np.allclose(model.predict_proba(X_test).sum(axis=1), 1.0)
    tolerance = 1e-6 if regularizer == "frobenius" else 1e-4
    metrics = [report for report in model.reports_ if report.stage == "metric"]
    assert len(metrics) == 3
    for report in metrics:
        assert report.converged
        assert report.gap <= tolerance * report.objective
