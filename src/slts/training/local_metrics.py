"""Learn the metrics of the local classifier: align once, solve every candidate, form metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings, array_module
from slts.execution import ThreadRunner, fit_threads, thread_count, use_fit_threads
from slts.learning.banded import STORED_DIAGONALS
from slts.learning.blas import matmul, on_device_of, on_host
from slts.learning.local import Choice, FeatureGram, choose_phases, fewer_phases
from slts.learning.loo_ridge import MOST_TARGETS, LeftOut, RidgeFit
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
from slts.training.landmark_choice import FitOptions
from slts.training.partitioned_ridge import Coordinates, PartitionedRidge, summing_bytes
from slts.training.snippet_features import SnippetFeatures, snippet_bytes

# Weights of the snippets for each comparison with whole landmarks, one of which is chosen.
_SNIPPET_SHARES = 16.0, 2.0, 0.25
# Snippets are chosen from this many times as many.
CANDIDATES = 4
# Arrays that a fit to the tuning series holds: inner products, solutions, targets.
_MATRICES, _SOLUTIONS, _TARGETS = 6, 2, 10
# Most memory for fits that run side by side, and its share of the limit. How many threads there are
# must not matter: the sample depends on it.
_FITS_BYTES, _FITS_SHARE = 512 * 2**20, 1 / 8
# Bytes of anchor features that are kept for the metrics; beyond that they are computed again.
_KEPT_BYTES = 512 * 2**20


@dataclass(frozen=True, kw_only=True)
class LocalOptions(FitOptions):
    """Parameters of `LocalSLTSClassifier`, checked."""

    n_landmarks_per_class: int | None
    n_snippets: int
    representations: tuple[str, ...]
    settings: tuple[AlignmentSettings, ...]
    metrics: str
    phases: tuple[int, ...]
    n_components: int
    metric_rank: int
    max_length: int | None
    penalties: FloatArray

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons: representations times objectives."""
        return len(self.representations) * len(self.settings)


def snippet_shares(options: LocalOptions) -> list[float]:
    """Return the weights of the snippets to choose from."""
    if not options.n_snippets:
        return [0.0]
    return [share * options.n_comparisons for share in _SNIPPET_SHARES]


def fit_bytes(n_tuning: int, n_targets: int, n_penalties: int) -> float:
    """Estimate the memory of a fit to the tuning series."""
    solutions = n_penalties * (_SOLUTIONS * min(n_targets, MOST_TARGETS) + STORED_DIAGONALS)
    return 8.0 * n_tuning * (_MATRICES * n_tuning + solutions + _TARGETS * n_targets)


def bytes_for_fits(limit: float) -> float:
    """Return the memory for all fits to the tuning series that run side by side."""
    return min(_FITS_BYTES, _FITS_SHARE * limit)


