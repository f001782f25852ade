"""Packed arrays and paths can be unpacked, and sums are preserved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slts
from slts.report.packing import pack, pack_indices, pack_path, rounded
from tests.report.unpacking import unpack, unpack_indices, unpack_path


@given(
    arrays=st.lists(st.lists(st.floats(-1e6, 1e6), max_size=30), max_size=4),
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


@given(st.lists(st.lists(st.integers(0, 10**6), max_size=9), min_size=1, max_size=4))
def test_indices_are_unchanged_by_packing(lists):
    assert [a.tolist() for a in unpack_indices(pack_indices(map(np.array, lists)))] == lists


def test_small_indices_take_few_letters():
    for largest, letters in ((0, 1), (63, 1), (64, 2), (4095, 2), (4096, 3)):
        packed = pack_indices([np.array([largest, 0])])
        assert (packed["letters"], len(packed["data"])) == (letters, 2 * letters)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 9), (8, 1), (20, 31)])
def test_a_path_is_unchanged_by_packing(n, m, rng):
    path = slts.align(rng.normal(size=(3, n)), rng.normal(size=(3, m))).path
    assert unpack_path(pack_path(path)).tolist() == path.tolist()


def test_numbers_have_few_digits():
    assert rounded(1.23456789) == 1.235
    assert rounded([[0.0, 1234567.0]], 2) == [[0.0, 1.2e6]]
