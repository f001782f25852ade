"""Comparison of all reductions on the GPU with the reference."""

import numpy as np

from slts import as_series
from slts.alignment.cuda.backend import CudaBackend
from slts.alignment.settings import AlignmentSettings, LandmarkLayouts
from tests.alignment.kernel_paths import kernel_paths
from tests.oracles import dtw

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


def ragged(rng, count, lengths, d):
    """Gaussian series, some of them with repeated rows (ties) or zero rows."""
    series = []
    for k in range(count):
        rows = rng.normal(size=(int(rng.choice(lengths)), d))
        if k % 4 == 1:
            rows = rows[np.sort(rng.integers(len(rows), size=len(rows)))]
        if k % 4 == 2:
            rows *= rng.random((len(rows), 1)) < 0.7
        series.append(rows)
    return series


def prepared(how, rng, counts, lengths, d):
    """Collections of ragged series, as they are aligned."""
    return [
        how.prepare(as_series(ragged(rng, count, lengths, d), layout="time_first"))
        for count in counts
    ]


def admits_a_path(band, n, m):
    return dtw.best_path(np.zeros((n, m)), dtw.band_mask(band, n, m)) is not None


def check_parity(x, y, how, rng, memory=None, exact=False):
    """Compare totals, means, paths, products, sums and projections. Returns the largest error."""
    if how.band is not None and not isinstance(how.band, int):
        x = [a for a in x if all(admits_a_path(how.band, len(a), len(b)) for b in y)] or x[:1]
        y = [b for b in y if all(admits_a_path(how.band, len(a), len(b)) for a in x)]
        if not y:
            return 0.0
    series = how.prepare(as_series(x, layout="time_first"))
    landmarks = how.prepare(as_series(y, layout="time_first"))
    rows_x, rows_y = (list(map(dtw.unit_rows, s)) if how.normalize else s for s in (x, y))
    d, shape = series.n_channels, (len(x), len(y))
    backend = CudaBackend(series, LandmarkLayouts(landmarks, how), memory=memory)

    paths = kernel_paths(series, landmarks, how, CudaBackend, memory=memory)
    T_ref = np.empty((*shape, d, d))
    K_ref, total_ref, length = np.empty((3, *shape))
    phased_ref = np.zeros((3, *shape, d, d))
    for p, a in enumerate(rows_x):
        for q, b in enumerate(rows_y):
            path = paths[p, q]
            local = dtw.local_values(a, b, how.objective)
            mask = dtw.band_mask(how.band, len(a), len(b))
            reference = dtw.best_path(local, mask)
            t = len(a) + len(b) - 1
            allowed = 4 * np.finfo(how.dtype).eps * t * (t + d + 4)
            if exact or reference.gap > allowed:
                np.testing.assert_array_equal(path, reference.path)
            else:
                assert dtw.is_path(path, mask)
                assert local[path[:, 0], path[:, 1]].sum() >= reference.total - allowed
            T_ref[p, q] = dtw.aligned_product(a, b, path)
            K_ref[p, q] = dtw.mean_affinity(a, b, path)
            total_ref[p, q] = local[path[:, 0], path[:, 1]].sum()
            length[p, q] = len(path)
            phase = path[:, 1] * 3 // len(b)
            for f in range(3):
                part = path[phase == f]
                phased_ref[f, p, q] = a[part[:, 0]].T @ b[part[:, 1]] / len(path)

    # Landmarks in one group, in several, in none.
    weights = np.eye(4)[rng.integers(4, size=len(y))].T[:3] / len(y)
    weights = np.vstack([weights, rng.normal(size=len(y)) / len(y), np.zeros(len(y))])
    weights = np.ascontiguousarray(weights, dtype=how.dtype)
    metrics = np.ascontiguousarray(rng.normal(size=(6, d, d)) / d, dtype=how.dtype)
    totals, means = np.empty((2, *shape), dtype=how.dtype)
    T = np.empty((*shape, d, d), dtype=how.dtype)
    G = np.empty((len(x), 5, 1, d, d), dtype=how.dtype)
    F = np.empty((len(x), 5, 3, d, d), dtype=how.dtype)
    P = np.empty((*shape, 6), dtype=how.dtype)
    for array in (totals, means, T, P):
        array.fill(np.nan)
    backend.scores(totals, mean=False)
    backend.scores(means, mean=True)
    backend.products(T)
    backend.grouped(weights, G)
    backend.grouped(weights, F)
    backend.projected(metrics, P)

    largest = 1.0 if how.normalize else 4.0 * d
    close = {"rtol": 0, "atol": TOLERANCE[how.dtype] * largest}
    scale = np.maximum(1.0, length) * largest
    np.testing.assert_allclose(totals / scale, total_ref / scale, **close)
    if how.objective != "distance":
        np.testing.assert_allclose(means, K_ref, **close)
    np.testing.assert_allclose(T, T_ref, **close)
    np.testing.assert_allclose(G[:, :, 0], np.einsum("gq,pqkl->pgkl", weights, T_ref), **close)
    np.testing.assert_allclose(F, np.einsum("gq,fpqkl->pgfkl", weights, phased_ref), **close)
    np.testing.assert_allclose(P, np.einsum("ckl,pqkl->pqc", metrics, T_ref), **close)
    return float(np.abs(T - T_ref).max())


def settings(objective, band, dtype, normalize=True):
    return AlignmentSettings(objective, band, normalize, dtype)
