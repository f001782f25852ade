"""Chosen parameters: one set of alignments for all candidates, and their scores."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import LinearSVC

import slts
from tests.estimators.kinds import TUNED, every

pytestmark = [
    pytest.mark.filterwarnings("ignore:The metric of class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Every one-vs-rest problem:UserWarning"),
]


def grid(kind):
    lams = {"lams": [0.1, 10.0]} if kind is slts.SLTSClassifierCV else {}
    return {"gammas": [1e-3, 1e-2, 0.1]} | lams


def untuned(kind):
    return slts.SLTSClassifier if kind is slts.SLTSClassifierCV else slts.BBSClassifier


CVS = {
    "int": (4, 4),
    "fraction": (0.3, 1),
    "splitter": (StratifiedShuffleSplit(2, test_size=0.25, random_state=0), 2),
    "pairs": ([(np.arange(24), np.arange(24, 36))], 1),
}


@pytest.mark.slow
@every(TUNED)
@pytest.mark.parametrize("cv", CVS)
def test_all_candidates_share_one_set_of_alignments(kind, cv, three, alignments):
    X, y, _, _ = three
    splitter, n_splits = CVS[cv]
    model = kind([6, 0.5], cv=splitter, random_state=0, **grid(kind)).fit(X, y)
    assert alignments == [(36, 18)]
    assert model.n_splits_ == n_splits
    results, best = model.cv_results_, int(np.argmax(model.cv_results_["mean_test_score"]))
    scores = np.column_stack([results[f"split{k}_test_score"] for k in range(n_splits)])
    assert scores.shape == (2 * len(model.gammas) * len(getattr(model, "lams", [0])), n_splits)
    np.testing.assert_allclose(results["mean_test_score"], scores.mean(axis=1))
    assert model.best_params_ == results["params"][best]
    assert model.best_score_ == results["mean_test_score"][best]


@pytest.mark.slow
@every(TUNED)
@pytest.mark.parametrize("landmarks", ["random", "kmedoids", "dselect"])
def test_the_best_parameters_reproduce_the_model(kind, landmarks, three):
    X, y, X_test, _ = three
    tuned = kind([9, 18], landmarks=landmarks, cv=3, random_state=0, **grid(kind)).fit(X, y)
    parameters = dict(tuned.best_params_)
    assert parameters.pop("n_landmarks") == len(tuned.landmarks_)
    fixed = untuned(kind)(
        landmarks=tuned.landmark_indices_, calibration_cv=None, random_state=0, **parameters
    ).fit(X, y)
    np.testing.assert_array_equal(fixed.decision_function(X_test), tuned.decision_function(X_test))


@every(TUNED)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_weighted_accuracies_of_models_of_the_other_series(kind, weighted, three):
    X, y, _, _ = three
    w = np.random.default_rng(0).integers(1, 5, size=36) if weighted else np.ones(36)
    train, test = np.arange(24), np.arange(24, 36)
    how = {"landmarks": np.arange(12), "random_state": 0}
    tuned = kind(cv=[(train, test)], **how, **grid(kind)).fit(X, y, w)
    for params, score in zip(
        tuned.cv_results_["params"], tuned.cv_results_["mean_test_score"], strict=True
    ):
        chosen = {name: value for name, value in params.items() if name != "n_landmarks"}
        model = untuned(kind)(calibration_cv=None, **how, **chosen).fit(X[:24], y[train], w[train])
        assert score == pytest.approx(model.score(X[24:], y[test], w[test]))


def test_medoids_tried_in_small_numbers_come_from_every_class():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], 12)
    X = [rng.normal(size=(4, 6)) + 2 * np.eye(4)[c][:, None] for c in y]
    tuned = slts.BBSClassifierCV([16, 40], landmarks="kmedoids", cv=2, random_state=0).fit(X, y)
    assert set(y[tuned.landmark_indices_[:16]]) == {0, 1, 2, 3}


def test_the_svm_chooses_the_smallest_of_the_best_c_with_one_set_of_alignments(three, alignments):
    X, y, X_test, _ = three
    pairs = [(np.arange(12, 36), np.arange(12)), (np.arange(24), np.arange(24, 36))]
    model = slts.SimilaritySVC(calibration_cv=pairs, random_state=0).fit(X, y)
    assert alignments == [(36, 36)]
    K = slts.similarity(X)
    candidates = 4.0 ** np.arange(-3, 5)
    scores = [
        sum(
            LinearSVC(C=C, dual=False, fit_intercept=False)
            .fit(K[train], y[train])
            .score(K[test], y[test])
            for train, test in pairs
        )
        for C in candidates
    ]
    assert candidates[np.argmax(scores)] == model.C_
    assert len(set(scores)) > 2
    given = slts.SimilaritySVC(model.C_, calibration_cv=pairs, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X_test), given.predict_proba(X_test))


def test_the_svm_chooses_c_without_calibration(three):
    X, y, X_test, _ = three
    plain = slts.SimilaritySVC(calibration_cv=None, random_state=0).fit(X, y)
    calibrated = slts.SimilaritySVC(calibration_cv=3, random_state=0).fit(X, y)
    assert plain.probability_scale_ is None
    assert plain.C_ == calibrated.C_
    expected = calibrated.decision_function(X_test)
    np.testing.assert_array_equal(plain.decision_function(X_test), expected)
