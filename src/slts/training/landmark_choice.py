"""What all fits over landmarks share: parameters; landmarks given, or chosen in the sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slts._typing import AnyArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.errors import warn
from slts.execution import Bar, TaskRunner
from slts.landmarks import check_landmarks, choose_in_order
from slts.series import SeriesBatch
from slts.series.source import SeriesSource
from slts.training.first_pass import FirstPass, fetch

# K-medoids needs all pairs: it chooses among this many series.
_MEDOID_POOL = 2_000


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Parameters that all classifiers over landmarks have; `owner` names it in messages."""

    owner: str
    n_landmarks: Any
    landmarks: Any
    class_weight: Any
    device: str
    n_jobs: int | None
    memory_limit: Any
    seed: int
    bar: Bar


def choose_landmarks(
    options: FitOptions,
    source: SeriesSource,
    runner: TaskRunner,
    first_pass: FirstPass,
    draw: Callable[[], IntArray],
) -> tuple[SeriesBatch, IntArray, IntArray]:
    """Return landmarks, their numbers in the source, and their classes.

    `draw` returns positions in the sample; it is called unless the landmarks are given as indices.
    """
    if isinstance(options.landmarks, str):
        chosen = draw()
        return (
            first_pass.sample.series[chosen],
            first_pass.indices[chosen],
            first_pass.codes[chosen],
        )
    indices = check_landmarks(options.landmarks, first_pass.n_series, options.owner)
    series, labels = fetch(source, runner, first_pass.offsets, indices)
    return series, indices, np.searchsorted(first_pass.labels, labels).astype(np.int64)


def landmark_positions(
    options: FitOptions, count: int, rows: SeriesBatch, settings: AlignmentSettings
) -> IntArray:
    """Choose landmarks among rows in the order of their keys, which is random."""
    method: str = options.landmarks
    pool = min(len(rows), _MEDOID_POOL) if method == "kmedoids" else len(rows)
    if count > pool:
        raise ValueError(
            f"The 'n_landmarks' parameter of {options.owner} asks for {count} landmarks, but they "
            f"are chosen among {pool} series: use fewer, or raise memory_limit. (Medoids are "
            f"chosen among at most {_MEDOID_POOL} series.)"
        )
    # The choice must not depend on the precision of the model.
    settings = replace(settings, dtype="float64")
    aligner = Aligner(rows[:pool], settings, options.device, options.n_jobs)
    # Medoids have no order; the order of the keys makes the first few a random choice of them.
    with options.bar("Choosing landmarks") as progress:
        return choose_in_order(aligner, count, method, options.seed, progress)


def warn_about_missing_classes(classes: AnyArray, landmark_codes: IntArray) -> None:
    """Warn if some class has no landmark."""
    missing = np.setdiff1d(np.arange(len(classes)), landmark_codes)
    if len(missing):
        names = ", ".join(map(repr, classes[missing].tolist()))
        warn(
            f"There is no landmark of class {names}: raise n_landmarks, or give landmarks= that "
            f"cover every class.",
        )
