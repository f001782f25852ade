"""Snippets: what is drawn, counted, decided and attributed."""

import copy
import pickle
import threading
import time
from dataclasses import fields, replace

import numpy as np
import pytest
from slts.models import snippets as snippets_module
from slts.models.snippets import LENGTH, SnippetForm, Snippets

import slts
from slts.execution import ThreadRunner
from tests.oracles import windows

COUNT = 30
# Lengths of six series with three channels, or another number.
BATCHES = {
    "ragged": ([23, 40, 31, 12, 55, 30], 3),
    "equal lengths": ([24] * 6, 3),
    "one channel": ([23, 40, 31, 12, 55, 30], 1),
    "many channels": ([30, 31, 32, 33, 34, 35], 12),
    "shorter than a snippet": ([1, 2, 3, 5, 9, 10], 2),
    "single steps": ([1] * 6, 2),
}
CODES = np.array([0, 1, 2, 0, 1, 2])


def make_batch(lengths, channels, seed=0):
    rng = np.random.default_rng(seed)
    return slts.as_series([5.0 + rng.normal(size=(channels, n)).cumsum(axis=1) for n in lengths])


@pytest.fixture(scope="module", params=BATCHES)
def case(request):
    batch = make_batch(*BATCHES[request.param])
    drawn = Snippets.draw(batch, CODES, COUNT, seed=3)
    counts = drawn.counts(batch) / batch.lengths[:, np.newaxis, np.newaxis]
    return batch, replace(drawn, shares=counts.mean(axis=0))


def same_snippets(one, other):
    for field in fields(Snippets):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "scale":
            a, b = (a.centre, a.spread), (b.centre, b.spread)
        np.testing.assert_array_equal(a, b)


def coefficients(drawn, problems=2):
    shape = (problems, *drawn.thresholds.shape, drawn.n_kinds)
    return np.random.default_rng(5).normal(size=shape)


# -- draws


def test_values_are_windows_of_the_series(case):
    batch, drawn = case
    assert len(drawn) == COUNT
    for k in range(COUNT):
        x = batch[drawn.series[k]]
        steps = drawn.starts[k] + drawn.dilations[k] * np.arange(LENGTH)
        inside = steps.clip(0, x.shape[1] - 1)
        np.testing.assert_array_equal(drawn.values_of(k), x[np.ix_(drawn.channels_of(k), inside)])
        # A window is inside the series, or the series is inside the window.
        assert (steps == inside).all() or (steps[0] <= 0 and steps[-1] >= x.shape[1] - 1)


def test_channels_and_dilations_are_those_of_the_series(case):
    batch, drawn = case
    longest = int(batch.lengths.max())
    assert (np.diff(drawn.dilations) >= 0).all()
    assert drawn.dilations[0] >= 1
    assert (LENGTH - 1) * drawn.dilations[-1] <= max(longest - 1, LENGTH - 1)
    for k in range(COUNT):
        channels = drawn.channels_of(k)
        assert (np.diff(channels) > 0).all()
        assert set(channels) <= set(range(batch.n_channels))
    assert set(drawn.channels) == set(range(batch.n_channels))
    ways = np.stack([~drawn.shape_only & ~drawn.by_strength, drawn.shape_only, drawn.by_strength])
    assert (ways.sum(axis=0) == 1).all()
    assert ways.any(axis=1).all()
    assert drawn.longest == (None if len(set(batch.lengths)) == 1 else longest)


def test_all_classes_are_drawn_equally():
    batch = make_batch([20] * 9, 2)
    codes = np.array([0, 0, 0, 0, 0, 0, 0, 1, 2])
    drawn = Snippets.draw(batch, codes, 90, seed=0)
    np.testing.assert_array_equal(np.bincount(codes[drawn.series]), [30, 30, 30])


def test_thresholds_are_quantiles_of_the_distances_within_the_class():
    """With one series per class there is one series to compare with."""
    batch = make_batch([30, 44], 2)
    drawn = Snippets.draw(batch, np.array([0, 1]), 30, seed=0)
    for k in range(30):
        found = windows.distances(batch[drawn.series[k]].T, drawn, k)
        expected = np.quantile(found, snippets_module._QUANTILES)
        np.testing.assert_allclose(drawn.thresholds[k], expected, rtol=1e-9, atol=1e-8)


def test_a_draw_ends_early_if_its_result_is_not_needed():
    """Another task fails once the draw has begun; the draw looks at that between series."""
    batch, begun = make_batch([30] * 40, 2), threading.Event()
    distances, seen = Snippets.distances, []

    def watched(self, series, which):
        seen.append(1)
        begun.set()
        time.sleep(0.02)
        return distances(self, series, which)

    def task(part, *_):
        if part == 1:
            assert begun.wait(60)
            raise RuntimeError("broken")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Snippets, "distances", watched)
            Snippets.draw(batch, np.arange(40) % 2, 400, 0)

    with pytest.raises(RuntimeError, match="broken"):
        list(ThreadRunner(2).map(task, range(2)))
    assert len(seen) < 40


