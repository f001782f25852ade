"""The formulas of the bounds, as functions of numbers; docs/bounds.md states them.

Each bound holds with probability at least 1 - delta over an independent sample of m examples, given
landmarks that are independent of the sample. `risk` is the mean hinge loss on the sample, a number
or an array with one value for each metric.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, rel_entr

from slts._typing import AnyArray, FloatArray

# After 60 halvings of [0, 1] the two ends are neighbouring doubles, or nearly so.
_HALVINGS = 60


def check_probability(name: str, value: Any) -> None:
    """Raise an error if a parameter is not a number strictly between 0 and 1."""
    usable = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not usable or not 0.0 < float(value) < 1.0:
        raise ValueError(
            f"The '{name}' parameter must be a number strictly between 0 and 1. "
            f"Got {value!r} instead."
        )


def stability_constant(gamma: float, lam: float) -> float:
    """Constant kappa = 1/(lam gamma^2): one of m examples changes no loss by more than kappa/m."""
    return 1.0 / (lam * gamma * gamma)


def margin_radius(gamma: float, lam: float) -> float:
    """Radius p = min(sqrt(kappa/2), kappa/2), an upper bound on ||M||_F/gamma at the minimiser."""
    half = 0.5 * stability_constant(gamma, lam)
    return min(math.sqrt(half), half)


def loss_range(radius: float) -> float:
    """Largest difference B = min(1 + p, 2 p) of two losses where ||M||_F/gamma <= p."""
    return min(1.0 + radius, 2.0 * radius)


def paper_bound(
    risk: FloatArray, m: int, d: int, gamma: float, lam: float, delta: float
) -> FloatArray:
    """The paper's generalization bound on the hinge risk of M, as printed."""
    stability = 4.0 * d / (gamma * gamma * lam)
    spread = stability + math.sqrt(2.0 * d / lam) / gamma
    return risk + stability / m + spread * math.sqrt(2.0 * math.log(2.0 / delta) / m)


def stability_bound(
    risk: FloatArray, m: int, gamma: float, lam: float, delta: float, *, excluded: int,
    gap: npt.ArrayLike,
) -> FloatArray:  # fmt: skip
    """The theorem with sharp constants, for landmarks that are among the training examples.

    Parameters
    ----------
    risk
        Mean hinge loss on the m - excluded certified examples.
    m
        Number of training examples.
    gamma, lam, delta
        Parameters of the metric problem, and the probability of failure.
    excluded
        Number of training examples left out of `risk`: the landmarks among them.
    gap
        Duality gap of M. Its distance from the minimiser is at most sqrt(gap/lam).
    """
    change, certified = stability_constant(gamma, lam) / m, m - excluded
    # McDiarmid: one series moves its own loss by at most B, and both mean losses by `change`.
    spread = 2.0 * certified * change + loss_range(margin_radius(gamma, lam))
    inexact = 2.0 * np.sqrt(np.maximum(gap, 0.0) / lam) / gamma
    return risk + change + spread * math.sqrt(math.log(1.0 / delta) / (2.0 * certified)) + inexact


def clopper_pearson(errors: int, n: int, delta: float) -> float:
    """Exact upper bound on an error rate from the errors among n held-out examples.

    It is the largest q with P(Bin(n, q) <= errors) >= delta.
    """
    return 1.0 if errors >= n else float(betainccinv(errors + 1.0, n - errors, delta))


def mean_over_groups(values: AnyArray, groups: AnyArray) -> tuple[float, int]:
    """Return the mean over the groups of the mean value in each, and the number of groups."""
    members = np.unique(groups, return_inverse=True)[1]
    means = np.bincount(members, weights=values) / np.bincount(members)
    return float(means.mean()), len(means)


def group_error_bound(error: float, n_groups: int, delta: float) -> float:
    """Upper bound on the mean error of a new group, from the mean over independent groups.

    `error` is the mean over the groups of the error rate in each. The relative-entropy form of
    Hoeffding's inequality holds for independent values in [0, 1].
    """
    return float(kl_inverse(error, math.log(1.0 / delta) / n_groups))


def accuracy_interval(right: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of Clopper and Pearson for the accuracy, from `right` of n."""
    each = (1 - confidence) / 2
    return 1 - clopper_pearson(n - right, n, each), clopper_pearson(right, n, each)


def group_accuracy_interval(
    accuracy: float, n_groups: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Two-sided interval for the mean accuracy of a new group, from the mean over groups."""
    each = (1 - confidence) / 2
    low = 1 - group_error_bound(1 - accuracy, n_groups, each)
    return low, group_error_bound(accuracy, n_groups, each)


def kl_inverse(q: npt.ArrayLike, budget: npt.ArrayLike) -> FloatArray:
    """Largest p in [q, 1] with kl(q, p) <= budget, rounded up, elementwise.

    With budget ln(1/delta)/m, it turns a mean of m values in [0, 1] into an upper bound.
    """
    low, budget = np.broadcast_arrays(np.asarray(q, dtype=np.float64), budget)
    q, high = low, np.ones_like(low)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        inside = rel_entr(q, middle) + rel_entr(1.0 - q, 1.0 - middle) <= budget
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray(high)
