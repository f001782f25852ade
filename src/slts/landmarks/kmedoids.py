"""K-medoids on a matrix of dissimilarities: FasterPAM (Schubert and Rousseeuw, 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from slts._typing import FloatArray, IntArray

# A swap must gain more than rounding can pretend, or two equal ones could alternate for ever.
_LEAST_GAIN = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Medoids:
    """A local optimum: no exchange of one medoid for one other item lowers `cost`.

    Parameters
    ----------
    indices
        The medoids, ascending.
    cost
        Sum over all items of the dissimilarity to the nearest medoid.
    n_swaps
        Exchanges made from the start.
    """

    indices: IntArray
    cost: float
    n_swaps: int


def find_medoids(
    dissimilarity: FloatArray,
    n_medoids: int,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Medoids:
    """Choose items such that all items lie near a chosen one.

    Starts as k-means++ does, with chances proportional to the dissimilarity to the nearest medoid,
    and swaps as soon as a swap helps. One pass over the candidates takes O(n^2) time.

    Parameters
    ----------
    dissimilarity
        Symmetric, not negative, diagonal 0, shape (n, n).
    n_medoids
        From 1 to n.
    random_state
        Seed of the start.

    Returns
    -------
    Medoids
        Indices, cost and number of swaps.

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
        # Without a second medoid there is nothing to fall back on; one look at the sums is exact.
        totals = dissimilarity.sum(axis=0)
        best = int(np.argmin(totals))
        return Medoids(np.array([best], dtype=np.int64), float(totals[best]), 0)
    start = _spread_start(dissimilarity, n_medoids, check_random_state(random_state))
    medoids, n_swaps = _swap_while_better(dissimilarity, start)
    cost = float(dissimilarity[medoids].min(axis=0).sum())
    return Medoids(np.sort(medoids), cost, n_swaps)


def _spread_start(
    dissimilarity: FloatArray, n_medoids: int, rng: np.random.RandomState
) -> IntArray:
    """Draw distinct items, each with a chance proportional to its distance to those drawn."""
    n = len(dissimilarity)
    chosen = np.empty(n_medoids, dtype=np.int64)
    chosen[0] = rng.randint(n)
    nearest = dissimilarity[chosen[0]].copy()
    free = np.ones(n, dtype=bool)
    for count in range(1, n_medoids):
        free[chosen[count - 1]] = False
        weights = np.where(free, nearest, 0.0)
        if not weights.any():
            # Only copies of the chosen ones are left.
            weights = free.astype(np.float64)
        chosen[count] = rng.choice(n, p=weights / weights.sum())
        np.minimum(nearest, dissimilarity[chosen[count]], out=nearest)
    return chosen


class _Assignment:
    """For every item its nearest medoid and the dissimilarities to the nearest two."""

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
        # What dropping a medoid costs if nothing replaces it.
        self.loss = self._per_medoid(self.second - self.first)
        self.cost = float(self.first.sum())

    def _per_medoid(self, amounts: FloatArray) -> FloatArray:
        sums: FloatArray = np.bincount(
            self.nearest, weights=amounts, minlength=len(self.medoids)
        ).astype(np.float64, copy=False)
        return sums

    def changes(self, row: FloatArray) -> FloatArray:
        """Change of the cost when the candidate with this row replaces each of the medoids."""
        gain = np.minimum(row - self.first, 0.0)
        # Items of a dropped medoid go to the candidate where it beats their second choice; what
        # `gain` already counts for them is taken back.
        moved = np.minimum(row, self.second) - self.second - gain
        changes: FloatArray = self.loss + self._per_medoid(moved) + gain.sum()
        return changes

    def swap(self, position: int, candidate: int, row: FloatArray) -> None:
        """Put the candidate in the place of one medoid."""
        self.medoids[position] = candidate
        self._to_medoids[position] = row
        self._refresh()


def _swap_while_better(dissimilarity: FloatArray, start: IntArray) -> tuple[IntArray, int]:
    """Go round the candidates until a whole round has passed without a swap."""
    n = len(dissimilarity)
    state = _Assignment(dissimilarity, start)
    is_medoid = np.zeros(n, dtype=bool)
    is_medoid[start] = True
    n_swaps, idle, candidate = 0, 0, 0
    while idle < n:
        idle += 1
        if not is_medoid[candidate]:
            row = dissimilarity[candidate]
            changes = state.changes(row)
            position = int(np.argmin(changes))
            if changes[position] < -_LEAST_GAIN * state.cost:
                is_medoid[state.medoids[position]] = False
                is_medoid[candidate] = True
                state.swap(position, candidate, row)
                n_swaps += 1
                idle = 0
        candidate = (candidate + 1) % n
    return state.medoids, n_swaps
