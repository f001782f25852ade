"""Learning of the local classifier.

draw landmarks and snippets -> features of some series, the anchors -> choose phases and weights of
the snippets by leave-one-out -> solve on all series
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import AlignmentSettings, array_module
from slts.execution import map_threads, release_memory
from slts.features.aligned_products import AlignedProducts
from slts.features.feature_map import Resources
from slts.features.linear_model import LinearModel
from slts.features.origins import Origins
from slts.features.row_map import RowMap
from slts.features.snippets import Snippets
from slts.quantities import format_bytes
from slts.series import SeriesBatch
from slts.series.source import Part
from slts.solvers.arrays import gram, matmul
from slts.solvers.calibration import Validation
from slts.solvers.ridge import LeaveOneOut, NormalEquations, RidgeReport, Span
from slts.training.feature_blocks import FeatureBlock
from slts.training.held_out import HeldOutDecisions
from slts.training.landmarks import (
    landmark_indices,
    landmark_positions,
    resolve_count,
    warn_about_missing_classes,
)
from slts.training.options import FitOptions
from slts.training.scans import memory_limit, pieces, scan_runner
from slts.training.training_set import TrainingSet, one_vs_rest

# Landmarks of each class; fewer if there are many classes.
_LANDMARKS_PER_CLASS, _LANDMARKS = 10, 200
# Coefficients grow with classes times banks: beyond this number, classes share banks.
_MOST_BANKS = 32
# Ridge regression is exact up to this many series; beyond, this many span the solution. They are
# drawn independently of landmarks, which are the series with the smallest keys.
_ANCHORS, _ANCHOR_PURPOSE = 2000, 2
# Their features have this share of the memory, and there are at least so many.
_FEATURE_SHARE, _FEWEST_ANCHORS = 1 / 4, 100
# Series that choose phases and weights, and whose left-out decisions calibrate.
_TUNING = 1000
# Weights of the snippets for each map with whole landmarks, one of which is chosen.
_SHARES = (16.0, 2.0, 0.25)
# Standard errors by which more phases must be better.
_STANDARD_ERRORS = 2.0
# Series whose coordinates are computed at once, and whose coordinates are in memory.
_BATCH, _IN_MEMORY = 256, 4096


@dataclass(frozen=True, kw_only=True)
class LocalOptions(FitOptions):
    """Parameters of `LocalSLTSClassifier`, checked."""

    n_landmarks_per_class: int | None
    n_snippets: int
    representations: tuple[str, ...]
    settings: AlignmentSettings
    phases: tuple[int, ...]
    n_components: int
    metric_rank: int
    max_length: int | None
    penalties: FloatArray


@dataclass(frozen=True)
class LocalFit:
    """What was learned; `held_out` are decisions for series that were left out."""

    model: LinearModel
    landmark_indices: IntArray
    bank_names: tuple[str, ...]
    origins: Origins
    report: RidgeReport
    held_out: HeldOutDecisions
    validation: Validation


def fit_local(data: TrainingSet, options: LocalOptions) -> LocalFit:
    """Learn coefficients of aligned products and snippets."""
    positions = _choose_landmarks(data, options)
    banks, bank_names = _banks(data.classes, data.codes[positions], options.seed)
    maps = _draw_maps(data, data.series[positions], banks, options)

    # Anchors span the solution; the tuning series are some of them.
    order = data.shuffled(_ANCHOR_PURPOSE)
    anchors = data.evenly(_most_anchors(maps, options), order)
    tuning = data.evenly(min(_TUNING, len(anchors)), order)
    rows = np.searchsorted(anchors, tuning)
    blocks = []
    with options.bar("Aligning and counting") as progress:
        for feature_map in maps:
            blocks.append(FeatureBlock.of(feature_map, data.series[anchors], options.resources))
            progress(len(blocks), len(maps))

    blocks, span, first = _tune(blocks, rows, _Problem.of(data, tuning, options), options)
    if options.n_snippets:
        # Sparse signals gain if features are weighed by their coefficients; others lose nothing.
        blocks[-1].weigh_by_coefficients(rows, span.basis @ first.slope)
    # The same series have chosen the weights, so they cannot choose the penalty again.
    penalty = float(options.penalties[first.best]) * sum(block.weight for block in blocks)
    model, report = _solve(data, anchors, blocks, penalty, options)

    held_out = first.predictions, data.codes[tuning], data.take(tuning).weights
    indices = landmark_indices(data, positions, options)
    model, origins = _name_origins(model, data, positions, indices)
    validation = Validation.of("leave-one-out", *held_out, series=tuning)
    return LocalFit(model, indices, bank_names, origins, report, held_out, validation)


# ---- landmarks and snippets


def _choose_landmarks(data: TrainingSet, options: LocalOptions) -> IntArray:
    """Return the positions of the landmarks in the training set."""
    n_classes = len(data.classes)
    count = len(data)
    if options.n_landmarks is not None:
        is_fraction = isinstance(options.n_landmarks, float | np.floating)
        count = min(
            resolve_count(options.n_landmarks, len(data) if is_fraction else data.n_series), count
        )
    else:
        most = max(4, min(_LANDMARKS_PER_CLASS, _LANDMARKS // n_classes))
        most = options.n_landmarks_per_class or most
        count = int(np.minimum(np.bincount(data.codes), most).sum())
    if isinstance(options.landmarks, str) and options.landmarks == "random":
        positions = data.evenly(count)
    else:
        row_map = _fit_row_map(data.series, "values", options)
        settings = AlignmentSettings("cost", options.settings.band, normalize=False)
        positions = landmark_positions(data, row_map(data.series), settings, count, options)
    warn_about_missing_classes(data.classes, data.codes[positions])
    return positions


def _banks(classes: AnyArray, codes: IntArray, seed: int) -> tuple[IntArray, tuple[str, ...]]:
    """Return the bank of each landmark, and the names of the banks: one for each class."""
    present, banks = np.unique(codes, return_inverse=True)
    names = [str(label) for label in classes[present]]
    if len(present) > _MOST_BANKS:
        # Deal the classes out evenly.
        dealt = np.random.RandomState(seed).permutation(len(present)) % _MOST_BANKS
        names = [" ".join(np.asarray(names)[dealt == b]) for b in range(_MOST_BANKS)]
        banks = dealt[banks]
    return np.asarray(banks, dtype=np.int64), tuple(names)


def _fit_row_map(series: SeriesBatch, representation: str, options: LocalOptions) -> RowMap:
    return RowMap.fit_representation(
        series, representation, max_length=options.max_length, n_components=options.n_components
    )


def _draw_maps(
    data: TrainingSet, landmarks: SeriesBatch, banks: IntArray, options: LocalOptions
) -> list[AlignedProducts | Snippets]:
    """Fit the maps of whole landmarks, with most phases, and draw the snippets, which come last."""

    def make(representation: str | None) -> AlignedProducts | Snippets:
        if representation is None:
            return Snippets.draw(data.series, data.codes, options.n_snippets, options.seed)
        row_map = _fit_row_map(data.series, representation, options)
        return AlignedProducts.in_banks(
            representation, landmarks, row_map, options.settings, banks,
            rank=options.metric_rank, n_phases=max(options.phases),
        )  # fmt: skip

    kinds = [*options.representations, *([None] if options.n_snippets else [])]
    return map_threads(make, kinds, n_jobs=options.n_jobs)


def _most_anchors(maps: list[AlignedProducts | Snippets], options: LocalOptions) -> int:
    """Return how many anchors fit in memory with their features."""
    limit = memory_limit(options.memory_limit, options.owner)
    per_anchor = 8.0 * sum(int(np.prod(feature_map.shape)) for feature_map in maps)
    most = int(_FEATURE_SHARE * limit / per_anchor)
    if most < _FEWEST_ANCHORS:
        raise ValueError(
            f"The 'memory_limit' parameter of {options.owner} is too small: {format_bytes(limit)}. "
            f"Learning needs {format_bytes(_FEWEST_ANCHORS * per_anchor / _FEATURE_SHARE)}. Raise "
            f"it, or use fewer representations, phases or snippets."
        )
    return min(most, _ANCHORS)


# ---- ridge regression


@dataclass(frozen=True)
class _Problem:
    """Targets of some series, shape (series, problems), and weights of mean 1."""

    targets: FloatArray
    weights: FloatArray
    codes: IntArray

    @classmethod
    def of(cls, data: TrainingSet, rows: IntArray, options: LocalOptions) -> _Problem:
        some = data.take(rows)
        weights = some.weights * data.class_weights(options.class_weight)[some.codes]
        targets = one_vs_rest(some.codes, len(data.classes))
        return cls(targets, weights / weights.mean(), some.codes)


def _tune(
    blocks: list[FeatureBlock], rows: IntArray, problem: _Problem, options: LocalOptions
) -> tuple[list[FeatureBlock], Span, LeaveOneOut]:
    """Choose the phases and the weight of the snippets by the leave-one-out error of some series.

    Returns the features, and the best fit to these series. The smallest of several noisy errors is
    often small by chance, so more phases must be better by two standard errors of the difference.
    """
    n_aligned = len(options.representations)
    aligned = {n: [b.with_phases(n) for b in blocks[:n_aligned]] for n in options.phases}
    snippets = blocks[n_aligned] if options.n_snippets else None
    products = {n: _products(aligned[n], rows) for n in options.phases}
    counts = np.zeros(()) if snippets is None else _products([snippets], rows)
    shares = [0.0] if snippets is None else [n_aligned * share for share in _SHARES]
    candidates = [(n, share) for n in options.phases for share in shares]

    def fit(candidate: tuple[int, float]) -> tuple[Span, LeaveOneOut]:
        n, share = candidate
        span = Span.of(products[n] + share * counts, problem.weights)
        penalties = options.penalties * (n_aligned + share)
        return span, span.leave_one_out(problem.targets, problem.weights, penalties)

    fits = dict(zip(candidates, map_threads(fit, candidates, n_jobs=options.n_jobs), strict=True))
    # Each number of phases with its own weight: phases may need a smaller weight of the snippets.
    best = [
        min((c for c in candidates if c[0] == n), key=lambda c: fits[c][1].error)
        for n in options.phases
    ]
    chosen = best[0]
    losses = {c: ((fits[c][1].predictions - problem.targets) ** 2).mean(axis=1) for c in best}
    share_of_error = problem.weights / problem.weights.sum()
    for richer in best[1:]:
        gains = losses[chosen] - losses[richer]
        gain = float(share_of_error @ gains)
        standard_error = float(np.sqrt(share_of_error**2 @ (gains - gain) ** 2))
        if gain > _STANDARD_ERRORS * standard_error:
            chosen = richer
    kept = list(aligned[chosen[0]])
    if snippets is not None:
        kept.append(snippets.weighted(chosen[1]))
    return kept, *fits[chosen]


def _solve(
    data: TrainingSet,
    anchors: IntArray,
    blocks: list[FeatureBlock],
    penalty: float,
    options: LocalOptions,
) -> tuple[LinearModel, RidgeReport]:
    """Solve on all series, for functions in the span of the anchors' features."""
    problem = _Problem.of(data, anchors, options)
    exact = len(anchors) == len(data) and data.scan is None
    work = 2.0 * len(anchors) ** 2 * sum(len(block.centre) for block in blocks)
    products = _products(blocks, np.arange(len(anchors)), array_module(options.device, work))
    span = Span.of(products, problem.weights if exact else np.ones(len(anchors)))
    # Inner products with the features of the anchors, from which all coordinates are made.
    coefs, constants = zip(*(block.kernel_coefficients() for block in blocks), strict=True)
    kernel = LinearModel(
        tuple(block.feature_map for block in blocks), coefs, -np.sum(constants, axis=0)
    )
    if exact:
        ridge = span.solve(problem.targets, problem.weights, penalty)
    else:
        coordinates = _Coordinates(kernel, span.basis, span.origin)
        by_class = data.class_weights(options.class_weight)
        # Of a scan, the number of distinct series is not known.
        n_distinct = len(data) if data.scan is None else data.n_series
        by_class = by_class * n_distinct / float(data.totals @ by_class)
        equations = NormalEquations(len(span.origin), problem.targets.shape[1])
        if data.scan is None:
            weights = by_class[problem.codes] * data.weights[anchors]
            equations.add(span.coordinates, problem.targets, weights)
            _add_series(equations, data, anchors, coordinates, by_class, options)
        else:
            _add_scan(equations, data, coordinates, by_class, options)
        ridge = equations.solve(penalty)
    intercept = ridge.intercept - span.origin @ ridge.slope
    return kernel.combined(span.basis @ ridge.slope, intercept), ridge.report


