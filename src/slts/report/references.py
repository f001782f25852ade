"""References: what a model compares series with. Training series of nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner
from slts.estimators.base import SeriesClassifier
from slts.estimators.neighbours import NearestNeighbor
from slts.features.row_map import RowMap
from slts.report.packing import Bins, bin_path, clock, moves, pack, rounded
from slts.report.snippets import DrawnSnippets
from slts.series import SeriesBatch
from slts.series.missing import fill_gaps
from slts.series.rows import transform_rows

# References shown for one class of one series.
STRONGEST = 4
# More channels are not legible in a picture.
MOST_CHANNELS = 24


class References:
    """What a model compares series with. The page numbers the references that it shows.

    Attributes
    ----------
    fitted
        What the model has learned, as dataclasses of arrays.
    n_numbers
        Number of stored numbers.
    rows
        The references as they are drawn.
    indices
        Their positions among the training series.
    row_map
        The map to the rows that the model aligns; None if there are several.
    channels
        The most important channels, in order: those that are drawn.
    n_cells
        Pairs of steps that an explanation aligns, for each step of a series.
    facts
        Facts for the model card.
    series
        The references as series; None if they are not stored.
    importance
        Importance of channels and feature maps, and the metrics to draw; None if decisions are not
        sums over channels.
    snippets
        The snippets of the model, if there are any.
    """

    kind: str
    fitted: Any
    n_numbers: int
    rows: SeriesBatch
    indices: IntArray
    row_map: RowMap | None
    channels: IntArray
    n_cells: float
    facts: Sequence[list[str]] = ()
    series: SeriesBatch | None = None
    importance: dict[str, Any] | None = None
    snippets: DrawnSnippets | None = None

    def __init__(self, model: SeriesClassifier) -> None:
        self.model = model
        self._numbers: dict[int, int] = {}

    def draw(self, batch: SeriesBatch) -> SeriesBatch:
        """Series as the page draws them: as the model aligns them, if it has one row map."""
        assert self.row_map is not None
        return self.row_map(fill_gaps(batch))

    def drawn(self, series: SeriesBatch, rows: FloatArray) -> FloatArray:
        """The drawn channels of the rows of one series; missing values stay missing."""
        missing = np.isnan(series.values[:, self.channels])
        return np.where(missing, np.nan, rows[:, self.channels])

    def number(self, reference: int) -> int:
        """The number of a reference on the page, in order of appearance."""
        return self._numbers.setdefault(reference, len(self._numbers))

    def path(self, path: IntArray, bins: Bins, reference: int) -> str:
        """The path from a series to a reference, as the page holds it."""
        return moves(bin_path(path, bins, Bins(int(self.rows.lengths[reference]))))

    def explain(
        self, series: SeriesBatch, codes: IntArray, features: FloatArray, bins: Bins
    ) -> dict[str, Any]:
        """Explain the scores of some classes for one series; `features` is its row of them.

        Returns ``parts``, one dict per class, and ``paths`` to the references that these name.
        """
        raise NotImplementedError

    def gallery(self, features: FloatArray | None) -> tuple[list[dict[str, Any]], bool]:
        """The strongest landmarks of each class, and whether they have weights."""
        return [], False

    def content(self, features: FloatArray | None) -> dict[str, Any]:
        """The references that the page draws: those with a number, and the gallery.

        Parameters
        ----------
        features
            Features of the series of the report; None without series.
        """
        gallery, weighted = self.gallery(features)
        items = [self._item(j) for j in self._numbers]
        return {"kind": self.kind, "items": items, "weighted": weighted, "gallery": gallery}

    def _item(self, j: int) -> dict[str, Any]:
        index, rows, times = int(self.indices[j]), self.rows[j].T[:, self.channels], None
        if self.series is not None:
            series = self.series[j : j + 1]
            rows, times = self.drawn(series, self.rows[j].T), series.times
        bins = Bins(len(rows))
        return {
            "index": index,
            "name": self.model.series_name(index, with_class=False),
            "class": self.model.series_class(index),
            "clock": clock(times, bins),
            "length": len(rows),
            "rows": pack(bins.sample(rows)),
        }


class Neighbours(References):
    """Training series of a nearest-neighbour classifier."""

    kind = "neighbours"

    def __init__(self, model: NearestNeighbor, channel_names: list[str]) -> None:
        super().__init__(model)
        self.neighbours = self.fitted = model.model_
        self.rows, self.indices = model.training_rows_, model.training_indices_
        self.n_numbers = self.rows.values.size
        self.n_cells = STRONGEST * len(model.classes_) * self.rows.lengths.mean()
        self.row_map = self.neighbours.row_map
        if self.neighbours.metric is not None:
            self.n_numbers += self.neighbours.metric.size
        self.channels = largest(self.rows.values.std(axis=0)[: len(channel_names)])

    def explain(
        self, series: SeriesBatch, codes: IntArray, features: FloatArray, bins: Bins
    ) -> dict[str, Any]:
        """Choose the nearest training series of each class, and align with them."""
        parts: list[dict[str, Any]] = []
        paths: dict[str, str] = {}
        for code in codes.tolist():
            members = np.flatnonzero(self.neighbours.codes == code)
            order = members[np.argsort(-features[members], kind="stable")[:STRONGEST]].tolist()
            strongest = [[self.number(j), rounded(features[j])] for j in order]
            parts.append({"class": code, "strongest": strongest})
            for j in order:
                paths[str(self.number(j))] = self.path(self._align(series, j), bins, j)
        return {"parts": parts, "paths": paths}

    def _align(self, series: SeriesBatch, j: int) -> IntArray:
        metric, rows, other = self.neighbours.metric, self.draw(series), self.rows[j : j + 1]
        if metric is not None:
            rows, other = (transform_rows(batch, metric) for batch in (rows, other))
        return Aligner(other, self.neighbours.settings).path(rows, 0).path


def largest(weight: FloatArray) -> IntArray:
    """Positions of the `MOST_CHANNELS` largest weights, in order."""
    return np.sort(np.argsort(-weight, kind="stable")[:MOST_CHANNELS])
