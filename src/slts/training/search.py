"""Choose parameters by held-out accuracy; all candidates share one set of alignments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import rankdata

from slts._typing import AnyArray, FloatArray, IntArray
from slts.execution import Progress, silent
from slts.learning.calibration import Validation, two_sided
from slts.training.splits import Split

# Decision values of held-out series, their classes, and how many series each stands for.
HeldOutDecisions: TypeAlias = tuple[FloatArray, IntArray, FloatArray]


@dataclass(frozen=True)
class SearchResult:
    """Accuracy of every candidate on every split, and the best candidate.

    Ties go to the candidate that comes first. `held_out` are held-out decisions with its
    parameters, and the classes and weights of their series; `validation` is its accuracy.
    """

    candidates: Sequence[dict[str, Any]]
    scores: FloatArray
    best: int
    held_out: HeldOutDecisions
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
    decisions: Iterable[Iterable[FloatArray]],
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

    Accuracy is weighted as the loss is. Weights of held-out decisions are without class weights.

    Parameters
    ----------
    decisions
        For each split, decision values (test, problems) of every candidate in order.
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
    for k, ((_, test), of_split) in enumerate(zip(splits, decisions, strict=True)):
        for c, decided in enumerate(of_split):
            values = two_sided(decided)
            correct = values.argmax(axis=1) == codes[test]
            scores[c, k] = np.average(correct, weights=weights[test])
            held_out[c].append(values)
            progress(k * len(candidates) + c + 1, scores.size)
    best = int(np.argmax(scores.mean(axis=1)))
    found = held_out_decisions(held_out[best], splits, codes, multiplicities)
    tested = np.concatenate([test for _, test in splits])
    validation = Validation.of(
        "held-out", *found, series=tested, groups=None if groups is None else groups[tested]
    )
    return SearchResult(candidates, scores, best, found, validation)


def held_out_decisions(
    decisions: Sequence[FloatArray],
    splits: Sequence[Split],
    codes: IntArray,
    multiplicities: FloatArray,
) -> HeldOutDecisions:
    """Join the decisions on the test parts of splits with the classes and weights of the series."""
    tested = np.concatenate([test for _, test in splits])
    return np.concatenate(decisions), codes[tested], multiplicities[tested]
