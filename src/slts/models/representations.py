"""Representations of the local classifier: which rows a series becomes, and the way back."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slts._typing import FloatArray
from slts.execution import ThreadRunner
from slts.models.linear_form import TracedRows
from slts.series import SeriesBatch, normalize_rows
from slts.series.channels import (
    ChannelScale,
    Components,
    Levels,
    differences,
    pool_steps,
    spread_of,
)
from slts.series.missing import observed_share, observed_steps, zero_missing

REPRESENTATIONS = ("values", "changes", "levels")
# Soft thresholds per channel: three cannot describe heavy tails, more than five add nothing. With
# many channels there are fewer: they are reduced to components in any case.
_N_LEVELS, _MOST_LEVELS = 5, 120
# Quantiles and components are estimated from this many steps and series.
_FIT_STEPS, _FIT_SERIES = 100_000, 50
# Steps that are mapped at once: features need more memory than the series. With fewer steps,
# threads would wait for Python.
_BLOCK_STEPS = 20_000


@dataclass(frozen=True, eq=False)
class Representation:
    """A fitted map from the steps of a series to unit rows.

    Features come in blocks of one per channel: scaled values or levels, then optionally their
    differences. Many features are reduced to principal components. A constant keeps the amplitude,
    and the row is scaled to unit norm. Features of missing values are zero, the constant shrinks
    with the share that is observed, and steps at which nothing is observed are left out.

    Parameters
    ----------
    name
        One of `REPRESENTATIONS`: standardised values; values with compressed tails and their
        changes; soft levels and their changes.
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
        batch = _first_series(pool_steps(batch, max_length))
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
        share = observed_share(features)
        if features.shape[1] > n_components:
            components = Components.fit(features, n_components)
            features = components(features)
        features = zero_missing(features)
        # As large as a typical row, so that amplitude and shape both count.
        squares = np.einsum("ij,ij->", features, features)
        constant = float(np.sqrt(squares / share.sum())) or 1.0
        return cls(name, max_length, scale, levels, spread, components, constant)

    @staticmethod
    def most_channels(n_channels: int, n_components: int) -> int:
        """Return the most channels that rows can have, for any representation."""
        return 1 + min(n_components, 2 * _N_LEVELS * n_channels)

    @property
    def n_numbers(self) -> int:
        """Number of stored numbers."""
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

    def __call__(self, batch: SeriesBatch, n_jobs: int | None = None) -> SeriesBatch:
        """Unit rows, ready for alignment."""
        batch = pool_steps(batch, self.max_length)
        if batch.n_steps <= _BLOCK_STEPS:
            return self._rows(batch)
        cuts = np.searchsorted(batch.offsets, np.arange(0, batch.n_steps, _BLOCK_STEPS))
        cuts = np.unique(np.append(cuts, len(batch)))
        parts = [batch[begin:end] for begin, end in pairwise(cuts.tolist())]
        runner = ThreadRunner(n_jobs)
        return SeriesBatch.concatenate(runner.map(lambda part, *_: self._rows(part), parts))

    def traced(self, series: SeriesBatch) -> TracedRows:
        """Return the rows of one series, and the way back to its steps and channels."""
        pooled = pool_steps(series, self.max_length)
        features, raw = self._mapped(pooled)
        rows, basis = _unit_rows(raw, pooled), None
        if self.components is not None:
            features, basis = features - self.components.centre, self.components.basis
        # The constant is positive: its scale is that of the row.
        observed = observed_steps(pooled)
        scale = rows.values[:, -1:] / raw[observed, -1:]
        features = zero_missing(features[observed]) * scale
        return TracedRows(series, rows, features, basis, self.max_length)

    def _rows(self, pooled: SeriesBatch) -> SeriesBatch:
        return _unit_rows(self._mapped(pooled)[1], pooled)

    def _mapped(self, batch: SeriesBatch) -> tuple[FloatArray, FloatArray]:
        """Return the features of each step, and its row before it is scaled to unit norm."""
        transform = self.levels if self.scale is None else self.scale
        assert transform is not None
        features: FloatArray = transform(batch.values)
        if self.change_spread is not None:
            changes = differences(features, batch.offsets) / self.change_spread
            features = np.hstack([features, changes])
        constant = self.constant * np.sqrt(observed_share(features))
        reduced = features if self.components is None else self.components(features)
        return features, np.hstack([zero_missing(reduced), constant[:, np.newaxis]])


def _unit_rows(raw: FloatArray, pooled: SeriesBatch) -> SeriesBatch:
    """Scale rows to unit norm, and leave out steps at which nothing is observed."""
    rows = SeriesBatch.from_checked(raw, pooled.offsets, None)
    return normalize_rows(rows.steps(observed_steps(pooled)))


def _first_series(batch: SeriesBatch) -> SeriesBatch:
    """Return enough series to fit a scale on; training series are in random order."""
    return batch[: max(_FIT_SERIES, -(-len(batch) * _FIT_STEPS // batch.n_steps))]
