"""The window kernel against the slow reference, on every instruction set."""

from dataclasses import replace

import numpy as np
import pytest

import slts
from slts.alignment.cpu import available_targets
from slts.features.feature_map import Resources
from slts.features.row_map import ChannelScale
from slts.features.snippets import Snippets
from tests.oracles import windows

TARGETS = [target.name for target in available_targets()]


@pytest.fixture(params=TARGETS)
def target(request, monkeypatch):
    monkeypatch.setenv("SLTS_ISA", request.param)


def make(rng, count, channels, *, dilations, n_steps=11, n_thresholds=4):
    """Random snippets in units with an offset, compared by values, shape and strength in turn."""
    widths = rng.integers(1, channels + 1, size=count)
    own = [np.sort(rng.permutation(channels)[:width]) for width in widths]
    scale = ChannelScale(rng.normal(size=channels), rng.uniform(0.5, 2.0, channels), squash=False)
    which = np.concatenate(own)
    values = scale.centre[which, None] + scale.spread[which, None] * rng.normal(
        size=(len(which), n_steps)
    )
    near = 2.0 * n_steps * widths[:, None] * np.linspace(0.6, 1.2, n_thresholds)
    by_strength = np.arange(count) % 3 == 2
    # Near steps of the right sign: the distance to an exaggeration is about its squared norm.
    near[by_strength] = 1e4 * widths[by_strength, None] + 100 * np.linspace(-2, 2, n_thresholds)
    return Snippets(
        values=values,
        first=np.append(0, np.cumsum(widths)),
        channels=which,
        dilations=np.sort(rng.choice(dilations, size=count)).astype(np.int64),
        averaged=np.arange(count) % 2 == 0,
        shape_only=np.arange(count) % 3 == 0,
        by_strength=by_strength,
        thresholds=near,
        shares=np.zeros_like(near),
        series=np.zeros(count, dtype=np.int64),
        starts=np.zeros(count, dtype=np.int64),
        scale=scale,
        longest=None,
    )


def noise(rng, snippets, n):
    scale = snippets.scale
    return scale.centre + scale.spread * rng.normal(size=(n, len(scale.centre)))


def as_batch(*series):
    return slts.as_series(series, layout="time_first")


def counts_of(snippets, *series, n_jobs=1):
    """The steps of some series at which each snippet occurs, from its features."""
    shares = snippets(as_batch(*series), Resources("cpu", n_jobs))[..., 0]
    lengths = np.array([len(x) for x in series])
    return np.rint(shares * lengths[:, None, None]).astype(int)


def all_distances(snippets, x):
    """Distances of all snippets, shape (snippets, steps)."""
    parts = snippets.distances(as_batch(x), np.arange(len(snippets)))
    return np.concatenate([rows for _, rows in parts])


def assert_counts_are_those_of_the_reference(counts, x, snippets):
    """All steps, but the few whose distances are within the rounding of a raised threshold."""
    least, most = (windows.counts(x, snippets, raised) for raised in (0.0, 2.01))
    assert (least <= counts).all()
    assert (counts <= most).all()
    # No snippet that is drawn has more channels.
    drawn = np.diff(snippets.first) <= 9
    assert (most - least)[drawn].sum() <= 1 + 2e-3 * len(x) * counts.size


SHAPES = [
    *((4, channels, n_steps, 4, n, [1, 2, 5, 10**15])
      for channels, n_steps in [(1, 11), (3, 3), (5, 7), (12, 11)]
      for n in (1, 2, 7, 15, 16, 17, 33, 64, 130, 401)),
    # More steps than are compared at once.
    (3, 2, 11, 4, 2081, [1, 300]),
    *((6, 2, 11, n_thresholds, 40, [1, 3]) for n_thresholds in (1, 3, 8, 13)),
    # Univariate windows are compared in pairs, and many channels in shorter blocks.
    *((37, channels, 11, 4, n, [1, 1, 1, 2]) for channels in (1, 40) for n in (5, 20, 30, 70)),
]  # fmt: skip


