"""Learning for the local classifier: align once, solve for every candidate, make metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.models.representations import Representation
from slts.execution import progress_bar
from slts.learning.local import Choice, FeatureGram, choose_phases, fewer_phases
from slts.learning.loo_ridge import RidgeFit
from slts.models.comparisons import CHUNK_BYTES, Comparison, LastRows, Part
from slts.series import SeriesBatch

# Features of the anchors kept for the end; beyond, they are found again.
_KEPT_BYTES = 256 * 2**20


def training_bytes(
    n_series: int,
    n_anchors: int,
    *,
    n_channels: int,
    rank: int,
    n_groups: int,
    n_phases: int,
    n_comparisons: int,
) -> float:
    """About how much memory learning takes, the series themselves not counted.

    Inner products of all series with the anchors come eleven times; features of some groups of
    landmarks twice, `n_channels` x `n_channels` before they are looked at in `rank` directions; and
    those of the anchors are kept for the end.
    """
    products = 11 * 8.0 * n_series * n_anchors
    of_group = 4.0 * n_series * n_phases * n_channels**2
    chunk = min(n_groups * of_group, max(CHUNK_BYTES, of_group))
    of_comparison = 4.0 * n_anchors * n_groups * n_phases * n_channels * min(rank, n_channels)
    return products + 2 * chunk + min(n_comparisons * of_comparison, _KEPT_BYTES + of_comparison)


@dataclass(frozen=True, eq=False)
class Training:
    """Checked training data.

    Parameters
    ----------
    batch, codes, weights, targets
        Series, their classes, weights of mean 1, and +1 or -1 for each problem.
    anchors
        Indices of the series that span the solution.
    landmarks, groups
        Landmarks, and the group of each.
    """

    batch: SeriesBatch
    codes: IntArray
    weights: FloatArray
    targets: FloatArray
    anchors: IntArray
    landmarks: SeriesBatch
    groups: IntArray


@dataclass(frozen=True, eq=False)
class LocalSolution:
    """Views, their metrics (problems, groups, phases, d, r), the regression, and what was tried."""

    comparisons: tuple[Comparison, ...]
    metrics: tuple[FloatArray, ...]
    fit: RidgeFit
    selection: tuple[Choice, ...]


def learn_local_metrics(
    training: Training,
    ways: Sequence[tuple[Representation, AlignmentSettings]],
    phases: Sequence[int],
    penalties: FloatArray,
    *,
    metric_rank: int,
    device: str,
    n_jobs: int | None,
    show: bool,
) -> LocalSolution:
    """Align with the landmarks once for all candidates, and learn.

    Parameters
    ----------
    training
        Series and landmarks.
    ways
        Representation and rule of alignment of each comparison, representation by representation.
    phases
        Numbers of phases to choose from, ascending; the last is a multiple of the others.
    penalties
        Relative penalties to choose from, ascending.
    metric_rank, show
        Rank of the metrics, and whether to show progress.
    device, n_jobs
        What aligns: see `slts.similarity`.
    """
    find = partial(_features, training=training, phases=phases, device=device, n_jobs=n_jobs)
    grams = {n: FeatureGram(training.anchors, len(training.batch)) for n in phases}
    comparisons: list[Comparison] = []
    # The features of the anchors become metrics in the end, if they can be kept till then.
    kept: list[list[Part]] | None = []
    rows = LastRows()
    with progress_bar("Aligning with landmarks", show=show) as progress:
        for representation, settings in ways:
            series, landmarks = rows.of(representation, training.batch, training.landmarks)
            comparison = Comparison.fit(representation, settings, landmarks, metric_rank)
            parts = []
            for part, found in find(comparison, series, landmarks):
                for n, gram in grams.items():
                    gram.add(fewer_phases(found, n))
                if kept is not None:
                    parts.append((part, found[training.anchors]))
            for gram in grams.values():
                gram.end_comparison()
            comparisons.append(comparison)
            if kept is not None:
                kept.append(parts)
                if sum(found.nbytes for own in kept for _, found in own) > _KEPT_BYTES:
                    kept = None
            if progress is not None:
                progress(len(comparisons), len(ways))
    fits = {
        n: gram.solve(training.targets, training.weights, penalties) for n, gram in grams.items()
    }
    n_phases, selection = choose_phases(
        fits, training.targets, training.codes, training.weights, penalties
    )
    fit = fits[n_phases]
    again = _anchor_features(training, comparisons, find, show)
    metrics = tuple(
        _metrics(weight * fit.weights, n_phases, parts)
        for weight, parts in zip(grams[n_phases].comparison_weights, kept or again, strict=True)
    )
    return LocalSolution(tuple(comparisons), metrics, fit, selection)


def _features(
    comparison: Comparison,
    series: SeriesBatch,
    landmarks: SeriesBatch,
    training: Training,
    phases: Sequence[int],
    device: str,
    n_jobs: int | None,
) -> Iterator[Part]:
    # Half the digits are plenty to learn from, and twice as fast.
    return comparison.features(
        series, landmarks, training.groups, phases[-1],
        dtype="float32", device=device, n_jobs=n_jobs,
    )  # fmt: skip


def _anchor_features(
    training: Training,
    comparisons: Sequence[Comparison],
    find: Callable[[Comparison, SeriesBatch, SeriesBatch], Iterator[Part]],
    show: bool,
) -> Iterator[Iterator[Part]]:
    rows, anchors = LastRows(), training.batch[training.anchors]
    with progress_bar("Aligning once more", show=show) as progress:
        for k, comparison in enumerate(comparisons):
            series, landmarks = rows.of(comparison.representation, anchors, training.landmarks)
            yield find(comparison, series, landmarks)
            if progress is not None:
                progress(k + 1, len(comparisons))


def _metrics(weights: FloatArray, n_phases: int, parts: Iterable[Part]) -> FloatArray:
    """The combination of the anchors' features that solves the problem."""
    metrics = []
    for _, found in parts:
        features = fewer_phases(found, n_phases)
        own = weights.T @ features.reshape(len(features), -1).astype(np.float64)
        metrics.append(own.reshape(len(own), *features.shape[1:]))
    return np.concatenate(metrics, axis=1)
