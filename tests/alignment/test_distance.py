"""`distance`: the DTW distance, beside paths and other libraries."""

import numpy as np
import pytest

from slts import align, distance


@pytest.mark.parametrize("band", [None, 4])
def test_distances_are_sums_along_the_path(rng, band):
    X = [rng.normal(size=(2, n)) + 3.0 for n in (9, 7, 11)]

    def along_path(a, b):
        i, j = align(a, b, objective="distance", band=band, normalize=False).path.T
        return np.sum((a[:, i] - b[:, j]) ** 2)

    sums = np.array([[along_path(a, b) for b in X] for a in X])
    np.testing.assert_allclose(distance(X, band=band, squared=True), sums, atol=1e-12)
    np.testing.assert_allclose(distance(X, X[1:], band=band) ** 2, sums[:, 1:], atol=1e-12)


def test_distances_are_those_of_aeon(rng):
    X = [rng.normal(size=(3, n)) for n in (9, 14, 20)]
    dtw = pytest.importorskip("aeon.distances").dtw_distance
    sums = [[dtw(a, b) for b in X] for a in X]
    np.testing.assert_allclose(distance(X, squared=True), sums, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rounding_makes_no_distance_negative_or_missing(rng, dtype):
    X = [rng.normal(size=(3, 20)) + 5.0 for _ in range(10)]
    assert not np.diagonal(distance(X, dtype=dtype)).any()
    copies = distance(X, [x.copy() for x in X], dtype=dtype)
    assert (copies >= 0.0).all()
    assert np.diagonal(copies).max() < (1e-6 if dtype == "float64" else 0.1)
