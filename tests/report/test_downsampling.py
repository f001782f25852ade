"""Downsampling preserves paths and totals."""

import numpy as np
import pytest

import slts
from slts.report.explorer import series_to_keep
from slts.report.packing import Bins, bin_path, pack_path
from tests.report.unpacking import unpack_path


@pytest.mark.parametrize("n", [1, 7, 119, 120, 121, 1000])
def test_bins_cover_all_steps_in_order(n):
    bins = Bins.of(n)
    assert bins.count == min(n, 120)
    assert len(bins.of_step) == n
    assert set(np.diff(bins.of_step)) <= {0, 1}
    terms = np.arange(2.0 * n).reshape(n, 2)
    np.testing.assert_allclose(bins.sums(terms).sum(axis=0), terms.sum(axis=0))
    assert bins.sample(terms).shape == (bins.count, 2)


def test_a_binned_path_is_a_path(rng):
    path = slts.align(rng.normal(size=(3, 400)), rng.normal(size=(3, 150))).path
    found = unpack_path(pack_path(bin_path(path, Bins.of(400), Bins.of(150))))
    assert found[-1].tolist() == [119, 119]
    steps = np.diff(found, axis=0)
    assert set(map(tuple, steps.tolist())) <= {(0, 1), (1, 0), (1, 1)}


def test_a_path_over_averaged_steps_is_spread_over_the_series():
    path = np.array([[0, 0], [1, 0], [2, 1]])
    found = unpack_path(pack_path(bin_path(path, Bins.of(6), Bins.of(2))))
    assert found.tolist() == [[0, 0], [1, 0], [2, 0], [3, 1], [4, 1], [5, 1]]


def test_misclassified_series_are_kept_first_within_the_budget():
    wrong, sizes = np.array([3, 8]), np.full(10, 100)
    kept = series_to_keep(wrong, sizes, most=5)
    assert kept[:2].tolist() == [3, 8]
    assert len(kept) == len(set(kept.tolist())) == 5
    assert series_to_keep(wrong, sizes, most=9, budget=100).shape == (1,)
    assert series_to_keep(wrong, sizes, most=9, budget=10).shape == (1,)
    assert sorted(series_to_keep(wrong, sizes, most=10).tolist()) == list(range(10))
