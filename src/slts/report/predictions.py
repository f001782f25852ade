"""The series of a report and their predictions: errors, guarantee, sets, lengths and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.base import Outputs, SeriesClassifier
from slts.estimators.local import LocalSLTSClassifier
from slts.estimators.training_data import check_groups, unknown_labels
from slts.guarantees import prediction_sets
from slts.guarantees.bounds import accuracy_interval, group_accuracy_interval, mean_over_groups
from slts.guarantees.held_out import HeldOut, check_labels, find_copies
from slts.guarantees.prediction_sets import FLAGS
from slts.series import SeriesBatch
from slts.series.convert import check_one_per_series
from slts.solvers.calibration import two_sided

# Probabilities that a prediction set lacks the true class. The first that is possible is used.
_ALPHAS = (0.05, 0.1)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Series with labels and predictions.

    Attributes
    ----------
    model
        The classifier.
    batch
        The series, with names: "recording 17", or "series 3" if X has no identifiers.
    labels
        True labels; None if unknown.
    label_names
        Names of the classes of the model, then of labels that the model does not know.
    truth
        Position of each true label in `label_names`; None without labels.
    outputs
        What the model predicts.
    copies
        Positions of the copies of training series; None if the training series are unknown.
    groups
        Group of each series if groups are the independent draws; None if the series are.
    """

    model: SeriesClassifier
    batch: SeriesBatch
    labels: AnyArray | None
    label_names: list[str]
    truth: IntArray | None
    outputs: Outputs
    copies: IntArray | None
    groups: AnyArray | None

    @cached_property
    def ids(self) -> list[str]:
        """Name of each series."""
        return list(self.batch.series_names or ())

    @cached_property
    def predicted(self) -> IntArray:
        """Position of each predicted class."""
        return np.searchsorted(self.model.classes_, self.outputs.labels)

    @cached_property
    def decisions(self) -> FloatArray:
        """Decision values, shape (series, classes), also for two classes."""
        return two_sided(self.outputs.decisions)

    @property
    def n_seen(self) -> int:
        """Number of series that are copies of training series."""
        return 0 if self.copies is None else len(self.copies)

    @cached_property
    def wrong(self) -> IntArray:
        """Indices of misclassified series."""
        if self.truth is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.truth != self.predicted)


def predict_series(
    model: SeriesClassifier,
    X: Any,
    y: Any = None,
    ids: Sequence[Any] | None = None,
    groups: Any = None,
) -> Predictions:
    """Check the data and predict; the parameters are those of `collect`."""
    batch = model.check_series(X)
    if len(batch) == 0:
        raise DataError("X is empty: a report needs at least one series, or X=None.")
    if ids is not None:
        check_one_per_series(len(batch), ids, "ids", "ids")
    if ids is not None or batch.series_names is None:
        batch = batch.named(range(len(batch)) if ids is None else ids)
    names = model.classes_.tolist()
    labels = truth = None
    if y is not None:
        labels = column_or_1d(y)
        check_one_per_series(len(batch), labels, "y", "labels")
        names += unknown_labels(np.unique(labels), model.classes_)
        position = {label: k for k, label in enumerate(names)}
        truth = np.array([position[label] for label in labels.tolist()], dtype=np.int64)
    return Predictions(
        model=model,
        batch=batch,
        labels=labels,
        label_names=list(map(str, names)),
        truth=truth,
        outputs=model.outputs(batch),
        copies=find_copies(model, batch),
        groups=None if groups is None else check_groups(groups, len(batch)),
    )


def accuracy(predictions: Predictions) -> dict[str, Any] | None:
    """Share of correct predictions with its 95% interval; None without labels.

    The interval is exact for independent series; with groups, it is for the mean of a new group.
    """
    if predictions.truth is None:
        return None
    n, groups, n_groups = len(predictions.truth), predictions.groups, None
    correct = n - len(predictions.wrong)
    low, high = accuracy_interval(correct, n)
    if groups is not None:
        mean, n_groups = mean_over_groups(predictions.truth == predictions.predicted, groups)
        low, high = group_accuracy_interval(mean, n_groups)
    return {
        "value": correct / n, "correct": correct, "n": n, "low": low, "high": high,
        "n_groups": n_groups,
    }  # fmt: skip


