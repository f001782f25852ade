"""Products of large matrices, by SciPy's BLAS or on a GPU.

NumPy and SciPy have a BLAS each. Its threads spin for a while after a call, so calls that alternate
between the two wait for each other: with 16 threads a fit takes 50% longer. Factorisations use
SciPy's BLAS, so the products between them use it too. Arrays of CuPy stay on their GPU.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg.blas import daxpy, dgemm, dsymm, dsyrk

from slts._typing import AnyArray, FloatArray

# Rows of a sum on a GPU that are added at once: what is added must not be as large as the sum.
_BLOCK_ROWS = 4096


def matmul(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a @ b, without copies of what is contiguous in either order."""
    if on_gpu(a) or not (a.size and b.size):
        return a @ b
    # BLAS takes matrices in Fortran's order, and a row-major result is the transpose of b' a'.
    (second, trans_b), (first, trans_a) = _in_fortran_order(a), _in_fortran_order(b)
    # SciPy would fill a new array with zeros first, in one thread.
    product = np.empty((len(a), b.shape[1]))
    dgemm(1.0, first, second, 0.0, product.T, trans_a, trans_b, overwrite_c=True)
    return product


def add_products(total: FloatArray, rows: FloatArray, others: FloatArray) -> None:
    """Add ``rows @ others.T`` to a row-major sum."""
    if on_gpu(total):
        for some in row_blocks(total, _BLOCK_ROWS):
            total[some] += rows[some] @ others.T
    else:
        # In place: products are as large as their sum. BLAS takes the transposes without copies.
        dgemm(1.0, others.T, rows.T, 1.0, total.T, trans_a=True, overwrite_c=True)


def add_gram(total: FloatArray, rows: FloatArray) -> None:
    """Add ``rows @ rows.T`` to the upper triangle of a row-major sum: half of the work."""
    if on_gpu(total):
        add_products(total, rows, rows)
    elif rows.size:
        columns, swapped = _in_fortran_order(rows)
        dsyrk(1.0, columns, 1.0, total.T, trans=not swapped, lower=True, overwrite_c=True)


def add_scaled(total: FloatArray, other: FloatArray, scale: float) -> None:
    """Add another array, times a number; both are contiguous."""
    if on_gpu(total):
        for some in row_blocks(total, _BLOCK_ROWS):
            total[some] += scale * other[some]
    else:
        # BLAS adds in threads.
        daxpy(other.ravel(), total.ravel(), a=scale)


def eigh(upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors of a symmetric matrix, given its upper triangle."""
    if on_gpu(upper):
        values, vectors = sys.modules["cupy"].linalg.eigh(upper, UPLO="U")
    else:
        # The transpose is in the order of LAPACK.
        values, vectors = linalg.eigh(upper.T, lower=True, check_finite=False, driver="evd")
    return values, vectors


def symmetric_matmul(upper: FloatArray, b: FloatArray) -> FloatArray:
    """Return the product of a symmetric matrix, given its upper triangle, with another."""
    if on_gpu(upper) or not b.size:
        return (np.triu(upper) + np.triu(upper, 1).T) @ b
    product: FloatArray = dsymm(1.0, upper.T, b, lower=True)
    return product


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


def row_blocks(array: FloatArray, n_rows: int) -> list[slice]:
    """Cut a large array into blocks of rows, so that what is computed from it stays small."""
    return [slice(k, k + n_rows) for k in range(0, len(array), n_rows)]


def _in_fortran_order(matrix: FloatArray) -> tuple[FloatArray, bool]:
    """Return the transpose of a matrix, and whether BLAS has to transpose it for that."""
    return (matrix.T, False) if matrix.flags.c_contiguous else (matrix, True)
