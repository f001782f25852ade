"""The estimators inside scikit-learn's tools, on ragged series in every accepted form."""

import copy
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline

import slts
from tests.estimators.kinds import KINDS, every, every_kind, quick

TRANSFORMERS = [kind for kind in KINDS if hasattr(kind, "transform")]
OUTPUTS = ("predict", "predict_proba", "decision_function")


@pytest.mark.slow
def test_mypy_finds_misspelt_parameters_and_methods(tmp_path):
    (tmp_path / "user.py").write_text(
        """
import numpy as np
import slts

X, y = np.zeros((4, 2, 5)), [0, 1, 0, 1]
model = slts.LocalSLTSClassifier(n_landmarks=3)
print(model.set_params(n_jobs=2).fit(X, y).predict_proba(X), model.get_params(), model.classes_)
print(slts.SLTSClassifierCV().fit_transform(X, y), slts.OneNNClassifier().kneighbors(X))
slts.LocalSLTSClassifier(n_landmark=3)
slts.SLTSClassifier(gama=0.1)
slts.LDMLTClassifier(n_cycle=2)
model.fit(X, y).predct(X)
model.predict_prob(X)
model.kneighbors(X)
"""
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "user.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if "No module named mypy" in done.stderr:
        pytest.skip("mypy is not installed")
    lines = re.findall(r"^user.py:(\d+): error", done.stdout, re.MULTILINE)
    assert lines == ["9", "10", "11", "12", "13", "14"], done.stdout + done.stderr


@every([slts.OneNNClassifier, slts.LDMLTClassifier])
def test_neighbours_are_the_nearest_training_series(kind, two, fitted):
    X, y, X_test, _ = two
    model = fitted(kind, "two")
    nearness, indices = model.kneighbors(X_test, 3)
    assert nearness.shape == indices.shape == (20, 3)
    np.testing.assert_array_equal(y[indices[:, 0]], model.predict(X_test))
    if kind is slts.OneNNClassifier:
        similarities = slts.similarity(X_test, X)
        np.testing.assert_array_equal(indices, np.argsort(-similarities, axis=1)[:, :3])
        np.testing.assert_allclose(nearness, -np.sort(-similarities, axis=1)[:, :3])
    else:
        assert (np.diff(nearness, axis=1) >= 0.0).all()
        own, first = model.kneighbors(X[:4], 1)
        assert first[:, 0].tolist() == [0, 1, 2, 3]
        np.testing.assert_allclose(own, 0.0, atol=1e-9)
    assert model.kneighbors(X_test, 1000)[1].shape == (20, 30)
    with pytest.raises(ValueError, match="'n_neighbors' parameter of kneighbors"):
        model.kneighbors(X_test, 0)


# -- searches, pipelines and ensembles


@every_kind
def test_cross_validation_takes_ragged_series(kind, two):
    X, y, _, _ = two
    assert cross_val_score(quick(kind), X, y, cv=2).mean() > 0.85
    proba = cross_val_predict(quick(kind), slts.as_series(X), y, cv=2, method="predict_proba")
    assert proba.shape == (30, 2)


@pytest.mark.parametrize(
    ("kind", "grid"),
    [
        (slts.SLTSClassifier, {"regularizer": ["frobenius", "l1"], "scale": [None, "robust"]}),
        (slts.BBSClassifier, {"n_landmarks": [0.3, 10]}),
        (slts.SimilaritySVC, {"C": [0.1, 10.0]}),
        (slts.OneNNClassifier, {"objective": ["affinity", "cost"], "band": [None, 1]}),
        (slts.LDMLTClassifier, {"n_cycles": [1, 2]}),
        (slts.LocalSLTSClassifier, {"n_snippets": [0, 20]}),
    ],
)
def test_grid_search_tunes_and_refits(kind, grid, two):
    X, y, X_test, y_test = two
    search = GridSearchCV(quick(kind), grid, cv=2, error_score="raise").fit(slts.as_series(X), y)
    assert set(search.best_params_) == set(grid)
    assert search.score(slts.as_series(X_test), y_test) > 0.8
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()


@every(TRANSFORMERS)
def test_a_pipeline_learns_from_features_with_names(kind, three, fitted):
    X, y, X_test, y_test = three
    pipeline = make_pipeline(quick(kind), LogisticRegression(max_iter=1000)).fit(X, y)
    assert pipeline.score(X_test, y_test) > 0.6
    names = pipeline[:-1].get_feature_names_out()
    assert names.shape == (pipeline[-1].n_features_in_,)
    features = fitted(kind, "three").transform(X_test)
    np.testing.assert_array_equal(pipeline[:-1].transform(X_test), features)
    frame = copy.deepcopy(fitted(kind, "three")).set_output(transform="pandas").transform(X_test)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(names)
    np.testing.assert_array_equal(frame.to_numpy(), features)


@pytest.mark.parametrize("form", [list, slts.as_series])
def test_probabilities_can_be_calibrated_by_scikit_learn(form, two):
    X, y, X_test, y_test = two
    inner = slts.SLTSClassifier(10, calibration_cv=None, random_state=0)
    model = CalibratedClassifierCV(inner, cv=3).fit(form(X), y)
    np.testing.assert_allclose(model.predict_proba(form(X_test)).sum(axis=1), 1.0)
    assert model.score(form(X_test), y_test) > 0.85


@every([*TRANSFORMERS, slts.SimilaritySVC])
def test_sample_weights_are_routed_through_a_search(kind, two):
    X, y, X_test, y_test = two
    # A third of the labels is wrong, and has no weight.
    wrong = np.arange(len(y)) % 3 == 0
    labels, weights = np.where(wrong, 1 - y, y), np.where(wrong, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = quick(kind).set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        search = GridSearchCV(inner, {"n_jobs": [1]}, cv=2).fit(X, labels, sample_weight=weights)
        assert search.best_score_ > 0.85
        assert search.score(X_test, y_test) > 0.85


# -- labels, series and channels


LABELS = {
    "text": np.array(["ba", "ab", "zz"]),
    "integers": np.array([30, -1, 7]),
    "floats": np.array([2.0, 1.0, 3.0]),
    "objects": np.array(["x", "yy", "w"], dtype=object),
    "booleans": np.array([False, True, True]),
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
    ordered = quick(kind).fit(X, np.array(["a", "b", "c"])[y]).decision_function(X_test)
    np.testing.assert_array_equal(quick(kind).fit(X, y).decision_function(X_test), ordered)


@every_kind
def test_forms_of_the_same_series_give_the_same_answers(kind, two):
    X, y, X_test, _ = two
    square, square_test = (np.stack([x[:, :5] for x in part]) for part in (X, X_test))
    as_list = quick(kind).fit(list(square), y).decision_function(list(square_test))
    for form in (np.asarray, slts.as_series):
        model = quick(kind).fit(form(square), y)
        np.testing.assert_array_equal(model.decision_function(form(square_test)), as_list)


@every_kind
def test_channels_are_matched_by_their_names(kind, two, fitted):
    X, y, X_test, _ = two
    train, test = slts.as_series(X), slts.as_series(X_test)
    model = quick(kind).fit(slts.SeriesBatch(train.values, train.offsets, ["u", "v", "w"]), y)
    assert model.feature_names_in_.dtype == object
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    assert model.n_features_in_ == 3
    for nameless in (clone(model), fitted(kind, "two")):
        assert not hasattr(nameless, "feature_names_in_")
    expected = model.predict_proba(X_test)
    turned = slts.SeriesBatch(test.values[:, [2, 0, 1]], test.offsets, ["w", "u", "v"])
    np.testing.assert_array_equal(model.predict_proba(turned), expected)
    with pytest.raises(slts.DataError, match="X has no 'w'"):
        model.predict(slts.SeriesBatch(test.values, test.offsets, ["u", "v", "z"]))
    # Entirely other names are probably other names of the same channels.
    other = slts.SeriesBatch(test.values, test.offsets, ["a", "b", "c"])
    with pytest.warns(UserWarning, match=f"channels a, b, c, but {kind.__name__} .* on u, v, w"):
        np.testing.assert_array_equal(model.predict_proba(other), expected)


# -- copies, threads


@every_kind
def test_a_clone_has_the_parameters_and_nothing_learned(kind, fitted):
    copied = clone(fitted(kind, "two"))
    assert copied.get_params() == quick(kind).get_params()
    assert not hasattr(copied, "classes_")


@every_kind
@pytest.mark.parametrize("problem", ["two", "three"])
def test_a_pickled_model_gives_the_same_outputs(kind, problem, request, fitted):
    X_test = request.getfixturevalue(problem)[2]
    model = fitted(kind, problem)
    pickled = pickle.loads(pickle.dumps(model))
    for name in OUTPUTS:
        np.testing.assert_array_equal(getattr(pickled, name)(X_test), getattr(model, name)(X_test))


@every_kind
def test_fits_are_independent_of_former_ones(kind, two, fitted):
    model = copy.deepcopy(fitted(kind, "three")).fit(two[0], two[1])
    expected = fitted(kind, "two").predict_proba(two[2])
    np.testing.assert_array_equal(model.predict_proba(two[2]), expected)
    with pytest.raises(slts.DataError):
        model.fit(two[0], two[1][:-1])
    np.testing.assert_array_equal(model.predict_proba(two[2]), expected)


@every_kind
def test_threads_give_the_same_outputs(kind, three, fitted):
    X, y, X_test, _ = three
    one, two_threads = fitted(kind, "three"), quick(kind, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(two_threads.predict_proba(X_test), one.predict_proba(X_test))
    # More than a thread takes at a time.
    many = X_test * 5
    chances = one.predict_proba(many)
    np.testing.assert_array_equal(two_threads.predict_proba(many), chances)
    np.testing.assert_allclose(chances, np.tile(one.predict_proba(X_test), (5, 1)), rtol=1e-12)


@every_kind
def test_threads_of_the_user_share_a_model(kind, three, fitted):
    """Nothing is prepared yet in a model from a pickle."""
    expected = fitted(kind, "three").decision_function(three[2])
    fresh, start = pickle.loads(pickle.dumps(fitted(kind, "three"))), Barrier(4)

    def decide(_):
        start.wait()
        return fresh.decision_function(three[2])

    with ThreadPoolExecutor(4) as pool:
        for decisions in pool.map(decide, range(4)):
            np.testing.assert_array_equal(decisions, expected)


def test_an_error_in_a_thread_names_the_series(three):
    X, y, _, _ = three
    model = slts.SLTSClassifier(6, band=slts.Itakura(3.0), n_jobs=2, random_state=0).fit(X, y)
    many = [x[:, :8] for x in X[:6]] * 30
    many[105] = np.ones((3, 200))
    with pytest.raises(slts.DataError, match="series 105 of X"):
        model.predict(many)
