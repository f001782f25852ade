"""Settings of an alignment: objective, band, normalisation, precision; layouts; the device.

A band says which cells (i, j) of the grid a path may use.
"""

from __future__ import annotations

import logging
import numbers
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from slts._typing import FloatArray
from slts.errors import DataError
from slts.extras import import_extra
from slts.series import SeriesBatch, normalize_rows
from slts.series.values import leave_out_missing

OBJECTIVES = ("affinity", "cost", "distance")
DTYPES = ("float64", "float32")
# For objective "distance", mean rows this many standard deviations from the origin are subtracted.
FAR_SPREADS = 16.0
# Products of such rows, summed along any path, are finite, so -inf always means "no path".
_LARGEST_NORM = {"float64": 1e140, "float32": 1e14}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Itakura:
    """Parallelogram: paths at most `max_slope` times steeper or flatter than the straight path.

    Parameters
    ----------
    max_slope
        At least 1; 1 admits the straight path only.
    """

    max_slope: float = 2.0

    def __post_init__(self) -> None:
        slope = self.max_slope
        is_number = isinstance(slope, numbers.Real) and not isinstance(slope, bool)
        if not (is_number and 1.0 <= slope < np.inf):
            raise ValueError(
                f"The 'max_slope' parameter of Itakura must be a finite number >= 1. "
                f"Got {self.max_slope!r} instead."
            )


Band = int | Itakura | None
"""None (no band), a Sakoe-Chiba radius in steps, or an Itakura parallelogram."""


def band_limits(band: Band) -> tuple[int, float]:
    """Check `band` and return its radius and its slope: -1 and 0.0 if it has none."""
    if band is None:
        return -1, 0.0
    if isinstance(band, Itakura):
        return -1, float(band.max_slope)
    if isinstance(band, numbers.Integral) and not isinstance(band, bool) and band >= 0:
        # No series is longer than this. A larger radius would overflow in the kernel.
        return min(int(band), 2**40), 0.0
    raise ValueError(
        f"The 'band' parameter must be None, an int >= 0 (Sakoe-Chiba radius in steps) or "
        f"Itakura(max_slope). Got {band!r} instead."
    )


def largest_norm(objective: str, dtype: str) -> float:
    """Return the largest norm of rows that are not normalised.

    For ``"cost"`` it is 1, with room for rounding.
    """
    return 1.0 + 1e-6 if objective == "cost" else _LARGEST_NORM[dtype]


def no_path_error(band: Band, one: str, n: int, other: str, m: int) -> DataError:
    """Make the error for a band that admits no path between two series."""
    return DataError(
        f"band={band!r} admits no path between {one} (length {n}) and {other} (length "
        f"{m}): use a larger max_slope, a Sakoe-Chiba radius, or band=None."
    )


@dataclass(frozen=True, slots=True)
class AlignmentSettings:
    """Everything besides the two series that determines a path.

    Parameters
    ----------
    objective
        ``"affinity"`` maximises the sum of a_i.b_j along the path (the paper's rule); ``"cost"``
        minimises the sum of 1 - a_i.b_j, which prefers short paths; ``"distance"`` minimises the
        sum of |a_i - b_j|^2, the same as ``"cost"`` on unit rows.
    band
        None, a Sakoe-Chiba radius in steps, or `Itakura`.
    normalize
        Scale every row to unit L2 norm first. All-zero rows stay zero.
    dtype
        Precision of the computation and of the result, ``"float64"`` or ``"float32"``.
    """

    objective: str = "affinity"
    band: Band = None
    normalize: bool = True
    dtype: str = "float64"

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(
                f"The 'objective' parameter must be one of {OBJECTIVES}. "
                f"Got {self.objective!r} instead."
            )
        object.__setattr__(self, "dtype", _dtype_name(self.dtype))
        band_limits(self.band)

    def prepare(self, batch: SeriesBatch) -> SeriesBatch:
        """Leave out missing values; normalise the rows, or check that they can be aligned."""
        batch = leave_out_missing(batch)
        if self.normalize:
            return normalize_rows(batch)
        self.check_rows(batch)
        return batch

    def check_rows(self, batch: SeriesBatch) -> None:
        """Raise an error if products of rows could overflow, or rows are too long for "cost"."""
        limit = largest_norm(self.objective, self.dtype)
        norms = np.sqrt(_squared_norms(batch))
        if not len(norms) or norms.max() <= limit:
            return
        longest = int(np.argmax(norms))
        index = int(np.searchsorted(batch.offsets, longest, side="right")) - 1
        raise DataError(
            f"objective={self.objective!r} with dtype={self.dtype!r} needs rows of norm at most "
            f"{limit:.6g}, but {batch.name_of(index, 'X')} has a row of norm "
            f"{norms[longest]:.6g}: use normalize=True, or scale the series."
        )

    def shift(self, batch: SeriesBatch) -> FloatArray | None:
        """Return the number per row that is subtracted from every local affinity.

        Two halves turn a.b into the cost 1 - a.b, two half squared norms into |a - b|^2 / 2.
        """
        if self.objective == "affinity":
            return None
        if self.objective == "cost":
            return np.full(batch.n_steps, 0.5)
        return 0.5 * _squared_norms(batch)


