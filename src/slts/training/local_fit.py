"""Learning of the local classifier, the same for memory, files and clusters.

count and sample -> representations -> landmarks and groups -> align, solve, form metrics

If the sample does not hold all series, it decides everything but the coefficients: these are the
solution for all series.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from slts._typing import AnyArray, IntArray
from slts.alignment import AlignmentSettings
from slts.execution import ThreadRunner
from slts.landmarks import check_landmarks, resolve_count
from slts.learning.calibration import Validation
from slts.models.origins import Origins
from slts.models.representations import Representation
from slts.models.snippets import Snippets
from slts.quantities import format_bytes
from slts.series import SeriesBatch
from slts.series.channels import pool_steps
from slts.series.source import SeriesSource
from slts.training.first_pass import FirstPass, class_weights, count_and_sample
from slts.training.held_out import HeldOutDecisions
from slts.training.landmark_choice import (
    choose_landmarks,
    landmark_positions,
    warn_about_missing_classes,
)
from slts.training.local_metrics import (
    CANDIDATES,
    LocalOptions,
    LocalSolution,
    LocalTraining,
    bytes_for_fits,
    fit_bytes,
    learn_local_metrics,
    snippet_shares,
    training_bytes,
)
from slts.training.partitioned_ridge import PartitionedRidge, one_vs_rest
from slts.training.sampling import SampleSize, shuffled
from slts.training.source import memory_limit, task_runner

_LOGGER = logging.getLogger("slts")

# Landmarks of each class; fewer if there are many classes.
_LANDMARKS_PER_CLASS, _LANDMARKS = 10, 200
# Metrics grow with classes times groups: beyond this number, classes share groups.
_MOST_GROUPS = 32
# Ridge regression is exact up to this many series; beyond, this many span the solution.
_ANCHORS = 2000
# Series that choose phases and snippets: at least so many, and so many of each class, but no more
# than the anchors. With fewer of a class, the weight of the snippets is too large.
_TUNING_SERIES, _TUNING_SERIES_PER_CLASS = 1000, 10
# Most series that are learned from in memory. Beyond, a sample of fewer series, some of each
# class, decides everything but the coefficients. Its share of the memory.
_MOST, _FEWEST, _MOST_SAMPLED, _PER_CLASS_DRAWN, _SAMPLE_SHARE = 100_000, 1000, 20_000, 50, 1 / 16
# Anchors are drawn independently of landmarks, which are the series with the smallest keys.
_ANCHOR_PURPOSE = 2


@dataclass(frozen=True)
class LocalFit:
    """What was learned.

    `held_out` are leave-one-out decisions, and the classes and weights of their series.
    """

    first_pass: FirstPass
    landmarks: SeriesBatch
    landmark_indices: IntArray
    origins: Origins
    groups: IntArray
    group_names: tuple[str, ...]
    snippets: Snippets | None
    solution: LocalSolution
    held_out: HeldOutDecisions
    validation: Validation


def fit_local(source: SeriesSource, options: LocalOptions) -> LocalFit:
    """Learn local metrics."""
    limit = memory_limit(options.memory_limit, options.owner)
    size = SampleSize(_MOST, limit * _SAMPLE_SHARE, per_class=_PER_CLASS_DRAWN)
    with task_runner(options.n_jobs, source) as runner:
        with options.bar("Reading") as progress:
            first_pass = count_and_sample(
                source, runner, size, seed=options.seed, progress=progress
            )
        # All series, or an upper bound if equal series may not all be known.
        n_distinct = len(first_pass.sample) if first_pass.complete else first_pass.n_series
        first_pass = _cap_sample_to_memory(first_pass, options, limit)
        batch, codes = first_pass.sample.series, first_pass.codes
        classes = first_pass.classes
        by_class = class_weights(options.class_weight, classes, first_pass.totals)
        weights = first_pass.multiplicities(np.arange(len(batch))) * by_class[codes]

        count = _landmark_count(options, codes, first_pass.n_series)
        # Once, and not in every task.
        pooled = pool_steps(batch, options.max_length)
        tasks: list[Callable[[], Any]] = [
            partial(
                Representation.fit, pooled, name, max_length=options.max_length,
                n_components=options.n_components,
            )
            for name in options.representations
        ]  # fmt: skip
        if options.n_snippets:
            n_drawn = CANDIDATES * options.n_snippets
            tasks.append(partial(Snippets.draw, batch, codes, n_drawn, options.seed))
        side_by_side = ThreadRunner(options.n_jobs)
        made = list(side_by_side.map(lambda task, *_: task(), tasks))
        representations: list[Representation] = made[: len(options.representations)]
        snippets: Snippets | None = made[-1] if options.n_snippets else None

        def draw() -> IntArray:
            if options.landmarks == "random":
                return stratified(codes, count, np.arange(len(codes)))
            settings = AlignmentSettings("cost", options.settings[0].band, normalize=False)
            return landmark_positions(options, count, representations[0](batch), settings)

        landmarks, indices, landmark_codes = choose_landmarks(
            options, source, runner, first_pass, draw
        )
        warn_about_missing_classes(classes, landmark_codes)
        groups, group_names = _group_landmarks(options, classes, landmark_codes, indices)
        order = shuffled(first_pass.sample.keys, _ANCHOR_PURPOSE)
        everything = None
        if not first_pass.complete:
            # In the sums, the weights of all series have mean 1.
            by_class = by_class * n_distinct / float(first_pass.totals @ by_class)
            everything = PartitionedRidge(
                source,
                runner,
                first_pass.labels,
                by_class,
                first_pass.sample.weights * by_class[codes],
                batch.values.nbytes / len(batch),
                limit - 2 * batch.values.nbytes - 8 * len(batch) * min(len(batch), _ANCHORS),
                options.bar,
            )
        # Tuning series are not held out, so other series of a sample must be left for that.
        available = len(batch) if first_pass.complete else len(batch) // 2
        # A class of one series is unknown once that is left out.
        n_tuning = _tuning_count(int(np.count_nonzero(np.bincount(codes) > 1)))
        tuning = stratified(codes, min(available, n_tuning), order)
        solution = learn_local_metrics(
            LocalTraining(
                batch,
                codes,
                weights / weights.mean(),
                one_vs_rest(codes, len(classes)),
                stratified(codes, _ANCHORS, order),
                tuning,
                landmarks,
                groups,
                snippets,
                everything,
            ),
            representations,
            options,
            bytes_for_fits(limit),
        )
    # Snippets name their series by their numbers in the source.
    named, from_sample = solution.snippets, np.empty(0, dtype=np.int64)
    if named is not None:
        from_sample = np.unique(named.series)
        named = replace(named, series=first_pass.indices[named.series])
    origins = Origins.of(
        SeriesBatch.concatenate([landmarks, batch[from_sample]]),
        np.concatenate([indices, first_pass.indices[from_sample]]),
        np.concatenate([landmark_codes, codes[from_sample]]),
    )
    left_out = _left_out(first_pass, tuning, options)
    held_out = (
        solution.ridge.left_out[left_out],
        codes[left_out],
        first_pass.multiplicities(left_out),
    )
    validation = Validation.of("leave-one-out", *held_out, series=left_out)
    return LocalFit(
        first_pass, landmarks, indices, origins, groups, group_names, named, solution, held_out,
        validation,
    )  # fmt: skip


def _left_out(first_pass: FirstPass, tuning: IntArray, options: LocalOptions) -> IntArray:
    """Return the series whose leave-one-out decisions describe the model.

    Decisions for tuning series are those of the fit to them. Beside a fit to many more series they
    are used only for classes that have no other series in the sample.
    """
    every = np.arange(len(first_pass.codes))
    if first_pass.complete or not options.n_snippets:
        return every
    others = np.setdiff1d(every, tuning)
    alone = ~np.isin(first_pass.codes[tuning], first_pass.codes[others])
    return np.union1d(others, tuning[alone])


def stratified(codes: IntArray, count: int, order: IntArray) -> IntArray:
    """Return `count` positions, as evenly from all classes as their sizes allow.

    The first of every class in `order` are taken, then the second, and so on.
    """
    if count >= len(codes):
        return np.arange(len(codes))
    ranks = np.empty(len(codes), dtype=np.int64)
    for c in np.unique(codes):
        members = order[codes[order] == c]
        ranks[members] = np.arange(len(members))
    return np.sort(order[np.argsort(ranks[order], kind="stable")][:count])


def _tuning_count(n_classes: int) -> int:
    return min(max(_TUNING_SERIES, _TUNING_SERIES_PER_CLASS * n_classes), _ANCHORS)


def _cap_sample_to_memory(first_pass: FirstPass, options: LocalOptions, limit: float) -> FirstPass:
    """Return as much of the sample as can be learned from in `limit` bytes."""
    sample, n_classes = first_pass.sample, len(first_pass.classes)
    n_groups = {"shared": 1, "class": min(n_classes, _MOST_GROUPS)}.get(
        options.metrics, n_classes * _landmarks_per_class(n_classes)
    )
    n_fits = len(options.phases) * len(snippet_shares(options))

    def needed(count: int) -> float:
        # One channel more: the steps may have times.
        channels = sample.series.n_channels
        series = count * sample.series.values.nbytes * (channels + 1) / channels / len(sample)
        n_tuning = min(count, _tuning_count(n_classes))
        bytes_per_fit = fit_bytes(n_tuning, n_classes, len(options.penalties))
        learning = training_bytes(
            count,
            min(count, _ANCHORS),
            n_tuning,
            n_channels=Representation.most_channels(sample.series.n_channels, options.n_components),
            rank=options.metric_rank,
            n_groups=n_groups,
            n_phases=options.phases[-1],
            n_comparisons=options.n_comparisons,
            n_snippets=options.n_snippets,
            bytes_of_fits=max(bytes_per_fit, min(n_fits * bytes_per_fit, bytes_for_fits(limit))),
            is_sample=not first_pass.complete or count < len(sample),
        )
        return max(2.0 * series + learning, series / _SAMPLE_SHARE)

    most = len(sample)
    while needed(most) > limit and most > 1:
        most -= max(1, most // 50)
    if most < len(sample) or not first_pass.complete:
        most = min(most, _MOST_SAMPLED)
    if most < len(sample):
        fewest = min(max(_FEWEST, 3 * n_classes), first_pass.n_series)
        if most < fewest:
            raise ValueError(
                f"The 'memory_limit' parameter of {options.owner} is too small: "
                f"{format_bytes(limit)}. Learning from a sample of {fewest} series needs "
                f"{format_bytes(1.06 * needed(fewest))}. Raise it, or use fewer representations, "
                f"objectives, phases or snippets."
            )
        per_class = min(_PER_CLASS_DRAWN, max(2, most // (2 * n_classes)))
        count = most - per_class * n_classes
        kept = sample.first(count, per_class)
        # The first series have most of every class already, so more of them fit.
        sample = sample.first(count + most - len(kept), per_class)
        first_pass = replace(first_pass, sample=sample, complete=False)
    if not first_pass.complete:
        _LOGGER.info(
            "%s draws landmarks and snippets from a sample of %d of %d series (memory_limit: %s)",
            options.owner, len(sample), first_pass.n_series, format_bytes(limit),
        )  # fmt: skip
    return first_pass


def _landmarks_per_class(n_classes: int) -> int:
    return max(4, min(_LANDMARKS_PER_CLASS, _LANDMARKS // n_classes))


def _landmark_count(options: LocalOptions, codes: IntArray, n_series: int) -> int:
    if not isinstance(options.landmarks, str):
        return len(check_landmarks(options.landmarks, n_series, options.owner))
    if options.n_landmarks is None:
        most = options.n_landmarks_per_class or _landmarks_per_class(int(codes.max()) + 1)
        return int(np.minimum(np.bincount(codes), most).sum())
    is_fraction = isinstance(options.n_landmarks, float | np.floating)
    return min(
        resolve_count(options.n_landmarks, len(codes) if is_fraction else n_series), len(codes)
    )


def _group_landmarks(
    options: LocalOptions, classes: AnyArray, codes: IntArray, indices: IntArray
) -> tuple[IntArray, tuple[str, ...]]:
    """Return the group of each landmark, and the names of the groups; a group shares a metric."""
    present, groups = np.unique(codes, return_inverse=True)
    names = [str(label) for label in classes[present]]
    if options.metrics == "shared":
        groups, names = np.zeros(len(codes), dtype=np.int64), ["all"]
    elif options.metrics == "landmark":
        groups = np.arange(len(codes))
        names = [f"{classes[c]} #{j}" for c, j in zip(codes, indices, strict=True)]
    elif len(present) > _MOST_GROUPS:
        # Too many pairs of classes for a metric each: deal the classes out evenly.
        dealt = np.random.RandomState(options.seed).permutation(len(present)) % _MOST_GROUPS
        names = [" ".join(np.asarray(names)[dealt == g]) for g in range(_MOST_GROUPS)]
        groups = dealt[groups]
    return np.asarray(groups, dtype=np.int64), tuple(names)
