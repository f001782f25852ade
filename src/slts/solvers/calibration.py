"""Accuracy, probabilities and p-values of classes, from decisions for held-out series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from slts._typing import AnyArray, FloatArray, IntArray

# Range of log s for decisions whose typical size is 1, and how often it is halved.
_LOG_SCALE_RANGE, _HALVINGS = 12.0, 50
# The common scale counts as much as this many held-out series of a class.
_COMMON = 16.0


class HeldOutDecisions(NamedTuple):
    """Decision values of training series that were held out.

    Attributes
    ----------
    decisions, codes
        The values, shape (series, problems), and the true classes.
    weights
        How many series each stands for.
    groups
        Group of each series if groups were held out as a whole; None if series were.
    """

    decisions: FloatArray
    codes: IntArray
    weights: FloatArray
    groups: AnyArray | None = None


@dataclass(frozen=True)
class Validation:
    """Accuracy on training series that `fit` held out.

    Parameters
    ----------
    kind
        ``"leave-one-out"``, ``"leave-one-group-out"``, or ``"held-out"`` for folds and fractions.
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
    def of(cls, kind: str, held_out: HeldOutDecisions, series: IntArray) -> Validation:
        """Compare held-out decisions with the true classes; `series` numbers the series."""
        decisions, codes, weights, groups = held_out
        correct = two_sided(decisions).argmax(axis=1) == codes
        accuracy = float(np.average(correct, weights=weights))
        n_series = len(np.unique(series))
        if groups is None:
            return cls(kind, n_series, accuracy)
        names, members = np.unique(groups, return_inverse=True)
        means = np.bincount(members, weights * correct) / np.bincount(members, weights)
        return cls(kind, n_series, accuracy, len(names), float(means.mean()))


def fit_scale(
    decisions: FloatArray, codes: IntArray, sample_weight: FloatArray | None = None
) -> FloatArray:
    """Fit the scales s of softmax(s[c] * decisions) for series with the largest decision in c.

    A scale for each predicted class follows label noise that differs between classes, and keeps
    the predicted class the most probable one. Scales of classes with few held-out series stay near
    the common one. Half a series is added as an error, for the class with the second largest
    decision: this keeps scales finite when the held-out series are separated, and does not depend
    on the number of classes.

    Parameters
    ----------
    decisions
        Held-out decision values, shape (series, classes); for two classes (series,) or (series, 1).
    codes
        True classes, 0 to K-1.
    sample_weight
        Weight of each series; None for equal weights.

    Returns
    -------
    ndarray
        The scale of each class, shape (classes,).
    """
    scores = two_sided(decisions)
    n, k = scores.shape
    # Decisions may have any unit, so scales are searched relative to their spread.
    largest = float(np.abs(scores).max()) or 1.0
    scores = scores / largest
    spread = float(np.std(scores - scores.mean(axis=1, keepdims=True))) or 1.0
    scores = scores / spread
    weights = np.ones(n) if sample_weight is None else sample_weight
    predicted = scores.argmax(axis=1)
    right = (np.where(predicted == codes, n, 0.0) + 0.5) / (n + 1.0)
    common = _maximize(scores, right, weights, np.zeros(n, dtype=np.int64), 1)[0]
    counts = np.bincount(predicted, minlength=k)
    trust = (counts / (counts + _COMMON))[predicted]
    right = trust * right + (1.0 - trust) * softmax(common * scores, axis=1).max(axis=1)
    scales = _maximize(scores, right, weights, predicted, k)
    return np.where(counts > 0, scales, common) / spread / largest


def _maximize(
    scores: FloatArray, right: FloatArray, weights: FloatArray, which: IntArray, n_scales: int
) -> FloatArray:
    """Maximise the likelihood that the share `right` of predictions is right, by the scales."""
    low, high = np.full(n_scales, -_LOG_SCALE_RANGE), np.full(n_scales, _LOG_SCALE_RANGE)
    # Relative to the largest, in descending order: the first is the prediction.
    behind = -np.sort(scores.max(axis=1, keepdims=True) - scores, axis=1)[:, 1:]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        scaled = np.exp(middle)[which][:, np.newaxis] * behind
        confidence = 1.0 / (1.0 + np.exp(scaled).sum(axis=1))
        # The derivative of log(1 - confidence) is that of the others' share, a mean of `behind`.
        means = (softmax(scaled, axis=1) * behind).sum(axis=1)
        slopes = weights * (right - confidence) * means
        falls = np.bincount(which, weights=slopes, minlength=n_scales) < 0.0
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    scales: FloatArray = np.exp((low + high) / 2.0)
    return scales


