"""Products of large matrices, in tiles for the threads of a fit, or on a GPU.

Each tile is a call of BLAS in one thread. On 16 cores this is 13 times as fast as one thread, and
threads of BLAS are 6 times as fast.
Arrays of CuPy stay on their GPU.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.execution import ThreadRunner, fit_threads

Result = TypeVar("Result")

# Rows and columns of a tile. They do not depend on the number of threads, nor do the bits of sums.
_ROWS, _COLUMNS = 256, 512
# They are divided by at most four while there are fewer tiles, so that threads end together.
_FEWEST_TILES = 100
# Multiplications below which threads take longer than one.
_FEW = 2e7
# Rows that a thread copies at once.
_COPIED_ROWS = 256
# Rows of a sum on a GPU that are added at once: what is added must not be as large as the sum.
_BLOCK_ROWS = 4096


def matmul(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a @ b."""
    if on_gpu(a):
        return a @ b
    a, b = _in_some_order(a), _in_some_order(b)
    product = np.empty((len(a), b.shape[1]))

    def multiply(rows: slice, columns: slice) -> None:
        np.matmul(a[rows], b[:, columns], out=product[rows, columns])

    _map_tiles(multiply, product, a.shape[1])
    return product


def add_products(total: FloatArray, rows: FloatArray, others: FloatArray) -> None:
    """Add ``rows @ others.T`` to a sum."""
    if on_gpu(total):
        for some in row_blocks(total, _BLOCK_ROWS):
            total[some] += rows[some] @ others.T
    else:
        _add_tiles(total, rows, others, upper=False)


def add_gram(total: FloatArray, rows: FloatArray) -> None:
    """Add ``rows @ rows.T`` to a sum of which the upper triangle counts: half of the work."""
    if on_gpu(total):
        add_products(total, rows, rows)
    else:
        _add_tiles(total, rows, rows, upper=True)


def _add_tiles(total: FloatArray, rows: FloatArray, others: FloatArray, *, upper: bool) -> None:
    rows, others = _in_some_order(rows), _in_some_order(others)

    def add(of_rows: slice, columns: slice) -> None:
        if not upper or columns.stop > of_rows.start:
            total[of_rows, columns] += rows[of_rows] @ others[columns].T

    _map_tiles(add, total, rows.shape[1])


def mirror(gram: FloatArray) -> None:
    """Copy the upper triangle of a sum by `add_gram` to the lower one; a GPU has summed both."""

    def fill(rows: slice) -> None:
        begin, end = rows.start, min(rows.stop, len(gram))
        gram[begin:end, :begin] = gram[:begin, begin:end].T
        own = gram[begin:end, begin:end]
        below = np.tril_indices(len(own), -1)
        own[below] = own.T[below]

    if not on_gpu(gram):
        map_rows(fill, gram, _COPIED_ROWS)


def add_scaled(total: FloatArray, other: FloatArray, scale: float) -> None:
    """Add another array, times a number."""

    def add(rows: slice) -> None:
        total[rows] += scale * other[rows]

    map_rows(add, total, _BLOCK_ROWS if on_gpu(total) else _COPIED_ROWS)


def take_rows(array: AnyArray, rows: IntArray) -> AnyArray:
    """Return some rows of a large array."""
    if on_gpu(array):
        return array[rows]
    taken = np.empty((len(rows), *array.shape[1:]), dtype=array.dtype)

    def take(some: slice) -> None:
        taken[some] = array[rows[some]]

    map_rows(take, taken, _COPIED_ROWS)
    return taken


def map_rows(task: Callable[[slice], Result], array: AnyArray, n_rows: int) -> list[Result]:
    """Call a task with blocks of rows of a large array, in the threads of the fit."""
    runner = ThreadRunner(1 if on_gpu(array) else fit_threads())
    return list(runner.map(lambda rows, *_: task(rows), row_blocks(array, n_rows)))


def _map_tiles(task: Callable[[slice, slice], None], product: FloatArray, depth: int) -> None:
    """Call a task with the rows and columns of every tile of a product."""
    few = product.size * depth < _FEW
    for part in (1, 2, 4):
        rows, columns = row_blocks(product, _ROWS // part), row_blocks(product.T, _COLUMNS // part)
        if few or len(rows) * len(columns) >= _FEWEST_TILES:
            break
    runner = ThreadRunner(1 if few else fit_threads())
    for _ in runner.map(lambda tile, *_: task(*tile), list(itertools.product(rows, columns))):
        pass


def eigh(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors of a symmetric matrix on a GPU."""
    values, vectors = sys.modules["cupy"].linalg.eigh(symmetric)
    return values, vectors


def on_gpu(array: Any) -> bool:
    """Whether an array is CuPy's."""
    # Not if CuPy is absent, blocked, or being imported by another thread.
    return isinstance(array, getattr(sys.modules.get("cupy"), "ndarray", ()))


def on_host(array: AnyArray) -> Any:
    """Return an array of NumPy."""
    return sys.modules["cupy"].asnumpy(array) if on_gpu(array) else array


def on_device_of(other: AnyArray, array: AnyArray) -> Any:
    """Return an array on the GPU of another, or the array itself if the other is on the host."""
    return sys.modules["cupy"].asarray(array) if on_gpu(other) else on_host(array)


def row_blocks(array: AnyArray, n_rows: int) -> list[slice]:
    """Cut a large array into blocks of rows, so that what is computed from it stays small."""
    return [slice(k, k + n_rows) for k in range(0, len(array), n_rows)]


def _in_some_order(matrix: FloatArray) -> FloatArray:
    """Return a matrix as BLAS takes it: its rows or its columns are contiguous."""
    return matrix if matrix.itemsize in matrix.strides else np.ascontiguousarray(matrix)
