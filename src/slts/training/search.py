"""Choose parameters by held-out accuracy; all candidates share one set of alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from slts._typing import FloatArray, IntArray
from slts.execution import Progress
from slts.learning.calibration import two_sided
from slts.training.alignments import SampleAlignments
from slts.training.splits import Split


@dataclass(frozen=True)
class SearchResult:
    """Accuracy of every candidate on every split, and the best candidate.

    Ties go to the candidate that comes first. `held_out` are held-out decisions with
    its parameters, and the classes and weights of their series.
    """

    candidates: Sequence[dict[str, Any]]
    scores: FloatArray
    best: int
    held_out: tuple[FloatArray, IntArray, FloatArray]

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
    data: SampleAlignments,
    counts: Sequence[int],
    parameters: Sequence[dict[str, float]],
    splits: Sequence[Split],
    calibration: Sequence[Split],
    multiplicities: FloatArray,
    *,
    progress: Progress | None = None,
) -> SearchResult:
    """Score every (number of landmarks, parameters) by held-out accuracy.

    Accuracy is weighted as the loss is. Weights of held-out decisions are without class weights.

    Parameters
    ----------
    data
        Alignments with the largest number of landmarks.
    counts
        Numbers of landmarks to try; the first landmarks are used.
    parameters
        Candidates for each number of landmarks.
    splits
        Pairs (train, test) to choose on.
    calibration
        Pairs to hold decisions out with the chosen parameters; may be `splits` itself.
    multiplicities
        How many series each series stands for, for calibration.
    progress
        Called after each split and number of landmarks.
    """
    candidates = [{"n_landmarks": n, **p} for n in counts for p in parameters]
    scores = np.empty((len(candidates), len(splits)))
    held_out: list[list[FloatArray]] = [[] for _ in candidates]
    for k, (train, test) in enumerate(splits):
        for c, count in enumerate(counts):
            decisions = data.first_landmarks(count).held_out_decisions(train, test, parameters)
            for p, values in enumerate(decisions):
                row = c * len(parameters) + p
                values = two_sided(values)
                correct = values.argmax(axis=1) == data.codes[test]
                scores[row, k] = np.average(correct, weights=data.weights[test])
                held_out[row].append(values)
            if progress is not None:
                progress(k * len(counts) + c + 1, len(splits) * len(counts))
    best = int(np.argmax(scores.mean(axis=1)))
    decided = held_out[best]
    if calibration is not splits:
        chosen = data.first_landmarks(int(candidates[best]["n_landmarks"]))
        pair = [parameters[best % len(parameters)]]
        decided = [two_sided(chosen.held_out_decisions(*s, pair)[0]) for s in calibration]
    tested = np.concatenate([test for _, test in calibration])
    found = np.concatenate(decided), data.codes[tested], multiplicities[tested]
    return SearchResult(candidates, scores, best, found)
