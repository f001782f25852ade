"""BBS and SLTS: decisions follow from the fitted attributes."""

from dataclasses import replace

import numpy as np
import pytest

import slts
from tests.estimators.kinds import LANDMARKED, every, quick

PROBLEMS = pytest.mark.parametrize(("problem", "n_problems"), [("two", 1), ("three", 3)])


def learns_metric(kind):
    return "SLTS" in kind.__name__


def assert_close(values, expected):
    np.testing.assert_allclose(
        values, expected, rtol=0, atol=1e-9 * max(1.0, np.abs(expected).max())
    )


@every(LANDMARKED)
@PROBLEMS
def test_decisions_are_the_weighted_similarities_to_the_landmarks(
    kind, problem, n_problems, request, fitted
):
    """Two classes are one problem; of more, each is one."""
    X, y, X_test, _ = request.getfixturevalue(problem)
    for model, options in (
        (fitted(kind, problem), {}),
        (quick(kind, objective="cost", band=2).fit(X, y), {"objective": "cost", "band": 2}),
    ):
        assert model.coef_.shape == (n_problems, 12)
        assert model.metrics_.shape == (n_problems, 3, 3)
        T = slts.aligned_products(X_test, model.landmarks_, **options)
        expected = np.einsum("ijde,cde,cj->ic", T, model.metrics_, model.coef_)
        values, proba = model.decision_function(X_test), model.predict_proba(X_test)
        assert values.shape == ((len(X_test),) if n_problems == 1 else (len(X_test), n_problems))
        assert_close(values.reshape(expected.shape), expected)
        best = (values > 0).astype(int) if n_problems == 1 else values.argmax(axis=1)
        np.testing.assert_array_equal(model.predict(X_test), model.classes_[best])
        np.testing.assert_array_equal(proba.argmax(axis=1), best)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    none = slts.as_series(X)[:0]
    assert model.decision_function(none).shape == (0, *values.shape[1:])


@every(LANDMARKED)
@PROBLEMS
def test_transform_gives_the_similarities_under_the_metrics(
    kind, problem, n_problems, request, fitted
):
    X_test = request.getfixturevalue(problem)[2]
    model = fitted(kind, problem)
    features, names = model.transform(X_test), model.get_feature_names_out()
    metrics = model.metrics_ if learns_metric(kind) else [np.eye(3)]
    assert_close(
        features, np.hstack([slts.similarity(X_test, model.landmarks_, metric=M) for M in metrics])
    )
    assert len(names) == len(set(names)) == features.shape[1]
    first = f"landmark{model.landmark_indices_[0]}"
    prefix = f"class{model.classes_[-n_problems]}_" if learns_metric(kind) else ""
    assert names[0] == prefix + first


@pytest.mark.parametrize(("n", "count"), [(36, 18), (230, 100)])
def test_half_of_the_series_are_landmarks_but_no_more_than_100(n, count):
    X = slts.as_series(np.random.default_rng(0).normal(size=(n, 2, 2)))
    model = slts.BBSClassifier(calibration_cv=None, random_state=0).fit(X, np.arange(n) % 2)
    assert len(set(model.landmark_indices_)) == count
    assert model.landmarks_ == X[model.landmark_indices_]


@every(LANDMARKED)
def test_every_series_is_aligned_once_with_every_landmark(kind, two, three, alignments):
    quick(kind, n_landmarks=10).fit(*two[:2])
    assert alignments == [(30, 10)]
    alignments.clear()
    # Medoids need the alignments of all series with each other; weights of zero need none.
    model = quick(kind, landmarks="kmedoids").fit(*three[:2])
    assert alignments == [(36, 36), (36, 12)]
    alignments.clear()
    model.predict(three[2])
    assert alignments == [(30, np.count_nonzero(model.coef_.any(axis=0)))]


def test_a_generator_gives_each_fit_one_seed(three):
    X, y, X_test, _ = three
    states = [0, generator := np.random.RandomState(0), generator]
    models = [quick(slts.LocalSLTSClassifier, random_state=state).fit(X, y) for state in states]
    same, first, again = (model.decision_function(X_test) for model in models)
    np.testing.assert_array_equal(first, same)
    assert (again != first).any()


@every(LANDMARKED)
@PROBLEMS
def test_every_solve_reports_a_certified_gap(kind, problem, n_problems, fitted):
    model = fitted(kind, problem)
    stages = ["metric", "separator"] if learns_metric(kind) else ["separator"]
    positives = model.classes_[-n_problems:]
    assert [(r.positive, r.stage) for r in model.reports_] == [
        (c, stage) for c in positives for stage in stages
    ]
    for report in model.reports_:
        assert report.converged
        # A loss of zero has no relative gap.
        assert report.gap <= 1e-6 * max(report.objective, 1e-6)


@pytest.mark.parametrize("gamma", [1e-3, 0.1])
@pytest.mark.filterwarnings("ignore:The metric of class:UserWarning")
def test_objectives_are_those_of_the_paper(gamma, three):
    X, y, _, _ = three
    model = slts.SLTSClassifier(18, gamma=gamma, calibration_cv=None, random_state=0).fit(X, y)
    T, codes = slts.aligned_products(X, model.landmarks_), y[model.landmark_indices_]
    for c, M in enumerate(model.metrics_):
        sign, landmark_sign = np.where(y == c, 1.0, -1.0), np.where(codes == c, 1.0, -1.0)
        K = np.einsum("ijde,de->ij", T, M)
        metric_loss = np.maximum(1 - sign * (K @ landmark_sign) / (18 * gamma), 0).mean()
        separator_loss = np.maximum(1 - sign * (K @ model.coef_[c]), 0).mean()
        of_metric, of_separator = model.reports_[2 * c : 2 * c + 2]
        objective = metric_loss + model.lam * np.sum(M**2)
        assert of_metric.objective == pytest.approx(objective, rel=1e-9)
        assert of_separator.objective == pytest.approx(separator_loss, rel=1e-9, abs=1e-12)
        assert separator_loss <= metric_loss + 1e-9
        assert np.abs(model.coef_[c]).sum() <= (1 + 1e-9) / gamma


@every([*LANDMARKED, slts.SimilaritySVC, slts.LocalSLTSClassifier])
def test_balanced_weights_raise_the_recall_of_a_rare_class(kind):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(880) % 11 == 0, "rare", "usual")
    X = rng.normal(size=(880, 2, 3)) + np.where(y == "rare", 0.5, 0.0)[:, None, None]
    names = kind().get_params().keys()
    how = {"C": 1.0, "landmarks": range(12), "calibration_cv": None}
    how = {name: value for name, value in how.items() if name in names}
    recall = {}
    for weight in (None, "balanced"):
        model = quick(kind, class_weight=weight, **how).fit(X[:330], y[:330])
        answers = model.predict(X[330:])
        recall[weight] = np.mean(answers[y[330:] == "rare"] == "rare")
    assert recall["balanced"] > recall[None] + 0.1


def test_class_weights_by_label_are_sample_weights(three):
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


@every([slts.SLTSClassifier, slts.BBSClassifier, slts.LocalSLTSClassifier])
def test_a_replaced_model_is_used_at_once(kind, three):
    X, y, X_test, _ = three
    model = quick(kind).fit(X, y)
    decisions, intercept = model.decision_function(X_test), model.intercept_
    linear = model.model_
    model.model_ = replace(linear, coefs=tuple(2.0 * coef for coef in linear.coefs))
    expected = 2.0 * (decisions - intercept)
    assert_close(model.decision_function(X_test) - intercept, expected)
    assert_close(slts.explain(model, X_test[0]).decision - intercept, expected[0])
