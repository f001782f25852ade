"""Snippets: the strongest ones of each class with examples, and those of single series."""

from __future__ import annotations

from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.estimators.local import LocalSLTSClassifier
from slts.features.explanation import Explanation, required_snippets
from slts.features.summary import ShownSnippet, snippet_in_series, snippets_to_show
from slts.report.packing import Bins, pack, rounded
from slts.report.predictions import Predictions
from slts.series import SeriesBatch

# Snippets drawn for one decision value and one sign, and for all of them.
_MOST_PER_SIDE, _MOST_DRAWN = 3, 240
# Channels drawn of one snippet.
_MOST_ROWS = 3


class DrawnSnippets:
    """The snippets of a model. The page numbers those that it shows.

    Parameters
    ----------
    model
        A fitted classifier with snippets.
    """

    def __init__(self, model: LocalSLTSClassifier) -> None:
        self.model, self.linear = model, model.model_
        self.snippets, self.coef = required_snippets(self.linear)
        self._numbers: dict[int, int] = {}

    def strongest(self, explanation: Explanation, decision: int, sign: float) -> list[list[Any]]:
        """The snippets that contribute most to a decision value of one series, times a sign.

        Returns their numbers, what they add, and the steps at which they are closest.
        """
        added = sign * explanation.by_snippet[decision]
        chosen = np.sort(np.argsort(-np.abs(added), kind="stable")[:_MOST_PER_SIDE])
        ((_, distances),) = self.snippets.distances(explanation.series, chosen)
        steps = dict(zip(chosen.tolist(), distances.argmin(axis=1).tolist(), strict=True))
        order = sorted(steps, key=lambda k: -abs(added[k]))
        return [[self._number(k), rounded(added[k]), steps[k]] for k in order]

    def content(self, predictions: Predictions | None) -> dict[str, Any]:
        """The snippets that the page names, and the strongest ones of each class with examples.

        Parameters
        ----------
        predictions
            Series for the examples; None takes the landmarks of the model.

        Returns
        -------
        dict
            ``gallery`` has the snippets for and against the class of each decision value, strongest
            first, and ``items`` the named snippets.
        """
        model = self.model
        if predictions is None:
            batch, indices = model.landmarks_, model.landmark_indices_.tolist()
            ids = [model.series_name(index, with_class=False) for index in indices]
            truth = [model.series_class(index) for index in indices]
        else:
            batch, ids, codes = predictions.batch, predictions.ids, predictions.truth
            truth = [None] * len(batch) if codes is None else codes.tolist()
        most = max(1, min(_MOST_PER_SIDE, _MOST_DRAWN // (2 * len(self.coef))))
        gallery = []
        for decision, sides in enumerate(snippets_to_show(model, batch, most)):
            items: list[list[dict[str, Any]]] = [[], []]
            for shown, side in zip(sides, items, strict=True):
                for one in shown:
                    at = one.example
                    example = {"id": ids[at], "truth": truth[at], "adds": rounded(one.adds)}
                    example |= self._example(one, batch[at : at + 1], decision)
                    number, weight = self._number(one.snippet), rounded(one.weight)
                    side.append({"snippet": number, "weight": weight, "example": example})
            gallery.append({"for": items[0], "against": items[1]})
        return {
            "n_snippets": len(self.snippets),
            "n_steps": self.snippets.n_steps,
            "items": [self._item(k) for k in self._numbers],
            "gallery": gallery,
        }

    def _item(self, k: int) -> dict[str, Any]:
        channels, values = self._drawn(k)
        lowest = values.min(axis=1)
        return {
            "position": k,
            "text": self.model.describe_snippet(k),
            "channels": channels.tolist(),
            "compared": self.snippets.compared(k),
            # The first and the last step that it sees, from its middle one.
            "reach": self.snippets.reach(k)[[0, -1]].tolist(),
            # Every channel has its own lowest value and scale: none is lost beside a larger one.
            "lowest": rounded(lowest, 7),
            "rows": [pack(row - low) for row, low in zip(values, lowest, strict=True)],
        }

    def _example(self, one: ShownSnippet, series: SeriesBatch, decision: int) -> dict[str, Any]:
        """The channels of a snippet in a series, above a lowest value, and what it adds.

        That is the lowest value of the snippet if values are compared, else of the series.
        """
        bins = Bins(series.n_steps)
        channels, values = self._drawn(one.snippet)
        centre, terms = snippet_in_series(self.linear, one.snippet, series)
        shown = bins.sample(series.values[:, channels]).T
        lowest = values if self.snippets.compared(one.snippet) == "values" else shown
        least = np.fmin.reduce(lowest, axis=1, keepdims=True)
        return {
            "length": series.n_steps,
            "bins": bins.count,
            "centre": centre,
            "rows": [pack(row) for row in shown - np.nan_to_num(least)],
            "added": pack(bins.sums(terms[decision]), bits=8),
        }

    def _drawn(self, snippet: int) -> tuple[IntArray, FloatArray]:
        """The channels of a snippet that are drawn, and its values, shape (channels, values)."""
        rows = self.snippets.prominent_rows(snippet, _MOST_ROWS)
        return self.snippets.channels_of(snippet)[rows], self.snippets.values_of(snippet)[rows]

    def _number(self, snippet: int) -> int:
        return self._numbers.setdefault(snippet, len(self._numbers))
