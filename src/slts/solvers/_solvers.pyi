from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray

# Converted to float64.
Features = npt.NDArray[np.floating[Any]]

def solve_definite(matrix: FloatArray, diagonal: float, right: FloatArray) -> FloatArray: ...

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
