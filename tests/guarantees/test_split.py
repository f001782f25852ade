"""`fit_certified` splits, fits and certifies as the bounds require."""

import numpy as np
import pytest
from scipy import stats

import slts
from slts.guarantees import bounds, certify, fit_certified, split
from slts.guarantees.split import compress
from slts.learning import solve_separator
from tests.guarantees.test_certify import make_series

ESTIMATOR = slts.SLTSClassifier(15, gamma=0.1, lam=1.0, random_state=0)


@pytest.fixture(scope="module")
def data():
    return make_series(300, 5)


@pytest.fixture(scope="module")
def fitted(data):
    return fit_certified(ESTIMATOR, *data, random_state=0)


def parts_of(n, seed):
    order = np.random.RandomState(seed).permutation(n)
    return [np.sort(part) for part in np.split(order, [round(0.4 * n), round(0.8 * n)])]


def test_landmarks_and_metric_come_from_the_first_part(data, fitted):
    X, y = data
    model, _ = fitted
    first, _, _ = parts_of(300, 0)
    assert np.isin(model.landmark_indices_, first).all()
    for j, landmark in zip(model.landmark_indices_, model.landmarks_, strict=True):
        np.testing.assert_array_equal(X[j], landmark)
    alone = slts.SLTSClassifier(15, gamma=0.1, lam=1.0, random_state=0)
    alone.fit([X[i] for i in first], y[first])
    np.testing.assert_array_equal(alone.metrics_, model.metrics_)


def test_separator_comes_from_the_second_part(data, fitted):
    X, y = data
    model, certificate = fitted
    _, second, _ = parts_of(300, 0)
    batch = slts.as_series(X)[second]
    for c in range(3):
        K = slts.similarity(batch, model.landmarks_, metric=model.metrics_[c])
        labels = np.where(y[second] == c, 1.0, -1.0)
        coef = solve_separator(K, labels, gamma=0.1).coef
        np.testing.assert_allclose(model.coef_[c], coef, rtol=1e-6, atol=1e-9)
        scheme = compress(K, labels, coef, 0.1)
        expected = bounds.compression_bound(
            scheme.errors, 120, 15, np.count_nonzero(coef), len(scheme.tight), 0.05 / 3,
            radius_binds=scheme.radius_binds,
        )  # fmt: skip
        found = certificate["compression"].details["by_class"][str(c)]
        assert found == pytest.approx(expected)


def test_headline_is_the_third_parts(data, fitted):
    X, y = data
    model, certificate = fitted
    _, _, third = parts_of(300, 0)
    errors = np.count_nonzero(model.predict([X[i] for i in third]) != y[third])
    expected = stats.beta.isf(0.05, errors + 1, 60 - errors)
    assert certificate.headline.value == pytest.approx(expected)
    assert certificate.n == 60
    again = certify(model, [X[i] for i in third], y[third])
    assert again.headline.value == certificate.headline.value


def test_all_bounds_are_there(fitted):
    _, certificate = fitted
    assert [bound.name for bound in certificate.bounds] == [
        "hold-out error",
        "hold-out error, one-vs-rest",
        "compression",
        "PAC-Bayes, separator",
        "hold-out hinge",
        "PAC-Bayes, metric",
        "norm",
        "norm, a priori",
        "stability",
        "the paper's theorem",
    ]
    total = sum(certificate["compression"].details["by_class"].values())
    assert certificate["compression"].details["multiclass"] == min(1.0, total)


def test_the_model_works_like_any_other(data, fitted):
    X, y = data
    model, _ = fitted
    assert model.score(X, y) > 0.8
    np.testing.assert_allclose(model.predict_proba(X[:5]).sum(axis=1), 1.0)
    separators = [report for report in model.reports_ if report.stage == "separator"]
    assert all(report.converged for report in separators)
    # Its separator was learned on other series than its metric: there is no one training sample.
    with pytest.raises(slts.DataError, match="not the training sample"):
        certify(model, X, y, sample="training")


def test_without_a_third_part_compression_is_the_headline(data):
    _, certificate = fit_certified(ESTIMATOR, *data, shares=(0.4, 0.6, 0.0), random_state=0)
    assert certificate.headline.name == "compression"
    assert certificate.n == 180


def test_kmedoids_landmarks_are_allowed_in_their_own_part(data):
    estimator = slts.SLTSClassifier(9, landmarks="kmedoids", gamma=0.1, calibration_cv=None)
    _, certificate = fit_certified(estimator, *data, random_state=0)
    assert "looking at all training series" in certificate.notes[0]
    assert certificate.notes[0][:40] in str(certificate)
    assert "compression" in [bound.name for bound in certificate.bounds]


