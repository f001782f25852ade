"""Paths that the kernel takes, read from its aligned products."""

import numpy as np

from slts import SeriesBatch
from slts.alignment import Aligner, AlignmentSettings


def kernel_paths(series, landmarks, how):
    """Map (p, q) to the path, shape (t, 2), that the kernel takes in this precision.

    Extra channels of each step encode its index by a one, where the other side has zeros. They
    change no bit of an affinity, and T contains Y/t beside A'YB/t.
    """
    d = series.n_channels

    class WithoutIndex(AlignmentSettings):
        def shift(self, batch):
            return AlignmentSettings.shift(self, SeriesBatch(batch.values[:, :d], batch.offsets))

    how = WithoutIndex(how.objective, how.band, how.normalize, how.dtype)
    n, m = int(series.lengths.max()), int(landmarks.lengths.max())
    T = Aligner(_numbered(landmarks, m, n, 0), how).products(_numbered(series, n, 0, m))
    cells = T[:, :, d : d + n, d + n :]
    return {
        (p, q): np.argwhere(cells[p, q] > 0)
        for p in range(len(series))
        for q in range(len(landmarks))
    }


def _numbered(batch, longest, before, after):
    steps = np.concatenate([np.arange(length) for length in batch.lengths])
    index = np.zeros((len(steps), before + longest + after))
    index[np.arange(len(steps)), before + steps] = 1.0
    return SeriesBatch(np.hstack([batch.values, index]), batch.offsets)
