"""Values of series: gaps that are left out, zero or interpolated; unit rows at every magnitude."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from slts import SeriesBatch, as_series
from slts.features.row_map import ChannelScale, Components, mean_shares, pool_steps
from slts.series import normalize_rows
from slts.series.keys import series_digests
from slts.series.values import fill_gaps, leave_out_missing
from tests.data import with_gaps

NAN = np.nan


def gappy(seed, share=0.4, lengths=(1, 4, 9), channels=3):
    """Series with gaps, the first with one step."""
    rng = np.random.default_rng(seed)
    return as_series(with_gaps([rng.normal(size=(channels, n)) for n in lengths], share, seed))


def test_missing_values_are_zero_and_steps_without_values_are_left_out():
    batch = as_series([[[NAN, 1.0, NAN, 3.0], [NAN, 2.0, NAN, NAN]], [[4.0], [NAN]]])
    rows = leave_out_missing(batch)
    assert rows.values.tolist() == [[1.0, 2.0], [3.0, 0.0], [4.0, 0.0]]
    assert rows.lengths.tolist() == [2, 1]


def test_series_without_gaps_are_returned_as_they_are():
    batch = as_series([[[1.0, 2.0]], [[3.0]]])
    assert leave_out_missing(batch) is batch
    assert fill_gaps(batch) is batch


def test_a_channel_that_a_series_lacks_gets_its_mean_over_all_series():
    batch = as_series([[[1, NAN, 3], [NAN] * 3, [NAN] * 3], [[5, 6], [2, 4], [NAN] * 2]])
    filled = [[1.0, 3.0, 0.0], [2.0, 3.0, 0.0], [3.0, 3.0, 0.0], [5.0, 2.0, 0.0], [6.0, 4.0, 0.0]]
    assert fill_gaps(batch).values.tolist() == filled


def test_rows_are_normalised_over_what_is_observed():
    batch = as_series([[[3.0, NAN], [4.0, NAN], [NAN, 2.0]]])
    assert normalize_rows(batch).values.tolist() == [[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]


@given(st.integers(0, 1000))
def test_gaps_are_interpolated_linearly_and_ends_are_held(seed):
    batch, default = gappy(seed), np.array([7.0, 8.0, 9.0])
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


def test_equal_series_have_equal_keys_whatever_the_bits_of_nan():
    values = np.array([[1.0], [NAN], [2.0]])
    other = values.copy()
    other[1, 0] = np.uint64(0xFFF8_0000_0000_0001).view(np.float64)
    assert values.tobytes() != other.tobytes()
    batches = [SeriesBatch(v, [0, 3]) for v in (values, other)]
    assert batches[0] == batches[1]
    assert series_digests(batches[0]) == series_digests(batches[1])


ROWS = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)


def batch_of(values, names=None):
    values = np.asarray(values, dtype=np.float64)
    return SeriesBatch(values, [0, len(values)], names)


@given(hnp.arrays(np.float64, ROWS, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_rows_have_unit_norm_or_are_zero(values):
    out = normalize_rows(batch_of(values)).values
    zero = (values == 0).all(axis=1)
    np.testing.assert_array_equal(out[zero], 0.0)
    np.testing.assert_allclose(np.linalg.norm(out[~zero], axis=1), 1.0, rtol=1e-14)
    assert (np.sign(out) * np.sign(values) >= 0).all()


@given(hnp.arrays(np.float64, ROWS, elements=st.floats(-1e6, 1e6).filter(lambda v: abs(v) > 1e-6)))
def test_ordinary_rows_are_divided_by_their_norm_to_the_bit(values):
    norms = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    np.testing.assert_array_equal(normalize_rows(batch_of(values)).values, values / norms)


@pytest.mark.parametrize("scale", [1e-200, 1e200, 5e-324, 1e-310, 1e-154, 4e307])
def test_extreme_rows_do_not_overflow_or_vanish(scale):
    out = normalize_rows(batch_of([[3 * scale, 4 * scale]])).values
    np.testing.assert_allclose(out, [[0.6, 0.8]], rtol=1e-12 if scale > 1e-307 else 1e-2)


def test_lengths_and_names_are_kept_and_the_input_is_unchanged():
    batch = SeriesBatch([[3.0, 4.0], [6.0, 8.0]], [0, 1, 2], ["a", "b"])
    out = normalize_rows(batch)
    np.testing.assert_array_equal(out.offsets, batch.offsets)
    assert out.channel_names == ("a", "b")
    assert not out.values.flags.writeable
    np.testing.assert_array_equal(batch.values, [[3.0, 4.0], [6.0, 8.0]])


@pytest.mark.parametrize(("rows", "expected"), [
    ([[5e-324, 0.0]], [[1.0, 0.0]]), ([[1e300, 1e-300]], [[1.0, 0.0]]),
    ([[3.0], [-0.1], [0.0]], [[1.0], [-1.0], [0.0]]),
])  # fmt: skip
def test_rows_of_one_large_entry_keep_only_its_sign(rows, expected):
    np.testing.assert_array_equal(normalize_rows(batch_of(rows)).values, expected)
    assert len(normalize_rows(batch_of(rows)[:0])) == 0
