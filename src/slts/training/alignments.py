"""Alignments of series with landmarks, held in memory, and one-vs-rest learning from them.

Alignments are computed once. Every class, parameter and validation split is learned from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner
from slts.execution import Progress, one_blas_thread, silent, thread_count
from slts.learning import (
    MetricSolution,
    SeparatorSolution,
    one_vs_rest_features,
    solve_metric_path,
    solve_separator,
    solve_separator_path,
)
from slts.learning.regularized_metric import problem_strength
from slts.series import SeriesBatch

Item = TypeVar("Item")


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

    def class_sums(self) -> FloatArray:
        """Return T summed over the landmarks of each class, shape (series, classes, d, d)."""
        assert self.products is not None
        m, _, d, _ = self.products.shape
        sums = np.zeros((m, self.n_classes, d, d))
        for k in range(self.n_classes):
            of_class = np.flatnonzero(self.landmark_codes == k)
            if len(of_class):
                self.products[:, of_class].sum(axis=1, dtype=np.float64, out=sums[:, k])
        return sums

    def projected(self, metrics: FloatArray) -> FloatArray:
        """Return K_M for a stack of metrics, shape (metrics, series, landmarks)."""
        T = self.products
        assert T is not None
        m, n, d, _ = T.shape
        flat = metrics.reshape(len(metrics), d * d).astype(T.dtype, copy=False)
        K = T.reshape(m * n, d * d) @ flat.T
        return np.ascontiguousarray(K.T, dtype=np.float64).reshape(len(metrics), m, n)

    def similarities_of(self, problem: int, metrics: FloatArray | None) -> npt.NDArray[Any]:
        """Return the similarities of a problem: K_I, or K_M under its metric."""
        if metrics is None:
            assert self.similarities is not None
            return self.similarities
        return np.asarray(self.projected(metrics[problem][np.newaxis])[0])

    def solve_metrics(
        self, gamma: float, lam: float, progress: Progress = silent
    ) -> list[MetricSolution]:
        """Learn the metric of every problem."""
        sums = self.class_sums()

        def solve(positive: int) -> MetricSolution:
            Z = one_vs_rest_features(sums, positive, self.n_landmarks)
            return solve_metric_path(
                Z, self.labels(positive), pairs=[(gamma, lam)], regularizer=self.regularizer,
                sample_weight=self.weights,
            )[0]  # fmt: skip

        return self._for_each_problem(solve, progress)

    def solve_separators(
        self, metrics: FloatArray | None, gamma: float, progress: Progress = silent
    ) -> tuple[list[SeparatorSolution], bool]:
        """Learn the separator of every problem; say whether some decision is positive."""

        def solve(positive: int) -> tuple[SeparatorSolution, bool]:
            K = self.similarities_of(self.positives.index(positive), metrics)
            found = solve_separator(
                K, self.labels(positive), gamma=gamma, sample_weight=self.weights
            )
            return found, bool((K @ found.coef > 0.0).any())

        solved = self._for_each_problem(solve, progress)
        return [found for found, _ in solved], any(positive for _, positive in solved)

    def held_out_decisions(
        self, train: IntArray, test: IntArray, parameters: Sequence[dict[str, float]]
    ) -> FloatArray:
        """Learn on `train`, decide on `test`, for all parameters: (parameters, test, problems)."""
        decide = self._bbs_decisions if self.products is None else self._slts_decisions
        return decide(train, test, parameters)

    def _bbs_decisions(
        self, train: IntArray, test: IntArray, parameters: Sequence[dict[str, float]]
    ) -> FloatArray:
        K = self.similarities
        assert K is not None

        def decide(positive: int) -> FloatArray:
            path = solve_separator_path(
                K[train], self.labels(positive)[train],
                gammas=[p["gamma"] for p in parameters], sample_weight=self.weights[train],
            )  # fmt: skip
            return np.stack([K[test] @ solution.coef for solution in path])

        return np.stack(self._for_each_problem(decide), axis=-1)

    def _slts_decisions(
        self, train: IntArray, test: IntArray, parameters: Sequence[dict[str, float]]
    ) -> FloatArray:
        # With one gamma in both stages only the strength of the penalty matters (lam gamma^2, or
        # lam gamma for a norm), so candidates of equal strength are solved once.
        pairs = [(p["gamma"], p["lam"]) for p in parameters]
        strengths = [problem_strength(gamma, lam, self.regularizer) for gamma, lam in pairs]
        descending = sorted(set(strengths), reverse=True)
        distinct = [pairs[strengths.index(s)] for s in descending]
        sums = self.class_sums()

        def decide(positive: int) -> FloatArray:
            Z = one_vs_rest_features(sums, positive, self.n_landmarks)[train]
            labels, weights = self.labels(positive)[train], self.weights[train]
            metrics = solve_metric_path(
                Z, labels, pairs=distinct, regularizer=self.regularizer, sample_weight=weights
            )
            values = []
            stack = self.projected(np.stack([solution.metric for solution in metrics]))
            for (gamma, _), K in zip(distinct, stack, strict=True):
                separator = solve_separator(K[train], labels, gamma=gamma, sample_weight=weights)
                values.append(K[test] @ separator.coef)
            return np.stack([values[descending.index(s)] for s in strengths])

        return np.stack(self._for_each_problem(decide), axis=-1)

    def _for_each_problem(
        self, solve: Callable[[int], Item], progress: Progress = silent
    ) -> list[Item]:
        """Solve the problems in threads, each with one BLAS thread."""
        with one_blas_thread():
            n_jobs = min(thread_count(self.n_jobs), len(self.positives))
            pool = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
            results = []
            for result in pool(delayed(solve)(positive) for positive in self.positives):
                results.append(result)
                progress(len(results), len(self.positives))
            return results
