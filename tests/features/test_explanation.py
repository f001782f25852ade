"""Contributions are exact, for all kinds of models and in every sum."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import slts
from slts.features.explanation import explain
from slts.features.summary import (
    class_metrics,
    landmark_effects,
    snippet_strength,
    snippets_to_show,
    summarize,
)
from tests.data import clusters, with_gaps

# Three phases, components instead of channels, and averages of neighbouring steps.
FEW = {"n_snippets": 60, "n_phases": 3, "n_components": 7, "max_length": 7}
MODELS = {
    "slts": lambda **o: slts.SLTSClassifier(calibration_cv=None, **o),
    "bbs": lambda **o: slts.BBSClassifier(calibration_cv=None, **o),
    "svm": lambda **o: slts.SimilaritySVC(calibration_cv=None, fit_intercept=True, **o),
    "local": lambda homogeneous, **o: slts.LocalSLTSClassifier(**FEW, **o),
}


@settings(max_examples=10)
@given(
    seed=st.integers(0, 10_000),
    n_classes=st.integers(2, 3),
    channels=st.integers(1, 4),
    objective=st.sampled_from(["affinity", "cost"]),
    homogeneous=st.sampled_from(["auto", True, False]),
    band=st.sampled_from([None, 3]),
    gaps=st.sampled_from([0.0, 0.3]),
)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:The metric of class|Every one-vs-rest:UserWarning")
def test_offset_and_contributions_sum_to_the_decision(
    name, seed, n_classes, channels, objective, homogeneous, band, gaps
):
    X, y = clusters(24, n_classes=n_classes, channels=channels, lengths=(1, 12), seed=seed)
    X = with_gaps(X, gaps, seed)
    options = {"objective": objective, "homogeneous": homogeneous, "band": band}
    model = MODELS[name](random_state=0, **options).fit(X, y)
    for x in X[:3]:
        one = explain(model, x)
        decision = np.atleast_1d(model.decision_function([x])[0])
        np.testing.assert_allclose(one.decision, decision, atol=1e-9)
        assert one.predicted == model.predict([x])[0]
        assert one.contributions.shape == (len(decision), x.shape[1], channels)
        assert (one.contributions[:, np.isnan(x.T)] == 0.0).all()
        for start, parts in (
            (one.offset, one.contributions.reshape(len(decision), -1)),
            (one.offset, one.by_step),
            (one.offset, one.by_channel),
            (one.intercept, np.hstack([one.by_landmark, one.by_snippet])),
            (one.intercept, one.by_map),
        ):
            np.testing.assert_allclose(start + parts.sum(axis=1), decision, atol=1e-9)
        if name != "local":
            np.testing.assert_array_equal(one.intercept, model.intercept_)


@pytest.fixture(scope="module")
def problem():
    return clusters(45, n_classes=3, channels=4, noise=1.0, seed=3)


@pytest.fixture(scope="module")
def fitted(problem):
    return slts.SLTSClassifier(random_state=0).fit(*problem)


@pytest.fixture(scope="module")
def local(problem):
    """A model whose banks of landmarks have different sizes."""
    return slts.LocalSLTSClassifier(7, **FEW, random_state=0).fit(*problem)


def test_contributions_are_sums_over_landmarks_and_snippets(problem, fitted, local):
    for model in (fitted, local):
        one = explain(model, problem[0][0])
        parts = [one.of_landmark(j) for j in range(len(one.landmark_indices))]
        parts += [one.of_snippet(k) for k in range(one.by_snippet.shape[1])]
        np.testing.assert_allclose(sum(parts), one.contributions, atol=1e-10)
    for x in problem[0][:3]:
        one, parts = explain(local, x), local.transform([x]).reshape(3, -1)
        np.testing.assert_allclose(one.by_landmark, parts[:, :7], atol=1e-12)
        usual = parts[:, 7:] - one.by_snippet
        np.testing.assert_allclose(one.intercept, local.intercept_ + usual.sum(axis=1), atol=1e-10)
    # Without a constant channel, the part of a landmark is the sum of its contributions.
    one = explain(fitted, problem[0][0])
    sums = [one.of_landmark(j).sum(axis=(1, 2)) for j in range(len(one.landmark_indices))]
    np.testing.assert_allclose(one.by_landmark.T, sums, atol=1e-12)
    one = explain(local, problem[0][0])
    by_map = [one.of_landmark(1, k) for k in range(len(one.map_names) - 1)]
    np.testing.assert_allclose(sum(by_map), one.of_landmark(1), atol=1e-12)


def parts(n):
    return [(first, end) for first in range(n) for end in range(first + 1, n + 1)]


@settings(max_examples=40)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9), st.sampled_from(["a", "b"]))
def test_stretches_have_the_largest_sums_above_the_mean_one_beside_the_other(steps, label):
    # Two channels, of which one has half as much of the opposite sign.
    steps = np.array(steps, dtype=float)
    one = stub_explanation(np.stack([2 * steps, -steps], axis=1))
    sign = -1 if label == "a" else 1
    score = sign * steps - max((sign * steps).mean(), 0)
    free, total = np.ones(len(steps), dtype=bool), (sign * steps).clip(min=0).sum()
    for stretch in one.stretches(label, count=len(steps)):
        first, end = stretch.first, stretch.last + 1
        possible = {part: score[slice(*part)].sum() for part in parts(len(steps))}
        best = max(value for part, value in possible.items() if free[slice(*part)].all())
        assert possible[first, end] == pytest.approx(best)
        assert free[first:end].all()
        assert stretch.contribution == pytest.approx(sign * steps[first:end].sum())
        assert stretch.share == pytest.approx(stretch.contribution / total)
        assert stretch.channel == (0 if stretch.contribution > 0 else 1)
        free[first:end] = False
    rest = [score[slice(*part)].sum() for part in parts(len(steps)) if free[slice(*part)].all()]
    assert max(rest, default=0) <= 1e-12


def stub_explanation(terms):
    """An explanation of two classes, a and b, with contributions (steps, channels)."""
    X, y = clusters(8, channels=2)
    model = slts.BBSClassifier(4, calibration_cv=None).fit(X, np.array(["a", "b"])[y])
    return replace(explain(model, X[0]), contributions=terms[np.newaxis])


def test_the_first_stretch_has_the_planted_motif():
    rng = np.random.default_rng(0)
    X, y, starts = rng.normal(size=(100, 3, 100)), np.arange(100) % 2, rng.integers(0, 80, 100)
    for x, label, start in zip(X, y, starts, strict=True):
        x[1, start : start + 20] += 2 * np.sin(np.arange(20) * 2 * np.pi / 20 * (1 + label))
    model = slts.LocalSLTSClassifier(n_snippets=300, random_state=0).fit(X[:70], y[:70])
    found = []
    for x, start in zip(X[70:], starts[70:], strict=True):
        stretch = explain(model, x).stretches(count=1)[0]
        covered = set(range(stretch.first, stretch.last + 1))
        inside = len(covered & set(range(start, start + 20))) / 20
        found.append([inside, len(covered), stretch.channel == 1])
    inside, length, in_channel = np.mean(found, axis=0)
    assert inside > 0.85
    assert length < 50
    assert in_channel > 0.8


def test_alignments_and_nearest_landmarks_are_those_of_the_similarity(problem, fitted):
    X, _ = problem
    one = explain(fitted, X[0])
    K = slts.similarity([X[0]], [X[j] for j in one.landmark_indices])[0]
    np.testing.assert_allclose(one.similarities, K)
    order = np.argsort(-K, kind="stable").tolist()
    assert one.nearest_landmarks(2).tolist() == order[:2]
    assert one.nearest_landmarks().tolist() == order[:5]
    assert one.landmark_names == tuple(fitted.series_name(j) for j in one.landmark_indices)
    for j, alignment in zip(one.landmark_indices, one.alignments, strict=True):
        np.testing.assert_array_equal(alignment.path, slts.align(X[0], X[j]).path)


def test_channels_are_taken_by_their_names(rng):
    values, offsets = rng.normal(size=(240, 2)), np.arange(21) * 12
    y = np.tile(["a", "b"], 10)
    values += np.repeat(np.where(y == "a", 3.0, 0.0), 12)[:, np.newaxis] * [1.0, 0.0]
    X = slts.SeriesBatch(values, offsets, ["p", "q"])
    swapped = slts.SeriesBatch(values[:, ::-1], offsets, ["q", "p"])
    for kind in (slts.LocalSLTSClassifier, slts.SLTSClassifier):
        model = kind(random_state=0).fit(X, y)
        one, other = explain(model, X[:1]), explain(model, swapped[:1])
        assert one.channel_names == other.channel_names == ("p", "q")
        np.testing.assert_array_equal(one.contributions, other.contributions)
        importance = [summarize(model, batch).channel_importance for batch in (X, swapped)]
        np.testing.assert_array_equal(*importance)


def test_other_models_raise_an_error(problem):
    X, y = problem
    model = slts.BBSClassifier(random_state=0)
    search = GridSearchCV(model, {"gamma": [1e-2]}, cv=2).fit(X, y)
    for wrong, message in (
        (slts.OneNNClassifier().fit(X, y), "OneNNClassifier cannot be explained"),
        (search, "best_estimator_"),
        (make_pipeline(model), r"pipeline\[-1\]"),
        (model, "not fitted"),
    ):
        for function in (explain, lambda model, _: summarize(model)):
            with pytest.raises((TypeError, ValueError), match=message):
                function(wrong, X[0])


def test_a_list_of_one_series_is_explained_and_several_raise_an_error(problem, fitted):
    X, _ = problem
    one = explain(fitted, X[0])
    for same in ([X[0]], slts.as_series(X[:1]), X[0][np.newaxis]):
        np.testing.assert_array_equal(explain(fitted, same).contributions, one.contributions)
    frame = pd.DataFrame(X[0].T, columns=[f"c{k}" for k in range(len(X[0]))]).assign(id="a")
    for table in (frame, pl.from_pandas(frame)):
        assert (fitted.predict(table) == one.predicted).all()
        np.testing.assert_array_equal(explain(fitted, table).contributions, one.contributions)
    for several in (slts.as_series(X[:2]), X[:2], np.zeros((2, *X[0].shape))):
        with pytest.raises(ValueError, match=r"'x' parameter of explain.* 2 series"):
            explain(fitted, several)
    frame = pd.DataFrame({"id": 1, "t": [1, 2], "u": [0.5, 0.1], "v": [1.0, 3.0]})
    for wrong in (slts.scan_series(frame, id="id", time="t"), "series.csv"):
        with pytest.raises(slts.DataError, match="scan"):
            explain(fitted, wrong)


def test_without_landmarks_nothing_contributes(rng):
    X = [rng.normal(size=(2, 9)) for _ in range(12)]
    model = slts.SLTSClassifier(
        gamma=1e300, regularizer="nuclear", calibration_cv=None, random_state=0
    )
    with pytest.warns(UserWarning, match="collapsed"):
        model.fit(X, np.arange(12) % 2)
    one = explain(model, X[0])
    assert one.by_landmark.shape == (1, 0)
    # A decision of zero is for the first class.
    assert one.decision.tolist() == [0.0]
    assert one.predicted == model.predict(X[:1])[0] == 0
    assert not one.contributions.any()


def test_two_classes_share_one_decision_value_with_opposite_signs():
    X, y = clusters(30, noise=1.0)
    names = np.array(["no", "yes"])[y]
    model = slts.SLTSClassifier(random_state=0, calibration_cv=None).fit(X, names)
    explained = [explain(model, x) for x in X[:6]]
    assert {one.predicted for one in explained} == {"no", "yes"}
    for one in explained:
        assert one.labels.tolist() == ["no", "yes"]
        assert (one.for_class("yes"), one.for_class("no")) == ((0, 1.0), (0, -1.0))
        position, sign = one.for_class()
        assert sign * one.decision[position] >= 0
    with pytest.raises(ValueError, match=r"'label' parameter .*'perhaps'"):
        explained[0].for_class("perhaps")


# ---- summaries


@pytest.fixture(scope="module")
def one_channel_decides():
    """Series whose classes differ in channel 1 only, and models of them."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    shift = np.array([[0.0, 0.0, 0.0], [-3.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    X = [rng.normal(size=(3, 10)) + shift[:, [c]] for c in y]
    model = slts.SLTSClassifier(random_state=0, calibration_cv=None)
    local = slts.LocalSLTSClassifier(9, n_snippets=80, n_phases=2, random_state=0)
    return X, model.fit(X, y), local.fit(X, y)


