"""Contributions are exact, wherever they are looked at."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV

import slts
from slts.explanation import explain

MODELS = {
    "slts": lambda **options: slts.SLTSClassifier(**options),
    "slts cv": lambda **options: slts.SLTSClassifierCV(
        gammas=[1e-3, 1e-2], lams=[0.1], cv=2, **drop(options, "calibration_cv")
    ),
    "bbs": lambda **options: slts.BBSClassifier(**options),
    "bbs cv": lambda **options: slts.BBSClassifierCV(
        gammas=[1e-3, 1e-2], cv=2, **drop(options, "calibration_cv")
    ),
    "svm": lambda **options: slts.SimilaritySVC(**options),
    "local": lambda **options: slts.LocalSLTSClassifier(
        n_phases=3,
        n_components=7,
        max_length=7,
        **drop(drop(options, "calibration_cv"), "homogeneous"),
    ),
}


def drop(options, name):
    return {key: value for key, value in options.items() if key != name}


def problem(seed, n_classes, channels, n=24):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    means = 2 * rng.normal(size=(n_classes, channels, 1))
    return [rng.normal(size=(channels, rng.integers(3, 12))) + means[c] for c in y], y


@settings(max_examples=10)
@given(
    seed=st.integers(0, 10_000),
    n_classes=st.integers(2, 3),
    channels=st.integers(1, 4),
    objective=st.sampled_from(["affinity", "cost"]),
    homogeneous=st.sampled_from(["auto", True, False]),
    band=st.sampled_from([None, 3]),
)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:The metric of class|Every one-vs-rest:UserWarning")
def test_offset_and_contributions_sum_to_the_decision(
    name, seed, n_classes, channels, objective, homogeneous, band
):
    X, y = problem(seed, n_classes, channels)
    options = {"objective": objective, "homogeneous": homogeneous, "band": band}
    model = MODELS[name](random_state=0, calibration_cv=None, **options).fit(X, y)
    for x in X[:3]:
        found = explain(model, x)
        decision = np.atleast_1d(model.decision_function([x])[0])
        np.testing.assert_allclose(found.decision, decision, atol=1e-9)
        total = found.offset + found.contributions.sum(axis=(1, 2))
        np.testing.assert_allclose(total, decision, atol=1e-9)
        assert found.contributions.shape == (len(decision), x.shape[1], channels)


@pytest.fixture(scope="module")
def fitted():
    X, y = problem(3, 3, 4, n=45)
    return slts.SLTSClassifier(random_state=0).fit(X, y), X, y


def test_every_view_is_a_sum_of_the_same_terms(fitted):
    model, X, _ = fitted
    found = explain(model, X[0])
    np.testing.assert_allclose(found.by_step.sum(axis=1) + found.offset, found.decision)
    np.testing.assert_allclose(found.by_channel.sum(axis=1) + found.offset, found.decision)
    np.testing.assert_allclose(found.by_landmark.sum(axis=1), found.decision)
    parts = sum(found.of_landmark(j) for j in range(len(found.landmark_indices)))
    np.testing.assert_allclose(parts, found.contributions, atol=1e-12)


def test_the_class_of_the_largest_decision_is_the_prediction(fitted):
    model, X, _ = fitted
    for x in X[:5]:
        found = explain(model, x)
        assert found.classes[np.argmax(found.decision)] == model.predict([x])[0]
        assert found.predicted == model.predict([x])[0]


def test_alignments_and_nearest_landmarks_are_those_of_the_similarity(fitted):
    model, X, _ = fitted
    found = explain(model, X[0])
    K = slts.similarity([X[0]], [X[j] for j in found.landmark_indices])[0]
    np.testing.assert_allclose(found.similarities, K)
    assert found.nearest_landmarks(1)[0] == np.argmax(K)
    for j, alignment in zip(found.landmark_indices, found.alignments, strict=True):
        np.testing.assert_array_equal(alignment.path, slts.align(X[0], X[j]).path)


def test_permuting_channels_permutes_contributions(fitted):
    _, X, y = fitted
    order = [2, 0, 3, 1]
    options = {"random_state": 0, "calibration_cv": None}
    plain = slts.SLTSClassifier(**options).fit(X, y)
    shuffled = slts.SLTSClassifier(**options).fit([x[order] for x in X], y)
    one = explain(plain, X[4]).contributions
    other = explain(shuffled, X[4][order]).contributions
    # Both solve the same problem to its gap, not to the last bit.
    np.testing.assert_allclose(other, one[:, :, order], atol=1e-3 * np.abs(one).max())


def test_names_of_channels_come_from_the_training_series():
    values = np.random.default_rng(0).normal(size=(40, 2))
    batch = slts.SeriesBatch(values, np.arange(0, 41, 4), ["left", "right"])
    model = slts.BBSClassifier(random_state=0).fit(batch, np.arange(10) % 2)
    assert explain(model, batch[0]).channel_names == ("left", "right")


def test_models_that_are_not_linear_are_refused(fitted):
    _, X, y = fitted
    with pytest.raises(TypeError, match="OneNNClassifier cannot be explained"):
        explain(slts.OneNNClassifier().fit(X, y), X[0])


def test_several_series_at_once_are_refused(fitted):
    model, X, _ = fitted
    for several in (slts.as_series(X[:2]), X[:2]):
        with pytest.raises(ValueError, match=r"must be one series, such as X\[0\]. Got 2"):
            explain(model, several)


def test_a_search_is_explained_through_its_best_estimator(fitted):
    _, X, y = fitted
    found = GridSearchCV(slts.BBSClassifier(random_state=0), {"gamma": [1e-2]}, cv=2).fit(X, y)
    with pytest.raises(TypeError, match="best_estimator_"):
        explain(found, X[0])


def test_two_classes_have_one_decision_value_and_the_predicted_class():
    X, y = problem(5, 2, 3)
    model = slts.SLTSClassifier(random_state=0, calibration_cv=None).fit(X, y)
    predicted = [explain(model, x).predicted for x in X]
    np.testing.assert_array_equal(predicted, model.predict(X))
    assert set(predicted) == {0, 1}


def test_removing_the_steps_that_speak_most_hurts_more_than_removing_others(data_folder):
    X, y = slts.datasets.load("arabic_digits", "train")
    X_test, y_test = slts.datasets.load("arabic_digits", "test")
    chosen = np.random.default_rng(0).permutation(len(X))[:1500]
    model = slts.SLTSClassifier(60, gamma=1e-3, random_state=0, calibration_cv=None, n_jobs=-1)
    model.fit(X[chosen], y[chosen])
    rng = np.random.default_rng(1)
    shown = rng.permutation(len(X_test))[:400]
    without_top, without_random = [], []
    for k in shown:
        x = X_test[k]
        found = explain(model, x)
        spoken = found.by_step[np.argmax(found.decision)]
        count = max(1, round(0.2 * len(spoken)))
        if count == len(spoken):
            continue
        without_top.append(np.delete(x, np.argsort(-spoken)[:count], axis=1))
        without_random.append(np.delete(x, rng.permutation(len(spoken))[:count], axis=1))
    truth = y_test[shown][: len(without_top)]
    assert len(without_top) == len(shown)
    hurt = np.mean(model.predict(without_top) != truth)
    unhurt = np.mean(model.predict(without_random) != truth)
    assert hurt > unhurt + 0.02


def test_of_two_classes_each_has_its_sign(rng):
    y = np.array(["no", "yes"])[np.arange(30) % 2]
    X = [rng.normal(size=(2, 8)) + 2.0 * (c == "yes") for c in y]
    model = slts.SLTSClassifier(random_state=0, calibration_cv=None).fit(X, y)
    for x in X[:4]:
        found = slts.explain(model, x)
        assert found.labels.tolist() == ["no", "yes"]
        assert found.for_class("yes") == (0, 1.0)
        assert found.for_class("no") == (0, -1.0)
        position, sign = found.for_class()
        assert sign * found.decision[position] >= 0
    with pytest.raises(ValueError, match=r"one of 'no', 'yes'\. Got 'perhaps'"):
        found.for_class("perhaps")
