"""References: the landmarks or training series that a model compares series with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner
from slts.explanation import explain_with, landmark_effects, landmark_forms
from slts.report.importance import shares
from slts.report.markup import Content, section, table
from slts.report.packing import Bins, clock, pack, rounded
from slts.series import SeriesBatch
from slts.series.channels import transform_rows
from slts.series.missing import fill_gaps, has_missing

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
        Contributions of the steps through each reference in `strongest`, class by class. With
        several comparisons, they belong to the first one, like the paths.
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
    """

    kind: str
    landmarks: SeriesBatch | None = None

    def __init__(self, model: Any, rows: SeriesBatch, indices: IntArray, n_alignments: int) -> None:
        self.model, self.rows, self.indices = model, rows, indices
        self.n_alignments = n_alignments
        self._numbers: dict[int, int] = {}

    def number(self, reference: int) -> int:
        """The number of a reference on the page, in order of appearance."""
        return self._numbers.setdefault(reference, len(self._numbers))

    def similarities(self, batch: SeriesBatch) -> FloatArray:
        """The model's own features: `transform`, or similarities to all training series."""
        model = self.model
        found = model.transform(batch) if hasattr(model, "transform") else model.nearness(batch)
        return np.asarray(found)

    def explain(self, series: FloatArray, classes: IntArray, similarities: FloatArray) -> Explained:
        """Explain the scores of one series, (channels, time); `similarities` is its row of them."""
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
            "clock": [None if own is None else clock(own) for own in times],
            "length": [len(rows) for rows in drawn],
            "rows": pack([Bins(len(rows)).sample(rows) for rows in drawn], bits=16),
            "weighted": weighted,
            "gallery": gallery,
        }


class Landmarks(References):
    """Landmarks of a model that is linear in aligned products; `draw` maps series to rows."""

    kind = "landmarks"

    def __init__(self, model: Any, draw: Drawing) -> None:
        self.all_forms = model.linear_forms()
        self.forms = landmark_forms(model)
        form = self.forms[0]
        # A model with one row map has mapped landmarks.
        rows = form.landmarks if hasattr(model, "row_map_") else draw(model.landmarks_)
        n_alignments = sum(_effort(form.landmarks) for form in self.forms)
        super().__init__(model, rows, form.landmark_indices, n_alignments)
        if hasattr(model, "landmarks_"):
            self.landmarks = model.landmarks_[np.isin(model.landmark_indices_, self.indices)]

    def explain(self, series: FloatArray, classes: IntArray, similarities: FloatArray) -> Explained:
        """Split the scores, see `slts.explain`. Only neighbours need the similarities."""
        found = explain_with(self.model, self.all_forms, series)
        decisions = [found.for_class(label) for label in found.labels[classes].tolist()]
        rows = [row for row, _ in decisions]
        signs = np.array([sign for _, sign in decisions])
        values = signs[:, np.newaxis] * found.by_landmark[rows]
        strongest = []
        for own, coef in zip(values, self.forms[0].coef[rows], strict=True):
            order = np.argsort(-np.abs(own), kind="stable")[:STRONGEST].tolist()
            strongest.append({j: own[j] for j in order if coef[j] != 0})
        named = dict.fromkeys(j for one in strongest for j in one)
        by_step = {j: found.of_landmark(j, comparison=0).sum(axis=2) for j in named}
        listed = np.array([own[[*one]].sum() for own, one in zip(values, strongest, strict=True)])
        return Explained(
            strongest=strongest,
            paths={j: found.alignments[j].path for j in named},
            contributions=signs[:, np.newaxis, np.newaxis] * found.contributions[rows],
            offset=signs * found.offset[rows],
            intercept=signs * found.intercept[rows],
            rest=values.sum(axis=1) - listed,
            by_step=[
                sign * by_step[j][row]
                for (row, sign), one in zip(decisions, strongest, strict=True)
                for j in one
            ],
        )

    def gallery(self, similarities: FloatArray | None) -> tuple[list[dict[str, Any]], bool]:
        """The strongest landmarks of each class, and whether they have weights.

        If landmarks have weights, every class has its own: the landmarks of a row are those with
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
            own = effects[0 if len(positives) == 1 else c]
            used = own != 0
            if by_class:
                used &= np.array(codes) == c
            order = np.argsort(-np.abs(own), kind="stable")
            shown = [int(j) for j in order if used[j]][:most]
            rows.append(
                {
                    "class": labels.index(label),
                    "used": int(used.sum()),
                    "shown": [self.number(j) for j in shown],
                    "effect": rounded(own[shown], 3),
                }
            )
        return rows, weighted


class Neighbours(References):
    """Training series of a nearest-neighbour classifier."""

    kind = "neighbours"

    def __init__(self, model: Any) -> None:
        rows = model.training_rows_
        # An explanation needs paths to the nearest series only.
        effort = _effort(rows) / max(1, len(rows))
        n_alignments = round(STRONGEST * len(model.classes_) * effort)
        super().__init__(model, rows, model.training_indices_, n_alignments)

    def explain(self, series: FloatArray, classes: IntArray, similarities: FloatArray) -> Explained:
        """Find the nearest training series of each class and the paths to them."""
        strongest = []
        for c in classes.tolist():
            members = np.flatnonzero(self.model.training_codes_ == c)
            order = np.argsort(-similarities[members], kind="stable")[:STRONGEST]
            strongest.append({j: similarities[j] for j in members[order].tolist()})
        rows = self.model.row_map_(self.model.check_series([series]))
        return Explained(strongest, {j: self._path(rows, j) for one in strongest for j in one})

    def _path(self, rows: SeriesBatch, j: int) -> IntArray:
        model, other = self.model, self.rows[j : j + 1]
        if hasattr(model, "metric_"):
            rows, other = (transform_rows(batch, model.metric_) for batch in (rows, other))
        return Aligner(other, model.row_map_.settings).path(rows, 0).path


def references_of(model: Any, draw: Drawing) -> References | None:
    """The references of a model; None if it is not known to have any."""
    if hasattr(model, "linear_forms"):
        return Landmarks(model, draw)
    return Neighbours(model) if hasattr(model, "nearness") else None


def drawing_of(model: Any, batch: SeriesBatch | None) -> tuple[Drawing, str]:
    """How series are drawn, and a sentence about it.

    Parameters
    ----------
    model
        A fitted classifier. Series are drawn as it aligns them, if it has one row map.
    batch
        Otherwise, the mean and standard deviation of these series standardise the channels.
    """
    gaps = "" if batch is None or not has_missing(batch) else ", and gaps are interpolated"
    if hasattr(model, "row_map_"):
        unit = ", with steps of unit length" if model.row_map_.settings.normalize else ""
        note = f"Series are drawn as the model aligns them{unit}{gaps}."
        return (lambda batch: model.row_map_(fill_gaps(batch))), note
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
