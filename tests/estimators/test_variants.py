"""Scaling of the channels and penalties of the metric."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import slts
from slts.series.channels import SCALES, ChannelScale
from tests.estimators.kinds import ROW_MAPPED, every, quick

REGULARIZERS = ["frobenius", "nuclear", "l1", "mahalanobis"]


@pytest.fixture(scope="module")
def offsets():
    """Two classes that differ in a small channel, next to one with a large offset."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = []
    for c in y:
        length = rng.integers(6, 12)
        loud = 1e4 + rng.normal(size=length)
        quiet = 1e-2 * (rng.normal(size=length) + np.where(c, 1.5, -1.5))
        X.append(np.stack([loud, quiet]))
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
    assert quick(kind, scale=scale).fit(X, y).score(X_test, y_test) >= 0.9


@every([slts.SLTSClassifier, slts.BBSClassifier, slts.OneNNClassifier, slts.SimilaritySVC])
@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_is_that_of_the_training_steps(kind, scale, two):
    X, y, X_test, _ = two
    training = slts.as_series(X)
    fitted = ChannelScale.fit(training, scale)

    def by_hand(batch):
        return slts.SeriesBatch(fitted(batch.values), batch.offsets)

    # Keys depend on the values, so landmarks are given and nothing else is drawn.
    how = {"calibration_cv": None}
    if kind is slts.OneNNClassifier:
        how = {"calibration_size": None}
    else:
        how |= {"C": 1.0} if kind is slts.SimilaritySVC else {"landmarks": np.arange(12)}
    inside = quick(kind, scale=scale, **how).fit(X, y)
    outside = quick(kind, **how).fit(by_hand(training), y)
    test = slts.as_series(X_test)
    found, expected = inside.decision_function(test), outside.decision_function(by_hand(test))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@every(ROW_MAPPED)
def test_no_scale_is_the_default(kind):
    assert kind().scale is None


def test_landmarks_are_kept_unscaled(two):
    X, y, _, _ = two
    model = slts.SLTSClassifier(8, scale="standard", random_state=0).fit(X, y)
    for j, landmark in zip(model.landmark_indices_, model.landmarks_, strict=True):
        np.testing.assert_array_equal(landmark, X[j])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "regularizer"),
    [
        *((slts.SLTSClassifier, regularizer) for regularizer in REGULARIZERS),
        (slts.SLTSClassifierCV, "nuclear"),
    ],
)
def test_every_penalty_learns_and_reports_its_gap(kind, regularizer, three):
    X, y, X_test, y_test = three
    model = quick(kind, regularizer=regularizer).fit(X, y)
    assert model.score(X_test, y_test) >= 0.5
    assert np.allclose(model.predict_proba(X_test).sum(axis=1), 1.0)
    tolerance = 1e-6 if regularizer == "frobenius" else 1e-4
    metrics = [report for report in model.reports_ if report.stage == "metric"]
    assert len(metrics) == 3
    for report in metrics:
        assert report.converged
        assert report.gap <= tolerance * report.objective


def test_the_papers_penalty_is_the_default():
    assert slts.SLTSClassifier().regularizer == slts.SLTSClassifierCV().regularizer == "frobenius"


def test_metrics_have_the_shape_their_penalty_is_chosen_for():
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    # Channel 0 tells the classes apart; the other five are noise.
    X = [rng.normal(size=(6, 12)) + np.eye(6)[:, :1] * (2.0 * c - 1.0) for c in y]

    def metric(regularizer):
        model = slts.SLTSClassifier(gamma=0.01, regularizer=regularizer, calibration_cv=None,
                                    random_state=0)  # fmt: skip
        return model.fit(X, y).metrics_[0]

    assert np.linalg.matrix_rank(metric("frobenius")) == 6
    assert np.linalg.matrix_rank(metric("nuclear")) <= 2
    sparse = metric("l1")
    assert np.count_nonzero(sparse) <= 6
    assert np.abs(sparse).argmax() == 0
    semidefinite = metric("mahalanobis")
    np.testing.assert_array_equal(semidefinite, semidefinite.T)
    assert np.linalg.eigvalsh(semidefinite)[0] >= -1e-12 * np.abs(semidefinite).max()


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize(("scale", "homogeneous"), [(None, False), ("asinh", True)])
def test_explanations_still_sum_to_the_decision(regularizer, scale, homogeneous, two):
    X, y, X_test, _ = two
    model = slts.SLTSClassifier(
        8, regularizer=regularizer, scale=scale, homogeneous=homogeneous, calibration_cv=None,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    for x in X_test[:3]:
        found = slts.explain(model, x)
        decision = model.decision_function([x])[0]
        total = found.offset + found.contributions.sum(axis=(1, 2))
        np.testing.assert_allclose(total, decision, atol=1e-9 * max(1.0, np.abs(decision).max()))
        assert found.contributions.shape[1:] == x.T.shape


def test_one_alignment_serves_every_penalty_of_a_search(two, alignments):
    X, y, _, _ = two
    quick(slts.SLTSClassifierCV, regularizer="nuclear", n_landmarks=10).fit(X, y)
    assert alignments == [(30, 10)]


def test_searches_may_choose_among_them(two):
    X, y, X_test, y_test = two
    grid = {"regularizer": ["frobenius", "l1"], "scale": [None, "robust"]}
    search = GridSearchCV(quick(slts.SLTSClassifier, calibration_cv=None), grid, cv=2)
    search.fit(slts.as_series(X), y)
    assert search.score(slts.as_series(X_test), y_test) >= 0.8
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()
