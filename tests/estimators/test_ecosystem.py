"""The estimators inside scikit-learn's tools, on ragged series in every accepted form."""

import copy
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits

import slts
from slts.estimators import prediction
from tests.estimators.kinds import KINDS, every, every_kind, quick

TRANSFORMERS = [kind for kind in KINDS if hasattr(kind, "transform")]
FORMS = {"list": list, "batch": slts.as_series}


def by_name(estimator):
    return type(estimator).__name__


every_form = pytest.mark.parametrize("form", FORMS)


@every_kind
def test_cross_validation_takes_ragged_series(kind, two):
    X, y, _, _ = two
    scores = cross_val_score(quick(kind), X, y, cv=2)
    assert scores.shape == (2,)
    assert scores.mean() > 0.85


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (quick(slts.SLTSClassifier), {"gamma": [1e-3, 1e-2]}),
        (quick(slts.BBSClassifier), {"n_landmarks": [0.3, 10]}),
        (slts.SimilaritySVC(), {"C": [0.1, 10.0]}),
        (slts.OneNNClassifier(), {"objective": ["affinity", "cost"], "band": [None, 1]}),
        (slts.LDMLTClassifier(triplets_per_series=2.0, random_state=0), {"n_cycles": [1, 2]}),
    ],
    ids=lambda value: by_name(value) if hasattr(value, "fit") else "",
)
def test_grid_search_tunes_and_refits(estimator, grid, two):
    X, y, X_test, y_test = two
    search = GridSearchCV(estimator, grid, cv=2, error_score="raise").fit(slts.as_series(X), y)
    assert set(search.best_params_) == set(grid)
    assert search.score(slts.as_series(X_test), y_test) > 0.85


@every(TRANSFORMERS)
def test_a_pipeline_classifies_by_similarities_to_landmarks(kind, three, fitted):
    X, y, X_test, y_test = three
    pipeline = make_pipeline(quick(kind), LogisticRegression(max_iter=1000)).fit(X, y)
    assert pipeline.score(X_test, y_test) > 0.6
    assert pipeline[:-1].get_feature_names_out().shape == (pipeline[-1].n_features_in_,)
    np.testing.assert_array_equal(
        pipeline[:-1].transform(X_test), fitted(kind, "three").transform(X_test)
    )


@every(TRANSFORMERS)
def test_transform_gives_a_data_frame_if_asked_for(kind, three, fitted):
    X_test = three[2]
    model = copy.deepcopy(fitted(kind, "three"))
    plain = model.transform(X_test)
    frame = model.set_output(transform="pandas").transform(X_test)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(model.get_feature_names_out())
    np.testing.assert_array_equal(frame.to_numpy(), plain)


@every_form
def test_probabilities_can_be_calibrated_by_scikit_learn(form, two):
    X, y, X_test, y_test = two
    inner = slts.SLTSClassifier(10, calibration_cv=None, random_state=0)
    model = CalibratedClassifierCV(inner, cv=3).fit(FORMS[form](X), y)
    proba = model.predict_proba(FORMS[form](X_test))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert model.score(FORMS[form](X_test), y_test) > 0.85


def test_classifiers_can_be_stacked(three):
    X, y, X_test, y_test = three
    model = StackingClassifier(
        [
            ("landmarks", quick(slts.BBSClassifier)),
            ("neighbor", slts.OneNNClassifier()),
            ("svm", slts.SimilaritySVC(calibration_cv=None)),
        ],
        final_estimator=LogisticRegression(max_iter=1000),
        cv=2,
    ).fit(X, y)
    assert model.score(X_test, y_test) > 0.6


LABELS = {
    "text": np.array(["ba", "ab", "zz"]),
    "integers": np.array([30, -1, 7]),
    "floats": np.array([2.0, 1.0, 3.0]),
    "objects": np.array(["x", "yy", "w"], dtype=object),
}


# Labels are numbered in `fit` and named in `predict`, which all classifiers share.
@pytest.mark.parametrize(
    ("kind", "names"),
    [*((kind, "text") for kind in KINDS), *((slts.OneNNClassifier, names) for names in LABELS)],
)
def test_predictions_have_the_type_of_the_labels(kind, names, three):
    X, y, X_test, _ = three
    labels = LABELS[names]
    model = quick(kind).fit(X, labels[y])
    answers = model.predict(X_test)
    assert answers.dtype == labels.dtype
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    assert np.isin(answers, labels).all()
    assert model.score(X, labels[y]) > 0.6


