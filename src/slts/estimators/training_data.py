"""Training data: checks of series, labels, weights and groups, and the training set they make."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from slts._typing import AnyArray, FloatArray
from slts.errors import DataError
from slts.execution import Bar, memory_limit, usable_memory
from slts.quantities import format_bytes
from slts.series import SeriesBatch, as_series
from slts.series.batch import names_of
from slts.series.convert import check_one_per_series
from slts.series.dataset import Dataset, SeriesScan, first_missing
from slts.training.scans import sample_scan, scan_runner
from slts.training.training_set import TrainingSet

# Sums and squares of weights must neither overflow nor vanish.
_LARGEST_WEIGHT = 1e15
# Share of the memory for the sample of a scan. A classifier that keeps all series copies them.
_SAMPLE_SHARE, _COPIES_IN_MEMORY = 1 / 8, 3


def from_arrays(
    X: Any, y: Any, sample_weight: Any, groups: Any, *, owner: str, seed: int
) -> TrainingSet:
    """Check series, labels, weights and groups, and return distinct series in order of keys."""
    batch, codes, classes = _checked_labels(owner, X, y)
    weights = None
    if sample_weight is not None:
        weights = _checked_weights(sample_weight, codes, classes)
    if groups is not None:
        groups = check_groups(groups, len(batch))
    return TrainingSet.of_arrays(batch, codes, classes, weights=weights, groups=groups, seed=seed)


def from_scan(
    scan: SeriesScan,
    y: Any,
    sample_weight: Any,
    groups: Any,
    *,
    owner: str,
    limit: Any,
    keeps_all: bool,
    seed: int,
    n_jobs: int | None,
    bar: Bar,
) -> TrainingSet:
    """Return the series of a scan if they fit in their share of the memory, else a sample.

    A classifier that `keeps_all` series has no limit. Labels, weights and groups beside the scan
    are errors.
    """
    _check_nothing_beside(owner, y, sample_weight, groups)
    n_bytes = np.inf if keeps_all else _SAMPLE_SHARE * memory_limit(limit, owner)
    size = _COPIES_IN_MEMORY * (scan.n_bytes or 0)
    if keeps_all and size > usable_memory():
        raise DataError(
            f"{owner} needs all training series in memory: about {format_bytes(size)} for "
            f"{scan.name}, but the process may use {format_bytes(usable_memory())}. Use "
            f"LocalSLTSClassifier or SLTSClassifier instead."
        )
    with bar("Reading") as progress:
        return sample_scan(scan, scan_runner(n_jobs), n_bytes=n_bytes, seed=seed, progress=progress)


def _check_nothing_beside(owner: str, y: Any, sample_weight: Any, groups: Any) -> None:
    """Raise an error for labels, weights or groups beside a scan, which has its own."""
    if y is not None:
        raise DataError(
            "y must be None for a scan, which has labels of its own: name their column "
            "with scan_series(..., label='...')."
        )
    if sample_weight is not None:
        raise DataError(
            f"{owner} takes no sample_weight with a scan. Use class_weight, or read the "
            f"series into memory: scan.read()."
        )
    if groups is not None:
        raise DataError(
            "groups must be None for a scan: name their column with scan_series(..., groups='...')."
        )


def _checked_labels(owner: str, X: Any, y: Any) -> tuple[SeriesBatch, Any, AnyArray]:
    """Return series, the class of each, and the sorted labels."""
    # A frame may have the labels in a column.
    hint = " If the labels are a column of X: X, y = slts.as_series(X, label='...')."
    shown = hint if hasattr(X, "columns") else ""
    if isinstance(X, Dataset):
        raise DataError("X is a Dataset, expected series: use fit(X.series, X.labels).")
    if y is None:
        if not hasattr(X, "columns"):
            as_series(X)  # a path, a Dask collection or a pair (X, y) is the larger mistake
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.{shown}")
    if isinstance(y, str):
        raise DataError(f"y must be labels, one per series. Got the text {y!r} instead.{hint}")
    batch = as_series(X)
    labels = column_or_1d(_without_extension(y, batch), warn=True)
    assert_all_finite(labels, input_name="y")
    _check_comparable(labels_as_given(labels if hasattr(y, "dtype") else y))
    check_classification_targets(labels)
    advice = f" Every series has one label.{shown}"
    check_one_per_series(len(batch), labels, "y", "labels", advice)
    _check_order(y, batch)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"y holds one class only, {classes.tolist()[0]!r}: a classifier needs at least two "
            f"classes."
        )
    return batch, codes.astype(np.int64), classes


def _without_extension(y: Any, batch: SeriesBatch) -> Any:
    """Return nullable labels of pandas in their NumPy type: scikit-learn makes them float."""
    dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if dtype is None or len(y) != len(batch):
        return y
    for k in np.flatnonzero(y.isna())[:1]:
        name = batch.name_of(k, "X")
        raise DataError(f"y[{k}], the label of {name}, is missing: fill it in or drop the series.")
    return y.to_numpy(dtype=dtype)


def _checked_weights(sample_weight: Any, codes: Any, classes: AnyArray) -> FloatArray:
    """Return one weight per series; every class must have a positive one."""
    weights = _check_sample_weight(
        sample_weight, np.empty((len(codes), 1)), dtype=np.float64, ensure_non_negative=True
    )
    positive = weights[weights > 0.0]
    if len(positive) and (positive.max() > _LARGEST_WEIGHT or positive.min() < 1 / _LARGEST_WEIGHT):
        raise DataError(
            f"sample_weight must be 0 or from {1 / _LARGEST_WEIGHT:g} to {_LARGEST_WEIGHT:g}. Got "
            f"{positive.min():g} to {positive.max():g}."
        )
    totals = np.bincount(codes, weights=weights)
    if (totals <= 0.0).any():
        raise DataError(
            f"class {classes[int(np.argmin(totals))]} has no weight: every class needs a "
            f"series whose sample_weight is positive. Leave the class out instead."
        )
    return np.asarray(weights)


def labels_as_given(y: Any) -> AnyArray:
    """Return labels as an array; in a list they keep their types, as 1 and "a"."""
    labels: AnyArray = column_or_1d(np.array(y, dtype=object) if isinstance(y, list | tuple) else y)
    return labels


def unknown_labels(labels: AnyArray, classes: AnyArray) -> list[Any]:
    """Return the distinct labels that are not classes of a model.

    Raise an error if they differ from classes only in type, as 1 and "1".
    """
    names = classes.tolist()
    known = set(names)
    unknown = [label for label in dict.fromkeys(labels.tolist()) if label not in known]
    if unknown and {*map(str, unknown)} <= {*map(str, names)}:
        given, expected = type(unknown[0]).__name__, type(names[0]).__name__
        convert = f"{expected}(label)"
        if expected not in ("int", "float", "str"):
            # bool("False") is True.
            convert = "{str(c): c for c in model.classes_}[str(label)]"
        raise DataError(
            f"y has labels of type {given}, such as {unknown[0]!r}, but the model was trained on "
            f"labels of type {expected}, such as {names[0]!r}. Labels from text files are text, "
            f"other files keep the type of the label column. Store that column as {expected}, in a "
            f"file of the same form as the training data; or in Python, convert them: "
            f"[{convert} for label in y]."
        )
    return unknown


def check_groups(groups: Any, n_series: int) -> AnyArray:
    """Return one group per series, or raise an error."""
    column: AnyArray = column_or_1d(groups)
    check_one_per_series(n_series, column, "groups", "groups")
    missing = first_missing(column.tolist())
    if missing is not None:
        raise DataError(f"groups[{missing}] is missing: every series must be in a group.")
    return np.asarray(column.tolist()) if column.dtype == object else column


def _check_order(y: Any, batch: SeriesBatch) -> None:
    """Raise an error if y is indexed by the identifiers of the series, but in another order."""
    index, names = getattr(y, "index", ()), batch.series_names
    # A method of lists; numbers from 0 are positions.
    if names is None or callable(index) or hasattr(index, "step"):
        return
    of_labels = tuple(names_of(list(index), getattr(index, "name", None)))
    if of_labels != names and sorted(of_labels) == sorted(names):
        k = next(k for k, name in enumerate(names) if of_labels[k] != name)
        raise DataError(
            f"y and X are in different orders: by its index, label {k} belongs to "
            f"{of_labels[k]!r}, but series {k} of X is {names[k]!r}. Use "
            f"X, y = slts.as_series(frame, label='...'). If the order of y is right, pass "
            f"y.to_numpy()."
        )


def _check_comparable(labels: AnyArray) -> None:
    """Raise an error for labels that cannot be sorted, such as 1 and "a" or None."""
    try:
        np.unique(labels)
    except TypeError as error:
        kinds = [type(label) for label in labels]
        other = next((i for i, kind in enumerate(kinds) if kind is not kinds[0]), 0)
        raise DataError(
            f"y must have labels of one type, such as text or whole numbers. Got {labels[0]!r} for "
            f"series 0 and {labels[other]!r} for series {other}."
        ) from error
