"""Choosing parameters on held-out decisions that all come from one set of alignments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from slts._typing import FloatArray, IntArray
from slts.estimators.splitting import Split
from slts.execution import Progress
from slts.learning.calibration import fit_scale, two_sided
from slts.learning.landmark import LandmarkData

# (data, train, test, parameters) -> decision values, shape (parameters, test, problems)
Decide = Callable[[LandmarkData, IntArray, IntArray, Sequence[dict[str, float]]], FloatArray]


@dataclass(frozen=True)
class Search:
    """Accuracy of every candidate on every split, and the best one.

    Ties go to the candidate that comes first.
    """

    candidates: Sequence[dict[str, Any]]
    scores: FloatArray
    best: int
    scale: float

    @property
    def cv_results(self) -> dict[str, Any]:
        """The table scikit-learn's searches give."""
        mean = self.scores.mean(axis=1)
        results: dict[str, Any] = {
            f"param_{name}": np.asarray([c[name] for c in self.candidates])
            for name in self.candidates[0]
        }
        results["params"] = list(self.candidates)
        for k, column in enumerate(self.scores.T):
            results[f"split{k}_test_score"] = column
        results["mean_test_score"] = mean
        results["std_test_score"] = self.scores.std(axis=1)
        results["rank_test_score"] = rankdata(-mean, method="min").astype(np.int32)
        return results


def search(
    data: LandmarkData,
    counts: Sequence[int],
    parameters: Sequence[dict[str, float]],
    decide: Decide,
    splits: Sequence[Split],
    *,
    importance: FloatArray | None = None,
    progress: Progress | None = None,
) -> Search:
    """Score every (number of landmarks, parameters) by held-out accuracy.

    Parameters
    ----------
    data
        Alignments with the largest number of landmarks.
    counts
        Numbers of landmarks to try; the first so many are used.
    parameters
        What is tried for each of them, all at once.
    decide
        Learns on one part and decides on the other, for all `parameters`.
    splits
        (train, test) pairs.
    importance
        How many series each one stands for, where the data are a sample that has more of some
        classes; None is 1 for all.
    progress
        Told after each split and number of landmarks.
    """
    candidates = [{"n_landmarks": n, **p} for n in counts for p in parameters]
    scores = np.empty((len(candidates), len(splits)))
    held_out: list[list[FloatArray]] = [[] for _ in candidates]
    for k, (train, test) in enumerate(splits):
        for c, count in enumerate(counts):
            decisions = decide(data.first_landmarks(count), train, test, parameters)
            for p, values in enumerate(decisions):
                row = c * len(parameters) + p
                values = two_sided(values)
                right = values.argmax(axis=1) == data.codes[test]
                scores[row, k] = np.average(
                    right, weights=None if importance is None else importance[test]
                )
                held_out[row].append(values)
            if progress is not None:
                progress(k * len(counts) + c + 1, len(splits) * len(counts))
    best = int(np.argmax(scores.mean(axis=1)))
    everyone = np.concatenate([test for _, test in splits])
    scale = fit_scale(
        np.concatenate(held_out[best]),
        data.codes[everyone],
        None if importance is None else importance[everyone],
    )
    return Search(candidates, scores, best, scale)
