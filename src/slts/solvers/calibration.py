"""Accuracy, probabilities and p-values of classes, from decisions for held-out series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import softmax

from slts._typing import AnyArray, FloatArray, IntArray

# Decision values of held-out series, their classes, and how many series each stands for.
HeldOutDecisions: TypeAlias = tuple[FloatArray, IntArray, FloatArray]

# Range of log s for decisions whose typical size is 1, and how often it is halved.
_LOG_SCALE_RANGE, _HALVINGS = 12.0, 50
# The common scale counts as much as this many held-out series of a class.
_COMMON = 16.0


@dataclass(frozen=True)
class Validation:
    """Accuracy on training series that `fit` held out.

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
        correct = two_sided(decisions).argmax(axis=1) == codes
        accuracy = float(np.average(correct, weights=sample_weight))
        n_series = len(np.unique(series))
        if groups is None:
            return cls(kind, n_series, accuracy)
        names, members = np.unique(groups, return_inverse=True)
        totals = np.bincount(members, weights=sample_weight)
        means = np.bincount(members, weights=sample_weight * correct) / totals
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
    targets = _smoothed(scores, codes)
    common = _minimize(scores, targets, weights, np.zeros(n, dtype=np.int64), 1)[0]
    predicted = scores.argmax(axis=1)
    counts = np.bincount(predicted, minlength=k)
    trust = (counts / (counts + _COMMON))[predicted][:, np.newaxis]
    targets = trust * targets + (1.0 - trust) * softmax(common * scores, axis=1)
    scales = _minimize(scores, targets, weights, predicted, k)
    return np.where(counts > 0, scales, common) / spread / largest


def _smoothed(scores: FloatArray, codes: IntArray) -> FloatArray:
    """Return the share (N + 1/2) / (N + 1) for the true class, and the rest for the nearest one."""
    n = len(scores)
    rows = np.arange(n)
    others = scores.copy()
    others[rows, codes] = -np.inf
    targets = np.zeros_like(scores)
    targets[rows, others.argmax(axis=1)] = 0.5 / (n + 1.0)
    targets[rows, codes] = (n + 0.5) / (n + 1.0)
    return targets


def _minimize(
    scores: FloatArray, targets: FloatArray, weights: FloatArray, which: IntArray, n_scales: int
) -> FloatArray:
    """Minimise the cross-entropy of softmax(s[which] * scores) by the scales s."""
    low, high = np.full(n_scales, -_LOG_SCALE_RANGE), np.full(n_scales, _LOG_SCALE_RANGE)
    # The loss does not change if scores are relative to the largest; their exponentials are finite.
    scores = scores - scores.max(axis=1, keepdims=True)
    wanted = np.einsum("ik,ik->i", targets, scores)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        shares = np.exp(np.exp(middle)[which][:, np.newaxis] * scores)
        expected = np.einsum("ik,ik->i", shares, scores) / shares.sum(axis=1)
        slopes = weights * (expected - wanted)
        # The loss is convex in s, so its slope has the same sign on each side of the minimum.
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
class HeldOutMargins:
    """Margins of held-out series for their true classes.

    Parameters
    ----------
    margins
        Decision value of the true class minus the largest of the others, shape (series,).
    codes
        True classes, 0 to K-1.
    weights
        How many independent draws each series stands for: the series of a group share one.
    independent
        Whether the series played no part in training.
    """

    margins: FloatArray
    codes: IntArray
    weights: FloatArray
    independent: bool

    @classmethod
    def of(
        cls,
        decisions: FloatArray,
        codes: IntArray,
        weights: FloatArray | None = None,
        *,
        independent: bool = False,
    ) -> HeldOutMargins:
        """Keep the margins of all series; without weights, each is a draw."""
        codes = np.array(codes, dtype=np.int64)
        margins = class_margins(decisions)[np.arange(len(codes)), codes]
        weights = np.ones(len(codes)) if weights is None else np.array(weights)
        return cls(margins, codes, weights, independent)

    def n_draws(self, n_classes: int, *, per_class: bool) -> FloatArray:
        """Return the number of independent draws that each class is compared with."""
        if not per_class:
            return np.full(n_classes, self.weights.sum())
        return np.bincount(self.codes, self.weights, n_classes).astype(np.float64)

    def p_values(self, decisions: FloatArray, *, per_class: bool = False) -> FloatArray:
        """Return the p-value of every class for new series, shape (series, classes).

        It is the share of draws whose margins are at most that of the new series, which counts as
        one of them: among all held-out series, or among those of the class.
        """
        margins = class_margins(decisions)
        totals = self.n_draws(margins.shape[1], per_class=per_class)
        order = np.argsort(self.margins, kind="stable")
        held_out, codes, weights = self.margins[order], self.codes[order], self.weights[order]
        p_values = np.empty_like(margins)
        for c in range(margins.shape[1]):
            compared = codes == c if per_class else slice(None)
            below = np.append(0.0, np.cumsum(weights[compared]))
            ranks = np.searchsorted(held_out[compared], margins[:, c], side="right")
            p_values[:, c] = (below[ranks] + 1.0) / (totals[c] + 1.0)
        return p_values


def class_margins(decisions: FloatArray) -> FloatArray:
    """Return each decision value minus the largest of the others, shape (series, classes)."""
    scores = two_sided(decisions)
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    others = scores.copy()
    others[rows, best] = -np.inf
    margins: FloatArray = scores - scores[rows, best][:, np.newaxis]
    margins[rows, best] = scores[rows, best] - others.max(axis=1)
    return margins