@pytest.mark.parametrize(("count", "channels", "n_steps", "n_thresholds", "n", "dilations"), SHAPES)
def test_distances_and_counts_are_those_of_the_reference(
    target, count, channels, n_steps, n_thresholds, n, dilations
):
    rng = np.random.default_rng([n, channels])
    snippets = make(
        rng, count, channels, dilations=dilations, n_steps=n_steps, n_thresholds=n_thresholds
    )
    x = noise(rng, snippets, n)
    distances = all_distances(snippets, x)
    expected = np.array([windows.distances(x, snippets, k) for k in range(count)])
    np.testing.assert_allclose(distances, expected, rtol=1e-11, atol=1e-11)
    which = np.unique([0, count // 2, count - 1])
    ((given, some),) = snippets.distances(as_batch(x), which)
    np.testing.assert_array_equal(given, which)
    np.testing.assert_array_equal(some, distances[which])
    counts = counts_of(snippets, x)[0]
    assert_counts_are_those_of_the_reference(counts, x, snippets)
    # The thresholds tell the steps apart, unless there are few.
    assert n < 64 or 0 < counts.sum() < counts.size * n


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_threads_blocks_and_place_in_the_batch_change_no_bit(target, size):
    rng = np.random.default_rng(2)
    snippets = make(rng, 40, 3, dilations=[1, 2, 4, 9])
    series = [size * noise(rng, snippets, n) for n in (1, 900, 5, 33, 2, 260, 12)]
    # Thresholds at distances that occur.
    distances = np.concatenate([all_distances(snippets, x) for x in series], axis=1)
    limits = np.sort(distances[:, rng.permutation(distances.shape[1])[:4]], axis=1)
    snippets = replace(snippets, thresholds=limits)
    whole = counts_of(snippets, *series)
    np.testing.assert_array_equal(counts_of(snippets, *series, n_jobs=3), whole)
    np.testing.assert_array_equal(counts_of(snippets, *series[::-1]), whole[::-1])
    for p, x in enumerate(series):
        np.testing.assert_array_equal(counts_of(snippets, x, n_jobs=2)[0], whole[p])
        assert_counts_are_those_of_the_reference(whole[p], x, snippets)
        met = snippets.occurrences(as_batch(x), np.arange(40))[:, None]
        np.testing.assert_array_equal((met >= [[4], [3], [2], [1]]).sum(axis=2), whole[p])
        assert snippets.occurrences(as_batch(x), np.arange(0)).shape == (0, len(x))
        some = snippets.occurrences(as_batch(x), np.array([3, 4, 30]))
        np.testing.assert_array_equal(some, met[[3, 4, 30], 0])


def test_flat_parts_have_no_shape(target):
    """A constant series equals a constant snippet, and is equally far from all others."""
    rng = np.random.default_rng(4)
    snippets = make(rng, 2, 1, dilations=[1])
    values = np.concatenate([np.full((1, 11), 5.0), snippets.values[1:]])
    snippets = replace(snippets, values=values, shape_only=np.ones(2, dtype=bool))
    distances = all_distances(snippets, np.full((20, 1), 3.0))
    np.testing.assert_allclose(distances[0], 0.0, atol=1e-12)
    own = windows.bends(values[1] / snippets.scale.spread[0])
    np.testing.assert_allclose(distances[1], np.sum(own**2), rtol=1e-9)


def test_strong_copies_are_nearest_at_any_level(target):
    rng = np.random.default_rng(8)
    snippets = replace(make(rng, 1, 1, dilations=[1]), by_strength=np.ones(1, dtype=bool))
    snippets = replace(snippets, shape_only=np.zeros(1, dtype=bool))
    own, spread = snippets.values[0], snippets.scale.spread[0]
    moves = own - own.mean()
    distances = [
        all_distances(snippets, (level * spread + size * moves)[:, np.newaxis])[0, 5]
        for level, size in ((0, 2), (3, 2), (3, 1), (0, 1), (0, 0), (0, -1), (0, -2))
    ]
    assert (
        distances[0]
        < distances[1]
        < distances[3]
        < distances[2]
        < distances[4]
        < distances[5]
        < distances[6]
    )


def test_values_far_out_of_range_are_far_away(target):
    rng = np.random.default_rng(5)
    snippets = make(rng, 6, 2, dilations=[1, 4])
    for size in (1e150, 1e300):
        x = size * noise(rng, snippets, 30)
        assert np.isfinite(all_distances(snippets, x)).all()
        assert (counts_of(snippets, x)[:, ~snippets.shape_only] == 0).all()
        assert (counts_of(snippets, x) <= 30).all()
