"""Snippets: what is drawn, counted, decided, attributed and described."""

from dataclasses import fields, replace

import numpy as np
import pytest

import slts
from slts.features.feature_map import Resources
from slts.features.snippets import Snippets
from tests.data import with_gaps
from tests.oracles import windows

COUNT, LENGTH = 30, 9
CPU = Resources("cpu", 1)
# Lengths of six series with three channels, or another number.
BATCHES = {
    "ragged": ([23, 40, 31, 12, 55, 30], 3),
    "equal lengths": ([24] * 6, 3),
    "one channel": ([23, 40, 31, 12, 55, 30], 1),
    "many channels": ([30, 31, 32, 33, 34, 35], 12),
    "shorter than a snippet": ([1, 2, 3, 5, 9, 10], 2),
    "single steps": ([1] * 6, 2),
    "gaps": ([23, 40, 31, 12, 55, 30], 3),
}
CODES = np.array([0, 1, 2, 0, 1, 2])


def make_batch(lengths, channels, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    series = [5.0 + rng.normal(size=(channels, n)).cumsum(axis=1) for n in lengths]
    return slts.as_series(with_gaps(series, gaps))


def draw(batch, codes=CODES, count=COUNT, seed=3):
    """Draw snippets that know their mean shares, as after a fit."""
    drawn = Snippets.draw(batch, codes, count, seed)
    return replace(drawn, shares=drawn(batch, Resources())[..., 0].mean(axis=0))


@pytest.fixture(scope="module", params=BATCHES)
def case(request):
    batch = make_batch(*BATCHES[request.param], gaps=0.3 * (request.param == "gaps"))
    return batch, draw(batch)


def coefficients(drawn, outputs=2):
    return np.random.default_rng(5).normal(size=(outputs, *drawn.shape))


# ---- draws


def test_values_are_windows_of_the_series(case):
    batch, drawn = case
    longest = int(batch.lengths.max())
    assert (len(drawn), drawn.n_steps) == (COUNT, LENGTH)
    assert (np.diff(drawn.dilations) >= 0).all()
    assert drawn.dilations[0] >= 1
    assert (LENGTH - 1) * drawn.dilations[-1] <= max(longest - 1, LENGTH - 1)
    assert drawn.longest == (None if len(set(batch.lengths)) == 1 else longest)
    for k in range(COUNT):
        channels = drawn.channels_of(k)
        assert (np.diff(channels) > 0).all()
        x = windows.filled(batch[drawn.series[k]].T, drawn).T
        steps = drawn.starts[k] + drawn.dilations[k] * np.arange(LENGTH)
        inside = steps.clip(0, x.shape[1] - 1)
        # A window is inside the series, or the series is inside the window.
        assert (steps == inside).all() or (steps[0] <= 0 and steps[-1] >= x.shape[1] - 1)
        gap, middle = min(drawn.dilations[k], x.shape[1]), steps[LENGTH // 2]
        for s in range(LENGTH):
            first, width = middle + gap * (s - LENGTH // 2), gap if drawn.averaged[k] else 1
            near = first - (width - 1) // 2 + np.arange(width)
            value = x[channels][:, near.clip(0, x.shape[1] - 1)].mean(axis=1)
            np.testing.assert_allclose(drawn.values_of(k)[:, s], value, rtol=1e-14)
    assert set(drawn.channels) == set(range(batch.n_channels))
    ways = np.stack([~drawn.shape_only & ~drawn.by_strength, drawn.shape_only, drawn.by_strength])
    assert (ways.sum(axis=0) == 1).all()
    assert ways.any(axis=1).all()
    assert 0.2 < drawn.averaged.mean() < 0.8


def test_all_classes_are_drawn_equally_and_by_the_seed():
    batch, codes = make_batch([20] * 9, 2), np.array([0, 0, 0, 0, 0, 0, 0, 1, 2])
    one, same, other = (Snippets.draw(batch, codes, 90, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(np.bincount(codes[one.series]), [30, 30, 30])
    for name in {field.name for field in fields(Snippets)} - {"scale"}:
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
    assert not np.array_equal(one.series, other.series)


def test_thresholds_are_quantiles_of_the_distances_within_the_class():
    """With one series per class there is one series to compare with."""
    batch = make_batch([30, 44], 2)
    drawn = Snippets.draw(batch, np.array([0, 1]), 30, seed=0)
    for k in range(30):
        distances = windows.distances(batch[drawn.series[k]].T, drawn, k)
        expected = np.quantile(distances, [0.02, 0.1, 0.35, 0.75])
        np.testing.assert_allclose(drawn.thresholds[k], expected, rtol=1e-9, atol=1e-8)


# ---- features and decisions


def test_features_and_decisions_are_those_of_the_reference(case):
    batch, drawn = case
    coef = coefficients(drawn)
    for series in (batch, make_batch([1, 2, 17, 70], batch.n_channels, seed=1), batch[:0]):
        features = windows.features([x.T for x in series], drawn).reshape(-1, *drawn.shape)
        np.testing.assert_array_equal(drawn(series, Resources("cpu", 3)), features)
        parts = np.einsum("ikqm,ckqm->ick", features, coef)
        np.testing.assert_allclose(drawn.by_landmark(series, coef, CPU), parts, atol=1e-12)
        values = drawn.decide(series, coef, CPU)
        np.testing.assert_allclose(values, parts.sum(axis=2), atol=1e-12)


@pytest.mark.parametrize("which", [[COUNT], [-1, 3]])
def test_snippets_that_do_not_exist_are_an_error(case, which):
    batch, drawn = case
    with pytest.raises(IndexError, match=f"There are {COUNT} snippets"):
        next(drawn.distances(batch[:1], np.array(which)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("first", np.array([0, 1])),
        ("channels", np.array([0, 1, 9])),
        ("dilations", np.array([2, 1])),
        ("dilations", np.array([0, 1])),
        ("thresholds", np.zeros((2, 3))),
        ("series", np.zeros(3, int)),
        ("longest", 0),
    ],
)
def test_fields_must_fit(field, value):
    """The kernel trusts these arrays."""
    drawn = Snippets.draw(make_batch([20, 30], 2), np.array([0, 1]), 2, seed=3)
    with pytest.raises(ValueError, match=field):
        replace(drawn, **{field: value})


# ---- contributions


def test_contributions_are_those_of_the_reference(case):
    batch, drawn = case
    coef = coefficients(drawn)
    for p in range(4):
        x = batch[p : p + 1]
        contributions, rest = drawn.attribute(x, coef)
        terms = windows.attribution(x.values, drawn, coef)
        assert (contributions[:, np.isnan(x.values)] == 0.0).all()
        np.testing.assert_allclose(contributions, terms, atol=1e-12)
        total = contributions.sum(axis=(1, 2)) + rest
        np.testing.assert_allclose(total, drawn.decide(x, coef, CPU)[0], atol=1e-9)
        doubled = drawn.attribute(x, 2.0 * coef)
        np.testing.assert_allclose(doubled.contributions, 2.0 * contributions, atol=1e-12)
        parts = [drawn.attribute(x, coef, k) for k in range(COUNT)]
        for k in (0, 2):
            whole = sum(part[k % 2] for part in parts)
            np.testing.assert_allclose(whole, (contributions, rest)[k % 2], atol=1e-11)
        by_snippet = drawn.by_landmark(x, coef, CPU)[0]
        totals = np.transpose([part[0].sum(axis=(1, 2)) + part[1] for part in parts])
        np.testing.assert_allclose(totals, by_snippet, atol=1e-12)


def test_snippets_of_the_training_series_add_nothing_on_average():
    batch = make_batch([24] * 6, 3)
    drawn = draw(batch)
    coef = coefficients(drawn)
    added = drawn.by_landmark(batch, coef, CPU) - drawn.usual(batch.lengths, coef)
    np.testing.assert_allclose(added.mean(axis=0), 0.0, atol=1e-12)
    assert np.abs(added).max() > 0.01


def test_values_beyond_the_ends_get_no_share():
    """Windows whose steps are farther apart than the series is long see their centre only."""
    batch = make_batch([40, 30, 30, 30, 30, 30], 2)
    drawn = draw(batch)
    apart = replace(drawn, dilations=np.full(COUNT, 99), averaged=np.zeros(COUNT, dtype=bool))
    coef = coefficients(drawn)
    for k in range(COUNT):
        terms = apart.attribute(batch[:1], coef, k).contributions[:, :, drawn.channels_of(k)]
        met = apart.occurrences(batch[:1], np.array([k]))[0]
        added = apart.step_weights(40, coef)[k][met].T
        shares = windows.squares(drawn, k)[:, LENGTH // 2]
        np.testing.assert_allclose(terms, added[:, :, None] * shares, atol=1e-12)


# ---- descriptions


def described(n_channels, length, condition):
    """Snippets of six series, and the first that fulfils a condition."""
    drawn = draw(make_batch([length] * 6, n_channels), CODES % 2, 60, 0)
    return drawn, int(np.flatnonzero(condition(drawn))[0])


def test_steps_and_series_are_named():
    for gap, length, averaged, steps, shown in (
        (1, 80, False, "steps {} to {}", (0, 8)), (1, 80, True, "steps {} to {}", (0, 8)),
        (3, 80, False, "steps {}, {}, ..., {}", (0, 3, 24)),
        (3, 80, True, "means of 3 steps around {}, {}, ..., {}", (0, 3, 24)),
        (4, 80, True, "means of 4 steps around {}, {}, ..., {}", (0, 4, 32)),
        (1, 5, False, "all steps", ()),
    ):  # fmt: skip
        drawn, k = described(
            1, length, lambda s, g=gap, a=averaged: (s.dilations == g) & (s.averaged == a)
        )
        text = steps.format(*(drawn.starts[k] + step for step in shown))
        assert drawn.describe(k, series="tide 3") == f"{text} of tide 3"
        assert drawn.describe(k).endswith(f" of training series {drawn.series[k]}")
        # The steps that it sees, from its middle one.
        if shown and gap > 1:
            seen = drawn.reach(k) + LENGTH // 2 * gap
            around = np.arange(gap) - (gap - 1) // 2 if averaged else [0]
            every = np.arange(0, LENGTH * gap, gap)[:, np.newaxis] + around
            assert seen.tolist() == every.ravel().tolist()
    # If other series are longer, the steps of a short one may be apart.
    for averaged, text in ((True, "means of 3 steps of"), (False, "every 3 steps of")):
        far = {"starts": np.full(60, -2), "dilations": np.full(60, 3)}
        whole = replace(drawn, averaged=np.full(60, averaged), **far)
        assert whole.describe(k).startswith(text)


def test_the_most_prominent_channels_are_named():
    for width, text in (
        (1, "channel {}"),
        (2, "channels {} and {}"),
        (3, "channels {}, {} and {}"),
    ):
        drawn, k = described(3, 40, lambda s, width=width: np.diff(s.first) == width)
        channels = drawn.channels_of(k)
        assert drawn.describe(k).endswith(", " + text.format(*channels))
        assert drawn.describe(k, "abc").endswith(", " + text.format(*("abc"[u] for u in channels)))
    drawn, k = described(12, 40, lambda s: (np.diff(s.first) == 8) & s.shape_only)
    rows, channels = drawn.prominent_rows(k, 4), drawn.channels_of(k)
    text = ", channels {}, {}, {}, {} and 4 more"
    assert drawn.describe(k).endswith(text.format(*channels[rows]))
    bends = np.diff(drawn.values_of(k), 2, axis=1) / drawn.scale.spread[channels, np.newaxis]
    sizes = np.linalg.norm(bends, axis=1)
    assert sizes[rows].min() >= np.delete(sizes, rows).max()