def _products(blocks: Sequence[FeatureBlock], rows: IntArray, arrays: Any = np) -> FloatArray:
    """Return weighted inner products of some series, as an array of NumPy or CuPy."""
    products: FloatArray = arrays.zeros((len(rows), len(rows)))
    for block in blocks:
        features = block.features if len(rows) == len(block.features) else block.features[rows]
        products += block.weight * gram(arrays.asarray(features))
    return products


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """Maps series to coordinates in the span of the anchors."""

    kernel: LinearModel
    basis: FloatArray
    origin: FloatArray

    def __call__(self, series: SeriesBatch, resources: Resources) -> FloatArray:
        return np.asarray(matmul(self.kernel.decide(series, resources), self.basis) - self.origin)


def _add_series(
    equations: NormalEquations,
    data: TrainingSet,
    anchors: IntArray,
    coordinates: _Coordinates,
    class_weights: FloatArray,
    options: LocalOptions,
) -> None:
    """Add all series in memory but the anchors."""
    on_cpu = options.device == "cpu"
    size, n_jobs = (_BATCH, options.n_jobs) if on_cpu else (_IN_MEMORY, 1)
    resources = Resources(options.device, 1 if on_cpu else options.n_jobs)
    others = np.setdiff1d(np.arange(len(data)), anchors)
    with options.bar("Aligning all series") as progress:
        for begin in range(0, len(others), _IN_MEMORY):
            rows = others[begin : begin + _IN_MEMORY]
            batches = [data.series[rows[k : k + size]] for k in range(0, len(rows), size)]
            values = map_threads(lambda b: coordinates(b, resources), batches, n_jobs=n_jobs)
            weights = class_weights[data.codes[rows]] * data.weights[rows]
            targets = one_vs_rest(data.codes[rows], len(data.classes))
            equations.add(np.concatenate(values), targets, weights)
            progress(begin + len(rows), len(others))