def test_importance_is_the_mean_absolute_contribution(one_channel_decides):
    X, model, local = one_channel_decides
    for each in (model, local):
        summary = summarize(each, X[:5])
        explained = [explain(each, x) for x in X[:5]]
        channels = np.mean([np.abs(one.by_channel) for one in explained], axis=0)
        np.testing.assert_allclose(summary.channel_importance, channels, atol=1e-12)
        maps = np.mean([np.abs(one.by_map) for one in explained], axis=0)
        np.testing.assert_allclose(summary.map_importance, maps, atol=1e-12)
        assert (summarize(each, X).channel_importance[[0, 2]].argmax(axis=1) == 1).all()
        assert summary.n_numbers == each.n_numbers_
    np.testing.assert_array_equal(class_metrics(model, 2), model.model_.metrics()[2, 0])
    bank = local.bank_names_.index("2")
    np.testing.assert_array_equal(class_metrics(local, 2, 0), local.model_.metrics(0)[2, bank])
    summary = summarize(model, X[:5])
    weights = model.model_.aligned[0].weights
    np.testing.assert_array_equal(summary.n_landmarks_used, np.count_nonzero(weights, axis=1))
    np.testing.assert_array_equal(summary.landmark_weights, weights[:, weights.any(axis=0)])


def test_a_snippet_is_important_if_its_contribution_differs_between_series(one_channel_decides):
    X, model, local = one_channel_decides
    assert summarize(model).snippet_importance.shape == (3, 0)
    for chosen, series in ((X[:7], X[:7]), (None, local.landmarks_)):
        summary = summarize(local, chosen)
        parts = np.array([explain(local, x).by_snippet for x in series])
        spread = np.abs(parts - parts.mean(axis=0)).mean(axis=0)
        np.testing.assert_allclose(summary.snippet_importance, spread, atol=1e-12)
        signed = summary.snippet_effect != 0
        assert signed.mean() > 0.8
        np.testing.assert_allclose(np.abs(summary.snippet_effect)[signed], spread[signed])
    # The channel that decides is in the strongest snippets, but not in all.
    seen = np.array([1 in local.snippets_.channels_of(k) for k in range(80)])
    strongest = np.argsort(-summary.snippet_importance[[0, 2]], axis=1)[:, :3]
    assert seen[strongest].all() > seen.all()


