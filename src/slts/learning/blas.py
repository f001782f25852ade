"""Products of large matrices by one library.

NumPy and SciPy have a BLAS each. Its threads spin for a while after a call, so calls that alternate
between the two wait for each other: with 16 threads a fit takes 50% longer. Factorisations use
SciPy's BLAS, so the products between them use it too.
"""

from __future__ import annotations

from scipy.linalg.blas import dgemm

from slts._typing import FloatArray


def matmul(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a @ b, without copies of what is contiguous in either order."""
    if not (a.size and b.size):
        return a @ b
    # BLAS takes matrices in Fortran's order, and a row-major result is the transpose of b' a'.
    (second, trans_b), (first, trans_a) = _in_fortran_order(a), _in_fortran_order(b)
    product: FloatArray = dgemm(1.0, first, second, trans_a=trans_a, trans_b=trans_b)
    return product.T


def _in_fortran_order(matrix: FloatArray) -> tuple[FloatArray, bool]:
    """Return the transpose of a matrix, and whether BLAS has to transpose it for that."""
    return (matrix.T, False) if matrix.flags.c_contiguous else (matrix, True)
