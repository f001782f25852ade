"""Alignments of series with landmarks, held in memory, and one-vs-rest learning from them.

Alignments are computed once. Every class, parameter and validation split is learned from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner
from slts.execution import Progress, ThreadRunner, silent
from slts.learning import (
    MetricSolution,
    SeparatorSolution,
    one_vs_rest_features,
    solve_metric_path,
    solve_separator,
    solve_separator_path,
)
from slts.learning.metric import problem_strength
from slts.series import SeriesBatch
from slts.training.held_out import Split
from slts.training.metric_pipeline import MetricPipeline

Item = TypeVar("Item")
Task = TypeVar("Task")

# Bytes of products that a thread reads at once: after each call of NumPy it waits for the GIL.
_BLOCK_BYTES = 2**24


@dataclass(frozen=True)
class SampleAlignments:
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
        Weight of each series in the loss, mean 1.
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
    regularizer: str = "frobenius"
    n_jobs: int | None = None

    @classmethod
    def align(
        cls,
        aligner: Aligner,
        rows: SeriesBatch,
        *,
        learns_metric: bool,
        progress: Progress = silent,
        **fields: Any,
    ) -> SampleAlignments:
        """Align series; keep T if metrics are learned, else K_I. `fields` are the rest."""
        if learns_metric:
            return cls(None, aligner.products(rows, progress=progress), **fields)
        return cls(aligner.similarities(rows, progress=progress), None, **fields)

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

    def first_landmarks(self, count: int) -> SampleAlignments:
        """Return the same data with the first `count` landmarks only."""
        if count >= self.n_landmarks:
            return self
        return replace(
            self,
            similarities=None if self.similarities is None else self.similarities[:, :count],
            products=None if self.products is None else self.products[:, :count],
            landmark_codes=self.landmark_codes[:count],
        )

    def take(self, rows: IntArray) -> SampleAlignments:
        """Return the same data with some of the series only."""
        if len(rows) == len(self.codes):
            return self
        return replace(
            self,
            similarities=None if self.similarities is None else self.similarities[rows],
            products=None if self.products is None else self.products[rows],
            codes=self.codes[rows],
            weights=self.weights[rows] / self.weights[rows].mean(),
        )

    @cached_property
    def class_sums(self) -> FloatArray:
        """T summed over the landmarks of each class, shape (series, classes, d, d)."""
        T = self.products
        assert T is not None
        sums = np.zeros((len(T), self.n_classes, *T.shape[2:]))
        members = [np.flatnonzero(self.landmark_codes == k) for k in range(self.n_classes)]

        def add(rows: slice) -> None:
            for k, of_class in enumerate(members):
                if len(of_class):
                    T[rows, of_class].sum(axis=1, dtype=np.float64, out=sums[rows, k])

        self._map_rows(add)
        return sums

    @cached_property
    def _class_total(self) -> FloatArray:
        """T summed over all landmarks, shape (series, d, d)."""
        sums = self.class_sums
        total = np.empty((len(sums), *sums.shape[2:]))
        self._map_rows(lambda rows: sums[rows].sum(axis=1, out=total[rows]))
        return total

    def projected(self, metrics: FloatArray) -> list[FloatArray]:
        """Return K_M, shape (series, landmarks), for each of a stack of metrics."""
        K, project = self.projection(metrics)
        self._map_rows(project)
        return K

    def projection(self, metrics: FloatArray) -> tuple[list[FloatArray], Callable[[slice], None]]:
        """Return K_M for each of a stack of metrics, and what computes a block of their rows."""
        T = self.products
        assert T is not None
        m, n, d, _ = T.shape
        flat = metrics.reshape(len(metrics), d * d).astype(T.dtype, copy=False)
        # Single arrays are freed one by one, and their memory is used again.
        K = [np.empty((m, n)) for _ in metrics]

        def project(rows: slice) -> None:
            some = T[rows]
            for own, values in zip(K, flat @ some.reshape(-1, d * d).T, strict=True):
                own[rows] = values.reshape(len(some), n)

        return K, project

    def similarities_of(self, problem: int, metrics: FloatArray | None) -> npt.NDArray[Any]:
        """Return the similarities of a problem: K_I, or K_M under its metric."""
        if metrics is None:
            assert self.similarities is not None
            return self.similarities
        return self.projected(metrics[problem][np.newaxis])[0]

    def solve_metrics(
        self, gamma: float, lam: float, progress: Progress = silent
    ) -> list[MetricSolution]:
        """Learn the metric of every problem."""
        everything = np.arange(len(self.codes))
        tasks = [(everything, positive) for positive in self.positives]
        paths = self._metric_paths(tasks, [(gamma, lam)])
        # A path that has ended holds no rows.
        return [found for (found,) in self._solve(list, paths, progress)]

    def solve_separators(
        self, metrics: FloatArray | None, gamma: float, progress: Progress = silent
    ) -> tuple[list[SeparatorSolution], bool]:
        """Learn the separator of every problem; say whether some decision is positive."""

        def solve(problem: int, K: npt.NDArray[Any]) -> tuple[SeparatorSolution, bool]:
            labels = self.labels(self.positives[problem])
            found = solve_separator(K, labels, gamma=gamma, sample_weight=self.weights)
            return found, bool((K @ found.coef > 0.0).any())

        if metrics is None:
            own = self.similarities_of(0, None)
            solved = self._solve(lambda k: solve(k, own), range(len(self.positives)), progress)
        else:
            paths = [iter([metric]) for metric in metrics]
            solved = self._with_similarities(paths, 1, lambda k, _, K: solve(k, K), progress)
        return [found for found, _ in solved], any(positive for _, positive in solved)

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
        found, n = decide(tasks, parameters, progress), len(self.positives)
        return [np.stack(found[k : k + n], axis=-1) for k in range(0, len(found), n)]

    def _bbs_decisions(
        self,
        tasks: Sequence[tuple[Split, int]],
        parameters: Sequence[dict[str, float]],
        progress: Progress,
    ) -> list[FloatArray]:
        K = self.similarities
        assert K is not None

        def decide(task: tuple[Split, int]) -> FloatArray:
            (train, test), positive = task
            path = solve_separator_path(
                K[train], self.labels(positive)[train],
                gammas=[p["gamma"] for p in parameters], sample_weight=self.weights[train],
            )  # fmt: skip
            return np.stack([(K @ solution.coef)[test] for solution in path])

        return self._solve(decide, tasks, progress)

    def _slts_decisions(
        self,
        tasks: Sequence[tuple[Split, int]],
        parameters: Sequence[dict[str, float]],
        progress: Progress,
    ) -> list[FloatArray]:
        # With one gamma in both stages only the strength of the penalty matters (lam gamma^2, or
        # lam gamma for a norm), so candidates of equal strength are solved once.
        pairs = [(p["gamma"], p["lam"]) for p in parameters]
        strengths = [problem_strength(gamma, lam, self.regularizer) for gamma, lam in pairs]
        descending = sorted(set(strengths), reverse=True)
        distinct = [pairs[strengths.index(s)] for s in descending]

        def decide(k: int, strength: int, K: npt.NDArray[Any]) -> FloatArray:
            (train, test), positive = tasks[k]
            separator = solve_separator(
                K[train], self.labels(positive)[train], gamma=distinct[strength][0],
                sample_weight=self.weights[train],
            )  # fmt: skip
            return np.asarray((K @ separator.coef)[test])

        paths = self._metric_paths([(train, positive) for (train, _), positive in tasks], distinct)
        metrics = [(solution.metric for solution in path) for path in paths]
        values = self._with_similarities(metrics, len(distinct), decide, progress)
        # All tasks of the first strength come first.
        places = [descending.index(s) * len(tasks) for s in strengths]
        return [np.stack([values[place + k] for place in places]) for k in range(len(tasks))]

    def _metric_paths(
        self, tasks: Sequence[tuple[IntArray, int]], pairs: Sequence[tuple[float, float]]
    ) -> list[Iterator[MetricSolution]]:
        """Return what learns metrics from some series for a positive class, for all parameters."""
        # Before threads start, each of which would compute them.
        sums, total = self.class_sums, self._class_total

        def path(rows: IntArray, positive: int) -> Iterator[MetricSolution]:
            Z = one_vs_rest_features(sums, positive, self.n_landmarks, total=total)
            yield from solve_metric_path(
                Z if len(rows) == len(Z) else Z[rows], self.labels(positive)[rows], pairs=pairs,
                regularizer=self.regularizer, sample_weight=self.weights[rows],
            )  # fmt: skip

        return [path(*task) for task in tasks]

    def _with_similarities(
        self,
        paths: Sequence[Iterator[FloatArray]],
        size: int,
        task: Callable[[int, int, FloatArray], Item],
        progress: Progress,
    ) -> list[Item]:
        """Call a task with the similarities under each metric of some paths; see the pipeline."""
        assert self.products is not None
        pipeline = MetricPipeline(
            paths, size, self.products.shape[-1], self.projection, self._row_blocks(), task
        )
        return pipeline.run(self.n_jobs, progress)

    def _row_blocks(self) -> list[slice]:
        """Cut the series into blocks, which do not depend on the number of threads."""
        assert self.products is not None
        step = max(1, _BLOCK_BYTES * len(self.codes) // max(1, self.products.nbytes))
        return [slice(start, start + step) for start in range(0, len(self.codes), step)]

    def _map_rows(self, task: Callable[[slice], Any]) -> None:
        """Run a task on blocks of the series."""
        self._solve(task, self._row_blocks())

    def _solve(
        self,
        task: Callable[[Task], Item],
        tasks: Iterable[Task],
        progress: Progress = silent,
    ) -> list[Item]:
        """Solve problems in threads; return the results in order."""
        runner = ThreadRunner(self.n_jobs)
        return list(runner.map(lambda own, _, __: task(own), list(tasks), progress=progress))
