"""The rows of a series that are aligned, and the way back from rows to steps and channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.errors import warn
from slts.execution import map_threads
from slts.series import SeriesBatch, normalize_rows
from slts.series.batch import offsets_of
from slts.series.values import observed_share, observed_steps, zero_missing

SCALES = ("standard", "robust", "asinh")
# The quartiles, and the first and last hundredth, of a normal distribution lie this many standard
# deviations apart.
_QUARTILES, _HUNDREDTHS = 1.3489795003921634, 4.652695748081682
# Without a scale, a channel whose spread is this many times smaller than another hardly counts.
_MOST_UNEQUAL = 30.0
# Scaled values are clipped here, so that their squares stay finite.
_LARGEST_SCALED = 1e140
# Quantiles and components are estimated from this many steps and series.
_FIT_STEPS, _FIT_SERIES = 100_000, 50
# Steps that a thread maps at once.
_BLOCK_STEPS = 20_000


@dataclass(frozen=True, eq=False)
class RowMap:
    """A fitted map from the steps of a series to rows.

    Values are scaled, and many channels are reduced to principal components. A constant keeps the
    amplitude when rows are scaled to unit norm. Missing values are zero, the constant shrinks with
    the share that is observed, and steps at which nothing is observed are left out.

    Parameters
    ----------
    max_length
        Longer series are averaged over neighbouring steps; None keeps all steps.
    scale
        Scale of the channels; None leaves the values as they are.
    components
        Reduction of the channels; None keeps them all.
    constant
        Value of the additional channel; None for no such channel.
    normalize
        Whether rows are scaled to unit norm.
    """

    max_length: int | None
    scale: ChannelScale | None
    components: Components | None
    constant: float | None
    normalize: bool

    def __post_init__(self) -> None:
        require(self.constant is None or 0.0 < self.constant < np.inf, "constant")
        require(self.components is None or self.constant is not None, "constant")

    @classmethod
    def fit_pooled(cls, batch: SeriesBatch, *, max_length: int | None, n_components: int) -> RowMap:
        """Fit the rows of the local classifier on series in random order.

        They are standardised, and have at most `n_components` channels and a constant.
        """
        batch = _first_series(pool_steps(batch, max_length))
        scale, components = ChannelScale.fit(batch, "standard"), None
        values = scale(batch.values)
        share = observed_share(values)
        if values.shape[1] > n_components:
            components = Components.fit(values, n_components)
            values = components(values)
        constant = _typical_norm(zero_missing(values), share)
        return cls(max_length, scale, components, constant, normalize=True)

    @classmethod
    def fit(
        cls, batch: SeriesBatch, *, scale: str | None, homogeneous: bool | str, normalize: bool
    ) -> RowMap:
        """Fit scale and constant on training series.

        With one channel, unit rows keep only the sign, so ``"auto"`` appends the constant.
        """
        fitted = None if scale is None else ChannelScale.fit(batch, scale)
        if fitted is None:
            _warn_if_one_channel_dominates(batch)
        wanted = batch.n_channels == 1 if homogeneous == "auto" else bool(homogeneous)
        constant = None
        if wanted:
            values = batch.values if fitted is None else fitted(batch.values)
            constant = _typical_norm(zero_missing(values), observed_share(values))
        return cls(None, fitted, None, constant, normalize)

    def row_names(self, channels: Sequence[str]) -> list[str]:
        """Return names of the channels of rows; none if rows are not channels of the series."""
        if self.components is not None:
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
        values, raw, rows = self._map(pooled)
        n = rows.n_channels - (self.constant is not None)
        if self.components is None:
            return RowTrace(self, series, rows, rows.values[:, :n])
        observed = observed_steps(pooled)
        # The constant is positive: it tells by how much a row was scaled.
        scale = rows.values[:, n:] / raw[observed, n:]
        centred = zero_missing(values - self.components.centre)[observed]
        return RowTrace(self, series, rows, centred * scale)

    def _map(self, pooled: SeriesBatch) -> tuple[FloatArray, FloatArray, SeriesBatch]:
        """Return scaled values, their components with the constant, and the rows."""
        values = pooled.values if self.scale is None else self.scale(pooled.values)
        raw = zero_missing(values if self.components is None else self.components(values))
        if self.constant is not None:
            constant = self.constant * np.sqrt(observed_share(values))
            raw = np.hstack([raw, constant[:, np.newaxis]])
        observed = observed_steps(pooled)
        rows = pooled.with_values(raw, None).steps(observed)
        return values, raw, normalize_rows(rows) if self.normalize else rows


@dataclass(frozen=True, eq=False)
class RowTrace:
    """Rows of one series, and the way back to its steps and channels.

    Parameters
    ----------
    row_map, series
        The map and the series.
    rows
        The rows: ``values @ basis`` of the components, then the constant.
    values
        Shape (rows, channels).
    """

    row_map: RowMap
    series: SeriesBatch
    rows: SeriesBatch
    values: FloatArray

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
        n = self.values.shape[1] if components is None else components.basis.shape[1]
        rest = (slopes[:, :, n:] * self.rows.values[:, n:]).sum(axis=(1, 2))
        slopes = slopes[:, :, :n]
        terms = self.values * (slopes if components is None else slopes @ components.basis.T)
        mean, share = mean_shares(self.series, self.row_map.max_length)
        # Steps at which nothing is observed have no row, and no share.
        observed = np.bincount(mean, weights=share.any(axis=1)) > 0.0
        row = (np.cumsum(observed) - 1)[mean]
        return terms[:, row] * share, rest


def require(holds: bool, name: str) -> None:
    """Raise an error if a stored field does not fit the other fields."""
    if not holds:
        raise ValueError(f"{name} does not fit the other fields")


def _warn_if_one_channel_dominates(batch: SeriesBatch) -> None:
    """Warn if the spreads of channels that vary differ by more than `_MOST_UNEQUAL`."""
    most, least = (of.reduce(batch.values, axis=0) for of in (np.fmax, np.fmin))
    varies = most - least > 1e-12 * np.maximum(np.abs(most), np.abs(least))
    spread, channels = spread_of(batch.values), np.flatnonzero(varies)
    if not len(channels):
        return
    wide, narrow = channels[spread[channels].argmax()], channels[spread[channels].argmin()]
    if spread[wide] > _MOST_UNEQUAL * spread[narrow]:
        names = batch.channel_names or [f"channel {k}" for k in range(batch.n_channels)]
        warn(
            f"The channels are not scaled, and their standard deviations are very different: "
            f"{spread[wide]:.3g} for {names[wide]!r}, {spread[narrow]:.3g} for {names[narrow]!r}. "
            f"Channels of small values hardly count. Pass scale='standard' to the classifier "
            f"(slts fit: --param scale=standard)."
        )


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


# ---- scales, components and averages of channels


@dataclass(frozen=True, eq=False)
class ChannelScale:
    """(x - centre) / spread for each channel, followed by asinh if `squash` is set.

    Parameters
    ----------
    centre, spread
        One number per channel; the spread of a constant channel is 1.
    squash
        Whether asinh is applied: linear near the centre, logarithmic far from it.
    """

    centre: FloatArray
    spread: FloatArray
    squash: bool

    @classmethod
    def fit(cls, batch: SeriesBatch, kind: str) -> ChannelScale:
        """Estimate centre and spread from all observed values of the training series.

        Parameters
        ----------
        batch
            Training series.
        kind
            ``"standard"`` (mean and standard deviation), ``"robust"`` (median and quartiles) or
            ``"asinh"`` (robust, then squashed).
        """
        values = batch.values
        if kind == "standard":
            return cls(*_moments(values), squash=False)
        least, low, centre, high, most = _quantiles(values, (0.01, 0.25, 0.5, 0.75, 0.99))
        spread, tiny = (high - low) / _QUARTILES, 1e-12 * np.maximum(np.abs(low), np.abs(high))
        # If half of the steps are equal, the quartiles coincide; outer quantiles may not.
        spread = np.where(spread <= tiny, (most - least) / _HUNDREDTHS, spread)
        if (spread <= tiny).any():
            spread = np.where(spread <= tiny, spread_of(values), spread)
        return cls(centre, np.where(spread > 0.0, spread, 1.0), squash=kind == "asinh")

    def __call__(self, values: FloatArray) -> FloatArray:
        """Map rows of shape (steps, channels); missing values stay missing."""
        with np.errstate(over="ignore"):
            scaled = np.clip(
                (values - self.centre) / self.spread, -_LARGEST_SCALED, _LARGEST_SCALED
            )
        return np.arcsinh(scaled) if self.squash else scaled


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components of many channels.

    Parameters
    ----------
    centre
        Mean row, shape (channels,).
    basis
        Orthonormal columns, shape (channels, components).
    """

    centre: FloatArray
    basis: FloatArray

    @classmethod
    def fit(cls, values: FloatArray, count: int) -> Components:
        """Keep the `count` directions of largest variance; missing values count as the mean."""
        centre = _moments(values)[0] if np.isnan(values).any() else values.mean(axis=0)
        return cls(centre, leading_directions(zero_missing(values - centre), count))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the coordinates of rows (steps, channels); missing values add nothing."""
        # Not a BLAS product: the last bits of a row would depend on the other rows, and ties
        # between paths would be broken differently in a batch and alone.
        centred = zero_missing(values - self.centre)
        coordinates: FloatArray = np.einsum("ij,jk->ik", centred, self.basis)
        return coordinates


def leading_directions(values: FloatArray, count: int) -> FloatArray:
    """Return the `count` principal directions of rows, without centring, as columns."""
    _, vectors = np.linalg.eigh(values.T @ values)
    basis = vectors[:, ::-1][:, :count]
    # The sign of a column must not depend on the linear algebra library.
    largest = np.abs(basis).argmax(axis=0)
    signs = np.sign(basis[largest, np.arange(basis.shape[1])])
    return np.ascontiguousarray(basis * signs)


def pool_steps(batch: SeriesBatch, max_length: int | None) -> SeriesBatch:
    """Average consecutive steps, so that no series is longer than `max_length`.

    Shorter series are unchanged. The last mean of a series may have fewer steps. Missing values
    are left out; a mean of nothing is missing.
    """
    lengths = np.diff(batch.offsets)
    if max_length is None or int(lengths.max(initial=0)) <= max_length:
        return batch
    widths = -(-lengths // max_length)
    n_means = -(-lengths // widths)
    offsets = offsets_of(n_means)
    # Where each mean begins.
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], n_means)
    cuts = np.repeat(batch.offsets[:-1], n_means) + np.repeat(widths, n_means) * within
    counts = np.add.reduceat(~np.isnan(batch.values), cuts, axis=0, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        values = np.add.reduceat(zero_missing(batch.values), cuts, axis=0) / counts
    return batch.with_steps(np.ascontiguousarray(values), offsets)


def mean_shares(series: SeriesBatch, max_length: int | None) -> tuple[IntArray, FloatArray]:
    """Return the mean of `pool_steps` that each step of one series belongs to, and shares in it.

    The share of each value has shape (steps, channels) and is zero for missing values.
    """
    n = series.n_steps
    mean = np.arange(n) // (1 if max_length is None else -(-n // max_length))
    observed = ~np.isnan(series.values)
    first = np.flatnonzero(np.diff(mean, prepend=-1))
    counts = np.add.reduceat(observed, first, axis=0, dtype=np.int64)
    return mean, observed / np.maximum(counts, 1)[mean]


def spread_of(values: FloatArray) -> FloatArray:
    """Return the standard deviation of each column; 1 if a column is constant up to rounding."""
    return _moments(values)[1]


def _moments(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the observed values; 0 and 1 where there are none."""
    missing = np.isnan(values)
    count = np.maximum(len(values) - missing.sum(axis=0), 1)
    # In units of the largest value, so that squares do not overflow.
    most, least = (of.reduce(values, axis=0, initial=0.0) for of in (np.fmax, np.fmin))
    size = np.maximum(most, -least)
    unit = np.where(size > 0.0, size, 1.0)
    scaled = zero_missing(values) / unit
    mean = scaled.sum(axis=0) / count
    # In place: arrays as large as the series take longer to make than to fill.
    scaled -= mean
    scaled[missing] = 0.0
    deviation = np.sqrt(np.einsum("ij,ij->j", scaled, scaled) / count)
    return unit * mean, np.where(deviation > 1e-12, unit * deviation, 1.0)


def _quantiles(values: FloatArray, shares: Sequence[float] | FloatArray) -> FloatArray:
    """Quantiles of the observed values of each channel; 0 where there are none."""
    if not np.isnan(values).any():
        return np.asarray(np.quantile(values, shares, axis=0))
    columns = [column[~np.isnan(column)] for column in values.T]
    found = [np.quantile(c if len(c) else np.zeros(1), shares) for c in columns]
    return np.stack(found, axis=1)
