"""Learning of the local classifier.

draw landmarks and snippets -> features of some series, the anchors -> choose phases and weights of
the snippets by leaving out series or groups -> solve on all series
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import array_module
from slts.errors import DataError
from slts.execution import ThreadRunner, map_threads, memory_limit, release_memory
from slts.features.aligned_products import AlignedProducts
from slts.features.feature_map import Resources
from slts.features.models import LinearModel, Origins
from slts.features.row_map import RowMap
from slts.features.snippets import Snippets
from slts.quantities import format_bytes
from slts.series import SeriesBatch
from slts.series.dataset import Part, SeriesScan
from slts.series.values import observed_steps
from slts.solvers.calibration import HeldOutDecisions, Validation
from slts.solvers.ridge import LeaveOneOut, NormalEquations, RidgeReport, Span, gram, matmul
from slts.training.held_out import parts_to_leave_out
from slts.training.landmarks import landmark_count, warn_about_missing_classes
from slts.training.scans import pieces, scan_runner
from slts.training.training_set import Fit, LocalOptions, TrainingSet, one_vs_rest

# Landmarks of each class; fewer if there are many classes.
_LANDMARKS_PER_CLASS, _LANDMARKS = 10, 200
# Coefficients grow with classes times banks: beyond this number, classes share banks.
_MOST_BANKS = 32
# Ridge regression is exact up to this many series; beyond, this many span the solution. They are
# drawn independently of landmarks, which are the series with the smallest keys.
_ANCHORS, _ANCHOR_PURPOSE = 1500, 2
# Their features and inner products, with copies, have this share of the memory, and there are at
# least so many anchors.
_ANCHOR_SHARE, _COPIES, _FEWEST_ANCHORS = 1 / 2, 10, 100
# Series that choose phases and weights, and whose left-out decisions calibrate.
_TUNING = 1000
# Snippets of series with one channel, for each further channel, and at most.
_SNIPPETS, _PER_CHANNEL, _MOST_SNIPPETS = 1500, 50, 2000
# Weight of the snippets beside whole landmarks: the usual one, and that beside landmarks with more
# phases, which must be better by so many standard errors.
_SHARES = (8.0, 0.25)
_STANDARD_ERRORS = 2.0
# Features that vary less than this share of their size have no information.
_LEAST_SPREAD = 1e-9
# Coefficients that are combined at once.
_COLUMNS = 512
# Series whose coordinates a thread, or a GPU, computes at once.
_BATCH, _GPU_BATCH = 256, 4096


@dataclass(frozen=True, kw_only=True)
class LocalFit(Fit):
    """What was learned; `held_out` are decisions for series that were left out."""

    bank_names: tuple[str, ...]
    report: RidgeReport


def fit_local(data: TrainingSet, options: LocalOptions) -> LocalFit:
    """Learn coefficients of aligned products and snippets."""
    landmarks = _draw_landmarks(data, options)
    banks, bank_names = _banks(data.classes, data.codes[landmarks], options.seed)
    maps = _draw_maps(data, data.series[landmarks], banks, options)

    # Anchors span the solution; the tuning series are some of them.
    order = data.shuffled(_ANCHOR_PURPOSE)
    anchors = data.evenly(_most_anchors(maps, options), order)
    tuning = data.evenly(min(_TUNING, len(anchors)), order)
    rows = np.searchsorted(anchors, tuning)
    blocks, series = [], data.named_series[anchors]
    # Among more series than anchors, few are landmarks.
    exact = len(anchors) == len(data) and data.scan is None
    with options.bar("Aligning and counting") as progress:
        for k, feature_map in enumerate(maps):
            blocks.append(FeatureBlock.of(feature_map, series, options.resources, alone=exact))
            progress(k + 1, len(maps))

    tuned = _tune(data, tuning, blocks, rows, options)
    if isinstance(maps[-1], Snippets):
        # Sparse signals gain if features are weighed by their coefficients; others lose nothing.
        tuned.blocks[-1].weigh_by_coefficients(rows, tuned.weights)
    # The same series have chosen the weights, so they cannot choose the penalty or decide again.
    model, report = _solve(data, anchors, tuned.blocks, tuned.penalty, options, exact=exact)
    model, origins = _name_origins(model, data, landmarks)
    return LocalFit(
        model=model, landmark_indices=data.indices[landmarks], origins=origins,
        held_out=tuned.held_out, validation=tuned.validation, bank_names=bank_names, report=report,
    )  # fmt: skip


# ---- landmarks and snippets


def _draw_landmarks(data: TrainingSet, options: LocalOptions) -> IntArray:
    """Return the positions of the landmarks, drawn equally from all classes."""
    n = options.n_landmarks
    if n is None:
        most = max(4, min(_LANDMARKS_PER_CLASS, _LANDMARKS // len(data.classes)))
        n = int(np.minimum(np.bincount(data.codes), most).sum())
    positions = data.evenly(landmark_count(data, n, options.owner))
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


def _draw_maps(
    data: TrainingSet, landmarks: SeriesBatch, banks: IntArray, options: LocalOptions
) -> list[AlignedProducts | Snippets]:
    """Fit the map of whole landmarks, with most phases, and draw the snippets."""
    row_map = RowMap.fit_pooled(
        data.series, max_length=options.max_length, n_components=options.n_components
    )
    aligned = AlignedProducts.in_banks(
        "landmarks", landmarks, row_map, options.settings, banks,
        rank=options.metric_rank, n_phases=max(options.phases),
    )  # fmt: skip
    count = options.n_snippets
    if count is None:
        count = min(_SNIPPETS + _PER_CHANNEL * (landmarks.n_channels - 1), _MOST_SNIPPETS)
    if count == 0:
        return [aligned]
    return [aligned, Snippets.draw(data.series, data.codes, count, options.seed)]


def _most_anchors(maps: list[AlignedProducts | Snippets], options: LocalOptions) -> int:
    """Return how many anchors fit in memory with their features."""
    limit = memory_limit(options.memory_limit, options.owner)
    n_features = sum(int(np.prod(feature_map.shape)) for feature_map in maps)
    # Largest n such that 8 n (n_features + _COPIES n) bytes fit.
    numbers = _ANCHOR_SHARE * limit / 8.0
    most = int((np.sqrt(n_features**2 + 4.0 * _COPIES * numbers) - n_features) / (2.0 * _COPIES))
    if most < _FEWEST_ANCHORS:
        # A little more, because it is rounded.
        needed = 8.4 * _FEWEST_ANCHORS * (n_features + _COPIES * _FEWEST_ANCHORS) / _ANCHOR_SHARE
        raise ValueError(
            f"The 'memory_limit' parameter of {options.owner} is too small: {format_bytes(limit)}. "
            f"Learning needs {format_bytes(needed)}. Raise it, or use fewer phases or snippets."
        )
    return min(most, _ANCHORS)


# ---- features of the anchors


@dataclass(frozen=True, eq=False)
class FeatureBlock:
    """Features of some series: (features of the map - centre) * scale.

    Attributes
    ----------
    feature_map
        The map.
    features
        Shape (series, features). Columns have mean zero, and the mean squared norm of the rows is
        1, or 0 if all features are constant.
    centre, scale
        Shape (features,).
    weight
        Weight of the inner products of the features beside those of other maps.
    """

    feature_map: AlignedProducts | Snippets
    features: FloatArray
    centre: FloatArray
    scale: FloatArray
    weight: float = 1.0

    @classmethod
    def of(
        cls,
        feature_map: AlignedProducts | Snippets,
        series: SeriesBatch,
        resources: Resources,
        *,
        alone: bool,
    ) -> FeatureBlock:
        """Compute features. Those of snippets have equal variances.

        `alone` leaves landmarks out of their own features.
        """
        features = feature_map(series, resources).astype(np.float64, copy=False)
        if alone and isinstance(feature_map, AlignedProducts):
            feature_map.leave_out_selves(features, series, resources)
        features = features.reshape(len(series), -1)
        centre = features.mean(axis=0)
        features -= centre
        if isinstance(feature_map, Snippets):
            shares = centre.reshape(feature_map.shape)[:, :, 0]
            feature_map = replace(feature_map, shares=np.ascontiguousarray(shares))
        return cls._scaled(feature_map, features, centre)

    @classmethod
    def _scaled(
        cls, feature_map: AlignedProducts | Snippets, features: FloatArray, centre: FloatArray
    ) -> FeatureBlock:
        """Scale centred features in place: those of snippets one by one, others by one factor."""
        variances = np.einsum("ij,ij->j", features, features) / len(features)
        varies = variances > _LEAST_SPREAD**2 * np.maximum(centre**2, 1.0)
        scale = np.zeros(len(centre))
        if isinstance(feature_map, Snippets):
            np.divide(1.0, np.sqrt(variances * varies.sum()), out=scale, where=varies)
        elif varies.any():
            scale[:] = 1.0 / np.sqrt(variances.sum())
        features *= scale
        return cls(feature_map, features, centre, scale)

    def with_phases(self, n_phases: int) -> FeatureBlock:
        """Add up neighbouring phases of aligned products."""
        assert isinstance(self.feature_map, AlignedProducts)
        if self.feature_map.n_phases == n_phases:
            return self
        banks, phases, d, r = self.feature_map.shape
        shape = (-1, banks, n_phases, phases // n_phases, d * r)
        # One factor scales all aligned products, so sums of scaled features are scaled sums.
        factor = self.scale[0] or 1.0
        features = self.features.reshape(shape).sum(axis=3).reshape(len(self.features), -1)
        features /= factor
        centre = self.centre.reshape(shape).sum(axis=3).reshape(-1)
        feature_map = replace(self.feature_map, n_phases=n_phases)
        return self._scaled(feature_map, features, centre)

    def weigh_by_coefficients(self, rows: IntArray, weights: FloatArray) -> None:
        """Multiply the features of each snippet by the norm of its coefficients, in place.

        The coefficients are ``features[rows].T @ weights``. The mean squared norm stays 1.
        """
        coef = self.features[rows].T @ weights
        norms = np.linalg.norm(coef.reshape(self.feature_map.n_landmarks, -1), axis=1)
        factors = np.repeat(norms, len(coef) // len(norms))
        # Features that vary have equal variances.
        varies = self.scale > 0.0
        size = float(np.sqrt(np.mean(factors[varies] ** 2))) if varies.any() else 0.0
        if size > 0.0:
            factors /= size
            np.multiply(self.features, factors, out=self.features)
            np.multiply(self.scale, factors, out=self.scale)

    def without_channel(self, channel: int) -> FeatureBlock:
        """Return the features with zeros for the snippets that see a channel."""
        assert isinstance(self.feature_map, Snippets)
        seen = np.logical_or.reduceat(
            self.feature_map.channels == channel, self.feature_map.first[:-1]
        )
        features = self.features * np.repeat(~seen, len(self.centre) // len(seen))
        return self._scaled(self.feature_map, features, self.centre)

    def kernel_coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Turn the features in place into coefficients of inner products with them.

        Returns them, shape (series, *feature_map.shape), and what they add at the centre.
        """
        coef = np.multiply(self.features, self.scale * self.weight, out=self.features)
        return coef.reshape(-1, *self.feature_map.shape), coef @ self.centre


