"""Certificates from held-out series, and what they raise errors for."""

import json
import math

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import slts
from slts import DataError
from slts.guarantees import certify
from slts.guarantees.bounds import Conditions
from tests.guarantees.conftest import FAST, make_series


def upper_bound(wrong, delta, groups=None):
    """Clopper-Pearson, or the largest p with kl(mean of groups, p) <= ln(1/delta)/G."""
    errors, n = np.count_nonzero(wrong), len(wrong)
    if groups is None:
        return stats.beta.isf(delta, errors + 1, n - errors)
    means = [wrong[groups == g].mean() for g in np.unique(groups)]
    mean, budget = np.mean(means), np.log(1 / delta) / len(means)
    return optimize.brentq(
        lambda p: special.rel_entr([mean, 1 - mean], [p, 1 - p]).sum() - budget, mean, 1 - 1e-15
    )


@pytest.mark.parametrize("grouped", [False, True])
def test_bounds_from_held_out_series(grouped, model, held_out):
    X, y = held_out
    groups = np.repeat(list("abcdefgh"), [30, 30, 20, 10, 10, 8, 8, 4]) if grouped else None
    certificate = certify(model, X, y, groups=groups, delta=0.1, n_models=4)
    wrong, decisions = model.predict(X) != y, model.decision_function(X)
    error, signs = certificate.bounds
    assert certificate.headline is error is certificate["hold-out error"]
    assert error.bounds_what == "0-1 error"
    assert error.value == pytest.approx(upper_bound(wrong, 0.1 / 4, groups), rel=1e-9)
    assert f"{wrong.sum()} of 120" in error.sentence
    assert (error.details["errors"], certificate.n) == (wrong.sum(), 120)
    # The bounds of all classes hold together.
    for c in range(3):
        expected = upper_bound((decisions[:, c] > 0) != (y == c), 0.1 / 12, groups)
        assert signs.details["by_class"][str(c)] == pytest.approx(expected, rel=1e-9)
    assert signs.value == max(signs.details["by_class"].values())
    draws = "8 groups (120 series)" if grouped else "120 series"
    assert certificate.independent == certificate.to_dict()["independent"] == draws
    assert f"Independent draws: {draws}." in str(certificate)
    assert ("of the series of a new group, on average" in error.sentence) == grouped
    assert any("the groups are independent draws" in x for x in error.unchecked) == grouped
    if grouped:
        rates = [[(y[groups == g] != c).mean() for g in "abcdefgh"] for c in range(3)]
        assert error.details["trivial"] == pytest.approx(min(np.mean(rates, axis=1)))
        assert error.details["n_groups"] == 8
        assert "the mean over 8 groups" in error.sentence


def test_two_classes_have_one_bound():
    X, y = make_series(80, 3, n_classes=2)
    model = slts.SLTSClassifier(15, gamma=0.1, lam=1.0, **FAST).fit(X[:40], y[:40])
    (bound,) = certify(model, X[40:], y[40:]).bounds
    assert bound.details["errors"] == np.count_nonzero(model.predict(X[40:]) != y[40:])


def test_a_decision_of_zero_is_wrong_whatever_the_class_is(model):
    zeros = [np.zeros((3, n)) for n in (5, 6)]
    assert not model.decision_function(zeros).any()
    assert certify(model, zeros, [0, 1]).bounds[1].details["errors"] == [2, 2, 2]


@pytest.mark.parametrize(
    "estimator",
    [slts.OneNNClassifier(), slts.SimilaritySVC(), slts.LDMLTClassifier(triplets_per_series=1.0)],
    ids=lambda e: type(e).__name__,
)
def test_any_classifier_gets_a_hold_out_bound(estimator, training, held_out):
    (bound,) = certify(estimator.fit(*training), *held_out).bounds
    assert not bound.vacuous
    with pytest.raises(DataError, match="copy of a training series: series 2 of X"):
        certify(estimator, [*held_out[0][:2], training[0][7]], held_out[1][:3])


def test_classifiers_of_others_are_bounded_without_a_check_for_copies(training, held_out):
    flat = FunctionTransformer(lambda X: [[x.mean(), x.std()] for x in X])
    piped = make_pipeline(flat, DecisionTreeClassifier(random_state=0)).fit(*training)
    for data in (training, held_out):
        (bound,) = certify(piped, *data).bounds
        assert "no held-out series was used in training" in bound.unchecked
    table = np.zeros((120, 1))
    assert certify(
        DummyClassifier().fit(table[:90], training[1]), table, held_out[1]
    ).headline.vacuous