def test_a_snippet_counts_for_a_class_if_it_adds_more_where_it_occurs(one_channel_decides):
    X, _, local = one_channel_decides
    *coefs, coef = local.model_.coefs
    # Only close occurrences count: for the first class, against the others.
    coef = np.zeros_like(coef)
    coef[0, :, :2], coef[1:, :, :2] = 1.0, -2.0
    strength, effect = snippet_strength(
        replace(local.model_, coefs=(*coefs, coef)), slts.as_series(X[:7])
    )
    varies = strength > 1e-12
    assert varies.mean() > 0.8
    expected = np.where(varies, np.array([[1.0], [-1.0], [-1.0]]), 0.0)
    np.testing.assert_array_equal(np.sign(effect) * varies, expected)


def test_snippets_are_shown_in_the_series_where_they_add_most(one_channel_decides):
    X, _, local = one_channel_decides
    weights = summarize(local).snippet_effect
    parts = np.array([explain(local, x).by_snippet for x in X[:7]])
    shown = snippets_to_show(local, slts.as_series(X[:7]), 4)
    for decision, sides in enumerate(shown):
        for sign, side in zip((1, -1), sides, strict=True):
            own = sign * weights[decision]
            expected = [k for k in np.argsort(-own, kind="stable")[:4] if own[k] > 0]
            assert [one.snippet for one in side] == expected
            for one in side:
                assert one.weight == pytest.approx(weights[decision, one.snippet])
                assert one.example == np.argmax(sign * parts[:, decision, one.snippet])
                assert one.adds == pytest.approx(parts[one.example, decision, one.snippet])
    one = explain(local, X[0])
    for label, row in ((None, local.predict(X[:1])[0]), (2, 2)):
        strongest = np.argsort(-np.abs(one.by_snippet[row]), kind="stable")[:4]
        np.testing.assert_array_equal(one.strongest_snippets(4, label), strongest)


