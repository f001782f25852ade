"""Invariants of all alignments, for any data and any division of the work.

That every reduction is that of the best path is proved in test_kernel_oracle.py.
"""

import numpy as np
import pytest

from slts import Itakura, SeriesBatch, align, aligned_products, as_series, similarity
from slts.alignment import Aligner, AlignmentSettings
from slts.alignment.cpu import CpuBackend, available_targets
from slts.alignment.settings import LandmarkLayouts
from tests.alignment.kernel_paths import kernel_paths

TARGETS = [target.name for target in available_targets()]
DTYPES = ["float64", "float32"]
CLOSE = {"float64": 1e-12, "float32": 1e-5}


@pytest.fixture(params=TARGETS)
def isa(request, monkeypatch):
    monkeypatch.setenv("SLTS_ISA", request.param)
    return request.param


@pytest.fixture
def series(rng):
    """(channels, time) arrays of similar lengths, so that every band admits a path."""
    return [rng.normal(size=(5, int(n))) for n in rng.integers(20, 41, size=23)]


@pytest.fixture
def landmarks(rng):
    return [rng.normal(size=(5, int(n))) for n in rng.integers(20, 41, size=19)]


def batch(series, how):
    return how.prepare(as_series(series))


def all_reductions(x, y, how, **sizes):
    """Similarities, products, sums for three groups, and projections on two metrics."""
    d, dtype = x.n_channels, how.dtype
    weights = np.random.default_rng(1).normal(size=(3, len(y))).astype(dtype)
    metrics = np.random.default_rng(2).normal(size=(2, d, d)).astype(dtype)
    backend = CpuBackend(x, LandmarkLayouts(y, how), **sizes)
    shapes = [(len(y),), (len(y), d, d), (3, 1, d, d), (len(y), 2)]
    K, T, G, P = (np.empty((len(x), *shape), dtype) for shape in shapes)
    backend.scores(K, mean=True)
    backend.products(T)
    backend.grouped(weights, G)
    backend.projected(metrics, P)
    return K, T, G, P


