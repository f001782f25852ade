"""Choose parameters by held-out accuracy; all candidates share one set of alignments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from slts._typing import AnyArray, FloatArray, IntArray
from slts.execution import Progress, silent
from slts.learning.calibration import Validation, fit_scale, two_sided
from slts.training.splits import Split


@dataclass(frozen=True)
class SearchResult:
    """Accuracy of every candidate on every split, and the best candidate.

    Ties go to the candidate that comes first. `scale` calibrates probabilities on the held-out
    decisions of the best one, and `validation` is their accuracy.
    """

    candidates: Sequence[dict[str, Any]]
    scores: FloatArray
    best: int
    scale: float
    validation: Validation

    @property
    def best_params(self) -> dict[str, Any]:
        """Parameters of the best candidate."""
        return dict(self.candidates[self.best])

    @property
    def cv_results(self) -> dict[str, Any]:
        """All scores, in the form of scikit-learn's `cv_results_`."""
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
    decide: Callable[[IntArray, IntArray], Iterable[FloatArray]],
    candidates: Sequence[dict[str, Any]],
    splits: Sequence[Split],
    codes: IntArray,
    weights: FloatArray,
    multiplicities: FloatArray,
    *,
    groups: AnyArray | None = None,
    progress: Progress = silent,
) -> SearchResult:
    """Score every candidate by held-out accuracy.

    Accuracy is weighted as the loss is. Probabilities are calibrated without class weights.

    Parameters
    ----------
    decide
        Learns on `train` and decides on `test`: yields decision values (test, problems) for each
        candidate in order.
    candidates
        Their parameters.
    splits
        Pairs (train, test).
    codes, weights
        Classes of the series, and their weights in the loss.
    multiplicities
        How many series each series stands for, for calibration.
    groups
        Groups that were held out as a whole.
    progress
        Called after each candidate and split.
    """
    scores = np.empty((len(candidates), len(splits)))
    held_out: list[list[FloatArray]] = [[] for _ in candidates]
    for k, (train, test) in enumerate(splits):
        for c, decisions in enumerate(decide(train, test)):
            values = two_sided(decisions)
            correct = values.argmax(axis=1) == codes[test]
            scores[c, k] = np.average(correct, weights=weights[test])
            held_out[c].append(values)
            progress(k * len(candidates) + c + 1, scores.size)
    best = int(np.argmax(scores.mean(axis=1)))
    tested = np.concatenate([test for _, test in splits])
    decisions, own = np.concatenate(held_out[best]), multiplicities[tested]
    scale = fit_scale(decisions, codes[tested], own)
    validation = Validation.of(
        "held-out", decisions, codes[tested], own, series=tested,
        groups=None if groups is None else groups[tested],
    )  # fmt: skip
    return SearchResult(candidates, scores, best, scale, validation)
