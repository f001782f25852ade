"""What `certify` computes, and what it raises errors for."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

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
from slts.guarantees import bounds, certify, statements
from slts.guarantees.overlap import Overlap, draws_of_groups
from slts.learning import one_vs_rest_features

FAST = {"calibration_cv": None, "random_state": 0}


def make_series(n, seed, n_classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    shift = np.eye(3)[:, :n_classes] * 1.5
    return [rng.normal(size=(3, 8 + i % 5)) + shift[:, [c]] for i, c in enumerate(y)], y


@pytest.fixture(scope="module")
def training():
    return make_series(90, 0)


@pytest.fixture(scope="module")
def held_out():
    return make_series(120, 1)


@pytest.fixture(scope="module")
def model(training):
    return slts.SLTSClassifier(20, gamma=0.1, lam=1.0, **FAST).fit(*training)


def test_hold_out_headline_is_clopper_pearson(model, held_out):
    X, y = held_out
    certificate = certify(model, X, y, delta=0.1, n_models=4)
    errors = np.count_nonzero(model.predict(X) != y)
    assert certificate.headline.name == "hold-out error"
    assert certificate.headline is certificate.bounds[0]
    assert certificate.headline.bounds_what == "0-1 error"
    expected = stats.beta.isf(0.1 / 4, errors + 1, 120 - errors)
    assert certificate.headline.value == pytest.approx(expected)
    assert f"{errors} of 120" in certificate.headline.sentence
    assert certificate.n == 120


def test_repeated_training_series_are_not_independent_of_the_landmarks(training):
    X, y = training
    X = [*X, X[3]]
    model = slts.BBSClassifier(20, gamma=0.1, **FAST).fit(X, np.append(y, y[3]))
    with pytest.raises(DataError, match="some training series are repeated"):
        certify(model, X, np.append(y, y[3]), sample="training")


def test_one_vs_rest_bounds_share_delta(model, held_out):
    X, y = held_out
    bound = certify(model, X, y)["hold-out error, one-vs-rest"]
    decisions = model.decision_function(X)
    for c in range(3):
        errors = np.count_nonzero((decisions[:, c] > 0) != (y == c))
        expected = stats.beta.isf(0.05 / 3, errors + 1, 120 - errors)
        assert bound.details["by_class"][str(c)] == pytest.approx(expected)
    assert bound.value == max(bound.details["by_class"].values())


def kl_upper(mean, budget):
    """Largest p with kl(mean, p) <= budget."""
    return optimize.brentq(
        lambda p: special.rel_entr([mean, 1 - mean], [p, 1 - p]).sum() - budget, mean, 1 - 1e-15
    )


def test_groups_are_the_independent_draws(model, held_out):
    X, y = held_out
    groups = np.repeat([f"g{i}" for i in range(8)], [30, 30, 20, 10, 10, 8, 8, 4])
    certificate = certify(model, X, y, groups=groups, delta=0.1, n_models=4)
    wrong = model.predict(X) != y
    means = [wrong[groups == g].mean() for g in np.unique(groups)]
    expected = kl_upper(np.mean(means), np.log(4 / 0.1) / 8)
    bound = certificate.headline
    assert bound.value == pytest.approx(expected, rel=1e-9)
    assert bound.value > certify(model, X, y, delta=0.1, n_models=4).headline.value
    assert bound.details["n_groups"] == 8
    assert bound.details["mean_of_groups"] == pytest.approx(np.mean(means))
    rates = [[(y[groups == g] != c).mean() for g in np.unique(groups)] for c in range(3)]
    assert bound.details["trivial"] == pytest.approx(min(np.mean(rates, axis=1)))
    assert "of the series of a new group, on average" in bound.sentence
    assert "the mean over 8 groups" in bound.sentence
    assert certificate.independent == "8 groups (120 series)"
    assert certificate.to_dict()["independent"] == "8 groups (120 series)"
    assert "Independent draws: 8 groups (120 series)." in str(certificate)
    assert "Independent draws: 8 groups (120 series)." in certificate._repr_html_()
    assert any("groups are independent draws" in text for text in bound.unchecked)
    assert not any("the series are independent" in text for text in bound.unchecked)


def test_signs_are_bounded_by_groups_too(model, held_out):
    X, y = held_out
    groups = np.arange(120) % 15
    bound = certify(model, X, y, groups=groups)["hold-out error, one-vs-rest"]
    decisions = model.decision_function(X)
    for c in range(3):
        wrong = (decisions[:, c] > 0) != (y == c)
        means = [wrong[groups == g].mean() for g in range(15)]
        expected = kl_upper(np.mean(means), np.log(3 / 0.05) / 15)
        assert bound.details["by_class"][str(c)] == pytest.approx(expected, rel=1e-9)


def test_without_groups_the_series_are_independent(model, held_out):
    certificate = certify(model, *held_out)
    assert certificate.independent == "120 series"
    assert "Independent draws: 120 series." in str(certificate)


def test_groups_of_series_one_by_one_are_looser_than_clopper_pearson(model, held_out):
    X, y = held_out
    single = certify(model, X, y, groups=np.arange(120)).headline.value
    exact = certify(model, X, y).headline.value
    assert exact < single < exact + 0.03


def test_groups_need_held_out_series(model, training, held_out):
    X, y = training
    with pytest.raises(DataError, match="groups need held-out series: bounds from the training"):
        certify(model, X, y, groups=np.arange(90), sample="training")
    X, y = held_out
    with pytest.raises(DataError, match="inconsistent lengths: 120 series and 3 groups"):
        certify(model, X, y, groups=[1, 2, 3])


def test_groups_of_a_scan_come_from_the_scan(model, held_out):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y = held_out
    groups = np.arange(120) // 12
    frame = pd.concat(
        pd.DataFrame(x.T, columns=["u", "v", "w"]).assign(
            rec=i, t=range(x.shape[1]), kind=y[i], who=groups[i]
        )
        for i, x in enumerate(X)
    )
    scan = slts.scan_series(
        frame, id="rec", time="t", label="kind", groups="who", channels=["u", "v", "w"]
    )
    expected = certify(model, X, y, groups=groups).to_dict()
    assert certify(model, scan).to_dict() == expected
    with pytest.raises(DataError, match="groups must be None if X is a scan"):
        certify(model, scan, groups=groups)


def test_training_bounds_by_hand(model, training):
    """Everything from public functions: Z from aligned products, landmarks left out."""
    X, y = training
    certificate = certify(model, X, y, sample="training")
    batch, index = slts.as_series(X), model.landmark_indices_
    T = slts.aligned_products(batch, batch[index])
    sums = np.stack([T[:, y[index] == k].sum(axis=1) for k in range(3)], axis=1)
    rest = np.setdiff1d(np.arange(90), index)
    gamma, lam, delta = 0.1, 1.0, 0.05 / 3
    expected = {name: [] for name in ("norm", "norm, a priori", "stability", "the paper's theorem")}
    for c in range(3):
        M, Z = model.metrics_[c], one_vs_rest_features(sums, c, 20)
        labels = np.where(y == c, 1.0, -1.0)
        losses = np.maximum(0, 1 - labels * np.sum(M * Z, axis=(1, 2)) / gamma)
        norm, square = np.linalg.norm(M), np.mean(np.sum(Z[rest] ** 2, axis=(1, 2)))
        risk, given = losses[rest].mean(), (gamma, lam, delta)
        gap = model.reports_[2 * c].gap
        expected["norm"].append(bounds.norm_hinge_bound(risk, norm, square, 70, *given))
        expected["norm, a priori"].append(bounds.a_priori_norm_bound(risk, 70, *given))
        stability = bounds.stability_bound(risk, 90, *given, excluded=20, gap=gap)
        expected["stability"].append(stability)
        paper = bounds.paper_bound(losses.mean(), 90, 3, *given)
        expected["the paper's theorem"].append(paper)
    for name, values in expected.items():
        assert list(certificate[name].details["by_class"].values()) == pytest.approx(values)
        assert certificate[name].value == pytest.approx(max(values))
        assert certificate[name].vacuous == (max(values) >= 1)
        assert certificate[name].bounds_what == "hinge risk of M"
    assert certificate["norm"].details["n"] == 70


def test_pac_bayes_lines_by_hand(model, training):
    X, y = training
    certificate = certify(model, X, y, sample="training")
    batch, index = slts.as_series(X), model.landmark_indices_
    T = slts.aligned_products(batch, batch[index])
    rest = np.setdiff1d(np.arange(90), index)
    labels = np.where(y == 1, 1.0, -1.0)
    M, coef = model.metrics_[1], model.coef_[1]
    used = np.flatnonzero(coef)
    w = np.multiply.outer(coef[used], M)
    x = T[rest][:, used]
    scores = labels[rest] * np.tensordot(x, w, axes=3)
    np.testing.assert_allclose(scores, labels[rest] * model.decision_function(batch)[rest, 1])
    q = scores / (np.linalg.norm(w) * np.sqrt(np.sum(x**2, axis=(1, 2, 3))))
    extra = math.log(math.comb(20, len(used))) + math.log(20)
    expected = bounds.pac_bayes_bound(q, 0.05 / 3, extra=extra)
    found = certificate["PAC-Bayes, classifier"].details["by_class"]["1"]
    assert found == pytest.approx(expected)
    Z = np.tensordot(T[rest], np.where(y[index] == 1, 1, -1) / 20, axes=(1, 0))
    q = labels[rest] * np.sum(M * Z, axis=(1, 2))
    q /= np.linalg.norm(M) * np.sqrt(np.sum(Z**2, axis=(1, 2)))
    expected = bounds.pac_bayes_bound(q, 0.05 / 3)
    assert certificate["PAC-Bayes, metric"].details["by_class"]["1"] == pytest.approx(expected)


def test_a_fixed_similarity_has_only_the_separator_bound(training):
    bbs = slts.BBSClassifier(20, gamma=0.1, **FAST).fit(*training)
    certificate = certify(bbs, *training, sample="training")
    assert [bound.name for bound in certificate.bounds] == ["PAC-Bayes, separator"]


def test_candidates_of_a_search_share_delta(training):
    tuned = slts.SLTSClassifierCV(20, gammas=[0.1], lams=[1.0, 0.5], cv=2, random_state=0)
    tuned.fit(*training)
    alone = slts.SLTSClassifier(20, **{**FAST, "gamma": 0.1, "lam": tuned.best_params_["lam"]})
    alone.fit(*training)
    np.testing.assert_array_equal(alone.landmark_indices_, tuned.landmark_indices_)
    one = certify(tuned, *training, sample="training", delta=0.1)["norm"].value
    other = certify(alone, *training, sample="training", delta=0.05)["norm"].value
    assert one == pytest.approx(other, rel=1e-4)


def test_two_classes_have_one_problem():
    X, y = make_series(80, 3, n_classes=2)
    model = slts.SLTSClassifier(15, gamma=0.1, lam=1.0, **FAST).fit(X[:40], y[:40])
    certificate = certify(model, X[40:], y[40:])
    assert [bound.name for bound in certificate.bounds] == ["hold-out error"]
    errors = np.count_nonzero(model.predict(X[40:]) != y[40:])
    assert certificate.headline.details["errors"] == errors
    trained = certify(model, X[:40], y[:40], sample="training")
    assert list(trained["norm"].details["by_class"]) == ["1"]


def test_a_decision_of_zero_is_the_first_of_two_classes_and_no_class_of_several(model):
    zeros = [np.zeros((3, n)) for n in (5, 6)]
    assert not model.decision_function(zeros).any()
    bound = certify(model, zeros, [0, 1])["hold-out error, one-vs-rest"]
    assert bound.details["errors"] == [2, 2, 2]
    X, y = make_series(40, 3, n_classes=2)
    one = slts.SLTSClassifier(15, gamma=0.1, lam=1.0, **FAST).fit(X, y)
    assert not one.decision_function(zeros).any()
    assert certify(one, zeros, [0, 0]).headline.details["errors"] == 0
    assert certify(one, zeros, [1, 1]).headline.details["errors"] == 2


@pytest.mark.parametrize("change", [-1e-4, 1e-4])
@pytest.mark.parametrize("kind", [slts.SLTSClassifier, slts.BBSClassifier])
def test_the_objective_may_be_neither_above_nor_below_the_reported_one(kind, change, training):
    fitted = kind(20, gamma=0.1, **FAST).fit(*training)
    certify(fitted, *training, sample="training")
    fitted.reports_ = [replace(r, objective=r.objective + change) for r in fitted.reports_]
    with pytest.raises(slts.DataError, match="the objective of class 0 is"):
        certify(fitted, *training, sample="training")


@pytest.mark.parametrize(
    "estimator",
    [
        slts.OneNNClassifier(),
        slts.SimilaritySVC(),
        slts.LDMLTClassifier(triplets_per_series=1.0),
        DummyClassifier(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_any_classifier_gets_a_hold_out_bound(estimator, training, held_out):
    X, y = training
    table = np.zeros((120, 1))
    if isinstance(estimator, DummyClassifier):
        fitted, test = estimator.fit(table[:90], y), table
    else:
        fitted, test = estimator.fit(X, y), held_out[0]
    certificate = certify(fitted, test, held_out[1])
    assert [bound.name for bound in certificate.bounds] == ["hold-out error"]
    assert certificate.headline.vacuous == isinstance(estimator, DummyClassifier)
    if not isinstance(estimator, DummyClassifier):
        with pytest.raises(slts.DataError, match="series 2 of X is a copy of a training series"):
            certify(fitted, [*test[:2], X[7]], held_out[1][:3])
    with pytest.raises(slts.DataError, match="no bounds from its training sample"):
        certify(fitted, X, y, sample="training")


def test_training_landmarks_are_refused_in_hold_out(model, training, held_out):
    X, y = training
    index = model.landmark_indices_[4]
    mixed, labels = [*held_out[0][:5], X[index]], [*held_out[1][:5], y[index]]
    with pytest.raises(slts.DataError, match="series 5 of X is a copy of a training series"):
        certify(model, mixed, labels)


def test_training_series_are_recognised_in_copies_and_inside_searches(model, training):
    X, y = training
    with pytest.raises(slts.DataError, match="copy of a training series"):
        certify(model, [np.asarray(x, dtype=np.float32) for x in X], y)
    search = GridSearchCV(slts.SLTSClassifier(random_state=0), {"gamma": [1e-2]}, cv=2).fit(X, y)
    with pytest.raises(slts.DataError, match="copy of a training series"):
        certify(search, X, y)


@pytest.mark.parametrize(
    "disguise",
    [lambda x: 2.0 * x, lambda x: x + 1e-5 * np.sin(np.arange(x.size)).reshape(x.shape),
     lambda x: x[:, :-1], lambda x: 3.0 * x + 7.0],
    ids=["scaled", "noise", "cut", "shifted"],
)  # fmt: skip
def test_training_series_are_recognised_in_disguise(model, training, held_out, disguise):
    X, y = training
    rest = np.setdiff1d(np.arange(len(X)), model.landmark_indices_)
    with pytest.raises(slts.DataError, match=r"copy of a training series \(the first of [4-9]\d"):
        certify(model, [disguise(X[i]) for i in rest], np.asarray(y)[rest])
    # The same is done to held-out series without an error.
    certify(model, [disguise(x) for x in held_out[0]], held_out[1])


def test_only_series_that_were_compared_are_checked(model, training, held_out, tmp_path):
    X, y = training
    known = certify(model, *held_out).headline
    sentence = "no held-out series begins like one of 90 training series, apart"
    assert any(sentence in x for x in known.checked)
    assert not any("training series" in x for x in known.unchecked)
    slts.save(model, tmp_path / "m.slts", digests=False)
    bare = slts.load(tmp_path / "m.slts")
    assert bare.training_digests_ is None
    found = certify(bare, *held_out).headline
    n = len(model.landmarks_)
    assert any(f"one of {n} training series" in x for x in found.checked)
    assert any(f"only {n} training series were compared" in x for x in found.unchecked)
    with pytest.raises(slts.DataError, match="copy of a training series"):
        certify(bare, [2.0 * np.asarray(x) for x in X], y)


@pytest.mark.parametrize(("n_alike", "n_copies"), [(0, 3), (1, 3), (3, 0), (100, 0)])
def test_copies_are_more_than_training_series_look_alike(n_alike, n_copies):
    """Three of ten by chance: 1e-4 if one training series in 100 looks like another, else 3e-3."""
    seen = np.isin(np.arange(10), [2, 5, 6])
    found = Overlap(seen, np.arange(10), n_compared=100, n_alike=n_alike, complete=True)
    assert found.copies.tolist() == [2, 5, 6][:n_copies]
    none = Overlap(~seen & seen, np.arange(10), n_compared=100, n_alike=n_alike, complete=True)
    assert none.copies.size == 0


def test_draws_are_joined_over_copies_and_groups():
    digests = np.array([[1, 2], [3, 4], [2, 5], [6, 7], [5, 8]], dtype=np.uint64)
    known = np.array([7, 7, 9], dtype=np.uint64)
    found = Overlap.of(SimpleNamespace(training_digests_=known), digests)
    # The first, third and fifth series share digests, one with the next.
    assert found.draws.tolist() == [0, 1, 0, 2, 0]
    assert found.seen.tolist() == [False, False, False, True, False]
    assert (found.n_compared, found.n_alike, found.complete) == (3, 2, True)
    assert draws_of_groups(found.draws, np.array(list("abcbd"))).tolist() == [0, 1, 0, 1, 0]


def test_series_that_look_alike_by_nature_are_reported(held_out):
    """Steps from 0 to 1 at one of few places: independent series are often equal in shape."""
    rng = np.random.default_rng(0)

    def draw(n):
        at = rng.integers(2, 14, n)
        return [1.0 * (np.arange(30) >= a) + 1e-7 * rng.normal(size=30) for a in at], at > 7

    model = slts.OneNNClassifier().fit(*draw(100))
    found = certify(model, *draw(50))
    assert any(
        "50 held-out series look like training series" in x for x in found.headline.unchecked
    )
    assert found.headline.details["n_draws"] == 12


def test_copies_of_one_held_out_series_are_one_draw(model, held_out):
    X, y = held_out
    right = int(np.argmax(model.predict(X) == y))
    found = certify(model, [X[right] * (1 + k) for k in range(500)], [y[right]] * 500)
    assert found.headline.value == pytest.approx(0.95)
    assert found.independent == "1 of 500 series, the others are copies"
    assert "copies count once: 1 independent draw." in found.headline.sentence
    # Copies change nothing else, and they join groups.
    once = certify(model, X, y)
    twice = certify(model, [*X, X[0]], [*y, y[0]])
    assert twice.headline.value == once.headline.value
    groups = np.arange(len(X)) % 40
    apart = certify(model, X, y, groups=groups)
    joined = certify(model, [*X, X[0]], [*y, y[0]], groups=[*groups, 39])
    assert joined.independent == "39 of 40 groups (121 series), the others are copies"
    assert joined.headline.value > apart.headline.value


def test_copies_are_recognised_as_the_last_step_of_a_pipeline_sees_them(training, held_out):
    steps = slts.SeriesScaler(), "passthrough", slts.BBSClassifier(random_state=0)
    piped = make_pipeline(*steps).fit(*training)
    found = certify(piped, *held_out)
    own = certify(piped[-1], piped[0].transform(held_out[0]), held_out[1])
    assert found.headline == own.headline
    with pytest.raises(slts.DataError, match="is a copy of a training series"):
        certify(piped, *training)


def test_copies_are_not_recognised_by_classifiers_of_others(training, held_out):
    flat = FunctionTransformer(lambda X: [[x.mean(), x.std()] for x in X])
    piped = make_pipeline(flat, DecisionTreeClassifier(random_state=0)).fit(*training)
    found = certify(piped, *held_out)
    assert any("no held-out series was used in training" in x for x in found.headline.unchecked)


@pytest.fixture(scope="module")
def write_scan(tmp_path_factory):
    """Write series to a Parquet file with small row groups, and scan it."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(X, y, label="label"):
        lengths = [x.shape[1] for x in X]
        columns = {"id": np.repeat(np.arange(len(X)), lengths), "label": np.repeat(y, lengths)}
        columns |= {f"c{k}": np.concatenate([x[k] for x in X]) for k in range(3)}
        path = tmp_path_factory.mktemp("scan") / "x.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=400)
        return slts.scan_series(path, id="id", label=label, channels=["c0", "c1", "c2"])

    return write


