"""Errors name the argument, what is expected and what was given, before any alignment."""

import re
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import slts
from slts.estimators.parameters import PARAMETERS
from slts.report import collect
from slts.series.dataset import Dataset
from tests.estimators.kinds import LANDMARKED, TUNED, every, every_kind, quick

over_landmarks = every(LANDMARKED)


@every_kind
def test_one_class_is_an_error(kind, two):
    X, _, _, _ = two
    with pytest.raises(slts.DataError, match=r"one class only, 'a': .* at least two"):
        kind().fit(X, ["a"] * len(X))


@every_kind
def test_numbers_of_series_and_labels_must_agree(kind, two):
    X, y, _, _ = two
    with pytest.raises(slts.DataError, match="30 series and 29 labels"):
        kind().fit(X, y[:-1])


def test_labels_are_given_beside_the_series(two, fitted):
    X, y, _, _ = two
    read = Dataset(slts.as_series(X), np.asarray(y), np.arange(len(X)), "two.csv")
    with pytest.raises(slts.DataError, match=r"X is a Dataset, .* fit\(X.series, X.labels\)"):
        slts.OneNNClassifier().fit(read)
    with pytest.raises(slts.DataError, match=r"y is None: score needs the label"):
        fitted(slts.OneNNClassifier, "two").score(X)


@every_kind
@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_prediction_before_fit_is_an_error(kind, method, two):
    with pytest.raises(NotFittedError, match=kind.__name__):
        getattr(kind(), method)(two[2])


@over_landmarks
def test_transform_before_fit_is_an_error(kind, two):
    with pytest.raises(NotFittedError):
        kind().transform(two[2])
    with pytest.raises(NotFittedError):
        kind().get_feature_names_out()


@every_kind
def test_channels_must_be_those_of_training(kind, two, fitted):
    with pytest.raises(slts.DataError, match=f"X has 2 channels, but {kind.__name__} .* on 3"):
        fitted(kind, "two").predict([x[:2] for x in two[2]])


@every_kind
def test_the_error_of_an_infinite_value_names_the_series(kind, two, fitted):
    broken = [x.copy() for x in two[2]]
    broken[4][1, 2] = np.inf
    with pytest.raises(slts.DataError, match="series 4"):
        fitted(kind, "two").predict(broken)
    with pytest.raises(slts.DataError, match="series 4"):
        quick(kind).fit(broken, two[3])


@pytest.mark.parametrize("label", ["a", None, (1, 2)])
def test_labels_of_several_types_name_a_series(label, two):
    y = two[1].astype(object)
    y[3] = label
    # A list of numbers and text would become an array of text.
    for labels in (y, list(y)) if label == "a" else (y,):
        with pytest.raises(slts.DataError, match=r"y must have labels of one type.*for series 3"):
            slts.OneNNClassifier().fit(two[0], labels)


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
def test_the_only_series_of_a_class_is_learned_and_never_held_out(kind, value, three):
    X, y = lonely(three)
    given = {HELD_OUT_BY[kind]: value}
    given |= {"C": 100.0} if kind is slts.SimilaritySVC else {"n_landmarks": 13}
    model = quick(kind, **given).fit(X, y)
    assert 2 in model.predict(X)
    assert model.predict_proba(X).shape == (13, 3)


@every(HELD_OUT_BY)
@pytest.mark.parametrize("value", [3, 0.3])
def test_some_class_needs_two_distinct_series_to_hold_one_out(kind, value, three, alignments):
    X, y = [three[0][0], three[0][1]], three[1][:2]
    name = HELD_OUT_BY[kind]
    given = {name: value} | ({"C": 1.0} if kind is slts.SimilaritySVC else {"n_landmarks": 2})
    # A repeated series is one series.
    with pytest.raises(slts.DataError, match=f"No class has two distinct series, but {name} needs"):
        quick(kind, **given).fit(X * 2, [*y, *y])
    assert not alignments
    if name == "calibration_cv":
        model = quick(kind, **given | {name: None}).fit(X, y)
        assert not hasattr(model, "predict_proba")


