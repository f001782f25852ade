"""What is held out, from the values that `cv` may have; parameters by held-out accuracy."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import (
    GroupShuffleSplit,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.execution import Progress, silent
from slts.solvers.calibration import HeldOutDecisions, Validation, two_sided
from slts.training.training_set import TrainingSet

Split: TypeAlias = tuple[IntArray, IntArray]

# Splits are drawn independently of landmarks, which are the series with the smallest keys.
_PURPOSE = 1


def make_splits(cv: Any, data: TrainingSet, name: str) -> list[Split]:
    """Return pairs (train, test) of positions in a training set.

    Whole groups are held out if there are groups. The only series of a class is always trained on,
    and a series whose class has no series to train on is not held out.

    Parameters
    ----------
    cv
        None (nothing is held out), an int (stratified folds, no more than the smallest class has
        series), a hold-out fraction, a splitter, or pairs of indices into X.
    data
        The training set.
    name
        Name of the parameter, for messages.
    """
    if cv is None:
        return []
    if isinstance(cv, PredefinedSplit) or not (
        isinstance(cv, numbers.Real) or hasattr(cv, "split")
    ):
        return _usable(_splits_of_indices(cv, data, name), data.codes, cv, name)
    return split_in_order(cv, data.codes, data.shuffled(_PURPOSE), data.groups, name)


def split_in_order(
    cv: Any, codes: IntArray, order: IntArray, groups: AnyArray | None, name: str
) -> list[Split]:
    """Return pairs (train, test) of positions, as `make_splits`, of series in a random order.

    Parameters
    ----------
    cv
        An int, a hold-out fraction or a splitter.
    codes, groups
        Class and group of each series.
    order
        Positions in random order.
    name
        Name of the parameter, for messages.
    """
    counts = np.bincount(codes)
    if counts.max() < 2:
        alternative = {"calibration_cv": " or set it to None", "C='auto'": " or set C to a number"}
        raise DataError(
            f"No class has two distinct series, but {name} needs one to learn from and one to hold "
            f"out: add series{alternative.get(name, '')}."
        )
    singles = order[counts[codes[order]] == 1]
    order = order[counts[codes[order]] > 1]
    groups = None if groups is None else groups[order]
    try:
        with warnings.catch_warnings():
            # Classes with fewer series than folds are in some folds only.
            warnings.filterwarnings("ignore", "The least populated class")
            splitter = _splitter(cv, counts[counts > 1], groups)
            splits = list(splitter.split(np.zeros((len(order), 1)), codes[order], groups))
    except ValueError as error:
        needs_groups = groups is None and "groups" in str(error)
        hint = (
            ": pass fit(X, y, groups=...), or name their column, scan_series(..., groups='...')"
            if needs_groups
            else ""
        )
        raise DataError(
            f"The '{name}' parameter cannot split these series. Got {cv!r}: {error}{hint}."
        ) from error
    splits = [(np.union1d(order[train], singles), np.sort(order[test])) for train, test in splits]
    return _usable(splits, codes, cv, name)


def parts_to_leave_out(codes: IntArray, groups: IntArray | None) -> IntArray:
    """Number the parts that are left out in turn: a group each, or one series of every class.

    A single series that is left out would make its own class rarer than the others, so that few
    series of a class are nearly always taken for another class. The same holds for a group with one
    class; if all groups are like that, a part is one group of every class. Smaller classes are in
    some of the parts. Series are in random order.
    """
    units = np.arange(len(codes)) if groups is None else groups
    of_units = codes[np.unique(units, return_index=True)[1]]
    most = np.bincount(of_units).max()
    if most < 2 or (of_units[units] != codes).any():
        return units
    parts = np.empty(len(of_units), dtype=np.int64)
    for c in np.unique(of_units):
        members = np.flatnonzero(of_units == c)
        parts[members] = np.arange(len(members)) * most // len(members)
    return parts[units]


def _usable(splits: Sequence[Split], codes: IntArray, cv: Any, name: str) -> list[Split]:
    """Hold out no series of a class that is not trained on; raise an error if nothing is left."""
    usable = [(train, test[np.isin(codes[test], codes[train])]) for train, test in splits]
    usable = [(train, test) for train, test in usable if len(train) and len(test)]
    if not usable:
        raise DataError(
            f"The '{name}' parameter holds out no series of a class that it also trains on: add "
            f"series or groups of every class. Got {cv!r} for {len(codes)} distinct series."
        )
    return usable


def _splitter(cv: Any, counts: IntArray, groups: AnyArray | None) -> Any:
    """Return scikit-learn's splitter for folds or a fraction, or the splitter that was passed."""
    if isinstance(cv, numbers.Integral):
        if groups is not None:
            return StratifiedGroupKFold(min(int(cv), len(np.unique(groups)), int(counts.max())))
        return StratifiedKFold(min(int(cv), int(counts.min())))
    if isinstance(cv, numbers.Real):
        kind = StratifiedShuffleSplit if groups is None else GroupShuffleSplit
        return kind(1, test_size=float(cv), random_state=0)
    return check_cv(cv)


def _splits_of_indices(cv: Any, data: TrainingSet, name: str) -> list[Split]:
    """Return splits that name series by their position in X."""
    if data.positions is None:
        raise ValueError(
            f"The '{name}' parameter must not hold indices of series that are not in memory. Got "
            f"{cv!r} instead: use an int, a hold-out fraction, or a splitter such as "
            f"StratifiedKFold."
        )
    # The first of equal series counts.
    is_first = np.zeros(data.n_series, dtype=bool)
    is_first[data.indices] = True

    def places(side: Any) -> IntArray:
        rows = np.arange(data.n_series)[np.asarray(side)]
        return np.unique(data.positions[rows[is_first[rows]]])  # type: ignore[index]

    try:
        splits = list(check_cv(cv).split(np.zeros((data.n_series, 1))))
        return [(places(train), places(test)) for train, test in splits]
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"The '{name}' parameter must be an int, a hold-out fraction, a splitter, or pairs of "
            f"indices (train, test). Got {cv!r} instead: {error}."
        ) from error


# ---- search


@dataclass(frozen=True)
class SearchResult:
    """Accuracy of every candidate on every split, and the best candidate.

    Ties go to the candidate that comes first. `held_out` are held-out decisions with its
    parameters; `validation` is its accuracy.
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
    data: TrainingSet,
    weights: FloatArray,
    multiplicities: FloatArray,
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
    data
        The series that were split.
    weights, multiplicities
        Their weights in the loss, and how many series each stands for, for calibration.
    progress
        Called after each candidate and split.
    """
    scores = np.empty((len(candidates), len(splits)))
    held_out: list[list[FloatArray]] = [[] for _ in candidates]
    for k, ((_, test), of_split) in enumerate(zip(splits, decisions, strict=True)):
        for c, decided in enumerate(of_split):
            values = two_sided(decided)
            correct = values.argmax(axis=1) == data.codes[test]
            scores[c, k] = np.average(correct, weights=weights[test])
            held_out[c].append(values)
            progress(k * len(candidates) + c + 1, scores.size)
    best = int(np.argmax(scores.mean(axis=1)))
    tested = np.concatenate([test for _, test in splits])
    chosen = HeldOutDecisions(
        np.concatenate(held_out[best]), data.codes[tested], multiplicities[tested],
        None if data.groups is None else data.groups[tested],
    )  # fmt: skip
    validation = Validation.of("held-out", chosen, tested)
    return SearchResult(candidates, scores, best, chosen, validation)
