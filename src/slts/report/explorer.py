"""Explanations of single series, and series as points in similarity space."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from slts._typing import FloatArray, IntArray
from slts.report.markup import Content, percent, section
from slts.report.packing import (
    Bins,
    bin_path,
    clock,
    pack,
    pack_integers,
    pack_path,
    rounded,
    times_of_bins,
)
from slts.report.predictions import Predictions
from slts.report.references import STRONGEST, Explained, References
from slts.report.snippets import AT_STEP, DrawnSnippets, Occurring
from slts.series import SeriesBatch

# Points in similarity space.
MOST_POINTS = 1500
# Size of a series without its arrays: names, numbers, paths.
_BASE_BYTES = 900


@dataclass(frozen=True)
class Limits:
    """Limits of the explorer.

    Attributes
    ----------
    series, n_bytes
        Number of series, and their size.
    classes, fewest_classes, enough_series
        Classes explained for one series: the predicted, the true and those with the next best
        scores. The number is reduced if fewer than `enough_series` would fit.
    alignments, fewest_series
        Alignments for all explanations; each takes about 0.03 ms. So many series are always
        explained.
    """

    series: int = 500
    n_bytes: int = 4_000_000
    classes: int = 12
    fewest_classes: int = 3
    enough_series: int = 200
    alignments: int = 300_000
    fewest_series: int = 50


def choose_series(
    predictions: Predictions,
    n_channels: int,
    references: References | None,
    snippets: DrawnSnippets | None,
    limits: Limits = Limits(),
) -> tuple[IntArray, int]:
    """Series for the explorer, misclassified series first, and the number of classes to explain."""
    n_alignments = 1 if references is None else max(1, references.n_alignments)
    at_step = 0
    if snippets is not None:
        n_alignments += snippets.n_alignments
        # Values, their sum and numbers of two bytes.
        at_step = AT_STEP + 1 + 2 * AT_STEP
    most = min(limits.series, max(limits.fewest_series, limits.alignments // n_alignments))
    steps = np.array([Bins(int(n)).count for n in predictions.batch.lengths])
    decisions = predictions.decisions
    n_classes = 0 if decisions is None else min(decisions.shape[1], limits.classes)

    def sizes(n_classes: int) -> IntArray:
        numbers = steps * (n_classes * (n_channels + STRONGEST + at_step) + 2 * n_channels)
        return _BASE_BYTES + numbers * 4 // 3 + n_classes * STRONGEST * 40

    share = min(1.0, limits.enough_series / len(steps))
    while n_classes > limits.fewest_classes and share * sizes(n_classes).sum() > limits.n_bytes:
        n_classes -= 1
    kept = series_to_keep(predictions.wrong, sizes(n_classes), most=most, budget=limits.n_bytes)
    return kept, n_classes


@dataclass(eq=False)
class Explorer:
    """Collects explanations of single series; their arrays are packed together.

    Parameters
    ----------
    predictions
        Series and predictions.
    rows
        The series as they are drawn.
    channels
        Channels to draw. Contributions of the others are summed.
    references
        What the model compares series with, if known.
    snippets
        The snippets of the model, if it has any.
    most_classes
        Largest number of classes explained for one series.
    """

    predictions: Predictions
    rows: SeriesBatch
    channels: IntArray
    references: References | None
    snippets: DrawnSnippets | None
    most_classes: int
    entries: list[dict[str, Any]] = field(default_factory=list)
    _drawn: list[FloatArray] = field(default_factory=list)
    _contributions: list[FloatArray] = field(default_factory=list)
    _by_step: list[FloatArray] = field(default_factory=list)
    _times: list[FloatArray] = field(default_factory=list)
    _occurring: list[Occurring] = field(default_factory=list)

    def add(self, index: int, similarities: FloatArray | None) -> None:
        """Add one series; `similarities` is its row of `References.similarities`."""
        predictions = self.predictions
        truth, p, scores = predictions.truth, predictions.probabilities, predictions.decisions
        bins = Bins(int(predictions.batch.lengths[index]))
        self._drawn.append(bins.sample(self.rows[index].T[:, self.channels]))
        entry: dict[str, Any] = {
            "index": index,
            "id": predictions.ids[index],
            "clock": None,
            "length": len(bins.of_step),
            "bins": bins.count,
            "truth": None if truth is None else int(truth[index]),
            "predicted": int(predictions.predicted[index]),
            "p": None if p is None else p[index].round(4).tolist(),
            "scores": None if scores is None else rounded(scores[index]),
        }
        times = predictions.batch[index : index + 1].times
        if times is not None:
            entry["clock"] = clock(times)
            self._times.append(times_of_bins(times, bins))
        if self.references is not None and similarities is not None:
            classes = self._classes(index)
            series = predictions.batch[index : index + 1]
            explained = self.references.explain(series, classes, similarities)
            entry |= {"classes": classes.tolist()}
            entry |= self._explained(explained, self.references, bins)
            if self.snippets is not None:
                occurring = self.snippets.occurring(series, classes, bins)
                entry["snippets"] = rounded(occurring.totals.sum(axis=1))
                self._occurring.append(occurring)
        self.entries.append(entry)

    def content(self) -> dict[str, Any]:
        """All entries, with their arrays packed."""
        return {
            "n_series": len(self.predictions.batch),
            "n_wrong": len(self.predictions.wrong),
            "labelled": self.predictions.truth is not None,
            "has_contributions": bool(self._contributions),
            "entries": self.entries,
            "rows": pack(self._drawn, bits=16),
            "times": pack(self._times, bits=16) if self._times else None,
            "contributions": pack(self._contributions, bits=8),
            "by_step": pack(self._by_step, bits=8),
            "occurring": None
            if self.snippets is None
            else {
                "at_step": AT_STEP,
                "strongest": pack_integers(one.strongest for one in self._occurring),
                "values": pack((one.values for one in self._occurring), bits=8),
                "totals": pack((one.totals for one in self._occurring), bits=8),
                "counts": pack_integers(one.counts for one in self._occurring),
            },
        }

    def _classes(self, index: int) -> IntArray:
        """Classes to explain: all, or the predicted, the true and those with the best scores."""
        scores, truth = self.predictions.decisions, self.predictions.truth
        # Every model with references has scores.
        assert scores is not None
        chosen = [int(self.predictions.predicted[index])]
        if truth is not None and truth[index] < scores.shape[1]:
            chosen.append(int(truth[index]))
        chosen += np.argsort(-scores[index], kind="stable").tolist()
        return np.sort(list(dict.fromkeys(chosen))[: self.most_classes])

    def _explained(self, parts: Explained, references: References, bins: Bins) -> dict[str, Any]:
        number, lengths = references.number, references.rows.lengths.tolist()
        entry: dict[str, Any] = {
            "strongest": [
                [[number(j), rounded(value)] for j, value in one.items()] for one in parts.strongest
            ],
            "paths": {
                str(number(j)): pack_path(bin_path(path, bins, Bins(lengths[j])))
                for j, path in parts.paths.items()
            },
        }
        if parts.contributions is not None:
            entry["contributions"] = len(self._contributions)
            entry["offset"] = rounded(parts.offset)
            entry["intercept"] = rounded(parts.intercept)
            entry["rest"] = rounded(parts.rest)
            # Channel by channel, because packing preserves sums of consecutive entries.
            terms = map(self._drawn_terms, parts.contributions)
            self._contributions += [bins.sums(of_class).T for of_class in terms]
            self._by_step.append(np.array([bins.sums(terms) for terms in parts.by_step]))
        return entry

    def _drawn_terms(self, terms: FloatArray) -> FloatArray:
        """Contributions (steps, channels) of the drawn channels, and the sum of all others."""
        drawn = terms[:, self.channels]
        if drawn.shape[1] == terms.shape[1]:
            return drawn
        return np.column_stack([drawn, terms.sum(axis=1) - drawn.sum(axis=1)])


def points_to_show(n_series: int, kept: IntArray) -> IntArray:
    """Series drawn as points: those of the explorer first, then others up to a limit."""
    others = np.setdiff1d(np.arange(n_series), kept)
    room = max(0, MOST_POINTS - len(kept))
    if len(others) > room:
        others = np.sort(np.random.default_rng(0).choice(others, room, replace=False))
    return np.concatenate([kept, others])


def similarity_space(
    predictions: Predictions,
    shown: IntArray,
    similarities: FloatArray,
    references: References,
) -> dict[str, Any] | None:
    """First two principal components of similarities; None with too few series or similarities.

    Parameters
    ----------
    predictions
        Series and predictions.
    shown
        Indices of the series to show.
    similarities
        Their similarities, shape (series, features).
    references
        Their landmarks are drawn too.

    Returns
    -------
    dict
        Points of series and landmarks, labels, and the share of the variance that they explain.
    """
    if len(shown) < 3 or similarities.shape[1] < 2:
        return None
    pca = PCA(2, svd_solver="randomized", iterated_power=7, random_state=0)
    points = pca.fit_transform(similarities)
    if not pca.explained_variance_.sum() > 0:
        return None
    rings = ring_labels = None
    if references.rings is not None and len(references.rings):
        rings = rounded(pca.transform(references.similarities(references.rings)))
        ring_labels = list(map(references.model.series_class, references.indices.tolist()))
    truth, predicted = predictions.truth, predictions.predicted
    return {
        "points": rounded(points),
        "index": shown.tolist(),
        "ids": [predictions.ids[i] for i in shown],
        "label": (predicted if truth is None else truth)[shown].tolist(),
        "predicted": predicted[shown].tolist(),
        "variance": round(float(pca.explained_variance_ratio_.sum()), 4),
        "landmarks": rings,
        "landmark_labels": ring_labels,
    }


def series_to_keep(
    wrong: IntArray, sizes: IntArray, *, most: int, budget: int = Limits.n_bytes
) -> IntArray:
    """Series for the explorer: misclassified series first, then a random choice with fixed seed.

    Parameters
    ----------
    wrong
        Indices of misclassified series.
    sizes
        Size of each series in bytes, shape (series,).
    most, budget
        Limits of number and total size. At least one series is kept.

    Returns
    -------
    ndarray
        Indices of misclassified series, then of the others, each in increasing order.
    """
    rng = np.random.default_rng(0)
    others = np.setdiff1d(np.arange(len(sizes)), wrong)
    order = np.concatenate([rng.permutation(wrong), rng.permutation(others)]).astype(np.int64)
    fits = max(1, int(np.searchsorted(np.cumsum(sizes[order]), budget, side="right")))
    kept = np.sort(order[: min(most, fits)])
    is_wrong = np.isin(kept, wrong)
    return np.concatenate([kept[is_wrong], kept[~is_wrong]])


def space_section(content: Content) -> str:
    """Container of the scatter plot."""
    space, explorer = content["space"], content["explorer"]
    if space is None:
        return ""
    n, total = len(space["points"]), content["summary"]["n_series"]
    landmarks = content["references"]["kind"] == "landmarks"
    kind = "landmarks" if landmarks else "training series"
    sentences = [
        "Nearby points are similar series.",
        f"The axes are the first two principal components of the similarities to the {kind}, which "
        f"explain {percent(space['variance'], 0)} of their variance.",
        f"Colour and shape show the {'true' if explorer['labelled'] else 'predicted'} class.",
        "Outlined shapes are errors." if explorer["n_wrong"] else "",
        "Rings are landmarks, in the colour of their class." if space["landmarks"] else "",
        f"{n:,} of {total:,} series are shown, misclassified series first." if n < total else "",
    ]
    return section("space", about=" ".join(filter(None, sentences)))


def explorer_section(content: Content) -> str:
    """Container of the explorer, with notes on what it leaves out."""
    explorer, drawing = content["explorer"], content["drawing"]
    if explorer is None:
        return ""
    kept, total = len(explorer["entries"]), explorer["n_series"]
    steps, channels = drawing["most_steps"], len(drawing["channels"])
    notes = []
    if kept < total:
        notes.append(section("some_series", kept=f"{kept:,}", total=f"{total:,}"))
    if content["data"]["lengths"]["high"] > steps:
        notes.append(section("long_series", steps=str(steps)))
    if content["summary"]["n_channels"] > channels:
        notes.append(section("many_channels", channels=str(channels)))
    if content["snippets"] is not None:
        notes.append(section("ends_of_series"))
    notes.append(escape(drawing["note"]))
    if explorer["times"] is None:
        notes.append("Steps count from 0.")
    has_probabilities = explorer["entries"][0]["p"] is not None
    no_references = content["references"] is None
    return section(
        "explorer",
        order="Misclassified series are listed first." if explorer["n_wrong"] else "",
        notes=" ".join(notes),
        values="Probabilities" if has_probabilities else "Scores",
        choose="" if no_references else ": choose a class to explain",
        no_map="" if explorer["has_contributions"] else "hidden",
        no_snippets="hidden" if content["snippets"] is None else "",
        no_alignment="hidden" if no_references else "",
        not_alone="" if no_references else "hidden",
    )
