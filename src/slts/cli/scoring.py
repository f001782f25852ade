"""Accuracy and other scores of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, log_loss, precision_recall_fscore_support

from slts._typing import AnyArray, FloatArray
from slts.guarantees.bounds import (
    accuracy_interval,
    group_accuracy_interval,
    mean_over_groups,
)
from slts.learning.calibration import Validation


def accuracy(
    predicted: AnyArray, truth: AnyArray, groups: AnyArray | None = None
) -> dict[str, Any]:
    """Return the accuracy with a 95% interval.

    The interval is exact (Clopper and Pearson) if series are independent. With groups, it is one
    for the mean accuracy of a new group.
    """
    right = predicted == truth
    measured = _measured(len(truth), int(np.count_nonzero(right)))
    if groups is None:
        return measured
    return measured | _measured_groups(*mean_over_groups(right, groups))


def validation_accuracy(validation: Validation | None) -> dict[str, Any] | None:
    """Return the accuracy on series that a fit held out, if it did, as `accuracy` does."""
    if validation is None:
        return None
    content = {
        "kind": validation.kind,
        **_measured(validation.n_series, validation.accuracy * validation.n_series),
    }
    if validation.n_groups is not None and validation.group_accuracy is not None:
        content |= _measured_groups(validation.group_accuracy, validation.n_groups)
    return content


def _measured(n: int, right: float) -> dict[str, Any]:
    interval = list(accuracy_interval(round(right), n))
    return {"n": n, "right": round(right), "accuracy": right / n, "interval": interval}


def _measured_groups(mean: float, n: int) -> dict[str, Any]:
    interval = list(group_accuracy_interval(mean, n))
    return {"n_groups": n, "group_accuracy": mean, "interval": interval}


def describe_accuracy(scores: dict[str, Any]) -> str:
    """Return one line about what `accuracy` returns."""
    low, high = scores["interval"]
    text, interval = f"accuracy {scores['accuracy']:.1%} ", f"{low:.1%} to {high:.1%}"
    counts = f"{scores['right']} of {scores['n']}"
    if "n_groups" not in scores:
        return f"{text}({counts}; 95% interval {interval})"
    return (
        f"{text}({counts}); mean over {scores['n_groups']} groups {scores['group_accuracy']:.1%} "
        f"(95% interval for a new group {interval})"
    )


def copies_warning(n_copies: int, n: int) -> str:
    """Return a warning about training series in data that should be held out."""
    return (
        f"warning: {n_copies} of {n} series are copies of training series. The accuracy does not "
        f"show how the model does on new series."
    )


def scores(
    classes: AnyArray,
    predicted: AnyArray,
    probabilities: FloatArray | None,
    truth: AnyArray,
    groups: AnyArray | None = None,
) -> dict[str, Any]:
    """Return accuracy, balanced accuracy, log-loss, scores of every class, confusion matrix."""
    precision, recall, f1, support = precision_recall_fscore_support(
        truth, predicted, labels=classes, zero_division=0.0
    )
    loss = None
    if probabilities is not None:
        codes = np.searchsorted(classes, truth)
        loss = float(log_loss(codes, probabilities, labels=np.arange(len(classes))))
    return {
        **accuracy(predicted, truth, groups),
        # Classes without series have no recall.
        "balanced_accuracy": float(recall[support > 0].mean()),
        "log_loss": loss,
        "by_class": [
            {
                "class": name,
                "series": int(support[c]),
                "precision": float(precision[c]),
                "recall": float(recall[c]) if support[c] else None,
                "f1": float(f1[c]),
            }
            for c, name in enumerate(classes.tolist())
        ],
        "classes": classes.tolist(),
        "confusion": confusion_matrix(truth, predicted, labels=classes).tolist(),
    }
