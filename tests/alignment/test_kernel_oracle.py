"""The kernel equals the plain reference, in every instruction set and precision."""

import os
import re
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slts import DataError, Itakura, align, as_series
from slts.alignment import Aligner, AlignmentSettings
from slts.alignment.cpu import available_targets
from slts.alignment.settings import OBJECTIVES
from tests.alignment.kernel_paths import kernel_paths
from tests.oracles import dtw

pytestmark = pytest.mark.slow

TARGETS = [target.name for target in available_targets()]
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
BANDS = [None, None, 0, 1, 2, 5, 20, 100, *map(Itakura, (1.0, 1.5, 2.0, 3.0, 10.0))]
SEEDS = st.integers(0, 2**32 - 1)
SHAPES = [(8, 9), (9, 8), (4, 17), (4, 18), (20, 3), (12, 1), (1, 33)]


@contextmanager
def instruction_set(name):
    before = os.environ.get("SLTS_ISA")
    os.environ["SLTS_ISA"] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ["SLTS_ISA"]
        else:
            os.environ["SLTS_ISA"] = before


def configurations():
    for name in TARGETS:
        for dtype in TOLERANCE:
            yield name, dtype


def gaussian(rng, n, d):
    return rng.normal(size=(n, d))


def repeated_rows(rng, n, d):
    distinct = rng.normal(size=(max(1, n // 3), d))
    return distinct[np.sort(rng.integers(len(distinct), size=n))]


def constant(rng, n, d):
    return np.tile(rng.normal(size=d), (n, 1))


def with_zero_rows(rng, n, d):
    return rng.normal(size=(n, d)) * (rng.random((n, 1)) < 0.6)


def correlated(rng, n, d):
    return rng.normal(size=d) + 0.1 * rng.normal(size=(n, d)).cumsum(axis=0)


def integers(rng, n, d):
    return rng.integers(-2, 3, size=(n, d)).astype(float)


def signed_units(rng, n, d):
    rows = np.zeros((n, d))
    rows[np.arange(n), rng.integers(min(d, 3), size=n)] = rng.integers(-1, 2, size=n)
    return rows


ROUNDED = [gaussian, repeated_rows, constant, with_zero_rows, correlated]


def ragged(rng, count, longest, d, kinds):
    lengths = rng.integers(1, longest + 1, size=count).tolist()
    return [kinds[rng.integers(len(kinds))](rng, n, d) for n in lengths]


def grid(seed, kinds, normalize=True, objectives=OBJECTIVES):
    """Series, landmarks and settings of one seed.

    Hypothesis draws the seed only, because it prefers small values and these choices should be
    uniform.
    """
    rng = np.random.default_rng(seed)
    n_series, n_landmarks = SHAPES[rng.integers(len(SHAPES))]
    longest = int(rng.choice([4, 13, 30, 60]))
    d = int(rng.integers(1, 34) if rng.random() < 0.7 else rng.integers(1, 5))
    chosen = [kind for kind in kinds if rng.random() < 0.5] or kinds
    objective = objectives[rng.integers(len(objectives))]
    how = AlignmentSettings(objective, BANDS[rng.integers(len(BANDS))], normalize)
    x = ragged(rng, n_series, longest, d, chosen)
    y = ragged(rng, n_landmarks, longest, d, chosen)
    return x, y, how, rng


def in_precision(how, dtype):
    return AlignmentSettings(how.objective, how.band, how.normalize, dtype)


def prepared(series, how):
    """The batch for the kernel, and the rows for the oracle."""
    batch = how.prepare(as_series(series, layout="time_first"))
    rows = [dtw.unit_rows(x) for x in series] if how.normalize else series
    return batch, rows


def rounding(how, dtype, n, m, d):
    """Bound of the error of a total: t additions to sums of at most t terms of unit size."""
    t = n + m - 1
    unit_sized = 1.0 if how.objective == "affinity" else 2.0
    return 2 * np.finfo(dtype).eps * unit_sized * t * (t + d + 4)


def admits_a_path(band, n, m):
    if not isinstance(band, Itakura):
        return True
    return dtw.best_path(np.zeros((n, m)), dtw.band_mask(band, n, m)) is not None


def keep_pairs_with_a_path(x, y, how):
    """Check the error of pairs without a path, and drop series until every pair has one."""
    feasible = np.array([[admits_a_path(how.band, len(a), len(b)) for b in y] for a in x])
    if feasible.all():
        return x, y
    series, landmarks = prepared(x, how)[0], prepared(y, how)[0]
    for name, dtype in configurations():
        with instruction_set(name), pytest.raises(DataError, match="admits no path") as caught:
            Aligner(landmarks, in_precision(how, dtype)).similarities(series)
        (p, n), (q, m) = re.findall(r"series (\d+) of . \(length (\d+)\)", str(caught.value))
        assert not feasible[int(p), int(q)]
        assert (int(n), int(m)) == (len(x[int(p)]), len(y[int(q)]))
    columns = np.flatnonzero(feasible[0])
    rows = np.flatnonzero(feasible[:, columns].all(axis=1))
    return [x[p] for p in rows], [y[q] for q in columns]


def check_path(path, reference, local, mask, allowed):
    """Check for the path of the reference if it is clearly best, else for one as good."""
    if allowed == 0 or reference.gap > allowed:
        np.testing.assert_array_equal(path, reference.path)
    else:
        assert dtw.is_path(path, mask)
        assert local[path[:, 0], path[:, 1]].sum() >= reference.total - allowed


def check_grid(x, y, how, rng, *, exact):
    x, y = keep_pairs_with_a_path(x, y, how)
    if not x or not y:
        return
    series, rows_x = prepared(x, how)
    landmarks, rows_y = prepared(y, how)
    d = series.n_channels
    references = {}
    for p, a in enumerate(rows_x):
        for q, b in enumerate(rows_y):
            local = dtw.local_values(a, b, how.objective)
            mask = dtw.band_mask(how.band, len(a), len(b))
            references[p, q] = dtw.best_path(local, mask), local, mask
    dense = rng.normal(size=(1, len(y))) / len(y)
    sparse = np.eye(3)[rng.integers(3, size=len(y))].T / len(y)
    weights = np.vstack([dense, sparse, np.zeros((1, len(y)))])
    metrics = rng.normal(size=(3, d, d)) / d
    largest = 1.0 if how.normalize else 4.0 * d

    for name, dtype in configurations():
        setting = in_precision(how, dtype)
        aligner = Aligner(landmarks, setting)
        with instruction_set(name):
            K = aligner.similarities(series)
            T = aligner.products(series)
            G = aligner.grouped(series, weights)[:, :, 0]
            P = aligner.projected(series, metrics)
            D = None if how.objective == "affinity" else aligner.distances(series)
            paths = kernel_paths(series, landmarks, setting)
            pairs = {
                (p, q): align(
                    x[p].T, y[q].T, objective=how.objective, band=how.band, normalize=how.normalize
                )
                for p, q in paths
                if dtype == "float64"
            }
        assert K.dtype == T.dtype == G.dtype == P.dtype == np.dtype(dtype)
        # At a near tie any path will do, but all reductions must be those of the same path.
        T_ref = np.empty((len(x), len(y), d, d))
        K_ref, total_ref = np.empty((2, len(x), len(y)))
        for (p, q), path in paths.items():
            reference, local, mask = references[p, q]
            allowed = 0.0 if exact else rounding(how, dtype, len(x[p]), len(y[q]), d)
            check_path(path, reference, local, mask, allowed)
            T_ref[p, q] = dtw.aligned_product(rows_x[p], rows_y[q], path)
            K_ref[p, q] = dtw.mean_affinity(rows_x[p], rows_y[q], path)
            total_ref[p, q] = local[path[:, 0], path[:, 1]].sum()
        close = {"rtol": 0, "atol": TOLERANCE[dtype] * largest}
        np.testing.assert_allclose(K, K_ref, **close)
        np.testing.assert_allclose(T, T_ref, **close)
        if D is not None:
            np.testing.assert_allclose(D, -2 * total_ref, rtol=0, atol=100 * close["atol"])
        np.testing.assert_allclose(G, np.einsum("gq,pqkl->pgkl", weights, T_ref), **close)
        np.testing.assert_allclose(P, np.einsum("ckl,pqkl->pqc", metrics, T_ref), **close)
        for (p, q), pair in pairs.items():
            reference, local, mask = references[p, q]
            allowed = 0.0 if exact else rounding(how, dtype, len(x[p]), len(y[q]), d)
            check_path(pair.path, reference, local, mask, allowed)
            mean = dtw.mean_affinity(rows_x[p], rows_y[q], pair.path)
            assert pair.length == len(pair.path)
            assert abs(pair.similarity - mean) <= close["atol"]


@settings(max_examples=60)
@given(SEEDS)
def test_reductions_of_real_data_equal_the_reference(seed):
    check_grid(*grid(seed, ROUNDED), exact=False)


@settings(max_examples=40)
@given(SEEDS)
def test_exact_ties_of_integers_go_diagonal_up_left(seed):
    check_grid(*grid(seed, [integers], False, ("affinity", "distance")), exact=True)


@settings(max_examples=40)
@given(SEEDS)
def test_exact_ties_of_unit_vectors_go_diagonal_up_left(seed):
    check_grid(*grid(seed, [signed_units]), exact=True)


@settings(max_examples=200)
@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from(BANDS), st.sampled_from([1, -1]))
def test_paths_follow_both_edges_of_the_band(n, m, band, side):
    # The affinity is j - i or i - j, so the best path runs along one edge.
    a = np.column_stack([np.full(n, side), -side * np.arange(n)]).astype(float)
    b = np.column_stack([np.arange(m), np.ones(m)])
    expected = dtw.align(a, b, band=band)
    if expected is None:
        with pytest.raises(DataError, match="admits no path"):
            align(a.T, b.T, band=band, normalize=False)
    else:
        alignment = align(a.T, b.T, band=band, normalize=False)
        np.testing.assert_array_equal(alignment.path, expected.path)