def test_copies_of_training_series_raise_an_error(model, training, held_out):
    X, y = training
    mixed = [*held_out[0][:5], X[7], X[8]], [*held_out[1][:5], y[7], y[8]]
    with pytest.raises(DataError, match=r"2 of 7 series .*: series 5 of X, series 6 of X\. Use"):
        certify(model, *mixed)
    search = GridSearchCV(slts.SLTSClassifier(random_state=0), {"gamma": [1e-2]}, cv=2).fit(X, y)
    with pytest.raises(DataError, match=r"90 of 90 series are copies .* series 4 of X and 85 more"):
        certify(search, X, y)


def test_few_copies_are_counted_and_named(model, training, held_out):
    """Equal series are draws of their own: with few values, new series equal others by chance."""
    X, y = (list(part) for part in held_out)
    X[3], y[3] = training[0][7], training[1][7]
    bound = certify(model, X, y).headline
    assert bound.details["n"] == 120
    assert any("1 of 120 series is a copy" in x and "series 3 of X" in x for x in bound.unchecked)
    assert not any("equals a training series" in x for x in bound.checked)
    calibrated = slts.BBSClassifier(20, random_state=0).fit(*training)
    with pytest.warns(UserWarning, match="copy of a training series: series 3 of X. They count"):
        slts.prediction_sets(calibrated, X, y)
    X[4], y[4] = training[0][8], training[1][8]
    with pytest.raises(DataError, match="copies='allow'"):
        certify(model, X, y)
    allowed = certify(model, X, y, copies="allow").headline
    assert any("2 of 120 series are copies" in x for x in allowed.unchecked)
    assert len(slts.prediction_sets(calibrated, X, y, copies="allow").held_out.codes) == 120
    with pytest.raises(ValueError, match="'copies' parameter must be 'error' or 'allow'"):
        certify(model, X, y, copies="no")


def test_the_certificate_names_classes_that_were_not_held_out(model, held_out):
    X, y = held_out
    (bound,) = certify(model, X, y).bounds[:1]
    assert "No held-out series is of class" not in bound.sentence
    some = np.flatnonzero(np.asarray(y) != 2)
    (bound,) = certify(model, [X[i] for i in some], np.asarray(y)[some]).bounds[:1]
    assert "No held-out series is of class 2: nothing is known about errors" in bound.sentence


def test_copies_are_those_that_the_last_step_of_a_pipeline_sees(training, held_out):
    scaled = FunctionTransformer(lambda X: [x - np.mean(x) for x in X])
    steps = scaled, "passthrough", slts.BBSClassifier(random_state=0)
    piped = make_pipeline(*steps).fit(*training)
    last_step = certify(piped[-1], piped[0].transform(held_out[0]), held_out[1])
    assert certify(piped, *held_out).headline == last_step.headline
    with pytest.raises(DataError, match="are copies of training series"):
        certify(piped, *training)


def test_only_exact_copies_are_recognised(model, training):
    X, y = training
    certificate = certify(model, [np.append(x, x[:, -1:], axis=1) for x in X], y)
    assert any("equals a training series" in x for x in certificate.headline.checked)
    assert any("changed copy of a training series" in x for x in certificate.headline.unchecked)


def test_constant_series_are_never_copies():
    X, y = make_series(40, 0)
    constant = [np.repeat([[k], [0.0], [np.nan]], 6, axis=1) for k in (0.0, 1.0)]
    model = slts.BBSClassifier(9, **FAST).fit([*X, *constant], [*y, 0, 1])
    new, labels = make_series(30, 1)
    assert certify(model, [*new, *constant], [*labels, 0, 1]).n == 32
    one_step = [x[:, :1] for x in X]
    model = slts.BBSClassifier(9, **FAST).fit(one_step, y)
    with pytest.raises(DataError, match="40 of 40 series are copies"):
        certify(model, one_step, y)


def test_equal_held_out_series_are_as_many_draws(model, held_out):
    X, y = held_out
    right = int(np.argmax(model.predict(X) == y))
    certificate = certify(model, [X[right]] * 500, [y[right]] * 500)
    assert certificate.headline.value == pytest.approx(1 - 0.05 ** (1 / 500))
    assert certificate.independent == "500 series"


def test_without_digests_copies_are_an_unchecked_assumption(model, training, tmp_path):
    slts.save(model, tmp_path / "m.slts", digests=False)
    bare = slts.load(tmp_path / "m.slts")
    assert bare.training_digests_ is None
    assert "no held-out series was used in training" in certify(bare, *training).headline.unchecked


# -- scans