def test_without_digests_the_rows_that_a_model_keeps_are_compared(training, held_out):
    model = slts.OneNNClassifier(scale="standard").fit(*training)
    model.training_digests_ = None
    X, y = held_out
    (bound,) = certify(model, X, y).bounds
    assert sum("only 90 training series were compared" in text for text in bound.unchecked) == 1
    with pytest.raises(DataError, match="series 120 of X is a copy of a training series:"):
        certify(model, [*X, training[0][7]], np.append(y, training[1][7]))


@pytest.mark.usefixtures("tables_in_parts")
@pytest.mark.parametrize(
    "estimator",
    [slts.SLTSClassifier(20, gamma=0.1, **FAST), slts.OneNNClassifier()],
    ids=lambda e: type(e).__name__,
)
def test_a_scan_is_certified_like_series_in_memory(estimator, training, held_out, write_scan):
    X, y = held_out
    model = estimator.fit(*training)
    assert certify(model, write_scan(X, y)) == certify(model, X, y)
    position = model.landmark_indices_[4] if hasattr(model, "landmarks_") else 7
    mixed = [*X[:100], training[0][position], *X[100:]]
    with pytest.raises(slts.DataError, match="series 100 is a copy of a training series:"):
        certify(model, write_scan(mixed, np.insert(y, 100, training[1][position])))