def _dtype_name(dtype: Any) -> str:
    """Return the name of a precision, which may be given as np.float32 and the like."""
    with suppress(TypeError):
        if dtype is not None and np.dtype(dtype).name in DTYPES:
            return str(np.dtype(dtype).name)
    raise ValueError(f"The 'dtype' parameter must be one of {DTYPES}. Got {dtype!r} instead.")


def _squared_norms(batch: SeriesBatch) -> FloatArray:
    norms: FloatArray = np.einsum("ij,ij->i", batch.values, batch.values)
    return norms


@dataclass(frozen=True, eq=False)
class LandmarkLayouts:
    """Landmarks, settings, basis, and the layouts that the backends make on first use."""

    landmarks: SeriesBatch
    settings: AlignmentSettings
    basis: FloatArray | None = None
    _layouts: dict[Hashable, Any] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    @property
    def band(self) -> tuple[int, float]:
        """Radius and slope of the band."""
        return band_limits(self.settings.band)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the layout of this key. The first call makes it, other threads wait for it."""
        with self._lock:
            if key not in self._layouts:
                self._layouts[key] = make()
            layout: T = self._layouts[key]
            return layout

    def centred(self) -> tuple[LandmarkLayouts, FloatArray | None]:
        """Layouts for sums of squared distances, and the row to subtract from the series, if any.

        Subtracting one row from both sides changes no distance, but a.b - |a|^2/2 - |b|^2/2 is
        accurate only near the origin. Rows near the origin are left as they are, so that exact ties
        stay exact. Costs of unit rows need no centre.
        """

        def make() -> tuple[LandmarkLayouts, FloatArray | None]:
            values = self.landmarks.values
            if self.settings.objective == "distance" and len(values):
                centre: FloatArray = values.mean(axis=0)
                spread = float(np.sqrt(np.mean((values - centre) ** 2)))
                if float(np.abs(centre).max()) > FAR_SPREADS * spread:
                    return LandmarkLayouts(moved(self.landmarks, centre), self.settings), centre
            return self, None

        return self.get("centred", make)

    def no_path(self, series: SeriesBatch, p: int, q: int) -> DataError:
        """Make the error for a band that admits no path between series p and landmark q."""
        n, m = int(series.lengths[p]), int(self.landmarks.lengths[q])
        one, other = series.name_of(p, "X"), self.landmarks.name_of(q, "Y")
        return no_path_error(self.settings.band, one, n, other, m)


def moved(batch: SeriesBatch, centre: FloatArray) -> SeriesBatch:
    """Subtract one row from every row."""
    return batch.with_values(batch.values - centre, batch.channel_names)


# ---- devices


DEVICES = ("cpu", "cuda", "auto")
# Operations below which starting a GPU takes longer than the work: seconds of one core.
WORTH_A_GPU = 5e10

_LOGGER = logging.getLogger("slts")
_logged: set[str] = set()


def check_device(device: str, owner: str | None = None) -> None:
    """Raise an error unless `device` names a device. `owner` has the parameter."""
    if not isinstance(device, str) or device not in DEVICES:
        of = "" if owner is None else f" of {owner}"
        raise ValueError(
            f"The 'device' parameter{of} must be one of {DEVICES}. Got {device!r} instead."
        )


def require_device(device: str, owner: str) -> None:
    """Raise an error before any work if the device is unknown or the GPU is missing."""
    check_device(device, owner)
    if device == "cuda":
        require_gpu()


def runs_on_cuda(device: str, operations: float) -> bool:
    """Whether the GPU computes this many operations.

    ``"cuda"`` requires a GPU. ``"auto"`` uses a GPU for large work if there is one, and logs the
    choice once (logger "slts", level INFO).
    """
    check_device(device)
    if device == "cuda":
        require_gpu()
        return True
    if device == "cpu" or operations < WORTH_A_GPU:
        return False
    try:
        cupy = require_gpu()
    except (ImportError, RuntimeError) as error:
        _log_once(f"device='auto' uses the CPU: {error}")
        return False
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
    _log_once(f"device='auto' uses the GPU for large work: {name.decode()}")
    return True


def array_module(device: str, operations: float) -> Any:
    """Return CuPy if the GPU computes this many operations, else NumPy."""
    return require_gpu() if runs_on_cuda(device, operations) else np


def require_gpu() -> Any:
    """Return the module `cupy`, or raise an error that says what is missing."""
    cupy = import_extra("cupy", "cuda")
    cause = None
    try:
        if cupy.cuda.runtime.getDeviceCount() > 0:
            return cupy
    except cupy.cuda.runtime.CUDARuntimeError as error:
        cause = error
    raise RuntimeError(
        f"device='cuda' needs an NVIDIA GPU and its driver, but CuPy finds none"
        f"{f' ({cause})' if cause else ''}: use device='cpu'. CuPy itself is installed (extra "
        f"slts[cuda])."
    ) from cause


def _log_once(message: str) -> None:
    if message not in _logged:
        _logged.add(message)
        _LOGGER.info(message)
