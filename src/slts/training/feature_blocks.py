"""Features of training series under one feature map, centred and scaled for ridge regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.features.aligned_products import AlignedProducts
from slts.features.feature_map import Resources
from slts.features.snippets import Snippets
from slts.series import SeriesBatch

# Features that vary less than this share of their size have no information.
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class FeatureBlock:
    """Features of some series: (features of the map - centre) * scale.

    Attributes
    ----------
    feature_map
        The map.
    features
        Shape (series, features). Columns have mean zero, and the mean squared norm of the rows is
        1, or 0 if all features are constant.
    centre, scale
        Shape (features,).
    weight
        Weight of the inner products of the features beside those of other maps.
    """

    feature_map: AlignedProducts | Snippets
    features: FloatArray
    centre: FloatArray
    scale: FloatArray
    weight: float = 1.0

    @classmethod
    def of(
        cls, feature_map: AlignedProducts | Snippets, series: SeriesBatch, resources: Resources
    ) -> FeatureBlock:
        """Compute features. Those of snippets have equal variances."""
        features = feature_map(series, resources).reshape(len(series), -1)
        features = features.astype(np.float64, copy=False)
        centre = features.mean(axis=0)
        features -= centre
        if isinstance(feature_map, Snippets):
            shares = centre.reshape(feature_map.shape)[:, :, 0]
            feature_map = replace(feature_map, shares=np.ascontiguousarray(shares))
        return cls._scaled(feature_map, features, centre)

    @classmethod
    def _scaled(
        cls, feature_map: AlignedProducts | Snippets, features: FloatArray, centre: FloatArray
    ) -> FeatureBlock:
        """Scale centred features in place: those of snippets one by one, others by one factor."""
        variances = np.einsum("ij,ij->j", features, features) / len(features)
        varies = variances > _LEAST_SPREAD**2 * np.maximum(centre**2, 1.0)
        scale = np.zeros(len(centre))
        if isinstance(feature_map, Snippets):
            np.divide(1.0, np.sqrt(variances * varies.sum()), out=scale, where=varies)
        elif varies.any():
            scale[:] = 1.0 / np.sqrt(variances.sum())
        features *= scale
        return cls(feature_map, features, centre, scale)

    def weighted(self, weight: float) -> Self:
        """Return the same features with another weight."""
        return replace(self, weight=weight)

    def with_phases(self, n_phases: int) -> FeatureBlock:
        """Add up neighbouring phases of aligned products."""
        assert isinstance(self.feature_map, AlignedProducts)
        if self.feature_map.n_phases == n_phases:
            return self
        banks, phases, d, r = self.feature_map.shape
        shape = (-1, banks, n_phases, phases // n_phases, d * r)
        # One factor scales all aligned products, so sums of scaled features are scaled sums.
        factor = self.scale[0] or 1.0
        features = self.features.reshape(shape).sum(axis=3).reshape(len(self.features), -1)
        features /= factor
        centre = self.centre.reshape(shape).sum(axis=3).reshape(-1)
        return self._scaled(self.feature_map.with_phases(n_phases), features, centre)

    def weigh_by_coefficients(self, rows: IntArray, weights: FloatArray) -> None:
        """Multiply the features of each snippet by the norm of its coefficients, in place.

        The coefficients are ``features[rows].T @ weights``. The mean squared norm stays 1.
        """
        coef = self.features[rows].T @ weights
        norms = np.linalg.norm(coef.reshape(self.feature_map.n_landmarks, -1), axis=1)
        factors = np.repeat(norms, len(coef) // len(norms))
        # Features that vary have equal variances.
        varies = self.scale > 0.0
        size = float(np.sqrt(np.mean(factors[varies] ** 2))) if varies.any() else 0.0
        if size > 0.0:
            factors /= size
            np.multiply(self.features, factors, out=self.features)
            np.multiply(self.scale, factors, out=self.scale)

    def kernel_coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Turn the features in place into coefficients of inner products with them.

        Returns them, shape (series, *feature_map.shape), and what they add at the centre.
        """
        coef = np.multiply(self.features, self.scale * self.weight, out=self.features)
        return coef.reshape(-1, *self.feature_map.shape), coef @ self.centre
