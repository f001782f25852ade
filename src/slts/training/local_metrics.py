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
from slts.models.snippets import MOST_KINDS, N_THRESHOLDS, SnippetForm, Snippets
from slts.series import SeriesBatch
from slts.training.options import LocalOptions
from slts.training.partitioned_ridge import Coordinates, PartitionedRidge, summing_bytes
from slts.training.snippet_features import SnippetFeatures, snippet_bytes

# Weights of the snippets for each comparison with whole landmarks, one of which is chosen.
_SNIPPET_SHARES = 16.0, 2.0, 0.25
# Snippets are chosen from this many times as many, by a fit to at most so many series.
CANDIDATES, JUDGES = 4, 1000
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
    is_sample: bool,
) -> float:
    """Estimate the memory that learning uses, beside the series.

    Inner products of all series with the anchors exist eleven times; the features of some groups
    twice, from a GPU `n_channels` x `n_channels` before they are reduced to `rank` directions; the
    features of the anchors are kept for the metrics. If the series are a sample, the sums over all
    series come afterwards.
    """
    products = 11 * 8.0 * n_series * n_anchors
    per_group = 8.0 * n_series * n_phases * n_channels**2
    chunk = min(n_groups * per_group, max(CHUNK_BYTES, per_group))
    n_aligned = n_groups * n_phases * n_channels * min(rank, n_channels)
    anchors = 8.0 * n_anchors * n_aligned
    aligned = 2 * chunk + min(n_comparisons * anchors, _KEPT_BYTES + anchors)
    judges = min(n_series, JUDGES)
    needed = (
        products
        + aligned
        + snippet_bytes(n_series, n_anchors, n_snippets)
        + snippet_bytes(judges, judges, CANDIDATES * n_snippets)
    )
    if is_sample:
        n_counted = n_snippets * N_THRESHOLDS * MOST_KINDS
        n_features = n_comparisons * n_aligned + n_counted
        needed = max(needed, summing_bytes(n_series, n_anchors, n_features))
    return needed


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
    everything
        All series, if the batch is a sample of them; None otherwise.
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
    everything: PartitionedRidge | None


@dataclass(frozen=True, eq=False)
class LocalSolution:
    """What was learned.

    Comparisons and their metrics (problems, groups, phases, d, r); the snippets and their
    coefficients (problems, snippets, thresholds, kinds), if there are any; intercept, regression,
    candidates. `left_out` has a decision for each series of the batch by a fit to other series,
    with snippets that were chosen without it, shape (series, problems).
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
        chosen, share, judged = _choose_snippets(training, training.snippets, options, grams)
        counted = SnippetFeatures(chosen, training.batch, training.anchors, options.n_jobs)
        weighted = [(gram, share) for gram in grams.values()]
        _count_snippets("Counting snippets", counted, weighted, options)
    ridges = {
        n: gram.solve(training.targets, training.weights, options.penalties)
        for n, gram in grams.items()
    }
    n_phases, selection = choose_phases(
        ridges, training.targets, training.codes, training.weights, options.penalties
    )
    gram, ridge, everything = grams[n_phases], ridges[n_phases], training.everything
    grams.clear()
    comparisons, snippets = tuple(aligned.comparisons), None
    if counted is not None:
        snippets = replace(counted.snippets, shares=counted.shares())
    if everything is None:
        found = _combine(training, aligned, counted, gram, n_phases, ridge.weights, options)
    else:
        penalties, span = gram.absolute(options.penalties), gram.span()
        found = _combine(training, aligned, counted, gram, n_phases, span.basis, options)
        coordinates = Coordinates(
            comparisons,
            tuple(aligned.aligners),
            group_weights(training.groups),
            found.metrics,
            found.snippet_form(snippets),
            found.constant - span.centre,
        )
        # Only sums over all series are needed now: free what the sample needed.
        del aligned, gram
        equations = everything.sum(coordinates)
        ridge = equations.solve(
            span, training.targets, everything.sample_weight, penalties, training.weights
        )
        found = found.combined(ridge.slope)
        selection = _with_penalty(training, selection, ridge, options)
    left_out = ridge.left_out
    if judged is not None:
        left_out = left_out.copy()
        left_out[training.judges] = judged
    intercept = ridge.intercept + found.constant
    return LocalSolution(
        comparisons, found.metrics, snippets, found.coef, intercept, ridge, left_out, selection
    )


class _Functions(NamedTuple):
    """Functions that are linear in the features of a series.

    Metrics of each comparison (functions, groups, phases, d, r), coefficients of the snippets
    (functions, snippets, thresholds, kinds), and constants.
    """

    metrics: tuple[FloatArray, ...]
    coef: FloatArray | None
    constant: FloatArray

    def combined(self, weights: FloatArray) -> _Functions:
        """Return linear combinations; weights have the shape (functions, combinations)."""

        def mixed(own: FloatArray) -> FloatArray:
            return np.asarray(np.tensordot(weights, own, axes=(0, 0)), dtype=np.float64)

        coef = None if self.coef is None else mixed(self.coef)
        return _Functions(tuple(map(mixed, self.metrics)), coef, self.constant @ weights)

    def snippet_form(self, snippets: Snippets | None) -> SnippetForm | None:
        """Return the part of the snippets."""
        if snippets is None or self.coef is None:
            return None
        return SnippetForm(np.arange(len(self.coef)), snippets, self.coef)


def _combine(
    training: LocalTraining,
    aligned: _Aligned,
    counted: SnippetFeatures | None,
    gram: FeatureGram,
    n_phases: int,
    weights: FloatArray,
    options: LocalOptions,
) -> _Functions:
    """Combine the anchors' features; weights have the shape (anchors, functions)."""
    features = aligned.anchors or _align_anchors(training, aligned, n_phases, options)
    scales = gram.comparison_weights
    metrics = tuple(
        _metrics(scale * weights, n_phases, parts)
        for scale, parts in zip(scales, features, strict=False)
    )
    if counted is None:
        return _Functions(metrics, None, np.zeros(weights.shape[1]))
    return _Functions(metrics, *counted.coefficients(scales[-1] * weights))


