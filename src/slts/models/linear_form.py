"""Decisions of landmark classifiers as linear forms of aligned products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.series import SeriesBatch


class RowMapping(Protocol):
    """A map from series to the rows that are aligned, and the attribution back to the series."""

    def __call__(self, batch: SeriesBatch) -> SeriesBatch:
        """Return rows ready for alignment."""
        ...

    def attribute(self, batch: SeriesBatch, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Attribute sum_iu rows[i, u] slopes[c, i, u] to steps and channels of one series.

        Returns contributions of shape (problems, steps, channels), and the rest of each problem.
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
        Name of the comparison; empty if there is one form only.
    positives
        The positive class of each problem, shape (problems,).
    landmarks
        Rows of the landmarks that have a weight in some problem.
    landmark_indices
        Positions of the landmarks among the training series.
    coef
        Shape (problems, landmarks).
    local_metrics
        Shape (problems, groups, phases, d, d).
    groups
        Group of each landmark, shape (landmarks,).
    group_names
        Names of the groups.
    intercept
        Shape (problems,).
    rows
        Map from series to rows.
    settings
        How rows are aligned.
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
    rows: RowMapping
    settings: AlignmentSettings

    @property
    def n_phases(self) -> int:
        """Number of parts of a landmark with metrics of their own."""
        return int(self.local_metrics.shape[2])

    @property
    def has_one_metric(self) -> bool:
        """Whether all groups and phases of a problem share one metric."""
        return self.local_metrics.shape[1:3] == (1, 1)

    @property
    def metrics(self) -> FloatArray:
        """The metric of each problem, shape (problems, d, d), if there is one only."""
        if not self.has_one_metric:
            raise ValueError("There are several metrics per class: use local_metrics.")
        metrics: FloatArray = self.local_metrics[:, 0, 0]
        return metrics


def decision_of(classes: npt.NDArray[Any], label: Any) -> tuple[int, float]:
    """Return the position of the decision value of a class, and its sign: 1 or -1.

    Two classes share one decision value, which supports the second class. Multiplied by -1, it
    supports the first class.
    """
    known = classes.tolist()
    if label not in known:
        names = ", ".join(map(repr, known))
        raise ValueError(f"The 'label' parameter must be one of {names}. Got {label!r} instead.")
    position = known.index(label)
    return (position, 1.0) if len(known) > 2 else (0, 1.0 if position else -1.0)