def test_a_landmark_is_strong_if_its_contribution_differs_between_series(one_channel_decides):
    X, model, local = one_channel_decides
    parts = np.array([explain(local, x).by_landmark for x in X[:7]])
    effects, weighted = landmark_effects(local, local.transform(X[:7]))
    np.testing.assert_allclose(effects, np.abs(parts - parts.mean(axis=0)).mean(axis=0), atol=1e-9)
    assert not weighted
    effects, weighted = landmark_effects(model)
    np.testing.assert_array_equal(effects, summarize(model).landmark_weights)
    assert weighted


# ---- what contributions mean


PLANTED, STEPS, REACH = 2, 20, 5


def planted(n, seed):
    """Noise in five channels; class 1 has a short wave at a random place of one of them."""
    rng = np.random.default_rng(seed)
    y, X, places = np.arange(n) % 2, [], []
    for c in y:
        length = int(rng.integers(60, 120))
        x, at = 0.5 * rng.normal(size=(5, length)), int(rng.integers(0, length - STEPS))
        x[PLANTED, at : at + STEPS] += 4.0 * c * np.sin(np.linspace(0.0, 3.0 * np.pi, STEPS))
        X.append(x)
        places.append(slice(max(0, at - REACH), at + STEPS + REACH))
    return X, y, places


