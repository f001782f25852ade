"""The kernel's own paths, of every pair, read from its aligned products."""

import numpy as np

from slts import SeriesBatch
from slts.alignment.reductions import products
from slts.alignment.settings import AlignmentSettings


def kernel_paths(series, landmarks, how):
    """Map (p, q) to the path, shape (t, 2), that the kernel takes in this precision.

    Each step carries its own index as extra channels, a one where the other side has zeros: no
    affinity changes by a bit, and T holds Y/t next to A'YB/t.
    """
    d = series.n_channels

    class WithoutIndex(AlignmentSettings):
        def shift(self, batch):
            return AlignmentSettings.shift(self, SeriesBatch(batch.values[:, :d], batch.offsets))

    how = WithoutIndex(how.objective, how.band, how.normalize, how.dtype)
    n, m = int(series.lengths.max()), int(landmarks.lengths.max())
    T = products(_numbered(series, n, 0, m), _numbered(landmarks, m, n, 0), how)
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
