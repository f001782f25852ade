"""Learning over landmarks (BBS and SLTS), the same for memory, files and clusters.

count and sample -> choose landmarks -> align the sample -> choose parameters -> solve on all series
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.bytesize import format_bytes
from slts.errors import warn
from slts.execution import TaskRunner, progress_bar
from slts.landmarks import resolve_count, select_landmarks
from slts.landmarks.selection import METHODS, check_landmarks
from slts.learning import MetricSolution, SeparatorSolution
from slts.models.row_map import RowMap
from slts.series import SeriesBatch
from slts.series.source import SeriesSource
from slts.training.alignments import SampleAlignments
from slts.training.first_pass import FirstPass, class_weights, fetch, first_pass
from slts.training.memory_plan import MOST_TUNING, SAMPLE_SHARE, LandmarkWork, MemoryPlan
from slts.training.partitioned_alignments import PartAligner, PartitionedAlignments
from slts.training.sampling import SampleSize
from slts.training.search import SearchResult, search
from slts.training.source import ArraySource, memory_limit, task_runner
from slts.training.splits import Split, make_splits

# The paper's rule: half of a small training set, 100 landmarks of a large one.
_MOST_LANDMARKS, _LANDMARK_SHARE = 100, 0.5
# K-medoids needs all pairs: it chooses among this many series.
_MEDOID_POOL = 2_000
# The sample has this many series of every class, or all there are.
_PER_CLASS = 20


@dataclass(frozen=True)
class LandmarkOptions:
    """What a classifier over landmarks asks for; `owner` names it in messages.

    The other fields are parameters of the classifiers, checked; `parameters` are the candidates to
    choose from, `cv_name` is the parameter that gives `cv`.
    """

    owner: str
    learns_metric: bool
    regularizer: str
    parameters: Sequence[dict[str, float]]
    n_landmarks: Any
    landmarks: Any
    cv: Any
    cv_name: str
    scale: str | None
    homogeneous: bool | str
    class_weight: Any
    settings: AlignmentSettings
    device: str
    n_jobs: int | None
    memory_limit: Any
    seed: int
    verbose: bool

    def bar(self, description: str) -> Any:
        """Return a progress bar if progress is to be shown."""
        return progress_bar(description, show=self.verbose)


@dataclass(frozen=True)
class LandmarkFit:
    """What was learned, and the solves behind it.

    `metrics` is None where M = I; `search` is None if nothing was held out; `some_positive` tells
    whether some problem decides for its class on some training series.
    """

    classes: AnyArray
    n_series: int
    n_steps: int
    row_map: RowMap
    landmarks: SeriesBatch
    landmark_indices: IntArray
    landmark_codes: IntArray
    coef: FloatArray
    metrics: FloatArray | None
    metric_solutions: tuple[MetricSolution, ...]
    separators: tuple[SeparatorSolution, ...]
    some_positive: bool
    search: SearchResult | None


def fit_landmarks(
    source: SeriesSource, options: LandmarkOptions, class_names: AnyArray | None = None
) -> LandmarkFit:
    """Learn metrics and separators. `class_names` are the labels that codes of a source mean."""
    o, limit = options, memory_limit(options.memory_limit, options.owner)
    with task_runner(o.n_jobs, source) as runner:
        with o.bar("Reading") as progress:
            found = first_pass(
                source, runner, _sample_size(o, limit), seed=o.seed, progress=progress
            )
        sample, classes = found.sample, found.classes if class_names is None else class_names
        row_map = RowMap.fit(
            sample.series[: sample.n_uniform], o.settings, homogeneous=o.homogeneous, scale=o.scale
        )
        rows = row_map(sample.series)
        landmarks, indices, landmark_codes = _choose_landmarks(o, source, runner, found, rows)
        plan = _plan(o, limit, runner, found, rows.n_channels, len(landmarks))

        # The first series are a uniform sample; those that top up rare classes come last.
        n_tuning = sample.n_uniform if plan is None else plan.n_tuning
        tuning = np.union1d(np.arange(n_tuning), np.arange(sample.n_uniform, len(sample)))
        searched = _searched(found.codes[tuning])
        splits = make_splits(
            o.cv, found.codes[tuning][searched], sample.keys[tuning][searched], name=o.cv_name,
            indices=found.indices[tuning][searched] if isinstance(source, ArraySource) else None,
            n_series=found.n_series,
        )  # fmt: skip
        multiplicities = found.multiplicities(tuning)
        by_class = class_weights(o.class_weight, classes, found.totals)
        weights = multiplicities * by_class[found.codes[tuning]]
        aligner = Aligner(row_map(landmarks), o.settings, o.device, o.n_jobs)
        with o.bar("Aligning with landmarks") as progress:
            data = SampleAlignments.align(
                aligner, rows[tuning], learns_metric=o.learns_metric, progress=progress,
                codes=found.codes[tuning], landmark_codes=landmark_codes,
                weights=weights / weights.mean(), n_classes=len(classes),
                regularizer=o.regularizer, n_jobs=o.n_jobs,
            )  # fmt: skip
        chosen, best = _choose_parameters(
            o, found, data.take(searched), splits, multiplicities[searched]
        )
        count = int(chosen["n_landmarks"])
        alignments: SampleAlignments | PartitionedAlignments = data.first_landmarks(count)
        if plan is not None:
            # Parts run in threads, so each uses one; a single part uses all threads itself.
            n_jobs = 1 if len(source.parts()) > 1 else o.n_jobs
            part_aligner = PartAligner(
                row_map, Aligner(aligner.landmarks[:count], o.settings, o.device, n_jobs),
                found.classes, by_class, float(by_class @ found.totals), plan.batch_size,
                plan.chunk,
            )  # fmt: skip
            alignments = PartitionedAlignments(
                source, runner, part_aligner, data.first_landmarks(count), plan, found.n_series,
                o.bar,
            )  # fmt: skip
        metrics, metric_solutions = None, list[MetricSolution]()
        if o.learns_metric:
            with o.bar("Learning metrics") as progress:
                metric_solutions = alignments.solve_metrics(
                    chosen["gamma"], chosen["lam"], progress
                )
            metrics = np.stack([solution.metric for solution in metric_solutions])
        with o.bar("Learning separators") as progress:
            separators, positive = alignments.solve_separators(metrics, chosen["gamma"], progress)
    fit = LandmarkFit(
        classes, found.n_series, found.n_steps, row_map, landmarks[:count], indices[:count],
        landmark_codes[:count], np.stack([s.coef for s in separators]), metrics,
        tuple(metric_solutions), tuple(separators), positive, best,
    )  # fmt: skip
    _warn_if_nothing_was_learned(fit)
    return fit


def _searched(codes: IntArray) -> IntArray:
    """Return the series that parameters are chosen on: the first ones, and some of every class."""
    wanted = np.arange(len(codes)) < MOST_TUNING
    if not wanted.all():
        for c in np.unique(codes):
            wanted[np.flatnonzero(codes == c)[:_PER_CLASS]] = True
    return np.flatnonzero(wanted)


def _choose_parameters(
    o: LandmarkOptions,
    found: FirstPass,
    data: SampleAlignments,
    splits: Sequence[Split],
    multiplicities: FloatArray,
) -> tuple[dict[str, Any], SearchResult | None]:
    """Return the parameters with the best held-out accuracy, and all scores if there are any."""
    counts = _landmark_counts(o, found, data.n_landmarks)
    if not splits:
        return {"n_landmarks": counts[0], **o.parameters[0]}, None
    with o.bar("Trying parameters on held-out series") as progress:
        best = search(data, counts, o.parameters, splits, multiplicities, progress=progress)
    return best.best_params, best


def _sample_size(o: LandmarkOptions, limit: float) -> SampleSize:
    if o.regularizer != "frobenius":
        # Only the Frobenius problem can be solved in parts.
        return SampleSize(np.inf, limit)
    fewest = 1
    if isinstance(o.landmarks, str):
        wanted = np.atleast_1d(
            np.asarray(_MOST_LANDMARKS if o.n_landmarks is None else o.n_landmarks)
        )
        fewest = int(wanted.max(initial=1)) if wanted.dtype.kind in "iu" else 1
    return SampleSize(np.inf, limit * SAMPLE_SHARE, fewest, _PER_CLASS)


def _plan(
    o: LandmarkOptions,
    limit: float,
    runner: TaskRunner,
    found: FirstPass,
    n_rows: int,
    n_landmarks: int,
) -> MemoryPlan | None:
    """Return how parts are held in memory; None if all alignments fit."""
    work = LandmarkWork.count(
        found, n_rows=n_rows, n_landmarks=n_landmarks, dtype=o.settings.dtype,
        learns_metric=o.learns_metric,
    )  # fmt: skip
    plan = MemoryPlan.make(work, limit, runner)
    if plan is None:
        return None
    if o.regularizer != "frobenius":
        needed = f" ({format_bytes(work.in_memory)})" if work.complete else ""
        raise ValueError(
            f"The 'memory_limit' parameter of {o.owner} is too small: {format_bytes(limit)}. "
            f"With regularizer={o.regularizer!r} all alignments must be in memory{needed}. Raise "
            f"it, or use fewer n_landmarks."
        )
    plan.check(o.owner)
    return plan


def _choose_landmarks(
    o: LandmarkOptions,
    source: SeriesSource,
    runner: TaskRunner,
    found: FirstPass,
    rows: SeriesBatch,
) -> tuple[SeriesBatch, IntArray, IntArray]:
    """Return landmarks, their numbers in the source, and their classes."""
    sample = found.sample
    if not isinstance(o.landmarks, str) or o.landmarks not in METHODS:
        indices = check_landmarks(o.landmarks, found.n_series, o.owner)
        series, labels = fetch(source, runner, found.offsets, indices)
        return series, indices, np.searchsorted(found.classes, labels).astype(np.int64)
    count = max(_landmark_counts(o, found, found.n_series))
    chosen = landmark_positions(
        o.landmarks, count, rows[: sample.n_uniform], o.settings,
        owner=o.owner, device=o.device, n_jobs=o.n_jobs, seed=o.seed,
    )  # fmt: skip
    return sample.series[chosen], found.indices[chosen], found.codes[chosen]


def landmark_positions(
    method: str,
    count: int,
    rows: SeriesBatch,
    settings: AlignmentSettings,
    *,
    owner: str,
    device: str,
    n_jobs: int | None,
    seed: int,
) -> IntArray:
    """Choose landmarks among rows in the order of their keys, which is random."""
    pool = min(len(rows), _MEDOID_POOL) if method == "kmedoids" else len(rows)
    if count > pool:
        raise ValueError(
            f"The 'n_landmarks' parameter of {owner} asks for {count} landmarks, but they are "
            f"chosen among {pool} series: use fewer, or raise memory_limit. (Medoids are chosen "
            f"among at most {_MEDOID_POOL} series.)"
        )
    if method == "random":
        return np.arange(count)
    chosen = select_landmarks(
        rows[:pool], count, method=method, objective=settings.objective, band=settings.band,
        normalize=False, random_state=seed, device=device, n_jobs=n_jobs,
    )  # fmt: skip
    # Medoids have no order; the order of the keys makes the first few a random choice of them.
    return np.sort(chosen) if method == "kmedoids" else chosen


def _landmark_counts(o: LandmarkOptions, found: FirstPass, most: int) -> list[int]:
    """Return the numbers of landmarks to try, ascending, none larger than `most`."""
    several = isinstance(o.n_landmarks, Sequence | np.ndarray) and not isinstance(
        o.n_landmarks, str
    )
    if several and o.cv_name != "cv":
        raise ValueError(
            f"The 'n_landmarks' parameter of {o.owner} must be a number: only the CV variants "
            f"choose from a list. Got {o.n_landmarks!r} instead."
        )
    if several and len(o.n_landmarks) == 0:
        raise ValueError(
            f"The 'n_landmarks' parameter of {o.owner} must not be an empty list. "
            f"Got {o.n_landmarks!r} instead."
        )
    if not isinstance(o.landmarks, str) and not several:
        return [most]
    n_distinct = len(found.sample) if found.complete else found.n_series
    if o.n_landmarks is None:
        counts = [min(_MOST_LANDMARKS, max(1, round(_LANDMARK_SHARE * n_distinct)))]
    else:
        wanted = o.n_landmarks if several else [o.n_landmarks]
        counts = [_resolved(n, n_distinct, found.n_series) for n in wanted]
    return sorted({min(count, most) for count in counts})


def _resolved(n_landmarks: Any, n_distinct: int, n_series: int) -> int:
    """Return a count; a fraction is one of the distinct series, which a count cannot exceed."""
    is_fraction = isinstance(n_landmarks, float | np.floating)
    count = resolve_count(n_landmarks, n_distinct if is_fraction else n_series)
    return min(count, n_distinct)


def _warn_if_nothing_was_learned(fit: LandmarkFit) -> None:
    """Warn if M is almost zero, or if every decision is negative."""
    warn_about_missing_classes(fit.classes, fit.landmark_codes)
    labels = fit.classes.tolist()
    positives = labels[1:] if len(labels) == 2 else labels
    for label, solution in zip(positives, fit.metric_solutions, strict=False):
        if solution.loss > 1 - 1e-3:
            warn(
                f"The metric of class {label!r} collapsed to almost zero (training hinge "
                f"{solution.loss:.4f}): lower lam or gamma.",
            )
    if len(labels) > 2 and not fit.some_positive:
        warn(
            "Every one-vs-rest problem predicts the negative class for all training series: lower "
            "gamma or lam, and centre and scale the channels if they have offsets.",
        )


def warn_about_missing_classes(classes: AnyArray, landmark_codes: IntArray) -> None:
    """Warn if some class has no landmark."""
    missing = np.setdiff1d(np.arange(len(classes)), landmark_codes)
    if len(missing):
        names = ", ".join(map(repr, classes[missing].tolist()))
        warn(
            f"No landmark is of class {names}: raise n_landmarks, or give landmarks= that cover "
            f"every class.",
        )
