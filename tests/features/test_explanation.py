"""Contributions are exact, for all kinds of models and in every sum."""

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV
from slts.explanation import (
    even_choice,
    explain,
    landmark_effects,
    snippet_strength,
    snippets_to_show,
    summarize,
)
from slts.models.snippets import SnippetForm

import slts

FEW = {"n_snippets": 60, "n_phases": 3, "n_components": 7, "max_length": 7}
MODELS = {
    "slts": lambda **o: slts.SLTSClassifier(calibration_cv=None, **o),
    "bbs": lambda **o: slts.BBSClassifier(calibration_cv=None, **o),
    "svm": lambda **o: slts.SimilaritySVC(calibration_cv=None, fit_intercept=True, **o),
    "local": lambda homogeneous, **o: slts.LocalSLTSClassifier(**FEW, **o),
}


def problem(seed, n_classes, channels, n=24):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    means = 2 * rng.normal(size=(n_classes, channels, 1))
    return [rng.normal(size=(channels, rng.integers(3, 12))) + means[c] for c in y], y


@settings(max_examples=10)
@given(
    seed=st.integers(0, 10_000),
    n_classes=st.integers(2, 3),
    channels=st.integers(1, 4),
    objective=st.sampled_from(["affinity", "cost"]),
    homogeneous=st.sampled_from(["auto", True, False]),
    band=st.sampled_from([None, 3]),
    missing=st.sampled_from([0.0, 0.3]),
)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:The metric of class|Every one-vs-rest:UserWarning")
def test_offset_and_contributions_sum_to_the_decision(
    name, seed, n_classes, channels, objective, homogeneous, band, missing
):
    X, y = problem(seed, n_classes, channels)
    for x in X:
        gaps = np.random.default_rng(seed).random(x.shape) < missing
        gaps[0, -1] = False
        x[gaps] = np.nan
    options = {"objective": objective, "homogeneous": homogeneous, "band": band}
    model = MODELS[name](random_state=0, **options).fit(X, y)
    for x in X[:3]:
        found = explain(model, x)
        decision = np.atleast_1d(model.decision_function([x])[0])
        np.testing.assert_allclose(found.decision, decision, atol=1e-9)
        total = found.offset + found.contributions.sum(axis=(1, 2))
        np.testing.assert_allclose(total, decision, atol=1e-9)
        assert found.contributions.shape == (len(decision), x.shape[1], channels)
        assert (found.contributions[:, np.isnan(x.T)] == 0.0).all()
        for parts in (np.hstack([found.by_landmark, found.by_snippet]), found.by_comparison):
            total = found.intercept + parts.sum(axis=1)
            np.testing.assert_allclose(total, decision, atol=1e-9)
        if name != "local":
            np.testing.assert_array_equal(found.intercept, model.linear_forms()[0].intercept)


@pytest.fixture(scope="module")
def fitted():
    X, y = problem(3, 3, 4, n=45)
    return slts.SLTSClassifier(random_state=0).fit(X, y), X, y


def test_steps_channels_and_landmarks_are_sums_of_the_same_terms(fitted):
    model, X, _ = fitted
    found = explain(model, X[0])
    np.testing.assert_allclose(found.by_step.sum(axis=1) + found.offset, found.decision)
    np.testing.assert_allclose(found.by_channel.sum(axis=1) + found.offset, found.decision)
    parts = [found.of_landmark(j) for j in range(len(found.landmark_indices))]
    np.testing.assert_allclose(sum(parts), found.contributions, atol=1e-12)
    # Without a constant channel, the part of a landmark is the sum of its contributions.
    sums = [part.sum(axis=(1, 2)) for part in parts]
    np.testing.assert_allclose(found.by_landmark.T, sums, atol=1e-12)


def test_parts_of_landmarks_and_snippets_are_those_of_transform():
    """Groups of landmarks have different sizes."""
    X, y = problem(5, 3, 2, n=40)
    model = slts.LocalSLTSClassifier(7, **FEW, landmarks=[0, 1, 2, 3, 5, 6, 9], random_state=0)
    model.fit(X, y)
    assert len(set(np.bincount(model.groups_))) > 1
    for x in X[:3]:
        found = explain(model, x)
        parts = model.transform([x]).reshape(3, -1)
        np.testing.assert_allclose(found.by_landmark, parts[:, :7], atol=1e-12)
        usual = found.intercept - model.intercept_
        snippets = parts[:, 7:].sum(axis=1) - usual
        np.testing.assert_allclose(found.by_snippet.sum(axis=1), snippets, atol=1e-10)
        total = sum(found.of_landmark(j) for j in range(7))
        total = total + sum(found.of_snippet(k) for k in range(FEW["n_snippets"]))
        np.testing.assert_allclose(total, found.contributions, atol=1e-10)