def test_labels_of_a_scan_come_from_the_scan(model, held_out, write_scan):
    X, y = held_out
    scan = write_scan(X, y)
    for labels in (y, "label"):
        with pytest.raises(slts.DataError, match="y must be None if X is a scan"):
            certify(model, scan, labels)
        with pytest.raises(slts.DataError, match="y must be None if X is a scan"):
            slts.prediction_sets(model, scan, labels)
    with pytest.raises(slts.DataError, match="in memory"):
        certify(model, scan, sample="training")
    with pytest.raises(slts.DataError, match=r"not trained on: \[7\]"):
        certify(model, write_scan(X, np.where(y == 0, 7, y)))


def test_unknown_labels_are_refused(model, held_out):
    X, y = held_out
    with pytest.raises(slts.DataError, match=r"not trained on: \[7\]"):
        certify(model, X, np.where(y == 0, 7, y))


def test_parameters_changed_after_the_fit_change_no_certificate(training):
    X, y = training
    model = slts.SLTSClassifier(20, gamma=0.05, **FAST).fit(X, y)
    before = certify(model, X, y, sample="training")
    model.set_params(
        gamma=1.0,
        lam=100.0,
        regularizer="mahalanobis",
        landmarks="kmedoids",
        class_weight="balanced",
    )
    assert certify(model, X, y, sample="training") == before
    chosen = slts.SLTSClassifier(20, gamma=0.05, landmarks="kmedoids", **FAST).fit(X, y)
    with pytest.raises(slts.DataError, match="landmarks='kmedoids' were chosen"):
        certify(chosen.set_params(landmarks="random"), X, y, sample="training")


