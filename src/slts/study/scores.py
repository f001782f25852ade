"""All scores of a run, looked up by method, data set and landmarks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from slts.study.paper import COLUMNS, ROBOT_TASKS, WEIGHTS
from slts.study.statistics import Summary, summarize

# Accuracy in percent by split.
BySplit = dict[int, float]


class Scores:
    """Accuracies by split.

    Parameters
    ----------
    results
        What the units returned.
    n_splits
        How many splits the study has; methods without chance in them are run once and count for
        all of them.
    """

    def __init__(self, results: Iterable[Mapping[str, Any]], n_splits: int) -> None:
        self.n_splits = n_splits
        self._plain: dict[tuple[str, str], BySplit] = defaultdict(dict)
        self._landmark: dict[tuple[str, str, str, int], BySplit] = defaultdict(dict)
        self.n_train: dict[str, int] = {}
        for result in results:
            for score in result.get("scores", ()):
                self._add(score)

    def _add(self, score: Mapping[str, Any]) -> None:
        method, dataset, split = score["method"], score["dataset"], int(score["split"])
        if split >= self.n_splits:
            return
        self.n_train[dataset] = int(score["n_train"])
        if "landmarks" in score:
            key = (method, dataset, score["selection"], int(score["landmarks"]))
            self._landmark[key][split] = float(score["accuracy"])
        else:
            self._plain[method, dataset][split] = float(score["accuracy"])

    def counts(self, dataset: str) -> list[int]:
        """Numbers of random landmarks that BBS and SLTS have been run with."""
        found = [
            {
                n
                for m, name, how, n in self._landmark
                if (m, name, how) == (method, dataset, "random")
            }
            for method in ("bbs", "slts")
        ]
        return sorted(found[0] & found[1])

    def with_landmarks(
        self, method: str, dataset: str, count: int, selection: str = "random"
    ) -> BySplit:
        """Accuracies of BBS or SLTS with this many landmarks."""
        return dict(self._landmark.get((method, dataset, selection, count), {}))

    def of(self, method: str, dataset: str) -> BySplit:
        """Accuracies of a method of Table 2; BBS and SLTS with the most landmarks."""
        if method in ("bbs", "slts"):
            counts = self.counts(dataset)
            return self.with_landmarks(method, dataset, counts[-1]) if counts else {}
        return dict(self._plain.get((method, dataset), {}))

    def column(self, method: str, column: str) -> BySplit:
        """Accuracies in a column of Table 2: of a set, the mean of the robot tasks, the average."""
        if column == "robot":
            tasks = [self.of(method, task) for task in ROBOT_TASKS]
            return _mean(tasks, [1.0] * len(tasks))
        if column == "average":
            parts = [self.spread(method, name) for name in COLUMNS]
            return _mean(parts, [float(WEIGHTS[name]) for name in COLUMNS])
        return self.of(method, column)

    def spread(self, method: str, column: str) -> BySplit:
        """`column` for every split: where fewer were run, their mean stands for the others."""
        found = self.column(method, column)
        if not found or len(found) == self.n_splits:
            return found
        mean = sum(found.values()) / len(found)
        return {split: found.get(split, mean) for split in range(self.n_splits)}

    def summary(self, method: str, column: str) -> Summary | None:
        """Mean and interval of a column, None where there is nothing to show."""
        return summary_of(self.column(method, column))


def summary_of(values: BySplit) -> Summary | None:
    """Mean and interval over the splits."""
    return summarize([values[split] for split in sorted(values)]) if values else None


def _mean(parts: list[BySplit], weights: list[float]) -> BySplit:
    """Weighted mean by split, over the splits that every part has; empty if one has none."""
    shared = set.intersection(*(set(part) for part in parts))
    total = sum(weights)
    return {
        split: sum(w * part[split] for w, part in zip(weights, parts, strict=True)) / total
        for split in sorted(shared)
    }
