"""Errors name the parameter, the series or the file, before anything is aligned."""

import re
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import slts
from slts.estimators.parameters import PARAMETERS
from slts.series.dataset import Dataset
from tests.estimators.kinds import LANDMARKED, TUNED, every, every_kind, quick

over_landmarks = every(LANDMARKED)


# -- series and labels


@every_kind
def test_series_and_labels_must_fit_each_other(kind, two):
    X, y, _, _ = two
    for labels, message in (
        (["a"] * len(X), "one class only, 'a'"),
        (y[:-1], "30 series and 29 labels"),
    ):
        with pytest.raises(slts.DataError, match=message):
            kind().fit(X, labels)


@every_kind
def test_series_must_be_finite_and_have_the_channels_of_training(kind, two, fitted):
    X, y, X_test, _ = two
    broken = [x.copy() for x in X]
    broken[4][1, 2] = np.inf
    for work in (fitted(kind, "two").predict, partial(quick(kind).fit, y=y)):
        with pytest.raises(slts.DataError, match="series 4"):
            work(broken)
    with pytest.raises(slts.DataError, match=f"2 channels, but {kind.__name__} .* on 3"):
        fitted(kind, "two").predict([x[:2] for x in X_test])


@every_kind
def test_prediction_before_fit_is_an_error(kind, two):
    for name in ("predict", "decision_function", "predict_proba", "score", "transform"):
        if hasattr(kind, name):
            with pytest.raises(NotFittedError, match=kind.__name__):
                getattr(kind(), name)(two[2])


def test_labels_are_given_beside_the_series(two, fitted):
    X, y, _, _ = two
    read = Dataset(slts.as_series(X), np.asarray(y), np.arange(len(X)), "two.csv")
    with pytest.raises(slts.DataError, match=r"X is a Dataset"):
        slts.OneNNClassifier().fit(read)
    with pytest.raises(slts.DataError, match=r"y is None"):
        fitted(slts.OneNNClassifier, "two").score(X)


@pytest.mark.parametrize("label", ["a", None, (1, 2)])
def test_labels_of_several_types_name_a_series(label, two):
    y = two[1].astype(object)
    y[3] = label
    # A list of numbers and text would become an array of text.
    for labels in (y, list(y)) if label == "a" else (y,):
        with pytest.raises(slts.DataError, match=r"labels of one type.*for series 3"):
            slts.OneNNClassifier().fit(two[0], labels)


def test_labels_of_frames(rng):
    pd = pytest.importorskip("pandas")
    ids = np.repeat([7, 3, 5, 4], 6)
    frame = pd.DataFrame({"session": ids, "x": rng.normal(size=24), "kind": ids % 2})
    labels = frame.groupby("session").kind.first()
    X = slts.as_series(frame[["session", "x"]], id="session")
    model = slts.OneNNClassifier()
    with pytest.raises(slts.DataError, match="label 0 belongs to 'session 3'"):
        model.fit(X, labels)
    for y in (labels.loc[[7, 3, 5, 4]], labels.to_numpy(), pd.Series([1, 1, 1, 0])):
        model.fit(X, y)
    # The labels of a frame are a column with one value for each row.
    named = frame.rename(columns={"session": "id"}).drop(columns="kind")
    for y in (None, "kind"):
        with pytest.raises(ValueError, match=r"slts.as_series\(X, label='...'\)"):
            model.fit(named, y)
    with pytest.raises(ValueError, match=r"4 series and 24 labels.* slts.as_series\(X, label="):
        model.fit(named, frame.kind)


@pytest.mark.parametrize(("wrong", "right"), [(str, int), (int, str), (str, bool)])
def test_labels_of_another_type_are_an_error_with_advice_that_works(wrong, right, two):
    X, y, X_test, y_test = two
    model = slts.OneNNClassifier().fit(X, [right(label) for label in y])
    answers = [right(label) for label in y_test]
    labels = [wrong(label) for label in answers]
    for work in (model.score, partial(slts.certify, model)):
        with pytest.raises(slts.DataError, match=r"convert them: \[.* for label in y\]") as caught:
            work(X_test, labels)
    advice = str(caught.value).partition("convert them: ")[2].rstrip(".")
    converted = eval(advice, {"model": model, "y": labels})
    assert model.score(X_test, converted) == model.score(X_test, answers)


# -- classes of one series


def lonely(three):
    """Thirteen series, one of them the only one of class 2."""
    X, y, _, _ = three
    chosen = [*np.flatnonzero(y == 0)[:6], *np.flatnonzero(y == 1)[:6], np.flatnonzero(y == 2)[0]]
    return [X[i] for i in chosen], y[chosen]


HELD_OUT_BY = {
    slts.SLTSClassifier: "calibration_cv",
    slts.BBSClassifier: "calibration_cv",
    slts.SimilaritySVC: "calibration_cv",
    slts.SLTSClassifierCV: "cv",
    slts.BBSClassifierCV: "cv",
}


