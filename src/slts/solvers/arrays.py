"""Products of large matrices, in tiles for the threads of a fit, or on a GPU.

Each tile is a call of BLAS in one thread, so sums have the same bits for every number of threads.
Arrays of CuPy stay on their GPU.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any, cast

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.execution import fit_threads, map_threads

# Rows and columns of a tile.
_TILE = 256
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
    _fill_tiles(product, a, b, symmetric=False)
    return product


def gram(rows: FloatArray) -> FloatArray:
    """Return ``rows @ rows.T``; only one of its triangles is computed."""
    if on_gpu(rows):
        return rows @ rows.T
    product = np.empty((len(rows), len(rows)))
    _fill_tiles(product, rows, rows.T, symmetric=True)
    return product


def eigh(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, ascending, and eigenvectors of a symmetric matrix."""
    if on_gpu(symmetric):
        values, vectors = sys.modules["cupy"].linalg.eigh(symmetric)
    else:
        # Unlike SciPy's function, this lets other threads work.
        values, vectors = np.linalg.eigh(symmetric)
    return values, vectors


def _fill_tiles(product: FloatArray, a: FloatArray, b: FloatArray, *, symmetric: bool) -> None:
    def fill(corner: tuple[int, int]) -> None:
        rows = slice(corner[0], corner[0] + _TILE)
        columns = slice(corner[1], corner[1] + _TILE)
        if not symmetric:
            np.matmul(a[rows], b[:, columns], out=product[rows, columns])
        elif columns.start >= rows.start:
            tile = np.matmul(a[rows], b[:, columns])
            product[rows, columns], product[columns, rows] = tile, tile.T

    first_rows, first_columns = (range(0, n, _TILE) for n in product.shape)
    corners = list(itertools.product(first_rows, first_columns))
    map_threads(fill, corners, n_jobs=fit_threads())


def on_gpu(array: Any) -> bool:
    """Whether an array is CuPy's."""
    # Not if CuPy is absent, blocked, or being imported by another thread.
    return isinstance(array, getattr(sys.modules.get("cupy"), "ndarray", ()))


def on_host(array: FloatArray) -> FloatArray:
    """Return an array of NumPy."""
    return cast(FloatArray, sys.modules["cupy"].asnumpy(array)) if on_gpu(array) else array


def on_device_of(other: AnyArray, array: AnyArray) -> Any:
    """Return an array on the GPU of another, or on the host if the other is there."""
    return sys.modules["cupy"].asarray(array) if on_gpu(other) else on_host(array)
