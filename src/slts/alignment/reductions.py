"""Module functions for callers that have no `Aligner` yet."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from slts.alignment.aligner import Aligner
from slts.alignment.aligner import Result as Result
from slts.alignment.cpu import CpuBackend
from slts.alignment.settings import AlignmentSettings
from slts.execution import Progress
from slts.series import SeriesBatch

# Callers outside alignment/ move to Aligner; these go then.
PairGrid = CpuBackend


def similarities(
    series: SeriesBatch, landmarks: SeriesBatch, settings: AlignmentSettings,
    *, progress: Progress | None = None, **where: Any,
) -> Result:  # fmt: skip
    """See `Aligner.similarities`."""
    return Aligner(landmarks, settings, **where).similarities(series, progress=progress)


def distances(
    series: SeriesBatch, landmarks: SeriesBatch, settings: AlignmentSettings,
    *, progress: Progress | None = None, **where: Any,
) -> Result:  # fmt: skip
    """See `Aligner.distances`."""
    return Aligner(landmarks, settings, **where).distances(series, progress=progress)


def products(
    series: SeriesBatch, landmarks: SeriesBatch, settings: AlignmentSettings,
    *, progress: Progress | None = None, **where: Any,
) -> Result:  # fmt: skip
    """See `Aligner.products`."""
    return Aligner(landmarks, settings, **where).products(series, progress=progress)


def grouped_products(
    series: SeriesBatch, landmarks: SeriesBatch, weights: npt.ArrayLike,
    settings: AlignmentSettings, *, n_phases: int | None = None,
    progress: Progress | None = None, **where: Any,
) -> Result:  # fmt: skip
    """See `Aligner.grouped`."""
    aligner = Aligner(landmarks, settings, **where)
    return aligner.grouped(series, weights, n_phases=n_phases, progress=progress)


def projected_similarities(
    series: SeriesBatch, landmarks: SeriesBatch, metrics: npt.ArrayLike,
    settings: AlignmentSettings, *, progress: Progress | None = None, **where: Any,
) -> Result:  # fmt: skip
    """See `Aligner.projected`."""
    return Aligner(landmarks, settings, **where).projected(series, metrics, progress=progress)
