"""BBS and SLTS: decisions follow from the fitted attributes."""

import copy

import numpy as np
import pytest
from sklearn.base import clone

import slts
from tests.estimators.kinds import LANDMARKED, TUNED, every, quick

UNTUNED = [slts.SLTSClassifier, slts.BBSClassifier]


@every(LANDMARKED)
@pytest.mark.parametrize(("problem", "n_problems"), [("two", 1), ("three", 3)])
def test_two_classes_are_one_problem_and_more_are_one_each(
    kind, problem, n_problems, request, fitted
):
    X_test = request.getfixturevalue(problem)[2]
    model = fitted(kind, problem)
    assert model.coef_.shape == (n_problems, 12)
    assert model.metrics_.shape == (n_problems, 3, 3)
    expected = (len(X_test),) if n_problems == 1 else (len(X_test), n_problems)
    assert model.decision_function(X_test).shape == expected


@every(LANDMARKED)
@pytest.mark.parametrize(
    ("problem", "objective"), [("two", "affinity"), ("three", "affinity"), ("two", "cost")]
)
def test_decisions_are_the_weighted_similarities_to_the_landmarks(
    kind, problem, objective, request, fitted
):
    X, y, X_test, _ = request.getfixturevalue(problem)
    model = fitted(kind, problem)
    if objective != "affinity":
        model = quick(kind, objective=objective).fit(X, y)
    T = slts.aligned_products(X_test, model.landmarks_, objective=objective)
    expected = np.einsum("ijde,cde,cj->ic", T, model.metrics_, model.coef_)
    values = model.decision_function(X_test)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(values.reshape(expected.shape), expected, rtol=0, atol=1e-9 * scale)


@every(LANDMARKED)
@pytest.mark.parametrize("problem", ["two", "three"])
def test_the_predicted_class_has_the_largest_decision_and_probability(
    kind, problem, request, fitted
):
    X_test = request.getfixturevalue(problem)[2]
    model = fitted(kind, problem)
    values, proba = model.decision_function(X_test), model.predict_proba(X_test)
    best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X_test), model.classes_[best])
    np.testing.assert_array_equal(proba.argmax(axis=1), best)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert proba.min() >= 0