@every_kind
def test_booleans_are_labels(kind, two):
    X, y, X_test, y_test = two
    model = quick(kind).fit(X, y == 1)
    assert model.predict(X_test).dtype == np.bool_
    assert model.score(X_test, y_test == 1) > 0.85
    np.testing.assert_array_equal(model.classes_, [False, True])


def test_renaming_classes_in_order_changes_nothing(three):
    X, y, X_test, _ = three
    model = slts.SLTSClassifier(12, random_state=0)
    by_number = clone(model).fit(X, y).decision_function(X_test)
    by_name_ = clone(model).fit(X, np.array(["a", "b", "c"])[y]).decision_function(X_test)
    np.testing.assert_array_equal(by_number, by_name_)


@every_kind
def test_forms_of_the_same_series_give_the_same_answers(kind, two):
    X, y, X_test, _ = two
    square, square_test = (np.stack([x[:, :5] for x in part]) for part in (X, X_test))
    as_list = quick(kind).fit(list(square), y).decision_function(list(square_test))
    for form in (np.asarray, slts.as_series):
        model = quick(kind).fit(form(square), y)
        np.testing.assert_array_equal(model.decision_function(form(square_test)), as_list)


@every_kind
def test_a_clone_has_the_parameters_and_nothing_learned(kind, fitted):
    found = clone(fitted(kind, "two"))
    assert found.get_params() == quick(kind).get_params()
    assert not hasattr(found, "classes_")


@every_kind
@pytest.mark.parametrize("problem", ["two", "three"])
def test_a_pickled_model_gives_the_same_outputs(kind, problem, request, fitted):
    X_test = request.getfixturevalue(problem)[2]
    model = fitted(kind, problem)
    pickled = pickle.loads(pickle.dumps(model))
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(
            getattr(pickled, method)(X_test), getattr(model, method)(X_test)
        )


@every_kind
def test_a_second_fit_does_not_depend_on_the_first(kind, two, fitted):
    model = copy.deepcopy(fitted(kind, "three")).fit(two[0], two[1])
    expected = fitted(kind, "two").predict_proba(two[2])
    np.testing.assert_array_equal(model.predict_proba(two[2]), expected)


