"""The one form all landmark classifiers share: linear in the aligned products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.series import SeriesBatch


class Rows(Protocol):
    """How series become the rows that are aligned, and how sums over rows lead back to them."""

    def __call__(self, batch: SeriesBatch) -> SeriesBatch:
        """Rows ready for alignment."""
        ...

    def attribute(self, batch: SeriesBatch, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Share sum_iu rows[i, u] slopes[c, i, u] out among steps and channels of one series.

        Returns contributions of shape (problems, steps, channels), and what belongs to none.
        """
        ...


@dataclass(frozen=True)
class LinearForm:
    """Sums sum_j coef[c, j] sum_f <metrics[c, group(j), f], T_f(x, landmark j)>.

    T_f is the part of the aligned product in phase f of the landmark. A model's decision values
    are the sums of its forms, plus their intercepts.

    Parameters
    ----------
    name
        What these rows show of the series; empty where there is one form only.
    positives
        The class each problem argues for, shape (problems,).
    landmarks
        Landmarks with a weight in some problem, their rows mapped.
    landmark_indices
        Which training series they are.
    coef
        Shape (problems, landmarks).
    local_metrics
        Shape (problems, groups, phases, d, d).
    groups
        Group of each landmark, shape (landmarks,).
    group_names
        What the landmarks of a group have in common.
    intercept
        Shape (problems,).
    rows
        How rows are mapped before alignment.
    settings
        How paths are found.
    """

    name: str
    positives: npt.NDArray[Any]
    landmarks: SeriesBatch
    landmark_indices: IntArray
    coef: FloatArray
    local_metrics: FloatArray
    groups: IntArray
    group_names: tuple[str, ...]
    intercept: FloatArray
    rows: Rows
    settings: AlignmentSettings

    @property
    def n_phases(self) -> int:
        """Parts a path is cut into, in landmark time."""
        return int(self.local_metrics.shape[2])

    @property
    def metrics(self) -> FloatArray:
        """The metric of each problem where there is one only, shape (problems, d, d)."""
        if self.local_metrics.shape[1:3] != (1, 1):
            raise ValueError("There are several metrics per class: see local_metrics.")
        metrics: FloatArray = self.local_metrics[:, 0, 0]
        return metrics
