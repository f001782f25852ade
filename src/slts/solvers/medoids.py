"""K-medoids: FasterPAM (Schubert and Rousseeuw, 2021)."""

from __future__ import annotations

import numpy as np

from slts._typing import FloatArray, IntArray

# Relative gain of a swap. Rounding errors are smaller, so two equal swaps cannot alternate.
_LEAST_GAIN = 1e-12


def find_medoids(dissimilarity: FloatArray, count: int, rng: np.random.RandomState) -> IntArray:
    """Choose medoids: items that minimise the sum of dissimilarities to the nearest of them.

    The result is a local optimum: to replace a medoid by another item never lowers the sum. A swap
    is made as soon as it lowers the sum, and one pass over the candidates takes O(n^2) time.

    Parameters
    ----------
    dissimilarity
        Symmetric, non-negative, with a zero diagonal, shape (n, n).
    count
        Number of medoids, from 1 to n.
    rng
        Draws the initial medoids.

    Returns
    -------
    ndarray of int
        Medoids in ascending order.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.solvers.medoids import find_medoids
    >>> points = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> find_medoids(np.abs(points[:, None] - points), 2, np.random.RandomState(0))
    array([1, 4])
    """
    if count == 1:
        # Swaps need a second medoid. The column sums give the optimum directly.
        return np.array([dissimilarity.sum(axis=0).argmin()])
    n = len(dissimilarity)
    medoids = _initial_medoids(dissimilarity, count, rng)
    nearest, first, second = _nearest_two(dissimilarity[medoids])
    candidate, tried = 0, 0
    while tried < n:
        row = dissimilarity[candidate]
        # Change of the sum when each medoid is replaced by the candidate: items that are nearer to
        # the candidate move to it, others of the removed medoid to the candidate or their second.
        gain = np.minimum(row - first, 0.0)
        moved = np.minimum(row, second) - first - gain
        changes = np.bincount(nearest, weights=moved, minlength=count) + gain.sum()
        position, tried = int(np.argmin(changes)), tried + 1
        if changes[position] < -_LEAST_GAIN * first.sum():
            medoids[position], tried = candidate, 0
            nearest, first, second = _nearest_two(dissimilarity[medoids])
        candidate = (candidate + 1) % n
    return np.sort(medoids)


def _initial_medoids(dissimilarity: FloatArray, count: int, rng: np.random.RandomState) -> IntArray:
    """Draw distinct items with probabilities proportional to the distance to the nearest one."""
    chosen = [int(rng.randint(len(dissimilarity)))]
    while len(chosen) < count:
        weights = dissimilarity[chosen].min(axis=0)
        if not weights.any():
            # All remaining items are copies of chosen ones.
            weights = np.ones(len(weights))
        weights[chosen] = 0.0
        chosen.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    return np.array(chosen)


def _nearest_two(to_medoids: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the nearest medoid of every item, and the dissimilarities to the nearest two."""
    nearest, items = to_medoids.argmin(axis=0), np.arange(to_medoids.shape[1])
    first = to_medoids[nearest, items]
    to_medoids[nearest, items] = np.inf
    return nearest, first, to_medoids.min(axis=0)
