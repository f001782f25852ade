"""References: what a model compares series with.

`Landmarks` of linear models, or `TrainingSeries` of nearest neighbours: how they explain single
series, and their gallery, importance and metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner
from slts.estimators.base import SeriesClassifier
from slts.estimators.linear import LinearClassifier
from slts.estimators.local import LocalSLTSClassifier
from slts.estimators.neighbours import NearestNeighbor
from slts.features.explanation import explain
from slts.features.row_map import RowMap
from slts.features.summary import (
    ModelSummary,
    class_metrics,
    even_choice,
    landmark_effects,
    summarize,
)
from slts.quantities import count
from slts.report.packing import Bins, bin_path, clock, moves, pack, rounded
from slts.report.snippets import DrawnSnippets
from slts.series import SeriesBatch
from slts.series.values import fill_gaps, transform_rows

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


class TrainingSeries(References):
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


# ---- landmarks of linear models


# Landmarks drawn for one class, and for all of them.
_MOST_PER_CLASS, _MOST_LANDMARKS = 4, 240
# Series that importances are averaged over.
_MOST_AVERAGED = 1000


class Landmarks(References):
    """Landmarks of a linear model.

    Parameters
    ----------
    model
        The classifier.
    batch
        Series that importances are averaged over; None takes the landmarks.
    channel_names
        Names of the channels.
    """

    kind = "landmarks"
    model: LinearClassifier

    def __init__(
        self, model: LinearClassifier, batch: SeriesBatch | None, channel_names: list[str]
    ) -> None:
        super().__init__(model)
        self.linear = self.fitted = model.model_
        self.n_numbers = self.linear.n_numbers
        first = self.linear.aligned[0]
        self.series = model.landmarks_[first.used]
        self.indices = model.landmark_indices_[first.used]
        self.row_map = first.row_map if first.bank_per_output else None
        self._filled = fill_gaps(model.landmarks_).values
        self.rows = self.draw(self.series)
        self.n_cells = 1.0 + len(self.linear.aligned) * self.series.n_steps
        if isinstance(model, LocalSLTSClassifier) and self.linear.snippets is not None:
            self.snippets = DrawnSnippets(model)
            self.n_cells += len(self.linear.snippets)
        if batch is not None:
            batch = batch[even_choice(len(batch), _MOST_AVERAGED)]
        self.facts = self._facts()
        summary = summarize(model, batch, n_jobs=model.n_jobs)
        self.importance = _importance(model, summary, channel_names)
        weight = _shares(summary.channel_importance).mean(axis=0)
        self.channels = largest(weight[: len(channel_names)])

    def _facts(self) -> list[list[str]]:
        """Numbers of landmarks and snippets, and how the problems were solved."""
        n, snippets = len(self.model.landmark_indices_), self.linear.snippets
        facts = [["Landmarks", f"{len(self.indices)} with a nonzero weight, of {n} chosen"]]
        if snippets is not None:
            each = f"{len(snippets):,}, each of {count(snippets.n_steps, 'value')}"
            facts.append(["Snippets", each])
        # A similarity SVM has none.
        if reports := getattr(self.model, "reports_", ()):
            gap = rounded(max(report.gap for report in reports), 2)
            unsolved = sum(not report.converged for report in reports)
            solved = f"{unsolved} not solved to tolerance" if unsolved else "solved"
            problems = count(len(reports), "convex problem")
            facts.append(["Solver", f"{problems}, {solved}; largest duality gap {gap:g}"])
        return facts

    def draw(self, batch: SeriesBatch) -> SeriesBatch:
        """Series as rows, or with channels that are standardised by the landmarks."""
        if self.row_map is not None:
            return super().draw(batch)
        centre, spread = self._filled.mean(axis=0), self._filled.std(axis=0)
        values = (fill_gaps(batch).values - centre) / np.where(spread > 0, spread, 1.0)
        return batch.with_values(np.ascontiguousarray(values), batch.channel_names)

    def explain(
        self, series: SeriesBatch, codes: IntArray, features: FloatArray, bins: Bins
    ) -> dict[str, Any]:
        """Divide the scores as `slts.explain` does."""
        explanation = explain(self.model, series)
        parts, paths = [], {}
        for code in codes.tolist():
            row, sign = explanation.for_class(self.model.classes_[code])
            values = sign * explanation.by_landmark[row]
            order = np.argsort(-np.abs(values), kind="stable")[:STRONGEST]
            order = order[values[order] != 0]
            terms = self._drawn_terms(sign * explanation.contributions[row])
            part = {
                "class": code,
                "strongest": [[self.number(j), rounded(values[j])] for j in order.tolist()],
                # Channel by channel, because packing preserves sums of consecutive entries.
                "contributions": pack(bins.sums(terms).T, bits=8),
                "offset": rounded(sign * explanation.offset[row]),
                "intercept": rounded(sign * explanation.intercept[row]),
                "rest": rounded(values.sum() - values[order].sum()),
            }
            part["stretches"] = [
                [first, last, *map(rounded, sums), channel]
                for first, last, *sums, channel in explanation.stretches(self.model.classes_[code])
            ]
            # A class can have no landmark with a weight.
            if len(order):
                steps = sign * explanation.steps_through(np.full(len(order), row), order)
                part["by_step"] = pack(bins.sums(steps.T).T, bits=8)
            if self.snippets is not None:
                part["all_snippets"] = rounded(sign * explanation.by_snippet[row].sum())
                part["snippets"] = self.snippets.strongest(explanation, row, sign)
            parts.append(part)
            for j in order.tolist():
                if str(self.number(j)) not in paths:
                    path = explanation.alignment(j).path
                    paths[str(self.number(j))] = self.path(path, bins, j)
        return {"parts": parts, "paths": paths}

    def _drawn_terms(self, terms: FloatArray) -> FloatArray:
        """Contributions (steps, channels) of the drawn channels, and the sum of all others."""
        drawn = terms[:, self.channels]
        if drawn.shape[1] == terms.shape[1]:
            return drawn
        return np.column_stack([drawn, terms.sum(axis=1) - drawn.sum(axis=1)])

    def gallery(self, features: FloatArray | None) -> tuple[list[dict[str, Any]], bool]:
        """The strongest landmarks of each class, and whether they have weights.

        If landmarks have weights, every class has other ones: the landmarks of a row are those with
        the largest weights for its class, and an effect is the share of the weight, with its sign.
        Otherwise they are those that belong to the class; see `landmark_effects`.
        """
        model = self.model
        labels, positives = model.classes_.tolist(), model.positive_classes_.tolist()
        codes = [model.series_class(index) for index in self.indices.tolist()]
        effects, weighted = landmark_effects(model, features)
        by_class = not weighted and None not in codes
        if weighted:
            effects = _shares(effects)
        classes = labels if by_class else positives
        most = max(1, min(_MOST_PER_CLASS, _MOST_LANDMARKS // len(classes)))
        rows = []
        for c, label in enumerate(classes):
            effect = effects[0 if len(positives) == 1 else c]
            used = (effect != 0) & (np.array(codes) == c if by_class else True)
            order = np.argsort(-np.abs(effect), kind="stable")
            shown = order[used[order]][:most].tolist()
            row = {"class": labels.index(label), "used": int(used.sum())}
            row |= {"shown": list(map(self.number, shown)), "effect": rounded(effect[shown], 3)}
            rows.append(row)
        return rows, weighted


def _importance(
    model: LinearClassifier, summary: ModelSummary, channels: list[str]
) -> dict[str, Any]:
    """Importance of channels and feature maps in a linear model, and its metrics.

    Returns
    -------
    dict
        ``channels`` has one row of shares per decision value. ``metrics`` is empty if the model has
        no learned metric.
    """
    aligned = model.model_.aligned
    # Rows that are channels, if there are any.
    drawn = next((k for k, one in enumerate(aligned) if one.row_map.row_names(channels)), 0)
    names = aligned[drawn].row_map.row_names(channels)
    by_map, several = _shares(summary.map_importance).mean(axis=0), len(summary.map_names) > 1
    maps = [list(one) for one in zip(summary.map_names, rounded(by_map), strict=True)]
    return {
        "channels": rounded(_shares(summary.channel_importance)),
        "feature_maps": maps if several else [],
        "metrics": _class_metrics(model, drawn),
        "metric_channels": names or [f"feature {u}" for u in range(aligned[drawn].shape[2])],
        "metric_map": aligned[drawn].name if several else None,
    }


def _class_metrics(model: LinearClassifier, feature_map: int) -> list[dict[str, Any]]:
    """The metrics of each decision value for the landmarks of its class, by phase.

    Metrics of one decision value stand side by side on the page, distinguished by ``part``.
    """
    drawn = []
    for decision, label in enumerate(model.positive_classes_):
        metrics = class_metrics(model, label, feature_map)
        for phase, values in enumerate(metrics, start=1):
            part = None if len(metrics) == 1 else f"phase {phase} of {len(metrics)}"
            drawn.append({"decision": decision, "part": part, "values": rounded(values, 3)})
    learned = any(one["values"] != np.eye(len(one["values"])).tolist() for one in drawn)
    return drawn if learned else []


def _shares(values: FloatArray) -> FloatArray:
    """Divide each row by the sum of its absolute values."""
    totals = np.abs(values).sum(axis=1, keepdims=True)
    return np.asarray(values / np.where(totals > 0, totals, 1.0))