@pytest.mark.parametrize("regularizer", ["frobenius", "nuclear", "l1", "mahalanobis"])
def test_a_scale_is_fitted_on_the_first_part_only(data, regularizer):
    X, y = data
    estimator = slts.SLTSClassifier(
        15, gamma=0.1, lam=0.1, scale="robust", regularizer=regularizer, calibration_cv=None,
        random_state=0,
    )  # fmt: skip
    model, found = fit_certified(estimator, X, y, random_state=0)
    first, _, _ = parts_of(300, 0)
    rows = np.concatenate([X[i] for i in first], axis=1)
    np.testing.assert_allclose(model.row_map_.scale.centre, np.median(rows, axis=1))
    names = {bound.name for bound in found.bounds}
    assert {"hold-out error", "compression", "PAC-Bayes, separator", "hold-out hinge"} <= names
    # Its own part cannot certify the metric: the scale was fitted on it.
    assert "norm" not in names
    assert any("scale of the channels" in note for note in found.notes)


def test_bbs_and_univariate_series():
    rng = np.random.default_rng(0)
    y = np.arange(150) % 2
    X = rng.normal(size=(150, 12)) + y[:, np.newaxis]
    estimator = slts.BBSClassifier(10, gamma=0.1, random_state=0)
    model, certificate = fit_certified(estimator, X, y, random_state=0)
    names = [bound.name for bound in certificate.bounds]
    assert names == ["hold-out error", "compression", "PAC-Bayes, separator"]
    assert model.predict_proba(X[:3]).shape == (3, 2)


def test_other_classifiers_learn_on_two_parts(data):
    model, certificate = fit_certified(slts.OneNNClassifier(), *data, random_state=0)
    assert [bound.name for bound in certificate.bounds] == ["hold-out error"]
    assert len(model.training_rows_) == 240


@pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0}])
def test_class_weights_count_in_the_second_part(data, class_weight):
    X, y = data
    estimator = slts.BBSClassifier(
        10, gamma=0.1, calibration_cv=None, class_weight=class_weight, random_state=0
    )
    model, _ = fit_certified(estimator, X, y, random_state=0)
    assert not hasattr(estimator, "coef_")
    _, second, _ = parts_of(300, 0)
    counts = np.bincount(y[second])
    by_class = 1 / counts if class_weight == "balanced" else np.array([5.0, 1.0, 1.0])
    weights = by_class[y[second]]
    K = model.transform([X[i] for i in second])
    for c in range(3):
        labels = np.where(y[second] == c, 1.0, -1.0)
        coef = solve_separator(K, labels, gamma=0.1, sample_weight=weights / weights.mean()).coef
        np.testing.assert_allclose(model.coef_[c], coef, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.5, 0.5, 0.5), (0.0, 0.8, 0.2), (1.2, -0.4, 0.2)])
def test_shares_must_be_shares(data, shares):
    with pytest.raises(ValueError, match="'shares'"):
        fit_certified(ESTIMATOR, *data, shares=shares)


def test_data_that_cannot_be_split_raise_an_error(data):
    X, y = data
    for shares in ((0.5, 0.5, 0.0), (0.0, 0.0, 1.0)):
        with pytest.raises(ValueError, match="third positive"):
            fit_certified(slts.OneNNClassifier(), X, y, shares=shares)
    with pytest.raises(ValueError, match="not indices"):
        fit_certified(slts.SLTSClassifier(landmarks=[1, 2]), X, y)
    rare = np.where(np.arange(300) == 7, 9, y)
    with pytest.raises(slts.DataError, match="has no series of class 9"):
        fit_certified(ESTIMATOR, X, rare, random_state=0)
    first, second, _ = parts_of(300, 0)
    for part, purpose in ((second, "landmarks and metrics"), (first, "separators")):
        rare = np.where(np.arange(300) == part[0], 9, y)
        with pytest.raises(slts.DataError, match=rf"part for {purpose} \(120 series\) .* class 9"):
            fit_certified(ESTIMATOR, X, rare, random_state=0)
    with pytest.raises(slts.DataError, match="inconsistent"):
        fit_certified(ESTIMATOR, X, y[:-1])
    with pytest.raises(ValueError, match="strictly between"):
        fit_certified(ESTIMATOR, X, y, delta=1.0)


