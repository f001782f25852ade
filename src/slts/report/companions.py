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
from slts.estimators.rows import RowMap
from slts.explain import explain
from slts.learning.logdet import transform_rows
from slts.report.drawing import Drawing
from slts.report.insight import has_weights, landmark_shares, landmark_weights
from slts.series import SeriesBatch

# Companions shown for one class of one series.
STRONGEST = 4
# Heaviest landmarks drawn for one decision value, and for all together.
HEAVIEST = 6
MOST_LANDMARKS = 240


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
        Per class and (in the order of `strongest`) companion: contributions of the steps.
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
    # Paths that one comparison finds.
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
        forms = model.linear_forms()
        form = forms[0]
        self.one_view = len(forms) == 1
        self.weighted = has_weights(model)
        share = landmark_weights(form) if self.weighted else landmark_shares(model, series)
        self.order = np.argsort(-np.abs(share).max(axis=0), kind="stable").astype(np.int64)
        self.share = share[:, self.order]
        # Models with one map of rows keep landmarks with it; others keep them as they came.
        mapped = form.landmarks if isinstance(form.rows, RowMap) else drawing.rows(model.landmarks_)
        self.rows = mapped[self.order]
        self.indices = form.landmark_indices[self.order]
        self.n_alignments = len(self.indices) * len(forms)
        self._used = form.coef[:, self.order] != 0

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
        found = explain(self.model, series)
        # With two classes one value argues for the second and against the first.
        one = len(found.decision) == 1
        problems = np.zeros_like(classes) if one else classes
        signs = np.where(classes == 0, -1.0, 1.0) if one else np.ones(len(classes))
        by_landmark = found.by_landmark[:, self.order]
        strongest, rest, by_step = [], [], []
        paths: dict[int, IntArray] = {}
        through: dict[int, FloatArray] = {}
        for problem, sign in zip(problems.tolist(), signs.tolist(), strict=True):
            values = sign * by_landmark[problem]
            order = np.argsort(-np.abs(values), kind="stable")[:STRONGEST]
            chosen = [int(j) for j in order if self._used[problem, j]]
            for j in chosen:
                if j not in paths:
                    position = int(self.order[j])
                    paths[j] = found.alignments[position].path
                    if self.one_view:
                        through[j] = found.of_landmark(position).sum(axis=2)
            strongest.append([(j, float(values[j])) for j in chosen])
            rest.append(float(values.sum() - values[chosen].sum()))
            by_step.append([sign * through[j][problem] for j in chosen if self.one_view])
        return Comparison(
            offset=signs * found.offset[problems],
            contributions=signs[:, None, None] * found.contributions[problems],
            strongest=strongest,
            rest=np.array(rest),
            paths=paths,
            lengths=_lengths(self.rows, paths),
            # With several views a step has several paths; one of them does not carry all of it.
            by_step=by_step if self.one_view else None,
        )


class Neighbours:
    """Training series of a nearest-neighbour classifier."""

    kind = "neighbours"

    def __init__(self, model: NearestNeighbor) -> None:
        self.model = model
        self.rows = model._training_rows
        self.indices = np.arange(len(self.rows))
        self.classes = model._codes
        # Nearness of all is found without paths; those are found for the nearest.
        self.n_alignments = STRONGEST * len(model.classes_)

    def compare(self, series: FloatArray, classes: IntArray) -> Comparison:
        """Find the nearest training series of each class and the paths to them."""
        model = self.model
        rows = model._new_rows([series])
        nearness = model._nearness(rows)[0]
        strongest: list[list[tuple[int, float]]] = []
        for c in classes.tolist():
            members = np.flatnonzero(model._codes == c)
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


def _lengths(rows: SeriesBatch, chosen: Iterable[int]) -> dict[int, int]:
    return {j: int(rows.lengths[j]) for j in chosen}


def companions_of(model: Any, drawing: Drawing, series: SeriesBatch | None) -> Companions | None:
    """What a model compares series with; None if it is not known to compare."""
    if hasattr(model, "linear_forms"):
        return Landmarks(model, drawing, series)
    return Neighbours(model) if isinstance(model, NearestNeighbor) else None
