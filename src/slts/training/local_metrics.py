"""Learn the metrics of the local classifier: align once, solve every candidate, form metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner
from slts.learning.local import Choice, FeatureGram, choose_phases, fewer_phases
from slts.learning.loo_ridge import RidgeFit
from slts.models.comparisons import (
    CHUNK_BYTES,
    Comparison,
    GroupFeatures,
    group_weights,
    with_rows,
)
from slts.models.representations import Representation
from slts.models.snippets import Snippets
from slts.series import SeriesBatch
from slts.training.options import LocalOptions
from slts.training.snippet_features import SnippetFeatures, snippet_bytes

# Weight of the snippets for each comparison with whole landmarks.
_SNIPPET_SHARE = 2.0
# Snippets are chosen from this many times as many, by a fit to at most so many series.
CANDIDATES, JUDGES = 3, 1000
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
    twice, from a GPU `n_channels` x `n_channels` before they are reduced to `rank` directions; the
    features of the anchors are kept for the metrics.
    """
    products = 11 * 8.0 * n_series * n_anchors
    per_group = 8.0 * n_series * n_phases * n_channels**2
    chunk = min(n_groups * per_group, max(CHUNK_BYTES, per_group))
    anchors = 8.0 * n_anchors * n_groups * n_phases * n_channels * min(rank, n_channels)
    aligned = 2 * chunk + min(n_comparisons * anchors, _KEPT_BYTES + anchors)
    judges = min(n_series, JUDGES)
    return (
        products
        + aligned
        + snippet_bytes(n_series, n_anchors, n_snippets)
        + snippet_bytes(judges, judges, CANDIDATES * n_snippets)
    )


@dataclass(frozen=True, eq=False)
class LocalTraining:
    """Checked training data.

    Parameters
    ----------
    batch, codes, weights, targets
        Series, their classes, weights of mean 1, and +1 or -1 for each problem.
    anchors
        Indices of the series that span the solution, ascending.
    judges
        Those of the anchors by which snippets are chosen.
    landmarks, groups
        Landmarks, and the group of each.
    snippets
        Short landmarks to choose from, or None.
    """

    batch: SeriesBatch
    codes: IntArray
    weights: FloatArray
    targets: FloatArray
    anchors: IntArray
    judges: IntArray
    landmarks: SeriesBatch
    groups: IntArray
    snippets: Snippets | None


@dataclass(frozen=True, eq=False)
class LocalSolution:
    """What was learned.

    Comparisons and their metrics (problems, groups, phases, d, r); the snippets and their
    coefficients (problems, snippets, thresholds, kinds), if there are any; intercept, regression,
    candidates. `left_out` has a decision for each series by a fit to other series, with snippets
    that were chosen without it, shape (series, problems).
    """

    comparisons: tuple[Comparison, ...]
    metrics: tuple[FloatArray, ...]
    snippets: Snippets | None
    snippet_coef: FloatArray | None
    intercept: FloatArray
    ridge: RidgeFit
    left_out: FloatArray
    selection: tuple[Choice, ...]


def learn_local_metrics(
    training: LocalTraining, representations: Sequence[Representation], options: LocalOptions
) -> LocalSolution:
    """Align with the landmarks once for all candidates, and learn.

    Every representation is compared with every objective. Numbers of phases are chosen by the
    leave-one-out error; the largest is a multiple of the others.
    """
    grams = {n: FeatureGram(training.anchors, len(training.batch)) for n in options.phases}
    aligned = _align(training, representations, options, grams)
    counted = judged = None
    if training.snippets is not None:
        chosen, judged = _choose_snippets(training, training.snippets, options, grams)
        counted = SnippetFeatures(chosen, training.batch, training.anchors, options.n_jobs)
        _count_snippets("Counting snippets", counted, list(grams.values()), options)
    ridges = {
        n: gram.solve(training.targets, training.weights, options.penalties)
        for n, gram in grams.items()
    }
    n_phases, selection = choose_phases(
        ridges, training.targets, training.codes, training.weights, options.penalties
    )
    ridge, weights = ridges[n_phases], grams[n_phases].comparison_weights
    features = aligned.anchors or _align_anchors(training, aligned, n_phases, options)
    metrics = tuple(
        _metrics(weight * ridge.weights, n_phases, parts)
        for weight, parts in zip(weights, features, strict=False)
    )
    intercept, coef, snippets, left_out = ridge.intercept, None, None, ridge.left_out
    if counted is not None and judged is not None:
        left_out = left_out.copy()
        left_out[training.judges] = judged
        coef, shift = counted.coefficients(weights[-1] * ridge.weights)
        intercept = intercept + shift
        snippets = replace(counted.snippets, shares=counted.shares())
    comparisons = tuple(aligned.comparisons)
    return LocalSolution(
        comparisons, metrics, snippets, coef, intercept, ridge, left_out, selection
    )


