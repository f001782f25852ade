"""The ridge problem of the local classifier, summed over all series part by part."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner
from slts.execution import Bar, TaskRunner, ThreadRunner, release_memory
from slts.learning.local import linear_values
from slts.learning.loo_ridge import NormalEquations
from slts.models.comparisons import Comparison, with_rows
from slts.models.snippets import SnippetForm
from slts.series import SeriesBatch
from slts.series.source import Part, SeriesSource
from slts.training.source import BATCH, READER_BYTES, pieces

# Copies of a batch of series while it is read and mapped; features and coordinates exist twice.
_COPIES_IN_MEMORY, _BLOCKS = 6, 2
# Matrices of sums for each task: while it adds, and of a finished one that waits for earlier parts.
_SUMS = 5
# Share of the memory for one batch, with all that is computed from it.
_BATCH_SHARE = 1 / 10


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
                values += linear_values(found, directions[:, part])
        if self.counted is not None:
            values += self.counted.decide(batch, self.aligners[0].n_jobs)
        return values

    @property
    def n_features(self) -> int:
        """Number of features of a series."""
        counted = 0 if self.counted is None else self.counted.coef[0].size
        return int(sum(own[0].size for own in self.directions) + counted)

    @property
    def n_bytes(self) -> int:
        """Memory of the coefficients."""
        return 8 * len(self.shift) * self.n_features

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
    series_bytes
        Mean bytes of a series.
    memory
        Bytes that may be used while the sums are computed.
    bar
        Makes progress bars.
    """

    source: SeriesSource
    runner: TaskRunner
    classes: AnyArray
    class_weights: FloatArray
    sample_weight: FloatArray
    series_bytes: float
    memory: float
    bar: Bar

    def sum(self, coordinates: Coordinates) -> NormalEquations:
        """Add up the normal equations of all parts; the order of the parts decides the order."""
        # What the fit to the sample has freed.
        release_memory()
        parts, runner = self.source.parts(), self.runner
        n, n_features = len(coordinates.shift), coordinates.n_features
        per_series = _COPIES_IN_MEMORY * self.series_bytes + _BLOCKS * 8 * (2 * n + n_features)
        batch_size = int(min(BATCH, max(1.0, _BATCH_SHARE * self.memory / per_series)))
        if runner.is_remote:
            coordinates = coordinates.with_jobs(1)
        else:
            # Every task has its own sums: with little memory, threads share the series of a task.
            room = self.memory - 8 * n * n - coordinates.n_bytes
            per_task = READER_BYTES + batch_size * per_series + _SUMS * 8 * n * n
            at_once = max(1, int(room / per_task))
            at_once = min(runner.n_workers, len(parts), at_once)
            if coordinates.aligners[0].device != "cpu":
                # Each task would hold its features and its copy of the directions on the GPU.
                at_once = 1
            coordinates = coordinates.with_jobs(max(1, runner.n_workers // at_once))
            runner = ThreadRunner(at_once)
        n_problems = 1 if len(self.classes) == 2 else len(self.classes)
        equations = NormalEquations(n, n_problems)
        shared = coordinates, self.classes, self.class_weights, n_problems, batch_size
        with self.bar("Aligning all series") as progress:
            for found in runner.map(sum_equations, parts, shared, progress=progress):
                equations += found
        return equations


def summing_bytes(n_sample: int, n_anchors: int, n_features: int) -> float:
    """Estimate the memory that the sums over all series need, beside the sample.

    Coordinates of the sample, and what is computed from them; features of the anchors, and their
    combinations; matrices of the size of the normal equations; one batch.
    """
    held = 8.0 * n_anchors * (4 * n_sample + 2 * n_features + 6 * n_anchors)
    return held / (1.0 - _BATCH_SHARE)


def one_vs_rest(codes: IntArray, n_classes: int) -> FloatArray:
    """Return +1 or -1 for each problem, shape (series, problems); two classes are one problem."""
    targets = np.where(codes[:, np.newaxis] == np.arange(n_classes), 1.0, -1.0)
    return targets[:, 1:] if n_classes == 2 else targets


def sum_equations(
    part: Part, shared: tuple[Coordinates, AnyArray, FloatArray, int, int], _: None
) -> NormalEquations:
    """Align a part with the landmarks, and sum its share of the normal equations."""
    coordinates, classes, class_weights, n_problems, batch_size = shared
    equations = NormalEquations(len(coordinates.shift), n_problems)
    for piece in pieces(part, labels=True, batch_size=batch_size):
        assert piece.labels is not None
        codes = np.searchsorted(classes, piece.labels)
        weights = class_weights[codes]
        if piece.weights is not None:
            weights = weights * piece.weights
        equations.add(coordinates(piece.series), one_vs_rest(codes, len(classes)), weights)
    return equations
