"""What is held out, from the values that `cv` may have; parameters by held-out accuracy."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import PredefinedSplit, check_cv

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.execution import Progress, silent
from slts.learning.calibration import Validation, two_sided
from slts.series.source import Digests
from slts.training.sampling import shuffled

Split: TypeAlias = tuple[IntArray, IntArray]
# Decision values of held-out series, their classes, and how many series each stands for.
HeldOutDecisions: TypeAlias = tuple[FloatArray, IntArray, FloatArray]

# Splits are drawn independently of landmarks, which are the series with the smallest keys.
_PURPOSE = 1


def make_splits(
    cv: Any,
    codes: IntArray,
    keys: Digests,
    *,
    name: str,
    groups: AnyArray | None = None,
    indices: IntArray | None = None,
    n_series: int = 0,
) -> list[Split]:
    """Return pairs (train, test) of positions in a sample of series.

    Parameters
    ----------
    cv
        None (nothing is held out), an int (stratified folds, no more than the smallest class has
        series), a hold-out fraction, a splitter, or splits of X by index. The only series of a
        class is never held out.
    codes, keys
        Classes and keys of the series.
    name
        Name of the parameter, for messages.
    groups
        Group of every series: folds and fractions consist of whole groups, and splitters see them.
        The only group of a class is never held out.
    indices, n_series
        Positions of the series in X, of the first where several are equal, and the length of X;
        None if X is not in memory.
    """
    if cv is None:
        return []
    order = shuffled(keys, _PURPOSE)
    if isinstance(cv, numbers.Integral):
        if groups is not None:
            return _group_folds(_Groups.of(groups, codes, order, name), int(cv))
        return _folds(order, codes, min(int(cv), _smallest_class(codes, name)))
    if isinstance(cv, numbers.Real):
        if groups is not None:
            return [_group_hold_out(_Groups.of(groups, codes, order, name), float(cv))]
        _smallest_class(codes, name)
        return [_hold_out(order, codes, float(cv))]
    if isinstance(cv, PredefinedSplit) or not hasattr(cv, "split"):
        return _splits_of_indices(cv, name, indices, n_series)
    shown = None if groups is None else groups[order]
    try:
        splits = list(check_cv(cv).split(np.zeros((len(codes), 1)), codes[order], shown))
    except ValueError as error:
        if groups is not None or "groups" not in str(error):
            raise
        raise ValueError(
            f"The '{name}' parameter splits by groups: pass fit(X, y, groups=...), or name their "
            f"column, scan_series(..., groups='...'). Got {cv!r} and no groups."
        ) from error
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


@dataclass(frozen=True)
class _Groups:
    """Groups, numbered in random order.

    Attributes
    ----------
    members
        Group of every series.
    shares
        Share of the series of each class that a group has, shape (groups, classes).
    n_groups
        Number of groups of each class.
    usable
        Groups that may be held out: other groups have series of each of their classes.
    """

    members: IntArray
    shares: FloatArray
    n_groups: IntArray
    usable: list[int]

    @classmethod
    def of(cls, groups: AnyArray, codes: IntArray, order: IntArray, name: str) -> _Groups:
        _, first, found = np.unique(groups[order], return_index=True, return_inverse=True)
        members = np.empty(len(codes), dtype=np.int64)
        members[order] = np.argsort(np.argsort(first))[found]
        classes = np.unique(codes, return_inverse=True)[1]
        counts = np.zeros((len(first), int(classes.max()) + 1))
        np.add.at(counts, (members, classes), 1.0)
        n_groups = np.count_nonzero(counts, axis=0)
        usable = np.flatnonzero(~counts[:, n_groups == 1].any(axis=1)).tolist()
        if len(usable) < 2:
            raise DataError(
                f"{name} needs two groups that can be held out. Only {len(usable)} of the "
                f"{len(first)} groups can: a group that has all series of a class cannot be held "
                f"out. Use more groups, or no groups."
            )
        return cls(members, counts / counts.sum(axis=0), n_groups, usable)

    def allows(self, held: IntArray, group: int) -> bool:
        """Whether every class can be learned if `group` is held out too.

        `held` are the numbers of groups of each class that are held out.
        """
        return bool((self.n_groups > held + (self.shares[group] > 0.0)).all())

    def split(self, chosen: Sequence[int]) -> Split:
        """Hold out some groups."""
        mask = np.isin(self.members, chosen)
        return np.flatnonzero(~mask), np.flatnonzero(mask)


def _group_folds(groups: _Groups, n_folds: int) -> list[Split]:
    """Deal groups out, the largest first, to the fold with fewest series of their classes."""
    shares = groups.shares
    folds = [list[int]() for _ in range(min(n_folds, len(groups.usable)))]
    totals = np.zeros((len(folds), shares.shape[1]))
    held = np.zeros(totals.shape, dtype=np.int64)
    for g in sorted(groups.usable, key=lambda g: -float(shares[g].sum())):
        allowed = [k for k in range(len(folds)) if groups.allows(held[k], g)]
        if allowed:
            k = min(allowed, key=lambda k: (round(totals[k] @ shares[g], 9), totals[k].sum()))
            folds[k].append(g)
            totals[k] += shares[g]
            held[k] += shares[g] > 0.0
    return [groups.split(fold) for fold in folds]


def _group_hold_out(groups: _Groups, share: float) -> Split:
    """Take groups in random order that bring the shares of the classes closer to `share`."""
    chosen: list[int] = []
    missing = np.full(groups.shares.shape[1], share)
    held = np.zeros(len(missing), dtype=np.int64)
    for g in groups.usable:
        rest = missing - groups.shares[g]
        if rest @ rest < missing @ missing and groups.allows(held, g):
            chosen.append(g)
            missing, held = rest, held + (groups.shares[g] > 0.0)
    return groups.split(chosen or [min(groups.usable, key=lambda g: float(groups.shares[g].sum()))])


def _splits_of_indices(cv: Any, name: str, indices: IntArray | None, n_series: int) -> list[Split]:
    """Splits that name series by their position in X."""
    if indices is None:
        raise ValueError(
            f"The '{name}' parameter must not hold indices of series that are not in memory. Got "
            f"{cv!r} instead: use an int, a hold-out fraction, or a splitter such as "
            f"StratifiedKFold."
        )
    try:
        splits = [(train, test) for train, test in check_cv(cv).split(np.zeros((n_series, 1)))]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The '{name}' parameter must be an int, a hold-out fraction, a splitter, or pairs of "
            f"indices (train, test). Got {cv!r} instead: {error}."
        ) from error
    found = [[np.flatnonzero(np.isin(indices, side)) for side in split] for split in splits]
    usable = [(train, test) for train, test in found if len(train) and len(test)]
    if not usable:
        raise ValueError(
            f"The '{name}' parameter must have series on both sides of a split. None of its "
            f"{len(splits)} splits does, among the {len(indices)} series that are compared."
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


# ---- search


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
