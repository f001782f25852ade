"""Products of large matrices, in tiles for the threads of a fit, or on a GPU.

Each tile is a call of BLAS in one thread, so sums have the same bits for every number of threads.
Arrays of CuPy stay on their GPU.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
import scipy.linalg

from slts._typing import AnyArray, FloatArray
from slts.execution import fit_threads, map_threads

# Rows and columns of a tile.
_ROWS, _COLUMNS = 256, 512
# Multiplications below which threads take longer than one.
_FEW = 2e7


def matmul(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a @ b."""
    if on_gpu(a):
        return a @ b
    if a.shape[0] * b.size < _FEW:
        # Unlike `@`, this lets other threads work if there are few values.
        return np.asarray(a.dot(b))
    product = np.empty((a.shape[0], b.shape[1]))
    _fill_tiles(product, a, b, upper=False)
    return product


def gram(rows: FloatArray) -> FloatArray:
    """Return ``rows @ rows.T``; only one of its triangles is computed."""
    if on_gpu(rows):
        return rows @ rows.T
    product = np.empty((len(rows), len(rows)))
    _fill_tiles(product, rows, rows.T, upper=True)
    below = np.tril_indices(len(rows), -1)
    product[below] = product.T[below]
    return product


def eigh(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, ascending, and eigenvectors of a symmetric matrix, which may change."""
    if on_gpu(symmetric):
        values, vectors = sys.modules["cupy"].linalg.eigh(symmetric)
    else:
        values, vectors = scipy.linalg.eigh(
            symmetric, driver="evd", overwrite_a=True, check_finite=False
        )
    return values, vectors


def _fill_tiles(product: FloatArray, a: FloatArray, b: FloatArray, *, upper: bool) -> None:
    def fill(tile: tuple[int, int]) -> None:
        rows, columns = (slice(k, k + n) for k, n in zip(tile, (_ROWS, _COLUMNS), strict=True))
        if not upper or columns.stop > rows.start:
            np.matmul(a[rows], b[:, columns], out=product[rows, columns])

    starts = (range(0, n, k) for n, k in zip(product.shape, (_ROWS, _COLUMNS), strict=True))
    map_threads(fill, list(itertools.product(*starts)), n_jobs=fit_threads())


def on_gpu(array: Any) -> bool:
    """Whether an array is CuPy's."""
    # Not if CuPy is absent, blocked, or being imported by another thread.
    return isinstance(array, getattr(sys.modules.get("cupy"), "ndarray", ()))


def on_host(array: AnyArray) -> Any:
    """Return an array of NumPy."""
    return sys.modules["cupy"].asnumpy(array) if on_gpu(array) else array


def on_device_of(other: AnyArray, array: AnyArray) -> Any:
    """Return an array on the GPU of another, or on the host if the other is there."""
    return sys.modules["cupy"].asarray(array) if on_gpu(other) else on_host(array)
