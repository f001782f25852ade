"""Products in tiles."""

import itertools
import sys
from types import ModuleType

import numpy as np
import pytest

from slts.execution import use_fit_threads
from slts.learning import blas
from slts.learning.blas import (
    add_gram,
    add_products,
    add_scaled,
    matmul,
    mirror,
    take_rows,
)


@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 4, 1), (0, 4, 5), (3, 0, 5)])
def test_products_are_those_of_numpy_in_every_layout(rng, sizes):
    n, k, m = sizes
    layouts = (np.ascontiguousarray, np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2])
    a, b = rng.normal(size=(n, k)), rng.normal(size=(k, m))
    for first, second in itertools.product(layouts, layouts):
        np.testing.assert_allclose(matmul(first(a), second(b)), a @ b, atol=1e-12)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_tiles_cover_every_sum_once(rng, monkeypatch, n_threads):
    """Tiles of few rows, so that there are many of them, and the last ones are smaller."""
    settings = {"_ROWS": 8, "_COLUMNS": 12, "_FEW": 0.0, "_COPIED_ROWS": 5}
    for name, value in settings.items():
        monkeypatch.setattr(blas, name, value)
    a, b, total = rng.normal(size=(23, 5)), rng.normal(size=(17, 5)), rng.normal(size=(23, 17))
    gram, before = rng.normal(size=(23, 23)), total.copy()
    expected = np.triu(gram + a @ a.T)
    with use_fit_threads(n_threads):
        np.testing.assert_allclose(matmul(a, b.T), a @ b.T, atol=1e-12)
        add_products(total, a, b)
        np.testing.assert_allclose(total, before + a @ b.T, atol=1e-12)
        add_scaled(total, before, -1.0)
        np.testing.assert_allclose(total, a @ b.T, atol=1e-12)
        add_gram(gram, np.asfortranarray(a))
        np.testing.assert_allclose(np.triu(gram), expected, atol=1e-12)
        mirror(gram)
        np.testing.assert_allclose(gram, expected + np.triu(expected, 1).T, atol=1e-12)
        some = rng.permutation(23)[:11]
        np.testing.assert_array_equal(take_rows(a, some), a[some])


@pytest.mark.parametrize(
    ("shape", "n_tiles"),
    [((6600, 2000), 104), ((1000, 1000), 128), ((256, 512), 16), ((10, 5000), 40), ((0, 3), 0)],
)
def test_the_number_of_threads_does_not_change_the_tiles(shape, n_tiles):
    """Otherwise the bits of a fit would depend on it."""
    found = []
    for n_threads in (1, 3):
        tiles: list[tuple[slice, slice]] = []
        with use_fit_threads(n_threads):
            blas._map_tiles(lambda *tile, own=tiles: own.append(tile), np.empty(shape), 10**6)
        found.append({(rows.start, columns.start) for rows, columns in tiles})
    assert found[0] == found[1]
    assert len(found[0]) == n_tiles


@pytest.mark.parametrize("sizes", [(256, 1030, 700), (700, 1030, 700), (60, 50, 40)])
def test_products_have_the_same_bits_for_every_number_of_threads(rng, sizes):
    n, k, m = sizes
    a, b = rng.normal(size=(n, k)), rng.normal(size=(k, m))
    found = []
    for n_threads in (1, 2, None):
        with use_fit_threads(n_threads):
            found.append(matmul(a, b))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_cupy_that_another_thread_imports_has_no_arrays_yet(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
    np.testing.assert_allclose(matmul(a, b), a @ b)
