"""K-medoids of a dissimilarity matrix: FasterPAM (Schubert and Rousseeuw, 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from slts._typing import FloatArray, IntArray

# Relative gain of a swap. Rounding errors are smaller, so two equal swaps cannot alternate.
_LEAST_GAIN = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Medoids:
    """A local optimum: replacing one medoid by another item never lowers `cost`.

    Parameters
    ----------
    indices
        Medoids in ascending order.
    cost
        Sum of the dissimilarities of all items to their nearest medoids.
    """

    indices: IntArray
    cost: float


def find_medoids(
    dissimilarity: FloatArray,
    n_medoids: int,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Medoids:
    """Choose medoids: items that minimise the sum of dissimilarities to the nearest of them.

    Initial medoids are drawn like in k-means++, with probabilities proportional to the
    dissimilarity to the nearest medoid. A swap is made as soon as it lowers the cost. One pass over
    the candidates takes O(n^2) time.

    Parameters
    ----------
    dissimilarity
        Symmetric, non-negative, with a zero diagonal, shape (n, n).
    n_medoids
        From 1 to n.
    random_state
        Seed of the initial medoids.

    Returns
    -------
    Medoids
        Indices and cost.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.landmarks import find_medoids
    >>> points = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> find_medoids(np.abs(points[:, None] - points), 2, random_state=0).indices
    array([1, 4])
    """
    n = len(dissimilarity)
    if dissimilarity.shape != (n, n):
        raise ValueError(
            f"The 'dissimilarity' parameter must be a square matrix. "
            f"Got shape {dissimilarity.shape} instead."
        )
    if not 1 <= n_medoids <= n:
        raise ValueError(
            f"The 'n_medoids' parameter must be an int from 1 to {n}, the number of items. "
            f"Got {n_medoids!r} instead."
        )
    if n_medoids == 1:
        # Swaps need a second medoid. The column sums give the optimum directly.
        medoids = np.argmin(dissimilarity.sum(axis=0), keepdims=True)
    else:
        start = _initial_medoids(dissimilarity, n_medoids, check_random_state(random_state))
        medoids = np.sort(_swap_until_optimal(dissimilarity, start))
    return Medoids(medoids, float(dissimilarity[medoids].min(axis=0).sum()))


def _initial_medoids(
    dissimilarity: FloatArray, n_medoids: int, rng: np.random.RandomState
) -> IntArray:
    """Draw distinct items with probabilities proportional to the distance to the nearest one."""
    n = len(dissimilarity)
    chosen = np.empty(n_medoids, dtype=np.int64)
    chosen[0] = rng.randint(n)
    nearest = dissimilarity[chosen[0]].copy()
    free = np.ones(n, dtype=bool)
    for count in range(1, n_medoids):
        free[chosen[count - 1]] = False
        weights = np.where(free, nearest, 0.0)
        if not weights.any():
            # All remaining items are copies of chosen ones.
            weights = free.astype(np.float64)
        chosen[count] = rng.choice(n, p=weights / weights.sum())
        np.minimum(nearest, dissimilarity[chosen[count]], out=nearest)
    return chosen


class _Assignment:
    """The nearest medoid of every item, and the dissimilarities to the nearest two."""

    def __init__(self, dissimilarity: FloatArray, medoids: IntArray) -> None:
        self.medoids = medoids.copy()
        self._to_medoids = dissimilarity[medoids]
        self._refresh()

    def _refresh(self) -> None:
        columns = np.arange(self._to_medoids.shape[1])
        self.nearest = self._to_medoids.argmin(axis=0)
        self.first = self._to_medoids[self.nearest, columns]
        self._to_medoids[self.nearest, columns] = np.inf
        self.second = self._to_medoids.min(axis=0)
        self._to_medoids[self.nearest, columns] = self.first
        # Increase of the cost when a medoid is removed and not replaced.
        self.loss = self._per_medoid(self.second - self.first)
        self.cost = float(self.first.sum())

    def _per_medoid(self, amounts: FloatArray) -> FloatArray:
        sums: FloatArray = np.bincount(
            self.nearest, weights=amounts, minlength=len(self.medoids)
        ).astype(np.float64, copy=False)
        return sums

    def changes(self, row: FloatArray) -> FloatArray:
        """Change of the cost when each medoid is replaced by the candidate with this row."""
        gain = np.minimum(row - self.first, 0.0)
        # Items of the removed medoid move to the candidate or to their second medoid. Subtract
        # what `gain` already counts for them.
        moved = np.minimum(row, self.second) - self.second - gain
        changes: FloatArray = self.loss + self._per_medoid(moved) + gain.sum()
        return changes

    def swap(self, position: int, candidate: int, row: FloatArray) -> None:
        """Replace one medoid by the candidate."""
        self.medoids[position] = candidate
        self._to_medoids[position] = row
        self._refresh()


def _swap_until_optimal(dissimilarity: FloatArray, start: IntArray) -> IntArray:
    """Try all candidates in turn until none of them lowers the cost."""
    n = len(dissimilarity)
    state = _Assignment(dissimilarity, start)
    candidate, tried = 0, 0
    while tried < n:
        tried += 1
        if candidate not in state.medoids:
            row = dissimilarity[candidate]
            changes = state.changes(row)
            position = int(np.argmin(changes))
            if changes[position] < -_LEAST_GAIN * state.cost:
                state.swap(position, candidate, row)
                tried = 0
        candidate = (candidate + 1) % n
    return state.medoids
