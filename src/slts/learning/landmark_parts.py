"""One-vs-rest learning on alignments that lie in parts: on disk, or on other machines.

Held blocks are ``(codes, weights, class sums)`` for the metrics and ``(codes, weights,
similarities)`` for the separators, where the weights of all series together are one; only answers
to the solvers' queries come back.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.execution import Mapper, Progress, check_stopped
from slts.learning.hinge import HingeRows
from slts.learning.landmark import LandmarkData, project
from slts.learning.metric import MetricSolution, one_vs_rest_features
from slts.learning.part_queries import Own, PartQuery, PartsQuery, Reply
from slts.learning.partitioned import metric_in_parts, separator_in_parts, solve_together
from slts.learning.separator import SeparatorSolution

Solution = TypeVar("Solution")
# Codes, weights, and class sums or similarities.
Block: TypeAlias = tuple[npt.NDArray[np.integer[Any]], FloatArray, npt.NDArray[Any]]


@dataclass(frozen=True)
class Held:
    """Alignments of all series with landmarks, in parts.

    Attributes
    ----------
    mapper
        Who asks the parts.
    parts
        What `Mapper.hold` gave.
    n_series
        Of all parts together.
    at_once
        Problems to solve at the same time, at most.
    most_bytes
        About how large the rows in memory may be, for each of them.
    """

    mapper: Mapper
    parts: Sequence[Any]
    n_series: int
    at_once: int = 32
    most_bytes: float = np.inf


def metrics_in_parts(
    sums: Held,
    sample: LandmarkData,
    *,
    gamma: float,
    lam: float,
    progress: Progress | None = None,
) -> list[MetricSolution]:
    """Learn the metric of every problem from class sums (series, classes, d, d) in parts.

    Parameters
    ----------
    sums
        Blocks ``(codes, weights, class sums)``.
    sample
        Some of the series in memory, to begin with.
    gamma, lam
        Parameters.
    progress
        Told after each round.

    Returns
    -------
    list of MetricSolution
        One for each of ``sample.positives``.
    """
    of_sample = sample.class_sums()
    solvers = {
        c: metric_in_parts(
            _rows(one_vs_rest_features(of_sample, c, sample.n_landmarks), sample, c),
            sums.n_series, gamma=gamma, lam=lam, most_bytes=sums.most_bytes,
        )
        for c in sample.positives
    }  # fmt: skip
    d = of_sample.shape[-1]
    features = _OneVsRest(sample.n_landmarks, d * d)
    found = _solve(solvers, sums, features, progress)
    return [_square(found[c], d) for c in sample.positives]


def separators_in_parts(
    similarities: Held,
    sample: LandmarkData,
    metrics: FloatArray | None,
    *,
    gamma: float,
    progress: Progress | None = None,
) -> list[SeparatorSolution]:
    """Learn the separator of every problem from similarities (series, problems, landmarks).

    `metrics` are those of the problems; None, and one column for all problems, for M = I.
    """
    solvers = {}
    for k, c in enumerate(sample.positives):
        if metrics is None:
            assert sample.similarities is not None
            K: npt.NDArray[Any] = sample.similarities
        else:
            K = project(sample, metrics[k][np.newaxis])[0]
        rows = _rows(K, sample, c)
        solvers[c] = separator_in_parts(
            rows, similarities.n_series, gamma=gamma, most_bytes=similarities.most_bytes
        )
    column = {c: k if metrics is not None else 0 for k, c in enumerate(sample.positives)}
    features = _Column(column, sample.n_landmarks)
    found = _solve(solvers, similarities, features, progress)
    return [found[c] for c in sample.positives]


def says_yes(similarities: Held, coef: FloatArray) -> bool:
    """Whether some problem decides for its class on some training series."""
    return any(similarities.mapper.map(_says_yes, similarities.parts, coef))


def _says_yes(blocks: Iterable[Block], coef: FloatArray, _: None) -> bool:
    return any(bool((np.einsum("icj,cj->ic", K, coef) > 0.0).any()) for _, _, K in blocks)


def _rows(features: npt.NDArray[Any], sample: LandmarkData, positive: int) -> HingeRows:
    flat = features.reshape(len(features), -1)
    return HingeRows.build(flat, sample.labels(positive), sample.weights)


def _square(solution: MetricSolution, d: int) -> MetricSolution:
    return replace(solution, metric=solution.metric.reshape(d, d))


@dataclass(frozen=True)
class _OneVsRest:
    """Features Z of a problem from class sums."""

    n_landmarks: int
    n_columns: int

    def of(self, sums: npt.NDArray[Any], problems: Iterable[int]) -> Iterable[npt.NDArray[Any]]:
        total = sums.sum(axis=1)
        for c in problems:
            Z = one_vs_rest_features(sums, c, self.n_landmarks, total=total)
            yield Z.reshape(len(sums), -1)


@dataclass(frozen=True)
class _Column:
    """Similarities under the metric of a problem."""

    column: Mapping[int, int]
    n_columns: int

    def of(self, K: npt.NDArray[Any], problems: Iterable[int]) -> Iterable[npt.NDArray[Any]]:
        for c in problems:
            yield K[:, self.column[c]]


def _solve(
    solvers: Mapping[int, Generator[PartsQuery, list[Reply], Solution]],
    held: Held,
    features: _OneVsRest | _Column,
    progress: Progress | None,
) -> dict[int, Solution]:
    def ask(queries: Mapping[int, PartsQuery]) -> dict[int, list[Reply]]:
        def own(part: int) -> dict[int, Own | None]:
            return {c: query.own(part) for c, query in queries.items()}

        common = (features, {c: query.common() for c, query in queries.items()})
        replies = list(held.mapper.map(_answer, held.parts, common, own))
        return {c: [reply[c] for reply in replies] for c in queries}

    # Problems that are solved together share each pass, and the memory.
    solved: dict[int, Solution] = {}
    keys = list(solvers)
    for begin in range(0, len(keys), held.at_once):
        group = {c: solvers[c] for c in keys[begin : begin + held.at_once]}
        solved |= solve_together(group, ask)
        if progress is not None:
            progress(len(solved), len(solvers))
    return solved


def _answer(
    blocks: Iterable[Block],
    common: tuple[_OneVsRest | _Column, Mapping[int, PartQuery]],
    own: Mapping[int, Own | None],
) -> dict[int, Reply]:
    """Answer the queries of all problems in one pass over a part."""
    features, shared = common
    queries = {c: query.with_own(own[c]) for c, query in shared.items()}
    nothing = np.empty(0)
    blank = HingeRows(np.empty((0, features.n_columns)), nothing, nothing)
    found: dict[int, list[Any]] = {c: [query.answer(blank, 0)] for c, query in queries.items()}
    first = 0
    for codes, weights, numbers in blocks:
        check_stopped()
        for c, rows in zip(queries, features.of(numbers, queries), strict=True):
            labels = np.where(codes == c, 1.0, -1.0)
            found[c].append(queries[c].answer(HingeRows(rows, labels, weights), first))
        first += len(codes)
    return {c: type(replies[0]).merged(replies) for c, replies in found.items()}
