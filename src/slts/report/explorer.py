"""Every series of the prediction explorer: scores, contributions, alignments."""

from __future__ import annotations

from typing import Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.report.companions import STRONGEST, Companions, Comparison
from slts.report.packing import pack, short, shorts
from slts.report.sample import Sample
from slts.report.thinning import MOST_BYTES, MOST_SERIES, Bins, path_moves, series_to_keep
from slts.series import SeriesBatch

# Classes whose contributions are kept for one series: the predicted, the true and the next best.
# Fewer, where otherwise fewer than so many series would fit.
MOST_CLASSES, FEWEST_CLASSES, ENOUGH_SERIES = 12, 3, 200
# Paths of short series that are found to explain all series, some hundredths of a millisecond each;
# but some series are explained in any case.
MOST_ALIGNMENTS, FEWEST_SERIES = 300_000, 50
# What a series takes besides its arrays: names, numbers, paths.
_BASE_BYTES = 900


def choose_series(
    sample: Sample, n_channels: int, companions: Companions | None
) -> tuple[IntArray, int]:
    """Series that fit into the explorer, misclassified ones first, and classes to explain."""
    n_alignments = 1 if companions is None else max(1, companions.n_alignments)
    most = min(MOST_SERIES, max(FEWEST_SERIES, MOST_ALIGNMENTS // n_alignments))
    steps = np.array([Bins.of(int(n)).count for n in sample.batch.lengths])
    n_classes = 0 if sample.decisions is None else min(sample.decisions.shape[1], MOST_CLASSES)

    def sizes(n_classes: int) -> IntArray:
        numbers = steps * (n_classes * (n_channels + STRONGEST) + 2 * n_channels)
        return _BASE_BYTES + numbers * 4 // 3 + n_classes * STRONGEST * 40

    share = min(1.0, ENOUGH_SERIES / len(steps))
    while n_classes > FEWEST_CLASSES and share * sizes(n_classes).sum() > MOST_BYTES:
        n_classes -= 1
    return series_to_keep(sample.wrong, sizes(n_classes), most=most), n_classes


class Explorer:
    """Collects series one after another; arrays of all of them are packed together.

    Parameters
    ----------
    sample
        Series and answers.
    rows
        The series as they are drawn: all channels of the data, as the model sees them.
    channels
        Channels to draw; contributions of the others are added up.
    companions
        What series are compared with, if anything.
    most_classes
        Classes explained for one series, at most.
    """

    def __init__(
        self,
        sample: Sample,
        rows: SeriesBatch,
        channels: IntArray,
        companions: Companions | None,
        most_classes: int,
    ) -> None:
        self.sample = sample
        self.rows = rows
        self.channels = channels
        self.companions = companions
        self.most_classes = most_classes
        self.entries: list[dict[str, Any]] = []
        # Companions in the order in which they are first named.
        self.named: dict[int, int] = {}
        self._drawn: list[FloatArray] = []
        self._maps: list[FloatArray] = []
        self._steps: list[FloatArray] = []

    def add(self, index: int) -> None:
        """Add one series of the sample."""
        sample = self.sample
        bins = Bins.of(int(sample.batch.lengths[index]))
        self._drawn.append(bins.sample(self.rows[index].T[:, self.channels]))
        entry: dict[str, Any] = {
            "index": index,
            "id": sample.ids[index],
            "length": len(bins.of_step),
            "bins": bins.count,
            "truth": None if sample.truth is None else int(sample.truth[index]),
            "predicted": int(sample.predicted[index]),
            "p": None if sample.probabilities is None else _probabilities(sample, index),
            "scores": None if sample.decisions is None else shorts(sample.decisions[index]),
        }
        if self.companions is not None:
            classes = self._classes(index)
            found = self.companions.compare(sample.batch[index], classes)
            entry |= self._compared(found, classes, bins)
        self.entries.append(entry)

    def content(self) -> dict[str, Any]:
        """Everything the page needs of the series."""
        return {
            "n_given": len(self.sample.batch),
            "n_wrong": len(self.sample.wrong),
            "labelled": self.sample.truth is not None,
            "labels": self.sample.names,
            "has_maps": bool(self._maps),
            "entries": self.entries,
            "rows": pack(self._drawn, bits=16),
            "maps": pack(self._maps, bits=8),
            "by_step": pack(self._steps, bits=8),
        }

    def _classes(self, index: int) -> IntArray:
        """Classes to explain: all, or the predicted, the true and those of the best scores."""
        sample = self.sample
        if sample.decisions is None:
            return np.empty(0, dtype=np.int64)
        best = np.argsort(-sample.decisions[index], kind="stable")
        n_classes = len(best)
        if n_classes <= self.most_classes:
            return np.arange(n_classes)
        first = [int(sample.predicted[index])]
        if sample.truth is not None and sample.truth[index] < n_classes:
            first.append(int(sample.truth[index]))
        order = list(dict.fromkeys([*first, *best.tolist()]))
        return np.sort(np.array(order[: self.most_classes], dtype=np.int64))

    def _compared(self, found: Comparison, classes: IntArray, bins: Bins) -> dict[str, Any]:
        entry: dict[str, Any] = {"classes": classes.tolist()}
        if found.contributions is not None and found.offset is not None:
            entry["offset"] = shorts(found.offset)
            entry["map"] = len(self._maps)
            # Channel after channel, so that packing keeps the sums over steps.
            self._maps += [bins.sums(self._drawn_terms(terms)).T for terms in found.contributions]
        if found.rest is not None:
            entry["rest"] = shorts(found.rest)
        entry["strongest"] = [
            [[self._name(j), short(value)] for j, value in chosen] for chosen in found.strongest
        ]
        if found.by_step is not None:
            terms = [bins.sums(terms) for chosen in found.by_step for terms in chosen]
            self._steps.append(np.concatenate([*terms, np.empty(0)]))
        entry["paths"] = {
            str(self._name(j)): path_moves(path, bins, Bins.of(found.lengths[j]))
            for j, path in found.paths.items()
        }
        return entry

    def _drawn_terms(self, terms: FloatArray) -> FloatArray:
        """Contributions (steps, channels) of the drawn channels, and of all others together."""
        drawn = terms[:, self.channels]
        if drawn.shape[1] == terms.shape[1]:
            return drawn
        others = terms.sum(axis=1) - drawn.sum(axis=1)
        return np.column_stack([drawn, others])

    def _name(self, companion: int) -> int:
        return self.named.setdefault(companion, len(self.named))


def _probabilities(sample: Sample, index: int) -> list[float]:
    if sample.probabilities is None:
        return []
    return [round(float(p), 4) for p in sample.probabilities[index]]
