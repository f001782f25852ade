"""The local classifier: what it reports about itself, and unusual data."""

import numpy as np
import pytest
from sklearn.base import clone

import slts
from slts.features.feature_map import Resources
from slts.training.local_fit import FeatureBlock
from tests.data import clusters
from tests.estimators.kinds import quick


@pytest.fixture(scope="module")
def model(three):
    return slts.LocalSLTSClassifier(random_state=0).fit(*three[:2])


def test_landmarks_come_evenly_from_all_classes_and_each_has_a_bank(model, three):
    assert np.bincount(three[1][model.landmark_indices_]).tolist() == [10, 10, 10]
    assert model.bank_names_ == ("0", "1", "2")
    for aligned in model.model_.aligned:
        np.testing.assert_array_equal(aligned.banks, three[1][model.landmark_indices_])


def test_parts_of_landmarks_and_snippets_have_names_and_sum_to_the_decisions(model, three):
    X_test = three[2]
    n_landmarks, n_snippets = len(model.landmarks_), len(model.snippets_)
    names = model.get_feature_names_out().reshape(3, n_landmarks + n_snippets)
    assert len(set(names.ravel())) == names.size
    assert names[1, 0] == f"class1_landmark{model.landmark_indices_[0]}"
    assert names[1, n_landmarks + 17] == "class1_snippet17"
    parts = model.transform(X_test).reshape(len(X_test), *names.shape)
    decisions = model.decision_function(X_test)
    np.testing.assert_allclose(parts.sum(axis=2) + model.intercept_, decisions, atol=1e-12)
    explanation = slts.explain(model, X_test[5])
    np.testing.assert_allclose(parts[5, :, :n_landmarks], explanation.by_landmark, atol=1e-12)
    totals = explanation.by_map.sum(axis=1), explanation.by_snippet.sum(axis=1)
    np.testing.assert_allclose(explanation.intercept + totals[0], decisions[5], atol=1e-12)
    assert explanation.map_names == ("landmarks", "snippets")
    np.testing.assert_allclose(explanation.by_map[:, -1], totals[1], atol=1e-12)


def test_a_model_without_snippets_has_landmarks_only(three):
    X, y, X_test, _ = three
    model = quick(slts.LocalSLTSClassifier, n_snippets=0).fit(X, y)
    assert model.snippets_ is model.snippet_coef_ is None
    parts = model.transform(X_test).reshape(len(X_test), 3, len(model.landmarks_))
    np.testing.assert_allclose(
        parts.sum(axis=2) + model.intercept_, model.decision_function(X_test), atol=1e-12
    )
    explanation = slts.explain(model, X_test[0])
    assert explanation.by_snippet.shape == (3, 0)
    for use in (explanation.of_snippet, explanation.occurrences, model.describe_snippet):
        with pytest.raises(ValueError, match="has no snippets"):
            use(0)


@pytest.mark.parametrize("n_phases", [1, 4, "auto"])
def test_phases_have_coefficients_of_their_own(n_phases, three):
    X, y, X_test, y_test = three
    model = slts.LocalSLTSClassifier(n_phases=n_phases, random_state=0).fit(X, y)
    phases = {aligned.n_phases for aligned in model.model_.aligned}
    assert phases == {n_phases} if n_phases != "auto" else phases <= {1, 3}
    assert model.reports_[0].converged
    assert model.reports_[0].gap < 1e-9
    assert model.score(X_test, y_test) > 0.6


@pytest.mark.parametrize(("n_classes", "per_class"), [(2, 10), (25, 8), (60, 4)])
def test_many_classes_have_few_landmarks_each_and_share_banks(n_classes, per_class):
    X, y = clusters(12 * n_classes, n_classes=n_classes, noise=0.1)
    model = quick(slts.LocalSLTSClassifier, n_landmarks=None, n_snippets=0).fit(X, y)
    assert np.bincount(y[model.landmark_indices_]).tolist() == [per_class] * n_classes
    # No more than 32 banks, of almost as many classes each.
    sizes = [len(name.split()) for name in model.bank_names_]
    assert len(sizes) == min(n_classes, 32)
    assert sum(sizes) == n_classes
    assert max(sizes) - min(sizes) <= 1
    explanation = slts.explain(model, X[0])
    decisions = np.atleast_1d(model.decision_function([X[0]])[0])
    np.testing.assert_allclose(explanation.decision, decisions, atol=1e-12)


