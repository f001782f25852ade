"""LogDet metric learning on arrays: the step for one triplet, and rankings by distance.

The distance d_M(A, B) is the smallest sum of (a - b)'M(a - b) along a path. With M = LL' it is the
Euclidean distance of the rows L'a, so the state of the learner is L.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class LogDetSolution:
    """A learned metric, and how learning went.

    Parameters
    ----------
    metric
        M, symmetric positive definite, trace d, shape (d, d).
    disorder
        Share of (same class, other class) pairs in the wrong order when each series ranks the
        others by distance: at M = I, then after every cycle. `metric` has the smallest of them.
    n_updates
        Number of triplets that were violated when they were visited.
    n_cycles
        Number of cycles.
    converged
        Whether the disorder settled, or vanished, before the last cycle.
    """

    metric: FloatArray
    disorder: tuple[float, ...]
    n_updates: int
    n_cycles: int
    converged: bool


def logdet_step(factor: FloatArray, pull: FloatArray, push: FloatArray, rate: float) -> FloatArray:
    """Take one step M <- (M^-1 + step (P - Q))^-1 on the factor L of M = LL'.

    Parameters
    ----------
    factor
        L, invertible, shape (d, d).
    pull, push
        L' times the differences along the paths (i, j) and (i, k), shape (d, path length). In the
        coordinates of L the matrices P and Q are pull pull' and push push'.
    rate
        Below 1. The step is rate / max(d(i, j), d(i, k)), so that no triplet moves M by more than
        this share, however distant its series are.

    Returns
    -------
    ndarray
        The new L; `factor` itself when both distances are 0.
    """
    scale = max(float(np.vdot(pull, pull)), float(np.vdot(push, push)))
    if scale == 0.0:
        return factor
    # M^-1 + step (P - Q) = L^-T (I + step (pull pull' - push push')) L^-1. Positive definite: the
    # largest eigenvalue of step push push' is at most its trace, step d(i, k) <= rate < 1.
    step = rate / scale
    inner = step * (pull @ pull.T) - step * (push @ push.T)
    inner.flat[:: len(factor) + 1] += 1.0
    updated: FloatArray = factor @ np.linalg.cholesky(np.linalg.inv(inner))
    return updated


class Ranking:
    """For each series, the others by distance, and the pairs in the wrong order.

    A pair (same class, other class) is in the wrong order if the other class is nearer.

    Parameters
    ----------
    distances
        Distances between the series, shape (n, n).
    classes, members
        Their classes, and their positions in the batch.
    """

    def __init__(self, distances: FloatArray, classes: IntArray, members: IntArray) -> None:
        order = np.argsort(distances, axis=1, kind="stable")
        same = classes[order] == classes[:, None]
        other = ~same
        same &= order != np.arange(len(distances))[:, None]
        self._members, self._order = members, order
        # For every series of the same class, the number of nearer series of other classes.
        before = np.cumsum(other, axis=1, dtype=np.int64) * same
        self._ends = np.cumsum(before.ravel())
        self._others = np.flatnonzero(other)
        n_others = other.sum(axis=1)
        self._first_other = np.cumsum(n_others) - n_others
        self._total = int(self._ends[-1])
        possible = int((same.sum(axis=1) * n_others).sum())
        self.disorder = self._total / possible if possible else 0.0

    def __len__(self) -> int:
        return len(self._members)

    def draw(self, count: int, rng: np.random.RandomState) -> IntArray:
        """Draw triplets (i, same, other) in the wrong order, with replacement, shape (count, 3)."""
        ticket = rng.randint(self._total, size=count, dtype=np.int64)
        # Wrong pairs are numbered by the series of the same class, then by the other, far to near.
        same = np.searchsorted(self._ends, ticket, side="right")
        series = same // len(self)
        other = self._others[self._first_other[series] + self._ends[same] - 1 - ticket]
        order = self._order.ravel()
        triplets: IntArray = np.column_stack([series, order[same], order[other]])
        return np.take(self._members, triplets)


def draw_members(classes: IntArray, limit: int | None, rng: np.random.RandomState) -> IntArray:
    """Return the series to rank: all, or at most `limit` drawn with the classes in proportion."""
    n = len(classes)
    if limit is None or n <= limit:
        return np.arange(n)
    shuffled = rng.permutation(n)
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    # Evenly spaced picks from the series sorted by class keep the proportions.
    picks = np.floor((np.arange(limit) + rng.random_sample()) * (n / limit)).astype(np.int64)
    return np.sort(by_class[np.minimum(picks, n - 1)]).astype(np.int64)
