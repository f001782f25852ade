"""A linear model: feature maps with coefficients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slts._typing import FloatArray
from slts.features.aligned_products import AlignedProducts
from slts.features.feature_map import Attribution, Resources
from slts.features.row_map import require
from slts.features.snippets import Snippets
from slts.series import SeriesBatch
from slts.solvers.arrays import matmul


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Outputs intercept[c] + sum over maps of <coefs[map][c], features of the map>.

    Decision values are such outputs. So are inner products with the features of training series,
    from which a ridge regression is learned: other coefficients with the same maps.

    Parameters
    ----------
    maps
        The feature maps.
    coefs
        Coefficients of each map, shape ``(outputs, *map.shape)``.
    intercept
        Shape (outputs,).
    """

    maps: tuple[AlignedProducts | Snippets, ...]
    coefs: tuple[FloatArray, ...]
    intercept: FloatArray

    def __post_init__(self) -> None:
        require(len(self.maps) == len(self.coefs) > 0, "coefs")
        for feature_map, coef in zip(self.maps, self.coefs, strict=True):
            require(coef.shape == (len(self.intercept), *feature_map.shape), "coefs")
            if isinstance(feature_map, AlignedProducts) and feature_map.bank_per_output:
                require(len(feature_map.weights) == len(coef), "weights")

    @property
    def aligned(self) -> tuple[AlignedProducts, ...]:
        """The maps with whole landmarks, which share their landmarks."""
        return tuple(m for m in self.maps if isinstance(m, AlignedProducts))

    @property
    def snippets(self) -> Snippets | None:
        """The map with short landmarks; None if there is none."""
        return next((m for m in self.maps if isinstance(m, Snippets)), None)

    @property
    def snippet_coef(self) -> FloatArray | None:
        """Coefficients of the snippets, shape (outputs, snippets, thresholds, kinds)."""
        return None if self.snippets is None else self.coefs[self.maps.index(self.snippets)]

    def metrics(self, feature_map: int = 0) -> FloatArray:
        """Return the metrics of one of `aligned`, shape (outputs, banks, phases, d, d)."""
        k = range(len(self.aligned))[feature_map]
        return self.aligned[k].metrics(self.coefs[self.maps.index(self.aligned[k])])

    @property
    def n_numbers(self) -> int:
        """Number of stored numbers."""
        maps = sum(feature_map.n_numbers for feature_map in self.maps)
        coefs = sum(np.count_nonzero(coef) for coef in self.coefs)
        return int(maps + coefs + self.intercept.size + self.aligned[0].landmarks.values.size)

    def combined(self, weights: FloatArray, intercept: FloatArray) -> LinearModel:
        """Return linear combinations of the outputs: ``outputs @ weights + intercept``."""
        coefs = tuple(
            matmul(weights.T, coef.reshape(len(coef), -1)).reshape(-1, *coef.shape[1:])
            for coef in self.coefs
        )
        return replace(self, coefs=coefs, intercept=self.intercept @ weights + intercept)

    def decide(self, batch: SeriesBatch, resources: Resources) -> FloatArray:
        """Return the outputs for series, shape (series, outputs)."""
        values = np.tile(self.intercept, (len(batch), 1))
        for feature_map, coef in zip(self.maps, self.coefs, strict=True):
            values += feature_map.decide(batch, coef, resources)
        return values

    def by_landmark(self, batch: SeriesBatch, resources: Resources) -> FloatArray:
        """Return the parts of the landmarks, then those of the snippets.

        Shape (series, outputs, landmarks + snippets). With the intercept they sum to the outputs.
        """
        n_landmarks = self.aligned[0].n_landmarks
        aligned = np.zeros((len(batch), len(self.intercept), n_landmarks))
        parts = [aligned]
        for feature_map, coef in zip(self.maps, self.coefs, strict=True):
            values = feature_map.by_landmark(batch, coef, resources)
            if isinstance(feature_map, AlignedProducts):
                aligned += values
            else:
                parts.append(values)
        return np.concatenate(parts, axis=2)

    def attribute(self, series: SeriesBatch) -> tuple[Attribution, ...]:
        """Send the outputs for one series back to its steps and channels, for each map."""
        return tuple(
            feature_map.attribute(series, coef)
            for feature_map, coef in zip(self.maps, self.coefs, strict=True)
        )
