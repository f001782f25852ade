"""The alignment, written as plainly as possible: no tiles, no lanes, no intervals.

Series are (time, channels) arrays. Everything is float64.
"""

import math
from dataclasses import dataclass

import numpy as np

from slts import Itakura

_SLACK = 1e-9


@dataclass(frozen=True)
class Reference:
    """An optimal path.

    `gap` is the smallest amount by which a decision on the path could have gone the other way:
    the best minus the second best predecessor, over the cells of the path.
    """

    path: np.ndarray
    total: float
    gap: float


def unit_rows(x):
    """Every row over its Euclidean norm; rows of zeros stay."""
    out = np.array(x, dtype=np.float64)
    for row in out:
        norm = math.sqrt(math.fsum(v * v for v in row))
        if norm > 0:
            row /= norm
    return out


def band_mask(band, n, m):
    """Which cells of the n x m grid a path may use, dense."""
    i, j = np.mgrid[:n, :m]
    if band is None:
        return np.ones((n, m), dtype=bool)
    if not isinstance(band, Itakura):
        return (j - i >= min(0, m - n) - band) & (j - i <= max(0, m - n) + band)
    if n == 1:
        return np.ones((n, m), dtype=bool)
    # From (0, 0) and from (n-1, m-1): at most max_slope times steeper or flatter than straight.
    straight = (m - 1) / (n - 1)
    done, left = straight * i, straight * (n - 1 - i)
    low = np.maximum(done / band.max_slope, m - 1 - left * band.max_slope)
    high = np.minimum(done * band.max_slope, m - 1 - left / band.max_slope)
    return (j >= low - _SLACK) & (j <= high + _SLACK)


def affinities(a, b):
    """a_i.b_j for all pairs of rows, summed channel by channel, so that equal rows tie exactly."""
    total = np.zeros((len(a), len(b)))
    for channel in range(a.shape[1]):
        total += a[:, channel, None] * b[None, :, channel]
    return total


def local_values(a, b, objective):
    """What a path sums up: affinities, or costs with their sign turned and never above 0."""
    affinity = affinities(a, b)
    if objective == "affinity":
        return affinity
    if objective == "cost":
        return np.minimum(affinity - 1.0, 0.0)
    half_squares = [0.5 * np.einsum("ij,ij->i", x, x) for x in (a, b)]
    return np.minimum(affinity - half_squares[0][:, None] - half_squares[1], 0.0)


def best_path(local, mask):
    """The path of largest total, ties diagonal, up, left; None if the band admits no path."""
    n, m = local.shape
    value, allowed = local.tolist(), mask.tolist()
    none = -math.inf
    score = [[none] * m for _ in range(n)]
    for i in range(n):
        for j in range(m):
            if not allowed[i][j]:
                continue
            best = 0.0 if i == j == 0 else max(_predecessors(score, i, j))
            score[i][j] = best + value[i][j]
    if score[-1][-1] == none:
        return None
    i, j, gap = n - 1, m - 1, math.inf
    path = [(i, j)]
    while i > 0 or j > 0:
        diagonal, up, _ = came_from = _predecessors(score, i, j)
        best, second = sorted(came_from, reverse=True)[:2]
        gap = min(gap, best - second)
        if diagonal == best:
            i, j = i - 1, j - 1
        elif up == best:
            i -= 1
        else:
            j -= 1
        path.append((i, j))
    return Reference(np.array(path[::-1]), score[-1][-1], gap)


def _predecessors(score, i, j):
    none = -math.inf
    return (
        score[i - 1][j - 1] if i > 0 and j > 0 else none,
        score[i - 1][j] if i > 0 else none,
        score[i][j - 1] if j > 0 else none,
    )


def align(a, b, objective="affinity", band=None):
    """`best_path` of two series whose rows are as they are to be aligned."""
    return best_path(local_values(a, b, objective), band_mask(band, len(a), len(b)))


def is_path(path, mask):
    """Whether `path` runs from corner to corner in single steps inside the band."""
    steps = np.diff(path, axis=0)
    return (
        path[0].tolist() == [0, 0]
        and path[-1].tolist() == [mask.shape[0] - 1, mask.shape[1] - 1]
        and ((steps >= 0) & (steps <= 1)).all()
        and (steps.sum(axis=1) >= 1).all()
        and mask[path[:, 0], path[:, 1]].all()
    )


def aligned_product(a, b, path):
    """T = A'YB/t for the path's Y."""
    return a[path[:, 0]].T @ b[path[:, 1]] / len(path)


def mean_affinity(a, b, path):
    """K_I: the mean of a_i.b_j along the path."""
    return float((a[path[:, 0]] * b[path[:, 1]]).sum(axis=1).mean())
