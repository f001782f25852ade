from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray

# Converted to float64.
Features = npt.NDArray[np.floating[Any]]

def solve_definite(matrix: FloatArray, diagonal: float, right: FloatArray) -> FloatArray: ...

# Overwrites the lower triangle of a matrix in Fortran's order with its Cholesky factor with pivots.
# Returns the order of the rows and the rank.
def factorise_pivoted(matrix: FloatArray, least: float) -> tuple[list[int], int]: ...

# rows L'^-1, or rows L^-1. L is the leading k x k lower triangle of the factor, which has Fortran's
# order; k is the number of columns of the rows.
def solve_lower(
    factor: FloatArray, rows: FloatArray, *, transposed: bool = False
) -> FloatArray: ...

# A symmetric matrix, minus the outer product of a vector with itself: Q T Q' with tridiagonal T.
# Shifts s are added to its diagonal.
class Tridiagonal:
    def __init__(self, matrix: FloatArray, subtracted: FloatArray) -> None: ...
    # rows Q, or rows Q'.
    def rotate(self, rows: FloatArray, *, back: bool = False) -> FloatArray: ...
    # rows (T + s I)^-1, shape (shifts, rows, columns).
    def solve(self, rows: FloatArray, shifts: FloatArray) -> FloatArray: ...
    # x (T + s I)^-1 x' of every row x, shape (rows, shifts).
    def quadratic(self, rows: FloatArray, shifts: FloatArray) -> FloatArray: ...

class System:
    primal: FloatArray
    dual: FloatArray
    coef: FloatArray
    # At the point of the last values.
    @property
    def margins(self) -> FloatArray: ...
    @property
    def loss(self) -> float: ...
    # Total and gradient of a dual point.
    @property
    def certificate(self) -> tuple[float, FloatArray]: ...
    def values(self) -> tuple[float, float]: ...
    # The Newton step for a change of the products, for tests.
    def direction(self, target: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    def minimise(self, *, tol: float, max_iter: int, floor: float = 0.0) -> int: ...

class SquaredNormSystem(System):
    def __init__(
        self, rows: Features, weights: FloatArray, strength: float, start: FloatArray
    ) -> None: ...

class L1BallSystem(System):
    def __init__(self, rows: Features, weights: FloatArray, radius: float) -> None: ...

class SmallestNormSystem(System):
    def __init__(self, rows: Features, start: FloatArray) -> None: ...