@every_kind
def test_two_threads_give_the_outputs_of_one(kind, three, fitted):
    X, y, X_test, _ = three
    one, two_threads = fitted(kind, "three"), quick(kind, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(two_threads.predict_proba(X_test), one.predict_proba(X_test))
    # More than a thread takes at a time.
    many = X_test * (1 + 2 * prediction._SERIES // len(X_test))
    chances = one.predict_proba(many)
    np.testing.assert_array_equal(two_threads.predict_proba(many), chances)
    np.testing.assert_allclose(
        chances, np.tile(one.predict_proba(X_test), (len(many) // len(X_test), 1)), rtol=1e-12
    )


def test_predictions_have_one_thread_of_blas(three, fitted, monkeypatch):
    """Several threads would take as long, and keep other cores busy."""

    def blas_threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    def decide(self, batch):
        seen.append(blas_threads())
        return np.zeros((len(batch), 3))

    seen, model, X = [], copy.deepcopy(fitted(slts.BBSClassifier, "three")), three[2]
    monkeypatch.setattr(slts.BBSClassifier, "_decide", decide)
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("needs a BLAS whose threads can be limited")
        model.predict(X)
        model.predict(X * (1 + 2 * prediction._SERIES // len(X)))
        assert len(seen) > 2
        assert all(found == {1} for found in seen)
        assert blas_threads() == {2}


def test_an_error_in_a_thread_names_the_series(three):
    X, y, _, _ = three
    model = slts.SLTSClassifier(6, band=slts.Itakura(3.0), n_jobs=2, random_state=0).fit(X, y)
    many = [x[:, :8] for x in X[:6]] * (prediction._SERIES // 3)
    many[prediction._SERIES + 5] = np.ones((3, 200))
    with pytest.raises(slts.DataError, match=f"series {prediction._SERIES + 5} of X"):
        model.predict(many)


@every([*TRANSFORMERS, slts.SimilaritySVC])
def test_sample_weights_are_routed_through_a_search(kind, two):
    X, y, X_test, y_test = two
    # A third of the labels is wrong, and has no weight.
    wrong = np.arange(len(y)) % 3 == 0
    labels, weights = np.where(wrong, 1 - y, y), np.where(wrong, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = quick(kind).set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        grid = {"n_jobs": [1]}
        search = GridSearchCV(inner, grid, cv=2).fit(X, labels, sample_weight=weights)
        assert search.best_score_ > 0.85
        assert search.score(X_test, y_test) > 0.85


def test_held_out_predictions_cover_every_series(three):
    X, y, _, _ = three
    proba = cross_val_predict(slts.OneNNClassifier(), X, y, cv=3, method="predict_proba")
    assert proba.shape == (36, 3)


@every_kind
def test_channels_are_found_by_their_names(kind, two, fitted):
    X, y, X_test, _ = two
    train, test = slts.as_series(X), slts.as_series(X_test)
    named = slts.SeriesBatch(train.values, train.offsets, ["u", "v", "w"])
    model = quick(kind).fit(named, y)
    assert model.feature_names_in_.dtype == object
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    assert model.n_features_in_ == 3
    assert not hasattr(clone(model), "feature_names_in_")
    assert not hasattr(fitted(kind, "two"), "feature_names_in_")
    expected = model.predict_proba(X_test)
    turned = slts.SeriesBatch(test.values[:, [2, 0, 1]], test.offsets, ["w", "u", "v"])
    np.testing.assert_array_equal(model.predict_proba(turned), expected)
    other = slts.SeriesBatch(test.values, test.offsets, ["u", "v", "z"])
    with pytest.raises(slts.DataError, match=r"u,v,z, but .* on u,v,w: X has no 'w'"):
        model.predict(other)


def test_messages_about_many_channels_are_short():
    values, names = np.random.default_rng(0).normal(size=(24, 300)), [f"u{k}" for k in range(300)]
    offsets = np.arange(0, 25, 4)
    model = slts.OneNNClassifier().fit(slts.SeriesBatch(values, offsets, names), [0, 1] * 3)
    fewer = names[:-1]
    for others, message in (
        (fewer, "u0..u298; those of the model are u0..u299"),
        ([*fewer, "z"], "X has no 'u299'"),
    ):
        batch = slts.SeriesBatch(values[:, : len(others)], offsets, others)
        with pytest.raises(slts.DataError, match=message) as raised:
            model.predict(batch)
        assert len(str(raised.value)) < 250


def test_channels_of_entirely_other_names_are_taken_by_position_with_a_warning(three):
    X, y, X_test, _ = three
    train, test = slts.as_series(X), slts.as_series(X_test)
    named = slts.SeriesBatch(train.values, train.offsets, ["u", "v", "w"])
    model = slts.BBSClassifier(random_state=0).fit(named, y)
    other = slts.SeriesBatch(test.values, test.offsets, ["a", "b", "c"])
    message = "X has channels a,b,c, but BBSClassifier was fitted on u,v,w: the channels of X"
    with pytest.warns(UserWarning, match=message):
        found = model.predict(other)
    np.testing.assert_array_equal(found, model.predict(test))


def test_help_shows_the_parameters_of_a_classifier_before_those_of_all():
    names = list(inspect.signature(slts.SLTSClassifier).parameters)
    assert names[:3] == ["n_landmarks", "gamma", "lam"]
    assert names[-4:] == ["device", "n_jobs", "random_state", "verbose"]
    assert set(names) == set(slts.SLTSClassifier().get_params())


def test_a_subclass_may_have_its_own_constructor():
    class Wide(slts.BBSClassifier):
        def __init__(self, width=2, gamma=0.1, *, factor=3.0, n_jobs=None):
            super().__init__(gamma=gamma, n_jobs=n_jobs)
            self.width, self.factor = width, factor

    expected = "(width=2, gamma=0.1, *, factor=3.0, n_jobs=None)"
    assert str(inspect.signature(Wide)) == expected
    assert list(clone(Wide(5)).get_params()) == ["factor", "gamma", "n_jobs", "width"]