def assert_same_bits(got, expected):
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_similarity_under_a_metric_is_its_inner_product_with_t(isa, series, landmarks, rng, dtype):
    M = rng.normal(size=(5, 5))
    K = similarity(series, landmarks, metric=M, dtype=dtype)
    T = aligned_products(series, landmarks, dtype=dtype)
    expected = np.einsum("kl,pqkl->pq", M, T)
    np.testing.assert_allclose(K, expected, rtol=0, atol=5 * CLOSE[dtype])
    K = similarity(series, landmarks, metric=np.eye(5), dtype=dtype)
    expected = similarity(series, landmarks, dtype=dtype)
    np.testing.assert_allclose(K, expected, rtol=0, atol=CLOSE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("band", [None, Itakura(3.0)], ids=str)
def test_phases_cut_the_path_in_landmark_time(isa, series, landmarks, rng, dtype, band):
    how = AlignmentSettings(dtype=dtype, band=band)
    x, y = batch(series[:3], how), batch(landmarks[:7], how)
    aligner = Aligner(y, how)
    weights = rng.normal(size=(3, len(y))) * (rng.random((3, len(y))) < 0.6)
    whole = aligner.grouped(x, weights)[:, :, 0]
    for n_phases in (1, 2, 3, 7, 50):
        expected = np.zeros((len(x), 3, n_phases, 5, 5))
        for p, a in enumerate(x):
            for q, b in enumerate(y):
                path = aligner.path(x[p : p + 1], q).path
                for phase in range(n_phases):
                    i, j = path[path[:, 1] * n_phases // b.shape[1] == phase].T
                    product = a[:, i] @ b[:, j].T / len(path)
                    expected[p, :, phase] += weights[:, q, None, None] * product
        result = aligner.grouped(x, weights, n_phases=n_phases)
        np.testing.assert_allclose(result, expected, rtol=0, atol=10 * CLOSE[dtype])
        np.testing.assert_allclose(result.sum(axis=2), whole, rtol=0, atol=10 * CLOSE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [1, 3, 5, 8, 11])
def test_a_basis_replaces_the_channels_of_the_landmarks(isa, series, landmarks, rng, dtype, rank):
    how = AlignmentSettings(dtype=dtype)
    x, y = batch(series, how), batch(landmarks, how)
    weights, basis = rng.normal(size=(4, len(y))), rng.normal(size=(5, rank))
    for n_phases in (1, 3):
        plain = Aligner(y, how).grouped(x, weights, n_phases=n_phases)
        result = Aligner(y, how, basis=basis).grouped(x, weights, n_phases=n_phases)
        assert result.dtype == np.dtype(dtype)
        np.testing.assert_allclose(result, plain @ basis, rtol=0, atol=100 * CLOSE[dtype])


@pytest.mark.parametrize("rank", [None, 3, 8])
@pytest.mark.parametrize("n_phases", [1, 3, 50])
def test_sums_are_the_landmark_rows_along_the_path(isa, series, landmarks, rng, n_phases, rank):
    how = AlignmentSettings("cost")
    x, y = batch(series[:2], how), batch(landmarks, how)
    basis = None if rank is None else rng.normal(size=(5, rank))
    aligner = Aligner(y, how, basis=basis, n_jobs=2)
    result = aligner.sums(x[1:], n_phases=n_phases)
    assert result.shape == (len(y), n_phases, x.lengths[1], 5 if rank is None else rank)
    for q, b in enumerate(y):
        rows = b.T if basis is None else b.T @ basis
        path = aligner.path(x[1:], q).path
        expected = np.zeros(result.shape[1:])
        for i, j in path:
            expected[j * n_phases // b.shape[1], i] += rows[j] / len(path)
        np.testing.assert_allclose(result[q], expected, rtol=0, atol=1e-13)


def test_a_group_of_zero_weights_is_exactly_zero(series, landmarks):
    how = AlignmentSettings()
    x, y = batch(series, how), batch(landmarks, how)
    for n_phases in (1, 3):
        assert not Aligner(y, how).grouped(x, np.zeros((2, len(y))), n_phases=n_phases).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("copies", "d"), [(1, 1), (2, 3), (7, 12), (1, 33)])
def test_a_series_is_at_cost_zero_from_itself_along_the_diagonal(isa, rng, dtype, copies, d):
    x = np.repeat(rng.normal(size=(d, 9)), copies, axis=1)
    how = AlignmentSettings("cost", dtype=dtype)
    diagonal = np.arange(9 * copies).repeat(2).reshape(-1, 2)
    for path in kernel_paths(batch([x] * 2, how), batch([x] * 9, how), how).values():
        np.testing.assert_array_equal(path, diagonal)
    np.testing.assert_array_equal(align(x, x, objective="cost").path, diagonal)
    K = similarity([x] * 9, objective="cost", dtype=dtype)
    np.testing.assert_allclose(K, 1.0, rtol=0, atol=2 * np.finfo(dtype).eps)
    assert (K <= 1.0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_parallel_rows_are_at_cost_zero_up_to_rounding(isa, rng, dtype):
    x = np.outer(rng.normal(size=6), rng.uniform(0.1, 10.0, size=40))
    K = similarity([x], objective="cost", dtype=dtype)
    np.testing.assert_allclose(K, 1.0, rtol=0, atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_radius_as_long_as_the_series_is_no_band(isa, series, landmarks, dtype):
    how = [AlignmentSettings(band=band, dtype=dtype) for band in (None, 40, 10**20)]
    free, wide, huge = (all_reductions(batch(series, h), batch(landmarks, h), h) for h in how)
    assert_same_bits(wide, free)
    assert_same_bits(huge, free)


@pytest.fixture
def many(rng):
    """Series of very different lengths, so that packs, blocks and bands are ragged."""

    def make(d):
        lengths = rng.integers(1, 50, size=13), rng.integers(1, 50, size=33)
        return [as_series([rng.normal(size=(d, n)) for n in some]) for some in lengths]

    return make


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("d", "objective", "band"),
    [(1, "cost", 3), (5, "distance", None), (12, "affinity", None), (12, "cost", 3)],
)
class TestBits:
    def grids(self, many, dtype, d, objective, band):
        how = AlignmentSettings(objective, band, dtype=dtype)
        x, y = map(how.prepare, many(d))
        return x, y, how

    def test_do_not_depend_on_blocks_threads_and_lanes(self, isa, many, dtype, d, objective, band):
        x, y, how = self.grids(many, dtype, d, objective, band)
        expected = all_reductions(x, y, how)
        for sizes in (
            {"block_operations": 1.0}, {"block_operations": 1e5, "n_jobs": 2},
            {"block_operations": 1e4, "n_jobs": 3}, {"lane_bytes": 0},
        ):  # fmt: skip
            assert_same_bits(all_reductions(x, y, how, **sizes), expected)

    def test_do_not_depend_on_the_other_series(self, isa, many, rng, dtype, d, objective, band):
        x, y, how = self.grids(many, dtype, d, objective, band)
        K, T, _, P = all_reductions(x, y, how)
        order = rng.permutation(len(y))
        shuffled = all_reductions(x, y[order], how)
        assert_same_bits(shuffled[:2] + shuffled[3:], [K[:, order], T[:, order], P[:, order]])
        for p, q in zip((0, 5, 12), (32, 7, 0), strict=True):
            pair = slice(p, p + 1), slice(q, q + 1)
            alone = all_reductions(x[pair[0]], y[pair[1]], how)
            assert_same_bits(alone[:2] + alone[3:], [K[pair], T[pair], P[pair]])


def test_without_series_landmarks_groups_or_metrics_results_are_empty(series):
    how = AlignmentSettings()
    x = batch(series, how)
    shapes = [out.shape for out in all_reductions(x, x[:0], how)]
    assert shapes == [(23, 0), (23, 0, 5, 5), (23, 3, 1, 5, 5), (23, 0, 2)]
    assert not all_reductions(x, x[:0], how)[2].any()
    shapes = [out.shape for out in all_reductions(x[:0], x, how)]
    assert shapes == [(0, 23), (0, 23, 5, 5), (0, 3, 1, 5, 5), (0, 23, 2)]
    assert Aligner(x, how).grouped(x, np.empty((0, 23))).shape == (23, 0, 1, 5, 5)
    assert Aligner(x, how).projected(x, np.empty((0, 5, 5))).shape == (23, 23, 0)


def test_inputs_are_left_as_they_were(series):
    x = as_series(series)
    before = SeriesBatch(x.values.copy(), x.offsets)
    similarity(x, objective="cost")
    aligned_products(x, normalize=False)
    assert x == before


class TestDigits:
    """Large values and long series do not cost digits elsewhere."""

    def test_a_large_row_drowns_no_other(self):
        a, b = [[0.0, 1.0, 1.0, 1.0]], [[1e17, 1.0, 1.0, 1.0]]
        options = {"normalize": False, "band": 0}
        assert similarity([a], [b], **options)[0, 0] == 0.75
        assert similarity([a], [b], metric=[[1.0]], **options)[0, 0] == 0.75
        assert aligned_products([a], [b], **options)[0, 0, 0, 0] == 0.75

    def test_products_of_long_series_keep_the_digits_of_float32(self, rng):
        a, b = rng.normal(size=(2, 20_000)) + 1.0, rng.normal(size=(2, 20_000)) + 1.0
        single = aligned_products([a], [b], band=5, dtype="float32")
        double = aligned_products([a], [b], band=5)
        # Totals of 10,000 resolve 1e-3 in float32, so some near ties are broken differently.
        np.testing.assert_allclose(single, double, atol=2e-4)

    @pytest.mark.parametrize("offset", [1e4, 1e8])
    def test_distances_do_not_change_when_both_series_are_moved(self, rng, offset):
        X = [rng.normal(size=(3, n)) for n in (12, 17, 9)]
        moved = [x + offset for x in X]
        settings = AlignmentSettings("distance", None, normalize=False)
        near, far = (Aligner(as_series(s), settings).distances(as_series(s)) for s in (X, moved))
        np.testing.assert_allclose(far, near, rtol=1e-6, atol=1e-6)
        result = align(*moved[:2], objective="distance", normalize=False)
        rows, columns = result.path.T
        total = np.sum((X[0][:, rows] - X[1][:, columns]) ** 2)
        np.testing.assert_allclose(total, near[0, 1], rtol=1e-9)
