"""Snippets: the strongest ones of each class with examples, and those that occur at a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.estimators.linear import LinearClassifier
from slts.features.explanation import required_snippets
from slts.features.summary import snippet_in_series, snippets_to_show
from slts.report.markup import Content, section, table
from slts.report.packing import Bins, pack, rounded
from slts.report.predictions import Predictions
from slts.series import SeriesBatch
from slts.series.missing import fill_gaps

# Snippets named for one class at one step of one series.
AT_STEP = 3
# Snippets drawn for one decision value and one sign, and for all of them.
_MOST_PER_SIDE, _MOST_DRAWN = 3, 240
# Channels drawn of one snippet.
_MOST_ROWS = 3
# Pairs of snippet and step that are explained in the time of one short alignment.
_PAIRS = 30_000
# Pairs of snippet and step that are held at once.
_HELD = 2**22


@dataclass(frozen=True, eq=False)
class Occurring:
    """The snippets that occur in one series, for some classes.

    Attributes
    ----------
    strongest
        Number on the page of the snippets that add most in each bin, shape (classes, bins,
        `AT_STEP`).
    values
        What they add, of the same shape; 0 where fewer snippets occur.
    totals
        What all snippets add in each bin, shape (classes, bins).
    counts
        Number of snippets that occur in each bin, shape (bins,).
    """

    strongest: IntArray
    values: FloatArray
    totals: FloatArray
    counts: IntArray


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
        n_pairs = len(self.snippets) * float(model.landmarks_.lengths.mean())
        # Time to explain one series, in alignments of short series.
        self.n_alignments = int(n_pairs / _PAIRS)

    def occurring(self, series: SeriesBatch, classes: IntArray, bins: Bins) -> Occurring:
        """Find what snippets add to the scores of some classes in each bin of one series."""
        snippets, n = self.snippets, len(self.snippets)
        chosen = [self.model.decision_of(label) for label in self.model.classes_[classes]]
        by_met = snippets.step_weights(series.n_steps, self.coef)
        weights = np.stack([sign * by_met[:, :, position] for position, sign in chosen])
        added = np.empty((len(classes), n, bins.count))
        occurs = np.empty((n, bins.count), dtype=bool)
        size = max(1, _HELD // series.n_steps)
        for begin in range(0, n, size):
            part = slice(begin, begin + size)
            met = snippets.occurrences(series, np.arange(n)[part])
            occurs[part] = np.logical_or.reduceat(met > 0, bins.first, axis=1)
            for c, of_class in enumerate(weights[:, part]):
                terms = np.take_along_axis(of_class, met, axis=1)
                added[c, part] = np.add.reduceat(terms, bins.first, axis=1)
        # Only what occurs is named; the totals also have what is missing.
        present = np.where(occurs, added, 0.0)
        order = _largest(np.abs(present))
        values = np.take_along_axis(present, order, axis=1).swapaxes(1, 2)
        order = order.swapaxes(1, 2)
        names = np.zeros(order.shape, dtype=np.int64)
        for place in np.argwhere(values != 0):
            names[*place] = self._number(int(order[*place]))
        return Occurring(names, values, added.sum(axis=1), occurs.sum(axis=0))

    def content(self, predictions: Predictions | None) -> dict[str, Any]:
        """The snippets that the page names, and the strongest ones of each class with examples.

        Parameters
        ----------
        predictions
            Series for the examples; None takes the landmarks of the model.

        Returns
        -------
        dict
            Lists with one entry per named snippet. ``gallery`` has the snippets for and against
            the class of each decision value, strongest first.
        """
        model, snippets = self.model, self.snippets
        if predictions is None:
            batch, indices = model.landmarks_, model.landmark_indices_.tolist()
            ids = [model.series_name(index, with_class=False) for index in indices]
            truth = [model.series_class(index) for index in indices]
        else:
            batch, ids, codes = predictions.batch, predictions.ids, predictions.truth
            truth = [None] * len(batch) if codes is None else codes.tolist()
        most = max(1, min(_MOST_PER_SIDE, _MOST_DRAWN // (2 * len(self.coef))))
        gallery: list[dict[str, Any]] = []
        rows: list[FloatArray] = []
        added: list[FloatArray] = []
        for decision, sides in enumerate(snippets_to_show(model, batch, most)):
            gallery.append({"for": [], "against": []})
            for items, side in zip(gallery[-1].values(), sides, strict=True):
                for one in side:
                    at, series = one.example, batch[one.example : one.example + 1]
                    centre, terms = snippet_in_series(self.linear, one.snippet, series)
                    bins = Bins(series.n_steps)
                    rows += self._rows_of_example(one.snippet, series, bins)
                    added.append(bins.sums(terms[decision]))
                    example = {"id": ids[at], "truth": truth[at], "adds": rounded(one.adds)}
                    example |= {"length": series.n_steps, "bins": bins.count, "centre": centre}
                    item = {"snippet": self._number(one.snippet), "weight": rounded(one.weight)}
                    items.append({**item, "example": example})
        drawn = [self._drawn(k) for k in self._numbers]
        return {
            "n_steps": snippets.n_steps,
            "position": list(self._numbers),
            "text": [model.describe_snippet(k) for k in self._numbers],
            "channels": [channels.tolist() for channels, _ in drawn],
            "compared": [snippets.compared(k) for k in self._numbers],
            "dilation": [int(snippets.dilations[k]) for k in self._numbers],
            # Every channel has its own lowest value and scale: none is lost beside a larger one.
            "lowest": [rounded(values.min(axis=1), 7) for _, values in drawn],
            "values": pack([row - row.min() for _, values in drawn for row in values], bits=16),
            "gallery": gallery,
            "example_rows": pack(rows, bits=16),
            "example_added": pack(added, bits=8),
            "of_training": predictions is None,
        }

    def _rows_of_example(self, snippet: int, series: SeriesBatch, bins: Bins) -> list[FloatArray]:
        """The channels of a snippet in a series, above a lowest value.

        That is the lowest value of the snippet if values are compared, else of the series.
        """
        channels, values = self._drawn(snippet)
        shown = bins.sample(fill_gaps(series).values[:, channels]).T
        lowest = values if self.snippets.compared(snippet) == "values" else shown
        return list(shown - lowest.min(axis=1, keepdims=True))

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


def snippets_section(content: Content) -> str:
    """Container of the drawn snippets, and a table."""
    snippets, model = content["snippets"], content["model"]
    if snippets is None:
        return ""
    rows = []
    for decision, sides in enumerate(snippets["gallery"]):
        name = model["classes"][model["decision_classes"][decision]]
        for side, strongest in sides.items():
            for item in strongest:
                j, weight = item["snippet"], f"{item['weight']:+.2g}"
                rows.append([name, side, weight, snippets["compared"][j], snippets["text"][j]])
    head = ["Class", "Side", "Importance", "Compared", "Snippet"]
    return section(
        "snippets",
        n_steps=str(snippets["n_steps"]),
        examples="training series" if snippets["of_training"] else "series of this report",
        listing=table("Snippets", rows, head=head, columns=["", "", "n", "", "text"]),
    )