def test_a_planted_motif_has_most_of_the_positive_contributions():
    X, y, _ = planted(200, seed=0)
    model = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    X_test, y_test, places = planted(40, seed=1)
    assert model.score(X_test, y_test) >= 0.95
    shares = []
    for x, place in zip(X_test[1::2], places[1::2], strict=True):
        positive = explain(model, x).contributions[0].clip(min=0.0)
        parts = positive[place].sum(), positive[:, PLANTED].sum(), positive[place, PLANTED].sum()
        shares.append(np.divide(parts, positive.sum()))
    steps, channel, both = np.mean(shares, axis=0)
    assert steps > 0.65
    assert channel > 0.6
    assert both > 0.5


# ---- where a motif is


def with_motif(rng, second):
    """Noise in five channels, and 20 steps of one go up and down, or down and up."""
    n = int(rng.integers(80, 121))
    noise = np.lib.stride_tricks.sliding_window_view(rng.normal(size=(5, n + 4)), 5, axis=1)
    x, at = 0.7 * noise.sum(axis=2) / np.sqrt(5.0), int(rng.integers(0, n - 20))
    x[2, at : at + 20] += (-2.5 if second else 2.5) * np.sin(np.pi * (np.arange(20) + 0.5) / 10)
    return x, at


def explained_motifs(seed, gaps=0.0):
    """Explain 100 new series, and the same without their gaps: (series, place, contributions)."""
    rng, y = np.random.default_rng(seed), np.arange(500) % 2
    made = [with_motif(rng, bool(c)) for c in y]
    X = [np.where(rng.random(x.shape) < gaps, np.nan, x) for x, _ in made]
    model = slts.LocalSLTSClassifier(random_state=0).fit(X[:400], y[:400])
    right = 400 + np.flatnonzero(model.predict(X[400:]) == y[400:])
    assert len(right) > 85
    for k in right:
        sign = 1.0 if y[k] else -1.0
        terms = [sign * explain(model, x).contributions[0].T for x in (X[k], made[k][0])]
        yield X[k], made[k][1], *terms


@pytest.mark.slow
def test_what_supports_a_class_lies_in_the_motif():
    """Steps beyond the ends of a series give nothing to the first and last one."""
    found = [
        (at <= terms.sum(axis=0).argmax() < at + 20,
         terms.sum(axis=0).argmax() in (0, x.shape[1] - 1),
         terms.sum(axis=1).argmax() == 2)
        for seed in range(6) for x, at, terms, _ in explained_motifs(seed)
    ]  # fmt: skip
    inside, at_an_end, in_channel = np.mean(found, axis=0)
    assert inside >= 0.85
    assert at_an_end <= 0.04
    assert in_channel >= 0.95


@pytest.mark.slow
def test_gaps_give_nothing_to_the_steps_beside_them():
    """The largest contribution is beside a gap as often as if the gaps only hid some steps."""
    found = []
    for seed in range(2):
        for x, _, *terms in explained_motifs(seed, gaps=0.1):
            missing = np.isnan(x[2])
            beside = np.convolve(missing, np.ones(3), mode="same") > 0
            found.append([beside[np.where(missing, -np.inf, t[2]).argmax()] for t in terms])
    with_gaps, complete = np.mean(found, axis=0)
    assert with_gaps <= complete + 0.06
