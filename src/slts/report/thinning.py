"""What is drawn of long series, many channels and many series."""

from __future__ import annotations

import string
from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray, IntArray

# Steps and channels that can be told apart in a picture as wide as a column of text.
MOST_STEPS = 120
MOST_CHANNELS = 24
# Series in the explorer, and bytes they may take.
MOST_SERIES = 500
MOST_BYTES = 4_000_000
_ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"


@dataclass(frozen=True)
class Bins:
    """The steps of one series in at most `MOST_STEPS` runs of neighbours.

    Attributes
    ----------
    of_step
        The bin of every step, increasing by at most one.
    """

    of_step: IntArray

    @classmethod
    def of(cls, n_steps: int, most: int = MOST_STEPS) -> Bins:
        """One bin per step, or `most` bins of nearly equal size."""
        count = min(n_steps, most)
        return cls(np.arange(n_steps) * count // n_steps)

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
        """Sums over the steps of every bin, first axis; the total stays what it was."""
        return np.asarray(np.add.reduceat(terms, self.first, axis=0))


def path_moves(path: IntArray, series: Bins, landmark: Bins) -> str:
    """A path as text: three moves in every letter of base64's alphabet, two bits each.

    From the start 3 says that both go on, 2 the series alone, 1 the landmark alone; 0 is the end.
    Bins of neighbours turn a path into a path; steps within one pair of bins are said once. Models
    that align means of neighbouring steps have paths of fewer steps than the series: those are
    spread over its bins.
    """
    moves: list[int] = []
    ends = [[series.count - 1, landmark.count - 1]]
    spread = np.column_stack([_spread(path[:, 0], series), _spread(path[:, 1], landmark)])
    for di, dj in np.diff(np.concatenate([spread, ends]), axis=0).tolist():
        both = min(di, dj)
        moves += [3] * both + [2] * (di - both) + [1] * (dj - both)
    padded = np.zeros(-(-len(moves) // 3) * 3, dtype=np.int64)
    padded[: len(moves)] = moves
    return "".join(_ALPHABET[k] for k in padded.reshape(-1, 3) @ [16, 4, 1])


def _spread(steps: IntArray, bins: Bins) -> IntArray:
    """Bins of the steps of a path, which may count fewer steps than the series has."""
    n_series, n_path = len(bins.of_step), int(steps[-1]) + 1
    return bins.of_step[steps * n_series // n_path]


def path_of_moves(text: str) -> IntArray:
    """The path that `path_moves` wrote, shape (length, 2)."""
    codes = np.array([_ALPHABET.index(letter) for letter in text], dtype=np.int64)
    moves = np.stack([codes // 16, codes // 4 % 4, codes % 4], axis=1).ravel()
    moves = moves[moves > 0]
    steps = np.stack([moves // 2, moves % 2], axis=1)
    return np.concatenate([np.zeros((1, 2), dtype=np.int64), np.cumsum(steps, axis=0)])


def drawn_channels(importance: FloatArray, most: int = MOST_CHANNELS) -> IntArray:
    """Channels to draw: all, or those of largest importance, in their order."""
    largest = np.argsort(-importance, kind="stable")[:most]
    return np.sort(largest)


def series_to_keep(
    wrong: IntArray, sizes: IntArray, *, most: int = MOST_SERIES, budget: int = MOST_BYTES
) -> IntArray:
    """Series for the explorer: misclassified ones first, then others by dice (seeded).

    Parameters
    ----------
    wrong
        Indices of misclassified series.
    sizes
        Bytes that each series would take, shape (series,).
    most, budget
        Limits; one series is kept in any case.

    Returns
    -------
    ndarray
        Misclassified ones by index, then the others by index.
    """
    rng = np.random.default_rng(0)
    others = np.setdiff1d(np.arange(len(sizes)), wrong)
    order = np.concatenate([rng.permutation(wrong), rng.permutation(others)]).astype(np.int64)
    fits = max(1, int(np.searchsorted(np.cumsum(sizes[order]), budget, side="right")))
    kept = np.sort(order[: min(most, fits)])
    is_wrong = np.isin(kept, wrong)
    return np.concatenate([kept[is_wrong], kept[~is_wrong]])