def test_class_weights_are_not_equal_weights_on_a_balanced_sample(training):
    X, y = training
    balanced = np.sort(np.concatenate([np.flatnonzero(y == c)[:20] for c in np.unique(y)]))
    X, y = [X[i] for i in balanced], y[balanced]
    model = slts.SLTSClassifier(20, gamma=0.05, class_weight="balanced", **FAST).fit(X, y)
    with pytest.raises(slts.DataError, match="fitted with class_weight"):
        certify(model, X, y, sample="training")


@pytest.mark.parametrize("label", [None, "b", 1.5, float("nan")])
def test_labels_of_mixed_type_are_refused_by_series(model, held_out, label):
    X, y = held_out
    mixed = y.tolist()
    mixed[3] = label
    with pytest.raises(slts.DataError, match=r"not trained on: .*, first for series 3"):
        certify(model, X, mixed)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, math.nan, "0.05", True])
def test_delta_must_be_a_probability(model, held_out, delta):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        certify(model, *held_out, delta=delta)


@pytest.mark.parametrize("n_models", [0, -1, 1.5, True, None, "2", 10**101, 10**400])
def test_the_number_of_models_must_be_positive(model, held_out, n_models):
    with pytest.raises(ValueError, match="n_models"):
        certify(model, *held_out, n_models=n_models)