def test_some_class_needs_two_distinct_series_to_choose_c(three):
    X, y = three[0][:2], three[1][:2]
    with pytest.raises(slts.DataError, match=r"but C='auto' needs .* Or set C to a number"):
        slts.SimilaritySVC(calibration_cv=None).fit(X, y)


@every([slts.OneNNClassifier, slts.LDMLTClassifier])
def test_the_only_series_of_a_class_is_a_neighbour_like_any_other(kind, three):
    X, y = lonely(three)
    np.testing.assert_array_equal(quick(kind).fit(X, y).predict(X[-1:]), [2])


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
    "metrics": ["all", None],
    "n_components": _NOT_INTEGERS,
    "n_cycles": _NOT_INTEGERS,
    "n_jobs": [0, 1.5, "all", 2**31],
    "n_landmarks": [*_NOT_COUNTS, []],
    "n_landmarks_per_class": _NOT_INTEGERS,
    "n_phases": [*_NOT_INTEGERS, "many"],
    "n_snippets": [-1, 2.0, None],
    "normalize": ["yes", None, 2],
    "objective": ["distance", None, 5, (), ("cost", "cost"), ("cost", "best")],
    "penalties": [*_NOT_GRIDS, ["a"]],
    "random_state": [-1, 2**32, 1.5, "x", np.random.default_rng(0)],
    "ranking_limit": [1, 2.5],
    "regularizer": ["ridge", "L1", None, 1],
    "representations": ["colours", (), ("values", "values"), 5],
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
    with pytest.raises(ValueError, match=r"'n_landmarks' parameter.*Got 31 instead"):
        kind([5, 31]).fit(X, y)
    with pytest.raises(ValueError, match=r"'n_landmarks' parameter of .*Got \[4, 8\] instead"):
        getattr(slts, kind.__name__.removesuffix("CV"))([4, 8]).fit(X, y)


@over_landmarks
def test_landmarks_must_be_training_series(kind, two, alignments):
    X, y, _, _ = two
    with pytest.raises(ValueError, match="'n_landmarks' parameter must be an int from 1 to 30"):
        kind(31).fit(X, y)
    message = f"'landmarks' parameter of {kind.__name__} .* between 0 and 29. Got "
    with pytest.raises(ValueError, match=message + re.escape("[0, 30]")):
        kind(landmarks=[0, 30]).fit(X, y)
    assert not alignments


@every([*LANDMARKED, slts.SimilaritySVC])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(29), r"sample_weight.shape == \(29,\), expected \(30,\)"),
        (np.ones((30, 2)), "[Ss]ample.weight"),
        (-np.ones(30), "[Nn]egative values.*sample_weight"),
        (np.zeros(30), "[Ss]ample.weight"),
        (np.full(30, np.nan), "sample_weight contains NaN"),
    ],
    ids=["too few", "two columns", "negative", "all zero", "missing"],
)
def test_wrong_sample_weights_are_errors(kind, weights, message, two, alignments):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=message):
        kind().fit(X, y, sample_weight=weights)
    assert not alignments


def test_a_calibration_split_without_a_class_is_an_error_by_the_svm(three):
    X, y = three[:2]
    pairs = [(np.flatnonzero(y != 0), np.flatnonzero(y == 0))]
    with pytest.raises(slts.DataError, match="leaves class 0 out of a training part"):
        slts.SimilaritySVC(calibration_cv=pairs).fit(X, y)


WEIGHTED = [
    slts.SLTSClassifier,
    slts.BBSClassifier,
    slts.SimilaritySVC,
    slts.LocalSLTSClassifier,
]


