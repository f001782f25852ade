"""Alignments that lie in parts: in memory, in temporary files, or on the workers of a cluster.

Kept blocks are ``(codes, weights, class sums)`` for the metrics and ``(codes, weights,
similarities)`` for the separators; the weights of all series sum to one. Solvers ask the parts a
few queries (margins, gradients, some rows), and only the answers are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from slts._typing import AnyArray, FloatArray
from slts.alignment import Aligner
from slts.execution import Bar, Progress, TaskRunner, check_stopped, silent
from slts.learning import (
    HingeExamples,
    MetricSolution,
    SeparatorSolution,
    metric_in_parts,
    one_vs_rest_features,
    separator_in_parts,
    solve_together,
)
from slts.learning.row_queries import Query, Reply
from slts.models.row_map import RowMap
from slts.series.source import Part, SeriesSource
from slts.training.alignments import SampleAlignments
from slts.training.memory_plan import MemoryPlan
from slts.training.source import pieces

Solution = TypeVar("Solution")
# Features of some problems, from the class sums or similarities of a block.
Features: TypeAlias = Callable[[npt.NDArray[Any], Iterable[int]], Iterator[npt.NDArray[Any]]]
# Codes, weights, and class sums or similarities.
AlignedBlock: TypeAlias = tuple[npt.NDArray[np.integer[Any]], FloatArray, npt.NDArray[Any]]


@dataclass(frozen=True)
class PartAligner:
    """What a worker needs to align the series of a part.

    Parameters
    ----------
    rows, aligner
        How series become rows, and the landmarks they are aligned with.
    classes, class_weights, total
        Labels, weight of a series by its class, and the weight of all series together.
    batch_size, block_bytes
        Series read at a time, and bytes of a block of results.
    """

    rows: RowMap
    aligner: Aligner
    classes: AnyArray
    class_weights: FloatArray
    total: float
    batch_size: int
    block_bytes: int

    def blocks(
        self, part: Part, width: int, reduce: Callable[..., npt.NDArray[Any]]
    ) -> Iterator[AlignedBlock]:
        """Align a part batch by batch; `reduce` gives `width` numbers for each series."""
        step = max(1, self.block_bytes // (8 * width))
        for piece in pieces(part, labels=True, batch_size=self.batch_size):
            series = self.rows(piece.series)
            assert piece.labels is not None
            codes = np.searchsorted(self.classes, piece.labels).astype(np.int32)
            weights = self.class_weights[codes] / self.total
            if piece.weights is not None:
                weights = weights * piece.weights
            for begin in range(0, len(series), step):
                some = slice(begin, begin + step)
                yield codes[some], weights[some], reduce(series[some])


def keep_class_sums(
    part: Part, shared: tuple[PartAligner, FloatArray], _: None
) -> Iterator[AlignedBlock]:
    """Align a part; keep the products summed over groups of landmarks."""
    how, groups = shared
    width = len(groups) * how.aligner.landmarks.n_channels**2
    return how.blocks(part, width, lambda rows: how.aligner.grouped(rows, groups))


def keep_similarities(
    part: Part, shared: tuple[PartAligner, FloatArray | None], _: None
) -> Iterator[AlignedBlock]:
    """Align a part; keep K_M for every metric, or K_I, shape (series, problems, landmarks)."""
    how, metrics = shared
    n_landmarks = len(how.aligner.landmarks)
    if metrics is None:
        return how.blocks(part, n_landmarks, lambda r: how.aligner.similarities(r)[:, np.newaxis])
    return how.blocks(
        part,
        len(metrics) * n_landmarks,
        lambda r: np.ascontiguousarray(how.aligner.projected(r, metrics).transpose(0, 2, 1)),
    )


@dataclass(frozen=True)
class PartitionedAlignments:
    """Alignments of all series of a source with landmarks, computed part by part.

    Parameters
    ----------
    source, runner
        The series, and what runs tasks on their parts.
    part_aligner
        How parts are aligned.
    sample
        Alignments of some series in memory; solvers start from them.
    plan
        How much memory may be used.
    n_series
        Number of series of positive weight, or an upper bound.
    bar
        Makes progress bars.
    """

    source: SeriesSource
    runner: TaskRunner
    part_aligner: PartAligner
    sample: SampleAlignments
    plan: MemoryPlan
    n_series: int
    bar: Bar

    def solve_metrics(
        self, gamma: float, lam: float, progress: Progress = silent
    ) -> list[MetricSolution]:
        """Learn the metric of every problem."""
        sample = self.sample
        groups = np.zeros((sample.n_classes, sample.n_landmarks))
        groups[sample.landmark_codes, np.arange(sample.n_landmarks)] = 1.0
        kept = self._keep(keep_class_sums, (self.part_aligner, groups))
        of_sample = sample.class_sums
        d = of_sample.shape[-1]
        solvers = {
            c: metric_in_parts(
                self._sample_rows(one_vs_rest_features(of_sample, c, sample.n_landmarks), c),
                self.n_series, gamma=gamma, lam=lam, most_bytes=self.plan.rows_bytes,
            )
            for c in sample.positives
        }  # fmt: skip
        features = partial(_class_sum_features, n_landmarks=sample.n_landmarks)
        found = self._solve(solvers, kept, features, d * d, progress)
        self.runner.release(kept)
        return [replace(found[c], metric=found[c].metric.reshape(d, d)) for c in sample.positives]

    def solve_separators(
        self, metrics: FloatArray | None, gamma: float, progress: Progress = silent
    ) -> tuple[list[SeparatorSolution], bool]:
        """Learn the separator of every problem; say whether some decision is positive."""
        sample = self.sample
        kept = self._keep(keep_similarities, (self.part_aligner, metrics))
        solvers = {
            c: separator_in_parts(
                self._sample_rows(sample.similarities_of(k, metrics), c),
                self.n_series, gamma=gamma, most_bytes=self.plan.rows_bytes,
            )
            for k, c in enumerate(sample.positives)
        }  # fmt: skip
        column = {c: k if metrics is not None else 0 for k, c in enumerate(sample.positives)}
        features = partial(_similarity_features, column=column)
        found = self._solve(solvers, kept, features, sample.n_landmarks, progress)
        separators: list[SeparatorSolution] = [found[c] for c in sample.positives]
        coef = np.stack([separator.coef for separator in separators])
        positive = any(self.runner.map(_some_decision_is_positive, kept, coef))
        self.runner.release(kept)
        return separators, positive

    def _keep(self, task: Any, shared: Any) -> Sequence[Any]:
        with self.bar("Aligning with landmarks") as progress:
            return self.runner.keep(
                task, self.source.parts(), shared, memory=self.plan.resident, progress=progress
            )

    def _sample_rows(self, features: npt.NDArray[Any], positive: int) -> HingeExamples:
        flat = features.reshape(len(features), -1)
        return HingeExamples.build(flat, self.sample.labels(positive), self.sample.weights)

    def _solve(
        self,
        solvers: Mapping[int, Generator[Query, list[Reply], Solution]],
        kept: Sequence[Any],
        features: Features,
        n_columns: int,
        progress: Progress,
    ) -> dict[int, Solution]:
        """Solve some problems at a time; they share each pass over the parts, and the memory."""

        def ask(queries: Mapping[int, Query]) -> dict[int, list[Reply]]:
            shared = features, n_columns, queries
            replies = list(self.runner.map(_answer, kept, shared, lambda part: part))
            return {c: [reply[c] for reply in replies] for c in queries}

        solved: dict[int, Solution] = {}
        problems = list(solvers)
        for begin in range(0, len(problems), self.plan.at_once):
            group = problems[begin : begin + self.plan.at_once]
            solved |= solve_together({c: solvers[c] for c in group}, ask)
            progress(len(solved), len(solvers))
        return solved


def _class_sum_features(
    sums: npt.NDArray[Any], problems: Iterable[int], n_landmarks: int
) -> Iterator[npt.NDArray[Any]]:
    """Yield the features Z of each metric problem, from class sums."""
    total = sums.sum(axis=1)
    for c in problems:
        yield one_vs_rest_features(sums, c, n_landmarks, total=total).reshape(len(sums), -1)


def _similarity_features(
    K: npt.NDArray[Any], problems: Iterable[int], column: Mapping[int, int]
) -> Iterator[npt.NDArray[Any]]:
    """Yield the features of each separator problem: similarities under its metric."""
    return (K[:, column[c]] for c in problems)


def _some_decision_is_positive(blocks: Iterable[AlignedBlock], coef: FloatArray, _: None) -> bool:
    return any(bool((np.einsum("icj,cj->ic", K, coef) > 0.0).any()) for _, _, K in blocks)


def _answer(
    blocks: Iterable[AlignedBlock],
    shared: tuple[Features, int, Mapping[int, Query]],
    part: int,
) -> dict[int, Reply]:
    """Answer the queries of all problems in one pass over a part."""
    features, n_columns, queries = shared
    nothing = np.empty(0)
    blank = HingeExamples(np.empty((0, n_columns)), nothing, nothing)
    found: dict[int, list[Any]] = {c: [query.answer(blank, part)] for c, query in queries.items()}
    first = 0
    for codes, weights, numbers in blocks:
        check_stopped()
        for c, rows in zip(queries, features(numbers, queries), strict=True):
            labels = np.where(codes == c, 1.0, -1.0)
            found[c].append(queries[c].answer(HingeExamples(rows, labels, weights), part, first))
        first += len(codes)
    return {c: type(replies[0]).merged(replies) for c, replies in found.items()}
