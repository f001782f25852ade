"""All results of a run, looked up by method and data set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from slts.bench.methods import BY_NAME
from slts.study.protocol import is_divided
from slts.study.statistics import Summary, summarize

# Accuracy in percent by split.
BySplit = dict[int, float]


@dataclass(frozen=True)
class Cost:
    """Mean seconds of one thread, and mean count of numbers stored."""

    fit: float
    predict: float
    numbers: float


class Results:
    """Accuracies and costs.

    Parameters
    ----------
    results
        What the units returned; those of choices are passed over.
    n_splits
        Splits beyond are passed over.
    """

    def __init__(self, results: Iterable[Mapping[str, Any]], n_splits: int) -> None:
        self._found: dict[tuple[str, str], dict[int, Mapping[str, Any]]] = defaultdict(dict)
        for result in results:
            if "accuracy" in result and result["split"] < n_splits:
                self._found[result["method"], result["dataset"]][result["split"]] = result

    def methods(self, datasets: Iterable[str]) -> list[str]:
        """Methods that have a result on any of these, in the order of the table of methods."""
        wanted = set(datasets)
        there = {method for method, dataset in self._found if dataset in wanted}
        return [name for name in BY_NAME if name in there]

    def accuracies(self, method: str, dataset: str) -> BySplit:
        """Accuracies by split."""
        found = self._found.get((method, dataset), {})
        return {split: float(found[split]["accuracy"]) for split in sorted(found)}

    def summary(self, method: str, dataset: str) -> Summary | None:
        """Mean and interval over the splits, None where there is nothing."""
        found = self.accuracies(method, dataset)
        return summarize(list(found.values())) if found else None

    def pairs(self, first: str, second: str, dataset: str) -> tuple[list[float], list[float]]:
        """Accuracies of two methods in the splits both were run on.

        Without chance in a method, one run on a given division stands for all of its splits.
        """
        a, b = self.accuracies(first, dataset), self.accuracies(second, dataset)
        if _stands_for_all(first, dataset) and a:
            a = dict.fromkeys([*a, *b], a[0])
        if _stands_for_all(second, dataset) and b:
            b = dict.fromkeys([*a, *b], b[0])
        shared = sorted(set(a) & set(b)) if a and b else []
        return [a[s] for s in shared], [b[s] for s in shared]

    def difference(self, first: str, second: str, dataset: str) -> float | None:
        """Mean of first - second over shared splits."""
        a, b = self.pairs(first, second, dataset)
        return sum(a) / len(a) - sum(b) / len(b) if a else None

    def cost(self, method: str, dataset: str) -> Cost | None:
        """Mean times and size over the splits."""
        found = list(self._found.get((method, dataset), {}).values())
        if not found:
            return None
        fit, predict, numbers = (
            sum(float(one[name]) for one in found) / len(found)
            for name in ("fit_seconds", "predict_seconds", "numbers")
        )
        return Cost(fit, predict, numbers)


def _stands_for_all(method: str, dataset: str) -> bool:
    return is_divided(dataset) and not BY_NAME[method].chance
