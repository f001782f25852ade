"""Comparing methods over several data sets: ranks, signed-rank test, critical difference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import rankdata, studentized_range

from slts.study.statistics import CONFIDENCE

# Accuracies (in percent) as near as this are equal.
TIE = 1e-9
_MOST_EXACT = 16


def mean_ranks(columns: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Mean over the data sets of the rank among the methods; 1 is the best, ties share ranks.

    Parameters
    ----------
    columns
        Accuracies of each method on the same data sets.

    Examples
    --------
    >>> from slts.bench.ranking import mean_ranks
    >>> mean_ranks({"a": [90.0, 80.0], "b": [80.0, 80.0]})
    {'a': 1.25, 'b': 1.75}
    """
    table = np.round(np.array(list(columns.values()), dtype=np.float64), 9)
    ranks = rankdata(-table, axis=0).mean(axis=1)
    return dict(zip(columns, ranks.tolist(), strict=True))


def signed_rank_test(differences: Sequence[float]) -> float:
    """Two-sided p of Wilcoxon's signed-rank test, exact with ties too; zeros are dropped.

    Examples
    --------
    >>> from slts.bench.ranking import signed_rank_test
    >>> signed_rank_test([1.0, 2.0, 3.0, 4.0])
    0.125
    """
    values = np.asarray(differences, dtype=np.float64)
    values = values[np.abs(values) > TIE]
    if len(values) > _MOST_EXACT:
        raise ValueError(
            f"The test is exact, for at most {_MOST_EXACT} differences. Got {len(values)} instead."
        )
    if not len(values):
        return 1.0
    ranks = rankdata(np.round(np.abs(values), 9))
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(values))))
    totals = np.abs(signs @ ranks)
    # Sums of halves are exact.
    return float(np.mean(totals >= abs(np.sign(values) @ ranks)))


def critical_difference(n_methods: int, n_datasets: int) -> float:
    """Mean ranks must differ by this much to be told apart (Nemenyi, at 5%).

    Examples
    --------
    >>> from slts.bench.ranking import critical_difference
    >>> round(critical_difference(5, 8), 2)
    2.16
    """
    quantile = float(studentized_range.ppf(CONFIDENCE, n_methods, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))
