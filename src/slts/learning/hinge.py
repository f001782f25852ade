"""The weighted hinge loss ``sum_i c_i [1 - f_i]_+`` over many rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.learning.interior import System

_PASS_ELEMENTS = 1 << 20


@dataclass(frozen=True)
class HingeRows:
    """Rows ``label_i * features_i * scale`` with weights ``c_i``.

    The weights of a whole problem sum to one, those of a part of it to less. ``features`` may be
    float32; every product is formed in float64, chunk by chunk.
    """

    features: npt.NDArray[np.floating]
    labels: FloatArray
    weights: FloatArray
    scale: float = 1.0

    @classmethod
    def build(
        cls,
        features: npt.NDArray[np.floating],
        labels: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
    ) -> HingeRows:
        """Validate, drop rows of weight zero, and scale the weights to sum to one."""
        features = np.asarray(features)
        if features.ndim != 2 or 0 in features.shape:
            raise ValueError(f"Expected a non-empty 2-D array. Got shape {features.shape} instead.")
        if features.dtype != np.float32:
            features = features.astype(np.float64, copy=False)
        signs = np.asarray(labels, dtype=np.float64)
        if signs.shape != features.shape[:1] or not np.all(np.abs(signs) == 1.0):
            raise ValueError(
                f"The 'labels' must be {features.shape[0]} values of +1 or -1. "
                f"Got shape {signs.shape}, values {np.unique(signs)[:5]} instead."
            )
        if sample_weight is None:
            return cls(features, signs, np.full(signs.shape, 1.0 / signs.size))
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != signs.shape or not (np.all(weights >= 0.0) and weights.sum() > 0.0):
            raise ValueError(
                f"The 'sample_weight' must be {signs.size} non-negative values, not all zero. "
                f"Got shape {weights.shape} instead."
            )
        used = weights > 0.0
        if not used.all():
            features, signs, weights = features[used], signs[used], weights[used]
        return cls(features, signs, weights / weights.sum())

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.features.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.features.shape[1])

    @cached_property
    def total(self) -> FloatArray:
        """The weighted sum of all rows."""
        return self.combine(self.weights)

    def margins(self, coef: FloatArray) -> FloatArray:
        """Return ``f_i = label_i * <coef, features_i>``, for each column of ``coef`` if it has."""
        out = np.empty((self.n_rows, *coef.shape[1:]))
        for part, block in self._blocks():
            np.matmul(block, coef, out=out[part])
        out.T[...] *= self.labels
        out *= self.scale
        return out

    def combine(self, dual: FloatArray) -> FloatArray:
        """Return ``sum_i dual_i * label_i * features_i``."""
        signed = dual * self.labels
        total = np.zeros(self.n_columns)
        if not signed.any():
            return total
        for part, block in self._blocks():
            total += signed[part] @ block
        return total * self.scale

    def take(self, index: npt.NDArray[np.intp]) -> FloatArray:
        """Return a signed, scaled float64 copy of some rows."""
        rows = self.features[index].astype(np.float64, copy=False)
        rows *= (self.scale * self.labels[index])[:, None]
        return rows

    def subset(self, index: npt.NDArray[np.intp]) -> HingeRows:
        """Return some of the rows, their weights scaled to sum to what all of them do."""
        weights = self.weights[index]
        return replace(
            self,
            features=self.features[index],
            labels=self.labels[index],
            weights=weights * (self.weights.sum() / weights.sum()),
        )

    def loss(self, margins: FloatArray) -> float:
        """Return the weighted hinge loss."""
        return float(self.weights @ np.maximum(1.0 - margins, 0.0))

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        if self.features.dtype == np.float64:
            yield slice(None), self.features  # type: ignore[misc]
            return
        step = max(1, _PASS_ELEMENTS // max(1, self.n_columns))
        for start in range(0, self.n_rows, step):
            part = slice(start, start + step)
            yield part, self.features[part].astype(np.float64)


def ray_minimiser(
    margins: FloatArray, weights: FloatArray, *, square: float = 0.0, linear: float = 0.0
) -> float:
    """Return the ``a >= 0`` that minimises ``sum_i c_i [1 - a f_i]_+ + a^2 square + a linear``."""
    if square == 0.0 and linear == 0.0:
        return 1.0
    positive = margins > 0.0
    order = np.argsort(-margins[positive])
    ahead, pull = margins[positive][order], (weights * margins)[positive][order]
    # Slopes of the loss before the first breakpoint 1 / f, and after each of them.
    slopes = float(weights @ margins) - linear - np.concatenate([[0.0], np.cumsum(pull)])
    breaks = np.concatenate([[0.0], 1.0 / ahead])
    passed = int(np.searchsorted(2.0 * square * breaks[1:] - slopes[:-1], 0.0))
    if square == 0.0:
        return float(breaks[passed])
    return float(max(breaks[passed], slopes[passed] / (2.0 * square)))


class Regularizer(Protocol):
    """A convex term ``value`` with ``conjugate``, and the interior system of hinge + term."""

    def value(self, coef: FloatArray) -> float:
        """Return the term at ``coef``."""
        ...

    def conjugate(self, gradient: FloatArray) -> float:
        """Return its convex conjugate."""
        ...

    def system(
        self, rows: FloatArray, weights: FloatArray, linear: FloatArray, start: FloatArray
    ) -> HingeSystem:
        """Return the system of ``hinge(rows) - <linear, coef> + term``."""
        ...


class HingeSystem(System, Protocol):
    """An interior system that exposes its solution."""

    coef: FloatArray

    def multipliers(self) -> FloatArray:
        """Return the dual variables of the rows, inside their boxes."""
        ...
