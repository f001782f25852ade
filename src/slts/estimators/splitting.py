"""Training/validation splits from what `cv` may be."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, check_cv

from slts._typing import IntArray
from slts.errors import DataError

Split = tuple[IntArray, IntArray]


def make_splits(
    cv: Any,
    codes: IntArray,
    *,
    random_state: Any,
    name: str = "cv",
    classes: npt.NDArray[Any] | None = None,
) -> list[Split]:
    """Splits (train, test) for an int (stratified folds), a hold-out fraction, or a splitter.

    With an int, no more folds are made than the smallest class has members.
    """
    is_number = isinstance(cv, numbers.Real) and not isinstance(cv, bool)
    if is_number and isinstance(cv, numbers.Integral) and int(cv) >= 2:
        smallest = _require_two_members(codes, name, classes)
        splitter = StratifiedKFold(min(int(cv), smallest), shuffle=True, random_state=random_state)
    elif is_number and 0.0 < float(cv) < 1.0:
        _require_two_members(codes, name, classes)
        count = int(codes.max()) + 1
        held_out = min(max(round(float(cv) * len(codes)), count), len(codes) - count)
        splitter = StratifiedShuffleSplit(1, test_size=held_out, random_state=random_state)
    elif isinstance(cv, numbers.Number) or cv is None or isinstance(cv, str):
        raise ValueError(
            f"The '{name}' parameter must be an int >= 2, a hold-out fraction between 0 and 1, or "
            f"a splitter. Got {cv!r} instead."
        )
    else:
        splitter = check_cv(cv, codes, classifier=True)
    rows = np.zeros((len(codes), 1))
    return [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(rows, codes)]


def _require_two_members(codes: IntArray, name: str, classes: npt.NDArray[Any] | None) -> int:
    """Number of members of the smallest class; one member cannot be held out."""
    counts = np.bincount(codes)
    counts = counts[counts > 0]
    smallest = int(counts.min())
    if smallest < 2:
        lonely = int(np.flatnonzero(np.bincount(codes) == 1)[0])
        label = lonely if classes is None else classes.tolist()[lonely]
        way_out = ", or None" if name == "calibration_cv" else ""
        raise DataError(
            f"class {label!r} has one member only: {name} needs at least two of every class, one "
            f"to learn from and one to hold out{way_out}."
        )
    return smallest
