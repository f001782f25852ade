"""The rows (steps) of a batch as alignments want them: unit norm, perhaps one channel more."""

from __future__ import annotations

import numpy as np

from slts._typing import FloatArray
from slts.series.batch import SeriesBatch

__all__ = ["append_constant", "normalize_rows", "rms_row_norm"]


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


def append_constant(batch: SeriesBatch, value: float) -> SeriesBatch:
    """Add a channel that is `value` throughout: after normalisation it carries the amplitude.

    Parameters
    ----------
    batch : SeriesBatch
        Series of any number of channels.
    value : float
        Best as large as a typical row (see `rms_row_norm`).

    Returns
    -------
    SeriesBatch
        The same series with one channel more.
    """
    column: FloatArray = np.full((batch.n_steps, 1), float(value))
    names = None if batch.channel_names is None else (*batch.channel_names, "constant")
    values = np.hstack([batch.values, column])
    return SeriesBatch.from_checked(values, batch.offsets, names)


def rms_row_norm(batch: SeriesBatch) -> float:
    """Root mean square of the norms of all steps; 1 if every step is zero."""
    largest = float(np.abs(batch.values).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    scaled = batch.values / largest
    return largest * float(np.sqrt(np.einsum("ij,ij->", scaled, scaled) / batch.n_steps))
