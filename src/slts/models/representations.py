"""Representations of the local classifier: what of a step its rows show, and how rows lead back to data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

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

REPRESENTATIONS = ("values", "changes", "levels")
# Soft thresholds per channel; three are too few to tell heavy tails apart, more add channels only.
# Where channels are many, fewer: they are reduced to few components in any case.
_N_LEVELS, _MOST_LEVELS = 5, 120
# Quantiles and components of so many steps, from so many series, are known well enough.
_FIT_STEPS, _FIT_SERIES = 100_000, 50
# Steps mapped at once: features are many more numbers than the series.
_BLOCK_STEPS = 20_000


@dataclass(frozen=True, eq=False)
class Representation:
    """A fitted map from steps of series to unit rows; linear behind fixed functions of a channel.

    Features come in blocks of one per channel: the scaled values or the levels, then perhaps their
    differences. They are reduced to principal components where they are many; a constant keeps the
    amplitude, and the row is scaled to unit norm.

    Parameters
    ----------
    name
        One of `REPRESENTATIONS`: scaled values; values with heavy tails squashed, and their changes; levels
        passed, and their changes.
    max_length
        Steps of longer series are averaged before anything else; None leaves them.
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
    max_length: int | None
    scale: ChannelScale | None
    levels: Levels | None
    change_spread: FloatArray | None
    components: Components | None
    constant: float

    @classmethod
    def fit(
        cls, batch: SeriesBatch, name: str, *, max_length: int | None, n_components: int
    ) -> Representation:
        """Fit on training series; rows get at most `n_components` channels and the constant."""
        batch = _sample(pool_steps(batch, max_length))
        scale = levels = spread = components = None
        if name == "levels":
            n_levels = max(1, min(_N_LEVELS, _MOST_LEVELS // batch.n_channels))
            levels = Levels.fit(batch, n_levels)
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
        return cls(name, max_length, scale, levels, spread, components, constant)

    @staticmethod
    def most_channels(n_channels: int, n_components: int) -> int:
        """Channels that rows may get, at most, whatever the representation."""
        return 1 + min(n_components, 2 * _N_LEVELS * n_channels)

    @property
    def n_numbers(self) -> int:
        """Numbers the representation stores."""
        parts: list[FloatArray] = []
        if self.scale is not None:
            parts += [self.scale.centre, self.scale.spread]
        if self.levels is not None:
            parts += [self.levels.knots, self.levels.ranks]
        if self.change_spread is not None:
            parts.append(self.change_spread)
        if self.components is not None:
            parts += [self.components.centre, self.components.basis]
        return sum(part.size for part in parts) + 1

    def __call__(self, batch: SeriesBatch) -> SeriesBatch:
        """Unit rows, ready for alignment."""
        batch = pool_steps(batch, self.max_length)
        cuts = np.searchsorted(batch.offsets, np.arange(0, batch.n_steps, _BLOCK_STEPS))
        cuts = np.unique(np.append(cuts, len(batch)))
        parts = [batch[a:b] for a, b in pairwise(cuts.tolist())] or [batch]
        rows = [normalize_rows(self._reduced(self._features(part), part.offsets)) for part in parts]
        return SeriesBatch.concatenate(rows)

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
        pooled = pool_steps(batch, self.max_length)
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
        if self.max_length is not None and pooled.n_steps < batch.n_steps:
            step = np.arange(batch.n_steps) // -(-batch.n_steps // self.max_length)
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


def _sample(batch: SeriesBatch) -> SeriesBatch:
    """Some series, drawn without regard to their order, which may be that of the classes."""
    count = max(_FIT_SERIES, -(-len(batch) * _FIT_STEPS // batch.n_steps))
    if count >= len(batch):
        return batch
    return batch[np.sort(np.random.default_rng(0).permutation(len(batch))[:count])]
