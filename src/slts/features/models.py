"""What decision values are computed from: `LinearModel`, `Neighbours`; `Origins` of the series."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.features.aligned_products import AlignedProducts
from slts.features.feature_map import Attribution, PlainState, Resources
from slts.features.row_map import RowMap, require
from slts.features.snippets import Snippets
from slts.series import SeriesBatch
from slts.series.values import transform_rows
from slts.solvers.ridge import matmul


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Outputs intercept[c] + sum over maps of <coefs[map][c], features of the map>.

    Decision values are such outputs. So are inner products with the features of training series,
    from which a ridge regression is learned: other coefficients with the same maps.

    Parameters
    ----------
    maps
        The feature maps.
    coefs
        Coefficients of each map, shape ``(outputs, *map.shape)``.
    intercept
        Shape (outputs,).
    """

    maps: tuple[AlignedProducts | Snippets, ...]
    coefs: tuple[FloatArray, ...]
    intercept: FloatArray

    def __post_init__(self) -> None:
        require(len(self.maps) == len(self.coefs) > 0, "coefs")
        for feature_map, coef in zip(self.maps, self.coefs, strict=True):
            require(coef.shape == (len(self.intercept), *feature_map.shape), "coefs")
            if isinstance(feature_map, AlignedProducts) and feature_map.bank_per_output:
                require(len(feature_map.weights) == len(coef), "weights")

    @property
    def aligned(self) -> tuple[AlignedProducts, ...]:
        """The maps with whole landmarks, which share their landmarks."""
        return tuple(m for m in self.maps if isinstance(m, AlignedProducts))

    @property
    def snippets(self) -> Snippets | None:
        """The map with short landmarks; None if there is none."""
        return next((m for m in self.maps if isinstance(m, Snippets)), None)

    @property
    def snippet_coef(self) -> FloatArray | None:
        """Coefficients of the snippets, shape (outputs, snippets, thresholds, kinds)."""
        return None if self.snippets is None else self.coefs[self.maps.index(self.snippets)]

    def metrics(self, feature_map: int = 0) -> FloatArray:
        """Return the metrics of one of `aligned`, shape (outputs, banks, phases, d, d)."""
        k = range(len(self.aligned))[feature_map]
        return self.aligned[k].metrics(self.coefs[self.maps.index(self.aligned[k])])

    @property
    def n_numbers(self) -> int:
        """Number of stored numbers."""
        coefs = sum(np.count_nonzero(coef) for coef in self.coefs)
        shared = self.intercept.size + self.aligned[0].landmarks.values.size
        return int(sum(map(_count_numbers, self.maps)) + coefs + shared)

    def combined(self, weights: FloatArray, intercept: FloatArray) -> LinearModel:
        """Return linear combinations of the outputs: ``outputs @ weights + intercept``."""
        coefs = tuple(
            matmul(weights.T, coef.reshape(len(coef), -1)).reshape(-1, *coef.shape[1:])
            for coef in self.coefs
        )
        return replace(self, coefs=coefs, intercept=self.intercept @ weights + intercept)

    def decide(self, batch: SeriesBatch, resources: Resources) -> FloatArray:
        """Return the outputs for series, shape (series, outputs)."""
        values = np.tile(self.intercept, (len(batch), 1))
        for feature_map, coef in zip(self.maps, self.coefs, strict=True):
            values += feature_map.decide(batch, coef, resources)
        return values

    def by_landmark(self, batch: SeriesBatch, resources: Resources) -> FloatArray:
        """Return the parts of the landmarks, then those of the snippets.

        Shape (series, outputs, landmarks + snippets). With the intercept they sum to the outputs.
        """
        n_landmarks = self.aligned[0].n_landmarks
        aligned = np.zeros((len(batch), len(self.intercept), n_landmarks))
        parts = [aligned]
        for feature_map, coef in zip(self.maps, self.coefs, strict=True):
            values = feature_map.by_landmark(batch, coef, resources)
            if isinstance(feature_map, AlignedProducts):
                aligned += values
            else:
                parts.append(values)
        return np.concatenate(parts, axis=2)

    def attribute(self, series: SeriesBatch) -> tuple[Attribution, ...]:
        """Send the outputs for one series back to its steps and channels, for each map."""
        return tuple(
            feature_map.attribute(series, coef)
            for feature_map, coef in zip(self.maps, self.coefs, strict=True)
        )


def _count_numbers(part: Any) -> int:
    """Count the numbers of a map, or of a part of it, without landmarks and zero weights."""
    if isinstance(part, AlignedProducts):
        counted = sum(map(_count_numbers, (part.row_map, part.basis)))
        return int(counted + np.count_nonzero(part.weights))
    if is_dataclass(part):
        return sum(_count_numbers(getattr(part, field.name)) for field in fields(part))
    return part.size if isinstance(part, np.ndarray) else int(isinstance(part, float))


# ---- nearest neighbours


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


# ---- the training series that a model keeps


@dataclass(frozen=True, eq=False)
class Origins:
    """The training series that a model keeps, or keeps parts of.

    Parameters
    ----------
    indices
        Their positions among the training series, distinct.
    codes
        Their classes, as positions in `classes_`.
    names
        What the user calls them; None if the data had no identifiers.
    """

    indices: IntArray
    codes: IntArray
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, series: SeriesBatch, indices: IntArray, codes: IntArray) -> Origins:
        """Remember some training series; an index may be repeated."""
        _, first = np.unique(indices, return_index=True)
        return cls(indices[first], codes[first], series[first].series_names)

    def place(self, index: int) -> int | None:
        """Return the place of a training series here; None if it is unknown."""
        return self._places.get(index)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {index: place for place, index in enumerate(self.indices.tolist())}

    def code(self, index: int) -> int | None:
        """Return the class of a training series; None if it is unknown."""
        place = self.place(index)
        return None if place is None else int(self.codes[place])

    def name(self, index: int) -> str:
        """Return the name of a training series, such as "recording 17"."""
        place = self.place(index)
        if self.names is None or place is None:
            return f"training series {index}"
        return self.names[place]

    def anonymous(self) -> Origins:
        """Return the same training series without their names."""
        return replace(self, names=None)
