"""References: the landmarks or training series that a model compares series with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner
from slts.explanation import explain_with, landmark_strength
from slts.models.linear_form import LinearForm
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
class ClassExplanation:
    """Explanation of the score of one class for one series.

    Attributes
    ----------
    strongest
        Values of the most important references, strongest first.
    offset
        The part of no step and channel.
    contributions
        Shape (steps, channels); None if the score is not a sum over them.
    intercept
        The part of no landmark and snippet.
    rest
        The value of all references that are not in `strongest`.
    by_step
        Contributions of the steps through each reference in `strongest`. With several comparisons,
        they belong to the first one, like the paths.
    """

    strongest: dict[int, float]
    offset: float = 0.0
    contributions: FloatArray | None = None
    intercept: float = 0.0
    rest: float = 0.0
    by_step: Sequence[FloatArray] = ()


# Explanations of some classes, and the paths to the references that they name.
Explained = tuple[list[ClassExplanation], dict[int, IntArray]]


class Landmarks:
    """Landmarks of a model that is linear in aligned products.

    Parameters
    ----------
    model
        A fitted classifier that `slts.explain` accepts.
    draw
        Maps series to the rows that are drawn.

    Attributes
    ----------
    rows
        The landmarks as they are drawn.
    indices
        Their positions among the training series.
    landmarks
        The landmarks as series; None if the model does not store them.
    n_alignments
        Number of alignments for one explanation; a long one counts as several short ones.
    """

    kind = "landmarks"

    def __init__(self, model: Any, draw: Drawing) -> None:
        self.model, self.all_forms = model, model.linear_forms()
        self.forms = [form for form in self.all_forms if isinstance(form, LinearForm)]
        form = self.forms[0]
        # A model with one row map has mapped landmarks.
        self.rows = form.landmarks if hasattr(model, "row_map_") else draw(model.landmarks_)
        self.indices = form.landmark_indices
        self.landmarks: SeriesBatch | None = None
        if hasattr(model, "landmarks_"):
            self.landmarks = model.landmarks_[np.isin(model.landmark_indices_, self.indices)]
        self.n_alignments = sum(_effort(form.landmarks) for form in self.forms)

    def similarities(self, batch: SeriesBatch) -> FloatArray:
        """The model's own features: `transform`, or similarities to all training series."""
        model = self.model
        found = model.transform(batch) if hasattr(model, "transform") else model.nearness(batch)
        return np.asarray(found)

    def explain(self, series: FloatArray, classes: IntArray, similarities: FloatArray) -> Explained:
        """Split the scores of one series, (channels, time), for some classes; see `slts.explain`.

        The argument `similarities` is the row of the series. Only neighbours need it.
        """
        found = explain_with(self.model, self.all_forms, series)
        explained = []
        by_step: dict[int, FloatArray] = {}
        for label in found.labels[classes].tolist():
            position, sign = found.for_class(label)
            values, used = sign * found.by_landmark[position], self.forms[0].coef[position] != 0
            order = np.argsort(-np.abs(values), kind="stable")[:STRONGEST].tolist()
            chosen = [j for j in order if used[j]]
            for j in chosen:
                if j not in by_step:
                    by_step[j] = found.of_landmark(j, comparison=0).sum(axis=2)
            explained.append(
                ClassExplanation(
                    strongest={j: values[j] for j in chosen},
                    offset=sign * found.offset[position],
                    contributions=sign * found.contributions[position],
                    intercept=sign * found.intercept[position],
                    rest=values.sum() - values[chosen].sum(),
                    by_step=[sign * by_step[j][position] for j in chosen],
                )
            )
        return explained, {j: found.alignments[j].path for j in by_step}

    @property
    def weighted(self) -> bool:
        """Whether landmarks have weights; otherwise metrics distinguish them."""
        return len(self.forms) == 1 and self.forms[0].has_one_metric

    def effects(self, similarities: FloatArray | None) -> FloatArray:
        """Effect of each landmark on each decision, shape (decisions, landmarks).

        Parameters
        ----------
        similarities
            For a model without weights, an effect is the mean absolute deviation of what the
            landmark contributes over these series; None takes the landmarks. Otherwise it is the
            share of its weight, with its sign.
        """
        if self.weighted:
            return shares(self.forms[0].coef)
        if similarities is None:
            similarities = self.similarities(self.model.landmarks_)
        n_decisions = len(self.forms[0].positives)
        return landmark_strength(similarities, n_decisions, len(self.indices))


class Neighbours:
    """Training series of a nearest-neighbour classifier, with the attributes of `Landmarks`."""

    kind = "neighbours"
    landmarks = None

    def __init__(self, model: Any) -> None:
        self.model = model
        self.rows = model.training_rows_
        self.indices = model.training_indices_
        # An explanation needs paths to the nearest series only.
        effort = _effort(self.rows) / max(1, len(self.rows))
        self.n_alignments = round(STRONGEST * len(model.classes_) * effort)

    def similarities(self, batch: SeriesBatch) -> FloatArray:
        """Nearness to every training series."""
        return np.asarray(self.model.nearness(batch))

    def explain(self, series: FloatArray, classes: IntArray, similarities: FloatArray) -> Explained:
        """Find the nearest training series of each class and the paths to them."""
        explained = []
        for c in classes.tolist():
            members = np.flatnonzero(self.model.training_codes_ == c)
            order = np.argsort(-similarities[members], kind="stable")[:STRONGEST]
            nearest = members[order].tolist()
            explained.append(ClassExplanation({j: similarities[j] for j in nearest}))
        rows = self.model.row_map_(self.model.check_series([series]))
        return explained, {j: self._path(rows, j) for one in explained for j in one.strongest}

    def _path(self, rows: SeriesBatch, j: int) -> IntArray:
        model, other = self.model, self.rows[j : j + 1]
        if hasattr(model, "metric_"):
            rows, other = (transform_rows(batch, model.metric_) for batch in (rows, other))
        return Aligner(other, model.row_map_.settings).path(rows, 0).path


