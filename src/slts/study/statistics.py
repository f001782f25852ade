"""Means with Student intervals, and the paired t-test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

CONFIDENCE = 0.95
SIGNIFICANT = 0.05
# Differences of accuracies below this are rounding of the mean.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Summary:
    """Mean of `n` values and the half width of its interval; None for a single value."""

    mean: float
    interval: float | None
    n: int


@dataclass(frozen=True)
class Paired:
    """A two-sided paired t-test: mean of first - second, t, p, number of pairs.

    `t` is None where all differences are equal; `p` is then 1 if they are zero, else 0.
    """

    difference: float
    t: float | None
    p: float
    n: int

    @property
    def significant(self) -> bool:
        """Whether p is below 5%."""
        return self.p < SIGNIFICANT


def summarize(values: Sequence[float]) -> Summary:
    """Mean and 95% interval, t_(n-1) s / sqrt(n).

    Examples
    --------
    >>> from slts.study.statistics import summarize
    >>> found = summarize([1.0, 2.0, 3.0])
    >>> found.mean, round(found.interval, 3)
    (2.0, 2.484)
    """
    array = np.asarray(values, dtype=np.float64)
    n = len(array)
    if n == 0:
        raise ValueError("The 'values' must not be empty.")
    mean = float(array.mean())
    if n == 1:
        return Summary(mean, None, 1)
    quantile = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2))
    return Summary(mean, quantile * float(array.std(ddof=1)) / math.sqrt(n), n)


def paired_test(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Student's t-test for paired samples.

    Examples
    --------
    >>> from slts.study.statistics import paired_test
    >>> found = paired_test([3.0, 4.0, 5.0], [1.0, 3.0, 2.0])
    >>> found.difference, round(found.p, 3)
    (2.0, 0.074)
    """
    if len(first) != len(second) or len(first) < 2:
        raise ValueError(
            f"The samples must have the same length, at least 2. Got {len(first)} and "
            f"{len(second)} instead."
        )
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    n = len(differences)
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    if deviation <= _ROUNDING:
        return Paired(mean, None, 1.0 if abs(mean) <= _ROUNDING else 0.0, n)
    t = mean / (deviation / math.sqrt(n))
    return Paired(mean, t, 2.0 * float(stdtr(n - 1, -abs(t))), n)