def test_series_without_weight_change_nothing(rng, three):
    X, y, X_test, _ = three
    junk = [1e3 * rng.normal(size=(3, 9)) for _ in X]
    model = slts.LocalSLTSClassifier(12, random_state=0)
    plain = model.fit(X, y).predict_proba(X_test)
    with_junk = model.fit([*X, *junk], [*y, *y[::-1]], np.repeat([1.0, 0.0], len(X)))
    np.testing.assert_allclose(with_junk.predict_proba(X_test), plain, atol=1e-9)


def test_no_series_have_no_predictions(model, three):
    none = slts.as_series(three[0])[:0]
    assert model.predict(none).shape == (0,)
    assert model.predict_proba(none).shape == (0, 3)
    assert model.transform(none).shape == (0, len(model.get_feature_names_out()))


def test_values_far_out_of_range_are_explained_exactly(model, three):
    for size in (1e100, 1e200, 1e300):
        explanation = slts.explain(model, size * three[2][5])
        assert np.isfinite(explanation.decision).all()
        decision = model.decision_function([size * three[2][5]])[0]
        np.testing.assert_allclose(explanation.decision, decision, atol=1e-9)


def test_long_series_are_averaged_for_alignments_only(rng):
    lengths = [1, 2, 3, 3000, 700, 40] * 4
    y = np.arange(24) % 2
    X = [
        rng.normal(size=(2, n)) + 2 * np.array([[c], [1 - c]])
        for n, c in zip(lengths, y, strict=True)
    ]
    model = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    rows = model.model_.aligned[0].row_map(slts.as_series(X[:6]))
    # Averages of 32 and of 8 steps.
    assert rows.lengths.tolist() == [1, 2, 3, 94, 88, 40]
    assert model.snippets_.longest == 3000
    assert model.snippets_.dilations[-1] > 100


@pytest.mark.parametrize("lengths", ["equal", "ragged"])
def test_counts_are_relative_to_the_longest_only_if_lengths_differ(lengths, rng):
    y = np.arange(20) % 2
    n = np.full(20, 30) if lengths == "equal" else rng.integers(20, 31, 20)
    X = [rng.normal(size=(2, k)) + c for k, c in zip(n, y, strict=True)]
    model = quick(slts.LocalSLTSClassifier).fit(X, y)
    assert model.snippets_.longest == (None if lengths == "equal" else n.max())
    assert model.snippet_coef_.shape[3] == (1 if lengths == "equal" else 2)
    # Series of any length are predicted.
    assert np.isfinite(model.decision_function([X[0][:, :3], np.tile(X[1], 5)])).all()


def test_the_order_of_the_channels_changes_nothing_but_draws(three):
    X, y, X_test, _ = three
    # All series are landmarks. Snippets are drawn by the values, which depend on the order.
    order, options = [2, 0, 1], {"n_landmarks": 1.0, "n_snippets": 0}
    model = quick(slts.LocalSLTSClassifier, **options).fit(X, y)
    other = quick(slts.LocalSLTSClassifier, **options).fit([x[order] for x in X], y)
    np.testing.assert_allclose(
        other.decision_function([x[order] for x in X_test]), model.decision_function(X_test),
        rtol=0, atol=1e-9,
    )  # fmt: skip


# -- unusual data: functions of a generator, which return series and labels


def separated(y, lengths, channels=2, distance=3.0):
    """Noise about a mean of each class."""

    def make(rng):
        means = distance * rng.normal(size=(int(np.max(y)) + 1, channels, 1))
        sizes = [(channels, rng.integers(*lengths)) for _ in y]
        return [means[c] + 0.3 * rng.normal(size=n) for c, n in zip(y, sizes, strict=True)], y

    return make


def constant_channels(rng):
    X = [
        np.vstack([np.ones(9), rng.normal(size=9) + 2 * c, np.zeros(9)]) for c in np.arange(30) % 2
    ]
    X[0] = np.ones((3, 9))
    return X, np.arange(30) % 2


def heavy_tails(rng):
    y = np.arange(160) % 2
    return [rng.standard_cauchy(size=(2, 15)) * (1.0 + 9.0 * c) for c in y], y


def many_channels(rng):
    y, waves = np.arange(30) % 2, 2.0 * np.sin(np.arange(120))[:, None]
    return [rng.normal(size=(120, 10 + i % 3)) + c * waves for i, c in enumerate(y)], y


