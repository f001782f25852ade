"""Limits for long series, many channels and many series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray, IntArray

# More steps and channels are not legible in a picture as wide as the page.
MOST_STEPS = 120
MOST_CHANNELS = 24
# Limits of the explorer: number of series, and their size in bytes.
MOST_SERIES = 500
MOST_BYTES = 4_000_000


@dataclass(frozen=True)
class Bins:
    """The steps of one series in at most `MOST_STEPS` bins of consecutive steps.

    Attributes
    ----------
    of_step
        The bin of every step; it starts at 0 and increases by at most one.
    """

    of_step: IntArray

    @classmethod
    def of(cls, n_steps: int, most: int = MOST_STEPS) -> Bins:
        """One bin per step, or `most` bins of nearly equal size."""
        return cls(np.arange(n_steps) * min(n_steps, most) // n_steps)

    @property
    def count(self) -> int:
        """Number of bins."""
        return int(self.of_step[-1]) + 1

    @property
    def first(self) -> IntArray:
        """First step of every bin."""
        return np.searchsorted(self.of_step, np.arange(self.count))

    def sample(self, rows: FloatArray) -> FloatArray:
        """The first row of every bin, shape (bins, ...)."""
        return rows[self.first]

    def sums(self, terms: FloatArray) -> FloatArray:
        """Sums over the steps of every bin, along the first axis. The total does not change."""
        return np.asarray(np.add.reduceat(terms, self.first, axis=0))


def bin_path(path: IntArray, series: Bins, other: Bins) -> IntArray:
    """Map the steps of a path to bins, from the first bins to the last ones.

    A model that averages neighbouring steps has paths with fewer steps than the series. Such a path
    is spread over the whole series.
    """
    columns = []
    for steps, bins in zip(path.T, (series, other), strict=True):
        spread = steps * len(bins.of_step) // (int(steps[-1]) + 1)
        columns.append(np.append(bins.of_step[spread], bins.count - 1))
    return np.column_stack(columns)


def drawn_channels(importance: FloatArray, most: int = MOST_CHANNELS) -> IntArray:
    """The `most` most important channels, in their original order."""
    return np.sort(np.argsort(-importance, kind="stable")[:most])


def series_to_keep(
    wrong: IntArray, sizes: IntArray, *, most: int = MOST_SERIES, budget: int = MOST_BYTES
) -> IntArray:
    """Series for the explorer: misclassified series first, then a random choice with fixed seed.

    Parameters
    ----------
    wrong
        Indices of misclassified series.
    sizes
        Size of each series in bytes, shape (series,).
    most, budget
        Limits of number and total size. At least one series is kept.

    Returns
    -------
    ndarray
        Indices of misclassified series, then of the others, each in increasing order.
    """
    rng = np.random.default_rng(0)
    others = np.setdiff1d(np.arange(len(sizes)), wrong)
    order = np.concatenate([rng.permutation(wrong), rng.permutation(others)]).astype(np.int64)
    fits = max(1, int(np.searchsorted(np.cumsum(sizes[order]), budget, side="right")))
    kept = np.sort(order[: min(most, fits)])
    is_wrong = np.isin(kept, wrong)
    return np.concatenate([kept[is_wrong], kept[~is_wrong]])
