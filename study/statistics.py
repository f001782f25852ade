"""Scores of a run by method and data set; means with intervals, paired tests and ranks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit
from scipy.stats import rankdata, studentized_range

CONFIDENCE = 0.95
SIGNIFICANT = 0.05
# Accuracies (in percent) closer than this are equal.
TIE = 1e-9
# What `probability_scores` returns, and titles.
PROBABILITY_SCORES = {
    "ece": "Calibration error (ECE)",
    "log_loss": "Log loss",
    "brier": "Brier score",
}

# Accuracy in percent, by split.
BySplit = dict[int, float]


@dataclass(frozen=True)
class Summary:
    """Mean of `n` values and the half width of its interval, which is None for a single value."""

    mean: float
    interval: float | None
    n: int


@dataclass(frozen=True)
class Paired:
    """A two-sided paired t-test: mean of first - second, t, p and number of pairs.

    `t` is None where all differences are equal. Then `p` is 1 if they are zero and 0 otherwise.
    """

    difference: float
    t: float | None
    p: float
    n: int

    @property
    def significant(self) -> bool:
        """Whether p is below 5%."""
        return self.p < SIGNIFICANT


def summarize(values: Iterable[float]) -> Summary:
    """Return the mean and its 95% interval, t_(n-1) s / sqrt(n)."""
    array = np.array(list(values), dtype=np.float64)
    n = len(array)
    if n == 0:
        raise ValueError("The 'values' must not be empty.")
    mean = float(array.mean())
    if n == 1:
        return Summary(mean, None, 1)
    quantile = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2))
    return Summary(mean, quantile * float(array.std(ddof=1)) / math.sqrt(n), n)


def paired_test(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Return Student's t-test for paired samples."""
    if len(first) != len(second) or len(first) < 2:
        raise ValueError(
            f"The samples must have the same length, at least 2. Got {len(first)} and "
            f"{len(second)} instead."
        )
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    n = len(differences)
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    if deviation <= TIE:
        return Paired(mean, None, 1.0 if abs(mean) <= TIE else 0.0, n)
    t = mean / (deviation / math.sqrt(n))
    return Paired(mean, t, 2.0 * float(stdtr(n - 1, -abs(t))), n)


def mean_ranks(columns: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the mean rank of each method over the data sets; 1 is best, ties share ranks."""
    table = np.round(np.array(list(columns.values()), dtype=np.float64), 9)
    ranks = rankdata(-table, axis=0).mean(axis=1)
    return dict(zip(columns, ranks.tolist(), strict=True))


def signed_rank_test(differences: Sequence[float]) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test, exact even with ties.

    Zeros are dropped. Each rank is in the positive sum with probability one half, so the
    distribution of this sum is a product of polynomials.
    """
    values = np.asarray(differences, dtype=np.float64)
    values = values[np.abs(values) > TIE]
    # Ranks are halves of integers.
    doubled = (2 * rankdata(np.round(np.abs(values), 9))).astype(np.int64)
    chances = np.ones(1)
    for rank in doubled.tolist():
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    total, positive = int(doubled.sum()), int(doubled[values > 0].sum())
    extreme = np.abs(2 * np.arange(total + 1) - total) >= abs(2 * positive - total)
    return float(chances[extreme].sum())


def critical_difference(n_methods: int, n_datasets: int) -> float:
    """Return the difference of mean ranks that is significant at 5% (Nemenyi)."""
    quantile = float(studentized_range.ppf(CONFIDENCE, n_methods, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))


def probability_scores(
    chances: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_], n_bins: int = 10
) -> dict[str, float]:
    """Return the calibration error, the log loss and the Brier score of probabilities.

    The overconfidence is the mean of the largest probability minus the accuracy.

    Parameters
    ----------
    chances
        Probabilities, shape (series, classes).
    truth
        Whether the series has the class, same shape.
    n_bins
        Number of equal bins of the largest probability, for the calibration error (ECE).
    """
    largest = chances.max(axis=1)
    right = truth[np.arange(len(chances)), chances.argmax(axis=1)]
    bins = np.minimum((n_bins * largest).astype(np.int64), n_bins - 1)
    gaps = np.bincount(bins, weights=right - largest, minlength=n_bins)
    # A probability of zero for the true class costs as much as one of 1e-12.
    losses = -np.log(np.maximum((chances * truth).sum(axis=1), 1e-12))
    return {
        "ece": float(np.abs(gaps).sum() / len(chances)),
        "overconfidence": float(np.mean(largest - right)),
        "log_loss": float(losses.mean()),
        "brier": float(np.mean(np.sum((chances - truth) ** 2, axis=1))),
    }


class Scores:
    """All scores of a run, by method, data set, selection and number of landmarks.

    Parameters
    ----------
    results
        What the units returned.
    n_splits
        Later splits are ignored.
    heldout
        Which reading of the paper's protocol to take.
    """

    def __init__(
        self, results: Iterable[Mapping[str, Any]], n_splits: int, *, heldout: bool = False
    ) -> None:
        self.n_train: dict[str, int] = {}
        self._found: dict[tuple[Any, ...], dict[int, Mapping[str, Any]]] = defaultdict(dict)
        for score in (score for result in results for score in result.get("scores", ())):
            if score["heldout"] == heldout and score["split"] < n_splits:
                names = ("method", "dataset", "selection", "landmarks")
                key = tuple(score.get(name) for name in names)
                self._found[key][score["split"]] = score
                self.n_train[score["dataset"]] = score["n_train"]

    def of(
        self, method: str, dataset: str, selection: str | None = None, count: int | None = None
    ) -> list[Mapping[str, Any]]:
        """Return the scores of a method on a data set, in the order of the splits."""
        found = self._found.get((method, dataset, selection, count), {})
        return [found[split] for split in sorted(found)]

    def accuracies(
        self, method: str, dataset: str, selection: str | None = None, count: int | None = None
    ) -> BySplit:
        """Return the accuracies by split."""
        scores = self.of(method, dataset, selection, count)
        return {score["split"]: score["accuracy"] for score in scores}

    def counts(self, dataset: str) -> list[int]:
        """Return the numbers of random landmarks that both BBS and SLTS have scores for."""
        bbs, slts = (
            {key[3] for key in self._found if key[:3] == (method, dataset, "random")}
            for method in ("bbs", "slts")
        )
        return sorted(bbs & slts)


def on_shared_splits(first: BySplit, second: BySplit) -> tuple[list[float], list[float]]:
    """Return the accuracies of two methods on the splits that both have."""
    shared = sorted(first.keys() & second.keys())
    return [first[split] for split in shared], [second[split] for split in shared]


def summary_by_split(values: BySplit) -> Summary | None:
    """Return the mean of the accuracies; None without any."""
    return summarize(values.values()) if values else None


def tested_by_split(first: BySplit, second: BySplit) -> Paired | None:
    """Return the paired t-test on the splits that both have; None if there are fewer than two."""
    pairs = on_shared_splits(first, second)
    return paired_test(*pairs) if len(pairs[0]) > 1 else None
