"""LDMLT: a Mahalanobis metric for DTW, learned from triplets by LogDet-regularised steps.

The distance d_M(A, B) is the least sum of (a - b)'M(a - b) along a path. With M = LL' it is the
plain distance of the rows L'a, so the kernel needs no metric, and the state of the learner is L.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings, align
from slts.alignment.reductions import distances
from slts.errors import DataError
from slts.execution import Progress
from slts.series import SeriesBatch

# The total disorder has settled when a cycle changes it by less than this share.
_SETTLED = 1e-4
# Keeps I + step * (P - Q) well conditioned when there are few triplets; any value below 1 would do.
_LARGEST_RATE = 0.5
_PROGRESS_EVERY = 500


@dataclass(frozen=True, slots=True, eq=False)
class LogDetSolution:
    """A learned metric, and how learning went.

    Parameters
    ----------
    metric
        M, symmetric positive definite, trace d, shape (d, d).
    disorder
        Share of (same class, other class) pairs that the ranking of a series by distance has in
        the wrong order: at M = I, then after every cycle. `metric` is that of the smallest.
    n_updates
        Triplets that were violated when their turn came.
    n_cycles
        Cycles run.
    converged
        Whether the disorder settled, or vanished, before the cycles ran out.
    """

    metric: FloatArray
    disorder: tuple[float, ...]
    n_updates: int
    n_cycles: int
    converged: bool


def learn_logdet_metric(
    batch: SeriesBatch,
    labels: npt.ArrayLike,
    *,
    n_cycles: int = 8,
    triplets_per_series: float = 20.0,
    margin: float = 0.0,
    alpha: float = 10.0,
    ranking_limit: int | None = 1500,
    random_state: int | np.random.RandomState | None = None,
    device: str = "cpu",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LogDetSolution:
    """Learn M such that series of one class are nearer to each other than to others.

    A cycle ranks the series by distance from each other, draws triplets (i, same class j, other
    class k) uniformly among those ranked in the wrong order, and takes a step for each that is
    still violated, d(i, k) - d(i, j) < margin, when its turn comes. Running out of cycles is the
    usual end.

    Parameters
    ----------
    batch
        Rows as they are to be compared: this function normalises nothing.
    labels
        One integer per series.
    n_cycles
        At most so many.
    triplets_per_series
        Triplets of the first cycle, per ranked series; later ones have fewer, with the square root
        of the disorder.
    margin
        In units of the distance at M = I; the trace of M stays that of I.
    alpha
        Length of all steps of a cycle together, relative to M.
    ranking_limit
        A cycle ranks, and draws triplets from, at most so many series, drawn afresh each time with
        all classes in proportion; None takes all. Above the limit the disorder is an estimate, and
        time no longer grows with the number of series.
    random_state
        Seed of the draws.
    device
        ``"cpu"``, ``"cuda"`` or ``"auto"``, for the ranking: single paths are found on the CPU.
    n_jobs
        Threads for the ranking, by joblib's convention.
    progress
        Called with (cycles done, cycles in all).

    Returns
    -------
    LogDetSolution
        The metric of the least disorder met, which may be M = I.
    """
    _check_parameters(n_cycles, triplets_per_series, margin, alpha, ranking_limit)
    learner = _Learner(batch, _class_numbers(labels, len(batch)), margin, device, n_jobs, progress)
    rng = check_random_state(random_state)
    ranking = learner.rank(ranking_limit, rng)
    disorder = [ranking.disorder]
    best = learner.factor
    # With one channel every metric of a given trace is the same.
    converged = ranking.disorder == 0.0 or batch.n_channels == 1
    while not converged and len(disorder) <= n_cycles:
        share = min(1.0, math.sqrt(disorder[-1] / disorder[0]))
        count = math.ceil(triplets_per_series * len(ranking) * share)
        rate = min(alpha / count, _LARGEST_RATE)
        learner.run_cycle(ranking.draw(count, rng), rate, len(disorder) - 1, n_cycles)
        ranking = learner.rank(ranking_limit, rng)
        if ranking.disorder <= min(disorder):
            best = learner.factor
        converged = abs(ranking.disorder - disorder[-1]) < _SETTLED * disorder[-1]
        converged = converged or ranking.disorder == 0.0
        disorder.append(ranking.disorder)
    if progress is not None:
        progress(n_cycles, n_cycles)
    metric = best @ best.T
    return LogDetSolution(
        metric, tuple(disorder), learner.n_updates, len(disorder) - 1, bool(converged)
    )


def transform_rows(batch: SeriesBatch, metric: FloatArray) -> SeriesBatch:
    """Rows whose plain distances are the distances of the given rows under M.

    Parameters
    ----------
    batch
        Series with d channels.
    metric
        M, symmetric positive definite, shape (d, d).

    Returns
    -------
    SeriesBatch
        Rows L'a, where M = LL' is the Cholesky factorisation.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.learning.logdet import transform_rows
    >>> from slts.series import as_series
    >>> transform_rows(as_series([[[1.0], [1.0]]]), np.diag([4.0, 9.0])).values
    array([[2., 3.]])
    """
    d = batch.n_channels
    if metric.shape != (d, d):
        raise ValueError(
            f"The 'metric' parameter must have shape ({d}, {d}), one row and column per channel. "
            f"Got shape {metric.shape} instead."
        )
    try:
        factor: FloatArray = np.linalg.cholesky(metric).astype(np.float64, copy=False)
    except np.linalg.LinAlgError as error:
        smallest = float(np.linalg.eigvalsh(metric)[0])
        raise ValueError(
            f"The 'metric' parameter must be positive definite. Its smallest eigenvalue is "
            f"{smallest:.3g}."
        ) from error
    return _transformed(batch, factor)


def logdet_step(factor: FloatArray, pull: FloatArray, push: FloatArray, rate: float) -> FloatArray:
    """Take one step M <- (M^-1 + step (P - Q))^-1 on the factor L of M = LL'.

    Parameters
    ----------
    factor
        L, invertible, shape (d, d).
    pull, push
        L' times the differences along the paths (i, j) and (i, k), shape (d, path length); so P
        and Q, seen through L, are pull pull' and push push'.
    rate
        Below 1. The step is rate / max(d(i, j), d(i, k)), so that no triplet, however far its
        series, moves M by more than this share.

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


