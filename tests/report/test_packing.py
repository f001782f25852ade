"""Packed arrays and paths can be unpacked; downsampling preserves paths and totals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slts
from slts.report.collect import choose_series
from slts.report.packing import Bins, bin_path, moves, pack
from tests.report.unpacking import path_of, unpack


@given(
    values=st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), max_size=30),
    bits=st.sampled_from([8, 16]),
)
def test_entries_and_sums_of_runs_are_off_by_one_unit_at_most(values, bits):
    packed, array = pack(values, bits=bits), np.array(values)
    off = np.cumsum(unpack(packed)) - np.cumsum(array)
    unit = 1.0001 * np.abs(array).max(initial=0.0) / (126 if bits == 8 else 32766)
    assert np.abs(off).max(initial=0.0) <= 0.5001 * unit + 1e-9 * np.abs(array).sum()
    assert len(unpack(packed)) == len(values)


@pytest.mark.parametrize("bits", [8, 16])
def test_missing_values_stay_missing(bits):
    values = np.array([np.nan, 1.0, -2.0, np.nan, 2.0])
    np.testing.assert_allclose(unpack(pack(values, bits=bits)), values, atol=0.02)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 9), (8, 1), (20, 31)])
def test_a_path_is_unchanged_by_packing(n, m, rng):
    path = slts.align(rng.normal(size=(3, n)), rng.normal(size=(3, m))).path
    assert path_of(moves(path)).tolist() == path.tolist()


@pytest.mark.parametrize("n", [1, 7, 119, 120, 121, 1000])
def test_bins_cover_all_steps_in_order(n):
    bins = Bins(n)
    assert bins.count == min(n, 120)
    assert len(bins.of_step) == n
    assert set(np.diff(bins.of_step)) <= {0, 1}
    terms = np.arange(2.0 * n).reshape(n, 2)
    np.testing.assert_allclose(bins.sums(terms).sum(axis=0), terms.sum(axis=0))
    assert bins.sample(terms).shape == (bins.count, 2)


def test_a_binned_path_is_a_path(rng):
    path = slts.align(rng.normal(size=(3, 400)), rng.normal(size=(3, 150))).path
    binned = path_of(moves(bin_path(path, Bins(400), Bins(150))))
    assert binned[-1].tolist() == [119, 119]
    assert set(map(tuple, np.diff(binned, axis=0).tolist())) <= {(0, 1), (1, 0), (1, 1)}


def test_a_path_over_averaged_steps_is_spread_over_the_series():
    path = np.array([[0, 0], [1, 0], [2, 1]])
    spread = path_of(moves(bin_path(path, Bins(6), Bins(2))))
    assert spread.tolist() == [[0, 0], [1, 0], [2, 0], [3, 1], [4, 1], [5, 1]]


@pytest.mark.parametrize("most", [1, 5, 10, 20])
def test_misclassified_series_are_explained_first_within_the_limit(most):
    explained, others = choose_series(np.array([3, 8]), 10, most)
    assert len(explained) == min(most, 10)
    assert sorted([*explained, *others]) == list(range(10))
    assert set(explained[:2]) <= {3, 8}
    assert sorted(explained[2:]) == explained[2:].tolist()
