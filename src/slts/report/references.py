"""References: the landmarks or training series that a model compares series with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner
from slts.estimators.linear import LinearClassifier
from slts.estimators.neighbours import NearestNeighbor
from slts.features.explanation import explain
from slts.features.row_map import RowMap
from slts.features.summary import landmark_effects
from slts.report.importance import shares
from slts.report.markup import Content, section, table
from slts.report.packing import Bins, clock, pack, rounded
from slts.series import SeriesBatch
from slts.series.missing import fill_gaps, has_missing
from slts.series.rows import transform_rows

# References shown for one class of one series.
STRONGEST = 4
# Landmarks drawn for one class, and for all of them.
_MOST_PER_CLASS, _MOST_LANDMARKS = 4, 240
# Up to this many pairs of steps, the time to find a path does not depend on their number.
_SHORT_CELLS = 10_000

Drawing = Callable[[SeriesBatch], SeriesBatch]


@dataclass(frozen=True, eq=False)
class Explained:
    """Explanation of the scores of some classes for one series.

    Attributes
    ----------
    strongest
        For each class, the values of the most important references, strongest first.
    paths
        Paths to these references.
    contributions
        Shape (classes, steps, channels); None if scores are not sums over them. The other
        attributes are then not set.
    offset
        The part of no step and channel, shape (classes,).
    intercept
        The part of no landmark and snippet, shape (classes,).
    rest
        The value of all references that are not in `strongest`, shape (classes,).
    by_step
        Contributions of the steps through each reference in `strongest`, class by class. They
        belong to the first feature map, like the paths.
    """

    strongest: list[dict[int, float]]
    paths: dict[int, IntArray]
    contributions: FloatArray | None = None
    offset: FloatArray | None = None
    intercept: FloatArray | None = None
    rest: FloatArray | None = None
    by_step: Sequence[FloatArray] = ()


class References:
    """The series that a model compares with. The page numbers those that it shows.

    Parameters
    ----------
    model
        A fitted classifier.
    rows
        The references as they are drawn.
    indices
        Their positions among the training series.
    n_alignments
        Number of alignments for one explanation; a long one counts as several short ones.

    Attributes
    ----------
    landmarks
        The references as series; None if the model does not store them.
    rings
        Those that are drawn in similarity space: landmarks, but not all training series.
    """

    kind: str
    landmarks: SeriesBatch | None = None
    rings: SeriesBatch | None = None

    def __init__(self, model: Any, rows: SeriesBatch, indices: IntArray, n_alignments: int) -> None:
        self.model, self.rows, self.indices = model, rows, indices
        self.n_alignments = n_alignments
        self._numbers: dict[int, int] = {}

    @property
    def n_numbers(self) -> int:
        """Number of stored numbers."""
        raise NotImplementedError

    def number(self, reference: int) -> int:
        """The number of a reference on the page, in order of appearance."""
        return self._numbers.setdefault(reference, len(self._numbers))

    def similarities(self, batch: SeriesBatch) -> FloatArray:
        """The features of a model: `transform`, or nearness to all training series."""
        model = self.model
        features = model.transform if hasattr(model, "transform") else model.nearness
        return np.asarray(features(batch))

    def explain(
        self, series: SeriesBatch, classes: IntArray, similarities: FloatArray
    ) -> Explained:
        """Explain the scores of one series; `similarities` is its row of them."""
        raise NotImplementedError

    def gallery(self, similarities: FloatArray | None) -> tuple[list[dict[str, Any]], bool]:
        """The strongest landmarks of each class, and whether they have weights."""
        return [], False

    def content(self, similarities: FloatArray | None, channels: IntArray) -> dict[str, Any]:
        """The references that the page draws.

        Parameters
        ----------
        similarities
            Similarities of the series of the report; None without series.
        channels
            Channels to draw.

        Returns
        -------
        dict
            Lists with one entry per drawn reference: those with a number so far, then other
            landmarks with large effects. ``gallery`` has the landmarks of each class, largest
            effect first.
        """
        model, landmarks = self.model, self.landmarks
        gallery, weighted = self.gallery(similarities)
        order = list(self._numbers)
        drawn = [self.rows[j].T[:, channels] for j in order]
        indices = self.indices[order].tolist()
        times = [None if landmarks is None else landmarks[j : j + 1].times for j in order]
        return {
            "kind": self.kind,
            "index": indices,
            "name": [model.series_name(index, with_class=False) for index in indices],
            "class": [model.series_class(index) for index in indices],
            "clock": [None if axis is None else clock(axis) for axis in times],
            "length": [len(rows) for rows in drawn],
            "rows": pack([Bins(len(rows)).sample(rows) for rows in drawn], bits=16),
            "weighted": weighted,
            "gallery": gallery,
        }


class Landmarks(References):
    """Landmarks of a linear model; `draw` maps series to rows."""

    kind = "landmarks"

    def __init__(self, model: LinearClassifier, draw: Drawing) -> None:
        self.linear = model.model_
        used = self.linear.aligned[0].used
        self.landmarks = model.landmarks_[used]
        # The landmarks of a similarity SVM, which has no `transform`, are all training series.
        self.rings = self.landmarks if hasattr(model, "transform") else None
        n_alignments = sum(_effort(m.rows(self.landmarks)) for m in self.linear.aligned)
        super().__init__(model, draw(self.landmarks), model.landmark_indices_[used], n_alignments)

    @property
    def n_numbers(self) -> int:
        """Number of stored numbers."""
        return self.linear.n_numbers

    def explain(
        self, series: SeriesBatch, classes: IntArray, similarities: FloatArray
    ) -> Explained:
        """Divide the scores as `slts.explain` does. Only neighbours need the similarities."""
        explanation = explain(self.model, series)
        decisions = [explanation.for_class(label) for label in explanation.labels[classes].tolist()]
        rows = [row for row, _ in decisions]
        signs = np.array([sign for _, sign in decisions])
        values = signs[:, np.newaxis] * explanation.by_landmark[rows]
        strongest = []
        for of_class in values:
            order = np.argsort(-np.abs(of_class), kind="stable")[:STRONGEST].tolist()
            strongest.append({j: of_class[j] for j in order if of_class[j] != 0})
        named = dict.fromkeys(j for one in strongest for j in one)
        by_step = {j: explanation.of_landmark(j, feature_map=0).sum(axis=2) for j in named}
        listed = np.array([sum(one.values()) for one in strongest])
        return Explained(
            strongest=strongest,
            paths={j: explanation.alignments[j].path for j in named},
            contributions=signs[:, np.newaxis, np.newaxis] * explanation.contributions[rows],
            offset=signs * explanation.offset[rows],
            intercept=signs * explanation.intercept[rows],
            rest=values.sum(axis=1) - listed,
            by_step=[
                sign * by_step[j][row]
                for (row, sign), one in zip(decisions, strongest, strict=True)
                for j in one
            ],
        )

    def gallery(self, similarities: FloatArray | None) -> tuple[list[dict[str, Any]], bool]:
        """The strongest landmarks of each class, and whether they have weights.

        If landmarks have weights, every class has other ones: the landmarks of a row are those with
        the largest weights for its class, and an effect is the share of the weight, with its sign.
        Otherwise they are those that belong to the class; see `landmark_effects`.
        """
        model = self.model
        labels, positives = model.classes_.tolist(), model.positive_classes_.tolist()
        codes = [model.series_class(index) for index in self.indices.tolist()]
        effects, weighted = landmark_effects(model, similarities)
        by_class = not weighted and None not in codes
        if weighted:
            effects = shares(effects)
        classes = labels if by_class else positives
        most = max(1, min(_MOST_PER_CLASS, _MOST_LANDMARKS // len(classes)))
        rows = []
        for c, label in enumerate(classes):
            effect = effects[0 if len(positives) == 1 else c]
            used = effect != 0
            if by_class:
                used &= np.array(codes) == c
            order = np.argsort(-np.abs(effect), kind="stable")
            shown = [int(j) for j in order if used[j]][:most]
            rows.append(
                {
                    "class": labels.index(label),
                    "used": int(used.sum()),
                    "shown": [self.number(j) for j in shown],
                    "effect": rounded(effect[shown], 3),
                }
            )
        return rows, weighted


class Neighbours(References):
    """Training series of a nearest-neighbour classifier."""

    kind = "neighbours"

    def __init__(self, model: NearestNeighbor) -> None:
        self.neighbours, rows = model.model_, model.training_rows_
        # An explanation needs paths to the nearest series only.
        effort = _effort(rows) / max(1, len(rows))
        n_alignments = round(STRONGEST * len(model.classes_) * effort)
        super().__init__(model, rows, model.training_indices_, n_alignments)

    @property
    def n_numbers(self) -> int:
        """Number of stored numbers."""
        metric = self.neighbours.metric
        return self.rows.values.size + (0 if metric is None else metric.size)

    def explain(
        self, series: SeriesBatch, classes: IntArray, similarities: FloatArray
    ) -> Explained:
        """Choose the nearest training series of each class, and align with them."""
        strongest = []
        for c in classes.tolist():
            members = np.flatnonzero(self.neighbours.codes == c)
            order = np.argsort(-similarities[members], kind="stable")[:STRONGEST]
            strongest.append({j: similarities[j] for j in members[order].tolist()})
        rows = self.neighbours.row_map(series)
        return Explained(strongest, {j: self._path(rows, j) for one in strongest for j in one})

    def _path(self, rows: SeriesBatch, j: int) -> IntArray:
        metric, other = self.neighbours.metric, self.rows[j : j + 1]
        if metric is not None:
            rows, other = (transform_rows(batch, metric) for batch in (rows, other))
        return Aligner(other, self.neighbours.settings).path(rows, 0).path


def references_of(model: Any, draw: Drawing) -> References | None:
    """The references of a model; None if it is not one of slts."""
    if isinstance(model, LinearClassifier):
        return Landmarks(model, draw)
    return Neighbours(model) if isinstance(model, NearestNeighbor) else None


def row_map_of(model: Any) -> RowMap | None:
    """The map to the rows that a model aligns; None if there are several, or none."""
    if isinstance(model, NearestNeighbor):
        return model.model_.row_map
    if isinstance(model, LinearClassifier) and model.model_.aligned[0].bank_per_output:
        return model.model_.aligned[0].row_map
    return None


def drawing_of(model: Any, batch: SeriesBatch | None) -> tuple[Drawing, str]:
    """How series are drawn, and a sentence about it.

    Parameters
    ----------
    model
        A fitted classifier. Series are drawn as it aligns them, if it has one row map.
    batch
        Otherwise, the mean and standard deviation of these series standardise the channels; None
        takes the landmarks.
    """
    if batch is None and isinstance(model, LinearClassifier):
        batch = model.landmarks_
    gaps = "" if batch is None or not has_missing(batch) else ", and gaps are interpolated"
    row_map = row_map_of(model)
    if row_map is not None:
        unit = ", with steps of unit length" if row_map.normalize else ""
        note = f"Series are drawn as the model aligns them{unit}{gaps}."
        return (lambda batch: row_map(fill_gaps(batch))), note
    if batch is None:
        return fill_gaps, f"Series are drawn unchanged{gaps}."
    filled = fill_gaps(batch).values
    mean, spread = filled.mean(axis=0), filled.std(axis=0)
    spread[spread == 0] = 1.0

    def standardised(batch: SeriesBatch) -> SeriesBatch:
        values = np.ascontiguousarray((fill_gaps(batch).values - mean) / spread)
        return batch.with_values(values, batch.channel_names)

    return standardised, f"Series are drawn with standardised channels{gaps}."


def _effort(rows: SeriesBatch) -> int:
    """Time of aligning a series with each of these, in alignments of short series."""
    return int(np.maximum(1, rows.lengths.astype(np.int64) ** 2 // _SHORT_CELLS).sum())


def landmarks_section(content: Content) -> str:
    """Container of the drawn landmarks, and a table."""
    references, model = content["references"], content["model"]
    if references is None or references["kind"] != "landmarks":
        return ""
    weighted = references["weighted"]
    rows = []
    for row in references["gallery"]:
        heaviest = ", ".join(
            f"{references['name'][j]} ({effect:{'+.0%' if weighted else '.2g'}})"
            for j, effect in zip(row["shown"], row["effect"], strict=True)
        )
        rows.append([model["classes"][row["class"]], str(row["used"]), heaviest])
    head = ["Class", "Landmarks", f"Largest: series and {'share' if weighted else 'effect'}"]
    about = "weights" if len(model["classes"]) > 2 else "weights_of_two"
    first, second, *_ = map(escape, model["classes"])
    return section(
        "landmarks",
        title="Landmarks" + (" and their weights" if weighted else ""),
        about=section(about if weighted else "effects", first=first, second=second),
        listing=table("Landmarks", rows, head=head, columns=["", "n", "text"]),
    )
