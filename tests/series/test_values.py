"""Missing values: steps that are left out, zeros, interpolation, statistics of the rest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slts import SeriesBatch, as_series
from slts.features.row_map import (
    ChannelScale,
    Components,
    differences,
    mean_shares,
    pool_steps,
)
from slts.series import normalize_rows
from slts.series.keys import series_digests
from slts.series.values import fill_gaps, give_to_observed, leave_out_missing

NAN = np.nan


def with_gaps(seed, share=0.4, lengths=(1, 4, 9), channels=3):
    """Series with gaps, the first with one step; every series has a value."""
    rng = np.random.default_rng(seed)
    series = [rng.normal(size=(channels, n)) for n in lengths]
    for x in series:
        x[rng.random(x.shape) < share] = NAN
        if np.isnan(x).all():
            x[0, -1] = 1.0
    return as_series(series)


def test_missing_values_are_zero_and_steps_without_values_are_left_out():
    batch = as_series([[[NAN, 1.0, NAN, 3.0], [NAN, 2.0, NAN, NAN]], [[4.0], [NAN]]])
    rows = leave_out_missing(batch)
    assert rows.values.tolist() == [[1.0, 2.0], [3.0, 0.0], [4.0, 0.0]]
    assert rows.lengths.tolist() == [2, 1]


def test_series_without_gaps_are_returned_as_they_are():
    batch, terms = as_series([[[1.0, 2.0]], [[3.0]]]), np.ones((2, 2, 1))
    assert leave_out_missing(batch) is batch
    assert fill_gaps(batch) is batch
    assert give_to_observed(terms, batch[:1]) is terms


def test_a_channel_that_a_series_lacks_gets_its_mean_over_all_series():
    batch = as_series(
        [[[1.0, NAN, 3.0], [NAN] * 3, [NAN] * 3], [[5.0, 6.0], [2.0, 4.0], [NAN] * 2]]
    )
    filled = [[1.0, 3.0, 0.0], [2.0, 3.0, 0.0], [3.0, 3.0, 0.0], [5.0, 2.0, 0.0], [6.0, 4.0, 0.0]]
    assert fill_gaps(batch).values.tolist() == filled


def test_rows_are_normalised_over_what_is_observed():
    batch = as_series([[[3.0, NAN], [4.0, NAN], [NAN, 2.0]]])
    assert normalize_rows(batch).values.tolist() == [[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]


@given(st.integers(0, 1000))
def test_gaps_are_interpolated_linearly_and_ends_are_held(seed):
    batch, default = with_gaps(seed), np.array([7.0, 8.0, 9.0])
    filled = fill_gaps(batch, default)
    for x, found in zip(batch, filled, strict=True):
        steps = np.arange(x.shape[1])
        for c, channel in enumerate(x):
            known = ~np.isnan(channel)
            expected = default[c]
            if known.any():
                expected = np.interp(steps, steps[known], channel[known])
            np.testing.assert_allclose(found[c], np.broadcast_to(expected, len(steps)))
    assert filled.lengths.tolist() == batch.lengths.tolist()


@given(st.integers(0, 1000))
def test_contributions_of_interpolated_values_go_to_the_values_they_come_from(seed):
    batch = with_gaps(seed, lengths=(9,))
    slopes = np.random.default_rng(seed).normal(size=(2, 9, 3))[:, : batch.n_steps]
    given_back = give_to_observed(slopes, batch)
    missing = np.isnan(batch.values)
    assert (given_back[:, missing] == 0.0).all()
    # With slopes as terms, what an observed value receives is its effect on the filled series.
    for i, c in np.argwhere(~missing):
        moved = batch.values.copy()
        moved[i, c] += 1.0
        changed = fill_gaps(SeriesBatch(moved, batch.offsets), np.zeros(3)).values
        change = changed - fill_gaps(batch, np.zeros(3)).values
        np.testing.assert_allclose(given_back[:, i, c], (slopes * change).sum(axis=(1, 2)))


@pytest.mark.parametrize("kind", ["standard", "robust", "asinh"])
def test_scales_are_those_of_the_observed_values(kind, rng):
    values = rng.normal(size=(40, 2))
    gappy = np.vstack([values, np.full((5, 2), NAN)])[rng.permutation(45)]
    found = ChannelScale.fit(SeriesBatch(gappy, [0, 45]), kind)
    expected = ChannelScale.fit(SeriesBatch(values, [0, 40]), kind)
    np.testing.assert_allclose(found.centre, expected.centre, atol=1e-14)
    np.testing.assert_allclose(found.spread, expected.spread)
    assert np.isnan(found(gappy)).sum() == np.isnan(gappy).sum()


def test_a_channel_without_any_value_has_a_scale():
    batch = as_series([[[1.0, 2.0, 4.0], [NAN, NAN, NAN]]])
    for kind in ("standard", "robust"):
        scale = ChannelScale.fit(batch, kind)
        assert (scale.centre[1], scale.spread[1]) == (0.0, 1.0)


def test_missing_values_add_nothing_to_components(rng):
    values = rng.normal(size=(30, 4)) + 5.0
    components = Components.fit(values, 2)
    values[3, 1] = NAN
    expected = (values[3, [0, 2, 3]] - components.centre[[0, 2, 3]]) @ components.basis[[0, 2, 3]]
    np.testing.assert_allclose(components(values)[3], expected)
    refitted = Components.fit(values, 2)
    np.testing.assert_allclose(refitted.centre, np.nanmean(values, axis=0))


def test_averages_are_over_observed_values():
    batch = as_series([[[1.0, NAN, 4.0, 6.0, NAN, NAN], [NAN, NAN, 1.0, 2.0, 3.0, 5.0]]])
    np.testing.assert_array_equal(pool_steps(batch, 3).values, [[1.0, NAN], [5.0, 1.5], [NAN, 4.0]])
    mean, share = mean_shares(batch, 3)
    np.testing.assert_array_equal(mean, [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(share.T, [[1, 0, 0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5, 0.5, 0.5]])
    for unchanged in (None, 6):
        mean, share = mean_shares(batch, unchanged)
        np.testing.assert_array_equal(mean, np.arange(6))
        np.testing.assert_array_equal(share, ~np.isnan(batch.values))


def test_differences_bridge_gaps_and_are_missing_with_their_values():
    values = np.array([[0.0], [NAN], [4.0], [5.0], [NAN]])
    found = differences(values, np.array([0, 5]))
    np.testing.assert_array_equal(found[:, 0], [2.0, NAN, 1.5, 0.5, NAN])


def test_equal_series_have_equal_keys_whatever_the_bits_of_nan():
    values = np.array([[1.0], [NAN], [2.0]])
    other = values.copy()
    other[1, 0] = np.uint64(0xFFF8_0000_0000_0001).view(np.float64)
    assert values.tobytes() != other.tobytes()
    batches = [SeriesBatch(v, [0, 3]) for v in (values, other)]
    assert batches[0] == batches[1]
    assert series_digests(batches[0]) == series_digests(batches[1])
