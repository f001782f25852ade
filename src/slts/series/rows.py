"""Normalisation of the rows (steps) of a batch."""

from __future__ import annotations

import numpy as np

from slts.series.batch import SeriesBatch

__all__ = ["normalize_rows"]


def normalize_rows(batch: SeriesBatch) -> SeriesBatch:
    """Scale every step to unit L2 norm; a step of zeros stays zero.

    Parameters
    ----------
    batch : SeriesBatch
        Series of any magnitude that float64 can hold.

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
    # Squares overflow or vanish beyond about 1e+-154. Scaling each row by a power of two, so that
    # its largest entry lies in [0.5, 1), is exact: ordinary rows come out as x / norm(x), bit for
    # bit.
    _, exponents = np.frexp(np.abs(batch.values).max(axis=1, keepdims=True))
    scaled = np.ldexp(batch.values, -exponents)
    norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    norms[norms == 0.0] = 1.0
    scaled /= norms
    return SeriesBatch.from_checked(scaled, batch.offsets, batch.channel_names)
