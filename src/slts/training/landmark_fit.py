"""Learning of SLTS and BBS.

choose landmarks -> align once -> choose parameters on held-out series -> metrics -> separators
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner
from slts.errors import warn
from slts.execution import memory_limit
from slts.features.aligned_products import AlignedProducts
from slts.features.linear_model import LinearModel
from slts.features.origins import Origins
from slts.features.row_map import RowMap
from slts.quantities import format_bytes
from slts.solvers import MetricSolution, SeparatorSolution
from slts.training.alignments import Alignments
from slts.training.held_out import SearchResult, Split, make_splits, search
from slts.training.landmarks import (
    landmark_indices,
    landmark_positions,
    resolve_count,
    warn_about_missing_classes,
)
from slts.training.options import LandmarkOptions
from slts.training.training_set import TrainingSet

# The paper's rule: half of a small training set, 100 landmarks of a large one.
_MOST_LANDMARKS, _LANDMARK_SHARE = 100, 0.5
# Share of the memory for alignments, and the fewest series that are learned from.
_ALIGNMENT_SHARE, _FEWEST = 1 / 2, 100
# Series that parameters are chosen on.
_MOST_TUNING = 10_000


@dataclass(frozen=True)
class LandmarkFit:
    """What was learned, and the solves behind it.

    `metrics` are solved problems, none where M = I; `chosen` are gamma and lam; `search` is None if
    nothing was held out; `n_sampled` is the number of distinct series that were learned from.
    """

    model: LinearModel
    landmark_indices: IntArray
    origins: Origins
    metrics: Sequence[MetricSolution]
    separators: Sequence[SeparatorSolution]
    chosen: dict[str, float]
    search: SearchResult | None
    n_sampled: int


def fit_landmarks(data: TrainingSet, options: LandmarkOptions) -> LandmarkFit:
    """Learn metrics and separators from the series that fit in memory with their alignments."""
    row_map = RowMap.fit(
        data.series, scale=options.scale, homogeneous=options.homogeneous,
        normalize=options.settings.normalize,
    )  # fmt: skip
    counts = _landmark_counts(data, options)
    data = _that_fit(data, counts[-1], row_map, options)
    # Alignments take longest: an error about cv comes first.
    tuning = data.first(_MOST_TUNING)
    splits = make_splits(options.cv, data.take(tuning), options.cv_name)
    rows = row_map(data.series, options.n_jobs)
    if not row_map.normalize:
        options.settings.check_rows(rows)
    positions = landmark_positions(
        data, rows, options.settings, min(counts[-1], len(data)), options
    )

    weights = data.loss_weights(options.class_weight)
    aligner = Aligner(rows[positions], options.settings, options.device, options.n_jobs)
    with options.bar("Aligning with landmarks") as progress:
        align = aligner.products if options.learns_metric else aligner.similarities
        values = align(rows, progress=progress)
    alignments = Alignments(
        similarities=None if options.learns_metric else values,
        products=values if options.learns_metric else None,
        codes=data.codes, landmark_codes=data.codes[positions], weights=weights,
        n_classes=len(data.classes), regularizer=options.regularizer, n_jobs=options.n_jobs,
    )  # fmt: skip

    # Without a copy of all alignments, which are large.
    some = alignments if len(tuning) == len(data) else alignments.take(tuning)
    chosen, result = _choose_parameters(data.take(tuning), some, splits, counts, options)
    count = int(chosen.pop("n_landmarks"))
    positions = positions[:count]
    with options.bar("Learning metrics and separators") as progress:
        metrics, separators, positive = alignments.first_landmarks(count).solve(
            chosen["gamma"], chosen.get("lam", 0.0), progress
        )
    _warn_if_nothing_was_learned(data.classes, data.codes[positions], metrics, positive)

    coef = np.stack([separator.coef for separator in separators])
    landmarks, indices = data.series[positions], landmark_indices(data, positions, options)
    feature_map = AlignedProducts(
        "similarity", landmarks, row_map, options.settings, coef, bank_per_output=True
    )
    d = feature_map.shape[-1]
    M = np.stack([m.metric for m in metrics]) if metrics else np.tile(np.eye(d), (len(coef), 1, 1))
    return LandmarkFit(
        LinearModel((feature_map,), (M[:, np.newaxis, np.newaxis],), np.zeros(len(coef))),
        indices, Origins.of(landmarks, indices, data.codes[positions]), metrics, separators,
        {name: float(value) for name, value in chosen.items()}, result, len(data),
    )  # fmt: skip


def _landmark_counts(data: TrainingSet, options: LandmarkOptions) -> list[int]:
    """Return the numbers of landmarks to try, ascending."""
    several = isinstance(options.n_landmarks, Sequence | np.ndarray)
    n_distinct = len(data) if data.scan is None else data.n_series
    if not isinstance(options.landmarks, str):
        most = len(options.landmarks)
        wanted = options.n_landmarks if several else [most]
    elif options.n_landmarks is None:
        most, wanted = (
            n_distinct,
            [min(_MOST_LANDMARKS, max(1, round(_LANDMARK_SHARE * n_distinct)))],
        )
    else:
        most, wanted = n_distinct, options.n_landmarks if several else [options.n_landmarks]

    def resolved(n: Any) -> int:
        is_fraction = isinstance(n, float | np.floating)
        return min(resolve_count(n, n_distinct if is_fraction else data.n_series), most)

    return sorted({resolved(n) for n in wanted})


def _that_fit(
    data: TrainingSet, n_landmarks: int, row_map: RowMap, options: LandmarkOptions
) -> TrainingSet:
    """Return the first series whose alignments fit in memory, and some of every class."""
    limit = memory_limit(options.memory_limit, options.owner)
    d = data.series.n_channels + (row_map.constant is not None)
    item = np.dtype(options.settings.dtype).itemsize
    # One number, or T and its sums over the landmarks of each class.
    n_numbers = n_landmarks
    if options.learns_metric:
        n_numbers = d * d * (n_landmarks + 3 * len(data.classes))
    most = int(_ALIGNMENT_SHARE * limit / (item * n_numbers))
    if most >= len(data):
        return data
    if most < _FEWEST:
        # A little more, because it is rounded.
        needed = 1.06 * _FEWEST * item * n_numbers / _ALIGNMENT_SHARE
        raise ValueError(
            f"The 'memory_limit' parameter of {options.owner} is too small: {format_bytes(limit)}. "
            f"Learning from {_FEWEST} series needs {format_bytes(needed)}. Raise it, or lower "
            f"n_landmarks."
        )
    return data.take(data.first(most))


def _choose_parameters(
    data: TrainingSet,
    alignments: Alignments,
    splits: list[Split],
    counts: Sequence[int],
    options: LandmarkOptions,
) -> tuple[dict[str, Any], SearchResult | None]:
    """Return the parameters with the best held-out accuracy, and all scores if there are any."""
    if not splits:
        return {"n_landmarks": counts[0], **options.parameters[0]}, None
    candidates = [{"n_landmarks": n, **p} for n in counts for p in options.parameters]
    by_count: list[list[FloatArray]] = []
    with options.bar("Trying parameters on held-out series") as progress:

        def advance(done: float, total: float) -> None:
            progress(len(by_count) * total + done, len(counts) * total)

        for count in counts:
            first = alignments.first_landmarks(count)
            by_count.append(first.held_out_decisions(splits, options.parameters, advance))
    decisions = [np.concatenate(of_split) for of_split in zip(*by_count, strict=True)]
    weights = data.weights / data.weights.mean()
    result = search(
        decisions, candidates, splits, data.codes, alignments.weights, weights, groups=data.groups
    )
    return result.best_params, result


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
