"""Learning over landmarks (BBS and SLTS), the same for memory, files and clusters.

count and sample -> choose landmarks -> align the sample -> choose parameters -> solve on all series
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.errors import warn
from slts.execution import TaskRunner, thread_count
from slts.landmarks import resolve_count
from slts.learning import MetricSolution, SeparatorSolution
from slts.models.row_map import RowMap
from slts.quantities import format_bytes
from slts.series import SeriesBatch
from slts.series.source import SeriesSource
from slts.training.alignments import SampleAlignments
from slts.training.first_pass import FirstPass, class_weights, count_and_sample
from slts.training.held_out import SearchResult, Split, held_out_decisions, search
from slts.training.landmark_choice import (
    FitOptions,
    choose_landmarks,
    landmark_positions,
    warn_about_missing_classes,
)
from slts.training.memory_plan import MOST_TUNING, SAMPLE_SHARE, LandmarkWork, MemoryPlan
from slts.training.partitioned_alignments import PartAligner, PartitionedAlignments
from slts.training.sampling import SampleSize
from slts.training.source import memory_limit, task_runner

# The paper's rule: half of a small training set, 100 landmarks of a large one.
_MOST_LANDMARKS, _LANDMARK_SHARE = 100, 0.5
# The sample has this many series of every class, or all there are.
_SAMPLED_PER_CLASS = 20
# Folds to calibrate the chosen parameters on if `cv` is a hold-out fraction.
_CALIBRATION_FOLDS = 3


@dataclass(frozen=True, kw_only=True)
class LandmarkOptions(FitOptions):
    """Parameters of a classifier over landmarks, checked.

    `parameters` are the candidates to choose from, `cv_name` is the parameter that gives `cv`.
    """

    learns_metric: bool
    regularizer: str
    parameters: Sequence[dict[str, float]]
    cv: Any
    cv_name: str
    scale: str | None
    homogeneous: bool | str
    settings: AlignmentSettings


@dataclass(frozen=True)
class LandmarkFit:
    """What was learned, and the solves behind it.

    `metrics` are solved problems, none where M = I; `chosen` are gamma and lam; `search` is None if
    nothing was held out.
    """

    first_pass: FirstPass
    row_map: RowMap
    landmarks: SeriesBatch
    landmark_indices: IntArray
    landmark_codes: IntArray
    metrics: Sequence[MetricSolution]
    separators: Sequence[SeparatorSolution]
    chosen: dict[str, float]
    search: SearchResult | None


def fit_landmarks(source: SeriesSource, options: LandmarkOptions) -> LandmarkFit:
    """Learn metrics and separators."""
    limit = memory_limit(options.memory_limit, options.owner)
    with task_runner(options.n_jobs, source) as runner:
        with options.bar("Reading") as progress:
            first_pass = count_and_sample(
                source, runner, _sample_size(options, limit), seed=options.seed, progress=progress
            )
        sample, codes = first_pass.sample, first_pass.codes
        row_map = RowMap.fit(
            sample.series[: sample.n_uniform],
            options.settings,
            homogeneous=options.homogeneous,
            scale=options.scale,
        )
        rows = row_map(sample.series)

        def draw() -> IntArray:
            count = max(_landmark_counts(options, first_pass, first_pass.n_series))
            return landmark_positions(options, count, rows[: sample.n_uniform], options.settings)

        landmarks, indices, landmark_codes = choose_landmarks(
            options, source, runner, first_pass, draw
        )
        plan = _plan(options, limit, runner, first_pass, rows.n_channels, len(landmarks))

        # The first series are a uniform sample; those that top up rare classes come last.
        n_tuning = sample.n_uniform if plan is None else plan.n_tuning
        tuning = np.union1d(np.arange(n_tuning), np.arange(sample.n_uniform, len(sample)))
        searched = _tuning_positions(codes[tuning])
        splits = first_pass.splits(options.cv, options.cv_name, tuning[searched])
        # A hold-out fraction is enough to choose parameters, but few series to calibrate on.
        calibration = splits
        if options.cv_name == "cv" and isinstance(options.cv, numbers.Real) and options.cv < 1:
            calibration = first_pass.splits(_CALIBRATION_FOLDS, options.cv_name, tuning[searched])
        multiplicities = first_pass.multiplicities(tuning)
        by_class = class_weights(options.class_weight, first_pass.classes, first_pass.totals)
        weights = multiplicities * by_class[codes[tuning]]
        aligner = Aligner(row_map(landmarks), options.settings, options.device, options.n_jobs)
        with options.bar("Aligning with landmarks") as progress:
            data = SampleAlignments.align(
                aligner, rows[tuning], learns_metric=options.learns_metric, progress=progress,
                codes=codes[tuning], landmark_codes=landmark_codes,
                weights=weights / weights.mean(), n_classes=len(first_pass.classes),
                regularizer=options.regularizer, n_jobs=options.n_jobs,
            )  # fmt: skip
        chosen, best = _choose_parameters(
            options,
            first_pass,
            data.take(searched),
            splits,
            calibration,
            multiplicities[searched],
            None if sample.groups is None else sample.groups[tuning[searched]],
        )
        count = int(chosen.pop("n_landmarks"))
        alignments: SampleAlignments | PartitionedAlignments = data.first_landmarks(count)
        if plan is not None:
            # Parts run in threads, so each uses one; a single part uses all threads itself.
            n_jobs = 1 if len(source.parts()) > 1 else options.n_jobs
            part_aligner = PartAligner(
                row_map,
                Aligner(aligner.landmarks[:count], options.settings, options.device, n_jobs),
                first_pass.labels, by_class, float(by_class @ first_pass.totals), plan.batch_size,
                plan.chunk,
            )  # fmt: skip
            alignments = PartitionedAlignments(
                source, runner, part_aligner, data.first_landmarks(count), plan,
                first_pass.n_series, options.bar,
            )  # fmt: skip
        metrics, learned = list[MetricSolution](), None
        if options.learns_metric:
            with options.bar("Learning metrics") as progress:
                metrics = alignments.solve_metrics(chosen["gamma"], chosen["lam"], progress)
            learned = np.stack([solution.metric for solution in metrics])
        with options.bar("Learning separators") as progress:
            separators, positive = alignments.solve_separators(learned, chosen["gamma"], progress)
    _warn_if_nothing_was_learned(first_pass.classes, landmark_codes[:count], metrics, positive)
    return LandmarkFit(
        first_pass, row_map, landmarks[:count], indices[:count], landmark_codes[:count], metrics,
        separators, {name: float(value) for name, value in chosen.items()}, best,
    )  # fmt: skip


def _tuning_positions(codes: IntArray) -> IntArray:
    """Return the series that parameters are chosen on: the first ones, and some of every class."""
    wanted = np.arange(len(codes)) < MOST_TUNING
    if not wanted.all():
        for c in np.unique(codes):
            wanted[np.flatnonzero(codes == c)[:_SAMPLED_PER_CLASS]] = True
    return np.flatnonzero(wanted)


def _choose_parameters(
    options: LandmarkOptions,
    first_pass: FirstPass,
    data: SampleAlignments,
    splits: Sequence[Split],
    calibration: Sequence[Split],
    multiplicities: FloatArray,
    groups: AnyArray | None,
) -> tuple[dict[str, Any], SearchResult | None]:
    """Return the parameters with the best held-out accuracy, and all scores if there are any."""
    counts = _landmark_counts(options, first_pass, data.n_landmarks)
    if not splits:
        return {"n_landmarks": counts[0], **options.parameters[0]}, None
    candidates = [{"n_landmarks": n, **given} for n in counts for given in options.parameters]

    by_count: list[list[FloatArray]] = []
    with options.bar("Trying parameters on held-out series") as progress:

        def advance(done: float, total: float) -> None:
            progress(len(by_count) * total + done, len(counts) * total)

        for count in counts:
            first = data.first_landmarks(count)
            by_count.append(first.held_out_decisions(splits, options.parameters, advance))
    decisions = [np.concatenate(of_split) for of_split in zip(*by_count, strict=True)]
    best = search(
        decisions, candidates, splits, data.codes, data.weights, multiplicities, groups=groups
    )
    if calibration is not splits:
        chosen = data.first_landmarks(int(best.best_params["n_landmarks"]))
        pair = [options.parameters[best.best % len(options.parameters)]]
        found_on = [of_split[0] for of_split in chosen.held_out_decisions(calibration, pair)]
        held_out = held_out_decisions(found_on, calibration, data.codes, multiplicities)
        best = replace(best, held_out=held_out)
    return best.best_params, best


def _sample_size(options: LandmarkOptions, limit: float) -> SampleSize:
    if options.regularizer != "frobenius":
        # Only the Frobenius problem can be solved in parts.
        return SampleSize(np.inf, limit)
    fewest = 1
    if isinstance(options.landmarks, str):
        wanted = np.atleast_1d(
            np.asarray(_MOST_LANDMARKS if options.n_landmarks is None else options.n_landmarks)
        )
        fewest = int(wanted.max(initial=1)) if wanted.dtype.kind in "iu" else 1
    return SampleSize(np.inf, limit * SAMPLE_SHARE, fewest, _SAMPLED_PER_CLASS)


def _plan(
    options: LandmarkOptions,
    limit: float,
    runner: TaskRunner,
    first_pass: FirstPass,
    row_width: int,
    n_landmarks: int,
) -> MemoryPlan | None:
    """Return how parts are held in memory; None if all alignments fit."""
    sample, n_counts = first_pass.sample, len(_landmark_counts(options, first_pass, n_landmarks))
    work = LandmarkWork(
        n_series=first_pass.n_series, n_steps=first_pass.n_steps,
        n_channels=sample.series.n_channels, row_width=row_width,
        n_classes=len(first_pass.classes), n_landmarks=n_landmarks, n_sample=sample.n_uniform,
        n_extra=len(sample) - sample.n_uniform, sample_bytes=float(sample.series.values.nbytes),
        complete=first_pass.complete, item=np.dtype(options.settings.dtype).itemsize,
        learns_metric=options.learns_metric,
        n_candidates=0 if options.cv is None else n_counts * len(options.parameters),
        n_solvers=thread_count(options.n_jobs),
    )  # fmt: skip
    plan = MemoryPlan.make(work, limit, runner)
    if plan is None:
        return None
    if options.regularizer != "frobenius":
        needed = f" ({format_bytes(work.in_memory)})" if work.complete else ""
        raise ValueError(
            f"The 'memory_limit' parameter of {options.owner} is too small: {format_bytes(limit)}. "
            f"With regularizer={options.regularizer!r} all alignments must be in memory{needed}. "
            f"Raise it, or lower n_landmarks."
        )
    plan.check(options.owner)
    return plan


def _landmark_counts(options: LandmarkOptions, first_pass: FirstPass, most: int) -> list[int]:
    """Return the numbers of landmarks to try, ascending, none larger than `most`."""
    several = isinstance(options.n_landmarks, Sequence | np.ndarray)
    if not isinstance(options.landmarks, str) and not several:
        return [most]
    n_distinct = len(first_pass.sample) if first_pass.complete else first_pass.n_series
    if options.n_landmarks is None:
        counts = [min(_MOST_LANDMARKS, max(1, round(_LANDMARK_SHARE * n_distinct)))]
    else:
        wanted = options.n_landmarks if several else [options.n_landmarks]
        counts = [_resolved(n, n_distinct, first_pass.n_series) for n in wanted]
    return sorted({min(count, most) for count in counts})


def _resolved(n_landmarks: Any, n_distinct: int, n_series: int) -> int:
    """Return a count; a fraction is one of the distinct series, which a count cannot exceed."""
    is_fraction = isinstance(n_landmarks, float | np.floating)
    count = resolve_count(n_landmarks, n_distinct if is_fraction else n_series)
    return min(count, n_distinct)


def _warn_if_nothing_was_learned(
    classes: AnyArray, landmark_codes: IntArray, metrics: Sequence[MetricSolution], positive: bool
) -> None:
    """Warn if M is almost zero, or if no decision is positive."""
    warn_about_missing_classes(classes, landmark_codes)
    labels = classes.tolist()
    positives = labels[1:] if len(labels) == 2 else labels
    for label, solution in zip(positives, metrics, strict=False):
        if solution.loss > 1 - 1e-3:
            warn(
                f"The metric of class {label!r} collapsed to almost zero (training hinge "
                f"{solution.loss:.4f}): lower lam or gamma.",
            )
    if len(labels) > 2 and not positive:
        warn(
            "Every one-vs-rest problem predicts the negative class for all training series: lower "
            "gamma or lam, and centre and scale the channels if they have offsets.",
        )