def test_a_constant_channel_is_part_of_landmarks_and_of_the_offset(fitted):
    _, X, y = fitted
    model = slts.BBSClassifier(homogeneous=True, random_state=0, calibration_cv=None).fit(X, y)
    found = explain(model, X[0])
    parts = [found.of_landmark(j).sum(axis=(1, 2)) for j in range(len(found.landmark_indices))]
    constant = found.by_landmark - np.transpose(parts)
    np.testing.assert_allclose(constant.sum(axis=1), found.offset, atol=1e-12)
    assert np.abs(found.offset).max() > 1e-3


def test_the_predicted_class_is_that_of_the_model(fitted):
    model, X, _ = fitted
    assert [explain(model, x).predicted for x in X[:5]] == model.predict(X[:5]).tolist()
    found = explain(model, X[0])
    assert found.classes[np.argmax(found.decision)] == found.predicted


def test_alignments_and_nearest_landmarks_are_those_of_the_similarity(fitted):
    model, X, _ = fitted
    found = explain(model, X[0])
    K = slts.similarity([X[0]], [X[j] for j in found.landmark_indices])[0]
    np.testing.assert_allclose(found.similarities, K)
    order = np.argsort(-K, kind="stable").tolist()
    assert found.nearest_landmarks(2).tolist() == order[:2]
    assert found.nearest_landmarks().tolist() == order[:5]
    assert found.landmark_names == tuple(model.series_name(j) for j in found.landmark_indices)
    for j, alignment in zip(found.landmark_indices, found.alignments, strict=True):
        np.testing.assert_array_equal(alignment.path, slts.align(X[0], X[j]).path)


def test_permuting_channels_permutes_contributions(fitted):
    _, X, y = fitted
    order = [2, 0, 3, 1]
    options = {"landmarks": range(0, len(X), 2), "calibration_cv": None}
    plain = slts.SLTSClassifier(**options).fit(X, y)
    shuffled = slts.SLTSClassifier(**options).fit([x[order] for x in X], y)
    one = explain(plain, X[4]).contributions
    other = explain(shuffled, X[4][order]).contributions
    # Both solve the same problem to its gap, not to the last bit.
    np.testing.assert_allclose(other, one[:, :, order], atol=1e-3 * np.abs(one).max())


def test_channel_names_are_those_of_the_training_series():
    values = np.random.default_rng(0).normal(size=(40, 2))
    batch = slts.SeriesBatch(values, np.arange(0, 41, 4), ["left", "right"])
    model = slts.BBSClassifier(random_state=0).fit(batch, np.arange(10) % 2)
    assert explain(model, batch[0]).channel_names == ("left", "right")


def test_other_models_raise_an_error(fitted):
    _, X, y = fitted
    neighbours = slts.OneNNClassifier().fit(X, y)
    with pytest.raises(TypeError, match="OneNNClassifier cannot be explained"):
        explain(neighbours, X[0])
    with pytest.raises(TypeError, match="OneNNClassifier cannot be explained"):
        slts.summarize(neighbours)

    search = GridSearchCV(slts.BBSClassifier(random_state=0), {"gamma": [1e-2]}, cv=2).fit(X, y)
    with pytest.raises(TypeError, match="best_estimator_"):
        explain(search, X[0])
    with pytest.raises(TypeError, match="best_estimator_"):
        slts.summarize(search, X)


def test_a_list_of_one_series_is_explained_and_several_raise_an_error(fitted):
    model, X, _ = fitted
    one = explain(model, X[0])
    np.testing.assert_array_equal(explain(model, [X[0]]).contributions, one.contributions)
    for several in (slts.as_series(X[:2]), X[:2], np.zeros((2, *X[0].shape))):
        with pytest.raises(ValueError, match=r"must be one series, such as X\[0\]. Got 2 series"):
            explain(model, several)
    frame = pd.DataFrame({"id": 1, "t": [1, 2], "u": 0.5, "v": [1.0, 3.0]})
    scan = slts.scan_series(frame, id="id", time="t")
    with pytest.raises(slts.DataError, match=r"SeriesScan, .* Read a scan: X.read\(\).series"):
        explain(model, scan)
    with pytest.raises(slts.DataError, match=r"is of type str, .* scan it"):
        explain(model, "series.csv")