def test_invalid_arguments_raise_an_error(model, held_out):
    X, y = held_out
    with pytest.raises(ValueError, match="'sample'"):
        certify(model, X, y, sample="test")
    with pytest.raises(ValueError, match="'pool'"):
        certify(model, X, y, pool=[1])
    with pytest.raises(slts.DataError, match="inconsistent lengths"):
        certify(model, X, y[:-1])
    with pytest.raises(slts.DataError, match="empty"):
        certify(model, X[:0], y[:0])
    with pytest.raises(slts.DataError, match="y is None"):
        certify(model, X)


@pytest.mark.parametrize("method", ["kmedoids", "dselect"])
def test_landmarks_chosen_on_all_training_series_are_refused(training, method):
    model = slts.BBSClassifier(6, landmarks=method, **FAST).fit(*training)
    with pytest.raises(slts.DataError, match="looking at all training series"):
        certify(model, *training, sample="training")


def test_landmarks_from_a_pool_leave_the_pool_out(training):
    X, y = training
    pool = np.arange(30)
    chosen = slts.select_landmarks(X[:30], 9, method="kmedoids", random_state=0)
    model = slts.SLTSClassifier(landmarks=chosen, gamma=0.1, lam=1.0, **FAST).fit(X, y)
    certificate = certify(model, X, y, sample="training", pool=pool)
    assert certificate.n == 60
    assert any("pool" in item for item in certificate.headline.unchecked)
    with pytest.raises(slts.DataError, match="pass in pool="):
        certify(model, X, y, sample="training")
    with pytest.raises(slts.DataError, match="including all landmarks"):
        certify(model, X, y, sample="training", pool=[0])
    with pytest.raises(slts.DataError, match="at least 8"):
        certify(model, X, y, sample="training", pool=np.arange(85))