@every(LANDMARKED)
@pytest.mark.parametrize("problem", ["two", "three"])
def test_transform_gives_the_similarities_under_the_metrics(kind, problem, request, fitted):
    X_test = request.getfixturevalue(problem)[2]
    model = fitted(kind, problem)
    features, names = model.transform(X_test), model.get_feature_names_out()
    metrics = model.metrics_ if "SLTS" in kind.__name__ else [np.eye(3)]
    expected = np.hstack([slts.similarity(X_test, model.landmarks_, metric=M) for M in metrics])
    np.testing.assert_allclose(features, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    assert len(names) == len(set(names)) == features.shape[1]
    first = f"landmark{model.landmark_indices_[0]}"
    problem_of_first = f"class{model.classes_[1 if problem == 'two' else 0]}_"
    assert names[0] == (problem_of_first + first if "SLTS" in kind.__name__ else first)


@every(UNTUNED)
def test_landmarks_are_the_training_series_their_indices_name(kind, three, fitted):
    model = fitted(kind, "three")
    for index, landmark in zip(model.landmark_indices_, model.landmarks_, strict=True):
        np.testing.assert_array_equal(landmark, three[0][index])
    assert len(set(model.landmark_indices_)) == 12


@pytest.mark.parametrize("method", ["random", "kmedoids", "dselect"])
def test_more_landmarks_begin_with_the_fewer(method, three):
    X, y, _, _ = three
    few, many = (
        slts.BBSClassifier(n, landmarks=method, calibration_cv=None, random_state=3).fit(X, y)
        for n in (9, 18)
    )
    same = few.landmark_indices_ == many.landmark_indices_[:9]
    # Medoids of fewer clusters are others.
    assert same.all() == (method != "kmedoids")
    assert len(set(many.landmark_indices_)) == 18


@pytest.mark.parametrize(("asked", "got"), [(None, 18), (7, 7), (0.25, 9), (1.0, 36), (0.01, 1)])
@pytest.mark.filterwarnings("ignore:There is no landmark of class:UserWarning")
@pytest.mark.filterwarnings("ignore:Every one-vs-rest problem:UserWarning")
def test_the_number_of_landmarks_is_an_int_a_fraction_or_half(asked, got, three):
    X, y, _, _ = three
    model = slts.BBSClassifier(asked, calibration_cv=None, random_state=0).fit(X, y)
    assert len(model.landmarks_) == got


def test_there_are_at_most_100_landmarks_by_default():
    X = np.random.default_rng(0).normal(size=(230, 2, 2))
    X[1::2, 0] += 3
    model = slts.BBSClassifier(calibration_cv=None, random_state=0).fit(X, np.arange(230) % 2)
    assert len(model.landmarks_) == 100


@every(LANDMARKED)
def test_random_landmarks_need_no_alignment_to_be_chosen(kind, two, alignments):
    X, y, _, _ = two
    quick(kind, n_landmarks=10).fit(X, y)
    assert alignments == [(30, 10)]


def test_chosen_landmarks_need_alignments(three, alignments):
    X, y, _, _ = three
    slts.BBSClassifier(12, landmarks="kmedoids", random_state=0).fit(X, y)
    assert alignments == [(36, 36), (36, 12)]


def test_only_landmarks_in_use_are_aligned_in_prediction(three, alignments):
    X, y, X_test, _ = three
    model = slts.BBSClassifier(18, gamma=0.05, random_state=0).fit(X, y)
    used = int(model.coef_.any(axis=0).sum())
    assert 0 < used < 18
    alignments.clear()
    model.predict(X_test)
    assert alignments == [(30, used)]


def test_a_generator_as_random_state_moves_on(three):
    X, y, _, _ = three
    generator = np.random.RandomState(0)
    model = slts.BBSClassifier(12, random_state=generator)
    first = model.fit(X, y).landmark_indices_
    assert set(first) != set(
        clone(model).set_params(random_state=generator).fit(X, y).landmark_indices_
    )


@every(LANDMARKED)
@pytest.mark.parametrize("problem", ["two", "three"])
def test_every_solve_reports_a_certified_gap(kind, problem, fitted):
    model = fitted(kind, problem)
    stages = ["metric", "separator"] if "SLTS" in kind.__name__ else ["separator"]
    positives = [1] if problem == "two" else [0, 1, 2]
    assert [(r.positive, r.stage) for r in model.reports_] == [
        (c, stage) for c in positives for stage in stages
    ]
    for report in model.reports_:
        assert report.converged
        # A loss of zero has no relative gap.
        assert report.gap <= 1e-6 * max(report.objective, 1e-6)
        assert report.n_iter >= 0


@pytest.mark.parametrize("gamma", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("lam", [0.1, 1.0])
@pytest.mark.filterwarnings("ignore:The metric of class:UserWarning")
def test_the_separator_loses_no_more_than_the_metric_it_builds_on(gamma, lam, three):
    X, y, _, _ = three
    how = {"gamma": gamma, "lam": lam, "calibration_cv": None, "random_state": 0}
    model = slts.SLTSClassifier(18, **how).fit(X, y)
    T = slts.aligned_products(X, model.landmarks_)
    codes = y[model.landmark_indices_]
    for c, M in enumerate(model.metrics_):
        sign, landmark_sign = np.where(y == c, 1.0, -1.0), np.where(codes == c, 1.0, -1.0)
        K = np.einsum("ijde,de->ij", T, M)
        margins = sign * (K @ landmark_sign) / (18 * gamma)
        metric_loss = np.maximum(1 - margins, 0).mean()
        penalty = lam * np.sum(M**2)
        separator_loss = np.maximum(1 - sign * (K @ model.coef_[c]), 0).mean()
        metric_report, separator_report = model.reports_[2 * c : 2 * c + 2]
        assert metric_report.objective == pytest.approx(metric_loss + penalty, rel=1e-9)
        assert separator_report.objective == pytest.approx(separator_loss, rel=1e-9, abs=1e-12)
        assert metric_loss + 2 * penalty <= 1 + 1e-9
        assert separator_loss <= metric_loss + 1e-9
        assert np.abs(model.coef_[c]).sum() <= (1 + 1e-9) / gamma


def test_only_lam_gamma_squared_matters(three):
    X, y, X_test, _ = three
    one, other = (
        slts.SLTSClassifier(18, gamma=g, lam=lam, calibration_cv=None, random_state=0).fit(X, y)
        for g, lam in ((0.1, 0.1), (0.01, 10.0))
    )
    np.testing.assert_allclose(
        one.decision_function(X_test), other.decision_function(X_test), rtol=0, atol=1e-4
    )
    np.testing.assert_array_equal(one.predict(X_test), other.predict(X_test))


@every([*LANDMARKED, slts.SimilaritySVC])
def test_balanced_weights_find_more_of_a_rare_class(kind):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(880) % 11 == 0, "rare", "usual")
    X = rng.normal(size=(880, 2, 3)) + np.where(y == "rare", 0.5, 0.0)[:, None, None]
    how = {"C": 1.0} if kind is slts.SimilaritySVC else {"n_landmarks": 10}
    how |= {"cv": 0.3} if kind in TUNED else {"calibration_cv": None}
    recall = {}
    for weight in (None, "balanced"):
        model = quick(kind, class_weight=weight, **how).fit(X[:330], y[:330])
        answers = model.predict(X[330:])
        recall[weight] = np.mean(answers[y[330:] == "rare"] == "rare")
    assert recall["balanced"] > recall[None] + 0.1


def test_class_weights_may_be_given_by_label(three):
    X, y, X_test, _ = three
    labels = np.array(["x", "y", "z"])[y]
    settings = {"n_landmarks": 12, "calibration_cv": None, "random_state": 0}
    by_label = slts.BBSClassifier(class_weight={"x": 3.0, "y": 1.0, "z": 1.0}, **settings)
    by_series = slts.BBSClassifier(**settings)
    weights = np.where(y == 0, 3.0, 1.0)
    np.testing.assert_array_equal(
        by_label.fit(X, labels).decision_function(X_test),
        by_series.fit(X, labels, sample_weight=weights).decision_function(X_test),
    )


def test_a_band_holds_in_training_and_prediction(three):
    X, y, X_test, _ = three
    model = slts.SLTSClassifier(12, band=2, calibration_cv=None, random_state=0).fit(X, y)
    T = slts.aligned_products(X_test, model.landmarks_, band=2)
    expected = np.einsum("ijde,cde,cj->ic", T, model.metrics_, model.coef_)
    np.testing.assert_allclose(model.decision_function(X_test), expected, rtol=1e-9, atol=1e-9)


def test_no_series_to_decide_gives_no_decisions(three, fitted):
    none = slts.as_series(three[0])[:0]
    assert fitted(slts.SLTSClassifier, "three").decision_function(none).shape == (0, 3)


@pytest.mark.parametrize("kind", [slts.SLTSClassifier, slts.BBSClassifier])
def test_replaced_weights_are_used_at_once(kind, three):
    X, y, X_test, _ = three
    model = kind(gamma=0.1, calibration_cv=None, random_state=0).fit(X, y)
    model.predict(X_test)
    model.coef_ = np.roll(model.coef_, 3, axis=1)
    np.testing.assert_array_equal(
        model.decision_function(X_test), copy.deepcopy(model).decision_function(X_test)
    )
