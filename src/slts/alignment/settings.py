"""How alignments are found: objective, band, precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray
from slts.alignment.band import Band, native_band
from slts.errors import DataError
from slts.series import SeriesBatch, normalize_rows

OBJECTIVES = ("affinity", "cost", "distance")
DTYPES = ("float64", "float32")
# Products of two such rows, summed along any path, stay finite; so -inf means "no path" only.
_LARGEST_NORM = {"float64": 1e140, "float32": 1e14}


def check_dtype(dtype: object, owner: str) -> None:
    """Refuse what names no precision; `owner` is whose parameter it is."""
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(
            f"The 'dtype' parameter of {owner} must be one of {DTYPES}. Got {dtype!r} instead."
        )


@dataclass(frozen=True, slots=True)
class AlignmentSettings:
    """Everything that decides a path besides the two series.

    Parameters
    ----------
    objective
        ``"affinity"`` maximises the sum of a_i.b_j along the path (the paper's rule); ``"cost"``
        minimises the sum of 1 - a_i.b_j, which prefers short paths; ``"distance"`` minimises the
        sum of |a_i - b_j|^2, the same as ``"cost"`` on unit rows.
    band
        None, a Sakoe-Chiba radius in steps, or `Itakura`.
    normalize
        Scale every row to unit L2 norm first; all-zero rows stay zero.
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
        if not isinstance(self.dtype, str) or self.dtype not in DTYPES:
            object.__setattr__(self, "dtype", self._dtype_name())
        native_band(self.band)

    def _dtype_name(self) -> str:
        """Accept np.float32 and the like."""
        try:
            name = "" if self.dtype is None else np.dtype(self.dtype).name
        except TypeError:
            name = ""
        if name not in DTYPES:
            raise ValueError(
                f"The 'dtype' parameter must be one of {DTYPES}. Got {self.dtype!r} instead."
            )
        return name

    def prepare(self, batch: SeriesBatch) -> SeriesBatch:
        """Rows as the recurrence wants them: of unit norm, or checked to be usable as they are."""
        if self.normalize:
            return normalize_rows(batch)
        self.check_rows(batch)
        return batch

    def check_rows(self, batch: SeriesBatch) -> None:
        """Refuse rows whose products would overflow, or that are no unit rows where they must be.

        Rounding may take a unit row a little beyond 1.
        """
        limit = 1.0 + 1e-6 if self.objective == "cost" else _LARGEST_NORM[self.dtype]
        norms = np.sqrt(np.einsum("ij,ij->i", batch.values, batch.values))
        if not len(norms) or norms.max() <= limit:
            return
        longest = int(np.argmax(norms))
        index = int(np.searchsorted(batch.offsets, longest, side="right")) - 1
        raise DataError(
            f"objective={self.objective!r} with dtype={self.dtype!r} needs rows of norm at most "
            f"{limit:.6g}, series {index} has a row of norm {norms[longest]:.6g}: use "
            f"normalize=True, or scale the series."
        )

    def shift(self, batch: SeriesBatch) -> FloatArray | None:
        """Per row, what is taken off every local affinity.

        Two halves turn a.b into the cost 1 - a.b, two half squared norms into |a - b|^2 / 2.
        """
        if self.objective == "affinity":
            return None
        if self.objective == "cost":
            return np.full(batch.n_steps, 0.5)
        squares: FloatArray = np.einsum("ij,ij->i", batch.values, batch.values)
        return 0.5 * squares