def _add_scan(
    equations: NormalEquations,
    data: TrainingSet,
    coordinates: _Coordinates,
    class_weights: FloatArray,
    options: LocalOptions,
) -> None:
    """Add all series of a scan; the order of the parts decides the order of the sums."""
    assert data.scan is not None
    # What the features of the anchors have freed.
    release_memory()
    parts, runner = data.scan.parts(), scan_runner(options.n_jobs)
    shared = coordinates, data.classes, class_weights
    with options.bar("Aligning all series") as progress:
        for sums in runner.map(_sum_part, parts, shared, progress=progress):
            equations += sums


def _sum_part(
    part: Part, shared: tuple[_Coordinates, AnyArray, FloatArray], _: None
) -> NormalEquations:
    """Align a part of a scan with the landmarks, and sum its share of the normal equations."""
    coordinates, classes, class_weights = shared
    n_classes = len(classes)
    equations = NormalEquations(len(coordinates.origin), 1 if n_classes == 2 else n_classes)
    for piece in pieces(part, labels=True, batch_size=_BATCH):
        assert piece.labels is not None
        codes = np.searchsorted(classes, piece.labels)
        weights = class_weights[codes]
        if piece.weights is not None:
            weights = weights * piece.weights
        values = coordinates(piece.series, Resources("cpu", 1))
        equations.add(values, one_vs_rest(codes, n_classes), weights)
    return equations


# ---- names


def _name_origins(
    model: LinearModel, data: TrainingSet, positions: IntArray, indices: IntArray
) -> tuple[LinearModel, Origins]:
    """Number the series of the snippets as in the data; return the series that the model keeps."""
    snippets = model.snippets
    kept = np.empty(0, dtype=np.int64) if snippets is None else np.unique(snippets.series)
    origins = Origins.of(
        SeriesBatch.concatenate([data.series[positions], data.series[kept]]),
        np.concatenate([indices, data.indices[kept]]),
        np.concatenate([data.codes[positions], data.codes[kept]]),
    )
    if snippets is None:
        return model, origins
    numbered = replace(snippets, series=data.indices[snippets.series])
    return replace(model, maps=(*model.aligned, numbered)), origins
