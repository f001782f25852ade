"""The series of a report, the predictions for them, and statistics of both."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import column_or_1d

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.guarantees.bounds import accuracy_interval
from slts.guarantees.held_out import HeldOut, Predicted
from slts.guarantees.overlap import Overlap, held_out_digests
from slts.learning.calibration import two_sided
from slts.report.packing import rounded
from slts.series import SeriesBatch, as_series

# Largest number of bars in the histogram of lengths.
_MOST_BARS = 24


@dataclass(frozen=True, eq=False)
class Predictions:
    """Series with labels and predictions.

    Attributes
    ----------
    given
        X in the form that the model accepts.
    batch
        X as a batch.
    labels
        True labels; None if unknown.
    label_names
        Names of the classes of the model, then of labels that the model does not know.
    truth
        Position of each true label in `label_names`; None without labels.
    predicted
        Position of each predicted class.
    decisions
        Shape (series, classes), also for two classes; None if the model has none.
    probabilities
        Shape (series, classes); None if the model has none.
    outputs
        What the model returned.
    ids
        Name of each series: "recording 17", or "series 3" if X has no identifiers.
    n_seen
        Number of series that are copies of training series.
    """

    given: Any
    batch: SeriesBatch
    labels: AnyArray | None
    label_names: list[str]
    truth: IntArray | None
    predicted: IntArray
    decisions: FloatArray | None
    probabilities: FloatArray | None
    outputs: Predicted
    ids: list[str]
    n_seen: int

    @property
    def wrong(self) -> IntArray:
        """Indices of misclassified series."""
        if self.truth is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.truth != self.predicted)


def predict_series(
    model: Any, X: Any, y: Any = None, ids: Sequence[Any] | None = None
) -> Predictions:
    """Check the data and predict.

    Parameters
    ----------
    model
        A fitted classifier.
    X, y
        Series, and their labels if known.
    ids
        Identifiers of the series; None takes the names that X has, or numbers them.
    """
    # A pipeline may accept only the form of X that it was fitted on.
    direct = hasattr(model, "check_series")
    batch = model.check_series(X) if direct else as_series(X)
    if len(batch) == 0:
        raise DataError("X is empty: a report needs at least one series, or X=None.")
    if ids is not None and len(ids) != len(batch):
        raise DataError(
            f"X and ids have inconsistent lengths: {len(batch)} series and {len(ids)} ids."
        )
    if ids is not None or batch.series_names is None:
        batch = batch.named(range(len(batch)) if ids is None else ids)
    given = batch if direct else X
    classes = model.classes_.tolist()
    labels = truth = None
    unknown: list[Any] = []
    if y is not None:
        labels = column_or_1d(y)
        if len(labels) != len(batch):
            raise DataError(
                f"X and y have inconsistent lengths: {len(batch)} series and {len(labels)} labels."
            )
        unknown = [c for c in np.unique(labels).tolist() if c not in set(classes)]
        position = {c: k for k, c in enumerate([*classes, *unknown])}
        truth = np.array([position[c] for c in labels.tolist()], dtype=np.int64)
    predicted, decisions, probabilities = outputs = _outputs(model, given)
    decisions = None if decisions is None else two_sided(decisions)
    if decisions is not None and decisions.shape[1] != len(classes):
        # One-vs-one decision values do not belong to single classes.
        decisions = None
    return Predictions(
        given=given,
        batch=batch,
        labels=labels,
        label_names=[str(c) for c in [*classes, *unknown]],
        truth=truth,
        predicted=np.array([classes.index(c) for c in predicted.tolist()], dtype=np.int64),
        decisions=decisions,
        probabilities=probabilities,
        outputs=outputs,
        ids=list(batch.series_names or ()),
        n_seen=len(Overlap.of(model, held_out_digests(model, batch)).copies) if direct else 0,
    )


def _outputs(model: Any, given: Any) -> Predicted:
    """Predicted classes, decision values and probabilities, None where there are none."""
    if hasattr(model, "outputs"):
        found: Predicted = model.outputs(given)
        return found
    decisions = probabilities = None
    if hasattr(model, "decision_function"):
        decisions = np.asarray(model.decision_function(given), dtype=np.float64)
    if hasattr(model, "predict_proba"):
        # A classifier fitted without calibration raises NotFittedError.
        with suppress(NotFittedError):
            probabilities = np.asarray(model.predict_proba(given), dtype=np.float64)
    return np.asarray(model.predict(given)), decisions, probabilities


def accuracy(predictions: Predictions) -> dict[str, Any] | None:
    """Share of correct predictions with its exact 95% interval; None without labels."""
    if predictions.truth is None:
        return None
    n = len(predictions.truth)
    correct = n - len(predictions.wrong)
    low, high = accuracy_interval(correct, n)
    return {"value": correct / n, "correct": correct, "n": n, "low": low, "high": high}


def confusion(predictions: Predictions, n_classes: int) -> dict[str, Any] | None:
    """Number of series by true label and predicted class; None without labels.

    ``counts`` has a row per label and a column per class of the model. ``confused`` lists the pairs
    that differ, most frequent first.
    """
    if predictions.truth is None:
        return None
    counts = np.zeros((len(predictions.label_names), n_classes), dtype=np.int64)
    np.add.at(counts, (predictions.truth, predictions.predicted), 1)
    confused = [
        {"truth": int(i), "predicted": int(j), "count": int(counts[i, j])}
        for i, j in np.argwhere(counts > 0)
        if i != j
    ]
    confused.sort(key=lambda pair: -pair["count"])
    return {"counts": counts.tolist(), "confused": confused}


def certificate(model: Any, predictions: Predictions | None) -> dict[str, Any]:
    """The certificate, or the reason for its absence."""
    if predictions is None:
        return {"given": False, "reason": "No series were given to this report."}
    if predictions.labels is None:
        return {"given": False, "reason": "No labels were given to this report."}
    try:
        given, labels = predictions.given, predictions.labels
        held_out = HeldOut.of(model, given, labels, outputs=predictions.outputs)
        found = held_out.certificate().to_dict()
    except DataError as error:
        reason = str(error)
        return {"given": False, "reason": reason[:1].upper() + reason[1:]}
    for bound in found["bounds"]:
        # The page shows the statement, not the numbers behind it.
        del bound["details"]
        bound["value"] = rounded(bound["value"], 6)
    return {"given": True, "reason": None, **found}


def data_summary(predictions: Predictions) -> dict[str, Any]:
    """Lengths of the series, and number of series by class."""
    truth, predicted, n = predictions.truth, predictions.predicted, len(predictions.label_names)
    counts = correct = None
    if truth is not None:
        counts = np.bincount(truth, minlength=n).tolist()
        correct = np.bincount(truth[truth == predicted], minlength=n).tolist()
    return {
        "n_series": len(predictions.batch),
        "n_steps": predictions.batch.n_steps,
        "n_channels": predictions.batch.n_channels,
        "lengths": _lengths(predictions.batch.lengths),
        "counts": counts,
        "correct": correct,
        "predicted": np.bincount(predicted, minlength=n).tolist(),
    }


def _lengths(lengths: IntArray) -> dict[str, Any]:
    """Histogram of the lengths, in bars of equal integer width."""
    low, high = int(lengths.min()), int(lengths.max())
    width = max(1, -(-(high - low + 1) // _MOST_BARS))
    counts = np.bincount((lengths - low) // width).tolist()
    return {"low": low, "high": high, "median": float(np.median(lengths)), "counts": counts}
