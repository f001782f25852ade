"""Packed arrays and paths can be unpacked; downsampling preserves paths and totals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slts
from slts.report.explorer import series_to_keep
from slts.report.packing import Bins, bin_path, pack, pack_integers, pack_path, rounded
from tests.report.unpacking import unpack, unpack_path


@given(
    arrays=st.lists(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), max_size=30), max_size=4),
    bits=st.sampled_from([8, 16]),
)
def test_entries_and_sums_of_runs_are_off_by_one_unit_at_most(arrays, bits):
    packed = pack([np.array(a) for a in arrays], bits=bits)
    back = unpack(packed) if arrays else []
    for array, found, scale in zip(arrays, back, packed["scales"], strict=True):
        assert len(found) == len(array)
        off = np.cumsum(found) - np.cumsum(array)
        assert np.abs(off).max(initial=0.0) <= 0.5001 * scale + 1e-9 * np.abs(array).sum()
        assert scale <= 1.0001 * np.abs(array).max(initial=0.0) / (126 if bits == 8 else 32766)


def test_zeros_and_empty_arrays_are_packed():
    assert [a.tolist() for a in unpack(pack([np.zeros(3), np.empty(0)], bits=8))] == [[0, 0, 0], []]
    assert pack([], bits=16)["data"] == ""
    with pytest.raises(KeyError):
        pack([np.ones(1)], bits=3)


@given(st.lists(st.lists(st.integers(-(10**6), 10**6), max_size=9), min_size=1, max_size=4))
def test_integers_are_unchanged_by_packing(lists):
    assert [a.tolist() for a in unpack(pack_integers(map(np.array, lists)))] == lists


def test_small_integers_take_few_bits():
    for largest, bits in ((0, 8), (127, 8), (128, 16), (32767, 16), (32768, 32)):
        assert pack_integers([np.array([largest, 0])])["bits"] == bits
    assert pack_integers([])["data"] == ""


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 9), (8, 1), (20, 31)])
def test_a_path_is_unchanged_by_packing(n, m, rng):
    path = slts.align(rng.normal(size=(3, n)), rng.normal(size=(3, m))).path
    assert unpack_path(pack_path(path)).tolist() == path.tolist()


def test_numbers_have_few_digits():
    assert rounded(1.23456789) == 1.235
    assert rounded([[0.0, 1234567.0]], 2) == [[0.0, 1.2e6]]


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
    found = unpack_path(pack_path(bin_path(path, Bins(400), Bins(150))))
    assert found[-1].tolist() == [119, 119]
    steps = np.diff(found, axis=0)
    assert set(map(tuple, steps.tolist())) <= {(0, 1), (1, 0), (1, 1)}


def test_a_path_over_averaged_steps_is_spread_over_the_series():
    path = np.array([[0, 0], [1, 0], [2, 1]])
    found = unpack_path(pack_path(bin_path(path, Bins(6), Bins(2))))
    assert found.tolist() == [[0, 0], [1, 0], [2, 0], [3, 1], [4, 1], [5, 1]]


def test_misclassified_series_are_kept_first_within_the_budget():
    wrong, sizes = np.array([3, 8]), np.full(10, 100)
    kept = series_to_keep(wrong, sizes, most=5)
    assert kept[:2].tolist() == [3, 8]
    assert len(kept) == len(set(kept.tolist())) == 5
    assert series_to_keep(wrong, sizes, most=9, budget=100).shape == (1,)
    assert series_to_keep(wrong, sizes, most=9, budget=10).shape == (1,)
    assert sorted(series_to_keep(wrong, sizes, most=10).tolist()) == list(range(10))