def _with_penalty(
    training: LocalTraining, selection: tuple[Choice, ...], ridge: RidgeFit, options: LocalOptions
) -> tuple[Choice, ...]:
    """Give the chosen candidate the penalty and the errors of the fit to all series."""
    (chosen,) = (choice for choice in selection if choice.chosen)
    fits = {chosen.n_phases: ridge}
    _, (final,) = choose_phases(
        fits, training.targets, training.codes, training.weights, options.penalties
    )
    final = replace(final, reason=chosen.reason)
    return tuple(final if choice.chosen else choice for choice in selection)


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
) -> tuple[Snippets, float, FloatArray]:
    """Keep the snippets with the largest coefficients in a fit with all candidates.

    Returns
    -------
    Snippets
        Those that are kept.
    float
        Their weight for each comparison with whole landmarks, by the leave-one-out error.
    ndarray of shape (judges, problems)
        Leave-one-out decisions of that fit. Decisions with the chosen snippets would be too good:
        the series that is left out has helped to choose them.
    """
    judges = training.judges
    first, positions = grams[options.phases[0]], np.searchsorted(training.anchors, judges)
    weighted = [(first.restricted(positions), share) for share in _SNIPPET_SHARES]
    counted = SnippetFeatures(
        candidates, training.batch[judges], np.arange(len(judges)), options.n_jobs
    )
    _count_snippets("Choosing snippets", counted, weighted, options)
    targets, weights = training.targets[judges], training.weights[judges]
    ridges = [gram.solve(targets, weights, options.penalties) for gram, _ in weighted]
    best = int(np.argmin([ridge.errors[ridge.best] for ridge in ridges]))
    order = np.argsort(-counted.effects(ridges[best].weights), kind="stable")
    kept = candidates.subset(np.sort(order[: options.n_snippets]))
    return kept, _SNIPPET_SHARES[best], ridges[best].left_out


def _count_snippets(
    title: str,
    counted: SnippetFeatures,
    weighted: Sequence[tuple[FeatureGram, float]],
    options: LocalOptions,
) -> None:
    """Add the features of snippets to Gram matrices, with a weight for each comparison."""
    with options.bar(title) as progress:
        for products in counted.products():
            # They do not depend on the number of phases.
            for gram, _ in weighted:
                gram.add_products(products)
            progress(counted.n_done, len(counted.snippets))
    for gram, share in weighted:
        gram.end_comparison(share * options.n_comparisons)


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
