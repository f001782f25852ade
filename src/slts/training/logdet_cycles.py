"""LDMLT: learn a Mahalanobis metric for DTW from triplets of series, in cycles.

A cycle aligns and ranks the series under the current metric, draws triplets in the wrong order, and
takes a LogDet step (:mod:`slts.learning.logdet`) for each triplet.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings, align
from slts.errors import DataError
from slts.execution import Progress, silent
from slts.learning.logdet import LogDetSolution, Ranking, draw_members, logdet_step
from slts.series import SeriesBatch
from slts.series.channels import map_rows

# The disorder has settled when a cycle changes it by less than this share.
_SETTLED = 1e-4
# Keeps I + step * (P - Q) well conditioned when there are few triplets; any value below 1 works.
_LARGEST_RATE = 0.5
_PROGRESS_EVERY = 500


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
    progress: Progress = silent,
) -> LogDetSolution:
    """Learn M such that series of one class are nearer to each other than to others.

    A cycle ranks the series by their distances, draws triplets (i, same class j, other class k)
    uniformly among those in the wrong order, and takes a step for each triplet that is still
    violated, d(i, k) - d(i, j) < margin, when it is visited. Usually all cycles are run.

    Parameters
    ----------
    batch
        Series whose rows are compared as they are, without normalisation.
    labels
        One integer per series.
    n_cycles
        Largest number of cycles.
    triplets_per_series
        Triplets per ranked series in the first cycle. Later cycles draw fewer, in proportion to the
        square root of the disorder.
    margin
        In units of the distance at M = I. The trace of M is always d.
    alpha
        Length of all steps of a cycle together, relative to M.
    ranking_limit
        Largest number of series that a cycle ranks and draws triplets from; None for all. Each
        cycle draws them anew, with the classes in proportion. Above the limit the disorder is an
        estimate, and the time does not depend on the number of series.
    random_state
        Seed of the draws.
    device
        ``"cpu"``, ``"cuda"`` or ``"auto"``, for the ranking. Single paths are found on the CPU.
    n_jobs
        Threads for the ranking, by joblib's convention.
    progress
        Called with (finished cycles, all cycles).

    Returns
    -------
    LogDetSolution
        The metric with the smallest disorder, which may be M = I.
    """
    learner = _Learner(batch, _class_numbers(labels, len(batch)), margin, device, n_jobs, progress)
    rng = check_random_state(random_state)
    ranking = learner.rank(ranking_limit, rng)
    disorder = [ranking.disorder]
    best = learner.factor
    # With one channel there is only one metric of trace d.
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
    progress(n_cycles, n_cycles)
    metric = best @ best.T
    return LogDetSolution(
        metric, tuple(disorder), learner.n_updates, len(disorder) - 1, bool(converged)
    )


class _Learner:
    """The batch, and the factor L of the current M, whose trace is d."""

    def __init__(
        self,
        batch: SeriesBatch,
        classes: IntArray,
        margin: float,
        device: str,
        n_jobs: int | None,
        progress: Progress,
    ) -> None:
        self.batch, self.classes, self.margin = batch, classes, margin
        self.device, self.n_jobs, self.progress = device, n_jobs, progress
        self.factor: FloatArray = np.eye(batch.n_channels)
        self.n_updates = 0

    def rank(self, limit: int | None, rng: np.random.RandomState) -> Ranking:
        """Rank at most `limit` series by their distances under the current M."""
        members = draw_members(self.classes, limit, rng)
        rows = map_rows(self.batch[members], self.factor)
        settings = AlignmentSettings(objective="distance", normalize=False)
        found = Aligner(rows, settings, self.device, self.n_jobs).distances(rows)
        return Ranking(found.astype(np.float64, copy=False), self.classes[members], members)

    def run_cycle(self, triplets: IntArray, rate: float, cycle: int, n_cycles: int) -> None:
        """Visit every triplet once."""
        series = list(self.batch)
        for count, (i, j, k) in enumerate(triplets.tolist()):
            self._learn_from(series[i], series[j], series[k], rate)
            if count % _PROGRESS_EVERY == 0:
                self.progress(cycle + count / len(triplets), n_cycles)

    def _learn_from(self, x: FloatArray, same: FloatArray, other: FloatArray, rate: float) -> None:
        to_rows = self.factor.T
        anchor = to_rows @ x
        pull = _path_differences(anchor, to_rows @ same)
        push = _path_differences(anchor, to_rows @ other)
        if np.vdot(push, push) - np.vdot(pull, pull) >= self.margin:
            return
        factor = logdet_step(self.factor, pull, push, rate)
        # Only ratios of distances matter. A fixed trace gives the margin its meaning.
        self.factor = factor * math.sqrt(len(factor) / float(np.vdot(factor, factor)))
        self.n_updates += 1


def _path_differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the differences a_i - b_j along the path, shape (d, path length)."""
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
        raise DataError("'batch' has no series. Pass at least one series.")
    return array.astype(np.int64)