def test_series_that_are_not_the_training_sample_are_refused(model, training, held_out):
    X, y = training
    with pytest.raises(slts.DataError, match="not the training sample"):
        certify(model, *held_out, sample="training")
    wrong = np.setdiff1d(np.arange(90), model.landmark_indices_)[0]
    changed = [x if i != wrong else x[:, ::-1] * 3 + 1 for i, x in enumerate(X)]
    with pytest.raises(slts.DataError, match="objective"):
        certify(model, changed, y, sample="training")


def test_weighted_fits_are_refused(training):
    X, y = training
    model = slts.SLTSClassifier(20, gamma=0.1, **FAST).fit(X, y, np.where(y == 0, 5.0, 1.0))
    with pytest.raises(slts.DataError, match="other weights"):
        certify(model, X, y, sample="training")


def test_rows_that_training_scaled_or_left_unscaled_are_refused(training):
    X, y = training
    scaled = slts.SLTSClassifier(20, homogeneous=True, **FAST).fit(X, y)
    with pytest.raises(slts.DataError, match="constant channel"):
        certify(scaled, X, y, sample="training")
    centred = slts.SLTSClassifier(20, scale="standard", **FAST).fit(X, y)
    with pytest.raises(slts.DataError, match=r"scale of the channels .* fit_certified"):
        certify(centred, X, y, sample="training")
    free = slts.SLTSClassifier(20, normalize=False, **FAST).fit(X, y)
    with pytest.raises(slts.DataError, match="normalize=False"):
        certify(free, X, y, sample="training")


