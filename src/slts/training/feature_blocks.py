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

# Features that vary less have no information.
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class FeatureBlock:
    """Features of some series: (features of the map - centre) * scale.

    Attributes
    ----------
    feature_map
        The map.
    features
        Shape (series, features); columns have mean zero.
    centre, scale
        Shape (features,).
    norm
        Mean squared norm of the rows.
    """

    feature_map: AlignedProducts | Snippets
    features: FloatArray
    centre: FloatArray
    scale: FloatArray
    norm: float

    @classmethod
    def of(
        cls, feature_map: AlignedProducts | Snippets, series: SeriesBatch, resources: Resources
    ) -> FeatureBlock:
        """Compute features with mean squared norm 1; those of snippets have equal variances."""
        features = feature_map(series, resources).reshape(len(series), -1)
        features = features.astype(np.float64, copy=False)
        centre = features.mean(axis=0)
        features -= centre
        scale = np.ones(len(centre))
        if isinstance(feature_map, Snippets):
            spread = np.sqrt(np.einsum("ij,ij->j", features, features) / len(features))
            np.divide(1.0, spread, out=scale, where=spread > _LEAST_SPREAD)
            scale[spread <= _LEAST_SPREAD] = 0.0
            features *= scale
            shares = centre.reshape(feature_map.shape)[:, :, 0]
            feature_map = replace(feature_map, shares=np.ascontiguousarray(shares))
        return cls(feature_map, features, centre, scale, np.nan).scaled_to(1.0)

    def scaled_to(self, norm: float) -> Self:
        """Return the features with another mean squared norm; zero if they are all constant."""
        present = float(np.einsum("ij,ij->", self.features, self.features)) / len(self.features)
        size = float(np.square(self.centre * self.scale).sum())
        factor = np.sqrt(norm / present) if present > 1e-12 * (present + size) else 0.0
        return replace(
            self, features=self.features * factor, scale=self.scale * factor,
            norm=norm if factor else 0.0,
        )  # fmt: skip

    def with_phases(self, n_phases: int) -> Self:
        """Add up neighbouring phases of aligned products."""
        assert isinstance(self.feature_map, AlignedProducts)
        if self.feature_map.n_phases == n_phases:
            return self
        coarse = self.feature_map.with_phases(n_phases)
        banks, phases, d, r = self.feature_map.shape
        shape = (banks, n_phases, phases // n_phases, d * r)
        features = self.features.reshape(-1, *shape).sum(axis=3).reshape(len(self.features), -1)
        centre = self.centre.reshape(shape).sum(axis=2).reshape(-1)
        # One factor scales all aligned products.
        scale = np.full(len(centre), self.scale[0])
        return replace(
            self, feature_map=coarse, features=features, centre=centre, scale=scale
        ).scaled_to(self.norm)

    def weighed(self, rows: IntArray, weights: FloatArray) -> Self:
        """Multiply the features of each snippet by the norm of its coefficients.

        The coefficients are ``features[rows].T @ weights``. The mean squared norm stays the same.
        """
        coef = self.features[rows].T @ weights
        norms = np.linalg.norm(coef.reshape(self.feature_map.n_landmarks, -1), axis=1)
        if not norms.any():
            return self
        factors = np.repeat(norms / norms.max(), len(coef) // len(norms))
        return replace(
            self, features=self.features * factors, scale=self.scale * factors
        ).scaled_to(self.norm)