class _Aligned(NamedTuple):
    """Comparisons, their aligners, and the anchors' features, None if they are too large."""

    comparisons: list[Comparison]
    aligners: list[Aligner]
    anchors: list[list[GroupFeatures]] | None


def _align(
    training: LocalTraining,
    representations: Sequence[Representation],
    options: LocalOptions,
    grams: dict[int, FeatureGram],
) -> _Aligned:
    """Align in every comparison, and add the features to the Gram matrices."""
    comparisons: list[Comparison] = []
    aligners: list[Aligner] = []
    means = group_weights(training.groups)
    # Features of the anchors become metrics in the end. They are kept if they fit.
    kept: list[list[GroupFeatures]] | None = []
    with options.bar("Aligning with landmarks") as progress:
        for representation in representations:
            rows = representation(training.batch, options.n_jobs)
            landmarks = representation(training.landmarks)
            for how in options.settings:
                comparison = Comparison.fit(representation, how, landmarks, options.metric_rank)
                aligner = replace(
                    comparison.aligner(landmarks), device=options.device, n_jobs=options.n_jobs
                )
                most, parts = options.phases[-1], []
                for part, found in comparison.features(rows, aligner, means, most):
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
                progress(len(comparisons), options.n_comparisons)
    return _Aligned(comparisons, aligners, kept)


def _choose_snippets(
    training: LocalTraining,
    candidates: Snippets,
    options: LocalOptions,
    grams: dict[int, FeatureGram],
) -> tuple[Snippets, FloatArray]:
    """Keep the snippets with the largest coefficients in a fit with all candidates.

    Returns
    -------
    Snippets
        Those that are kept.
    ndarray of shape (judges, problems)
        Leave-one-out decisions of that fit. Decisions with the chosen snippets would be too good:
        the series that is left out has helped to choose them.
    """
    judges = training.judges
    gram = grams[options.phases[0]].restricted(np.searchsorted(training.anchors, judges))
    counted = SnippetFeatures(
        candidates, training.batch[judges], np.arange(len(judges)), options.n_jobs
    )
    _count_snippets("Choosing snippets", counted, [gram], options)
    ridge = gram.solve(training.targets[judges], training.weights[judges], options.penalties)
    order = np.argsort(-counted.effects(ridge.weights), kind="stable")
    return candidates.subset(np.sort(order[: options.n_snippets])), ridge.left_out


def _count_snippets(
    title: str, counted: SnippetFeatures, grams: Sequence[FeatureGram], options: LocalOptions
) -> None:
    """Add the features of snippets to Gram matrices."""
    with options.bar(title) as progress:
        for products in counted.products():
            # They do not depend on the number of phases.
            for gram in grams:
                gram.add_products(products)
            progress(counted.n_done, len(counted.snippets))
    for gram in grams:
        gram.end_comparison(_SNIPPET_SHARE * options.n_comparisons)


def _align_anchors(
    training: LocalTraining, aligned: _Aligned, n_phases: int, options: LocalOptions
) -> Iterator[Iterator[GroupFeatures]]:
    """Compute the anchors' features again."""
    anchors = training.batch[training.anchors]
    means = group_weights(training.groups)
    with options.bar("Aligning the anchors again") as progress:
        for k, (comparison, rows) in enumerate(with_rows(aligned.comparisons, anchors)):
            yield comparison.features(rows, aligned.aligners[k], means, n_phases)
            progress(k + 1, len(aligned.comparisons))


def _metrics(weights: FloatArray, n_phases: int, parts: Iterable[GroupFeatures]) -> FloatArray:
    """Combine the anchors' features with the weights of the solution."""
    metrics = []
    for _, found in parts:
        features = fewer_phases(found, n_phases)
        own = weights.T @ features.reshape(len(features), -1)
        metrics.append(own.reshape(len(own), *features.shape[1:]))
    return np.concatenate(metrics, axis=1)
