"""Learn the metrics of the local classifier: align once, solve every candidate, form metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.execution import progress_bar
from slts.learning.local import Choice, FeatureGram, choose_phases, fewer_phases
from slts.learning.loo_ridge import RidgeFit
from slts.models.comparisons import CHUNK_BYTES, Comparison, GroupFeatures, with_rows
from slts.models.representations import Representation
from slts.models.snippets import Snippets
from slts.series import SeriesBatch
from slts.training.snippet_features import SnippetFeatures, snippet_bytes

# Weight of the snippets for each comparison with whole landmarks.
_SNIPPET_SHARE = 2.0
# Bytes of anchor features that are kept for the metrics; beyond that they are computed again.
_KEPT_BYTES = 512 * 2**20


def training_bytes(
    n_series: int,
    n_anchors: int,
    *,
    n_channels: int,
    rank: int,
    n_groups: int,
    n_phases: int,
    n_comparisons: int,
    n_snippets: int,
) -> float:
    """Estimate the memory that learning uses, beside the series.

    Inner products of all series with the anchors exist eleven times; the features of some groups
    twice, `n_channels` x `n_channels` before they are reduced to `rank` directions; the features
    of the anchors are kept for the metrics.
    """
    products = 11 * 8.0 * n_series * n_anchors
    per_group = 8.0 * n_series * n_phases * n_channels**2
    chunk = min(n_groups * per_group, max(CHUNK_BYTES, per_group))
    anchors = 8.0 * n_anchors * n_groups * n_phases * n_channels * min(rank, n_channels)
    aligned = 2 * chunk + min(n_comparisons * anchors, _KEPT_BYTES + anchors)
    return products + aligned + snippet_bytes(n_series, n_anchors, n_snippets)


@dataclass(frozen=True, eq=False)
class LocalTraining:
    """Checked training data.

    Parameters
    ----------
    batch, codes, weights, targets
        Series, their classes, weights of mean 1, and +1 or -1 for each problem.
    anchors
        Indices of the series that span the solution.
    landmarks, groups
        Landmarks, and the group of each.
    snippets
        Short landmarks, or None.
    """

    batch: SeriesBatch
    codes: IntArray
    weights: FloatArray
    targets: FloatArray
    anchors: IntArray
    landmarks: SeriesBatch
    groups: IntArray
    snippets: Snippets | None


@dataclass(frozen=True, eq=False)
class LocalSolution:
    """What was learned.

    Comparisons and their metrics (problems, groups, phases, d, r); the snippets and their
    coefficients (problems, snippets, thresholds, kinds), if there are any; intercept, regression,
    candidates.
    """

    comparisons: tuple[Comparison, ...]
    metrics: tuple[FloatArray, ...]
    snippets: Snippets | None
    snippet_coef: FloatArray | None
    intercept: FloatArray
    ridge: RidgeFit
    selection: tuple[Choice, ...]


def learn_local_metrics(
    training: LocalTraining,
    representations: Sequence[Representation],
    settings: Sequence[AlignmentSettings],
    phases: Sequence[int],
    penalties: FloatArray,
    *,
    metric_rank: int,
    device: str,
    n_jobs: int | None,
    verbose: bool,
) -> LocalSolution:
    """Align with the landmarks once for all candidates, and learn.

    Parameters
    ----------
    training
        Series and landmarks.
    representations, settings
        Every representation is compared with every objective.
    phases
        Numbers of phases to choose from, ascending; the last is a multiple of the others.
    penalties
        Relative penalties to choose from, ascending.
    metric_rank
        Rank of the metrics.
    device, n_jobs, verbose
        As for the classifier.
    """
    grams = {n: FeatureGram(training.anchors, len(training.batch)) for n in phases}
    comparisons: list[Comparison] = []
    aligners: list[Aligner] = []
    # Features of the anchors become metrics in the end. They are kept if they fit.
    kept: list[list[GroupFeatures]] | None = []
    with progress_bar("Aligning with landmarks", show=verbose) as progress:
        for representation in representations:
            rows, landmarks = representation(training.batch), representation(training.landmarks)
            for how in settings:
                comparison = Comparison.fit(representation, how, landmarks, metric_rank)
                aligner = Aligner(landmarks, how, device, n_jobs)
                parts = []
                for part, found in comparison.features(rows, aligner, training.groups, phases[-1]):
                    for n, gram in grams.items():
                        gram.add(fewer_phases(found, n))
                    if kept is not None:
                        parts.append((part, found[training.anchors]))
                for gram in grams.values():
                    gram.end_comparison()
                comparisons.append(comparison)
                aligners.append(aligner)
                if kept is not None:
                    kept.append(parts)
                    if sum(found.nbytes for own in kept for _, found in own) > _KEPT_BYTES:
                        kept = None
                progress(len(comparisons), len(representations) * len(settings))
    snippets = training.snippets
    counted = None
    if snippets is not None:
        counted = SnippetFeatures(snippets, training.batch, training.anchors, n_jobs)
        with progress_bar("Counting snippets", show=verbose) as progress:
            for products in counted.products():
                # They do not depend on the number of phases.
                for gram in grams.values():
                    gram.add_products(products)
                progress(counted.n_done, len(snippets))
        for gram in grams.values():
            gram.end_comparison(_SNIPPET_SHARE * len(comparisons))
    ridges = {
        n: gram.solve(training.targets, training.weights, penalties) for n, gram in grams.items()
    }
    n_phases, selection = choose_phases(
        ridges, training.targets, training.codes, training.weights, penalties
    )
    ridge = ridges[n_phases]
    weights = grams[n_phases].comparison_weights
    anchor_features = kept or _anchor_features(training, comparisons, aligners, n_phases, verbose)
    metrics = tuple(
        _metrics(weight * ridge.weights, n_phases, parts)
        for weight, parts in zip(weights, anchor_features, strict=False)
    )
    intercept, coef = ridge.intercept, None
    if counted is not None:
        coef, shift = counted.coefficients(weights[-1] * ridge.weights)
        intercept = intercept + shift
        snippets = replace(counted.snippets, shares=counted.shares())
    return LocalSolution(tuple(comparisons), metrics, snippets, coef, intercept, ridge, selection)


def _anchor_features(
    training: LocalTraining,
    comparisons: Sequence[Comparison],
    aligners: Sequence[Aligner],
    n_phases: int,
    verbose: bool,
) -> Iterator[Iterator[GroupFeatures]]:
    anchors = training.batch[training.anchors]
    with progress_bar("Aligning the anchors again", show=verbose) as progress:
        for k, (comparison, rows) in enumerate(with_rows(comparisons, anchors)):
            yield comparison.features(rows, aligners[k], training.groups, n_phases)
            progress(k + 1, len(comparisons))


def _metrics(weights: FloatArray, n_phases: int, parts: Iterable[GroupFeatures]) -> FloatArray:
    """Combine the anchors' features with the weights of the solution."""
    metrics = []
    for _, found in parts:
        features = fewer_phases(found, n_phases)
        own = weights.T @ features.reshape(len(features), -1)
        metrics.append(own.reshape(len(own), *features.shape[1:]))
    return np.concatenate(metrics, axis=1)
