"""Results on a real GPU equal the reference, for thousands of pairs."""

import numpy as np
import pytest

import slts
from slts import Itakura
from slts.alignment.cuda.backend import CudaBackend
from slts.alignment.settings import LandmarkLayouts
from tests.alignment.cuda.parity import check_parity, prepared, ragged, settings

OBJECTIVES = ("affinity", "cost", "distance")
BANDS = (None, 4, Itakura(2.5))
CHANNELS = (1, 2, 3, 6, 8, 13, 16, 17, 22, 33, 64)


def cases():
    """Every objective with every band and precision, and every number of channels."""
    for number in range(36):
        objective, band = OBJECTIVES[number % 3], BANDS[number // 3 % 3]
        dtype = ("float32", "float64")[number // 9 % 2]
        yield objective, band, dtype, CHANNELS[number % len(CHANNELS)]


@pytest.mark.parametrize(("objective", "band", "dtype", "d"), list(cases()), ids=str)
def test_every_reduction_equals_the_reference(gpu, objective, band, dtype, d):
    rng = np.random.default_rng([20_261_115, d, len(objective), len(str(band))])
    how = settings(objective, band, dtype)
    x, y = (ragged(rng, count, np.arange(15, 50), d) for count in (6, 40))
    check_parity(x, y, how, rng)
    if band is None or isinstance(band, int):
        x, y = (ragged(rng, count, np.arange(1, 20), d) for count in (9, 33))
        check_parity(x, y, how, rng)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exact_ties_go_diagonal_up_left(gpu, rng, dtype):
    x, y = (
        [rng.integers(-1, 2, size=(int(n), 2)).astype(float) for n in rng.integers(1, 30, count)]
        for count in (20, 70)
    )
    check_parity(x, y, settings("affinity", None, dtype, normalize=False), rng, exact=True)


@pytest.mark.parametrize(("objective", "band", "dtype", "d"), [
    ("cost", None, "float32", 13), ("affinity", 30, "float32", 64), ("distance", 50, "float64", 4),
], ids=str)  # fmt: skip
def test_long_series_equal_the_reference(gpu, rng, objective, band, dtype, d):
    for lengths, counts in ((np.arange(60, 400), (4, 9)), ([1, 2000], (2, 2))):
        x, y = (ragged(rng, count, lengths, d) for count in counts)
        check_parity(x, y, settings(objective, band, dtype), rng)


def test_paths_beyond_sixteen_bits(gpu, rng):
    x, y = ragged(rng, 2, [1, 2], 1), ragged(rng, 2, [2**16], 1)
    check_parity(x, y, settings("cost", None, "float64"), rng)


def test_a_small_card_gives_the_same(gpu, rng):
    how = settings("cost", None, "float32")
    x, y = prepared(how, rng, (100, 300), np.arange(20, 60), 13)
    whole, blocks = np.empty((2, 100, 300), dtype=np.float32)
    CudaBackend(x, LandmarkLayouts(y, how)).scores(whole, mean=True)
    CudaBackend(x, LandmarkLayouts(y, how), memory=2**21).scores(blocks, mean=True)
    np.testing.assert_array_equal(whole, blocks)


@pytest.mark.parametrize("believed", [2**24, 2**27])
def test_the_memory_there_is_suffices(gpu, rng, believed):
    # Fails under compute-sanitizer, where arrays of finished blocks are not given back.
    how = settings("cost", None, "float32")
    x, y = prepared(how, rng, (400, 700), np.arange(20, 60), 13)
    weights = np.eye(5, dtype=np.float32)[rng.integers(5, size=700)].T.copy()
    memory, pool = 2**24, gpu.get_default_memory_pool()
    result = []
    for limit in (None, believed):
        T = np.full((400, 700, 13, 13), np.nan, dtype=np.float32)
        G = np.full((400, 5, 3, 13, 13), np.nan, dtype=np.float32)
        if limit is not None:
            pool.free_all_blocks()
            pool.set_limit(size=memory)
            gpu.cuda.set_allocator(pool.malloc)
        try:
            backend = CudaBackend(x, LandmarkLayouts(y, how), memory=limit)
            backend.products(T)
            backend.grouped(weights, G)
        finally:
            pool.set_limit(size=0)
        result.append((T, G))
    assert result[0][0].nbytes > 10 * memory
    np.testing.assert_array_equal(result[0][0], result[1][0])
    np.testing.assert_allclose(result[0][1], result[1][1], rtol=0, atol=1e-3)


def test_the_same_bits_every_time(gpu, rng):
    how = settings("affinity", None, "float32")
    x, y = prepared(how, rng, (300, 700), np.arange(20, 60), 13)
    weights = np.eye(5, dtype=np.float32)[rng.integers(5, size=700)].T.copy()
    result = np.empty((3, 300, 5, 1, 13, 13), dtype=np.float32)
    for out in result:
        CudaBackend(x, LandmarkLayouts(y, how)).grouped(weights, out)
    np.testing.assert_array_equal(result[0], result[1])
    np.testing.assert_array_equal(result[0], result[2])


@pytest.mark.slow
def test_arabic_digits_have_the_same_nearest_neighbours_as_on_the_cpu(gpu, arabic_digits):
    train, train_labels, test, test_labels = arabic_digits
    K = slts.similarity(test, train, dtype="float32", device="cuda")
    accuracy = np.mean(train_labels[K.argmax(axis=1)] == test_labels)
    assert accuracy == pytest.approx(0.9468, abs=5e-4)
