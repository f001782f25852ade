"""Errors name what is wrong, what is expected and what was given; before any work is done."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import slts

KINDS = [
    slts.SLTSClassifier,
    slts.SLTSClassifierCV,
    slts.BBSClassifier,
    slts.BBSClassifierCV,
    slts.LocalSLTSClassifier,
    slts.OneNNClassifier,
    slts.SimilaritySVC,
    slts.LDMLTClassifier,
]
OVER_LANDMARKS = KINDS[:4]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
over_landmarks = pytest.mark.parametrize("kind", OVER_LANDMARKS, ids=lambda kind: kind.__name__)


def quick(kind, **parameters):
    if kind is slts.LDMLTClassifier:
        parameters |= {"n_cycles": 1, "triplets_per_series": 1.0}
    return kind(random_state=0, **parameters)


@every_kind
def test_one_class_is_refused(kind, two):
    X, _, _, _ = two
    with pytest.raises(slts.DataError, match=r"one class only, 'a': .* at least two"):
        kind().fit(X, ["a"] * len(X))


@every_kind
def test_numbers_of_series_and_labels_must_agree(kind, two):
    X, y, _, _ = two
    with pytest.raises(slts.DataError, match="30 series and 29 labels"):
        kind().fit(X, y[:-1])


@every_kind
@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_nothing_is_answered_before_fit(kind, method, two):
    with pytest.raises(NotFittedError, match=kind.__name__):
        getattr(kind(), method)(two[2])


@over_landmarks
def test_nothing_is_transformed_before_fit(kind, two):
    with pytest.raises(NotFittedError):
        kind().transform(two[2])
    with pytest.raises(NotFittedError):
        kind().get_feature_names_out()


@every_kind
def test_channels_must_be_those_of_training(kind, two):
    X, y, X_test, _ = two
    model = quick(kind).fit(X, y)
    with pytest.raises(slts.DataError, match=f"X has 2 channels, but {kind.__name__} .* on 3"):
        model.predict([x[:2] for x in X_test])


@every_kind
def test_a_missing_value_is_refused_with_its_place(kind, two):
    X, y, X_test, _ = two
    model = quick(kind).fit(X, y)
    broken = [x.copy() for x in X_test]
    broken[4][1, 2] = np.nan
    with pytest.raises(slts.DataError, match="series 4"):
        model.predict(broken)
    with pytest.raises(slts.DataError, match="series 4"):
        quick(kind).fit(broken, two[3])


def lonely(three):
    """Thirteen series, one of them the only one of class 2."""
    X, y, _, _ = three
    chosen = [*np.flatnonzero(y == 0)[:6], *np.flatnonzero(y == 1)[:6], np.flatnonzero(y == 2)[0]]
    return [X[i] for i in chosen], y[chosen]


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [
        (slts.SLTSClassifier, "calibration_cv"),
        (slts.BBSClassifier, "calibration_cv"),
        (slts.SimilaritySVC, "calibration_cv"),
        (slts.SLTSClassifierCV, "cv"),
        (slts.BBSClassifierCV, "cv"),
    ],
)
@pytest.mark.parametrize("value", [3, 0.3])
def test_a_class_of_one_cannot_be_held_out(kind, parameter, value, three):
    X, y = lonely(three)
    message = f"class 2 has one member only: {parameter} needs at least two"
    with pytest.raises(slts.DataError, match=message):
        kind(**{parameter: value}).fit(X, y)


@pytest.mark.parametrize("kind", [slts.SLTSClassifier, slts.BBSClassifier])
def test_a_class_of_one_is_learned_where_nothing_is_held_out(kind, three):
    X, y = lonely(three)
    model = kind(1.0, gamma=1e-3, calibration_cv=None, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X[-1:]), [2])
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("kind", [slts.OneNNClassifier, slts.LDMLTClassifier, slts.SimilaritySVC])
def test_a_class_of_one_is_a_neighbour_like_any_other(kind, three):
    X, y = lonely(three)
    settings = {"C": 100.0, "calibration_cv": None} if kind is slts.SimilaritySVC else {}
    np.testing.assert_array_equal(quick(kind, **settings).fit(X, y).predict(X[-1:]), [2])


@over_landmarks
@pytest.mark.parametrize("value", [0, -1, 1.5, 0.0, 31, "x", True, np.nan])
def test_a_wrong_number_of_landmarks_is_refused(kind, value, two):
    X, y, _, _ = two
    message = f"'n_landmarks' parameter must be an int from 1 to 30.*Got {re.escape(repr(value))}"
    with pytest.raises(ValueError, match=message):
        kind(value).fit(X, y)


@pytest.mark.parametrize("kind", [slts.SLTSClassifierCV, slts.BBSClassifierCV])
@pytest.mark.parametrize(("values", "message"), [([5, 31], "Got 31 instead"), ([], "empty list")])
def test_a_wrong_list_of_numbers_of_landmarks_is_refused(kind, values, message, two):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=f"'n_landmarks' parameter.*{message}"):
        kind(values).fit(X, y)


@over_landmarks
@pytest.mark.parametrize(
    "value",
    ["medoids", [], [0, 30], [-1, 2], [0.5], [3, 3], [[0, 1]], [True, False]],
    ids=repr,
)
def test_unusable_landmarks_are_refused(kind, value, two, alignments):
    X, y, _, _ = two
    message = f"'landmarks' parameter of {kind.__name__} .* between 0 and 29.*Got "
    with pytest.raises(ValueError, match=message + re.escape(repr(value))):
        kind(landmarks=value).fit(X, y)
    assert not alignments


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [
        (slts.SLTSClassifier, "gamma"),
        (slts.SLTSClassifier, "lam"),
        (slts.BBSClassifier, "gamma"),
        (slts.SimilaritySVC, "C"),
    ],
)
@pytest.mark.parametrize("value", [0, -0.1, np.inf, np.nan, "1", None, True, [0.1]], ids=repr)
def test_a_parameter_must_be_positive_and_finite(kind, parameter, value, two, alignments):
    X, y, _, _ = two
    message = f"'{parameter}' parameter of {kind.__name__} must be a positive finite number"
    with pytest.raises(ValueError, match=f"{message}. Got {re.escape(repr(value))}"):
        kind(**{parameter: value}).fit(X, y)
    assert not alignments


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [
        (slts.SLTSClassifierCV, "gammas"),
        (slts.SLTSClassifierCV, "lams"),
        (slts.BBSClassifierCV, "gammas"),
    ],
)
@pytest.mark.parametrize("value", [[], 0.1, "abc", [0.1, 0.0], [-1.0], [None]], ids=repr)
def test_a_grid_must_hold_positive_numbers(kind, parameter, value, two, alignments):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of {kind.__name__} must be"):
        kind(**{parameter: value}).fit(X, y)
    assert not alignments


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [
        (slts.SLTSClassifier, "calibration_cv"),
        (slts.SLTSClassifierCV, "cv"),
        (slts.BBSClassifierCV, "cv"),
    ],
)
@pytest.mark.parametrize("value", [0, 1, -3, 1.5, -0.2, True, "x", np.nan], ids=repr)
def test_a_wrong_cv_is_refused(kind, parameter, value, two, alignments):
    X, y, _, _ = two
    message = f"'{parameter}' parameter must be an int >= 2, a hold-out fraction .* or a splitter"
    with pytest.raises(ValueError, match=f"{message}. Got {value!r}"):
        kind(**{parameter: value}).fit(X, y)
    assert not alignments


@pytest.mark.parametrize("kind", [*OVER_LANDMARKS, slts.SimilaritySVC])
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
def test_wrong_sample_weights_are_refused(kind, weights, message, two, alignments):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=message):
        kind().fit(X, y, sample_weight=weights)
    assert not alignments


@pytest.mark.parametrize("kind", [*OVER_LANDMARKS, slts.OneNNClassifier, slts.SimilaritySVC])
@pytest.mark.parametrize(("parameter", "value"), [("objective", "best"), ("band", -1)])
def test_wrong_settings_of_the_alignment_are_refused(kind, parameter, value, two):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=f"'?{parameter}'?.*{value!r}"):
        kind(**{parameter: value}).fit(X, y)


def test_a_calibration_split_without_a_class_is_refused_by_the_svm(three):
    X, y = three[:2]
    order = np.argsort(y, kind="stable")
    with pytest.raises(slts.DataError, match="leaves class 0 out of a training part"):
        slts.SimilaritySVC(calibration_cv=KFold(3)).fit([X[i] for i in order], np.asarray(y)[order])