@every(HELD_OUT_BY)
@pytest.mark.parametrize("value", [3, 0.3])
def test_the_only_series_of_a_class_is_learned_and_never_held_out(kind, value, three, alignments):
    name = HELD_OUT_BY[kind]
    fixed = {"C": 100.0} if kind is slts.SimilaritySVC else {"n_landmarks": 13}
    X, y = lonely(three)
    model = quick(kind, **fixed | {name: value}).fit(X, y)
    assert 2 in model.predict(X)
    assert model.predict_proba(X).shape == (13, 3)
    # Some class needs two distinct series, and a repeated series is one series.
    alignments.clear()
    X, y = [three[0][0], three[0][1]] * 2, [*three[1][:2]] * 2
    fixed = {"C": 1.0} if kind is slts.SimilaritySVC else {"n_landmarks": 2}
    with pytest.raises(slts.DataError, match=f"No class has two distinct series, but {name}"):
        quick(kind, **fixed | {name: value}).fit(X, y)
    assert kind is slts.SimilaritySVC or not alignments
    if name == "calibration_cv":
        assert not hasattr(quick(kind, **fixed | {name: None}).fit(X, y), "predict_proba")


def test_c_is_chosen_on_held_out_series(three):
    X, y, _, _ = three
    with pytest.raises(slts.DataError, match="C='auto' needs"):
        slts.SimilaritySVC(calibration_cv=None).fit(X[:2], y[:2])
    pairs = [(np.flatnonzero(y != 0), np.arange(36))]
    with pytest.raises(slts.DataError, match="class 0 out of a training part"):
        slts.SimilaritySVC(calibration_cv=pairs).fit(X, y)


@every([slts.OneNNClassifier, slts.LDMLTClassifier])
def test_the_only_series_of_a_class_is_a_neighbour_like_any_other(kind, three):
    X, y = lonely(three)
    np.testing.assert_array_equal(quick(kind).fit(X, y).predict(X[-1:]), [2])


# -- parameters


NAN, INF = float("nan"), float("inf")
_NOT_COUNTS = [0, -1, 1.5, 0.0, "x", True, NAN]
_NOT_POSITIVE = [10**400, 0, -0.1, INF, NAN, "1", None, True, [0.1]]
_NOT_GRIDS = [[], 0.1, "abc", [0.1, 0.0], [-1.0], [None], [INF]]
_NOT_INTEGERS = [0, -1, 2.5, True, "all"]
_NOT_SPLITS = [0, 1, -3, 1.5, -0.2, True, "x", NAN, []]
WRONG = {
    "C": _NOT_POSITIVE,
    "band": [-1, 2.5, True, "wide"],
    "calibration_cv": _NOT_SPLITS,
    "calibration_size": [0, 2.0, True],
    "class_weight": ["foo", 1, {"a": "b"}],
    "cv": [*_NOT_SPLITS, None],
    "device": ["gpu", "CUDA", None, ["cpu"]],
    "dtype": ["float16", None, np.float32],
    "fit_intercept": ["yes", None, 2],
    "gamma": _NOT_POSITIVE,
    "gammas": _NOT_GRIDS,
    "homogeneous": ["yes", None, 2],
    "lam": _NOT_POSITIVE,
    "lams": _NOT_GRIDS,
    "landmarks": ["medoids", [], [-1, 2], [0.5], [3, 3], [[0, 1]], [True, False], [[1], [2, 3]]],
    "margin": [-1.0, NAN, "x"],
    "max_length": [0, 2.5],
    "memory_limit": ["much", 0, True, 10**400],
    "metric_rank": _NOT_INTEGERS,
    "n_components": _NOT_INTEGERS,
    "n_cycles": _NOT_INTEGERS,
    "n_jobs": [0, 1.5, "all", 2**31],
    "n_landmarks": [*_NOT_COUNTS, []],
    "n_phases": [*_NOT_INTEGERS, "many"],
    "n_snippets": [-1, 2.0],
    "normalize": ["yes", None, 2],
    "objective": ["distance", None, 5, ("cost", "affinity")],
    "penalties": [*_NOT_GRIDS, ["a"]],
    "random_state": [-1, 2**32, 1.5, "x", np.random.default_rng(0)],
    "ranking_limit": [1, 2.5],
    "regularizer": ["ridge", "L1", None, 1],
    "scale": ["minmax", 3, True],
    "triplets_per_series": [0, "many", INF],
    "verbose": ["yes"],
}


@every_kind
def test_every_wrong_parameter_is_named_before_data_are_read(kind):
    for name in kind().get_params():
        for value in WRONG[name]:
            message = f"The '{name}' parameter of {kind.__name__} must be .* Got "
            with pytest.raises(ValueError, match=message + re.escape(repr(value))):
                kind(**{name: value}).fit("no such data", "no such labels")


