"""The paper's theorem about metrics from their training series, as printed and corrected."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import slts
from slts import DataError
from slts.guarantees import bounds, certify
from tests.guarantees.conftest import FAST


def test_training_bounds_by_hand(model, training):
    """Everything from public functions: Z from aligned products, landmarks left out."""
    X, y = training
    certificate = certify(model, X, y, sample="training")
    batch, index = slts.as_series(X), model.landmark_indices_
    T = slts.aligned_products(batch, batch[index])
    rest, constants = np.setdiff1d(np.arange(90), index), (0.1, 1.0, 0.05 / 3)
    expected = {"stability": [], "the paper's theorem": []}
    for c in range(3):
        signs = np.where(y[index] == c, 1.0, -1.0)
        M, Z = model.metrics_[c], np.einsum("ijde,j->ide", T, signs) / 20
        labels = np.where(y == c, 1.0, -1.0)
        losses = np.maximum(0, 1 - labels * np.sum(M * Z, axis=(1, 2)) / 0.1)
        risk, gap = losses[rest].mean(), model.reports_[2 * c].gap
        stability = bounds.stability_bound(risk, 90, *constants, excluded=20, gap=gap)
        expected["stability"].append(stability)
        expected["the paper's theorem"].append(bounds.paper_bound(losses.mean(), 90, 3, *constants))
        assert certificate.headline.details["risk_by_class"][str(c)] == pytest.approx(risk)
    assert [bound.name for bound in certificate.bounds] == list(expected)
    for bound, values in zip(certificate.bounds, expected.values(), strict=True):
        assert list(bound.details["by_class"].values()) == pytest.approx(values)
        assert bound.value == pytest.approx(max(values))
        assert bound.details["mean"] == pytest.approx(np.mean(values))
        assert bound.vacuous == (max(values) >= 1)
        assert bound.bounds_what == "hinge risk of M"
        assert bound.details["n"] == 70
    assert "false in general" in certificate["the paper's theorem"].details["remark"]
    assert "is vacuous: M = 0 does as well" in certificate["the paper's theorem"].sentence


def test_candidates_of_a_search_share_delta(training):
    tuned = slts.SLTSClassifierCV(20, gammas=[0.1], lams=[1.0, 0.5], cv=2, random_state=0)
    lam = tuned.fit(*training).best_params_["lam"]
    alone = slts.SLTSClassifier(20, gamma=0.1, lam=lam, **FAST).fit(*training)
    np.testing.assert_array_equal(alone.landmark_indices_, tuned.landmark_indices_)
    one = certify(tuned, *training, sample="training", delta=0.1).headline.value
    other = certify(alone, *training, sample="training", delta=0.05).headline.value
    assert one == pytest.approx(other, rel=1e-4)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"landmarks": "kmedoids"}, "landmarks='kmedoids'"),
        ({"n_landmarks": None, "landmarks": [0, 1, 2, 30]}, "landmarks='indices'"),
        ({"class_weight": "balanced"}, "class_weight"),
        ({"regularizer": "nuclear"}, "regularizer='nuclear'"),
        ({"normalize": False}, "normalize=False"),
        ({"scale": "standard"}, "scale='standard'"),
        ({"homogeneous": True}, "constant channel"),
    ],
)
def test_fits_that_the_theorem_does_not_cover(parameters, match, training):
    fitted = slts.SLTSClassifier(**{"n_landmarks": 9, "gamma": 0.1, **FAST, **parameters})
    with pytest.raises(DataError, match=match):
        certify(fitted.fit(*training), *training, sample="training")


def test_parameters_changed_after_the_fit_change_no_certificate(training):
    model = slts.SLTSClassifier(20, gamma=0.05, regularizer="mahalanobis", **FAST).fit(*training)
    before = certify(model, *training, sample="training")
    model.set_params(
        gamma=1.0, lam=100.0, regularizer="l1", landmarks="kmedoids", class_weight="balanced",
        normalize=False,
    )  # fmt: skip
    assert certify(model, *training, sample="training") == before


def test_scaling_is_that_of_the_fit(model, training):
    scaled = slts.SLTSClassifier(9, gamma=0.1, scale="standard", **FAST).fit(*training)
    with pytest.raises(DataError, match="scale='standard'"):
        certify(scaled.set_params(scale=None), *training, sample="training")
    before = certify(model, *training, sample="training")
    changed = copy.copy(model).set_params(scale="standard")
    assert certify(changed, *training, sample="training") == before


@pytest.mark.parametrize("change", [-1e-3, 1e-3])
def test_the_objective_may_be_neither_above_nor_below_the_reported_one(change, training):
    model = slts.SLTSClassifier(20, gamma=0.1, **FAST).fit(*training)
    model.reports_ = [replace(r, objective=r.objective + change) for r in model.reports_]
    with pytest.raises(DataError, match="the objective of class 0 is"):
        certify(model, *training, sample="training")


def test_series_that_are_not_the_training_sample_raise_an_error(model, training, held_out):
    X, y = training
    with pytest.raises(DataError, match="not the training sample"):
        certify(model, *held_out, sample="training")
    changed, wrong = [*X], np.setdiff1d(np.arange(90), model.landmark_indices_)[0]
    changed[wrong] = X[wrong][:, ::-1] * 3 + 1
    with pytest.raises(DataError, match="objective"):
        certify(model, changed, y, sample="training")
    weighted = slts.SLTSClassifier(20, gamma=0.1, **FAST).fit(X, y, np.where(y == 0, 5.0, 1.0))
    with pytest.raises(DataError, match="other weights"):
        certify(weighted, X, y, sample="training")
    repeated = [*X, X[3]], [*y, y[3]]
    model = slts.SLTSClassifier(20, gamma=0.1, **FAST).fit(*repeated)
    with pytest.raises(DataError, match="repeated"):
        certify(model, *repeated, sample="training")
    everything = slts.SLTSClassifier(90, gamma=0.1, **FAST).fit(X, y)
    with pytest.raises(DataError, match="all training series are landmarks"):
        certify(everything, X, y, sample="training")


def test_only_metrics_learned_in_memory_without_groups_are_bounded(model, training):
    with pytest.raises(DataError, match="without groups"):
        certify(model, *training, groups=np.arange(90), sample="training")
    for estimator in (slts.BBSClassifier(9, **FAST), slts.OneNNClassifier()):
        with pytest.raises(DataError, match=f"{type(estimator).__name__} has no bounds"):
            certify(estimator.fit(*training), *training, sample="training")
