"""Digests by which copies of series are recognised, also after small changes."""

from __future__ import annotations

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.hashing import splitmix64
from slts.series.batch import SeriesBatch
from slts.series.missing import has_missing, zero_missing
from slts.series.source import Digests, series_digests

__all__ = ["shape_digests"]

# The beginning of a series is averaged over this many equal blocks, and projected on this many
# random directions. A projection of random series has about unit variance; its cells have a width.
_BLOCKS, _DIRECTIONS, _CELL = 16, 8, 0.02
# A channel that varies less than this share of the most variable one carries noise only.
_LEAST_SPREAD = 1e-3
# Fewer free numbers than this do not tell series apart. Channels that vary less than this share of
# the most variable one do not count.
_FEWEST, _COUNTED_SPREAD = 6, 1e-2


def shape_digests(batch: SeriesBatch, *, longer: bool = False) -> Digests:
    """Return a 64-bit digest of the shape with which every series begins.

    A copy has the same digest if its channels were shifted, or all multiplied by one factor, or if
    its last steps were cut off (at most a quarter). Noise of 1e-5 of the spread of the channels
    changes about one digest in a hundred. Independent draws from a continuous distribution have
    different digests, unless they can hardly be told apart. Series that begin with too few numbers
    for a shape, or with a constant, have a digest of all values as float32.

    Parameters
    ----------
    batch
        The series.
    longer
        Take twice as many steps where a series has them: its original may have been longer.
    """
    lengths = batch.lengths
    # The largest power of two that is at most three quarters of the length.
    steps = 2 ** np.floor(np.log2(np.maximum(0.75 * lengths, 1.0))).astype(np.int64)
    if longer:
        steps = np.where(2 * steps <= lengths, 2 * steps, steps)
    shapes, n_counted = _standardised(_block_means(batch, steps))
    directions = np.random.RandomState(0).standard_normal((shapes.shape[1], _DIRECTIONS))
    cells = np.floor(shapes @ (directions / (_CELL * np.sqrt(len(directions)))))
    digests = splitmix64(steps.astype(np.uint64))
    for column in cells.astype(np.int64).view(np.uint64).T:
        digests = splitmix64(digests ^ column)
    few = np.flatnonzero((np.minimum(steps, _BLOCKS) - 1) * n_counted < _FEWEST)
    if len(few):
        digests[few] = series_digests(_as_float32(batch[few]))
    return digests


def _block_means(batch: SeriesBatch, steps: IntArray) -> FloatArray:
    """Return means of the first steps in equal blocks, shape (series, blocks, channels)."""
    # Blocks of short series repeat steps. The end of a block may be one past the last step.
    ends = np.arange(_BLOCKS + 1) * steps[:, np.newaxis] // _BLOCKS
    places = (batch.offsets[:-1, np.newaxis] + ends).reshape(-1)
    last = np.zeros((1, batch.n_channels))
    shape = len(batch), _BLOCKS + 1, batch.n_channels
    sums = np.add.reduceat(np.vstack([_of_unit_size(batch), last]), places)
    sums = sums.reshape(shape)[:, :-1]
    counts = np.maximum(np.diff(ends), 1)[:, :, np.newaxis].astype(np.float64)
    if has_missing(batch):
        present = np.vstack([~np.isnan(batch.values), last]).astype(np.float64)
        counts = np.add.reduceat(present, places).reshape(shape)[:, :-1]
    means = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0.0)
    return means


def _of_unit_size(batch: SeriesBatch) -> FloatArray:
    """Return values without gaps, whose sums and squares neither overflow nor vanish.

    Every series is multiplied by a power of two, which changes no digit.
    """
    values = zero_missing(batch.values)
    largest = np.maximum.reduceat(np.abs(values).max(axis=1), batch.offsets[:-1])
    _, exponents = np.frexp(largest)
    factors = np.ldexp(1.0, -np.clip(exponents, -1000, 1000))
    return np.asarray(values * np.repeat(factors, batch.lengths)[:, np.newaxis])


def _standardised(means: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return centred and scaled blocks, one row per series, and how many channels vary."""
    observed = ~np.isnan(means)
    counts = np.maximum(observed.sum(axis=1, keepdims=True), 1)
    centred = means - zero_missing(means).sum(axis=1, keepdims=True) / counts
    centred = zero_missing(centred)
    spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / counts)
    widest = spread.max(axis=2, keepdims=True)
    usable = (spread > _LEAST_SPREAD * widest) & (widest > 0.0)
    # Quiet channels count less: small noise must not change the result.
    scale = np.sqrt(spread * widest)
    shapes = np.divide(centred, scale, out=np.zeros(means.shape), where=usable)
    varies = spread > _COUNTED_SPREAD * widest
    return shapes.reshape(len(means), -1), varies.sum(axis=(1, 2))


def _as_float32(batch: SeriesBatch) -> SeriesBatch:
    """Return series that are equal if they were once stored as float32."""
    # Numbers beyond the range of float32 stay different.
    digits, exponents = np.frexp(batch.values)
    with np.errstate(over="ignore"):
        rounded = np.ldexp(digits.astype(np.float32).astype(np.float64), exponents)
    return SeriesBatch.from_checked(rounded, batch.offsets, None)
