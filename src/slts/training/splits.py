"""Training and validation splits from the values that `cv` may have."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.model_selection import PredefinedSplit, check_cv

from slts._typing import IntArray
from slts.errors import DataError
from slts.series.source import Digests
from slts.training.sampling import shuffled

Split = tuple[IntArray, IntArray]

# Splits are drawn independently of landmarks, which are the series with the smallest keys.
_PURPOSE = 1


def make_splits(
    cv: Any,
    codes: IntArray,
    keys: Digests,
    *,
    name: str,
    indices: IntArray | None = None,
    n_series: int = 0,
) -> list[Split]:
    """Return pairs (train, test) of positions in a sample of series.

    Parameters
    ----------
    cv
        An int (stratified folds, no more than the smallest class has series), a hold-out fraction,
        a splitter, or splits of X by index. The only series of a class is never held out.
    codes, keys
        Classes and keys of the series.
    name
        Name of the parameter, for messages.
    indices, n_series
        Positions of the series in X, of the first where several are equal, and the length of X;
        None if X is not in memory.
    """
    if cv is None and name == "calibration_cv":
        return []
    order = shuffled(keys, _PURPOSE)
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        if int(cv) >= 2:
            return _folds(order, codes, min(int(cv), _smallest_class(codes, name)))
    elif isinstance(cv, numbers.Real) and 0.0 < float(cv) < 1.0:
        _smallest_class(codes, name)
        return [_hold_out(order, codes, float(cv))]
    if cv is None or isinstance(cv, str | numbers.Number):
        raise ValueError(
            f"The '{name}' parameter must be an int >= 2, a hold-out fraction between 0 and 1, or "
            f"a splitter. Got {cv!r} instead."
        )
    if isinstance(cv, PredefinedSplit) or not hasattr(cv, "split"):
        return _splits_of_indices(cv, name, indices, n_series)
    splits = check_cv(cv).split(np.zeros((len(codes), 1)), codes[order])
    return [(order[train], order[test]) for train, test in splits]


def _folds(order: IntArray, codes: IntArray, n_folds: int) -> list[Split]:
    # Series that are the only one of their class are never held out: fold -1.
    fold = np.full(len(codes), -1)
    by_class = order[np.argsort(codes[order], kind="stable")]
    by_class = by_class[np.bincount(codes)[codes[by_class]] > 1]
    # Dealing continues across classes, which keeps the folds equally large.
    fold[by_class] = np.arange(len(by_class)) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def _hold_out(order: IntArray, codes: IntArray, share: float) -> Split:
    counts = np.bincount(codes)
    wanted = np.diff(np.round(share * np.cumsum([0, *counts])))
    wanted = np.minimum(np.maximum(wanted, 1), counts - 1)
    ranks = np.empty(len(codes), dtype=np.int64)
    for c in np.flatnonzero(counts):
        ranks[order[codes[order] == c]] = np.arange(counts[c])
    held_out = ranks < wanted[codes]
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _splits_of_indices(cv: Any, name: str, indices: IntArray | None, n_series: int) -> list[Split]:
    """Splits that name series by their position in X."""
    if indices is None:
        raise ValueError(
            f"The '{name}' parameter must not hold indices of series that are not in memory. Got "
            f"{cv!r} instead; use an int, a hold-out fraction, or a splitter such as "
            f"StratifiedKFold."
        )
    splits = list(check_cv(cv).split(np.zeros((n_series, 1))))
    found = [[np.flatnonzero(np.isin(indices, side)) for side in split] for split in splits]
    usable = [(train, test) for train, test in found if len(train) and len(test)]
    if not usable:
        raise ValueError(
            f"The '{name}' parameter must have series on both sides of a split. None of its "
            f"{len(splits)} splits has, among the {len(indices)} series that are compared."
        )
    return usable


def _smallest_class(codes: IntArray, name: str) -> int:
    """Return the size of the smallest class with at least two series."""
    counts = np.bincount(codes)
    if counts.max() < 2:
        alternative = {
            "calibration_cv": " Or set it to None.",
            "C='auto'": " Or set C to a number.",
        }.get(name, "")
        raise DataError(
            f"No class has two distinct series, but {name} needs one to learn from and one to hold "
            f"out: add series.{alternative}"
        )
    return int(counts[counts > 1].min())