def test_an_array_with_the_channels_of_training_is_explained_without_a_warning(rng):
    X = rng.normal(size=(12, 9, 2))
    batch = slts.as_series(X, layout="channels_first")
    model = slts.BBSClassifier(calibration_cv=None, random_state=0).fit(batch, np.arange(12) % 2)
    one = explain(model, X[0])
    np.testing.assert_array_equal(explain(model, X[:1]).contributions, one.contributions)


@pytest.mark.slow
def test_removing_the_steps_of_largest_contribution_hurts_more_than_removing_others(data_folder):
    X, y = slts.datasets.load("arabic_digits", "train")
    X_test, y_test = slts.datasets.load("arabic_digits", "test")
    chosen = np.random.default_rng(0).permutation(len(X))[:800]
    model = slts.SLTSClassifier(40, gamma=1e-3, random_state=0, calibration_cv=None)
    model.fit(X[chosen], y[chosen])
    rng = np.random.default_rng(1)
    shown = rng.permutation(len(X_test))[:150]
    without_top, without_random = [], []
    for k in shown:
        x = X_test[k]
        found = explain(model, x)
        by_step = found.by_step[np.argmax(found.decision)]
        count = max(1, round(0.2 * len(by_step)))
        if count == len(by_step):
            continue
        without_top.append(np.delete(x, np.argsort(-by_step)[:count], axis=1))
        without_random.append(np.delete(x, rng.permutation(len(by_step))[:count], axis=1))
    truth = y_test[shown][: len(without_top)]
    assert len(without_top) == len(shown)
    hurt = np.mean(model.predict(without_top) != truth)
    unhurt = np.mean(model.predict(without_random) != truth)
    assert hurt > unhurt + 0.02


def test_without_landmarks_nothing_contributes(rng):
    X = [rng.normal(size=(2, 9)) for _ in range(12)]
    model = slts.SLTSClassifier(
        gamma=1e300, regularizer="nuclear", calibration_cv=None, random_state=0
    )
    with pytest.warns(UserWarning, match="collapsed"):
        model.fit(X, np.arange(12) % 2)
    found = slts.explain(model, X[0])
    assert found.by_landmark.shape == (1, 0)
    # A decision of zero is for the first class.
    assert found.decision.tolist() == [0.0]
    assert found.predicted == model.predict(X[:1])[0] == 0
    assert not found.contributions.any()


def test_two_classes_share_one_decision_value_with_opposite_signs(rng):
    y = np.array(["no", "yes"])[np.arange(30) % 2]
    X = [rng.normal(size=(2, 8)) + 2.0 * (c == "yes") for c in y]
    model = slts.SLTSClassifier(random_state=0, calibration_cv=None).fit(X, y)
    found = [explain(model, x) for x in X[:6]]
    assert [one.predicted for one in found] == model.predict(X[:6]).tolist()
    assert {one.predicted for one in found} == {"no", "yes"}
    for one in found:
        assert one.labels.tolist() == ["no", "yes"]
        assert one.for_class("yes") == (0, 1.0)
        assert one.for_class("no") == (0, -1.0)
        position, sign = one.for_class()
        assert sign * one.decision[position] >= 0
    with pytest.raises(ValueError, match=r"one of 'no', 'yes'\. Got 'perhaps'"):
        found[0].for_class("perhaps")


