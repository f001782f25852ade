"""Held-out series: their labels and the outputs of a classifier from one pass, and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from slts._typing import AnyArray, FloatArray
from slts.errors import DataError
from slts.estimators.base import SeriesClassifier, check_groups
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.estimators.prediction import apply_with_labels
from slts.guarantees import statements
from slts.guarantees.bound_inputs import signs_of
from slts.guarantees.certificate import Bound, Certificate
from slts.guarantees.statements import INDEPENDENT, INDEPENDENT_GROUPS, Conditions
from slts.series import SeriesBatch
from slts.series.source import Digests, series_keys
from slts.training.source import is_source

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
        Decision values and probabilities; None if the classifier is not one of slts.
    overlap
        The error for a series that the model keeps from training, if there is one.
    groups
        Group of every series if groups are the independent draws; None if the series are.
    """

    model: Any
    labels: AnyArray
    predicted: AnyArray
    decisions: FloatArray | None = None
    probabilities: FloatArray | None = None
    overlap: DataError | None = None
    groups: AnyArray | None = None

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        groups: Any = None,
        outputs: Predicted | None = None,
    ) -> HeldOut:
        """Apply a classifier to series in memory and their labels, or to a scan with labels.

        `outputs` are those of the classifier for series in memory, if they are known already.
        """
        inner = _inner_model(model)
        if inner is not None and is_source(X):
            (decisions, keys), y, groups = apply_with_labels(
                inner, X, type(inner).decision_function, _keys
            )
        labels = check_labels(model, y)
        known = None if groups is None else check_groups(groups, len(labels))
        if inner is None:
            predicted = outputs[0] if outputs else np.asarray(model.predict(X))
            return cls(model, labels, predicted, groups=known)
        if is_source(X):
            outputs = inner.outputs_from(decisions)
        else:
            batch = check_batch(inner, X, labels)
            outputs, keys = outputs or inner.outputs(batch), _keys(inner, batch)
        return cls(model, labels, *outputs, _overlap(inner, keys), known)

    def bounds(self, delta: float, n_models: int) -> list[Bound]:
        """Bounds on the error, and on that of the signs if there are landmarks.

        They are exact (Clopper-Pearson) if series are independent; over the means of groups else.
        """
        if self.overlap is not None:
            raise self.overlap
        independent = INDEPENDENT if self.groups is None else INDEPENDENT_GROUPS
        checked, unchecked = ["every label is known to the model"], [independent]
        unchecked.append(
            "the held-out series played no part in choosing the model or its parameters"
        )
        if self.decisions is None:
            unchecked.append("no held-out series was used in training")
        else:
            checked.append("no held-out series is one that the model keeps from training")
        conditions = Conditions(
            delta, n_models, "held-out", tuple(checked), tuple(unchecked), self.groups
        )
        found = [statements.hold_out_error(self.predicted, self.labels, conditions)]
        model, decisions = self.model, self.decisions
        if isinstance(model, LandmarkClassifier) and decisions is not None and decisions.ndim == 2:
            signs = signs_of(self.labels, model.classes_)
            found.append(
                statements.hold_out_one_vs_rest(decisions.T, signs, model.classes_, conditions)
            )
        return found

    def certificate(self, delta: float = 0.05, n_models: int = 1) -> Certificate:
        """Return the bounds as a certificate."""
        found = tuple(self.bounds(delta, n_models))
        return Certificate(found, float(delta), type(self.model).__name__, int(n_models))


def check_labels(model: Any, y: Any) -> AnyArray:
    """Labels as an array. All must be classes of the model."""
    if y is None:
        raise DataError("y is None: a certificate needs the label of every series.")
    # Labels of mixed type stay what they are: NumPy would turn 1 and "a" into texts.
    is_list = isinstance(y, list | tuple)
    labels: AnyArray = column_or_1d(np.array(y, dtype=object) if is_list else y)
    if len(labels) == 0:
        raise DataError("y is empty: a certificate needs at least one labelled series.")
    classes = model.classes_.tolist()
    known, found = set(classes), labels.tolist()
    wrong = next((i for i, label in enumerate(found) if label not in known), None)
    if wrong is not None:
        unseen = list(dict.fromkeys(label for label in found if label not in known))
        more = "" if len(unseen) <= _MOST_NAMED else f" and {len(unseen) - _MOST_NAMED} more"
        raise DataError(
            f"y has labels that the model was not trained on: {unseen[:_MOST_NAMED]}{more}, first "
            f"for series {wrong}. The model knows {classes}; leave out series of other classes."
        )
    return labels.astype(model.classes_.dtype) if is_list else labels


def check_batch(model: SeriesClassifier, X: Any, labels: AnyArray) -> SeriesBatch:
    """Series that the model accepts, one per label."""
    batch = model.check_series(X)
    if len(batch) != len(labels):
        raise DataError(
            f"X and y have inconsistent lengths: {len(batch)} series and {len(labels)} labels."
        )
    return batch


def _inner_model(model: Any) -> SeriesClassifier | None:
    """The slts classifier that sees the series as given; None inside pipelines and elsewhere."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model if isinstance(model, SeriesClassifier) else None


def kept_from_training(model: Any, batch: SeriesBatch) -> npt.NDArray[np.bool_]:
    """Whether each series is one that the model keeps from training."""
    return np.isin(_keys(model, batch), _rounded_keys(_kept_series(model)))


def _kept_series(model: Any) -> SeriesBatch:
    kept: SeriesBatch = model.landmarks_ if hasattr(model, "landmarks_") else model.training_rows_
    return kept


def _keys(model: SeriesClassifier, batch: SeriesBatch) -> Digests:
    """Hashes by which series are recognised that a model keeps from training."""
    # Models without landmarks keep the rows of their training series, as they are aligned.
    return _rounded_keys(batch if hasattr(model, "landmarks_") else model.row_map_(batch))


def _rounded_keys(batch: SeriesBatch) -> Digests:
    """Hashes of series in float32: copies that went through float32 or text are recognised."""
    rounded = batch.values.astype(np.float32).astype(np.float64)
    return series_keys(SeriesBatch.from_checked(rounded, batch.offsets, None), seed=0)


def _overlap(model: SeriesClassifier, keys: Digests) -> DataError | None:
    """Return the error for the first series that the model keeps from training, if any."""
    kind, kept = "landmark", _kept_series(model)
    numbers: Any = range(len(kept))
    if not hasattr(model, "landmarks_"):
        kind, numbers = "training series", model.training_indices_
    positions = dict(zip(_rounded_keys(kept).tolist(), numbers, strict=True))
    found = next((i for i, key in enumerate(keys.tolist()) if key in positions), None)
    if found is None:
        return None
    instead = ""
    if isinstance(model, LandmarkClassifier):
        instead = " For the training sample itself use sample='training'."
    return DataError(
        f"series {found} of X equals {kind} {positions[int(keys[found])]} of the model: a hold-out "
        f"certificate needs series the model was not trained on.{instead}"
    )