def test_the_only_series_of_a_class_is_not_held_out_for_probabilities(data):
    X, y = data
    _, second, _ = parts_of(300, 0)
    lonely = y.copy()
    lonely[second[y[second] == 2][1:]] = 1
    model, _ = fit_certified(ESTIMATOR, X, lonely, random_state=0)
    chances = model.predict_proba(X[:20])
    assert chances.shape == (20, 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)


@pytest.mark.parametrize("gamma", [0.02, 0.2, 2.0])
def test_weights_are_rebuilt_from_few_examples(rng, gamma):
    for _ in range(20):
        K = rng.normal(size=(60, 8))
        labels = np.where(K[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
        coef = solve_separator(K, labels, gamma=gamma).coef
        scheme = compress(K, labels, coef, gamma)
        assert scheme is not None
        assert len(scheme.tight) == np.count_nonzero(coef) - scheme.radius_binds
        # Nothing but the tight rows, the columns and the signs enter the solution.
        rows = labels[scheme.tight, np.newaxis] * K[np.ix_(scheme.tight, scheme.used)]
        right = np.ones(len(rows))
        if scheme.radius_binds:
            rows, right = np.vstack([rows, np.sign(coef[scheme.used])]), np.append(right, 1 / gamma)
        np.testing.assert_allclose(np.linalg.solve(rows, right), coef[scheme.used], rtol=1e-6)
        rest = np.setdiff1d(np.arange(60), scheme.tight)
        assert scheme.errors == np.count_nonzero(labels[rest] * (K[rest] @ coef) <= 0)


def test_weights_that_are_no_vertex_are_not_rebuilt(rng):
    K = rng.normal(size=(60, 8))
    labels = np.where(K[:, 0] > 0, 1.0, -1.0)
    assert compress(K, labels, rng.normal(size=8), 0.01) is None
    assert compress(K, labels, np.zeros(8), 0.01) is None


def test_weights_that_their_tight_examples_do_not_determine_are_not_compressed():
    """Both margins are one to 1e-6, but nearly parallel rows have other weights."""
    K, labels = np.array([[1.0, 0.0], [1.0, 1e-4], [2.0, 1.0]]), np.ones(3)
    assert compress(K, labels, np.array([1.0, 0.005]), 0.01) is None
    found = compress(K, labels, np.array([1.0, 1e-9]), 0.01)
    assert found.tight.tolist() == [0, 1]
    np.testing.assert_allclose(found.coef, [1.0, 0.0], atol=1e-9)


def test_copies_are_in_one_part(data):
    X, y = data
    X, y = [*X, *(2.0 * np.asarray(x) for x in X)], np.concatenate([y, y])
    model, certificate = fit_certified(ESTIMATOR, X, y, random_state=0)
    assert certificate.independent == "60 of 120 series, the others are copies"
    # Separators were learned on series of which the model keeps none.
    _, second, _ = parts_of(300, 0)
    with pytest.raises(slts.DataError, match=r"copy of a training series \(the first of 120"):
        certify(model, [X[i] for i in second], y[second])


def test_separators_that_no_examples_determine_are_bounded_by_one(data, monkeypatch):
    kept = split.compress
    found = []

    def compress_some(*given):
        found.append(kept(*given))
        return None if len(found) == 2 else found[-1]

    monkeypatch.setattr(split, "compress", compress_some)
    _, certificate = fit_certified(ESTIMATOR, *data, random_state=0)
    bound = certificate["compression"]
    assert bound.value == bound.details["by_class"]["1"] == bound.details["multiclass"] == 1.0
    assert bound.details["by_class"]["0"] < 1.0
    assert bound.details["not_rebuilt"] == ["1"]
    used = [len(scheme.used) for scheme in found]
    tight = [len(scheme.tight) for scheme in found]
    assert bound.details["n_used"] == [used[0], None, used[2]]
    assert bound.details["n_tight"] == [tight[0], None, tight[2]]


@pytest.mark.parametrize(("share", "n"), [(0.175, 7), (0.2, 8)])
def test_the_pac_bayes_bound_needs_eight_series(share, n):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 12)) + 2.0 * y[:, np.newaxis]
    estimator = slts.BBSClassifier(5, gamma=0.1, calibration_cv=None, random_state=0)
    shares = (0.5, share, 0.5 - share)
    _, certificate = fit_certified(estimator, X, y, shares=shares, random_state=0)
    assert certificate["compression"].details["n"] == n
    names = [bound.name for bound in certificate.bounds]
    assert ("PAC-Bayes, separator" in names) == (n == 8)
