"""Groups are held out as a whole, by folds, fractions and splitters; what `fit` held out."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    LeaveOneGroupOut,
    cross_validate,
)

import slts
from slts import DataError
from slts.series.dataset import Dataset
from tests.data import scan_of
from tests.estimators.kinds import KINDS, TUNED, every, quick

pytestmark = [
    pytest.mark.filterwarnings("ignore:The metric of class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Every one-vs-rest problem:UserWarning"),
]
GROUPED = [*TUNED, slts.SLTSClassifier, slts.BBSClassifier, slts.SimilaritySVC]


@pytest.fixture(scope="module")
def people():
    """Series of 12 people. A pose tells who it is, and so the class, but nothing of others."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(12), 6)
    y = np.array(["walk", "run"])[who // 2 % 2]
    poses = 3.0 * rng.normal(size=(12, 8, 1))
    X = [poses[p] + rng.normal(size=(8, rng.integers(8, 14))) for p in who]
    return X, y, np.array([f"p{p:02d}" for p in who])


def held_out(kind, cv):
    landmarks = {} if kind is slts.SimilaritySVC else {"n_landmarks": 36}
    return quick(kind, **landmarks | {"cv" if kind in TUNED else "calibration_cv": cv})


@pytest.mark.parametrize(
    ("kind", "cv", "n_groups"),
    [
        *((kind, 4, 12) for kind in GROUPED),
        *((kind, 0.25, 3) for kind in GROUPED),
        (slts.BBSClassifierCV, GroupKFold(3), 12),
        (slts.BBSClassifier, LeaveOneGroupOut(), 12),
        (slts.SimilaritySVC, GroupShuffleSplit(1, test_size=0.25, random_state=0), 3),
    ],
)
def test_no_group_is_on_both_sides(kind, cv, n_groups, people):
    X, y, groups = people
    validation = held_out(kind, cv).fit(X, y, groups=groups).validation_
    assert (validation.kind, validation.n_groups) == ("held-out", n_groups)
    # All six series of each.
    assert validation.n_series == 6 * n_groups
    assert validation.group_accuracy == pytest.approx(validation.accuracy)
    plain = held_out(kind, 4).fit(X, y).validation_
    assert plain.n_groups is plain.group_accuracy is None
    if n_groups == 12:
        assert plain.accuracy > validation.accuracy + 0.2


@every(GROUPED)
def test_a_scan_carries_its_groups(kind, people):
    X, y, groups = people
    scan = scan_of(Dataset(slts.as_series(X), y, groups=groups))
    whole = held_out(kind, 4).fit(X, y, groups=groups)
    scanned = held_out(kind, 4).fit(scan)
    np.testing.assert_array_equal(whole.coef_, scanned.coef_)
    assert whole.validation_ == scanned.validation_
    with pytest.raises(DataError, match="groups must be None"):
        quick(kind).fit(scan, groups=groups)


# ---- the local classifier leaves out one group at a time


def movements(n_people, per_person, rng, first=0):
    """Four classes; every person has a level and ways of moving."""
    X, groups = [], np.repeat(first + np.arange(n_people), per_person)
    y = np.tile(np.arange(4), len(groups) // 4)
    levels, ways = (rng.normal(size=(n_people, 4, 4)) for _ in range(2))
    for person, c in zip(groups - first, y, strict=True):
        centre = 1.5 * levels[person, :1].T + 0.5 * ways[person, c][:, None] + 2 * np.eye(4)[:, [c]]
        X.append(centre + rng.normal(size=(4, rng.integers(8, 14))))
    return X, y, groups


def test_statements_about_new_people_hold_if_people_are_left_out(rng):
    """Accuracy and confidence beyond those on new people, and how many of their sets are right."""
    figures = {"people": [], "series": []}
    for _ in range(3):
        X, y, groups = movements(24, 20, rng)
        X_new, y_new, _ = movements(60, 8, rng)
        for name, some in (("people", groups), ("series", None)):
            model = slts.LocalSLTSClassifier(n_snippets=100, random_state=0).fit(X, y, groups=some)
            accuracy = model.score(X_new, y_new)
            covered = slts.prediction_sets(model).predict(X_new, 0.2).contains(y_new).mean()
            confidence = model.predict_proba(X_new).max(axis=1).mean()
            beyond = model.validation_.accuracy - accuracy, confidence - accuracy
            figures[name].append([*beyond, covered])
    people, series = (np.mean(figures[name], axis=0) for name in ("people", "series"))
    np.testing.assert_allclose(people[:2], 0.0, atol=0.07)
    assert people[2] > 0.78
    # Without groups, all three are wrong about new people.
    assert series[:2].min() > 0.1
    assert series[2] < 0.73


def test_every_statement_of_the_local_classifier_names_groups(people, tmp_path):
    X, y, groups = people
    local = slts.LocalSLTSClassifier(n_snippets=20, random_state=0)
    model = local.fit(X, y, groups=groups)
    validation = model.validation_
    assert (validation.kind, validation.n_groups) == ("leave-one-group-out", 12)
    scores = model.held_out_scores_
    assert (scores.n_groups, scores.weights.sum()) == (12, pytest.approx(12.0))
    slts.save(model, tmp_path / "m.slts")
    sets = slts.prediction_sets(slts.load(tmp_path / "m.slts"))
    assert "12 groups of 72 training series" in sets.guarantee
    assert "fitted without its group" in sets.guarantee
    with pytest.warns(UserWarning, match="needs 19 held-out groups, but there are 12"):
        sets.predict(X[:2], 0.05)
    scanned = local.fit(scan_of(Dataset(slts.as_series(X), y, groups=groups)))
    assert scanned.validation_ == validation
    plain = local.fit(X, y)
    assert plain.validation_.n_groups is plain.held_out_scores_.n_groups is None
    assert "fitted without it." in slts.prediction_sets(plain).guarantee
    with pytest.raises(DataError, match="groups has one group only, 'p00'"):
        local.fit(X, y, groups=np.full(72, "p00"))


def test_equal_series_of_several_people_are_held_out_with_their_people(people):
    """A recording of zeros for each person is no hint about the next person."""
    X, y, groups = people
    X = [np.zeros((8, 9)) if k % 6 == 0 else x for k, x in enumerate(X)]
    local = slts.LocalSLTSClassifier(n_snippets=20, random_state=0).fit(X, y, groups=groups)
    assert local.validation_.n_series == 72
    np.testing.assert_allclose(np.sort(local.held_out_scores_.weights), 1 / 6)


def test_groups_are_routed_through_searches(people):
    X, y, groups = people
    model = quick(slts.BBSClassifierCV, cv=GroupKFold(3))
    with sklearn.config_context(enable_metadata_routing=True):
        asking = model.set_fit_request(groups=True)
        scores = cross_validate(asking, X, y, cv=GroupKFold(2), params={"groups": groups})
    assert np.isfinite(scores["test_score"]).all()


def test_wrong_groups_are_errors(people):
    X, y, groups = people
    model = quick(slts.BBSClassifierCV)
    with pytest.raises(DataError, match="72 series and 71 groups"):
        model.fit(X, y, groups=groups[1:])
    for missing in (None, np.nan, ""):
        some = groups.astype(object)
        some[5] = missing
        with pytest.raises(DataError, match=r"groups\[5\] is missing"):
            model.fit(X, y, groups=some)
    with pytest.raises(ValueError, match=r"'cv' parameter .*groups=\.\.\."):
        quick(slts.BBSClassifierCV, cv=GroupKFold(2)).fit(X, y)


@every(KINDS)
def test_validation_is_the_accuracy_on_series_that_were_held_out(kind, three, fitted):
    X, y, _, _ = three
    model = fitted(kind, "three")
    validation = model.validation_
    assert 0.3 < validation.accuracy <= 1.0
    if kind is slts.LocalSLTSClassifier:
        assert (validation.kind, validation.n_series) == ("leave-one-out", 36)
    if kind is slts.OneNNClassifier:
        K = slts.similarity(X)
        np.fill_diagonal(K, -np.inf)
        assert validation.accuracy == pytest.approx(np.mean(y[K.argmax(axis=1)] == y))
        assert (validation.kind, validation.n_series) == ("leave-one-out", 36)
    if kind in TUNED:
        # One split, unweighted: the score of the best candidate.
        assert validation.accuracy == pytest.approx(model.best_score_)
        assert (validation.kind, validation.n_series) == ("held-out", 11)


def test_without_held_out_series_there_is_no_validation(three):
    X, y, _, _ = three
    assert quick(slts.SLTSClassifier, calibration_cv=None).fit(X, y).validation_ is None
    assert slts.OneNNClassifier(calibration_size=None).fit(X, y).validation_ is None
