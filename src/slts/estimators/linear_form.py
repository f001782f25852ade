"""The one form all landmark classifiers share: linear in the aligned products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.estimators.rows import RowMap
from slts.series import SeriesBatch


@dataclass(frozen=True)
class LinearForm:
    """Decision values intercept[c] + sum_j coef[c, j] <metrics[c], T(x, landmark j)>.

    Parameters
    ----------
    positives
        The class each problem argues for, shape (problems,).
    landmarks
        Landmarks with a weight in some problem, their rows mapped.
    landmark_indices
        Which training series they are.
    coef
        Shape (problems, landmarks).
    metrics
        Shape (problems, d, d).
    intercept
        Shape (problems,).
    rows
        How rows are mapped before alignment.
    settings
        How paths are found.
    """

    positives: npt.NDArray[Any]
    landmarks: SeriesBatch
    landmark_indices: IntArray
    coef: FloatArray
    metrics: FloatArray
    intercept: FloatArray
    rows: RowMap
    settings: AlignmentSettings