def write_scan(folder, X, y, groups=None):
    """Write series to a Parquet file with small row groups, and scan it."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    lengths = [x.shape[1] for x in X]
    columns = {"id": np.arange(len(X)), "label": y} | ({} if groups is None else {"who": groups})
    columns = {name: np.repeat(column, lengths) for name, column in columns.items()}
    columns |= {f"c{k}": np.concatenate([x[k] for x in X]) for k in range(3)}
    pq.write_table(pa.table(columns), folder / "x.parquet", row_group_size=400)
    return slts.scan_series(
        folder / "x.parquet", id="id", label="label", channels=["c0", "c1", "c2"],
        groups=None if groups is None else "who",
    )  # fmt: skip


@pytest.mark.usefixtures("tables_in_parts")
@pytest.mark.parametrize(
    "estimator",
    [slts.SLTSClassifier(20, gamma=0.1, **FAST), slts.OneNNClassifier()],
    ids=lambda e: type(e).__name__,
)
def test_a_scan_is_certified_like_series_in_memory(estimator, training, held_out, tmp_path):
    (X, y), groups = held_out, np.arange(120) // 12
    model = estimator.fit(*training)
    assert certify(model, write_scan(tmp_path, X, y)) == certify(model, X, y)
    scan = write_scan(tmp_path, X, y, groups)
    assert certify(model, scan) == certify(model, X, y, groups=groups)
    for argument in ({"y": y}, {"groups": groups}):
        with pytest.raises(DataError, match="y and groups must be None if X is a scan"):
            certify(model, scan, **argument)
    with pytest.raises(DataError, match="y and groups must be None if X is a scan"):
        slts.prediction_sets(model, scan, y)
    mixed = [*X[:100], *training[0][7:9], *X[100:]], np.insert(y, 100, training[1][7:9])
    with pytest.raises(DataError, match="of training series: series 100, series 101"):
        certify(model, write_scan(tmp_path, *mixed))
    with pytest.raises(DataError, match="not trained on: 7, first for series 0"):
        certify(model, write_scan(tmp_path, X, np.where(y == 0, 7, y)))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("delta", [0, 1, -0.1, 1.5, math.nan, "0.05", True]),
        ("n_models", [0, -1, 1.5, True, None, "2", 10**101]),
        ("sample", ["test", None]),
    ],
)
def test_parameters_are_checked(name, values, model, held_out):
    for value in values:
        with pytest.raises(ValueError, match=f"'{name}'"):
            certify(model, *held_out, **{name: value})


@pytest.mark.parametrize("label", [7, None, "b", 1.5, float("nan")])
def test_labels_and_groups_are_checked(label, model, held_out):
    X, y = held_out
    with pytest.raises(DataError, match=r"not trained on: .*, first for series 3"):
        certify(model, X, [*y[:3], label, *y[4:]])
    for labels, groups, match in (
        (y[1:], None, "120 series and 119 labels"),
        (y[:0], None, "empty"),
        (None, None, "y is None"),
        (y, [1, 2, 3], "120 series and 3 groups"),
    ):
        with pytest.raises(DataError, match=match):
            certify(model, X, labels, groups=groups)


def test_certificates_can_be_read_printed_and_stored(model, training, held_out):
    for certificate in (certify(model, *held_out), certify(model, *training, sample="training")):
        text = str(certificate)
        for bound in certificate.bounds:
            assert bound.name in text
            assert bound.sentence.endswith(".")
            assert "{" not in bound.sentence
            assert bound.checked
            assert all(assumption[:50] in text for assumption in bound.unchecked)
        assert max(map(len, text.splitlines())) <= 100
        assert "class mean" in text
        assert "<pre>Certificate of SLTSClassifier" in certificate._repr_html_()
        content = certificate.to_dict()
        assert json.loads(json.dumps(content)) == content
        assert content["headline"] == certificate.bounds[0].name
        with pytest.raises(KeyError, match="there is no bound"):
            certificate["luck"]
    assert "class mean" not in str(certify(slts.OneNNClassifier().fit(*training), *held_out))


def test_a_joint_bound_may_be_vacuous_for_some_classes():
    conditions, values = Conditions(0.05, 1, 10, (), ()), np.array([0.1, 0.4])
    for trivial, verdict in (
        (0.3, "It is vacuous for 1 of them."),
        (0.0, "is vacuous: a constant"),
    ):
        bound = conditions.joint_bound(
            "signs", "0-1 error", "ab", values, np.full(2, trivial), "at most {:.2f}."
        )
        assert "95%, at most 0.40. This holds for all 2 classes" in bound.sentence
        assert verdict in bound.sentence
        assert bound.vacuous
