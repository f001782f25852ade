"""Paths that a kernel takes, read from its sums over landmarks."""

import numpy as np

from slts import SeriesBatch
from slts.alignment import AlignmentSettings
from slts.alignment.cpu import CpuBackend
from slts.alignment.settings import LandmarkLayouts


def kernel_paths(series, landmarks, how, backend=CpuBackend, **options):
    """Map (p, q) to the path, shape (t, 2), that the kernel takes in this precision.

    Three more channels hold the number of each series step, a one for each series step and a one
    for each landmark step, where the other side has zeros. They change no bit of an affinity. With
    a phase for each landmark step, the products contain how many series steps are aligned with it,
    and the sum of their numbers, over the length of the path.
    """
    d, longest = series.n_channels, int(landmarks.lengths.max())

    class WithoutNumbers(AlignmentSettings):
        def shift(self, batch):
            return AlignmentSettings.shift(self, SeriesBatch(batch.values[:, :d], batch.offsets))

    how = WithoutNumbers(how.objective, how.band, how.normalize, how.dtype)
    steps = np.concatenate([np.arange(length) for length in series.lengths])
    x = _extended(series, np.column_stack([steps, np.ones(len(steps)), np.zeros(len(steps))]))
    y = _extended(landmarks, np.tile([0.0, 0.0, 1.0], (landmarks.n_steps, 1)))
    sums = np.empty((len(x), len(y), longest, d + 3, d + 3), dtype=how.dtype)
    each = np.eye(len(y), dtype=how.dtype)
    backend(x, LandmarkLayouts(y, how), **options).grouped(each, sums)
    numbers, counts = sums[..., d, d + 2].astype(float), sums[..., d + 1, d + 2].astype(float)
    paths = {}
    for p, q in np.ndindex(len(x), len(y)):
        m = int(landmarks.lengths[q])
        phases = np.arange(m) * longest // m
        paths[p, q] = _path(numbers[p, q, phases], counts[p, q, phases])
    return paths


def _path(numbers, counts):
    """Return the path: for each landmark step, the first and last series step aligned with it."""
    first_and_last = np.round(2.0 * numbers / counts)
    # The first landmark step is aligned with series step 0.
    length = (first_and_last[0] + 1.0) / counts[0]
    counts = np.round(counts * length)
    first = ((first_and_last - counts + 1.0) / 2.0).astype(int)
    steps = zip(first, counts.astype(int), strict=True)
    return np.array([(i, j) for j, (a, n) in enumerate(steps) for i in range(a, a + n)])


def _extended(batch, channels):
    return SeriesBatch(np.hstack([batch.values, channels]), batch.offsets)
