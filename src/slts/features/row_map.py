"""The rows of a series that are aligned, and the way back from rows to steps and channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slts._typing import FloatArray
from slts.execution import map_threads
from slts.series import SeriesBatch, normalize_rows
from slts.series.channels import (
    ChannelScale,
    Components,
    differences,
    mean_shares,
    pool_steps,
    spread_of,
)
from slts.series.missing import observed_share, observed_steps, zero_missing

REPRESENTATIONS = ("values", "changes")
# Quantiles and components are estimated from this many steps and series.
_FIT_STEPS, _FIT_SERIES = 100_000, 50
# Steps that a thread maps at once.
_BLOCK_STEPS = 20_000


@dataclass(frozen=True, eq=False)
class RowMap:
    """A fitted map from the steps of a series to rows.

    Features of a step are its scaled values, then optionally their changes. Many features are
    reduced to principal components. A constant keeps the amplitude when rows are scaled to unit
    norm. Features of missing values are zero, the constant shrinks with the share that is observed,
    and steps at which nothing is observed are left out.

    Parameters
    ----------
    max_length
        Longer series are averaged over neighbouring steps; None keeps all steps.
    scale
        Scale of the channels; None leaves the values as they are.
    change_spread
        Divides the changes of the features, shape (channels,); None leaves changes out.
    components
        Reduction of the features; None keeps them all.
    constant
        Value of the additional channel; None for no such channel.
    normalize
        Whether rows are scaled to unit norm.
    """

    max_length: int | None
    scale: ChannelScale | None
    change_spread: FloatArray | None
    components: Components | None
    constant: float | None
    normalize: bool

    def __post_init__(self) -> None:
        if self.scale is not None and self.change_spread is not None:
            require(self.change_spread.shape == self.scale.centre.shape, "change_spread")
        require(self.constant is None or 0.0 < self.constant < np.inf, "constant")
        require(self.components is None or self.constant is not None, "constant")

    @classmethod
    def fit_representation(
        cls, batch: SeriesBatch, name: str, *, max_length: int | None, n_components: int
    ) -> RowMap:
        """Fit a representation of the local classifier on series in random order.

        ``"values"`` are standardised; ``"changes"`` are values with compressed tails, and their
        changes. Rows get at most `n_components` channels and a constant.
        """
        batch = _first_series(pool_steps(batch, max_length))
        scale = ChannelScale.fit(batch, "standard" if name == "values" else "asinh")
        features, spread, components = scale(batch.values), None, None
        if name == "changes":
            changes = differences(features, batch.offsets)
            spread = spread_of(changes)
            features = np.hstack([features, changes / spread])
        share = observed_share(features)
        if features.shape[1] > n_components:
            components = Components.fit(features, n_components)
            features = components(features)
        constant = _typical_norm(zero_missing(features), share)
        return cls(max_length, scale, spread, components, constant, normalize=True)

    @classmethod
    def fit(
        cls, batch: SeriesBatch, *, scale: str | None, homogeneous: bool | str, normalize: bool
    ) -> RowMap:
        """Fit scale and constant on training series.

        With one channel, unit rows keep only the sign, so ``"auto"`` appends the constant.
        """
        fitted = None if scale is None else ChannelScale.fit(batch, scale)
        wanted = batch.n_channels == 1 if homogeneous == "auto" else bool(homogeneous)
        constant = None
        if wanted:
            values = batch.values if fitted is None else fitted(batch.values)
            constant = _typical_norm(zero_missing(values), observed_share(values))
        return cls(None, fitted, None, None, constant, normalize)

    @property
    def n_numbers(self) -> int:
        """Number of stored numbers."""
        n = 0 if self.scale is None else 2 * self.scale.centre.size
        n += 0 if self.change_spread is None else self.change_spread.size
        if self.components is not None:
            n += self.components.centre.size + self.components.basis.size
        return n + (self.constant is not None)

    def row_names(self, channels: Sequence[str]) -> list[str]:
        """Return names of the channels of rows; none if rows are not channels of the series."""
        if self.change_spread is not None or self.components is not None:
            return []
        return [*channels, *([] if self.constant is None else ["constant"])]

    def __call__(self, batch: SeriesBatch, n_jobs: int | None = None) -> SeriesBatch:
        """Return rows."""
        pooled = pool_steps(batch, self.max_length)
        if pooled.n_steps <= _BLOCK_STEPS:
            return self._map(pooled)[2]
        cuts = np.searchsorted(pooled.offsets, np.arange(0, pooled.n_steps, _BLOCK_STEPS))
        cuts = np.unique(np.append(cuts, len(pooled)))
        parts = [pooled[begin:end] for begin, end in pairwise(cuts.tolist())]
        mapped = map_threads(self._map, parts, n_jobs=n_jobs)
        return SeriesBatch.concatenate(rows for _, _, rows in mapped)

    def trace(self, series: SeriesBatch) -> RowTrace:
        """Return the rows of one series with the way back to its steps and channels."""
        pooled = pool_steps(series, self.max_length)
        features, raw, rows = self._map(pooled)
        n = rows.n_channels - (self.constant is not None)
        if self.components is None:
            return RowTrace(self, series, rows, rows.values[:, :n])
        observed = observed_steps(pooled)
        # The constant is positive: it tells by how much a row was scaled.
        scale = rows.values[:, n:] / raw[observed, n:]
        centred = zero_missing(features - self.components.centre)[observed]
        return RowTrace(self, series, rows, centred * scale)

    def _map(self, pooled: SeriesBatch) -> tuple[FloatArray, FloatArray, SeriesBatch]:
        """Return the features of all steps, their components with the constant, and the rows."""
        features = pooled.values if self.scale is None else self.scale(pooled.values)
        if self.change_spread is not None:
            changes = differences(features, pooled.offsets) / self.change_spread
            features = np.hstack([features, changes])
        raw = zero_missing(features if self.components is None else self.components(features))
        if self.constant is not None:
            constant = self.constant * np.sqrt(observed_share(features))
            raw = np.hstack([raw, constant[:, np.newaxis]])
        observed = observed_steps(pooled)
        rows = pooled.with_values(raw, None).steps(observed)
        return features, raw, normalize_rows(rows) if self.normalize else rows


@dataclass(frozen=True, eq=False)
class RowTrace:
    """Rows of one series, and the way back to its steps and channels.

    Parameters
    ----------
    row_map, series
        The map and the series.
    rows
        The rows: ``features @ basis`` of the components, then the constant.
    features
        Blocks of one feature per channel, shape (rows, blocks * channels).
    """

    row_map: RowMap
    series: SeriesBatch
    rows: SeriesBatch
    features: FloatArray

    def attribute(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Attribute sum_iu rows[i, u] slopes[c, i, u] to steps and channels.

        Parameters
        ----------
        slopes
            Shape (outputs, rows, row channels).

        Returns
        -------
        contributions : ndarray of shape (outputs, steps, channels)
            The contribution of an average is divided evenly among its observed values. Missing
            values have none.
        rest : ndarray of shape (outputs,)
            The contribution of the constant.
        """
        components = self.row_map.components
        n = self.features.shape[1] if components is None else components.basis.shape[1]
        rest = (slopes[:, :, n:] * self.rows.values[:, n:]).sum(axis=(1, 2))
        of_features = (
            slopes[:, :, :n] if components is None else slopes[:, :, :n] @ components.basis.T
        )
        terms = (self.features * of_features).reshape(*slopes.shape[:2], -1, self.series.n_channels)
        mean, share = mean_shares(self.series, self.row_map.max_length)
        # Steps at which nothing is observed have no row, and no share.
        observed = np.bincount(mean, weights=share.any(axis=1)) > 0.0
        row = (np.cumsum(observed) - 1)[mean]
        return terms.sum(axis=2)[:, row] * share, rest


def require(holds: bool, name: str) -> None:
    """Raise an error if a stored field does not fit the other fields."""
    if not holds:
        raise ValueError(f"{name} does not fit the other fields")


def _typical_norm(features: FloatArray, share: FloatArray) -> float:
    """Return the root mean square of the row norms; a row counts by the share that is observed."""
    largest = float(np.abs(features).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    scaled = features / largest
    return largest * float(np.sqrt(np.einsum("ij,ij->", scaled, scaled) / share.sum()))


def _first_series(batch: SeriesBatch) -> SeriesBatch:
    """Return enough series to fit a scale on; training series are in random order."""
    return batch[: max(_FIT_SERIES, -(-len(batch) * _FIT_STEPS // batch.n_steps))]