@pytest.mark.parametrize("regularizer", ["nuclear", "l1", "mahalanobis"])
def test_bounds_are_those_that_the_penalty_allows(training, held_out, regularizer):
    model = slts.SLTSClassifier(20, gamma=0.1, lam=0.1, regularizer=regularizer, **FAST)
    model.fit(*training)
    # The objective that is compared with the one of the fit has this penalty.
    found = certify(model, *training, sample="training")
    names = {bound.name for bound in found.bounds}
    assert {"PAC-Bayes, classifier", "PAC-Bayes, metric"} <= names
    # The others rest on the strong convexity of ||M||_F^2.
    assert ("stability" in names) == ("norm" in names) == (regularizer == "mahalanobis")
    assert certify(model, *held_out).headline.value < 0.5


def test_certificates_can_be_read_printed_and_stored(model, training):
    certificate = certify(model, *training, sample="training")
    text = str(certificate)
    for bound in certificate.bounds:
        assert bound.name in text
        assert bound.sentence[:20] in certificate._repr_html_()
        assert bound.sentence.endswith(".")
        assert "{" not in bound.sentence
        assert bound.checked
        assert bound.unchecked
    assert max(map(len, text.splitlines())) <= 100
    assert "false in general" in text
    stored = json.loads(json.dumps(certificate.to_dict()))
    assert stored["bounds"][0]["value"] == certificate.headline.value
    assert stored["headline"] == "PAC-Bayes, classifier"
    with pytest.raises(KeyError, match="there is no bound"):
        certificate["luck"]


def test_tables_have_class_means_only_where_there_are_some(model, held_out):
    found = certify(model, *held_out)
    headline = replace(found, bounds=found.bounds[:1])
    for certificate, shown in ((found, True), (headline, False)):
        assert ("class mean" in str(certificate)) == shown
        assert ("<th>class mean</th>" in certificate._repr_html_()) == shown


def test_the_remark_on_the_papers_lemma_compares_its_value_with_the_largest_loss(model, training):
    bound = certify(model, *training, sample="training")["the paper's theorem"]
    remark = bound.details["remark"]
    # The lemma says sqrt(2 d) / (gamma sqrt(lam)).
    assert "its value, 24.5, still exceeds 8.07, the largest possible loss" in remark
    assert "These landmarks are training series" in remark
    small = statements._paper_remark(3, 1.0, 10.0, landmarks_from_sample=False)
    assert "its value, 0.775, is too small here: losses up to 1.05 are possible" in small
    assert "These landmarks" not in small


def test_vacuous_bounds_say_so(model, training):
    certificate = certify(model, *training, sample="training")
    paper = certificate["the paper's theorem"]
    assert paper.vacuous
    assert "is vacuous" in paper.sentence
    assert "vacuous" in str(certificate)
