"""Landmarks sorted by length and packed side by side, and weights in the order of the packs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import IntArray

LANES = 32


@dataclass(frozen=True, slots=True)
class Packs:
    """Where each landmark stands; position = 32 * pack + lane.

    Attributes
    ----------
    order
        Landmark at each position.
    columns
        First column of each pack, and their number in all, shape (packs + 1,).
    """

    order: IntArray
    columns: IntArray

    @property
    def count(self) -> int:
        """Number of packs."""
        return len(self.columns) - 1

    @property
    def widest(self) -> int:
        """Columns of the longest pack."""
        return int(np.diff(self.columns).max())


def by_length(lengths: IntArray) -> IntArray:
    """Landmarks from the shortest to the longest."""
    return np.argsort(lengths, kind="stable")


def pack(lengths: IntArray, order: IntArray, column_step: int, groups: IntArray | None) -> Packs:
    """Fill packs in `order`; lanes of one group come next to each other in their pack."""
    if groups is not None:
        order = order[np.lexsort((groups[order], np.arange(len(order)) // LANES))]
    longest = np.maximum.reduceat(lengths[order], np.arange(0, len(order), LANES))
    padded = -(-longest // column_step) * column_step
    return Packs(order, np.concatenate([[0], np.cumsum(padded)]))


@dataclass(frozen=True, slots=True)
class Entries:
    """Weights that are not zero, landmark by landmark: entries begin[p] to begin[p + 1]."""

    begin: IntArray
    group: IntArray
    weight: npt.NDArray[np.floating[Any]]


def entries(weights: npt.NDArray[np.floating[Any]]) -> Entries:
    """Take the weights, shape (groups, landmarks), apart."""
    position, group = np.nonzero(weights.T)
    begin = np.searchsorted(position, np.arange(weights.shape[1] + 1))
    return Entries(begin, group, weights[group, position])


def main_groups(weights: npt.NDArray[np.floating[Any]]) -> IntArray:
    """First group in which each landmark counts."""
    groups: IntArray = np.argmax(weights != 0, axis=0)
    return groups