class _Learner:
    """The batch and the current factor L of M, at trace d."""

    def __init__(
        self,
        batch: SeriesBatch,
        classes: IntArray,
        margin: float,
        device: str,
        n_jobs: int | None,
        progress: Progress | None,
    ) -> None:
        self.batch, self.classes, self.margin = batch, classes, margin
        self.device, self.n_jobs, self.progress = device, n_jobs, progress
        self.factor: FloatArray = np.eye(batch.n_channels)
        self.n_updates = 0

    def rank(self, limit: int | None, rng: np.random.RandomState) -> _Ranking:
        """Rank at most `limit` series by their distances under the current M."""
        members = _members(self.classes, limit, rng)
        rows = _transformed(self.batch[members], self.factor)
        settings = AlignmentSettings(objective="distance", normalize=False)
        found = distances(rows, rows, settings, device=self.device, n_jobs=self.n_jobs)
        return _Ranking(found.astype(np.float64, copy=False), self.classes[members], members)

    def run_cycle(self, triplets: IntArray, rate: float, cycle: int, n_cycles: int) -> None:
        """Go through the triplets once."""
        series = list(self.batch)
        for count, (i, j, k) in enumerate(triplets.tolist()):
            self._learn_from(series[i], series[j], series[k], rate)
            if self.progress is not None and count % _PROGRESS_EVERY == 0:
                self.progress(cycle + count / len(triplets), n_cycles)

    def _learn_from(self, x: FloatArray, same: FloatArray, other: FloatArray, rate: float) -> None:
        to_rows = self.factor.T
        anchor = to_rows @ x
        pull = _path_differences(anchor, to_rows @ same)
        push = _path_differences(anchor, to_rows @ other)
        if np.vdot(push, push) - np.vdot(pull, pull) >= self.margin:
            return
        factor = logdet_step(self.factor, pull, push, rate)
        # Distances only matter relative to each other; a fixed trace gives the margin its meaning.
        self.factor = factor * math.sqrt(len(factor) / float(np.vdot(factor, factor)))
        self.n_updates += 1


