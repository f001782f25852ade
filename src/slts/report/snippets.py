"""Snippets: the strongest ones of each class with examples, and those that occur at a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.estimators.linear import LinearClassifier
from slts.features.explanation import (
    ShownSnippet,
    required_snippets,
    snippet_in_series,
    snippets_to_show,
)
from slts.report.packing import Bins, pack, rounded
from slts.report.predictions import Predictions
from slts.series import SeriesBatch
from slts.series.missing import fill_gaps

# Snippets named for one class at one step of one series.
AT_STEP = 3
# Bytes of one step in `DrawnSnippets.explain`: numbers and values of snippets, and their sum.
BYTES_PER_STEP = 3 * AT_STEP + 1
# Snippets drawn for one decision value and one sign, and for all of them.
_MOST_PER_SIDE, _MOST_DRAWN = 3, 240
# Channels drawn of one snippet.
_MOST_ROWS = 3
# Pairs of snippet and step that are held at once.
_HELD = 2**22


class DrawnSnippets:
    """The snippets of a model. The page numbers those that it shows.

    Parameters
    ----------
    model
        A fitted classifier with snippets.
    """

    def __init__(self, model: LinearClassifier) -> None:
        self.model, self.linear = model, model.model_
        self.snippets, self.coef = required_snippets(self.linear)
        self._numbers: dict[int, int] = {}

    def explain(self, series: SeriesBatch, parts: list[dict[str, Any]], bins: Bins) -> Any:
        """Add to the explanation of each class what snippets contribute in each bin.

        ``snippets`` is the sum over all of them, and ``snippets_by_step`` that in each bin.
        ``strongest_at_step`` numbers those of the snippets that occur there which contribute most,
        and ``values_at_step`` has their contributions: 0 where fewer snippets occur. The result is
        the number of snippets that occur in each bin, packed.
        """
        added, occurs = self._contributions(series, [part["class"] for part in parts], bins)
        # Only what occurs is named; the totals also have what is missing.
        present = np.where(occurs, added, 0.0)
        order = _largest(np.abs(present))
        values = np.take_along_axis(present, order, axis=1)
        numbers = np.zeros(order.shape, dtype=np.int64)
        for place in np.argwhere(values != 0):
            numbers[*place] = self._number(int(order[*place]))
        for c, part in enumerate(parts):
            totals = added[c].sum(axis=0)
            part["snippets"] = rounded(totals.sum())
            part["snippets_by_step"] = pack(totals, bits=8)
            part["strongest_at_step"] = pack(numbers[c].T)
            part["values_at_step"] = pack(values[c].T, bits=8)
        return pack(occurs.sum(axis=0))

    def _contributions(
        self, series: SeriesBatch, codes: list[int], bins: Bins
    ) -> tuple[FloatArray, FloatArray]:
        """What each snippet adds to the scores of some classes in each bin, and if it occurs."""
        snippets, n = self.snippets, len(self.snippets)
        by_met = snippets.step_weights(series.n_steps, self.coef)
        chosen = [self.model.decision_of(self.model.classes_[code]) for code in codes]
        added = np.empty((len(codes), n, bins.count))
        occurs = np.empty((n, bins.count), dtype=bool)
        size = max(1, _HELD // series.n_steps)
        for begin in range(0, n, size):
            part = slice(begin, begin + size)
            met = snippets.occurrences(series, np.arange(n)[part])
            occurs[part] = np.logical_or.reduceat(met > 0, bins.first, axis=1)
            for c, (position, sign) in enumerate(chosen):
                terms = np.take_along_axis(sign * by_met[part, :, position], met, axis=1)
                added[c, part] = np.add.reduceat(terms, bins.first, axis=1)
        return added, occurs

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
            "at_step": AT_STEP,
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
            "dilation": int(self.snippets.dilations[k]),
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
        shown = bins.sample(fill_gaps(series).values[:, channels]).T
        lowest = values if self.snippets.compared(one.snippet) == "values" else shown
        return {
            "length": series.n_steps,
            "bins": bins.count,
            "centre": centre,
            "rows": [pack(row) for row in shown - lowest.min(axis=1, keepdims=True)],
            "added": pack(bins.sums(terms[decision]), bits=8),
        }

    def _drawn(self, snippet: int) -> tuple[IntArray, FloatArray]:
        """The channels of a snippet that are drawn, and its values, shape (channels, steps)."""
        rows = self.snippets.prominent_rows(snippet, _MOST_ROWS)
        return self.snippets.channels_of(snippet)[rows], self.snippets.values_of(snippet)[rows]

    def _number(self, snippet: int) -> int:
        return self._numbers.setdefault(snippet, len(self._numbers))


def _largest(sizes: FloatArray) -> IntArray:
    """Positions of the `AT_STEP` largest entries along the second axis, largest first."""
    most = min(AT_STEP, sizes.shape[1])
    # Faster than to sort all of them.
    some = np.argpartition(sizes, -most, axis=1)[:, -most:]
    order = np.argsort(-np.take_along_axis(sizes, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)
