"""Row maps: the rows that are aligned, and what each step and channel contributes to them."""

from dataclasses import replace

import numpy as np
import pytest

import slts
from slts.features.row_map import REPRESENTATIONS, RowMap
from tests.data import waves, with_gaps

MAPS = {
    **{
        name: lambda batch, name=name: RowMap.fit_representation(
            batch, name, max_length=6, n_components=3
        )
        for name in REPRESENTATIONS
    },
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
    row_map = MAPS["changes"](batch)
    whole = row_map(batch, 3)
    assert row_map(batch, 1) == whole
    for p in (0, 1500, 2999):
        np.testing.assert_array_equal(row_map(batch[p : p + 1]).values.T, whole[p])


def test_a_fit_does_not_depend_on_late_series_alone():
    """A scale is estimated from the first series, which are in random order."""
    X = [np.full((1, 1000), float(k % 2)) + np.linspace(0, 1e-3, 1000) for k in range(150)]
    row_map = MAPS["values"](slts.as_series(X))
    assert row_map.scale.centre[0] == pytest.approx(0.5, abs=0.01)
    assert row_map.scale.spread[0] == pytest.approx(0.5, abs=0.01)


def test_fields_must_fit():
    row_map = MAPS["changes"](slts.as_series(waves(4)[0]))
    for name, value in {"change_spread": np.ones(2), "constant": None}.items():
        with pytest.raises(ValueError, match=name):
            replace(row_map, **{name: value})
    with pytest.raises(ValueError, match="constant"):
        replace(row_map, constant=-1.0)
