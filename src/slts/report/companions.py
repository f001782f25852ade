"""What a series is compared with: the landmarks of a model, or the training series near it.

A companion set answers, for one series, which of its members count most for each class and how
the series is aligned with them; models that add up contributions also split their scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import align
from slts.estimators.ldmlt import LDMLTClassifier
from slts.estimators.neighbors import NearestNeighbor
from slts.explanation.prediction import comparison_of, explain_with
from slts.learning.logdet import transform_rows
from slts.models.row_map import RowMap
from slts.report.drawing import Drawing
from slts.report.insight import has_weights, landmark_shares, landmark_weights, realigned
from slts.series import SeriesBatch

# Companions shown for one class of one series.
STRONGEST = 4
# Heaviest landmarks drawn for one decision value, and for all together.
HEAVIEST = 6
MOST_LANDMARKS = 240
# Pairs of steps up to which finding a path costs the same: what surrounds it takes longer.
_SHORT_CELLS = 10_000


@dataclass(frozen=True, eq=False)
class Comparison:
    """One series beside its companions.

    Attributes
    ----------
    offset
        Per class, what belongs to no step and channel; None without contributions.
    contributions
        Shape (classes, steps, channels), or None.
    strongest
        Per class, (companion, value) pairs, strongest first.
    rest
        Per class, the value of all others together; None where values do not add up.
    paths, lengths
        Path to each companion named in `strongest`, and how many steps that has.
    by_step
        Per class and (in the order of `strongest`) companion: contributions of the steps; with
        several comparisons, in the first, which the paths are of.
    """

    offset: FloatArray | None
    contributions: FloatArray | None
    strongest: list[list[tuple[int, float]]]
    rest: FloatArray | None
    paths: dict[int, IntArray]
    lengths: dict[int, int]
    by_step: list[list[FloatArray]] | None


class Companions(Protocol):
    """Series to compare with, as the model aligns them."""

    kind: str
    rows: SeriesBatch
    indices: IntArray
    # Paths that one comparison finds; long ones count as several.
    n_alignments: int

    def compare(self, series: FloatArray, classes: IntArray) -> Comparison:
        """Compare one series, shape (channels, time), for some of the classes."""


class Landmarks:
    """Landmarks of a model that is linear in aligned products, heaviest first.

    Parameters
    ----------
    model
        A fitted classifier that `slts.explain` can explain.
    drawing
        How series are drawn.
    series
        To measure shares on where landmarks have no weights; None takes the landmarks.
    """

    kind = "landmarks"

    def __init__(self, model: Any, drawing: Drawing, series: SeriesBatch | None) -> None:
        self.model = model
        self._forms = forms = model.linear_forms()
        form = forms[0]
        self.weighted = has_weights(model)
        # Where each class has its own form, it has weights in that one only.
        coef = np.sum([form.coef for form in forms], axis=0)
        share = landmark_weights(coef) if self.weighted else landmark_shares(model, series)
        self.order = np.argsort(-np.abs(share).max(axis=0), kind="stable").astype(np.int64)
        self.share = share[:, self.order]
        # Models with one map of rows keep landmarks with it; others keep them as they came.
        mapped = form.landmarks if isinstance(form.rows, RowMap) else _drawn(model, drawing)
        self.rows = mapped[self.order]
        self.indices = form.landmark_indices[self.order]
        self.n_alignments = sum(_efforts(form.landmarks) for form in forms)
        self._used = coef[:, self.order] != 0
        self._comparisons = [comparison_of(forms, problem) for problem in range(len(coef))]

    def gallery(self) -> list[list[int]]:
        """The heaviest landmarks of every decision value; fewer where there are many values."""
        count = max(1, min(HEAVIEST, MOST_LANDMARKS // max(1, len(self.share))))
        rows = []
        for share in np.abs(self.share):
            order = np.argsort(-share, kind="stable")[:count]
            rows.append([int(j) for j in order if share[j] > 0])
        return rows

    def compare(self, series: FloatArray, classes: IntArray) -> Comparison:
        """Split the scores exactly; see `slts.explain`."""
        found = explain_with(self.model, self._forms, series)
        values = [found.for_class(label) for label in found.labels[classes].tolist()]
        problems = np.array([position for position, _ in values], dtype=np.int64)
        signs = np.array([sign for _, sign in values])
        by_landmark = found.by_landmark[:, self.order]
        strongest, rest, by_step = [], [], []
        paths: dict[int, IntArray] = {}
        through: dict[tuple[int, int], FloatArray] = {}
        for problem, sign in zip(problems.tolist(), signs.tolist(), strict=True):
            through_all = sign * by_landmark[problem]
            order = np.argsort(-np.abs(through_all), kind="stable")[:STRONGEST]
            chosen = [int(j) for j in order if self._used[problem, j]]
            comparison = self._comparisons[problem]
            for j in chosen:
                if (j, comparison) not in through:
                    position = int(self.order[j])
                    paths[j] = found.alignments[position].path
                    through[j, comparison] = found.of_landmark(position, comparison=comparison).sum(
                        axis=2
                    )
            strongest.append([(j, float(through_all[j])) for j in chosen])
            rest.append(float(through_all.sum() - through_all[chosen].sum()))
            by_step.append([sign * through[j, comparison][problem] for j in chosen])
        return Comparison(
            offset=signs * found.offset[problems],
            contributions=signs[:, None, None] * found.contributions[problems],
            strongest=strongest,
            rest=np.array(rest),
            paths=paths,
            lengths=_lengths(self.rows, paths),
            by_step=by_step,
        )


class Neighbours:
    """Training series of a nearest-neighbour classifier."""

    kind = "neighbours"

    def __init__(self, model: NearestNeighbor) -> None:
        self.model = model
        self.rows = model.training_rows_
        self.indices = np.arange(len(self.rows))
        self.classes = model.training_codes_
        # Nearness of all is found without paths; those are found for the nearest.
        share = _efforts(self.rows) / max(1, len(self.rows))
        self.n_alignments = round(STRONGEST * len(model.classes_) * share)

    def compare(self, series: FloatArray, classes: IntArray) -> Comparison:
        """Find the nearest training series of each class and the paths to them."""
        model = self.model
        rows = model._new_rows([series])
        nearness = model.nearness_of_rows(rows)[0]
        strongest: list[list[tuple[int, float]]] = []
        for c in classes.tolist():
            members = np.flatnonzero(model.training_codes_ == c)
            nearest = members[np.argsort(-nearness[members], kind="stable")[:STRONGEST]]
            strongest.append([(int(j), float(nearness[j])) for j in nearest])
        paths = {}
        for j in {j for chosen in strongest for j, _ in chosen}:
            paths[j] = self._path(rows, j)
        lengths = _lengths(self.rows, paths)
        return Comparison(None, None, strongest, None, paths, lengths, None)

    def _path(self, rows: SeriesBatch, j: int) -> IntArray:
        model, other = self.model, self.rows[j : j + 1]
        settings = model._settings()
        if isinstance(model, LDMLTClassifier):
            rows, other = (transform_rows(part, model.metric_) for part in (rows, other))
        found = align(
            rows[0], other[0], objective=settings.objective, band=settings.band, normalize=False
        )
        return found.path


def _drawn(model: Any, drawing: Drawing) -> SeriesBatch:
    """Landmarks of the forms of a model whose rows are not drawn."""
    landmarks = model.landmarks_
    if realigned(model):
        landmarks = landmarks[np.flatnonzero(model.coef_.any(axis=0))]
    return drawing.rows(landmarks)


def _efforts(rows: SeriesBatch) -> int:
    """How many alignments of short series take as long as one with each of these."""
    return int(np.maximum(1, rows.lengths.astype(np.int64) ** 2 // _SHORT_CELLS).sum())


def _lengths(rows: SeriesBatch, chosen: Iterable[int]) -> dict[int, int]:
    return {j: int(rows.lengths[j]) for j in chosen}


def companions_of(model: Any, drawing: Drawing, series: SeriesBatch | None) -> Companions | None:
    """What a model compares series with; None if it is not known to compare."""
    if hasattr(model, "linear_forms"):
        return Landmarks(model, drawing, series)
    return Neighbours(model) if isinstance(model, NearestNeighbor) else None
