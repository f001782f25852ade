"""Errors name the argument, what is expected and what was given, before any alignment."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import slts
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
def test_channels_must_be_those_of_training(kind, two):
    X, y, X_test, _ = two
    model = quick(kind).fit(X, y)
    with pytest.raises(slts.DataError, match=f"X has 2 channels, but {kind.__name__} .* on 3"):
        model.predict([x[:2] for x in X_test])


@every_kind
def test_the_error_of_an_infinite_value_names_the_series(kind, two):
    X, y, X_test, _ = two
    model = quick(kind).fit(X, y)
    broken = [x.copy() for x in X_test]
    broken[4][1, 2] = np.inf
    with pytest.raises(slts.DataError, match="series 4"):
        model.predict(broken)
    with pytest.raises(slts.DataError, match="series 4"):
        quick(kind).fit(broken, two[3])


@pytest.mark.parametrize("label", ["a", None, (1, 2)])
def test_labels_of_several_types_name_a_series(label, two):
    y = two[1].astype(object)
    y[3] = label
    with pytest.raises(slts.DataError, match="y must have labels of one type.*for series 3"):
        slts.OneNNClassifier().fit(two[0], y)


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


@over_landmarks
@pytest.mark.parametrize("value", [0, -1, 1.5, 0.0, 31, "x", True, np.nan])
def test_a_wrong_number_of_landmarks_is_an_error(kind, value, two):
    X, y, _, _ = two
    message = f"'n_landmarks' parameter must be an int from 1 to 30.*Got {re.escape(repr(value))}"
    with pytest.raises(ValueError, match=message):
        kind(value).fit(X, y)


@every(TUNED)
@pytest.mark.parametrize(("values", "message"), [([5, 31], "Got 31 instead"), ([], "empty list")])
def test_a_wrong_list_of_numbers_of_landmarks_is_an_error(kind, values, message, two):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=f"'n_landmarks' parameter.*{message}"):
        kind(values).fit(X, y)


@over_landmarks
@pytest.mark.parametrize(
    "value",
    ["medoids", [], [0, 30], [-1, 2], [0.5], [3, 3], [[0, 1]], [True, False]],
    ids=repr,
)
def test_unusable_landmarks_are_errors(kind, value, two, alignments):
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
    message += " or 'auto'" if parameter == "C" else ""
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


@every(HELD_OUT_BY)
@pytest.mark.parametrize("value", [0, 1, -3, 1.5, -0.2, True, "x", np.nan], ids=repr)
def test_a_wrong_cv_is_an_error(kind, value, two, alignments):
    X, y, _, _ = two
    parameter = HELD_OUT_BY[kind]
    message = f"'{parameter}' parameter must be an int >= 2, a hold-out fraction .* or a splitter"
    with pytest.raises(ValueError, match=f"{message}. Got {value!r}"):
        kind(**{parameter: value}).fit(X, y)
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


@every([*LANDMARKED, slts.OneNNClassifier, slts.SimilaritySVC])
@pytest.mark.parametrize(("parameter", "value"), [("objective", "best"), ("band", -1)])
def test_wrong_settings_of_the_alignment_are_errors(kind, parameter, value, two):
    X, y, _, _ = two
    with pytest.raises(ValueError, match=f"'?{parameter}'?.*{value!r}"):
        kind(**{parameter: value}).fit(X, y)


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
def test_extreme_weights_are_relative(kind, weight, three):
    X, y, X_test, _ = three
    plain = quick(kind, random_state=0).fit(X, y, np.ones(len(y)))
    extreme = quick(kind, random_state=0).fit(X, y, np.full(len(y), weight))
    np.testing.assert_allclose(
        extreme.decision_function(X_test), plain.decision_function(X_test), rtol=1e-6, atol=1e-6
    )


@every(WEIGHTED)
def test_weights_too_different_to_be_added_are_refused(kind, three):
    X, y, _, _ = three
    for odd, rest in ((1e-320, 1.0), (1.0, 1e308), (1e-17, 1.0)):
        weights = np.where(np.arange(len(y)) == 5, odd, rest)
        with pytest.raises(
            slts.DataError, match=r"sample_weight of series 5 is .* factor of 1e\+15"
        ):
            quick(kind).fit(X, y, weights)
