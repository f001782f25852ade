"""Lenses of the local classifier: what of a step its rows show, and how rows lead back to data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.series import SeriesBatch, normalize_rows
from slts.series.channels import (
    ChannelScale,
    Components,
    Levels,
    differences,
    pool_steps,
    spread_of,
)

LENSES = ("values", "changes", "levels")
# Soft thresholds per channel; three are too few to tell heavy tails apart, more add channels only.
_N_LEVELS = 5
_FIT_STEPS = 100_000


@dataclass(frozen=True, eq=False)
class Lens:
    """A fitted map from steps of series to unit rows; linear behind fixed functions of a channel.

    Features come in blocks of one per channel: the scaled values or the levels, then perhaps their
    differences. They are reduced to principal components where they are many; a constant keeps the
    amplitude, and the row is scaled to unit norm.

    Parameters
    ----------
    name
        One of `LENSES`: scaled values; values with heavy tails squashed, and their changes; levels
        passed, and their changes.
    pool
        Steps averaged into one before anything else.
    scale, levels
        Map of the values; one of the two is None.
    change_spread
        Divides the differences of the features; None leaves differences out.
    components
        Reduction of the features; None keeps them all.
    constant
        The homogeneous channel before normalisation.
    """

    name: str
    pool: int
    scale: ChannelScale | None
    levels: Levels | None
    change_spread: FloatArray | None
    components: Components | None
    constant: float

    @classmethod
    def fit(cls, batch: SeriesBatch, name: str, *, pool: int, n_components: int) -> Lens:
        """Fit on training series; rows get at most `n_components` channels and the constant."""
        # Quantiles and components of so many steps are known well enough.
        batch = pool_steps(batch[:: 1 + batch.n_steps // _FIT_STEPS], pool)
        scale = levels = spread = components = None
        if name == "levels":
            levels = Levels.fit(batch, _N_LEVELS)
            features = levels(batch.values)
        else:
            scale = ChannelScale.fit(batch, "standard" if name == "values" else "asinh")
            features = scale(batch.values)
        if name != "values":
            changes = differences(features, batch.offsets)
            spread = spread_of(changes)
            features = np.hstack([features, changes / spread])
        if features.shape[1] > n_components:
            components = Components.fit(features, n_components)
            features = components(features)
        # As large as a typical row: amplitude then neither vanishes nor drowns the rest.
        constant = float(np.sqrt(np.einsum("ij,ij->", features, features) / len(features))) or 1.0
        return cls(name, pool, scale, levels, spread, components, constant)

    @property
    def n_rows(self) -> int:
        """Channels of the mapped rows, the constant included."""
        if self.components is not None:
            return int(self.components.basis.shape[1]) + 1
        return self._n_features + 1

    @property
    def _n_features(self) -> int:
        if self.levels is not None:
            own = len(self.levels.knots) * self.levels.n_levels
        else:
            assert self.scale is not None
            own = len(self.scale.centre)
        return own if self.change_spread is None else 2 * own

    def __call__(self, batch: SeriesBatch) -> SeriesBatch:
        """Unit rows, ready for alignment."""
        batch = pool_steps(batch, self.pool)
        return normalize_rows(self._reduced(self._features(batch), batch.offsets))

    def attribute(self, batch: SeriesBatch, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Share sums of rows times slopes out among steps and channels of one series.

        Parameters
        ----------
        batch
            The one series, as it came.
        slopes
            Shape (problems, mapped steps, mapped channels).

        Returns
        -------
        contributions : ndarray of shape (problems, steps, channels)
            A mean over steps is shared among them evenly.
        rest : ndarray of shape (problems,)
            The part of the constant.
        """
        pooled = pool_steps(batch, self.pool)
        features = self._features(pooled)
        raw = self._reduced(features, pooled.offsets).values
        norms = np.sqrt(np.einsum("ij,ij->i", raw, raw))
        slopes = slopes / norms[:, np.newaxis]
        rest = slopes[:, :, -1].sum(axis=1) * self.constant
        slopes = slopes[:, :, :-1]
        if self.components is not None:
            features = features - self.components.centre
            slopes = slopes @ self.components.basis.T
        terms = (features * slopes).reshape(*slopes.shape[:2], -1, batch.n_channels).sum(axis=2)
        if self.pool > 1:
            step = np.arange(batch.n_steps) // self.pool
            terms = terms[:, step] / np.bincount(step)[step][:, np.newaxis]
        return terms, rest

    def _features(self, batch: SeriesBatch) -> FloatArray:
        transform = self.levels if self.scale is None else self.scale
        assert transform is not None
        features: FloatArray = transform(batch.values)
        if self.change_spread is not None:
            changes = differences(features, batch.offsets) / self.change_spread
            features = np.hstack([features, changes])
        return features

    def _reduced(self, features: FloatArray, offsets: IntArray) -> SeriesBatch:
        if self.components is not None:
            features = self.components(features)
        values = np.hstack([features, np.full((len(features), 1), self.constant)])
        return SeriesBatch.from_checked(values, offsets, None)