def confusion(predictions: Predictions) -> dict[str, Any] | None:
    """Number of series by true label and predicted class; None without labels.

    ``counts`` has a row per label and a column per class of the model. ``confused`` lists the pairs
    of labels that differ, most frequent first.
    """
    if predictions.truth is None:
        return None
    names = predictions.label_names
    counts = np.zeros((len(names), len(predictions.model.classes_)), dtype=np.int64)
    np.add.at(counts, (predictions.truth, predictions.predicted), 1)
    confused = [
        {"truth": names[i], "predicted": names[j], "count": int(counts[i, j])}
        for i, j in np.argwhere(counts > 0)
        if i != j
    ]
    confused.sort(key=lambda pair: -pair["count"])
    return {"counts": counts.tolist(), "confused": confused}


def without_channels(predictions: Predictions | None) -> dict[str, Any] | None:
    """Leave-one-out accuracy without each channel, or why it is unknown; None without labels."""
    if predictions is None or predictions.labels is None:
        return None
    model, batch = predictions.model, predictions.batch
    if not isinstance(model, LocalSLTSClassifier) or batch.n_channels == 1:
        return None
    try:
        found = model.accuracy_without_channels(batch, predictions.labels)
    except DataError as error:
        return {"reason": str(error)}
    order = np.argsort(-found.without, kind="stable")
    pairs = zip(found.channels[order].tolist(), found.without[order].tolist(), strict=True)
    return {
        "accuracy": found.accuracy, "n_series": found.n_series,
        "channels": [list(pair) for pair in pairs],
    }  # fmt: skip


def missing_values(batch: SeriesBatch, names: list[str]) -> dict[str, Any]:
    """Number of series with missing values, and the share of these in each channel that has any."""
    missing = np.isnan(batch.values)
    series = np.add.reduceat(missing.any(axis=1), batch.offsets[:-1], dtype=np.int64) > 0
    shares = zip(names, missing.mean(axis=0).tolist(), strict=True)
    return {"n_series": int(series.sum()), "channels": [list(one) for one in shares if one[1] > 0]}


def certificate(predictions: Predictions | None) -> dict[str, Any]:
    """The bound of `slts.certify` on the error, or the reason for its absence."""
    if predictions is None:
        return {"certified": False, "reason": "This report has no series."}
    if predictions.labels is None:
        return {"certified": False, "reason": "This report has no labels."}
    model, batch = predictions.model, predictions.batch
    try:
        labels = check_labels(model, predictions.labels, batch)
        copies, groups = predictions.copies, predictions.groups
        held_out = HeldOut(model, labels, *predictions.outputs, copies, groups, batch)
        certificate = held_out.certificate()
    except DataError as error:
        reason = str(error)
        return {"certified": False, "reason": reason[:1].upper() + reason[1:]}
    bound = certificate.headline.to_dict()
    del bound["details"]
    return {"certified": True, "delta": certificate.delta, **bound}


def set_sizes(predictions: Predictions, entries: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Sizes of the prediction sets.

    Every series of the explorer, in `entries`, gets the classes in its set. The result is None if
    the model has no scores, or too few of them: then every set would have all classes.
    """
    scores, probabilities = predictions.model.held_out_scores_, predictions.outputs.probabilities
    n_draws = 0.0 if scores is None else scores.weights.sum()
    usable = [alpha for alpha in _ALPHAS if alpha * (n_draws + 1.0) >= 1.0]
    if not usable or probabilities is None:
        return None
    predictor = prediction_sets(predictions.model)
    sets = predictor.from_probabilities(probabilities, usable[0])
    for entry in entries:
        entry["set"] = np.flatnonzero(sets.members[entry["index"]]).tolist()
    covered = None if predictions.labels is None else sets.contains(predictions.labels)
    return {
        "guarantee": predictor.guarantee,
        "alpha": sets.alpha,
        "sizes": [int(np.sum(sets.flags == flag)) for flag in FLAGS],
        "covered": None if covered is None else float(covered.mean()),
    }
