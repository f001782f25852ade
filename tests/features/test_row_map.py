"""Row maps: the rows that are aligned, what each step and channel contributes, odd channels."""

from dataclasses import replace

import numpy as np
import pytest

import slts
from slts.features.row_map import ChannelScale, Components, RowMap, pool_steps, spread_of
from slts.series import as_series
from slts.series.values import transform_rows
from tests.data import waves, with_gaps

MAPS = {
    "pooled": lambda b: RowMap.fit_pooled(b, max_length=6, n_components=9),
    "components": lambda b: RowMap.fit_pooled(b, max_length=6, n_components=3),
    "plain": lambda b: RowMap.fit(b, scale=None, homogeneous=False, normalize=False),
    "scaled": lambda b: RowMap.fit(b, scale="standard", homogeneous=True, normalize=True),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_linear_functions_of_the_rows_are_attributed_exactly(name, gaps, rng):
    batch = slts.as_series(with_gaps(waves(20, channels=4, lengths=(5, 30))[0], gaps))
    row_map = MAPS[name](batch)
    rows = row_map(batch)
    if row_map.normalize:
        np.testing.assert_allclose(np.linalg.norm(rows.values, axis=1), 1.0)
    if row_map.max_length is not None:
        assert rows.lengths.max() <= row_map.max_length
    for p in range(4):
        one = batch[p : p + 1]
        trace = row_map.trace(one)
        np.testing.assert_allclose(trace.rows.values.T, rows[p], rtol=0, atol=1e-12)
        slopes = rng.normal(size=(2, *trace.rows.values.shape))
        contributions, rest = trace.attribute(slopes)
        np.testing.assert_allclose(
            contributions.sum(axis=(1, 2)) + rest, (trace.rows.values * slopes).sum(axis=(1, 2))
        )
        assert contributions.shape == (2, one.n_steps, 4)
        assert (contributions[:, np.isnan(one.values)] == 0.0).all()


def test_series_are_mapped_alone_as_in_a_batch():
    """Steps of several series are mapped together, in parts that threads share."""
    batch = slts.as_series(waves(3000, lengths=(10, 20))[0])
    assert batch.n_steps > 20_000
    row_map = MAPS["components"](batch)
    whole = row_map(batch, 3)
    assert row_map(batch, 1) == whole
    for p in (0, 1500, 2999):
        np.testing.assert_array_equal(row_map(batch[p : p + 1]).values.T, whole[p])


def test_a_fit_does_not_depend_on_late_series_alone():
    """A scale is estimated from the first series, which are in random order."""
    X = [np.full((1, 1000), float(k % 2)) + np.linspace(0, 1e-3, 1000) for k in range(150)]
    row_map = MAPS["pooled"](slts.as_series(X))
    assert row_map.scale.centre[0] == pytest.approx(0.5, abs=0.01)
    assert row_map.scale.spread[0] == pytest.approx(0.5, abs=0.01)


def test_fields_must_fit():
    row_map = MAPS["components"](slts.as_series(waves(4, channels=4)[0]))
    for value in (None, -1.0):
        with pytest.raises(ValueError, match="constant"):
            replace(row_map, constant=value)


# -- scales and other maps of the channels


@pytest.fixture
def batch(rng):
    return as_series([rng.normal(size=(3, int(n))) * [[1.0], [50.0], [0.0]] + 7 for n in (4, 9, 1)])


def test_standard_scaling_gives_mean_zero_and_deviation_one(batch):
    scaled = ChannelScale.fit(batch, "standard")(batch.values)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 0], atol=1e-12)


def test_robust_scaling_ignores_outliers(rng):
    values = rng.normal(size=(1, 2001))
    values[0, :20] = 1e6
    scale = ChannelScale.fit(as_series([values]), "robust")
    assert abs(scale.centre[0]) < 0.1
    assert scale.spread[0] == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("kind", ["robust", "asinh"])