def probabilities(decisions: FloatArray, scale: float | FloatArray) -> FloatArray:
    """Return class probabilities, shape (series, classes), from one scale or one for each class."""
    scores = two_sided(decisions)
    scales = np.broadcast_to(scale, scores.shape[1])[scores.argmax(axis=1)]
    # Relative to the largest, so that no scale makes two of them infinite.
    with np.errstate(over="ignore"):
        relative = scales[:, np.newaxis] * (scores - scores.max(axis=1, keepdims=True))
    result: FloatArray = softmax(relative, axis=1)
    return result


def two_sided(decisions: FloatArray) -> FloatArray:
    """Return one column per class: a single value f, shape (n,) or (n, 1), becomes (-f, f)."""
    if decisions.ndim == 1 or decisions.shape[1] == 1:
        values = decisions.reshape(len(decisions))
        return np.column_stack([-values, values])
    return decisions


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """How well held-out series fit their true classes, which new series are compared with.

    The score of a class is its probability, or 1 if no other class is more probable.

    Parameters
    ----------
    scores
        Score of the true class, shape (series,).
    codes
        True classes, 0 to K-1.
    weights
        How many independent draws each series stands for: the series of a group share one.
    n_groups
        Number of groups if groups are the independent draws; None if series are.
    independent
        Whether the series played no part in training.
    """

    scores: FloatArray
    codes: IntArray
    weights: FloatArray
    n_groups: int | None
    independent: bool

    @classmethod
    def of(
        cls,
        probabilities: FloatArray,
        codes: IntArray,
        weights: FloatArray | None = None,
        groups: AnyArray | None = None,
        *,
        independent: bool = False,
    ) -> HeldOutScores:
        """Keep the scores of all series; without groups, each is a draw."""
        scores = class_scores(probabilities)[np.arange(len(codes)), codes]
        codes = np.array(codes, dtype=np.int64)
        weights = np.ones(len(codes)) if weights is None else weights
        if groups is None:
            return cls(scores, codes, weights / weights.mean(), None, independent)
        names, members = np.unique(groups, return_inverse=True)
        shares = weights / np.bincount(members, weights)[members]
        return cls(scores, codes, shares, len(names), independent)

    @property
    def draws(self) -> str:
        """What the independent draws are."""
        return "series" if self.n_groups is None else "groups"

    def n_draws(self, n_classes: int, *, per_class: bool) -> FloatArray:
        """Return the number of independent draws that each class is compared with."""
        if not per_class:
            return np.full(n_classes, self.weights.sum())
        return np.bincount(self.codes, self.weights, n_classes).astype(np.float64)

    def p_values(self, probabilities: FloatArray, *, per_class: bool = False) -> FloatArray:
        """Return the p-value of every class for new series, shape (series, classes).

        It is the share of draws whose scores are at most that of the new series, which counts as
        one of them: among all held-out series, or among those of the class. It is at least the
        probability of the class. So it is 1 for the most probable class, and the p-values above
        alpha include those of all classes with a probability above alpha.
        """
        scores = class_scores(probabilities)
        order = np.argsort(self.scores, kind="stable")
        held_out, codes, weights = self.scores[order], self.codes[order], self.weights[order]
        p_values = np.empty_like(scores)
        for c in range(scores.shape[1]):
            compared = codes == c if per_class else slice(None)
            below = np.append(0.0, np.cumsum(weights[compared]))
            ranks = np.searchsorted(held_out[compared], scores[:, c], side="right")
            p_values[:, c] = (below[ranks] + 1.0) / (below[-1] + 1.0)
        return np.maximum(p_values, probabilities)


def class_scores(probabilities: FloatArray) -> FloatArray:
    """Return the probability of each class, or 1 where no other class is more probable."""
    largest = probabilities.max(axis=1, keepdims=True)
    return np.where(probabilities < largest, probabilities, 1.0)