@every(WEIGHTED)
@pytest.mark.parametrize("weight", [1e308, 1e-320])
def test_extreme_weights_are_relative(kind, weight, two, fitted):
    X, y, X_test, _ = two
    extreme = quick(kind).fit(X, y, np.full(len(y), weight)).decision_function(X_test)
    expected = fitted(kind, "two").decision_function(X_test)
    np.testing.assert_allclose(extreme, expected, rtol=1e-6, atol=1e-6)


@every(WEIGHTED)
def test_weights_too_different_to_be_added_are_refused(kind, three):
    X, y, _, _ = three
    for odd, rest in ((1e-320, 1.0), (1.0, 1e308), (1e-17, 1.0)):
        weights = np.where(np.arange(len(y)) == 5, odd, rest)
        with pytest.raises(
            slts.DataError, match=r"sample_weight of series 5 is .* factor of 1e\+15"
        ):
            quick(kind).fit(X, y, weights)


def test_labels_in_another_order_than_the_series_are_an_error(rng):
    pd = pytest.importorskip("pandas")
    ids = np.repeat([7, 3, 5, 4], 6)
    frame = pd.DataFrame({"session": ids, "x": rng.normal(size=24), "kind": ids % 2})
    labels = frame.groupby("session").kind.first()
    X = slts.as_series(frame[["session", "x"]], id="session")
    with pytest.raises(slts.errors.DataError, match="label 0 belongs to 'session 3', but"):
        slts.OneNNClassifier().fit(X, labels)
    for y in (labels.loc[[7, 3, 5, 4]], labels.to_numpy(), pd.Series([1, 1, 1, 0])):
        slts.OneNNClassifier().fit(X, y)


@pytest.mark.parametrize("y", [None, "kind"])
def test_a_frame_with_labels_is_an_error_that_says_how_to_read_them(y):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": [0, 0, 1, 1], "x": [1.0, 2.0, 3.0, 4.0], "kind": [0, 0, 1, 1]})
    with pytest.raises(ValueError, match=r"X, y = slts.as_series\(X, label='...'\)"):
        slts.OneNNClassifier().fit(frame, y)


def test_labels_of_rows_are_an_error_that_says_how_to_get_those_of_series():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": [0, 0, 1, 1], "time": [0, 1, 0, 1], "x": [1.0, 2.0, 3.0, 4.0]})
    message = (
        r"2 series and 4 labels\. Every series has one label.* slts.as_series\(X, label='...'\)"
    )
    with pytest.warns(UserWarning, match="guessed"), pytest.raises(ValueError, match=message):
        slts.OneNNClassifier().fit(frame, [0, 0, 1, 1])


@pytest.mark.parametrize(("wrong", "known"), [(str, "int"), (int, "str")])
def test_labels_of_another_type_are_named(two, wrong, known):
    X, y, X_test, y_test = two
    right = int if wrong is str else str
    model = slts.OneNNClassifier().fit(X, [right(label) for label in y])
    labels = [wrong(label) for label in y_test]
    for work in (model.score, partial(slts.certify, model), partial(collect, model)):
        with pytest.raises(slts.DataError, match=rf"of type {known}.*\[{known}\(label\) for label"):
            work(X_test, labels)
    # Other classes are unknown whatever their type is.
    with pytest.raises(slts.DataError, match="not trained on"):
        slts.certify(model, X_test, [f"{label}?" for label in y_test])


def test_advice_about_labels_of_another_type_can_be_followed(two):
    X, y, X_test, y_test = two
    model = slts.OneNNClassifier().fit(X, y == y[0])
    right = y_test == y[0]
    labels = [str(label) for label in right.tolist()]
    with pytest.raises(slts.DataError, match=r"Convert them: \[.* for label in y\]") as raised:
        model.score(X_test, labels)
    advice = str(raised.value).partition("Convert them: ")[2].rstrip(".")
    converted = eval(advice, {"model": model, "y": labels})
    assert model.score(X_test, converted) == model.score(X_test, right)
