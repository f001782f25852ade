"""Classifiers over landmarks, learned from series that do not fit in memory.

Three passes over the series: a survey that counts and draws a sample; alignments with the
landmarks, of which sums by class are kept for the metrics; alignments again, of which similarities
under these metrics are kept for the separators. Parameters are chosen and probabilities calibrated
on the sample, in memory.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import PredefinedSplit
from sklearn.utils import check_random_state, compute_class_weight

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.alignment.reductions import (
    Result,
    grouped_products,
    projected_similarities,
    similarities,
)
from slts.errors import DataError
from slts.estimators.memory_plan import MOST_TUNING, SAMPLE_SHARE, MemoryPlan
from slts.estimators.splitting import Split
from slts.estimators.streams import check_read_together, mapper_for, memory_bytes, pieces_of
from slts.estimators.survey import Survey, survey
from slts.execution import DaskMapper, Mapper, Progress
from slts.landmarks import resolve_count, select_landmarks
from slts.landmarks.reservoir import SampleSize
from slts.landmarks.selection import METHODS, check_landmarks
from slts.learning.landmark import LandmarkData, LandmarkModel
from slts.learning.landmark_parts import (
    Block,
    Held,
    metrics_in_parts,
    says_yes,
    separators_in_parts,
)
from slts.learning.metric import MetricSolution
from slts.models.row_map import RowMap
from slts.series import SeriesBatch
from slts.series.stream import Part, SeriesStream

if TYPE_CHECKING:
    from slts.estimators.landmark_classifier import LandmarkClassifier

# Medoids need all pairs: they are looked for among so many series of the sample.
_MEDOID_POOL = 2_000
# So many series of every class are in the sample, or all there are.
_PER_CLASS = 20


@dataclass(frozen=True)
class InMemory:
    """What is known of series that are in memory, and learned from in parts all the same.

    Attributes
    ----------
    limit, whole
        Memory to take, and that of all alignments.
    classes
        What the labels of the stream, 0 and up, stand for.
    weights
        Weight of every series of the stream, mean 1.
    indices
        Which of all series are in the stream: those that have weight.
    splits
        Splits of all series, as the estimator makes them.
    rows
        Map of the rows.
    landmarks
        The landmarks, their indices among all series, and their classes.
    """

    limit: float
    whole: float
    classes: AnyArray
    weights: FloatArray
    indices: IntArray
    splits: Sequence[Split]
    rows: RowMap
    landmarks: tuple[SeriesBatch, IntArray, IntArray]


def fit_stream(
    model: LandmarkClassifier,
    stream: SeriesStream,
    y: Any = None,
    sample_weight: Any = None,
    known: InMemory | None = None,
) -> None:
    """Fit a classifier over landmarks on series that are read part by part.

    `known` is what needs not be found again where the series are in memory.
    """
    name = type(model).__name__
    model._check_device()
    _refuse_what_needs_memory(model, y, sample_weight, known)
    limit = memory_bytes(model.memory_limit, name) if known is None else known.limit
    settings, parameters = model._settings(), model._parameters()
    seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    with mapper_for(model.n_jobs, stream) as mapper:
        fewest = _most_drawn(model) if known is None else 1
        size = SampleSize(MOST_TUNING, limit * SAMPLE_SHARE, fewest, _PER_CLASS)
        with model._progress("Reading") as progress:
            found = survey(stream, mapper, size, seed=seed, progress=progress)
        sample, codes = found.sample, found.sample_codes
        classes = found.classes if known is None else known.classes
        model._remember(classes, found.n_series, found.n_steps, sample.series.n_channels)
        uniform = sample.series[: sample.n_uniform]
        if known is None:
            weights = _Weights(by_class=_class_weights(model, found))
            model.row_map_ = RowMap.fit(
                uniform, settings, homogeneous=model.homogeneous, scale=model.scale
            )
        else:
            weights, model.row_map_ = _Weights(by_series=known.weights), known.rows
        drawn = model.row_map_(sample.series)
        kept, indices, landmark_codes = (
            _landmarks(model, stream, mapper, found, drawn, settings, seed)
            if known is None
            else known.landmarks
        )
        plan = MemoryPlan.make(
            limit=limit, n_series=found.n_series, n_steps=found.n_steps,
            n_channels=uniform.n_channels, n_rows=drawn.n_channels,
            n_classes=len(found.classes), n_landmarks=len(kept), n_sample=sample.n_uniform,
            n_extra=len(sample) - sample.n_uniform,
            sample=float(sample.series.values.nbytes), item=np.dtype(settings.dtype).itemsize,
            learns_metric=model.learns_metric, n_workers=mapper.n_workers,
            remote=isinstance(mapper, DaskMapper),
        )  # fmt: skip
        plan.check(name, math.inf if known is None else known.whole)
        plan.tell()
        # The first are a uniform sample; rare classes, at the end, are wanted in any case.
        tuning = np.union1d(np.arange(plan.n_tuning), np.arange(sample.n_uniform, len(sample)))
        mapped = model.row_map_(kept)
        codes, own_indices = codes[tuning], found.sample_indices[tuning]
        importance = found.importance(codes)
        own = weights.of(codes, own_indices) * (1.0 if importance is None else importance)
        data = model._align(drawn[tuning], codes, own, mapped, landmark_codes, settings)
        splits = _sample_splits(model, codes, own_indices, known, seed)
        chosen = model._choose(data, parameters, splits, importance)
        count = int(chosen.pop("n_landmarks"))
        data = data.first_landmarks(count)
        aligning = _Aligning(model, found, weights, mapped[:count], settings, plan)
        learned = _learn(aligning, stream, mapper, plan, data, chosen, model._progress)
        model.landmark_indices_ = indices[:count]
        learned = model._refine(learned, data, drawn, settings, splits)
        model._conclude(learned, kept[:count], data, drawn.n_channels)


def _refuse_what_needs_memory(
    model: LandmarkClassifier, y: Any, sample_weight: Any, known: InMemory | None
) -> None:
    name = type(model).__name__
    check_read_together(y, sample_weight, name)
    cv = getattr(model, model._cv_name, None)
    holds_indices = isinstance(cv, PredefinedSplit) or (np.iterable(cv) and not isinstance(cv, str))
    if known is None and holds_indices:
        raise ValueError(
            f"The {model._cv_name!r} parameter of {name} must not hold indices of series where "
            f"these are read part by part: splits are made of a sample. Got {cv!r} instead; use an "
            f"int, a hold-out fraction, or a splitter such as StratifiedKFold."
        )
    needs = model._needs_all_in_memory
    if needs is not None:
        raise ValueError(
            f"The {needs.partition('=')[0]!r} parameter of {name} must be left at its default for "
            f"series that are read part by part. Got {needs} instead."
        )


def _sample_splits(
    model: LandmarkClassifier,
    codes: IntArray,
    indices: IntArray,
    known: InMemory | None,
    seed: int,
) -> list[Split]:
    """Splits of the sample, which has the series `indices` of the stream."""
    cv = getattr(model, model._cv_name, None)
    if cv is None or isinstance(cv, numbers.Real):
        # In the order of the sample, which does not depend on files.
        return model._splits(codes, seed)
    if known is None:
        # A splitter may care for the order: that of the stream.
        order = np.argsort(indices)
        splits = model._splits(codes[order], seed)
        return [(order[train], order[test]) for train, test in splits]
    own = known.indices[indices]
    found = [[np.flatnonzero(np.isin(own, side)) for side in split] for split in known.splits]
    usable = [(train, test) for train, test in found if len(train) and len(test)]
    if known.splits and not usable:
        raise ValueError(
            f"None of the {len(known.splits)} splits of {type(model).__name__} has series on both "
            f"sides among the {len(codes)} that parameters are chosen and probabilities calibrated "
            f"on: raise memory_limit."
        )
    return usable


@dataclass(frozen=True)
class _Weights:
    """Weights of mean 1, by class or by series."""

    by_class: FloatArray | None = None
    by_series: FloatArray | None = None

    def of(self, codes: AnyArray, numbers: AnyArray | None) -> FloatArray:
        """Weights of some series; those with weights of their own are told by their numbers."""
        if self.by_class is not None:
            return self.by_class[codes]
        assert self.by_series is not None
        assert numbers is not None
        return self.by_series[numbers]


def _most_drawn(model: LandmarkClassifier) -> int:
    """How many series the sample must have for the landmarks, as far as that is known."""
    if not isinstance(model.landmarks, str):
        return 1
    wanted = model.n_landmarks
    several = np.atleast_1d(np.asarray(100 if wanted is None else wanted))
    if several.dtype.kind not in "iu":
        return 1
    return int(several.max(initial=1))


def _class_weights(model: LandmarkClassifier, found: Survey) -> FloatArray:
    """Weight of a series by its class; all series together have mean 1."""
    given = model.class_weight
    weights = np.ones(len(found.classes))
    if isinstance(given, str) and given == "balanced":
        weights = 1.0 / found.counts
    elif given is not None:
        by_label = dict(given) if isinstance(given, Mapping) else given
        weights = compute_class_weight(by_label, classes=found.classes, y=found.classes)
    if not (weights > 0.0).all():
        label = found.classes[int(np.argmin(weights > 0.0))]
        raise DataError(f"class {label} has no weight: every class needs a positive class_weight.")
    return np.asarray(weights * (found.n_series / float(found.counts @ weights)))


def _landmarks(
    model: LandmarkClassifier,
    stream: SeriesStream,
    mapper: Mapper,
    found: Survey,
    rows: SeriesBatch,
    settings: AlignmentSettings,
    seed: int,
) -> tuple[SeriesBatch, IntArray, IntArray]:
    """Landmarks, their numbers in the stream, and their classes."""
    sample, method = found.sample, model.landmarks
    if not isinstance(method, str) or method not in METHODS:
        indices = check_landmarks(method, found.n_series, type(model).__name__)
        series, labels = _fetch(stream, mapper, found, indices)
        return series, indices, np.searchsorted(found.classes, labels).astype(np.int64)
    count = resolve_count(model._most_landmarks(found.n_series), found.n_series)
    pool = min(sample.n_uniform, _MEDOID_POOL) if method == "kmedoids" else sample.n_uniform
    if count > pool:
        raise ValueError(
            f"The 'n_landmarks' parameter of {type(model).__name__} asks for {count} landmarks, "
            f"and the sample they are drawn from has {pool} series: take fewer. (The sample has at "
            f"most {MOST_TUNING} series, medoids are looked for among {_MEDOID_POOL}.)"
        )
    if method == "random":
        chosen = np.arange(count)
    else:
        chosen = select_landmarks(
            rows[:pool], count, method=method, objective=model.objective, band=model.band,
            normalize=False, random_state=seed, device=model.device, n_jobs=model.n_jobs,
        )  # fmt: skip
        if method == "kmedoids":
            # They come in the order of the sample, which is one of chance.
            chosen = np.sort(chosen)
    return sample.series[chosen], found.sample_indices[chosen], found.sample_codes[chosen]


def _fetch(
    stream: SeriesStream, mapper: Mapper, found: Survey, indices: IntArray
) -> tuple[SeriesBatch, AnyArray]:
    """Series by their numbers, and their labels."""
    part_of = np.searchsorted(found.offsets, indices, side="right") - 1
    wanted = np.unique(part_of)
    parts = stream.parts()

    def own(k: int) -> IntArray:
        return np.sort(indices[part_of == wanted[k]] - found.offsets[wanted[k]])

    pieces = list(mapper.map(_pick, [parts[k] for k in wanted], None, own))
    series = SeriesBatch.concatenate(series for series, _ in pieces)
    labels = np.concatenate([labels for _, labels in pieces])
    # They come sorted; asked for in some order.
    order = np.argsort(np.argsort(indices))
    return series[order], labels[order]


def _pick(part: Part, _: None, positions: IntArray) -> tuple[SeriesBatch, AnyArray]:
    first, series, labels = 0, [], []
    for piece in pieces_of(part, labels=True):
        n = len(piece.series)
        here = positions[(positions >= first) & (positions < first + n)] - first
        if len(here):
            assert piece.labels is not None
            series.append(piece.series[here])
            labels.append(piece.labels[here])
        first += n
    return SeriesBatch.concatenate(series), np.concatenate(labels)


class _Aligning:
    """What a worker needs to align the series of a part."""

    def __init__(
        self,
        model: LandmarkClassifier,
        found: Survey,
        weights: _Weights,
        landmarks: SeriesBatch,
        settings: AlignmentSettings,
        plan: MemoryPlan,
    ) -> None:
        self.rows, self.device = model.row_map_, model.device
        self.classes, self.n_series, self.weights = found.classes, found.n_series, weights
        self.landmarks, self.settings = landmarks, settings
        self.batch_size, self.chunk = plan.batch_size, plan.chunk
        self.learns_metric = model.learns_metric

    def blocks(
        self, part: Part, width: int, reduce: Callable[[SeriesBatch], Result]
    ) -> Iterator[Block]:
        """Classes, weights and results of some series at a time; `width` numbers for each."""
        step = max(1, self.chunk // (8 * width))
        for piece in pieces_of(part, labels=True, batch_size=self.batch_size):
            series = self.rows(piece.series)
            assert piece.labels is not None
            codes = np.searchsorted(self.classes, piece.labels).astype(np.int32)
            weights = self.weights.of(codes, piece.ids) / self.n_series
            for begin in range(0, len(series), step):
                rows = slice(begin, begin + step)
                yield codes[rows], weights[rows], reduce(series[rows])


@dataclass(frozen=True)
class _Stage:
    """A task of `Mapper.hold`: alignments, and what is kept of them."""

    aligning: _Aligning
    # Groups of landmarks whose products are summed; or metrics; or neither, for K at M = I.
    weights: FloatArray | None = None
    metrics: FloatArray | None = None


def align_part(part: Part, stage: _Stage, _: None) -> Iterator[Block]:
    """Align all series of a part."""
    a = stage.aligning
    landmarks, settings, how = a.landmarks, a.settings, {"device": a.device, "n_jobs": 1}
    if stage.weights is not None:
        width = len(stage.weights) * landmarks.n_channels**2
        weights = stage.weights
        return a.blocks(
            part,
            width,
            lambda s: grouped_products(s, landmarks, weights, settings, **how),  # type: ignore[arg-type]
        )
    if stage.metrics is not None:
        metrics = stage.metrics
        return a.blocks(
            part,
            len(metrics) * len(landmarks),
            lambda s: np.ascontiguousarray(
                projected_similarities(s, landmarks, metrics, settings, **how).transpose(0, 2, 1)  # type: ignore[arg-type]
            ),
        )
    return a.blocks(
        part,
        len(landmarks),
        lambda s: similarities(s, landmarks, settings, **how)[:, np.newaxis],  # type: ignore[arg-type]
    )


def _learn(
    aligning: _Aligning,
    stream: SeriesStream,
    mapper: Mapper,
    plan: MemoryPlan,
    data: LandmarkData,
    chosen: dict[str, float],
    bar: Callable[[str], AbstractContextManager[Progress | None]],
) -> LandmarkModel:
    """Metrics from sums by class, then separators from similarities."""
    parts = stream.parts()
    gamma = chosen["gamma"]
    metric_solutions: tuple[MetricSolution, ...] = ()
    metrics = None

    def held(stage: _Stage) -> Held:
        with bar("Aligning with landmarks") as progress:
            kept = mapper.hold(align_part, parts, stage, memory=plan.resident, progress=progress)
        return Held(mapper, kept, aligning.n_series, plan.at_once, plan.rows_bytes)

    if aligning.learns_metric:
        groups = np.zeros((data.n_classes, data.n_landmarks))
        groups[data.landmark_codes, np.arange(data.n_landmarks)] = 1.0
        sums = held(_Stage(aligning, weights=groups))
        with bar("Learning metrics") as progress:
            metric_solutions = tuple(
                metrics_in_parts(sums, data, gamma=gamma, lam=chosen["lam"], progress=progress)
            )
        mapper.release(sums.parts)
        metrics = np.stack([solution.metric for solution in metric_solutions])
    K = held(_Stage(aligning, metrics=metrics))
    with bar("Learning separators") as progress:
        separators = tuple(separators_in_parts(K, data, metrics, gamma=gamma, progress=progress))
    coef = np.stack([separator.coef for separator in separators])
    yes = says_yes(K, coef)
    mapper.release(K.parts)
    return LandmarkModel(coef, metrics, yes, separators, metric_solutions)
