"""One-vs-rest learning on alignments with landmarks: BBS (M = I) and SLTS (M learned).

Alignments are found once; every class, parameter and validation split is learned from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from slts._typing import FloatArray, IntArray
from slts.execution import Progress
from slts.learning.metric import MetricSolution, one_vs_rest_features
from slts.learning.regularized_metric import problem_strength, solve_regularized_path
from slts.learning.separator import SeparatorSolution, solve_separator, solve_separator_path

Item = TypeVar("Item")


@dataclass(frozen=True)
class LandmarkData:
    """Training series seen through their alignments with landmarks.

    Parameters
    ----------
    similarities
        K_I, shape (series, landmarks); None if only the products are needed.
    products
        T, shape (series, landmarks, d, d); None if M = I is all that is asked.
    codes, landmark_codes
        Classes of series and landmarks, 0 to n_classes - 1.
    weights
        Weight of each series, mean 1.
    n_classes
        Number of classes, two or more.
    """

    similarities: npt.NDArray[np.floating[Any]] | None
    products: npt.NDArray[np.floating[Any]] | None
    codes: IntArray
    landmark_codes: IntArray
    weights: FloatArray
    n_classes: int

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks."""
        return len(self.landmark_codes)

    @property
    def positives(self) -> range:
        """The positive class of each problem: every class, or only the second of two."""
        return range(1, 2) if self.n_classes == 2 else range(self.n_classes)

    def labels(self, positive: int) -> FloatArray:
        """+1 for the positive class, -1 for the rest."""
        return np.where(self.codes == positive, 1.0, -1.0)

    def first_landmarks(self, count: int) -> LandmarkData:
        """The same data with the first `count` landmarks only."""
        return replace(
            self,
            similarities=None if self.similarities is None else self.similarities[:, :count],
            products=None if self.products is None else self.products[:, :count],
            landmark_codes=self.landmark_codes[:count],
        )

    def class_sums(self) -> FloatArray:
        """S_ik: products summed over the landmarks of class k, shape (series, classes, d, d)."""
        assert self.products is not None
        m, _, d, _ = self.products.shape
        sums = np.zeros((m, self.n_classes, d, d))
        for k in range(self.n_classes):
            of_class = np.flatnonzero(self.landmark_codes == k)
            if len(of_class):
                self.products[:, of_class].sum(axis=1, dtype=np.float64, out=sums[:, k])
        return sums


@dataclass(frozen=True)
class LandmarkModel:
    """Decision values sum_j coef[c, j] <metrics[c], T_ij>, and the solves behind them."""

    coef: FloatArray
    metrics: FloatArray | None
    # Whether some problem says yes to some training series.
    says_yes: bool
    separators: tuple[SeparatorSolution, ...]
    metric_solutions: tuple[MetricSolution, ...] = ()


def bbs_decisions(
    data: LandmarkData,
    train: IntArray,
    test: IntArray,
    gammas: Sequence[float],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Decision values on `test` after learning on `train`, shape (gammas, test, problems)."""
    K = data.similarities
    assert K is not None

    def one(positive: int) -> FloatArray:
        path = solve_separator_path(
            K[train], data.labels(positive)[train],
            gammas=gammas, sample_weight=data.weights[train],
        )  # fmt: skip
        return np.stack([K[test] @ solution.coef for solution in path])

    return np.stack(_for_each(one, data.positives, n_jobs, progress), axis=-1)


def fit_bbs(
    data: LandmarkData,
    gamma: float,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LandmarkModel:
    """Learn a separator for every class at M = I."""
    K = data.similarities
    assert K is not None

    def one(positive: int) -> SeparatorSolution:
        return solve_separator(K, data.labels(positive), gamma=gamma, sample_weight=data.weights)

    separators = _for_each(one, data.positives, n_jobs, progress)
    coef = np.stack([separator.coef for separator in separators])
    return LandmarkModel(coef, None, bool((K @ coef.T > 0.0).any()), tuple(separators))


def slts_decisions(
    data: LandmarkData,
    train: IntArray,
    test: IntArray,
    pairs: Sequence[tuple[float, float]],
    *,
    regularizer: str = "frobenius",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Decision values on `test` for every (gamma, lam), shape (pairs, test, problems).

    With the same gamma in both stages only lam * gamma^2 matters (lam * gamma where the penalty is
    a norm), so equal ones are solved once.
    """
    strengths = [problem_strength(gamma, lam, regularizer) for gamma, lam in pairs]
    distinct = [pairs[strengths.index(s)] for s in sorted(set(strengths), reverse=True)]
    position = [sorted(set(strengths), reverse=True).index(s) for s in strengths]
    sums = data.class_sums()

    def one(positive: int) -> FloatArray:
        Z = one_vs_rest_features(sums, positive, data.n_landmarks)[train]
        labels = data.labels(positive)[train]
        weights = data.weights[train]
        metrics = solve_regularized_path(
            Z, labels, pairs=distinct, regularizer=regularizer, sample_weight=weights
        )
        K = project(data, np.stack([solution.metric for solution in metrics]))
        values = []
        for (gamma, _), similarities in zip(distinct, K, strict=True):
            separator = solve_separator(
                similarities[train], labels, gamma=gamma, sample_weight=weights
            )
            values.append(similarities[test] @ separator.coef)
        return np.stack([values[k] for k in position])

    return np.stack(_for_each(one, data.positives, n_jobs, progress), axis=-1)


def fit_slts(
    data: LandmarkData,
    gamma: float,
    lam: float,
    *,
    regularizer: str = "frobenius",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LandmarkModel:
    """Learn a metric, then a separator, for every class."""
    sums = data.class_sums()

    def one(positive: int) -> tuple[MetricSolution, SeparatorSolution, bool]:
        Z = one_vs_rest_features(sums, positive, data.n_landmarks)
        labels = data.labels(positive)
        metric = solve_regularized_path(
            Z, labels, pairs=[(gamma, lam)], regularizer=regularizer, sample_weight=data.weights
        )[0]
        K = project(data, metric.metric[np.newaxis])[0]
        separator = solve_separator(K, labels, gamma=gamma, sample_weight=data.weights)
        return metric, separator, bool((K @ separator.coef > 0.0).any())

    solved = _for_each(one, data.positives, n_jobs, progress)
    metrics, separators, says_yes = zip(*solved, strict=True)
    return LandmarkModel(
        np.stack([separator.coef for separator in separators]),
        np.stack([solution.metric for solution in metrics]),
        any(says_yes),
        separators,
        metrics,
    )


def project(data: LandmarkData, metrics: FloatArray) -> FloatArray:
    """K_M for a stack of metrics, shape (metrics, series, landmarks)."""
    T = data.products
    assert T is not None
    m, n, d, _ = T.shape
    flat = metrics.reshape(len(metrics), d * d).astype(T.dtype, copy=False)
    K = T.reshape(m * n, d * d) @ flat.T
    return np.ascontiguousarray(K.T, dtype=np.float64).reshape(len(metrics), m, n)


def _for_each(
    work: Callable[[int], Item],
    problems: range,
    n_jobs: int | None,
    progress: Progress | None,
) -> list[Item]:
    """Solve the problems in threads, each with one BLAS thread."""
    with threadpool_limits(1, user_api="blas"):
        pool = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
        results = []
        for result in pool(delayed(work)(c) for c in problems):
            results.append(result)
            if progress is not None:
                progress(len(results), len(problems))
        return results