# ---- ridge regression


def _groups_of(data: TrainingSet, rows: IntArray) -> IntArray | None:
    """Number the groups of some series from 0."""
    if data.groups is None:
        return None
    names, groups = np.unique(data.groups[rows], return_inverse=True)
    if len(names) < 2:
        raise DataError(
            f"groups has one group only, {names.tolist()[0]!r}: at least two are needed, to learn "
            f"from one and to hold out the other. Leave out groups."
        )
    return groups


class _Tuned(NamedTuple):
    """Features with the chosen phases and weight, and the fit to some series.

    Attributes
    ----------
    blocks
        The features.
    penalty
        That of the inner products of all blocks together.
    weights
        The fit is the combination of the features of the series with these weights, shape (series,
        targets).
    held_out, validation
        Decisions of fits without the series, and their accuracy.
    """

    blocks: list[FeatureBlock]
    penalty: float
    weights: FloatArray
    held_out: HeldOutDecisions
    validation: Validation


def _tune(
    data: TrainingSet,
    tuning: IntArray,
    blocks: list[FeatureBlock],
    rows: IntArray,
    options: LocalOptions,
) -> _Tuned:
    """Choose the phases and the weight of the snippets by the error on series that are left out.

    Usually snippets have most of the weight. Whole landmarks have it, with most phases, if that is
    better by two standard errors of the difference: the smaller of two noisy errors may be so by
    chance. With groups, each is left out as a whole, and is one draw for the standard error. `rows`
    are the rows of the `tuning` series in the features.
    """
    codes, groups = data.codes[tuning], _groups_of(data, tuning)
    targets = one_vs_rest(codes, len(data.classes))
    weights = data.loss_weights(options.class_weight, tuning)
    whole, *snippets = blocks
    aligned = {n: whole.with_phases(n) for n in options.phases}
    shares = _SHARES if snippets else (0.0, 0.0)
    candidates = [(min(options.phases), shares[0]), (max(options.phases), shares[1])]
    counts = _products(snippets, rows)
    penalties = options.penalties
    if groups is None and len(rows) == len(data.classes):
        # Every series is left out with its class: larger penalties have smaller errors by that.
        penalties = penalties[: (len(penalties) + 1) // 2]

    def fit(candidate: tuple[int, float]) -> tuple[Span, LeaveOneOut]:
        n, share = candidate
        span = Span.of(_products([aligned[n]], rows) + share * counts, weights)
        return span, span.leave_one_out(targets, weights, penalties * (1.0 + share), groups)

    # Without snippets and with one number of phases, both are the same.
    fits = map_threads(fit, list(dict.fromkeys(candidates)), n_jobs=options.n_jobs)
    usual, other = fits[0], fits[-1]
    losses = [((of.predictions - targets) ** 2).mean(axis=1) for _, of in (usual, other)]
    gains, part = losses[0] - losses[1], weights / weights.sum()
    gain = float(part @ gains)
    deviations = part * (gains - gain)
    if groups is not None:
        deviations = np.bincount(groups, deviations)
    is_better = gain > _STANDARD_ERRORS * float(np.sqrt(deviations @ deviations))
    n, share = candidates[is_better]
    span, best = other if is_better else usual
    penalty = float(penalties[best.best]) * (1.0 + share)
    held_out = HeldOutDecisions(
        span.leave_out(targets, weights, penalty, parts_to_leave_out(codes, groups)), codes,
        data.weights_of(tuning), groups,
    )  # fmt: skip
    kind = "leave-one-out" if groups is None else "leave-one-group-out"
    return _Tuned(
        [aligned[n], *(replace(block, weight=share) for block in snippets)],
        penalty, span.basis @ best.slope, held_out, Validation.of(kind, held_out, tuning),
    )  # fmt: skip


def _solve(
    data: TrainingSet,
    anchors: IntArray,
    blocks: list[FeatureBlock],
    penalty: float,
    options: LocalOptions,
    *,
    exact: bool,
) -> tuple[LinearModel, RidgeReport]:
    """Solve on all series, for functions in the span of the anchors' features.

    `exact` says that the anchors are all series.
    """
    targets = one_vs_rest(data.codes[anchors], len(data.classes))
    weights = data.loss_weights(options.class_weight) if exact else np.ones(len(anchors))
    work = 2.0 * len(anchors) ** 2 * sum(len(block.centre) for block in blocks)
    products = _products(blocks, np.arange(len(anchors)), array_module(options.device, work))
    span = Span.of(products, weights)
    # Inner products with the features of the anchors, from which all coordinates are made.
    coefs, constants = zip(*(block.kernel_coefficients() for block in blocks), strict=True)
    model = LinearModel(
        tuple(block.feature_map for block in blocks), coefs, -np.sum(constants, axis=0)
    )
    if exact:
        ridge = span.solve(targets, weights, penalty)
        intercept = ridge.intercept - span.origin @ ridge.slope
        return model.combined(span.basis @ ridge.slope, intercept), ridge.report
    model = LinearModel(
        model.maps,
        tuple(_combine_in_place(coef, span.basis) for coef in coefs),
        model.intercept @ span.basis - span.origin,
    )
    by_class = data.class_weights(options.class_weight)
    by_class = by_class * data.n_distinct / float(data.totals @ by_class)
    sums = _Sums(model, data.classes, by_class, options.device)
    if data.scan is None:
        equations = _sum_series(data, anchors, span.coordinates, sums, options)
    else:
        equations = _sum_scan(data.scan, sums, options)
    ridge = equations.solve(penalty)
    return model.combined(ridge.slope, ridge.intercept), ridge.report


def _combine_in_place(coef: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the coefficients of ``outputs @ weights`` in the memory of those of the outputs."""
    flat = coef.reshape(len(coef), -1)
    n_outputs = weights.shape[1]
    for begin in range(0, flat.shape[1], _COLUMNS):
        columns = slice(begin, begin + _COLUMNS)
        flat[:n_outputs, columns] = matmul(weights.T, flat[:, columns])
    return coef[:n_outputs]


def _products(blocks: Sequence[FeatureBlock], rows: IntArray, arrays: Any = np) -> FloatArray:
    """Return weighted inner products of some series, as an array of NumPy or CuPy."""
    products: FloatArray = arrays.zeros((len(rows), len(rows)))
    for block in blocks:
        features = block.features if len(rows) == len(block.features) else block.features[rows]
        products += block.weight * gram(arrays.asarray(features))
    return products


# ---- without channels


class ChannelAccuracies(NamedTuple):
    """Leave-one-out accuracy with all channels, and without each of some channels.

    Attributes
    ----------
    accuracy
        With all channels.
    channels
        Positions of the channels that were left out, one at a time.
    without
        The accuracy without each of them.
    n_series
        Number of distinct series that were left out, one at a time.
    """

    accuracy: float
    channels: IntArray
    without: FloatArray
    n_series: int


def leave_out_channels(
    data: TrainingSet, model: LinearModel, channels: IntArray, options: LocalOptions
) -> ChannelAccuracies:
    """Leave out series with all channels, and without each one.

    Snippets are counted once: those that see a channel are left out with it. Whole landmarks are
    aligned again, because all channels together decide about paths, unit rows and components.
    """
    order = data.shuffled(_ANCHOR_PURPOSE)
    data = data.take(data.evenly(min(_TUNING, _most_anchors(list(model.maps), options)), order))
    options = replace(options, phases=(model.aligned[0].n_phases,), n_snippets=0)
    rows, series = np.arange(len(data)), data.named_series
    landmarks, banks = model.aligned[0].landmarks, model.aligned[0].banks

    def block(feature_map: AlignedProducts | Snippets, batch: SeriesBatch) -> FeatureBlock:
        return FeatureBlock.of(feature_map, batch, options.resources, alone=True)

    def accuracy(whole: FeatureBlock, counts: list[FeatureBlock]) -> float:
        return _tune(data, rows, [whole, *counts], rows, options).validation.accuracy

    without = []
    with options.bar("Leaving out channels") as progress:
        counts = [] if model.snippets is None else [block(model.snippets, series)]
        everything = accuracy(block(model.aligned[0], series), counts)
        for k, channel in enumerate(channels.tolist()):
            rest, others = (_without_channel(batch, channel) for batch in (series, landmarks))
            whole = _draw_maps(replace(data, series=rest), others, banks, options)[0]
            kept = [of_counts.without_channel(channel) for of_counts in counts]
            without.append(accuracy(block(whole, rest), kept))
            progress(k + 1, len(channels))
    return ChannelAccuracies(everything, channels, np.array(without), len(data))


def _without_channel(batch: SeriesBatch, channel: int) -> SeriesBatch:
    values = np.ascontiguousarray(np.delete(batch.values, channel, axis=1))
    rest = batch.with_values(values, None)
    n_observed = np.add.reduceat(observed_steps(rest), rest.offsets[:-1], dtype=np.int64)
    if not n_observed.all():
        name = batch.channel_names[channel] if batch.channel_names else f"channel {channel}"
        raise DataError(
            f"{batch.name_of(int(n_observed.argmin()))} has values in {name} only: nothing is left "
            f"without this channel. Leave the series out."
        )
    return rest


# ---- more series than anchors


@dataclass(frozen=True, eq=False)
class _Sums:
    """Adds series to normal equations.

    The outputs of `model` are their coordinates in the span of the anchors.
    """

    model: LinearModel
    classes: AnyArray
    class_weights: FloatArray
    device: str

    @property
    def batch_size(self) -> int:
        return _BATCH if self.device == "cpu" else _GPU_BATCH

    def coordinates(self, series: SeriesBatch, n_jobs: int | None = 1) -> FloatArray:
        return self.model.decide(series, Resources(self.device, n_jobs))

    def start(self) -> NormalEquations:
        n = len(self.classes)
        return NormalEquations(len(self.model.intercept), 1 if n == 2 else n)

    def add(
        self,
        equations: NormalEquations,
        coordinates: FloatArray,
        codes: IntArray,
        weights: FloatArray | float = 1.0,
    ) -> None:
        targets = one_vs_rest(codes, len(self.classes))
        equations.add(coordinates, targets, weights * self.class_weights[codes])


def _sum_series(
    data: TrainingSet, anchors: IntArray, of_anchors: FloatArray, sums: _Sums, options: LocalOptions
) -> NormalEquations:
    """Add up series in memory; the coordinates of the anchors are there already."""
    equations = sums.start()
    sums.add(equations, of_anchors, data.codes[anchors], data.weights[anchors])
    others = np.setdiff1d(np.arange(len(data)), anchors)
    size, on_cpu = sums.batch_size, options.device == "cpu"
    batches = [others[begin : begin + size] for begin in range(0, len(others), size)]

    def coordinates(rows: IntArray, *_: Any) -> FloatArray:
        return sums.coordinates(data.series[rows], 1 if on_cpu else options.n_jobs)

    with options.bar("Aligning all series") as progress:
        # Threads take batches, or a GPU takes one at a time.
        runner = ThreadRunner(options.n_jobs if on_cpu else 1)
        mapped = runner.map(coordinates, batches, progress=progress)
        for rows, of_rows in zip(batches, mapped, strict=True):
            sums.add(equations, of_rows, data.codes[rows], data.weights[rows])
    return equations


def _sum_scan(scan: SeriesScan, sums: _Sums, options: LocalOptions) -> NormalEquations:
    """Add up the series of a scan; the order of the parts decides the order of the sums."""
    equations = sums.start()
    # What the features of the anchors have freed.
    release_memory()
    parts, runner = scan.parts(), scan_runner(options.n_jobs if options.device == "cpu" else 1)
    with options.bar("Aligning all series") as progress:
        for of_part in runner.map(_sum_part, parts, sums, progress=progress):
            equations += of_part
    return equations


def _sum_part(part: Part, sums: _Sums, _: None) -> NormalEquations:
    equations = sums.start()
    for piece in pieces(part, labels=True, batch_size=sums.batch_size):
        labels = cast(AnyArray, piece.labels)
        codes = np.searchsorted(sums.classes, labels)
        if not np.isin(labels, sums.classes).all():
            raise DataError(f"{part.name} has other labels than when it was first read.")
        sums.add(equations, sums.coordinates(piece.series), codes)
    return equations


# ---- names


def _name_origins(
    model: LinearModel, data: TrainingSet, landmarks: IntArray
) -> tuple[LinearModel, Origins]:
    """Number the series of the snippets as in the data; return the series that the model keeps."""
    snippets = model.snippets
    kept = np.empty(0, dtype=np.int64) if snippets is None else np.unique(snippets.series)
    kept = np.concatenate([landmarks, kept])
    origins = Origins.of(data.series[kept], data.indices[kept], data.codes[kept])
    if snippets is None:
        return model, origins
    numbered = replace(snippets, series=data.indices[snippets.series])
    return replace(model, maps=(*model.aligned, numbered)), origins
