"""Results of the CUDA kernel and its backend equal the reference, on an emulated GPU."""

import gc
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import slts
from slts import DataError, Itakura, as_series
from slts.alignment import Aligner, AlignmentSettings
from slts.alignment.cuda import programs
from slts.alignment.cuda.backend import CudaBackend
from slts.alignment.settings import LandmarkLayouts
from tests.alignment.cuda.parity import check_parity, prepared, ragged, settings

pytestmark = pytest.mark.slow


# Other tests use some of these cases again, because compiling takes most of the time.
@pytest.mark.parametrize(("objective", "band", "dtype", "d"), [
    ("affinity", None, "float32", 3), ("cost", 3, "float64", 2),
    ("distance", Itakura(2.0), "float32", 17), ("affinity", 0, "float64", 19),
    ("cost", Itakura(3.0), "float32", 1),
], ids=str)  # fmt: skip
def test_every_reduction_equals_the_reference(emulated, rng, objective, band, dtype, d):
    x = ragged(rng, 5, np.arange(1, 20), d)
    y = ragged(rng, 35, np.arange(1, 20), d)
    check_parity(x, y, settings(objective, band, dtype), rng)


def test_exact_ties_go_diagonal_up_left(emulated, rng):
    x, y = (
        [rng.integers(-1, 2, size=(int(n), 3)).astype(float) for n in rng.integers(1, 14, count)]
        for count in (8, 40)
    )
    check_parity(x, y, settings("affinity", None, "float32", normalize=False), rng, exact=True)


def test_neither_block_nor_card_size_changes_a_bit_of_scores(emulated, rng):
    how = settings("cost", None, "float32")
    x, y = prepared(how, rng, (12, 70), np.arange(5, 20), 3)
    whole, blocks = np.empty((2, 12, 70), dtype=np.float32)
    CudaBackend(x, LandmarkLayouts(y, how)).scores(whole, mean=True)
    CudaBackend(x, LandmarkLayouts(y, how), memory=2**14).scores(blocks, mean=True)
    np.testing.assert_array_equal(whole, blocks)


def test_a_small_card_gives_the_same_reductions(emulated, rng):
    x, y = (ragged(rng, count, np.arange(5, 20), 3) for count in (7, 70))
    check_parity(x, y, settings("affinity", None, "float32"), rng, memory=2**15)


def test_a_frontier_too_long_for_shared_memory_goes_elsewhere(emulated, rng):
    x, y = ragged(rng, 2, [5, 9], 2), ragged(rng, 3, [400], 2)
    check_parity(x, y, settings("affinity", None, "float32"), rng)


def test_paths_beyond_sixteen_bits(emulated, rng):
    x, y = ragged(rng, 1, [2], 1), ragged(rng, 1, [2**16], 1)
    check_parity(x, y, settings("cost", None, "float64"), rng)


def test_the_pair_without_a_path_is_named(emulated, rng):
    x, y = (as_series([rng.normal(size=(2, n)) for n in lengths]) for lengths in ((5, 9), (5, 2)))
    with pytest.raises(DataError, match=r"series 0 of X \(length 5\) and series 1 of Y \(length 2"):
        Aligner(y, AlignmentSettings(band=Itakura(1.0)), device="cuda").similarities(x)


def test_public_functions_agree_with_the_cpu(emulated, rng):
    X, Y = ([rng.normal(size=(3, n)) for n in rng.integers(2, 15, count)] for count in (4, 9))
    M = rng.normal(size=(3, 3))
    for kwargs in ({}, {"metric": M}, {"objective": "distance"}):
        on_gpu, on_cpu = (slts.similarity(X, Y, device=d, **kwargs) for d in ("cuda", "cpu"))
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=0, atol=1e-13)
    on_gpu, on_cpu = (slts.aligned_products(X, Y, device=d) for d in ("cuda", "cpu"))
    np.testing.assert_allclose(on_gpu, on_cpu, rtol=0, atol=1e-13)


def test_nothing_to_align_is_no_error(emulated, rng):
    X = as_series([rng.normal(size=(3, 4))])
    empty = Aligner(X, AlignmentSettings(), device="cuda").grouped(X, np.empty((0, 1)))
    assert empty.shape == (1, 0, 1, 3, 3)


def test_progress_ends_at_the_whole(emulated, rng):
    how = settings("affinity", None, "float32")
    (x,) = prepared(how, rng, (40,), [10, 12], 3)
    told = []
    backend = CudaBackend(
        x, LandmarkLayouts(x, how), memory=2**15, progress=lambda *now: told.append(now)
    )
    backend.scores(np.empty((40, 40), dtype=np.float32), mean=False)
    assert len(told) > 2
    assert told[-1][0] == pytest.approx(told[-1][1])


