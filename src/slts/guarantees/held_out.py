"""Held-out series: their labels and the outputs of a classifier from one pass, and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.pipeline import Pipeline

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.base import SeriesClassifier, check_groups, labels_as_given, unknown_labels
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.estimators.prediction import apply_with_labels
from slts.guarantees import statements
from slts.guarantees.certificate import Certificate
from slts.guarantees.overlap import Overlap, draws_of_groups, held_out_digests
from slts.guarantees.statements import INDEPENDENT, INDEPENDENT_GROUPS, Conditions, signs_of
from slts.series import SeriesBatch
from slts.series.convert import check_one_per_series
from slts.series.source import SeriesSource
from slts.training.source import is_source, pieces

# Labels, decision values and probabilities of a classifier, None where it has none.
Predicted: TypeAlias = tuple[AnyArray, FloatArray | None, FloatArray | None]
# Unknown labels that a message names.
_MOST_NAMED = 5


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
        Decision values and probabilities; None if they are not known.
    overlap
        Copies of training series and of each other; None if the classifier is not one of slts.
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
    overlap: Overlap | None = None
    groups: AnyArray | None = None
    series: SeriesBatch | SeriesSource | None = None

    @classmethod
    def of(cls, model: Any, X: Any, y: Any = None, groups: Any = None) -> HeldOut:
        """Apply a classifier to series in memory and their labels, or to a scan with labels."""
        inner, X = _inner_model(model, X)
        if inner is not None and is_source(X):
            (decisions, digests), y, groups = apply_with_labels(
                inner, X, type(inner).decision_function, held_out_digests
            )
        labels = check_labels(model, y, X)
        known = None if groups is None else check_groups(groups, len(labels))
        if inner is None:
            return cls(model, labels, np.asarray(model.predict(X)), groups=known)
        if is_source(X):
            outputs = inner.outputs_from(decisions)
        else:
            X = check_batch(inner, X, labels)
            outputs, digests = inner.outputs(X), held_out_digests(inner, X)
        return cls(model, labels, *outputs, Overlap.of(inner, digests), known, X)

    @property
    def n_copies(self) -> int:
        """Number of series that the model was trained on."""
        return 0 if self.overlap is None else len(self.overlap.copies)

    def require_no_copies(self) -> None:
        """Raise an error if there are series that the model was trained on."""
        if self.overlap is None or self.n_copies == 0:
            return
        name = _name_of(int(self.overlap.copies[0]), self.series)
        more = f" (the first of {self.n_copies})" if self.n_copies > 1 else ""
        raise DataError(
            f"{name} is a copy of a training series{more}: use series that the model was not "
            f"trained on."
        )

    @property
    def draws(self) -> IntArray | None:
        """Number of the independent draw of each series; None if all series or groups are draws.

        Series that are copies of each other are one draw, and so are groups that share copies.
        """
        if self.overlap is None:
            return None
        draws, given = self.overlap.draws, np.arange(len(self.labels))
        if self.groups is not None:
            given = np.unique(self.groups, return_inverse=True)[1]
            draws = draws_of_groups(draws, self.groups)
        return None if draws.max() == given.max() else draws

    def certificate(self, delta: float = 0.05, n_models: int = 1) -> Certificate:
        """Bound the error, and that of the signs if there are landmarks.

        Bounds are exact (Clopper-Pearson) if series are independent; over the means of groups else.
        """
        self.require_no_copies()
        independent = INDEPENDENT if self.groups is None else INDEPENDENT_GROUPS
        checked, unchecked = ["every label is known to the model"], [independent]
        unchecked.append("the held-out series were not used to choose the model or its parameters")
        if self.overlap is None:
            unchecked.append("no held-out series was used in training, or is a copy of another")
        else:
            checked += self.overlap.statements[0]
            unchecked += self.overlap.statements[1]
        model, decisions = self.model, self.decisions
        conditions = Conditions(
            model.classes_, signs_of(self.labels, model.classes_), delta, n_models,
            tuple(checked), tuple(unchecked), self.groups, self.draws,
        )  # fmt: skip
        found = [statements.hold_out_error(self.predicted, self.labels, conditions)]
        if isinstance(model, LandmarkClassifier) and decisions is not None and decisions.ndim == 2:
            found.append(statements.hold_out_one_vs_rest(decisions.T, conditions))
        return Certificate(tuple(found), float(delta), type(model).__name__, int(n_models))


def find_overlap(model: Any, X: Any) -> Overlap | None:
    """Find copies among series in memory; None if the classifier is not one of slts."""
    inner, X = _inner_model(model, X)
    if inner is None:
        return None
    return Overlap.of(inner, held_out_digests(inner, inner.check_series(X)))


def require_labels_of_scan(y: Any, groups: Any) -> None:
    """Raise an error if labels or groups are given beside a scan, which has its own."""
    if y is not None:
        raise DataError(
            "y must be None if X is a scan, which has its own labels: scan_series(..., label='...')"
        )
    if groups is not None:
        raise DataError(
            "groups must be None if X is a scan: name their column, scan_series(..., groups='...')"
        )


def check_labels(model: Any, y: Any, X: Any = None) -> AnyArray:
    """Labels as an array. All must be classes of the model. `X` is used for messages."""
    if y is None:
        raise DataError("y is None: the label of every series is needed.")
    labels = labels_as_given(y)
    if len(labels) == 0:
        raise DataError("y is empty: at least one labelled series is needed.")
    unseen = unknown_labels(labels, model.classes_)
    if unseen:
        wrong = labels.tolist().index(unseen[0])
        more = "" if len(unseen) <= _MOST_NAMED else f" and {len(unseen) - _MOST_NAMED} more"
        raise DataError(
            f"y has labels that the model was not trained on: {unseen[:_MOST_NAMED]}{more}, first "
            f"for {_name_of(wrong, X)}. The model knows {model.classes_.tolist()}. Leave out "
            f"series of other classes."
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
    if not is_source(X):
        return f"series {index} of X"
    first = 0
    for part in X.parts(labels=True):
        for piece in pieces(part, labels=True):
            names = piece.series.series_names
            if names is not None and index < first + len(names):
                return names[index - first]
            first += len(piece.series)
    return f"series {index} of {X.name}"


def _inner_model(model: Any, X: Any) -> tuple[SeriesClassifier | None, Any]:
    """The slts classifier, perhaps in a search or pipeline, and the series as it sees them."""
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
        X = X if step in (None, "passthrough") else step.transform(X)
    return model, X