References = Landmarks | Neighbours


def references_of(model: Any, draw: Drawing) -> References | None:
    """The references of a model; None if it is not known to have any."""
    if hasattr(model, "linear_forms"):
        return Landmarks(model, draw)
    return Neighbours(model) if hasattr(model, "nearness") else None


def references_content(
    references: References | None,
    named: list[int],
    similarities: FloatArray | None,
    channels: IntArray,
) -> dict[str, Any] | None:
    """References that the page draws; None if the model has none.

    Parameters
    ----------
    references
        All references of the model.
    named
        References that the explorer shows, in the order of its numbering.
    similarities
        Similarities of the series of the report; None without series.
    channels
        Channels to draw.

    Returns
    -------
    dict
        Arrays with one entry per drawn reference: those of the explorer, then other landmarks with
        large effects. ``gallery`` has the landmarks of each class, largest effect first.
    """
    if references is None:
        return None
    model = references.model
    gallery = [] if isinstance(references, Neighbours) else _gallery(references, similarities)
    order = list(dict.fromkeys([*named, *(j for row in gallery for j in row["shown"])]))
    for row in gallery:
        row["shown"] = [order.index(j) for j in row["shown"]]
    drawn = [references.rows[j].T[:, channels] for j in order]
    indices = references.indices[order].tolist()
    landmarks = references.landmarks
    times = (
        [None] * len(order) if landmarks is None else [landmarks[j : j + 1].times for j in order]
    )
    return {
        "kind": references.kind,
        "index": indices,
        "name": [model.series_name(index, with_class=False) for index in indices],
        "class": [model.series_class(index) for index in indices],
        "clock": [None if own is None else clock(own) for own in times],
        "length": [len(rows) for rows in drawn],
        "rows": pack([Bins.of(len(rows)).sample(rows) for rows in drawn], bits=16),
        "weighted": isinstance(references, Landmarks) and references.weighted,
        "gallery": gallery,
    }


def _gallery(references: Landmarks, similarities: FloatArray | None) -> list[dict[str, Any]]:
    """The strongest landmarks of each class.

    If landmarks have weights, every class has its own: the landmarks of a row are those with the
    largest weights for its class. Otherwise they are those that belong to the class.
    """
    effects, rows = references.effects(similarities), []
    codes = [references.model.series_class(index) for index in references.indices.tolist()]
    positives = references.model.positive_classes_.tolist()
    two = len(positives) == 1
    known = not references.weighted and None not in codes
    classes = references.model.classes_.tolist() if known else positives
    count = max(1, min(_MOST_PER_CLASS, _MOST_LANDMARKS // len(classes)))
    for c, label in enumerate(classes):
        own = effects[0 if two else c]
        used = own != 0
        if known:
            used &= np.array(codes) == c
        order = np.argsort(-np.abs(own), kind="stable")
        shown = [int(j) for j in order if used[j]][:count]
        rows.append(
            {
                "class": references.model.classes_.tolist().index(label),
                "used": int(used.sum()),
                "shown": shown,
                "effect": rounded(own[shown], 3),
            }
        )
    return rows


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
            f"{references['name'][j]} ({_effect(effect, weighted=weighted)})"
            for j, effect in zip(row["shown"], row["effect"], strict=True)
        )
        rows.append([model["classes"][row["class"]], str(row["used"]), heaviest])
    head = ["Class", "Landmarks", f"Largest: series and {'share' if weighted else 'effect'}"]
    return section(
        "landmarks",
        title="Landmarks" + (" and their weights" if weighted else ""),
        about=escape(_about_shares(model["classes"], weighted=weighted)),
        listing=table("Landmarks", rows, head=head, columns=["", "n", "text"]),
    )


def _about_shares(classes: list[str], *, weighted: bool) -> str:
    if not weighted:
        return (
            "Landmarks are grouped by their class, strongest first. The number is the effect of "
            "the landmark on the score of its class: how much its contribution differs between "
            "series."
        )
    share = "The number is the share of the landmark in all weights."
    if len(classes) == 2:
        return (
            f"Similarity to a landmark with a positive weight raises the score of {classes[1]} and "
            f"lowers the score of {classes[0]}. A negative weight does the opposite. {share}"
        )
    return (
        "Each class has its own weights. Similarity to a landmark with a positive weight raises "
        f"the score of the class. A negative weight lowers it. {share}"
    )


def _effect(value: float, *, weighted: bool) -> str:
    return f"{100 * value:+.0f}%" if weighted else f"{value:.2g}"