def test_threads_share_one_program_and_take_turns(emulated, rng, monkeypatch):
    compiled = []

    class SlowModule(emulated.RawModule):
        def __init__(self, code, options):
            super().__init__(code, options)
            compiled.append(options)
            # Other threads arrive in the meantime.
            time.sleep(0.2)

    how = settings("affinity", None, "float32")
    x, y = prepared(how, rng, (12, 70), np.arange(5, 20), 3)
    expected = np.empty((12, 70), dtype=np.float32)
    CudaBackend(x, LandmarkLayouts(y, how)).scores(expected, mean=False)
    programs._compiled.cache_clear()
    monkeypatch.setattr(emulated, "RawModule", SlowModule)
    start = Barrier(4)

    def totals(rows):
        out = np.full((3, 70), np.nan, dtype=np.float32)
        start.wait()
        CudaBackend(x[rows], LandmarkLayouts(y, how)).scores(out, mean=False)
        return out

    with ThreadPoolExecutor(4) as pool:
        result = list(pool.map(totals, [slice(k, k + 3) for k in range(0, 12, 3)]))
    np.testing.assert_array_equal(np.concatenate(result), expected)
    assert len(compiled) == 1


def test_memory_counts_as_free_when_a_run_begins(emulated, rng, monkeypatch):
    how = settings("affinity", None, "float32")
    (x,) = prepared(how, rng, (40,), [10, 12], 3)
    told = []
    backend = CudaBackend(x, LandmarkLayouts(x, how), progress=lambda *now: told.append(now))
    monkeypatch.setattr(emulated.cuda.runtime, "memGetInfo", lambda: (2**15, 2**28))
    backend.scores(np.empty((40, 40), dtype=np.float32), mean=False)
    assert len(told) > 2


def test_memory_that_others_take_meanwhile_makes_blocks_smaller(emulated, rng, monkeypatch):
    empty, sizes = emulated.empty, []

    def scarce(shape, dtype):
        sizes.append(np.prod(shape) * np.dtype(dtype).itemsize)
        if sizes[-1] > 40_000:
            raise emulated.cuda.memory.OutOfMemoryError
        return empty(shape, dtype)

    how = settings("affinity", None, "float32")
    x, y = prepared(how, rng, (32, 70), np.arange(5, 10), 3)
    T, again = np.empty((2, 32, 70, 3, 3), dtype=np.float32)
    CudaBackend(x, LandmarkLayouts(y, how)).products(T)
    monkeypatch.setattr(emulated, "empty", scarce)
    CudaBackend(x, LandmarkLayouts(y, how)).products(again)
    assert max(sizes) > 40_000
    np.testing.assert_array_equal(again, T)


def test_memory_for_not_even_one_series_is_an_error(emulated, rng, monkeypatch):
    def none(shape, dtype):
        raise emulated.cuda.memory.OutOfMemoryError

    how = settings("affinity", None, "float32")
    (x,) = prepared(how, rng, (5,), [10, 12], 3)
    monkeypatch.setattr(emulated, "zeros", none)
    with pytest.raises(MemoryError):
        CudaBackend(x, LandmarkLayouts(x, how)).scores(
            np.empty((5, 5), dtype=np.float32), mean=False
        )


@pytest.fixture
def packed(monkeypatch):
    """Device arrays of all landmark layouts made from here on, as weak references."""
    made = []
    lay_out = CudaBackend._lay_out

    def logged(self, *args, **kwargs):
        packs = lay_out(self, *args, **kwargs)
        made.append(weakref.ref(packs.arrays["packed"]))
        return packs

    monkeypatch.setattr(CudaBackend, "_lay_out", logged)
    return made


def test_a_basis_replaces_the_channels_of_the_landmarks(emulated, rng):
    how = settings("affinity", None, "float64")
    x, y = prepared(how, rng, (4, 7), np.arange(5, 12), 3)
    weights, basis = rng.normal(size=(2, 7)), rng.normal(size=(3, 2))
    result, expected = (
        Aligner(y, how, device, basis=basis).grouped(x, weights, n_phases=2)
        for device in ("cuda", "cpu")
    )
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-13)


def test_landmarks_stay_on_the_card_as_long_as_the_aligner_lives(emulated, rng, packed):
    how = settings("affinity", None, "float64")
    x, y = prepared(how, rng, (4, 40), np.arange(5, 12), 3)
    weights = [np.eye(2)[np.arange(40) % 2].T, np.eye(2)[np.arange(40) // 20].T]
    aligner = Aligner(y, how, device="cuda")
    expected = [Aligner(y, how).grouped(x, w) for w in weights]
    K = aligner.similarities(x)
    np.testing.assert_array_equal(aligner.similarities(x), K)
    np.testing.assert_array_equal(aligner.on("cuda", 2).similarities(x[:2]), K[:2])
    aligner.products(x)
    assert len(packed) == 1
    for scale in (1.0, 2.0):
        result = aligner.grouped(x, scale * weights[0])
        np.testing.assert_allclose(result, scale * expected[0], rtol=0, atol=1e-13)
    assert len(packed) == 2
    result = aligner.grouped(x, weights[1])
    np.testing.assert_allclose(result, expected[1], rtol=0, atol=1e-13)
    assert len(packed) == 3
    assert sum(array() is not None for array in packed) <= 2
    del aligner
    gc.collect()
    assert not any(array() is not None for array in packed)


def test_a_layout_that_takes_much_of_the_card_is_not_kept(emulated, rng, packed):
    how = settings("affinity", None, "float32")
    (x,) = prepared(how, rng, (40,), [10, 12], 3)
    layouts, out = LandmarkLayouts(x, how), np.empty((40, 40), dtype=np.float32)
    for _ in range(2):
        CudaBackend(x, layouts, memory=2**17).scores(out, mean=True)
    assert len(packed) == 2