class _Ranking:
    """Series by distance from each other, and the pairs of them in the wrong order.

    Parameters
    ----------
    found
        Distances between the members, shape (n, n).
    classes, members
        Their classes, and their numbers in the batch.
    """

    def __init__(self, found: FloatArray, classes: IntArray, members: IntArray) -> None:
        order = np.argsort(found, axis=1, kind="stable")
        same = classes[order] == classes[:, None]
        other = ~same
        same &= order != np.arange(len(found))[:, None]
        self._members, self._order = members, order
        # For every series of the same class, how many of another class rank before it.
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
        """Triplets (i, same, other) in the wrong order, uniform with replacement, (count, 3)."""
        ticket = rng.randint(self._total, size=count, dtype=np.int64)
        # Inversions are numbered by their same-class series, then by the other one, far to near.
        same = np.searchsorted(self._ends, ticket, side="right")
        series = same // len(self)
        other = self._others[self._first_other[series] + self._ends[same] - 1 - ticket]
        order = self._order.ravel()
        triplets: IntArray = np.column_stack([series, order[same], order[other]])
        return np.take(self._members, triplets)


def _members(classes: IntArray, limit: int | None, rng: np.random.RandomState) -> IntArray:
    """Series to rank: all, or a random `limit` of them with the classes in proportion."""
    n = len(classes)
    if limit is None or n <= limit:
        return np.arange(n)
    shuffled = rng.permutation(n)
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    # Evenly spaced picks from the series sorted by class are proportional.
    picks = np.floor((np.arange(limit) + rng.random_sample()) * (n / limit)).astype(np.int64)
    return np.sort(by_class[np.minimum(picks, n - 1)]).astype(np.int64)


def _transformed(batch: SeriesBatch, factor: FloatArray) -> SeriesBatch:
    return SeriesBatch.from_checked(batch.values @ factor, batch.offsets, None)


def _path_differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """Differences a_i - b_j along the path, shape (d, path length)."""
    path = align(a, b, objective="distance", normalize=False).path
    return a[:, path[:, 0]] - b[:, path[:, 1]]


def _class_numbers(labels: npt.ArrayLike, n_series: int) -> IntArray:
    array = np.asarray(labels)
    if array.shape != (n_series,) or array.dtype.kind not in "iu":
        raise DataError(
            f"'labels' must be {n_series} integers, one per series. Got shape {array.shape} and "
            f"dtype {array.dtype} instead."
        )
    if n_series == 0:
        raise DataError("'batch' has no series: a metric is learned from at least one.")
    return array.astype(np.int64)


def _check_parameters(
    n_cycles: object, triplets_per_series: object, margin: object, alpha: object, limit: object
) -> None:
    """Raise `ValueError` naming the first parameter that cannot be used."""

    def is_number(value: object, least: float, *, strictly: bool) -> bool:
        if not (isinstance(value, numbers.Real) and math.isfinite(value)):
            return False
        return float(value) > least if strictly else float(value) >= least

    def is_count(value: object, least: int) -> bool:
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return whole and is_number(value, least, strictly=False)

    positive = "a finite number > 0"
    n_triplets = triplets_per_series
    for name, value, fine, expected in (
        ("n_cycles", n_cycles, is_count(n_cycles, 1), "an int >= 1"),
        ("triplets_per_series", n_triplets, is_number(n_triplets, 0, strictly=True), positive),
        ("margin", margin, is_number(margin, 0, strictly=False), "a finite number >= 0"),
        ("alpha", alpha, is_number(alpha, 0, strictly=True), positive),
        ("ranking_limit", limit, limit is None or is_count(limit, 2), "None or an int >= 2"),
    ):
        if not fine:
            raise ValueError(
                f"The '{name}' parameter of learn_logdet_metric must be {expected}. "
                f"Got {value!r} instead."
            )
