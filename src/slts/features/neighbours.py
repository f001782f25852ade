"""The model of nearest neighbours: all training series, and how a series is compared with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.features.feature_map import PlainState, Resources
from slts.features.row_map import RowMap, require
from slts.series import SeriesBatch
from slts.series.values import transform_rows


@dataclass(frozen=True, eq=False)
class Neighbours(PlainState):
    """Training series as rows, their classes, and how series are compared with them.

    Parameters
    ----------
    row_map, settings
        How series become rows, and how these are aligned.
    rows, codes
        The training series as rows, and their classes.
    metric
        M of the distance (a - b)'M(a - b); None compares by the similarity K_I.
    """

    row_map: RowMap
    settings: AlignmentSettings
    rows: SeriesBatch
    codes: IntArray
    metric: FloatArray | None = None

    def __post_init__(self) -> None:
        require(len(self.codes) == len(self.rows), "codes")
        d = self.rows.n_channels
        require(self.metric is None or self.metric.shape == (d, d), "metric")

    @classmethod
    def fit(
        cls,
        series: SeriesBatch,
        codes: IntArray,
        settings: AlignmentSettings,
        *,
        scale: str | None,
        homogeneous: bool | str,
    ) -> Neighbours:
        """Keep training series as rows, without their names."""
        row_map = RowMap.fit(
            series, scale=scale, homogeneous=homogeneous, normalize=settings.normalize
        )
        rows = row_map(series)
        settings.check_rows(rows)
        return cls(row_map, settings, rows.anonymous(), codes)

    def decide(self, batch: SeriesBatch, resources: Resources) -> FloatArray:
        """Return decision values from the nearest series of each class."""
        return nearest_decisions(self.nearness(batch, resources), self.codes)

    def nearness(self, batch: SeriesBatch, resources: Resources) -> FloatArray:
        """Return the nearness to each training series, shape (series, training series)."""
        rows = self.row_map(batch, resources.n_jobs)
        if not self.row_map.normalize:
            self.settings.check_rows(rows)
        return self.nearness_of_rows(rows, resources)

    def nearness_of_rows(self, rows: SeriesBatch, resources: Resources) -> FloatArray:
        """Return the nearness of rows: the similarity, or minus the distance."""
        aligner = self._aligner.on(*resources)
        if self.metric is None:
            return np.asarray(aligner.similarities(rows), dtype=np.float64)
        distances = aligner.distances(transform_rows(rows, self.metric))
        return -np.asarray(distances, dtype=np.float64)

    @cached_property
    def _aligner(self) -> Aligner:
        rows = self.rows if self.metric is None else transform_rows(self.rows, self.metric)
        return Aligner(rows, self.settings)


def nearest_decisions(nearness: FloatArray, codes: IntArray) -> FloatArray:
    """Return the nearness of the nearest series of each class; of two classes, the difference.

    Every class has at least one of the series that `nearness` has as columns.
    """
    nearest = np.column_stack([nearness[:, codes == c].max(axis=1) for c in np.unique(codes)])
    return nearest if nearest.shape[1] > 2 else nearest[:, 1:] - nearest[:, :1]