def training_bytes(
    n_series: int,
    n_anchors: int,
    n_tuning: int,
    *,
    n_channels: int,
    rank: int,
    n_groups: int,
    n_phases: int,
    n_comparisons: int,
    n_snippets: int,
    bytes_of_fits: float,
    is_sample: bool,
) -> float:
    """Estimate the memory that learning uses, beside the series.

    Inner products of all series with the anchors exist six times, after the fits to the tuning
    series; the features of some groups twice, in `rank` directions of the landmarks; the features
    of the anchors are kept for the metrics. If the series are a sample, the sums over all series
    come afterwards.
    """
    products = max(6 * 8.0 * n_series * n_anchors, bytes_of_fits)
    n_of_group = n_phases * n_channels * min(rank, n_channels)
    per_group = 8.0 * n_series * n_of_group
    chunk = min(n_groups * per_group, max(CHUNK_BYTES, per_group))
    n_aligned = n_groups * n_of_group
    anchors = 8.0 * n_anchors * n_aligned
    aligned = 2 * chunk + min(n_comparisons * anchors, _KEPT_BYTES + anchors)
    needed = (
        products
        + aligned
        + snippet_bytes(n_series, n_anchors, n_snippets)
        + snippet_bytes(n_tuning, n_tuning, CANDIDATES * n_snippets)
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
    tuning
        The anchors on which phases and snippets are chosen.
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
    tuning: IntArray
    landmarks: SeriesBatch
    groups: IntArray
    snippets: Snippets | None
    everything: PartitionedRidge | None

    def restricted_to_tuning(self) -> LocalTraining:
        """Return the tuning series alone; all of them are anchors."""
        tuning, every = self.tuning, np.arange(len(self.tuning))
        return replace(
            self,
            batch=self.batch[tuning],
            codes=self.codes[tuning],
            weights=self.weights[tuning],
            targets=self.targets[tuning],
            anchors=every,
            tuning=every,
            everything=None,
        )


@dataclass(frozen=True, eq=False)
class LocalSolution:
    """What was learned.

    Comparisons and their metrics (problems, groups, phases, d, r); the snippets and their
    coefficients (problems, snippets, thresholds, kinds), if there are any; intercept, regression,
    candidates. If there are snippets, tuning series are left out of the fit that chooses them.
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
    options: LocalOptions,
    bytes_of_fits: float = np.inf,
) -> LocalSolution:
    """Choose phases and snippets on the tuning series, then fit all series.

    Every representation is compared with every objective. The largest number of phases is a
    multiple of the others. Fits to the tuning series use at most `bytes_of_fits` bytes, or run one
    by one.
    """
    comparisons = _compare(training.landmarks, representations, options)
    tuning = training.restricted_to_tuning()
    tuning_grams = {n: _empty_gram(tuning, options) for n in options.phases}
    kept = _align("Aligning some series", tuning, comparisons, options, tuning_grams)
    chosen = _choose(tuning, options, tuning_grams, bytes_of_fits)
    gram = tuning_grams[chosen.n_phases]
    if len(tuning.batch) < len(training.batch):
        gram = _empty_gram(training, options)
        grams = {chosen.n_phases: gram}
        kept = _align("Aligning with landmarks", training, comparisons, options, grams)
    counted = snippets = known = None
    if chosen.snippets is not None:
        known = LeftOut(training.tuning, chosen.fit.errors, chosen.fit.left_out)
        counted = SnippetFeatures(chosen.snippets, training.batch, training.anchors, options.n_jobs)
        _count("Counting snippets", counted, gram, chosen.share, options)
        snippets = replace(counted.snippets, shares=counted.shares())
    n_phases, everything = chosen.n_phases, training.everything
    tuning_grams.clear()
    features = kept or _align_anchors(training, comparisons, n_phases, options)
    if everything is None:
        ridge = gram.solve(training.targets, training.weights, options.penalties, known)
        found = _combine(features, counted, gram, n_phases, ridge.weights)
    else:
        penalties, span = gram.absolute(options.penalties), gram.span()
        basis = span.anchor_weights(np.eye(len(span.centre)))
        found = _combine(features, counted, gram, n_phases, basis)
        coordinates = Coordinates(
            tuple(comparisons),
            tuple(comparisons.values()),
            group_weights(training.groups),
            found.metrics,
            found.snippet_form(snippets),
            found.constant - span.centre,
        )
        # Only sums over all series are needed now: free what the sample needed.
        del kept, features, gram
        equations = everything.sum(coordinates)
        ridge = equations.solve(
            span, training.targets, everything.sample_weight, penalties, training.weights, known
        )
        found = found.combined(ridge.slope)
    penalty = float(options.penalties[ridge.best])
    return LocalSolution(
        tuple(comparisons),
        found.metrics,
        snippets,
        found.coef,
        ridge.intercept + found.constant,
        ridge,
        tuple(replace(c, penalty=penalty) if c.chosen else c for c in chosen.selection),
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
    features: Iterable[Iterable[GroupFeatures]],
    counted: SnippetFeatures | None,
    gram: FeatureGram,
    n_phases: int,
    weights: FloatArray,
) -> _Functions:
    """Combine the anchors' features; weights have the shape (anchors, functions)."""
    scales = gram.comparison_weights
    metrics = tuple(
        _metrics(scale * weights, n_phases, parts)
        for scale, parts in zip(scales, features, strict=False)
    )
    if counted is None:
        return _Functions(metrics, None, np.zeros(weights.shape[1]))
    return _Functions(metrics, *counted.coefficients(scales[-1] * weights))


def _compare(
    landmarks: SeriesBatch, representations: Sequence[Representation], options: LocalOptions
) -> dict[Comparison, Aligner]:
    """Return every comparison with its aligner."""
    comparisons = {}
    for representation in representations:
        rows = representation(landmarks)
        for how in options.settings:
            comparison = Comparison.fit(representation, how, rows, options.metric_rank)
            comparisons[comparison] = replace(
                comparison.aligner(rows), device=options.device, n_jobs=options.n_jobs
            )
    return comparisons


def _empty_gram(training: LocalTraining, options: LocalOptions) -> FeatureGram:
    """Return a Gram matrix without features, on the device that solves it."""
    n_series, n_anchors = len(training.batch), len(training.anchors)
    arrays = array_module(options.device, 2.0 * n_series * n_anchors**2)
    return FeatureGram(training.anchors, n_series, arrays)


def _align(
    title: str,
    training: LocalTraining,
    comparisons: Mapping[Comparison, Aligner],
    options: LocalOptions,
    grams: Mapping[int, FeatureGram],
) -> list[list[GroupFeatures]] | None:
    """Align in every comparison, and add the features to the Gram matrices of numbers of phases.

    Returns the features of the anchors, which become metrics in the end, or None if they are too
    large to keep.
    """
    means, most = group_weights(training.groups), max(grams)
    kept: list[list[GroupFeatures]] | None = []
    with options.bar(title) as progress:
        with_own_rows = with_rows(comparisons, training.batch, options.n_jobs)
        for k, (comparison, rows) in enumerate(with_own_rows):
            parts = []
            for part, found in comparison.features(rows, comparisons[comparison], means, most):
                # Numbers of phases ascend, so the last features have all phases.
                for n, gram in grams.items():
                    own = gram.add(fewer_phases(found, n))
                if kept is not None:
                    parts.append((part, own))
            for gram in grams.values():
                gram.end_comparison()
            if kept is not None:
                kept.append(parts)
                if sum(found.nbytes for own in kept for _, found in own) > _KEPT_BYTES:
                    kept = None
            progress(k + 1, len(comparisons))
    return kept


class _Chosen(NamedTuple):
    """What the tuning series decide.

    The number of phases; the snippets, and their weight beside all comparisons with whole
    landmarks; the fit to the tuning series that has chosen them; the candidates.
    """

    n_phases: int
    snippets: Snippets | None
    share: float
    fit: RidgeFit
    selection: tuple[Choice, ...]


def _choose(
    tuning: LocalTraining,
    options: LocalOptions,
    grams: Mapping[int, FeatureGram],
    bytes_of_fits: float,
) -> _Chosen:
    """Choose by fits to the tuning series that have all candidates for snippets.

    The weight of the snippets and the number of phases have the smallest leave-one-out error; the
    snippets with the largest coefficients are kept.
    """
    counted = occurring = None
    shares = snippet_shares(options)
    if tuning.snippets is not None:
        counted = SnippetFeatures(tuning.snippets, tuning.batch, tuning.anchors, options.n_jobs)
        occurring = _empty_gram(tuning, options)
        _count("Choosing snippets", counted, occurring, 1.0, options)

    candidates = [(n, share) for n in options.phases for share in shares]
    # Side by side: a factorisation of this size is hardly faster in many threads.
    at_once = 1
    if not any(gram.on_gpu for gram in grams.values()):
        n_tuning, n_targets = tuning.targets.shape
        bytes_per_fit = fit_bytes(n_tuning, n_targets, len(options.penalties))
        room = max(1.0, bytes_of_fits / bytes_per_fit)
        at_once = int(min(thread_count(options.n_jobs), len(candidates), room))
    runner, threads_per_fit = ThreadRunner(at_once), max(1, fit_threads() // at_once)

    def fit(n_phases: int, share: float) -> RidgeFit:
        gram = grams[n_phases]
        if occurring is not None:
            gram = gram.plus(occurring, share)
        with use_fit_threads(threads_per_fit):
            return gram.solve(tuning.targets, tuning.weights, options.penalties)

    fitted = runner.map(lambda candidate, *_: fit(*candidate), candidates)
    tried = dict(zip(candidates, fitted, strict=True))
    # Each number of phases with its own weight: phases may need a smaller weight of the snippets.
    weight = {n: min(shares, key=lambda share: tried[n, share].error) for n in options.phases}
    fits = {n: tried[n, share] for n, share in weight.items()}
    n_phases, selection = choose_phases(
        fits, tuning.targets, tuning.codes, tuning.weights, options.penalties
    )
    snippets = None
    if counted is not None:
        order = np.argsort(-counted.effects(fits[n_phases].weights), kind="stable")
        snippets = counted.snippets.subset(np.sort(order[: options.n_snippets]))
    return _Chosen(n_phases, snippets, weight[n_phases], fits[n_phases], selection)


def _count(
    title: str, counted: SnippetFeatures, gram: FeatureGram, share: float, options: LocalOptions
) -> None:
    """Add the features of snippets to a Gram matrix, with `share` as mean squared norm."""
    with options.bar(title) as progress:
        for features in counted.features():
            gram.add(features)
            progress(counted.n_done, len(counted.snippets))
    gram.end_comparison(share)


def _align_anchors(
    training: LocalTraining,
    comparisons: Mapping[Comparison, Aligner],
    n_phases: int,
    options: LocalOptions,
) -> Iterator[Iterator[GroupFeatures]]:
    """Compute the anchors' features again."""
    anchors = training.batch[training.anchors]
    means = group_weights(training.groups)
    with options.bar("Aligning the anchors again") as progress:
        for k, (comparison, rows) in enumerate(with_rows(comparisons, anchors, options.n_jobs)):
            yield comparison.features(rows, comparisons[comparison], means, n_phases)
            progress(k + 1, len(comparisons))


def _metrics(weights: FloatArray, n_phases: int, parts: Iterable[GroupFeatures]) -> FloatArray:
    """Combine the anchors' features with the weights of the solution."""
    metrics = []
    for _, found in parts:
        features = fewer_phases(found, n_phases)
        flat = features.reshape(len(features), -1)
        own = on_host(matmul(on_device_of(flat, weights.T), flat))
        metrics.append(own.reshape(len(own), *features.shape[1:]))
    return np.concatenate(metrics, axis=1)
