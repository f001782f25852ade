"""An aligner lays its landmarks out once, and gives the same bits however it is shared."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from slts import Itakura, align, as_series
from slts.alignment import Aligner, AlignmentSettings, pairwise
from slts.alignment.cpu import native
from tests.alignment.test_invariants import assert_same_bits


def noise(rng, count, offset=0.0):
    return as_series([rng.normal(size=(3, n)) + offset for n in rng.integers(8, 30, size=count)])


@pytest.fixture
def layouts(monkeypatch):
    """Widths of all landmark layouts made from here on."""
    widths = []
    for name in ("Landmarks32", "Landmarks64"):
        kind = getattr(native, name)

        def make(values, offsets, shift, width, basis, kind=kind):
            widths.append(width)
            return kind(values, offsets, shift, width, basis)

        monkeypatch.setattr(native, name, make)
    return widths


@pytest.fixture
def aligner(rng):
    how = AlignmentSettings("cost")
    return Aligner(how.prepare(noise(rng, 21)), how)


@pytest.fixture
def series(rng):
    return AlignmentSettings("cost").prepare(noise(rng, 9))


def results(aligner, series):
    weights = np.random.default_rng(1).normal(size=(2, len(aligner.landmarks)))
    metrics = np.random.default_rng(2).normal(size=(2, 3, 3))
    return (
        aligner.similarities(series), aligner.distances(series), aligner.products(series),
        aligner.grouped(series, weights, n_phases=2), aligner.projected(series, metrics),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("objective", ["cost", "distance"])
def test_landmarks_are_laid_out_once_for_all_calls(rng, layouts, dtype, objective):
    how = AlignmentSettings(objective, dtype=dtype)
    aligner = Aligner(how.prepare(noise(rng, 21)), how)
    series = how.prepare(noise(rng, 9))
    assert not layouts
    first = results(aligner, series)
    assert_same_bits(results(aligner, series), first)
    results(aligner, series[:2])
    assert len(layouts) == 1


def test_replacing_threads_or_device_keeps_the_layout(aligner, series, layouts):
    expected = results(aligner, series)
    assert_same_bits(results(aligner.on("cpu", 2), series), expected)
    assert_same_bits(results(aligner.on("auto", 1), series), expected)
    assert len(layouts) == 1


def test_a_basis_is_part_of_the_aligner(aligner, series, layouts):
    directed = Aligner(aligner.landmarks, aligner.settings, basis=np.eye(3)[:, :2])
    weights = np.eye(len(aligner.landmarks))
    expected = aligner.grouped(series, weights)[..., :2]
    for same in (directed, directed.on("cpu", 2)):
        np.testing.assert_array_equal(same.grouped(series, weights), expected)
    assert len(layouts) == 2


def test_threads_that_start_together_share_one_layout(aligner, series, layouts):
    expected = results(Aligner(aligner.landmarks, aligner.settings), series)
    start = Barrier(4)

    def compute(_):
        start.wait()
        return results(aligner, series)

    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(compute, range(4)):
            assert_same_bits(result, expected)
    assert len(layouts) == 2


@pytest.mark.parametrize("band", [None, 2, Itakura(2.0)])
def test_arrays_are_aligned_without_conversion(rng, monkeypatch, band):
    # The conversion takes many times as long as the alignment of a short pair.
    monkeypatch.delattr(pairwise, "as_series")
    a, b = rng.normal(size=(2, 3, 9))
    assert pairwise.align(a[::2], b[::2], band=band).path[-1].tolist() == [8, 8]


@pytest.mark.parametrize("objective", ["affinity", "cost", "distance"])
def test_a_path_is_that_of_align(rng, objective):
    how = AlignmentSettings(objective, band=12)
    series, landmarks = how.prepare(noise(rng, 2)), how.prepare(noise(rng, 3))
    aligner = Aligner(landmarks, how)
    result = aligner.path(series[1:], 2)
    expected = align(series[1], landmarks[2], objective=objective, band=12, normalize=False)
    np.testing.assert_array_equal(result.path, expected.path)
    assert (result.length, result.similarity) == expected[1:]
    assert result.similarity == pytest.approx(aligner.similarities(series)[1, 2], abs=1e-12)
