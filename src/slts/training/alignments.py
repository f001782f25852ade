"""Alignments of series with landmarks, held in memory, and one-vs-rest learning from them.

Alignments are computed once. Every class, parameter and validation split is learned from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.execution import Progress, map_threads, silent
from slts.solvers import (
    MetricSolution,
    SeparatorSolution,
    one_vs_rest_features,
    problem_strength,
    solve_metric_path,
    solve_separator,
    solve_separator_path,
)
from slts.training.held_out import Split

Item = TypeVar("Item")
# A split and the positive class of a problem.
Task: TypeAlias = tuple[Split, int]

# Bytes of products that a thread reads at once, and of similarities that are held at once.
_BLOCK_BYTES, _HELD_BYTES = 2**24, 2**28


@dataclass(frozen=True, eq=False)
class Alignments:
    """Series in memory, seen through their alignments with landmarks.

    Parameters
    ----------
    similarities
        K_I, shape (series, landmarks); None if metrics are learned.
    products
        T, shape (series, landmarks, d, d); None if M = I.
    codes, landmark_codes
        Classes of series and landmarks, 0 to n_classes - 1.
    weights
        Weight of each series in the loss.
    n_classes
        Number of classes, two or more.
    regularizer
        Penalty of the metrics.
    n_jobs
        Threads for the problems of the classes.
    """

    similarities: npt.NDArray[np.floating[Any]] | None
    products: npt.NDArray[np.floating[Any]] | None
    codes: IntArray
    landmark_codes: IntArray
    weights: FloatArray
    n_classes: int
    regularizer: str
    n_jobs: int | None

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks."""
        return len(self.landmark_codes)

    @property
    def positives(self) -> range:
        """Positive class of each problem: every class, or the second of two."""
        return range(1, 2) if self.n_classes == 2 else range(self.n_classes)

    def labels(self, positive: int) -> FloatArray:
        """Return +1 for the positive class and -1 for the rest."""
        return np.where(self.codes == positive, 1.0, -1.0)

    def first_landmarks(self, count: int) -> Alignments:
        """Return the same data with the first `count` landmarks only."""
        return replace(
            self,
            similarities=None if self.similarities is None else self.similarities[:, :count],
            products=None if self.products is None else self.products[:, :count],
            landmark_codes=self.landmark_codes[:count],
        )

    def take(self, rows: IntArray) -> Alignments:
        """Return the same data with some of the series only."""
        return replace(
            self,
            similarities=None if self.similarities is None else self.similarities[rows],
            products=None if self.products is None else self.products[rows],
            codes=self.codes[rows],
            weights=self.weights[rows],
        )

    def solve(
        self, gamma: float, lam: float, progress: Progress = silent
    ) -> tuple[list[MetricSolution], list[SeparatorSolution], bool]:
        """Learn the metric and the separator of every problem; say if a decision is positive."""

        def separate(problem: int, K: FloatArray) -> tuple[SeparatorSolution, bool]:
            labels = self.labels(self.positives[problem])
            solution = solve_separator(K, labels, gamma=gamma, sample_weight=self.weights)
            return solution, bool((K @ solution.coef > 0.0).any())

        metrics: list[MetricSolution] = []
        if self.products is not None:
            everything = np.arange(len(self.codes))
            problems = [(everything, positive) for positive in self.positives]
            paths = self._metric_paths(problems, [(gamma, lam)], progress)
            metrics = [metric for (metric,) in paths]
        solved = self._map_similarities([m.metric for m in metrics], separate)
        return metrics, [solution for solution, _ in solved], any(some for _, some in solved)

    def held_out_decisions(
        self,
        splits: Sequence[Split],
        parameters: Sequence[dict[str, float]],
        progress: Progress = silent,
    ) -> list[FloatArray]:
        """Learn on the first part of each split, decide on the second, for all parameters.

        Shape (parameters, test, problems) for each split. Problems of all classes and splits are
        solved side by side.
        """
        tasks = [(split, positive) for split in splits for positive in self.positives]
        decide = self._bbs_decisions if self.products is None else self._slts_decisions
        values, n = decide(tasks, parameters, progress), len(self.positives)
        return [np.stack(values[k : k + n], axis=-1) for k in range(0, len(values), n)]

    def _bbs_decisions(
        self, tasks: Sequence[Task], parameters: Sequence[dict[str, float]], progress: Progress
    ) -> list[FloatArray]:
        K, gammas = self.similarities, [p["gamma"] for p in parameters]
        assert K is not None

        def decide(task: Task) -> FloatArray:
            (train, test), positive = task
            labels, weights = self.labels(positive)[train], self.weights[train]
            path = solve_separator_path(K[train], labels, gammas=gammas, sample_weight=weights)
            return np.stack([(K @ solution.coef)[test] for solution in path])

        return map_threads(decide, tasks, n_jobs=self.n_jobs, progress=progress)

    def _slts_decisions(
        self, tasks: Sequence[Task], parameters: Sequence[dict[str, float]], progress: Progress
    ) -> list[FloatArray]:
        # With one gamma in both stages only the strength of the penalty matters (lam gamma^2, or
        # lam gamma for a norm), so candidates of equal strength are solved once.
        pairs = [(p["gamma"], p["lam"]) for p in parameters]
        strengths = [problem_strength(gamma, lam, self.regularizer) for gamma, lam in pairs]
        descending = sorted(set(strengths), reverse=True)
        distinct = [pairs[strengths.index(s)] for s in descending]
        problems = [(train, positive) for (train, _), positive in tasks]
        n = len(distinct)
        paths = self._metric_paths(
            problems, distinct, lambda done, of: progress(done * n, 2 * n * of)
        )
        decisions: list[list[FloatArray]] = []
        for position, (gamma, _) in enumerate(distinct):

            def decide(k: int, K: FloatArray, gamma: float = gamma) -> FloatArray:
                (train, test), positive = tasks[k]
                labels, weights = self.labels(positive)[train], self.weights[train]
                separator = solve_separator(K[train], labels, gamma=gamma, sample_weight=weights)
                return np.asarray((K @ separator.coef)[test])

            metrics = [path[position].metric for path in paths]
            decisions.append(self._map_similarities(metrics, decide))
            progress(n + position + 1, 2 * n)
        places = [descending.index(s) for s in strengths]
        return [np.stack([decisions[p][k] for p in places]) for k in range(len(tasks))]

    def _metric_paths(
        self,
        problems: Sequence[tuple[IntArray, int]],
        pairs: Sequence[tuple[float, float]],
        progress: Progress = silent,
    ) -> list[list[MetricSolution]]:
        """Learn metrics from some series for a positive class, for all parameters."""
        # Before threads start, each of which would compute them.
        sums = self._class_sums
        total = sums.sum(axis=1)

        def path(problem: tuple[IntArray, int]) -> list[MetricSolution]:
            rows, positive = problem
            Z = one_vs_rest_features(sums, positive, self.n_landmarks, total=total)[rows]
            labels, weights = self.labels(positive)[rows], self.weights[rows]
            solutions = solve_metric_path(
                Z, labels, pairs=pairs, regularizer=self.regularizer, sample_weight=weights
            )
            return list(solutions)

        return map_threads(path, problems, n_jobs=self.n_jobs, progress=progress)

    @cached_property
    def _class_sums(self) -> FloatArray:
        """T summed over the landmarks of each class, shape (series, classes, d, d)."""
        T = self.products
        assert T is not None
        sums = np.zeros((len(T), self.n_classes, *T.shape[2:]))
        members = [np.flatnonzero(self.landmark_codes == k) for k in range(self.n_classes)]

        def add(rows: slice) -> None:
            for k, of_class in enumerate(members):
                if len(of_class):
                    T[rows, of_class].sum(axis=1, dtype=np.float64, out=sums[rows, k])

        map_threads(add, self._row_blocks(), n_jobs=self.n_jobs)
        return sums

    def _map_similarities(
        self, metrics: Sequence[FloatArray], task: Callable[[int, FloatArray], Item]
    ) -> list[Item]:
        """Call a task with the number of each problem and its similarities: K_M, or K_I."""
        if self.products is None:
            assert self.similarities is not None
            K_I = cast(FloatArray, self.similarities)
            numbers = range(len(self.positives))
            return map_threads(lambda k: task(k, K_I), numbers, n_jobs=self.n_jobs)
        results: list[Item] = []
        # Few similarities are in memory.
        step = max(1, _HELD_BYTES // (8 * len(self.codes) * self.n_landmarks))
        for begin in range(0, len(metrics), step):
            K = self._projected(np.stack(metrics[begin : begin + step]))
            numbered = list(enumerate(K, begin))
            results += map_threads(lambda pair: task(*pair), numbered, n_jobs=self.n_jobs)
        return results

    def _projected(self, metrics: FloatArray) -> list[FloatArray]:
        """Return K_M, shape (series, landmarks), for each of a stack of metrics."""
        T = self.products
        assert T is not None
        m, n, d, _ = T.shape
        flat = metrics.reshape(len(metrics), d * d).astype(T.dtype, copy=False)
        K = [np.empty((m, n)) for _ in metrics]

        def project(rows: slice) -> None:
            some = T[rows]
            for out, values in zip(K, flat @ some.reshape(-1, d * d).T, strict=True):
                out[rows] = values.reshape(len(some), n)

        map_threads(project, self._row_blocks(), n_jobs=self.n_jobs)
        return K

    def _row_blocks(self) -> list[slice]:
        """Cut the series into blocks, which do not depend on the number of threads."""
        assert self.products is not None
        step = max(1, _BLOCK_BYTES * len(self.codes) // max(1, self.products.nbytes))
        return [slice(start, start + step) for start in range(0, len(self.codes), step)]
