"""Snippets: the strongest ones of each class with examples, and those that occur at a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.explanation import snippet_in_series, snippets_to_show
from slts.models.snippets import SnippetForm
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
# What a snippet without a mark is compared by.
_VALUES = "values"
# Pairs of snippet and step that are explained in the time of one short alignment.
_PAIRS = 30_000


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
    form
        Its linear form.
    """

    def __init__(self, model: Any, form: SnippetForm) -> None:
        self.model, self.form = model, form
        self._numbers: dict[int, int] = {}
        n_pairs = len(form.snippets) * float(model.landmarks_.lengths.mean())
        # Time to explain one series, in alignments of short series.
        self.n_alignments = int(n_pairs / _PAIRS)

    def occurring(self, series: SeriesBatch, classes: IntArray, bins: Bins) -> Occurring:
        """Find what snippets add to the scores of some classes in each bin of one series."""
        form, steps = self.form, self.form.step_weights(series.n_steps)
        chosen = [self.model.decision_of(label) for label in self.model.classes_[classes]]
        weights = np.stack([sign * steps[position] for position, sign in chosen])
        added = np.empty((len(classes), len(form.snippets), bins.count))
        occurs = np.empty(added.shape[1:], dtype=bool)
        for part, met in form.occurrences(series, np.arange(len(form.snippets))):
            occurs[part] = np.logical_or.reduceat(met > 0, bins.first, axis=1)
            for c, own in enumerate(weights[:, part]):
                terms = np.take_along_axis(own, met, axis=1)
                added[c, part] = np.add.reduceat(terms, bins.first, axis=1)
        # Only what occurs is named; the totals also have what is missing.
        present = np.where(occurs, added, 0.0)
        order = np.argsort(-np.abs(present), axis=1, kind="stable")[:, :AT_STEP]
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
        model, snippets = self.model, self.form.snippets
        if predictions is None:
            batch, indices = model.landmarks_, model.landmark_indices_.tolist()
            ids = [model.series_name(index, with_class=False) for index in indices]
            truth = [model.series_class(index) for index in indices]
        else:
            batch, ids, codes = predictions.batch, predictions.ids, predictions.truth
            truth = [None] * len(batch) if codes is None else codes.tolist()
        most = max(1, min(_MOST_PER_SIDE, _MOST_DRAWN // (2 * len(self.form.coef))))
        gallery: list[dict[str, Any]] = []
        rows: list[FloatArray] = []
        added: list[FloatArray] = []
        for decision, sides in enumerate(snippets_to_show(model, batch, most)):
            gallery.append({"for": [], "against": []})
            for items, side in zip(gallery[-1].values(), sides, strict=True):
                for one in side:
                    at, series = one.example, batch[one.example : one.example + 1]
                    centre, terms = snippet_in_series(self.form, one.snippet, series)
                    channels, values = self._drawn(one.snippet)
                    bins = Bins(series.n_steps)
                    shown = bins.sample(fill_gaps(series).values[:, channels]).T
                    # Drawn on the scale of the snippet if values are compared, else on its own.
                    lowest = values if self._compared(one.snippet) == _VALUES else shown
                    rows += list(shown - lowest.min(axis=1, keepdims=True))
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
            "compared": [self._compared(k) for k in self._numbers],
            "dilation": [int(snippets.dilations[k]) for k in self._numbers],
            # Every channel has its own lowest value and scale: none is lost beside a larger one.
            "lowest": [rounded(values.min(axis=1), 7) for _, values in drawn],
            "values": pack([row - row.min() for _, values in drawn for row in values], bits=16),
            "gallery": gallery,
            "example_rows": pack(rows, bits=16),
            "example_added": pack(added, bits=8),
            "of_training": predictions is None,
        }

    def _drawn(self, snippet: int) -> tuple[IntArray, FloatArray]:
        """The channels of a snippet that are drawn, and its values, shape (channels, steps)."""
        snippets = self.form.snippets
        own = snippets.prominent_rows(snippet, _MOST_ROWS)
        return snippets.channels_of(snippet)[own], snippets.values_of(snippet)[own]

    def _compared(self, snippet: int) -> str:
        """What of a snippet is compared."""
        if self.form.snippets.shape_only[snippet]:
            return "shape only"
        return "by strength" if self.form.snippets.by_strength[snippet] else _VALUES

    def _number(self, snippet: int) -> int:
        return self._numbers.setdefault(snippet, len(self._numbers))


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