def test_a_draw_depends_on_its_seed():
    batch = make_batch([20, 30, 25, 40, 18, 22], 2)
    one, same, other = (Snippets.draw(batch, CODES, 20, seed) for seed in (1, 1, 2))
    same_snippets(one, same)
    assert one.values.shape != other.values.shape or (one.values != other.values).any()


# -- counts and decisions


def test_features_are_those_of_the_reference(case):
    batch, drawn = case
    new = make_batch([1, 2, 17, 70], batch.n_channels, seed=1)
    for series in (batch, new):
        found = drawn.features(drawn.counts(series), series.lengths)
        expected = windows.features([x.T for x in series], drawn)
        assert found.shape == (len(series), *drawn.thresholds.shape, drawn.n_kinds)
        np.testing.assert_array_equal(found, expected)


def test_decisions_are_linear_in_the_features(case):
    batch, drawn = case
    coef = coefficients(drawn)
    counts = drawn.counts(batch)
    features = drawn.features(counts, batch.lengths)
    expected = np.einsum("iktf,cktf->ick", features, coef)
    found = drawn.contributions(counts, batch.lengths, coef)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    form = SnippetForm(np.arange(2), drawn, coef)
    np.testing.assert_allclose(form.decide(batch), expected.sum(axis=2), atol=1e-12)


def test_no_series_have_no_counts(case):
    batch, drawn = case
    coef = coefficients(drawn)
    counts, lengths = drawn.counts(batch[:0]), batch.lengths[:0]
    assert counts.shape == (0, *drawn.thresholds.shape)
    form = SnippetForm(np.arange(2), drawn, coef)
    assert form.decide(batch[:0]).shape == (0, 2)
    assert drawn.contributions(counts, lengths, coef).shape == (0, 2, COUNT)


def test_a_subset_is_some_of_the_snippets(case):
    batch, drawn = case
    which = np.array([0, 4, 5, 11, 29])
    part = drawn.subset(which)
    assert len(part) == 5
    for k, own in enumerate(which):
        np.testing.assert_array_equal(part.values_of(k), drawn.values_of(own))
        np.testing.assert_array_equal(part.channels_of(k), drawn.channels_of(own))
    np.testing.assert_array_equal(part.counts(batch), drawn.counts(batch)[:, which])
    np.testing.assert_array_equal(part.series, drawn.series[which])
    assert part.n_numbers < drawn.n_numbers


@pytest.mark.parametrize("which", [[COUNT], [-1, 3]])
def test_snippets_that_do_not_exist_are_an_error(case, which):
    batch, drawn = case
    with pytest.raises(IndexError, match=f"There are {COUNT} snippets"):
        next(drawn.distances(batch[:1], np.array(which)))


def test_copies_are_equal(case):
    batch, drawn = case
    counts = drawn.counts(batch)
    for other in (pickle.loads(pickle.dumps(drawn)), copy.deepcopy(drawn)):
        same_snippets(drawn, other)
        np.testing.assert_array_equal(other.counts(batch), counts)


def test_every_stored_number_is_counted():
    drawn = Snippets.draw(make_batch([20, 30], 2), np.array([0, 1]), 5, seed=0)
    rows = drawn.first[-1]
    # Values and channels by row; `first`; seven arrays by snippet; the scale.
    assert drawn.n_numbers == rows * (LENGTH + 1) + 6 + 5 * 5 + 2 * drawn.thresholds.size + 2 * 2


# -- attribution


def test_contributions_are_those_of_the_reference(case):
    batch, drawn = case
    coef = coefficients(drawn)
    form = SnippetForm(np.arange(2), drawn, coef)
    for p in (0, 3):
        x, n = batch[p : p + 1], batch.lengths[p]
        terms, by_snippet = form.attribute(x)
        np.testing.assert_allclose(terms, windows.attribution(batch[p].T, drawn, coef), atol=1e-12)
        usual = drawn.features(n * drawn.shares, np.array([n]))[0]
        added = drawn.contributions(drawn.counts(x), x.lengths, coef)[0]
        expected = added - np.einsum("ktf,cktf->ck", usual, coef)
        np.testing.assert_allclose(by_snippet, expected, atol=1e-12)
        total = form.baseline(n) + terms.sum(axis=(1, 2))
        np.testing.assert_allclose(total, form.decide(x)[0], atol=1e-9)


