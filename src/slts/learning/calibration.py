"""Probabilities from decision values, fitted on decisions for held-out series."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from slts._typing import AnyArray, FloatArray, IntArray

# Range of log s for decisions whose typical size is 1.
_LOG_SCALE_RANGE = (-12.0, 12.0)


@dataclass(frozen=True)
class Validation:
    """Accuracy on training series that `fit` held out, as far as it did so anyway.

    Parameters
    ----------
    kind
        ``"leave-one-out"``, or ``"held-out"`` for folds and fractions.
    n_series
        Number of distinct series that were held out.
    accuracy
        Share that was labelled correctly; equal series count as often as they occur.
    n_groups, group_accuracy
        Number of groups that were held out as a whole, and the mean of their accuracies; None
        without groups.
    """

    kind: str
    n_series: int
    accuracy: float
    n_groups: int | None = None
    group_accuracy: float | None = None

    @classmethod
    def of(
        cls,
        kind: str,
        decisions: FloatArray,
        codes: IntArray,
        sample_weight: FloatArray,
        *,
        series: IntArray,
        groups: AnyArray | None = None,
    ) -> Validation:
        """Compare held-out decisions with the true classes; `series` numbers the series."""
        right = two_sided(decisions).argmax(axis=1) == codes
        found = cls(kind, len(np.unique(series)), float(np.average(right, weights=sample_weight)))
        if groups is None:
            return found
        names, members = np.unique(groups, return_inverse=True)
        totals = np.bincount(members, weights=sample_weight)
        means = np.bincount(members, weights=sample_weight * right) / totals
        return replace(found, n_groups=len(names), group_accuracy=float(means.mean()))


def fit_scale(
    decisions: FloatArray, codes: IntArray, sample_weight: FloatArray | None = None
) -> float:
    """Fit the scale s > 0 of softmax(s * decisions) by maximum a-posteriori likelihood.

    A single number needs few held-out series and keeps the predicted class the most probable one.
    Targets are smoothed as by Platt: with N series and K classes the true class has the target
    (N + 1) / (N + K), which keeps s finite when the held-out series are separated.

    Parameters
    ----------
    decisions
        Held-out decision values, shape (series, classes); for two classes (series,) or (series, 1).
    codes
        True classes, 0 to K-1.
    sample_weight
        Weight of each series, mean 1; None for equal weights.

    Returns
    -------
    float
        The scale.
    """
    scores = two_sided(decisions)
    n, k = scores.shape
    # Decisions may have any unit, so s is searched relative to their spread.
    largest = float(np.abs(scores).max()) or 1.0
    scores = scores / largest
    spread = float(np.std(scores - scores.mean(axis=1, keepdims=True))) or 1.0
    scores = scores / spread
    targets = np.full((n, k), 1.0 / (n + k))
    targets[np.arange(n), codes] = (n + 1.0) / (n + k)
    if sample_weight is not None:
        targets *= sample_weight[:, np.newaxis]

    def loss(log_scale: float) -> float:
        return -float(np.sum(targets * log_softmax(np.exp(log_scale) * scores, axis=1)))

    # The loss is convex in s, hence unimodal in log s.
    found = minimize_scalar(loss, bounds=_LOG_SCALE_RANGE, method="bounded")
    return float(np.exp(found.x)) / spread / largest


def probabilities(decisions: FloatArray, scale: float) -> FloatArray:
    """Return class probabilities, shape (series, classes)."""
    result: FloatArray = softmax(scale * two_sided(decisions), axis=1)
    return result


def two_sided(decisions: FloatArray) -> FloatArray:
    """Return one column per class: a single value f, shape (n,) or (n, 1), becomes (-f, f)."""
    if decisions.ndim == 1 or decisions.shape[1] == 1:
        values = decisions.reshape(len(decisions))
        return np.column_stack([-values, values])
    return decisions
