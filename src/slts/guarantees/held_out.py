"""Held-out series: their labels and the outputs of a classifier from one pass, and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators import BBSClassifier, BBSClassifierCV, SLTSClassifier, SLTSClassifierCV
from slts.estimators.base import SeriesClassifier
from slts.estimators.prediction import apply_with_labels
from slts.estimators.training_data import check_groups, labels_as_given, unknown_labels
from slts.guarantees.bounds import (
    Bound,
    Certificate,
    Conditions,
    clopper_pearson,
    group_error_bound,
    mean_over_groups,
)
from slts.quantities import count, list_first
from slts.series import SeriesBatch
from slts.series.convert import check_one_per_series
from slts.series.dataset import SeriesScan
from slts.series.keys import series_digests

INDEPENDENT = "the series are independent draws from the population of future series"
_INDEPENDENT_GROUPS = (
    "the groups are independent draws from the population of future groups, and the model was not "
    "trained on series of these groups; series of the same group may depend on each other"
)
_NOT_USED = "the held-out series were not used to choose the model or its parameters"
# Classifiers whose decision values say by their sign whether a series is of a class.
_SIGNED = BBSClassifier, BBSClassifierCV, SLTSClassifier, SLTSClassifierCV
# Names that a message lists, and series that are read at a time to name one.
_MOST_NAMED, _BATCH = 5, 1024
# Copies of training series change an error rate by at most their share; more are an error.
_FEW_COPIES = 0.01


@dataclass(frozen=True)
class HeldOut:
    """Held-out series as a classifier predicts them.

    Attributes
    ----------
    model
        Any fitted classifier.
    labels, predicted
        True and predicted label of every series.
    decisions, probabilities
        Decision values and probabilities; None if the classifier has none.
    copies
        Positions of the copies of training series; None if the model has no digests of these.
    groups
        Group of every series if groups are the independent draws; None if the series are.
    series
        The series or their scan, for messages.
    """

    model: Any
    labels: AnyArray
    predicted: AnyArray
    decisions: FloatArray | None = None
    probabilities: FloatArray | None = None
    copies: IntArray | None = None
    groups: AnyArray | None = None
    series: SeriesBatch | SeriesScan | None = None

    @classmethod
    def of(cls, model: Any, X: Any, y: Any = None, groups: Any = None) -> HeldOut:
        """Apply a classifier to series in memory and their labels, or to a scan with labels."""
        inner, X = inner_model(model, X)
        is_scan = inner is not None and isinstance(X, SeriesScan)
        if is_scan:
            if y is not None or groups is not None:
                raise DataError(
                    "y and groups must be None if X is a scan, which contains them: "
                    "scan_series(..., label='...', groups='...')."
                )
            methods = type(inner).decision_function, _is_copy
            (decisions, is_copy), y, groups = apply_with_labels(inner, X, *methods)
        labels = check_labels(model, y, X)
        groups = None if groups is None else check_groups(groups, len(labels))
        if inner is None:
            return cls(model, labels, np.asarray(model.predict(X)), groups=groups)
        if not is_scan:
            X = check_batch(inner, X, labels)
            decisions, is_copy = inner.decision_function(X), _is_copy(inner, X)
        copies = None if inner.training_digests_ is None else np.flatnonzero(is_copy)
        predicted, _, probabilities = inner.outputs_from(decisions)
        return cls(model, labels, predicted, decisions, probabilities, copies, groups, X)

    @property
    def n_copies(self) -> int:
        """Number of series that the model was trained on, of those it has digests of."""
        return 0 if self.copies is None else len(self.copies)

    def check_copies(self, copies: str) -> str:
        """Count and name series that equal training series; raise an error if they are many."""
        if copies not in ("error", "allow"):
            raise ValueError(
                f"The 'copies' parameter must be 'error' or 'allow'. Got {copies!r} instead."
            )
        if self.copies is None or self.n_copies == 0:
            return ""
        n = len(self.labels)
        names = [_name_of(int(k), self.series) for k in self.copies[:_MOST_NAMED]]
        rest = f" and {self.n_copies - len(names):,} more" if self.n_copies > len(names) else ""
        counted = f"{copies_sentence(self.n_copies, n)}: {', '.join(names)}{rest}"
        if copies == "error" and self.n_copies > _FEW_COPIES * n:
            raise DataError(
                f"{counted}. Use series that the model was not trained on. If new series may equal "
                f"training series by chance, copies='allow' (--copies allow) counts them as new."
            )
        return counted

    def certificate(
        self, delta: float = 0.05, n_models: int = 1, copies: str = "error"
    ) -> Certificate:
        """Bound the error, and that of the signs of decision values of BBS and SLTS.

        Bounds are exact (Clopper-Pearson) if series are independent; over the means of groups else.
        """
        counted = self.check_copies(copies)
        checked = ["every label is known to the model"]
        unchecked = [INDEPENDENT if self.groups is None else _INDEPENDENT_GROUPS, _NOT_USED]
        if self.copies is None:
            unchecked.append("no held-out series was used in training")
        else:
            if counted:
                unchecked.append(f"series that equal training series are new ({counted})")
            else:
                checked.append("no held-out series equals a training series that has a digest")
            unchecked.append("no held-out series is a changed copy of a training series")
        conditions = Conditions(delta, n_models, len(self.labels), tuple(checked), tuple(unchecked))
        bounds = [self._error_bound(conditions)]
        has_signs = isinstance(self.model, _SIGNED) and len(self.model.classes_) > 2
        if has_signs and self.decisions is not None:
            bounds.append(self._sign_bound(conditions, self.decisions.T))
        return Certificate(tuple(bounds), float(delta), type(self.model).__name__, int(n_models))

    def _error_bound(self, conditions: Conditions) -> Bound:
        """Bound for the predicted class."""
        wrong, n = self.predicted != self.labels, len(self.labels)
        errors, value = int(np.count_nonzero(wrong)), self._upper(wrong, conditions.share())
        base_rate = min(self._rate(self.labels != label) for label in np.unique(self.labels))
        claim = (
            f"the classifier is wrong on at most {value:.2%} of {self._population}. It was wrong "
            f"on {errors} of {n} ({errors / n:.2%}) held-out series"
        )
        details: dict[str, Any] = {"errors": errors, "trivial": base_rate}
        if self.groups is not None:
            mean, n_groups = mean_over_groups(wrong, self.groups)
            details |= {"n_groups": n_groups, "mean_of_groups": mean}
            claim += f"; the mean over {count(n_groups, 'group')} is {mean:.2%}"
        claim += f".{self._missing_classes}"
        vacuous = value >= base_rate
        if vacuous:
            claim += " Always predicting the most frequent class might do as well."
        return conditions.bound("hold-out error", "0-1 error", value, vacuous, claim, **details)

    def _sign_bound(self, conditions: Conditions, decisions: FloatArray) -> Bound:
        """Bound for the sign of every decision value, shape (classes, series)."""
        classes, share = self.model.classes_, conditions.share(len(decisions))
        is_class = self.labels == classes[:, np.newaxis]
        # A decision value of zero is wrong whatever the label is.
        wrong = np.where(is_class, decisions <= 0.0, decisions >= 0.0)
        values = np.array([self._upper(events, share) for events in wrong])
        rates = np.array([self._rate(events) for events in is_class])
        claim = (
            f'the classifier\'s "is it this class or not" is wrong on at most {{:.2%}} of '
            f"{self._population}."
        )
        return conditions.joint_bound(
            "hold-out error, one-vs-rest", "0-1 error", classes, values,
            np.minimum(rates, 1.0 - rates), claim,
            errors=np.count_nonzero(wrong, axis=1).tolist(),
        )  # fmt: skip

    @property
    def _missing_classes(self) -> str:
        """Name the classes that no held-out series has."""
        missing = np.setdiff1d(self.model.classes_, self.labels).tolist()
        if not missing:
            return ""
        several, names = len(missing) > 1, list_first([*map(repr, missing)], _MOST_NAMED)
        return (
            f" No held-out series is of class{'es' * several} {names}: nothing is known about "
            f"errors on series of {'these classes' if several else 'this class'}."
        )

    @property
    def _population(self) -> str:
        return "new series" if self.groups is None else "the series of a new group, on average"

    def _rate(self, events: AnyArray) -> float:
        """Return how often an event occurs: in all series, or on average in a group."""
        if self.groups is None:
            return float(np.mean(events))
        return mean_over_groups(events, self.groups)[0]

    def _upper(self, wrong: AnyArray, delta: float) -> float:
        """Bound the error from the errors among held-out series, or held-out groups."""
        if self.groups is None:
            return clopper_pearson(int(np.count_nonzero(wrong)), len(wrong), delta)
        return group_error_bound(*mean_over_groups(wrong, self.groups), delta)


def find_copies(model: SeriesClassifier, batch: SeriesBatch) -> IntArray | None:
    """Find copies of training series among series in memory, as `HeldOut.copies`."""
    return None if model.training_digests_ is None else np.flatnonzero(_is_copy(model, batch))


def copies_sentence(n_copies: int, n: int) -> str:
    """Return how many series are copies of training series.

    Examples
    --------
    >>> from slts.guarantees.held_out import copies_sentence
    >>> copies_sentence(1, 40)
    '1 of 40 series is a copy of a training series'
    """
    are = "is a copy of a training series" if n_copies == 1 else "are copies of training series"
    return f"{n_copies:,} of {n:,} series {are}"


def _is_copy(model: SeriesClassifier, batch: SeriesBatch) -> npt.NDArray[np.bool_]:
    """Whether each series equals a training series; series of constant channels do not count."""
    training = model.training_digests_
    if training is None or len(training) == 0:
        return np.zeros(len(batch), dtype=np.bool_)
    digests, starts = series_digests(batch), batch.offsets[:-1]
    nearest = np.minimum(np.searchsorted(training, digests), len(training) - 1)
    highest, lowest = (f.reduceat(batch.values, starts) for f in (np.fmax, np.fmin))
    varies = np.any(highest > lowest, axis=1) | ((batch.lengths == 1) & (batch.n_channels > 1))
    return np.asarray(varies & (training[nearest] == digests))


def check_labels(model: Any, y: Any, X: Any = None) -> AnyArray:
    """Labels as an array. All must be classes of the model. `X` is used for messages."""
    if y is None:
        raise DataError("y is None: the label of every series is needed.")
    labels = labels_as_given(y)
    if len(labels) == 0:
        raise DataError("y is empty: at least one labelled series is needed.")
    unseen = unknown_labels(labels, model.classes_)
    if unseen:
        name = _name_of(labels.tolist().index(unseen[0]), X)
        raise DataError(
            f"y has labels that the model was not trained on: "
            f"{list_first([*map(repr, unseen)], _MOST_NAMED)}, first for {name}. The model knows "
            f"{model.classes_.tolist()}. Leave out series of other classes."
        )
    return labels.astype(model.classes_.dtype) if labels.dtype == object else labels


def check_batch(model: SeriesClassifier, X: Any, labels: AnyArray) -> SeriesBatch:
    """Series that the model accepts, one per label."""
    batch = model.check_series(X)
    check_one_per_series(len(batch), labels, "y", "labels")
    return batch


def _name_of(index: int, X: Any) -> str:
    """Return what a message calls a series in memory or in a scan, which is read again."""
    if isinstance(X, SeriesBatch):
        return X.name_of(index, "X")
    if not isinstance(X, SeriesScan):
        return f"series {index} of X"
    first = 0
    for part in X.parts(labels=True):
        for piece in part.batches(labels=True, batch_size=_BATCH):
            names = piece.series.series_names
            if names is not None and index < first + len(names):
                return str(names[index - first])
            first += len(piece.series)
    return f"series {index} of {X.name}"


def inner_model(model: Any, X: Any) -> tuple[Any, Any]:
    """The classifier of slts in a search or pipeline, or None; the series as it sees them."""
    before = []
    while not isinstance(model, SeriesClassifier):
        if isinstance(model, Pipeline):
            before += model.steps[:-1]
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            return None, X
    for _, step in before:
        X = X if X is None or step in (None, "passthrough") else step.transform(X)
    return model, X


def required_inner_model(model: Any, X: Any) -> tuple[SeriesClassifier, Any]:
    """Return `inner_model`, or raise an error if there is no classifier of slts."""
    inner, X = inner_model(model, X)
    if inner is None:
        raise TypeError(
            f"The 'model' parameter must be a fitted slts classifier, or a search or pipeline that "
            f"ends in one. Got {type(model).__name__} instead."
        )
    return inner, X
