"""Values of series: which are observed, series without gaps, unit rows, and maps of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.series.batch import SeriesBatch

Mask = npt.NDArray[np.bool_]
# Squares of smaller or larger rows could underflow or overflow.
_SMALL_SQUARE, _LARGE_SQUARE = 1e-200, 1e200


def has_missing(batch: SeriesBatch) -> bool:
    """Tell whether some value is missing."""
    return bool(np.isnan(batch.values).any())


def observed_steps(batch: SeriesBatch) -> Mask:
    """Tell for every step whether at least one of its values is observed."""
    missing = np.isnan(batch.values)
    if not missing.any():
        return np.ones(len(missing), dtype=np.bool_)
    return np.asarray(~missing.all(axis=1))


def observed_share(values: FloatArray) -> FloatArray:
    """Return the share of each row (step) that is observed; 1.0 where nothing is missing."""
    missing = np.isnan(values)
    return 1.0 - missing.mean(axis=1) if missing.any() else np.ones(len(missing))


def trim_padding(batch: SeriesBatch) -> SeriesBatch:
    """Remove the steps at the end of each series at which nothing is observed.

    A series of nothing but NaN keeps one step: `check_values` reports it.
    """
    values, starts = batch.values, batch.offsets[:-1]
    if not np.isnan(values[batch.offsets[1:] - 1]).all(axis=1).any():
        return batch
    steps = np.arange(len(values))
    last = np.maximum.reduceat(np.where(observed_steps(batch), steps, -1), starts)
    return batch.steps(steps <= np.repeat(np.maximum(last, starts), batch.lengths))


def leave_out_missing(batch: SeriesBatch) -> SeriesBatch:
    """Set missing values to zero, and leave out steps at which nothing is observed.

    Products of such rows are sums over the channels that are observed in both.

    Examples
    --------
    >>> import slts
    >>> from slts.series.values import leave_out_missing
    >>> nan = float("nan")
    >>> leave_out_missing(slts.as_series([[[1.0, nan, 3.0], [nan, nan, 4.0]]])).values
    array([[1., 0.],
           [3., 4.]])
    """
    if not has_missing(batch):
        return batch
    kept = batch.steps(observed_steps(batch))
    return kept.with_values(zero_missing(kept.values), kept.channel_names)


def zero_missing(values: FloatArray) -> FloatArray:
    """Set missing values to zero."""
    missing = np.isnan(values)
    return np.where(missing, 0.0, values) if missing.any() else values


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The observed values before and after every value of a batch, shape (steps, channels).

    An observed value is its own neighbour. Where there is none on one side, both are the one on the
    other side; where a channel is not observed in the whole series, both are -1.
    """

    before: IntArray
    after: IntArray

    @classmethod
    def find(cls, values: FloatArray, offsets: IntArray) -> Neighbours:
        """Find the neighbours of flat values."""
        observed, steps = ~np.isnan(values), np.arange(len(values))[:, np.newaxis]
        lengths = np.diff(offsets)
        first = np.repeat(offsets[:-1], lengths)[:, np.newaxis]
        last = np.repeat(offsets[1:], lengths)[:, np.newaxis] - 1
        before = np.maximum.accumulate(np.where(observed, steps, -1), axis=0)
        after = np.where(observed, steps, len(values))
        after = np.minimum.accumulate(after[::-1], axis=0)[::-1]
        before = np.where(before >= first, before, -1)
        after = np.where(after <= last, after, before)
        return cls(np.where(before >= 0, before, after), after)

    def share(self) -> FloatArray:
        """How far every step is from the neighbour before to the one after, from 0 to 1."""
        steps = np.arange(len(self.before))[:, np.newaxis]
        found: FloatArray = (steps - self.before) / np.maximum(self.after - self.before, 1)
        return found.clip(0.0, 1.0)


def interpolate(values: FloatArray, offsets: IntArray, default: FloatArray) -> FloatArray:
    """Fill gaps by linear interpolation within each series.

    Before the first and after the last observed value, a channel keeps that value. A channel that
    is not observed in the whole series gets its default.
    """
    near, channels = Neighbours.find(values, offsets), np.arange(values.shape[1])
    share = near.share()
    filled = (1.0 - share) * values[near.before, channels] + share * values[near.after, channels]
    return np.where(near.before < 0, default, filled)


def fill_gaps(batch: SeriesBatch, default: FloatArray | None = None) -> SeriesBatch:
    """Return series without missing values; see `interpolate`.

    Without a default, a channel that is not observed in a series gets its mean over all series.
    """
    if not has_missing(batch):
        return batch
    if default is None:
        count = np.maximum((~np.isnan(batch.values)).sum(axis=0), 1)
        default = zero_missing(batch.values).sum(axis=0) / count
    values = interpolate(batch.values, batch.offsets, default)
    return batch.with_values(values, batch.channel_names)


# -- Rows, the values of all channels at one step


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
    >>> from slts.series.values import transform_rows
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
