"""The ridge problem of the local classifier, summed over all series part by part."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner
from slts.execution import Progress, TaskRunner, ThreadRunner
from slts.learning.loo_ridge import NormalEquations
from slts.models.comparisons import CHUNK_BYTES, Comparison, with_rows
from slts.models.snippets import SnippetForm
from slts.series import SeriesBatch
from slts.series.source import Part, SeriesSource
from slts.training.source import BATCH, pieces

# Bytes of the series that are read at a time, and of copies while they are read and mapped.
_READ_BYTES, _COPIES = 16 * 2**20, 6


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Maps series to coordinates in the span of the anchors (`AnchorSpan`).

    A coordinate is a linear function of the features, as a decision value is.

    Parameters
    ----------
    comparisons, aligners, means
        Comparisons with whole landmarks, and weights of the landmarks in each group.
    directions
        For each comparison, shape (coordinates, groups, phases, d, r).
    counted
        The snippets, with coefficients for each coordinate; None without snippets.
    shift
        What is added, shape (coordinates,).
    """

    comparisons: tuple[Comparison, ...]
    aligners: tuple[Aligner, ...]
    means: FloatArray
    directions: tuple[FloatArray, ...]
    counted: SnippetForm | None
    shift: FloatArray

    def __call__(self, batch: SeriesBatch) -> FloatArray:
        """Return coordinates of shape (series, coordinates)."""
        values = np.tile(self.shift, (len(batch), 1))
        for k, (comparison, rows) in enumerate(with_rows(self.comparisons, batch)):
            directions, aligner = self.directions[k], self.aligners[k]
            for part, found in comparison.features(rows, aligner, self.means, directions.shape[2]):
                own = directions[:, part].reshape(len(directions), -1)
                values += found.reshape(len(found), own.shape[1]) @ own.T
        if self.counted is not None:
            values += self.counted.decide(batch, self.aligners[0].n_jobs)
        return values

    @property
    def task_bytes(self) -> float:
        """Estimate the memory of a task that sums a part, while an earlier result waits."""
        n = len(self.shift)
        numbers = max(own[0].size for own in self.directions)
        features = min(CHUNK_BYTES, 8 * BATCH * numbers)
        kinds = 1 if self.counted is None else 1 + self.counted.snippets.n_kinds
        block = 8 * BATCH * n * (1 + kinds)
        return float(2 * 8 * n**2 + 2 * features + block + _COPIES * _READ_BYTES)

    def with_jobs(self, n_jobs: int | None) -> Coordinates:
        """Return the same map for other numbers of threads."""
        return replace(self, aligners=tuple(replace(a, n_jobs=n_jobs) for a in self.aligners))


@dataclass(frozen=True, eq=False)
class PartitionedRidge:
    """All series of a source, of which only sums are needed.

    Parameters
    ----------
    source, runner
        The series, and what runs tasks on their parts.
    classes, class_weights
        Labels, and the weight of a series by its class.
    sample_weight
        Weights of the sampled series in the sums: equal series have the sum of their weights.
    batch_size
        Series that are read at a time.
    memory
        Bytes for tasks that run at the same time.
    bar
        Makes progress bars.
    """

    source: SeriesSource
    runner: TaskRunner
    classes: AnyArray
    class_weights: FloatArray
    sample_weight: FloatArray
    batch_size: int
    memory: float
    bar: Callable[[str], AbstractContextManager[Progress]]

    def sum(self, coordinates: Coordinates) -> NormalEquations:
        """Add up the normal equations of all parts; the order of the parts decides the order."""
        parts, runner = self.source.parts(), self.runner
        if runner.is_remote:
            coordinates = coordinates.with_jobs(1)
        else:
            # Every task has its own sums: with little memory, threads share the series of a task.
            at_once = max(1, int(self.memory / coordinates.task_bytes))
            at_once = min(runner.n_workers, len(parts), at_once)
            coordinates = coordinates.with_jobs(max(1, runner.n_workers // at_once))
            runner = ThreadRunner(at_once)
        n_problems = 1 if len(self.classes) == 2 else len(self.classes)
        equations = NormalEquations(len(coordinates.shift), n_problems)
        shared = coordinates, self.classes, self.class_weights, self.batch_size
        with self.bar("Aligning all series") as progress:
            for found in runner.map(sum_equations, parts, shared, progress=progress):
                equations += found
        return equations


def batch_size(series: SeriesBatch) -> int:
    """Return how many series like these are read at a time."""
    per_series = series.values.nbytes / max(1, len(series))
    return int(min(BATCH, max(1, _READ_BYTES / max(1.0, per_series))))


def one_vs_rest(codes: IntArray, n_classes: int) -> FloatArray:
    """Return +1 or -1 for each problem, shape (series, problems); two classes are one problem."""
    targets = np.where(codes[:, np.newaxis] == np.arange(n_classes), 1.0, -1.0)
    return targets[:, 1:] if n_classes == 2 else targets


def sum_equations(
    part: Part, shared: tuple[Coordinates, AnyArray, FloatArray, int], _: None
) -> NormalEquations:
    """Align a part with the landmarks, and sum its share of the normal equations."""
    coordinates, classes, class_weights, batch_size = shared
    n_problems = 1 if len(classes) == 2 else len(classes)
    equations = NormalEquations(len(coordinates.shift), n_problems)
    for piece in pieces(part, labels=True, batch_size=batch_size):
        assert piece.labels is not None
        codes = np.searchsorted(classes, piece.labels)
        weights = class_weights[codes]
        if piece.weights is not None:
            weights = weights * piece.weights
        equations.add(coordinates(piece.series), one_vs_rest(codes, len(classes)), weights)
    return equations