@pytest.fixture(scope="module")
def one_channel_decides():
    """A model and series whose classes differ in channel 1 only."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    shift = np.array([[0.0, 0.0, 0.0], [-3.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    X = [rng.normal(size=(3, 10)) + shift[:, [c]] for c in y]
    return slts.SLTSClassifier(random_state=0, calibration_cv=None).fit(X, y), X


def test_the_deciding_channel_is_the_most_important(one_channel_decides):
    found = summarize(*one_channel_decides)
    assert (found.channel_importance[[0, 2]].argmax(axis=1) == 1).all()
    assert found.pair_importance.shape == (3, 3, 3)
    assert (found.channel_importance <= found.pair_importance.sum(axis=2) + 1e-12).all()


def test_importance_is_the_mean_absolute_contribution(one_channel_decides):
    model, X = one_channel_decides
    found = summarize(model, X[:5])
    explained = [explain(model, x) for x in X[:5]]
    mean = np.mean([np.abs(one.by_channel) for one in explained], axis=0)
    np.testing.assert_allclose(found.channel_importance, mean, atol=1e-12)
    local = slts.LocalSLTSClassifier(9, n_snippets=100, n_phases=2, random_state=0).fit(
        X, np.arange(60) % 3
    )
    found = summarize(local, X[:5])
    explained = [explain(local, x) for x in X[:5]]
    mean = np.mean([np.abs(one.by_comparison) for one in explained], axis=0)
    np.testing.assert_allclose(found.comparison_importance, mean, atol=1e-12)
    assert found.n_numbers == local.n_numbers_


def test_singular_values_and_sizes_are_those_of_the_model(one_channel_decides):
    model, _ = one_channel_decides
    found = summarize(model)
    for metric, values in zip(model.metrics_, found.singular_values, strict=True):
        np.testing.assert_allclose(np.sum(values**2), np.sum(metric**2))
    np.testing.assert_array_equal(found.n_landmarks_used, np.count_nonzero(model.coef_, axis=1))
    steps = model.landmarks_.lengths[model.coef_.any(axis=0)].sum()
    assert found.n_numbers == 27 + np.count_nonzero(model.coef_) + 3 * steps


def test_a_snippet_is_important_if_its_contribution_differs_between_series(one_channel_decides):
    model, X = one_channel_decides
    assert summarize(model).snippet_importance.shape == (3, 0)
    local = slts.LocalSLTSClassifier(9, n_snippets=80, random_state=0).fit(X, np.arange(60) % 3)
    for chosen, series in ((X[:7], X[:7]), (None, local.landmarks_)):
        found = summarize(local, chosen)
        parts = np.array([explain(local, x).by_snippet for x in series])
        spread = np.abs(parts - parts.mean(axis=0)).mean(axis=0)
        np.testing.assert_allclose(found.snippet_importance, spread, atol=1e-12)
        # Some snippets occur closely in none of these series.
        signed = found.snippet_effect != 0
        assert signed.mean() > 0.8
        np.testing.assert_allclose(np.abs(found.snippet_effect)[signed], spread[signed], atol=1e-12)
    # The channel that decides is in the strongest snippets, but not in all.
    seen = np.array([1 in local.snippets_.channels_of(k) for k in range(80)])
    strongest = np.argsort(-found.snippet_importance[[0, 2]], axis=1)[:, :3]
    assert seen[strongest].all() > seen.all()


@pytest.fixture(scope="module")
def with_snippets(one_channel_decides):
    _, X = one_channel_decides
    model = slts.LocalSLTSClassifier(9, n_snippets=20, random_state=0)
    return model.fit(X, np.arange(60) % 3), X


def test_a_snippet_counts_for_a_class_if_it_adds_more_where_it_occurs(with_snippets):
    model, X = with_snippets
    model = copy.copy(model)
    # Only close occurrences count: for the first class, against the others.
    coef = np.zeros_like(model.snippet_coef_)
    coef[0, :, :2], coef[1:, :, :2] = 1.0, -2.0
    model.snippet_coef_ = coef
    found = summarize(model, X[:7])
    varies = found.snippet_importance > 1e-12
    assert varies.mean() > 0.8
    expected = np.where(varies, np.array([[1.0], [-1.0], [-1.0]]), 0.0)
    np.testing.assert_array_equal(np.sign(found.snippet_effect) * varies, expected)


def test_a_snippet_occurs_closely_where_it_meets_one_of_two_thresholds(with_snippets, monkeypatch):
    model, _ = with_snippets
    snippets = model.snippets_.subset(np.array([0]))
    # Close occurrences are more in the first series, others in the second.
    counts = np.array([[[0, 4, 4, 4]], [[1, 1, 7, 9]]], dtype=np.int32)
    monkeypatch.setattr(type(snippets), "counts", lambda *arguments: counts)
    coef = np.zeros((2, 1, 4, snippets.n_kinds))
    coef[0, 0, :, 0], coef[1, 0, :, 0] = (1.0, 1.0, -1.0, -1.0), (-1.0, -1.0, 1.0, 1.0)
    batch = slts.as_series(np.zeros((2, model.n_channels_in_, 10)))
    strength, effect = snippet_strength(SnippetForm(model.classes_[:2], snippets, coef), batch)
    # The first adds 4 - 8, the second 2 - 16, each of ten steps.
    np.testing.assert_allclose(strength[:, 0], 0.5)
    np.testing.assert_allclose(effect[:, 0], (0.5, -0.5))


def test_snippets_are_shown_in_the_series_where_they_add_most(with_snippets):
    model, X = with_snippets
    batch, found = slts.as_series(X[:7]), summarize(model)
    parts = np.array([explain(model, x).by_snippet for x in X[:7]])
    for decision, sides in enumerate(snippets_to_show(model, batch, 4)):
        weights = found.snippet_effect
        for sign, side in zip((1, -1), sides, strict=True):
            own = sign * weights[decision]
            expected = [k for k in np.argsort(-own, kind="stable")[:4] if own[k] > 0]
            assert [one.snippet for one in side] == expected
            for one in side:
                assert one.weight == pytest.approx(weights[decision, one.snippet])
                assert one.example == np.argmax(sign * parts[:, decision, one.snippet])
                assert one.adds == pytest.approx(parts[one.example, decision, one.snippet])
    of_landmarks = snippets_to_show(model, None, 2)[0][0]
    assert all(one.example < len(model.landmarks_) for one in of_landmarks)


def test_a_landmark_is_strong_if_its_contribution_differs_between_series(with_snippets):
    model, X = with_snippets
    parts = np.array([explain(model, x).by_landmark for x in X[:7]])
    expected = np.abs(parts - parts.mean(axis=0)).mean(axis=0)
    found, weighted = landmark_effects(model, model.transform(X[:7]))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert not weighted


def test_at_most_100_series_are_averaged_over():
    assert even_choice(5).tolist() == [0, 1, 2, 3, 4]
    assert even_choice(100).tolist() == list(range(100))
    chosen = even_choice(1000)
    assert (len(chosen), chosen[0], chosen[-1]) == (100, 0, 999)
    assert set(np.diff(chosen)) == {10, 11}
    assert even_choice(7, 3).tolist() == [0, 3, 6]


def test_the_strongest_snippets_have_the_largest_contributions_of_either_sign(with_snippets):
    model, X = with_snippets
    found = explain(model, X[0])
    for label, row in ((None, model.predict(X[:1])[0]), (2, 2)):
        sizes = np.abs(found.by_snippet[row])
        strongest = found.strongest_snippets(4, label)
        assert len(strongest) == 4
        assert (np.diff(sizes[strongest]) <= 0).all()
        assert sizes[strongest].min() >= np.delete(sizes, strongest).max()
    assert len(found.strongest_snippets()) == 5


def test_occurrences_and_comparisons_are_those_of_the_linear_forms(with_snippets):
    model, X = with_snippets
    *aligned, counted = model.linear_forms()
    found, batch = explain(model, X[0]), slts.as_series(X[:1])
    for k in range(20):
        ((_, met),) = counted.occurrences(batch, np.array([k]))
        assert found.occurrences(k).tolist() == met[0].tolist()
    assert max(found.occurrences(k).max() for k in range(20)) > 1
    parts = [found.of_landmark(1, comparison) for comparison in range(len(aligned))]
    np.testing.assert_allclose(sum(parts), found.of_landmark(1), atol=1e-12)
    assert len(aligned) > 1


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
        found = explain(model, x)
        assert found.by_snippet.sum() > 0
        total = found.intercept + found.by_landmark.sum(axis=1) + found.by_snippet.sum(axis=1)
        np.testing.assert_allclose(total, model.decision_function([x]), atol=1e-9)
        positive = found.contributions[0].clip(min=0.0)
        shares.append(
            [
                positive[place].sum() / positive.sum(),
                positive[:, PLANTED].sum() / positive.sum(),
                positive[place, PLANTED].sum() / positive.sum(),
            ]
        )
    steps, channel, both = np.mean(shares, axis=0)
    assert steps > 0.65
    assert channel > 0.6
    assert both > 0.5


@pytest.mark.parametrize("kind", [slts.LocalSLTSClassifier, slts.SLTSClassifier])
def test_a_summary_takes_channels_by_their_names(kind, rng):
    y = np.tile(["a", "b"], 10)
    values = [rng.normal(size=(12, 2)) + np.array([3.0 * (c == "a"), 0.0]) for c in y]
    offsets = np.arange(21) * 12
    X = slts.SeriesBatch(np.concatenate(values), offsets, ["p", "q"])
    swapped = slts.SeriesBatch(np.concatenate(values)[:, ::-1], offsets, ["q", "p"])
    model = kind(random_state=0).fit(X, y)
    expected = slts.summarize(model, X).channel_importance
    np.testing.assert_array_equal(slts.summarize(model, swapped).channel_importance, expected)
