"""Prediction sets: coverage of a classifier, what is stored, and the errors."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import slts
from slts.guarantees import PredictionSets, prediction_sets
from slts.guarantees.prediction_sets import probabilities_of
from tests.data import clusters
from tests.estimators.kinds import every_kind, quick


@pytest.fixture(scope="module")
def data():
    return clusters(1200, n_classes=3, seed=5, noise=1.0)


@pytest.fixture(scope="module")
def model(data):
    X, y = data
    return slts.LocalSLTSClassifier(random_state=0).fit(X[:120], y[:120])


@pytest.fixture(scope="module")
def sets(model, data):
    X, y = data
    return prediction_sets(model, X[120:360], y[120:360])


def test_held_out_series_give_the_stated_coverage(model, data):
    X, y = data
    X, y, rng = X[120:], y[120:], np.random.default_rng(0)
    chances, codes = model.predict_proba(X), np.searchsorted(model.classes_, y)
    missed = []
    for _ in range(500):
        order = rng.permutation(len(y))
        held_out, new = order[:100], order[100:140]
        scores = type(model.held_out_scores_).of(chances[held_out], codes[held_out])
        p_values = scores.p_values(chances[new])
        missed.append(np.mean(p_values[np.arange(40), codes[new]] <= 0.1))
    assert np.mean(missed) < 0.105


@every_kind
def test_decisions_that_fit_holds_out_cover_about_as_stated(kind, data):
    X, y = data
    model = quick(kind, random_state=0).fit(X[:120], y[:120])
    new = prediction_sets(model).predict(X[120:], alpha=0.1)
    assert new.contains(y[120:]).mean() > 0.84
    assert new.sizes.mean() < 2.0


def test_sets_grow_with_confidence(sets, data):
    X, y = data
    wide, narrow = (sets.predict(X[360:], alpha) for alpha in (0.01, 0.3))
    assert (wide.members >= narrow.members).all()
    assert wide.sizes.sum() > narrow.sizes.sum()
    assert wide.contains(y[360:]).mean() > 0.97
    assert narrow.contains(y[360:]).mean() > 0.62
    for labels, size, flag in zip(wide.labels, wide.sizes, wide.flags, strict=True):
        assert len(labels) == size
        assert flag == ("single" if size == 1 else "several")
    counts = f"{np.sum(wide.sizes == 1)} single, {np.sum(wide.sizes > 1)} several)"
    assert repr(wide) == f"LabelSets({len(y) - 360} series, alpha=0.01: {counts}"
    assert repr(sets).startswith("PredictionSets(LocalSLTSClassifier, scores of 240 held-out")


def test_model_files_keep_the_scores(model, sets, data, tmp_path):
    X, _ = data
    assert model.held_out_scores_ is not sets.held_out
    slts.save(sets.model, tmp_path / "m.slts")
    loaded = slts.prediction_sets(slts.load(tmp_path / "m.slts"))
    np.testing.assert_array_equal(loaded.predict(X[360:]).p_values, sets.predict(X[360:]).p_values)
    assert loaded.guarantee == sets.guarantee
    assert loaded.held_out.independent


def test_the_guarantee_says_what_holds(model, sets, data):
    X, y = data
    assert "at least 1 - alpha" in sets.guarantee
    assert "240 held-out series" in sets.guarantee
    assert "without a proven guarantee" in prediction_sets(model).guarantee
    groups = np.arange(240) // 10
    by_group = prediction_sets(model, X[120:360], y[120:360], groups=groups)
    assert "24 groups of 240 held-out series" in by_group.guarantee
    assert "random series of a new group" in by_group.guarantee


def test_the_series_of_a_group_share_one_draw(model, data):
    X, y = data
    copies = [*X[120:160]] * 10, [*y[120:160]] * 10
    once = prediction_sets(model, X[120:160], y[120:160])
    by_group = prediction_sets(model, *copies, groups=np.tile(np.arange(40), 10))
    assert "40 groups of 400 held-out series" in by_group.guarantee
    p_values = [one.predict(X[300:], 0.1).p_values for one in (by_group, once)]
    np.testing.assert_allclose(*p_values)
    # Equal series are one draw only if the groups say so.
    assert prediction_sets(model, *copies).held_out.weights.sum() == 400


def test_too_few_series_for_alpha_are_reported(sets, data):
    X, _ = data
    with pytest.warns(UserWarning, match=r"needs 999 held-out series, but there are 240"):
        assert sets.predict(X[360:370], 0.001).members.all()
    with pytest.warns(UserWarning, match=r"needs 99 held-out series of class 0, .* this class"):
        sets.predict(X[360:370], 0.01, per_class=True)
    # 240 are just enough.
    sets.predict(X[360:370], 1 / 241)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2.0, "0.1", True, None, np.nan])
def test_alpha_is_between_0_and_1(sets, data, alpha):
    with pytest.raises(ValueError, match="'alpha'"):
        sets.predict(data[0][:2], alpha)


def test_errors_name_what_is_wrong(model, data):
    X, y = data
    with pytest.raises(slts.DataError, match=r"240 series and 3 groups"):
        prediction_sets(model, X[120:360], y[120:360], groups=[1, 2, 3])
    with pytest.raises(ValueError, match=r"'X' parameter of prediction_sets is None"):
        prediction_sets(model, y=y)
    with pytest.raises(slts.DataError, match=r"y is None"):
        prediction_sets(model, X[120:360])
    with pytest.raises(slts.DataError, match=r"are copies of training series"):
        prediction_sets(model, X[:120], y[:120])
    with pytest.raises(slts.DataError, match=r"5 series and 3 labels"):
        prediction_sets(model).predict(X[:5], 0.1).contains(y[:3])
    bare = slts.BBSClassifier(12, calibration_cv=None, random_state=0).fit(X[:60], y[:60])
    with pytest.raises(slts.DataError, match=r"no decisions for held-out series"):
        prediction_sets(bare)
    with pytest.raises(slts.DataError, match=r"no class probabilities, .* fit it with calibration"):
        prediction_sets(bare, X[60:200], y[60:200])
    calibrated = prediction_sets(slts.BBSClassifier(12, random_state=0).fit(X[:60], y[:60]))
    assert isinstance(calibrated, PredictionSets)


def test_searches_and_pipelines_have_the_sets_of_their_classifier(data):
    X, y = data
    search = GridSearchCV(slts.OneNNClassifier(random_state=0), {"band": [None]}, cv=2)
    piped = make_pipeline(search).fit(X[:60], y[:60])
    expected = prediction_sets(piped[-1].best_estimator_).predict(X[60:70], 0.2)
    for model in (piped, piped[-1]):
        sets = prediction_sets(model).predict(X[60:70], 0.2)
        np.testing.assert_array_equal(sets.p_values, expected.p_values)


def test_any_classifier_with_probabilities_has_sets(data):
    class Shares:
        classes_ = np.array([0, 1])

    with pytest.raises(slts.DataError, match="Shares has no class probabilities"):
        probabilities_of(Shares(), np.zeros(3))
    Shares.predict_proba = lambda self, X: np.column_stack([1 - X, X])
    assert probabilities_of(Shares(), np.array([0.25])).tolist() == [[0.75, 0.25]]


# ---- what counts as a draw


class Table(ClassifierMixin, BaseEstimator):
    """A classifier of numbers: the larger, the more likely is class 1."""

    def fit(self, X=None, y=None):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        # Far too sure.
        p = expit(3.0 * np.ravel(X))
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)


def numbers(n, rng, noise=3.0):
    y = rng.integers(2, size=n)
    return (4.0 * y - 2.0 + noise * rng.normal(size=n) * (1 + y))[:, None], y


def test_all_held_out_series_count_in_whatever_order(rng):
    """20,000 series, sorted by class: the first of them would miss the harder class too often."""
    X, y = numbers(20000, rng)
    order = np.argsort(y, kind="stable")
    sets = prediction_sets(Table().fit(), X[order], y[order])
    assert sets.held_out.weights.sum() == len(sets.held_out.scores) == 20000
    X, y = numbers(20000, rng)
    assert sets.predict(X, 0.05).contains(y).mean() == pytest.approx(0.95, abs=0.006)


def test_equal_series_are_draws_of_their_own(rng):
    """A third of the series is zero throughout, and their class is by chance."""

    def some(n):
        X, y = numbers(n, rng, noise=1.0)
        X[rng.random(n) < 0.3] = 0.0
        y[X[:, 0] == 0.0] = rng.integers(2, size=np.sum(X == 0.0))
        return X, y

    X, y = some(2000)
    sets = prediction_sets(Table().fit(), X, y)
    assert sets.held_out.weights.sum() == 2000
    X, y = some(2000)
    assert sets.predict(X, 0.1).contains(y).mean() > 0.88
    # An equal recording in every group leaves the groups apart.
    groups = np.repeat(np.arange(30), 10)
    X, y = some(300)
    X[::10] = 0.0
    assert prediction_sets(Table().fit(), X, y, groups=groups).held_out.n_groups == 30
    certificate = slts.guarantees.certify(Table().fit(), X, y, groups=groups)
    assert certificate.headline.details["n_groups"] == 30


def test_half_walk_and_half_run_is_both(rng):
    """Series with as much of one class as of the other, of a model that is never wrong."""
    y = np.tile(["run", "walk"], 100)
    speed = np.where(y == "run", 2.5, 0.5)[:, None]

    def make(speed):
        time = np.arange(40)
        return [np.sin(s * time + rng.uniform(0, 6))[None] + 0.1 * rng.normal(size=(1, 40))
                for s in speed]  # fmt: skip

    model = slts.LocalSLTSClassifier(n_snippets=200, random_state=0).fit(make(speed), y)
    sets = prediction_sets(model).predict(make(speed), 0.05)
    assert sets.contains(y).mean() > 0.95
    assert set(sets.flags) <= {"single", "several"}
    halves = [np.concatenate([a[:, :20], b[:, 20:]], axis=1)
              for a, b in zip(make(speed[::2]), make(speed[1::2]), strict=True)]  # fmt: skip
    between = np.abs(model.predict_proba(halves)[:, 0] - 0.5) < 0.44
    assert between.mean() > 0.3
    assert (prediction_sets(model).predict(halves, 0.05).sizes[between] == 2).all()