def test_one_glitch_does_not_set_the_scale(rng, kind):
    values = rng.normal(size=(1, 1800))
    values[0, 7] = 1e12
    assert ChannelScale.fit(as_series([values]), kind).spread[0] == pytest.approx(1.0, rel=0.1)


def test_values_beyond_the_range_stay_finite():
    scale = ChannelScale(np.zeros(1), np.full(1, 1e-100), squash=False)
    assert np.isfinite(scale(np.array([[1e300], [-1e300]]))).all()


def test_robust_scaling_falls_back_where_most_steps_are_equal(rng):
    values = np.zeros((1, 1000))
    values[0, :100] = rng.normal(size=100)
    scale = ChannelScale.fit(as_series([values]), "robust")
    assert 0.05 < scale.spread[0] < 2.0
    values[0, 5:100] = 0.0
    values[0, :5] = 4.0
    assert ChannelScale.fit(as_series([values]), "robust").spread[0] == pytest.approx(values.std())


def test_asinh_is_linear_near_the_centre_and_logarithmic_far_away(rng):
    batch = as_series([rng.normal(size=(1, 500))])
    plain, squashed = (ChannelScale.fit(batch, kind) for kind in ("robust", "asinh"))
    near, far = np.array([[1e-3]]) + plain.centre, np.array([[1e6]])
    np.testing.assert_allclose(squashed(near), plain(near), rtol=1e-6)
    np.testing.assert_allclose(squashed(far), np.log(2 * plain(far)), rtol=1e-6)


def test_huge_channels_are_scaled_all_the_same(rng):
    values = rng.normal(size=(1, 50))
    for size in (1e300, 1e-300):
        scaled = ChannelScale.fit(as_series([size * values]), "standard")(size * values.T)
        np.testing.assert_allclose(scaled.std(), 1.0)


def test_components_keep_the_directions_of_most_variance(rng):
    values = rng.normal(size=(300, 1)) @ np.array([[3.0, 4.0]]) + rng.normal(size=(300, 2)) * 0.01
    found = Components.fit(values, 1)
    # The largest entry of a column is positive, whatever the library for linear algebra.
    np.testing.assert_allclose(found.basis[:, 0], [0.6, 0.8], atol=1e-2)
    np.testing.assert_allclose(found(values).mean(), 0, atol=1e-9)
    turned = Components.fit(values * [1.0, -1.0], 1)
    np.testing.assert_allclose(turned.basis[:, 0], [-0.6, 0.8], atol=1e-2)


def test_distances_of_transformed_rows_are_those_under_the_metric(rng):
    batch = as_series([rng.normal(size=(3, 4))])
    root = rng.normal(size=(3, 3))
    metric = root @ root.T + np.eye(3)
    found = transform_rows(batch, metric)
    a, b = batch.values[0] - batch.values[1], found.values[0] - found.values[1]
    assert b @ b == pytest.approx(a @ metric @ a)
    assert found.offsets.tolist() == [0, 4]
    with pytest.raises(ValueError, match=r"shape \(3, 3\).*Got shape \(2, 3\)"):
        transform_rows(batch, metric[:2])
    with pytest.raises(ValueError, match=r"positive definite. Its smallest eigenvalue is -2\."):
        transform_rows(batch, np.diag([1.0, 5.0, -2.0]))


def test_the_spread_of_a_constant_column_is_one():
    values = np.array([[1.0, 7.0, np.nan], [3.0, 7.0, 2.0], [5.0, 7.0, 6.0]])
    np.testing.assert_allclose(spread_of(values), [np.std([1.0, 3.0, 5.0]), 1.0, 2.0])


def test_pooling_averages_long_series_and_leaves_the_others():
    batch = as_series([np.arange(5.0)[None], np.arange(2.0)[None], np.array([[7.0]])])
    pooled = pool_steps(batch, 3)
    np.testing.assert_array_equal(pooled.values[:, 0], [0.5, 2.5, 4.0, 0, 1, 7.0])
    np.testing.assert_array_equal(pooled.lengths, [3, 2, 1])
    assert pool_steps(batch, 5) is batch
    assert pool_steps(batch, None) is batch
