"""Groups: held out as a whole, by folds, fractions and scikit-learn's splitters."""

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
from slts.training import first_pass, held_out
from tests.estimators.kinds import KINDS, TUNED, every, quick

pytestmark = [
    pytest.mark.filterwarnings("ignore:The metric of class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Every one-vs-rest problem:UserWarning"),
]
GROUPED = [*TUNED, slts.SLTSClassifier, slts.BBSClassifier, slts.SimilaritySVC]


@pytest.fixture(scope="module")
def people():
    """Series of 12 people. Everybody has a pose of their own, which tells nothing of others."""
    rng = np.random.default_rng(0)
    groups = np.repeat([f"p{i:02d}" for i in range(12)], 6)
    y = np.tile(["walk", "run"], 36)
    pose = rng.normal(size=(12, 4, 1)).repeat(6, axis=0)
    X = [
        p + rng.normal(size=(4, rng.integers(8, 14))) + (c == "run")
        for p, c in zip(pose, y, strict=True)
    ]
    return X, y, groups


@pytest.fixture
def seen(monkeypatch):
    """Groups and splits that a fit asks for."""
    log = []

    def logged(*args, groups=None, **kwargs):
        found = held_out.make_splits(*args, groups=groups, **kwargs)
        log.append((groups, found))
        return found

    monkeypatch.setattr(first_pass, "make_splits", logged)
    return log


@pytest.mark.parametrize(
    ("kind", "cv", "n_splits"),
    [
        *((kind, 4, 4) for kind in GROUPED),
        *((kind, 0.25, 1) for kind in GROUPED),
        (slts.BBSClassifierCV, GroupKFold(3), 3),
        (slts.BBSClassifier, LeaveOneGroupOut(), 12),
        (slts.SimilaritySVC, GroupShuffleSplit(2, test_size=0.25, random_state=0), 2),
    ],
)
def test_no_group_is_on_both_sides(kind, cv, n_splits, people, seen):
    X, y, groups = people
    parameter = "cv" if kind in TUNED else "calibration_cv"
    model = quick(kind, **{parameter: cv}).fit(X, y, groups=groups)
    # With a fraction, the chosen parameters are calibrated on folds.
    folds = [3] if kind in TUNED and cv == 0.25 else []
    assert [len(pairs) for _, pairs in seen] == [n_splits, *folds]
    for found, pairs in seen:
        for train, test in pairs:
            assert len(test) > 0
            assert not set(found[train]) & set(found[test])
    found, pairs = seen[0]
    validation = model.validation_
    assert validation.kind == "held-out"
    assert validation.n_groups == len(set(np.concatenate([found[test] for _, test in pairs])))
    assert 0.0 <= validation.group_accuracy <= 1.0


@every(TUNED)
def test_a_scan_carries_its_groups(kind, people, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, groups = people
    frame = pd.concat(
        pd.DataFrame(x.T, columns=list("abcd")).assign(
            rec=i, t=range(x.shape[1]), gait=y[i], who=groups[i]
        )
        for i, x in enumerate(X)
    )
    scan = slts.scan_series(frame, id="rec", time="t", label="gait", groups="who", channels="a..d")
    whole = quick(kind, cv=4).fit(X, y, groups=groups)
    scanned = quick(kind, cv=4).fit(scan)
    np.testing.assert_array_equal(whole.coef_, scanned.coef_)
    assert whole.validation_ == scanned.validation_
    assert whole.best_score_ != quick(kind, cv=4).fit(X, y).best_score_
    with pytest.raises(DataError, match="groups must be None for a scan: name their column"):
        quick(kind).fit(scan, groups=groups)


def test_groups_are_routed_through_searches(people):
    X, y, groups = people
    model = quick(slts.BBSClassifierCV, cv=GroupKFold(3))
    with sklearn.config_context(enable_metadata_routing=True):
        asking = model.set_fit_request(groups=True)
        found = cross_validate(asking, X, y, cv=GroupKFold(2), params={"groups": groups})
    assert len(found["test_score"]) == 2
    assert np.isfinite(found["test_score"]).all()


def test_wrong_groups_are_errors(people):
    X, y, groups = people
    model = quick(slts.BBSClassifierCV)
    with pytest.raises(DataError, match="inconsistent lengths: 72 series and 71 groups"):
        model.fit(X, y, groups=groups[1:])
    for missing in (None, np.nan, ""):
        some = groups.astype(object)
        some[5] = missing
        with pytest.raises(DataError, match=r"groups\[5\] is missing"):
            model.fit(X, y, groups=some)
    with pytest.raises(ValueError, match="'cv' parameter splits by groups"):
        quick(slts.BBSClassifierCV, cv=GroupKFold(2)).fit(X, y)


@every(KINDS)
def test_validation_is_the_accuracy_on_series_that_were_held_out(kind, three, fitted):
    X, y, _, _ = three
    model = fitted(kind, "three")
    found = model.validation_
    assert found.n_groups is found.group_accuracy is None
    assert 0.3 < found.accuracy <= 1.0
    if kind is slts.LocalSLTSClassifier:
        (chosen,) = [choice for choice in model.selection_ if choice.chosen]
        # Both are of the fit that chooses the snippets, not of the one that has them.
        assert found.accuracy == pytest.approx(chosen.accuracy)
        assert (found.kind, found.n_series) == ("leave-one-out", 36)
    if kind is slts.OneNNClassifier:
        K = slts.similarity(X)
        np.fill_diagonal(K, -np.inf)
        assert found.accuracy == pytest.approx(np.mean(y[K.argmax(axis=1)] == y))
        assert (found.kind, found.n_series) == ("leave-one-out", 36)
    if kind in TUNED:
        # One split, unweighted: the score of the best candidate.
        assert found.accuracy == pytest.approx(model.best_score_)
        assert (found.kind, found.n_series) == ("held-out", 11)


def test_without_held_out_series_there_is_no_validation(three):
    X, y, _, _ = three
    assert quick(slts.SLTSClassifier, calibration_cv=None).fit(X, y).validation_ is None
    assert slts.OneNNClassifier(calibration_size=None).fit(X, y).validation_ is None