def test_every_form_of_a_parameter_is_accepted():
    splits = [(np.arange(3), np.arange(3, 6))]
    right = {
        "C": [np.float32(2), 3, "auto"],
        "band": [None, np.int64(3), slts.Itakura(2.0)],
        "calibration_cv": [None, 2, np.float64(0.3), KFold(2), splits, iter(splits)],
        "class_weight": [None, "balanced", {"a": 1, np.str_("b"): np.float64(2)}],
        "homogeneous": [1, np.False_],
        "landmarks": [range(3), (0, 2), np.array([1, 2]), [np.int64(1)]],
        "memory_limit": [None, 10**9, np.float64(1e9), "2 GB"],
        "n_landmarks": [None, np.int64(3), 1.0, np.float32(0.5)],
        "random_state": [None, np.uint32(3), np.random, np.random.RandomState(0)],
        "verbose": [None, 2],
    }
    for name, values in right.items():
        assert all(map(PARAMETERS[name].accepts, values)), name


@every(TUNED)
def test_lists_to_choose_from_are_for_the_cv_variants(kind, two):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=r"'n_landmarks' parameter.*Got 31"):
        kind([5, 31]).fit(X, y)
    with pytest.raises(ValueError, match=r"'n_landmarks' parameter of .*Got \[4, 8\]"):
        getattr(slts, kind.__name__.removesuffix("CV"))([4, 8]).fit(X, y)


@over_landmarks
def test_landmarks_must_be_training_series(kind, two, alignments):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=r"'n_landmarks' parameter .* from 1 to 30"):
        kind(31).fit(X, y)
    with pytest.raises(ValueError, match=r"'landmarks' parameter .* 0 and 29. Got \[0, 30\]"):
        kind(landmarks=[0, 30]).fit(X, y)
    assert not alignments


# -- weights


@every([*LANDMARKED, slts.SimilaritySVC, slts.LocalSLTSClassifier])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(29), r"sample_weight.shape == \(29,\)"),
        (np.ones((30, 2)), "[Ss]ample.weight"),
        (-np.ones(30), "[Nn]egative values.*sample_weight"),
        (np.zeros(30), "[Ss]ample.weight"),
        (np.full(30, np.nan), "sample_weight contains NaN"),
        (np.full(30, 1e300), "sample_weight must be"),
        (np.where(np.arange(30) == 5, 1e-300, 1.0), "sample_weight must be"),
    ],
    ids=["too few", "two columns", "negative", "all zero", "missing", "large", "one small"],
)
def test_wrong_sample_weights_are_errors(kind, weights, message, two, alignments):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=message):
        kind().fit(X, y, sample_weight=weights)
    assert not alignments


# -- names of series and parameters in errors


@every_kind
def test_a_fit_names_the_series_by_its_number_in_the_data(kind, two):
    X, y, _, _ = two
    if "normalize" not in kind().get_params() or "objective" not in kind().get_params():
        pytest.skip("rows always have unit norm")
    large = [x * (1e200 if k == 7 else 1.0) for k, x in enumerate(X)]
    model = quick(kind).set_params(objective="cost", normalize=False, scale=None)
    with pytest.raises(ValueError, match=r"series 7 of X"):
        model.fit(large, y)


def test_long_series_of_later_parts_keep_their_names(two):
    X, y, _, _ = two
    model = quick(slts.LocalSLTSClassifier).fit(X, y)
    model.model_.coefs[0][:] = 1e308
    long = [np.tile(x, (1, 40)) for x in X * 4]
    with pytest.raises(slts.DataError, match=r"^recording 0 has a decision value that is not"):
        model.predict(slts.as_series(long).named([f"recording {k}" for k in range(len(long))]))
    with pytest.raises(slts.DataError, match=r"^series 0 of X has a decision value"):
        model.predict(long)


@over_landmarks
def test_more_landmarks_than_a_sample_has_are_an_error(kind, two):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=r"'n_landmarks'.* from 1 to 2, "):
        quick(kind).set_params(landmarks=[0, 20], n_landmarks=3).fit(X, y)


@pytest.mark.parametrize("side", [[500], np.ones(4, dtype=bool)])
def test_splits_by_wrong_indices_name_the_parameter(side, two):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=r"^The 'cv' parameter must be .*pairs of indices"):
        slts.BBSClassifierCV(4, cv=[(np.arange(9), side)]).fit(X, y)


def test_unknown_labels_of_another_type_are_wrong(two):
    X, y, _, _ = two
    codes = np.unique(y, return_inverse=True)[1]
    model = slts.OneNNClassifier().fit(X, codes)
    right = codes == model.predict(X)
    assert model.score(X, codes) == right.mean()
    assert model.score(X[:4], [f"L{k}" for k in range(4)]) == 0.0
    with pytest.raises(slts.DataError, match="inconsistent lengths"):
        model.score(X, codes[:-1])
