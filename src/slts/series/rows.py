"""Rows, the values of all channels at one step: unit norm, and maps that a metric defines."""

from __future__ import annotations

import numpy as np

from slts._typing import FloatArray
from slts.series.batch import SeriesBatch
from slts.series.missing import zero_missing

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
    >>> from slts.series.rows import transform_rows
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
