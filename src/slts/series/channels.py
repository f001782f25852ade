"""Maps of steps and channels: unit rows, scales, differences, components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.series.batch import SeriesBatch, offsets_of
from slts.series.missing import interpolate, zero_missing

SCALES = ("standard", "robust", "asinh")
# The quartiles, and the first and last hundredth, of a normal distribution lie this many standard
# deviations apart.
_QUARTILES, _HUNDREDTHS = 1.3489795003921634, 4.652695748081682
# Scaled values are clipped here, so that their squares stay finite.
_LARGEST_SCALED = 1e140
# Squares of smaller or larger rows could underflow or overflow.
_SMALL_SQUARE, _LARGE_SQUARE = 1e-200, 1e200


def normalize_rows(batch: SeriesBatch) -> SeriesBatch:
    """Scale every step to unit L2 norm over its observed values; missing values become zero.

    Steps of zeros are unchanged.

    Parameters
    ----------
    batch : SeriesBatch
        Series of any magnitude.

    Returns
    -------
    SeriesBatch
        New values, same lengths and channel names.

    Examples
    --------
    >>> from slts.series import as_series, normalize_rows
    >>> normalize_rows(as_series([[[3.0, 0.0], [4.0, 0.0]]])).values
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    values = zero_missing(batch.values)
    squares = np.einsum("ij,ij->i", values, values)
    if squares.min(initial=1.0) < _SMALL_SQUARE or squares.max(initial=1.0) > _LARGE_SQUARE:
        # Scaling a row by a power of two, so that its largest entry is in [0.5, 1), is exact: other
        # rows give the same bits.
        _, exponents = np.frexp(np.abs(values).max(axis=1, keepdims=True))
        values = np.ldexp(values, -exponents)
        squares = np.einsum("ij,ij->i", values, values)
        squares[squares == 0.0] = 1.0
    return batch.with_values(values / np.sqrt(squares)[:, np.newaxis], batch.channel_names)


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


def differences(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Return central differences within each series, one-sided at its ends.

    Missing neighbours are interpolated. The difference at a missing value is missing.
    """
    missing = np.isnan(values)
    values = interpolate(values, offsets, np.zeros(values.shape[1]))
    before = np.maximum(np.arange(len(values)) - 1, np.repeat(offsets[:-1], np.diff(offsets)))
    after = np.minimum(np.arange(len(values)) + 1, np.repeat(offsets[1:], np.diff(offsets)) - 1)
    span = np.maximum(after - before, 1)
    change: FloatArray = (values[after] - values[before]) / span[:, np.newaxis]
    change[missing] = np.nan
    return change


def pool_steps(batch: SeriesBatch, max_length: int | None) -> SeriesBatch:
    """Average consecutive steps, so that no series is longer than `max_length`.

    Shorter series are unchanged. The last mean of a series may have fewer steps. Missing values
    are left out; a mean of nothing is missing.
    """
    if max_length is None or int(batch.lengths.max(initial=0)) <= max_length:
        return batch
    widths = -(-batch.lengths // max_length)
    n_means = -(-batch.lengths // widths)
    offsets = offsets_of(n_means)
    # Where each mean begins.
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], n_means)
    cuts = np.repeat(batch.offsets[:-1], n_means) + np.repeat(widths, n_means) * within
    counts = np.add.reduceat(~np.isnan(batch.values), cuts, axis=0, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        values = np.add.reduceat(zero_missing(batch.values), cuts, axis=0) / counts
    return SeriesBatch.from_checked(np.ascontiguousarray(values), offsets, batch.channel_names)


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


def transform_rows(batch: SeriesBatch, metric: FloatArray) -> SeriesBatch:
    """Map rows so that their Euclidean distances are the distances of the given rows under M.

    Parameters
    ----------
    batch
        Series with d channels.
    metric
        M, symmetric positive definite, shape (d, d).

    Returns
    -------
    SeriesBatch
        Rows L'a, where M = LL' is the Cholesky factorisation.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.series.channels import transform_rows
    >>> from slts.series import as_series
    >>> transform_rows(as_series([[[1.0], [1.0]]]), np.diag([4.0, 9.0])).values
    array([[2., 3.]])
    """
    d = batch.n_channels
    if metric.shape != (d, d):
        raise ValueError(
            f"The 'metric' parameter must have shape ({d}, {d}), one row and column per channel. "
            f"Got shape {metric.shape} instead."
        )
    try:
        factor: FloatArray = np.linalg.cholesky(metric).astype(np.float64, copy=False)
    except np.linalg.LinAlgError as error:
        smallest = float(np.linalg.eigvalsh(metric)[0])
        raise ValueError(
            f"The 'metric' parameter must be positive definite. Its smallest eigenvalue is "
            f"{smallest:.3g}."
        ) from error
    return map_rows(batch, factor)


def map_rows(batch: SeriesBatch, factor: FloatArray) -> SeriesBatch:
    """Map every row ``a`` to ``factor' a``; the new channels have no names."""
    return SeriesBatch.from_checked(batch.values @ factor, batch.offsets, None)