def test_a_repeated_end_counts_once():
    batch = make_batch([40, 30, 30, 30, 30, 30], 2)
    drawn = Snippets.draw(batch, CODES, COUNT, seed=3)
    form = SnippetForm(np.arange(2), drawn, coefficients(drawn))
    # Every window sees all six steps, some of them several times.
    short = slts.as_series([batch[0][:, :6]])
    terms, by_snippet = form.attribute(short, np.flatnonzero(drawn.dilations == 1))
    assert np.abs(terms).max() > 0.01
    np.testing.assert_allclose(terms, np.broadcast_to(terms[:, :1], terms.shape), atol=1e-12)
    np.testing.assert_allclose(terms.sum(axis=(1, 2)), by_snippet.sum(axis=1), atol=1e-12)
    # Windows whose steps are farther apart than the series is long see both ends and their centre.
    apart = SnippetForm(np.arange(2), replace(drawn, dilations=np.full(COUNT, 99)), form.coef)
    terms = apart.attribute(batch[:1], np.array([0]))[0].sum(axis=2)
    ((_, met),) = apart.occurrences(batch[:1], np.array([0]))
    added = apart.step_weights(40)[:, 0, met[0]]
    np.testing.assert_allclose(terms[:, 1:-1], added[:, 1:-1] / 3, atol=1e-12)


def test_snippets_of_the_training_series_add_nothing_on_average():
    batch = make_batch([24] * 6, 3)
    drawn = Snippets.draw(batch, CODES, COUNT, seed=3)
    drawn = replace(drawn, shares=drawn.counts(batch).mean(axis=0) / 24)
    form = SnippetForm(np.arange(2), drawn, coefficients(drawn))
    parts = [form.attribute(batch[p : p + 1])[1] for p in range(6)]
    np.testing.assert_allclose(np.mean(parts, axis=0), 0.0, atol=1e-12)


def test_contributions_of_some_snippets_are_parts_of_all(case):
    batch, drawn = case
    form = SnippetForm(np.arange(2), drawn, coefficients(drawn))
    x = batch[4:5]
    terms, by_snippet = form.attribute(x)
    which = np.array([0, 7, 15, 16, 29])
    rest = np.setdiff1d(np.arange(COUNT), which)
    parts = [form.attribute(x, part) for part in (which, rest)]
    np.testing.assert_allclose(sum(part[0] for part in parts), terms, atol=1e-12)
    np.testing.assert_allclose(parts[0][1], by_snippet[:, which], atol=1e-15)


def test_few_distances_at_a_time_give_the_same_contributions(case, monkeypatch):
    batch, drawn = case
    form = SnippetForm(np.arange(2), drawn, coefficients(drawn))
    terms, by_snippet = form.attribute(batch[2:3])
    monkeypatch.setattr(snippets_module, "_DISTANCES", 50)
    again = form.attribute(batch[2:3])
    np.testing.assert_allclose(again[0], terms, atol=1e-12)
    np.testing.assert_allclose(again[1], by_snippet, atol=1e-15)


def test_occurrences_are_the_steps_within_the_thresholds(case):
    batch, drawn = case
    form = SnippetForm(np.arange(2), drawn, coefficients(drawn))
    which = np.array([2, 20])
    ((given, met),) = form.occurrences(batch[1:2], which)
    np.testing.assert_array_equal(given, which)
    for row, k in enumerate(which):
        found = windows.distances(batch[1].T, drawn, k)
        expected = (found[:, None] <= drawn.thresholds[k]).sum(axis=1)
        np.testing.assert_array_equal(met[row], expected)


def test_gaps_are_interpolated_in_windows():
    batch = make_batch([23, 40, 31, 12, 55, 30], 3)
    values = np.where(np.random.default_rng(1).random(batch.values.shape) < 0.3, np.nan, 0.0)
    values[: batch.offsets[1], 2] = np.nan
    gappy = slts.as_series(list(slts.SeriesBatch(batch.values + values, batch.offsets)))
    drawn = Snippets.draw(gappy, CODES, COUNT, seed=3)
    assert np.isfinite(drawn.values).all()
    expected = windows.features([x.T for x in gappy], drawn)
    found = drawn.features(drawn.counts(gappy), gappy.lengths)
    np.testing.assert_allclose(found, expected)
    # What snippets add belongs to observed values only; the rest to a channel without values.
    form = SnippetForm(np.arange(2), drawn, coefficients(drawn))
    for p in range(len(gappy)):
        series = gappy[p : p + 1]
        terms, by_snippet = form.attribute(series)
        whole = windows.attribution(series.values, drawn, form.coef)
        known = ~np.isnan(series.values)
        assert (terms[:, ~known] == 0.0).all()
        np.testing.assert_allclose(by_snippet.sum(axis=1), whole.sum(axis=(1, 2)))
        whole[:, :, ~known.any(axis=0)] = 0.0
        np.testing.assert_allclose(terms.sum(axis=1), whole.sum(axis=1), atol=1e-12)
