from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.floating[Any]]
# Radius and slope.
Band = tuple[int, float]
# A tuple of path, length and similarity.
PairResult = TypeVar("PairResult", bound=tuple[npt.NDArray[np.int64], int, float])
# The series and the landmark that the band admits no path between.
NoPath = tuple[int, int] | None

# Added to the mean square of second differences.
WINDOW_FLATNESS: float

class Target:
    name: str
    def width(self, dtype: str) -> int: ...

class CancelToken:
    def __init__(self) -> None: ...
    def cancel(self) -> None: ...

class Rows32:
    def __init__(
        self,
        values: npt.NDArray[np.float64],
        offsets: npt.NDArray[np.int64],
        shift: npt.NDArray[np.float64] | None,
    ) -> None: ...

class Rows64:
    def __init__(
        self,
        values: npt.NDArray[np.float64],
        offsets: npt.NDArray[np.int64],
        shift: npt.NDArray[np.float64] | None,
    ) -> None: ...

class Landmarks32:
    pack_columns: list[int]
    summed_stride: int
    def __init__(
        self,
        values: npt.NDArray[np.float64],
        offsets: npt.NDArray[np.int64],
        shift: npt.NDArray[np.float64] | None,
        width: int,
        basis: npt.NDArray[np.float64] | None,
    ) -> None: ...

class Landmarks64:
    pack_columns: list[int]
    summed_stride: int
    def __init__(
        self,
        values: npt.NDArray[np.float64],
        offsets: npt.NDArray[np.int64],
        shift: npt.NDArray[np.float64] | None,
        width: int,
        basis: npt.NDArray[np.float64] | None,
    ) -> None: ...

# Series and landmarks of one call have the same precision, and so have its arrays.
Rows = Rows32 | Rows64
Landmarks = Landmarks32 | Landmarks64

def selected_target() -> Target: ...
def available_targets() -> list[Target]: ...
def score(
    series: Rows,
    landmarks: Landmarks,
    packs: tuple[int, int],
    band: Band,
    values: Values,
    lengths: npt.NDArray[np.int32],
    target: Target,
    token: CancelToken | None,
    /,
) -> NoPath: ...
def products(
    series: Rows,
    landmarks: Landmarks,
    packs: tuple[int, int],
    band: Band,
    out: Values,
    target: Target,
    token: CancelToken | None,
    /,
) -> NoPath: ...
def grouped(
    series: Rows,
    landmarks: Landmarks,
    packs: tuple[int, int],
    band: Band,
    weights: Values,
    out: Values,
    target: Target,
    token: CancelToken | None,
    /,
) -> NoPath: ...
def projected(
    series: Rows,
    landmarks: Landmarks,
    packs: tuple[int, int],
    band: Band,
    metrics: Values,
    out: Values,
    target: Target,
    token: CancelToken | None,
    /,
) -> NoPath: ...
def sums(
    series: Rows,
    landmarks: Landmarks,
    packs: tuple[int, int],
    band: Band,
    out: Values,
    target: Target,
    token: CancelToken | None,
    /,
) -> NoPath: ...
def align_pair(
    a: object,
    b: object,
    objective: object,
    normalize: bool,
    radius: int,
    slope: float,
    largest_norm: float,
    far_spreads: float,
    check_memory: Callable[[int, int], None],
    result_type: type[PairResult],
) -> PairResult | None: ...

class Windows:
    # Rows of the values before each window, in the order of `window_begin` and `window_end`.
    first: list[int]
    def __init__(
        self,
        values: npt.NDArray[np.float64],
        first: npt.NDArray[np.int64],
        channels: npt.NDArray[np.int64],
        dilations: npt.NDArray[np.int64],
        averaged: npt.NDArray[np.bool_],
        shape_only: npt.NDArray[np.bool_],
        thresholds: npt.NDArray[np.float64],
        centre: npt.NDArray[np.float64],
        spread: npt.NDArray[np.float64],
    ) -> None: ...

def window_counts(
    windows: Windows,
    values: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.int64],
    begin: int,
    end: int,
    window_begin: int,
    window_end: int,
    out: npt.NDArray[np.int32],
    target: Target,
    token: CancelToken | None,
) -> None: ...
def window_distances(
    windows: Windows,
    which: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
    target: Target,
) -> None: ...
def window_met(
    windows: Windows,
    which: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    out: npt.NDArray[np.uint8],
    target: Target,
) -> None: ...
def window_attribution(
    windows: Windows,
    which: npt.NDArray[np.int64],
    met: npt.NDArray[np.uint8],
    weights: npt.NDArray[np.float64],
    terms: npt.NDArray[np.float64],
    totals: npt.NDArray[np.float64],
    target: Target,
) -> None: ...