UNUSUAL = {
    "one step": separated(np.arange(30) % 3, (1, 2)),
    "one channel": separated(np.arange(40) % 2, (20, 40), channels=1),
    "constant channels": constant_channels,
    "two series per class": separated(np.repeat(np.arange(4), 2), (8, 9), channels=3),
    "a class of one series": separated(np.array([0] * 10 + [1]), (8, 9)),
    "fifty classes": separated(np.tile(np.arange(50), 3), (8, 20), channels=4),
    "shorter than a snippet": separated(np.arange(60) % 2, (1, 11)),
    "heavy tails": heavy_tails,
    "more channels than components": many_channels,
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_data_are_learned(name, rng):
    """From the first two thirds, or from all if they are few."""
    X, y = UNUSUAL[name](rng)
    n = 2 * len(X) // 3 if len(X) >= 30 else len(X)
    test = slice(n, None) if n < len(X) else slice(None)
    model = slts.LocalSLTSClassifier(random_state=0).fit(X[:n], y[:n])
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.mean(model.predict(X[test]) == y[test]) >= 0.85
    explanation = slts.explain(model, X[0])
    decision = np.atleast_1d(model.decision_function(X[:1])[0])
    np.testing.assert_allclose(explanation.decision, decision, atol=1e-9)
    assert explanation.contributions.shape[1:] == np.shape(X[0])[::-1]


def test_series_that_are_all_the_same_give_the_majority():
    X, y = [np.ones((2, 5))] * 10, [0] * 7 + [1] * 3
    model = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    assert (model.predict(X) == 0).all()


# ---- accuracy on series that are left out


def few_of_each(n_classes, per_class, rng):
    """Noisy centres, and 800 others."""
    centres = rng.normal(size=(n_classes, 8, 1))
    y = np.append(np.tile(np.arange(n_classes), per_class), rng.integers(n_classes, size=800))
    X = [centres[c] + 1.5 * rng.normal(size=(8, rng.integers(8, 14))) for c in y]
    n = n_classes * per_class
    return X[:n], y[:n], X[n:], y[n:]


def test_few_series_of_many_classes_are_estimated_with_their_number(rng):
    """Leaving out one of four series alone would leave its class rarer than the others."""
    X, y, X_new, y_new = few_of_each(60, 4, rng)
    model = slts.LocalSLTSClassifier(n_snippets=200, random_state=0).fit(X, y)
    accuracy = model.score(X_new, y_new)
    assert 0.4 < accuracy < 0.8
    assert model.validation_.accuracy == pytest.approx(accuracy, abs=0.1)
    confidence = model.predict_proba(X_new).max(axis=1).mean()
    assert confidence == pytest.approx(accuracy, abs=0.08)


def test_one_series_of_each_class_is_enough(rng):
    """Each is left out with its class: the largest penalties would win, and are not tried."""
    y, steps, tempo = np.repeat(np.arange(5), 11), np.arange(40), rng.uniform(0.1, 1.2, (5, 3, 1))
    X = [np.sin(tempo[c] * steps + rng.uniform(0, 6)) + 0.5 * rng.normal(size=(3, 40)) for c in y]
    new = [x for k, x in enumerate(X) if k % 11]

    models = [
        slts.LocalSLTSClassifier(random_state=0, **how).fit(X[::11], y[::11])
        for how in ({}, {"penalties": [1.0, 1e6]}, {"penalties": [1.0]})
    ]
    assert models[0].score(new, np.delete(y, np.s_[::11])) > 0.6
    np.testing.assert_array_equal(*(model.decision_function(new) for model in models[1:]))


@pytest.mark.parametrize(("n_channels", "count"), [(1, 1500), (4, 1650), (30, 2000)])
def test_more_channels_have_more_snippets(n_channels, count):
    X, y = clusters(8, n_classes=2, channels=n_channels)
    model = slts.LocalSLTSClassifier(2, random_state=0).fit(X, y)
    assert len(model.snippets_) == count


@pytest.mark.parametrize("groups", [None, np.arange(90) // 3])
def test_labels_without_meaning_are_right_by_chance(groups, rng):
    """Also if every group has one class: it is not rarer without the group."""
    X = [rng.normal(size=(2, rng.integers(8, 14))) for _ in range(90)]
    y = np.tile([0, 1, 2], 30) if groups is None else groups % 3
    estimates = [
        slts.LocalSLTSClassifier(n_snippets=50, random_state=seed)
        .fit(X, y, groups=groups)
        .validation_.accuracy
        for seed in range(4)
    ]
    assert 0.2 < np.mean(estimates) < 0.47


# ---- accuracy without channels


def walks(n=90, seed=0):
    """Channel "motif" tells the class; "noise" and "walk" do not, and "walk" disturbs."""
    rng, y = np.random.default_rng(seed), np.arange(n) % 3
    values = rng.normal(size=(n, 60, 3))
    for x, label, start in zip(values, y, rng.integers(0, 40, n), strict=True):
        x[start : start + 20, 0] += 1.6 * np.sin(np.arange(20) * 2 * np.pi / 20 * (1 + label))
    values[:, :, 2] = 1.5 * values[:, :, 2].cumsum(axis=1)
    offsets = 60 * np.arange(n + 1)
    return slts.SeriesBatch(values.reshape(-1, 3), offsets, ["motif", "noise", "walk"]), y


def without(X, channel):
    """The series without one channel."""
    return slts.SeriesBatch(np.delete(X.values, channel, axis=1), X.offsets)


@pytest.mark.parametrize("n_components", [24, 2])
@pytest.mark.parametrize("n_phases", [1, 3])
def test_without_snippets_a_channel_is_left_out_as_if_the_model_never_saw_it(
    n_components, n_phases, monkeypatch
):
    X, y = walks()
    # Which series of the classes are left out together depends on their order.
    alone = "slts.training.local_fit.parts_to_leave_out"
    monkeypatch.setattr(alone, lambda codes, groups: np.arange(len(codes)))
    options = {"n_snippets": 0, "n_components": n_components, "n_phases": n_phases}
    # All series are landmarks: which are drawn depends on the values.
    make = slts.LocalSLTSClassifier(1.0, **options, random_state=0)
    model = make.fit(X, y)
    found = model.accuracy_without_channels(X, y)
    assert found.accuracy == model.validation_.accuracy
    assert (found.channels.tolist(), found.n_series) == ([0, 1, 2], 90)
    fits = [clone(make).fit(without(X, k), y) for k in range(3)]
    refitted = [fit.validation_.accuracy for fit in fits]
    np.testing.assert_allclose(found.without, refitted, atol=1e-12)
    assert len(set(refitted)) > 1


def test_leaving_out_a_channel_shows_what_it_is_worth():
    X, y = walks()
    model = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    before = model.predict(X).tolist()
    found = model.accuracy_without_channels(X, y)
    assert found.accuracy == pytest.approx(model.validation_.accuracy, abs=0.04)
    assert found.without[0] < 0.5 < found.accuracy < found.without[2]
    # Snippets that see the channel are left out, no others.
    blank = FeatureBlock.of(model.snippets_, X, Resources(), alone=True).without_channel(2)
    shown = blank.features.any(axis=0).reshape(len(model.snippets_), -1).any(axis=1)
    sees = [2 in model.snippets_.channels_of(k) for k in range(len(model.snippets_))]
    assert not (shown & sees).any()
    assert np.mean(shown[~np.array(sees)]) > 0.95
    some = model.accuracy_without_channels(X, y, channels=[2])
    np.testing.assert_array_equal(some.without, found.without[2:])
    assert model.predict(X).tolist() == before


def test_of_many_channels_the_most_important_are_left_out():
    X, y = clusters(30, channels=33, lengths=(4, 6))
    model = slts.LocalSLTSClassifier(n_snippets=20, random_state=0).fit(X, y)
    found = model.accuracy_without_channels(X, y)
    order = np.argsort(slts.summarize(model).channel_importance.mean(axis=0))
    assert found.channels.tolist() == sorted(order[3:].tolist())
    assert found.without.shape == (30,)


def test_what_cannot_be_left_out_is_an_error():
    X, y = walks(30)
    single, values = without(without(X, 0), 0), X.values.copy()
    values[60:120, 1:] = np.nan
    gappy = slts.SeriesBatch(values, X.offsets, X.channel_names).named([*"ab", *range(28)])
    model = quick(slts.LocalSLTSClassifier).fit(gappy, y)
    with pytest.raises(slts.DataError, match="b has values in motif only: nothing is left"):
        model.accuracy_without_channels(gappy, y)
    with pytest.raises(ValueError, match=r"'channels' .* positions from 0 to 2. Got \[0, 3\]"):
        model.accuracy_without_channels(X, y, channels=[0, 3])
    with pytest.raises(slts.DataError, match="X has one channel"):
        quick(slts.LocalSLTSClassifier).fit(single, y).accuracy_without_channels(single, y)
