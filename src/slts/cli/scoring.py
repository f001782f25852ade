"""Accuracy and other scores of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, log_loss, precision_recall_fscore_support

from slts._typing import AnyArray, FloatArray
from slts.guarantees.bounds import accuracy_interval


def accuracy(predicted: AnyArray, truth: AnyArray) -> dict[str, Any]:
    """Return the accuracy with the exact 95% interval of Clopper and Pearson."""
    n = len(truth)
    right = int(np.count_nonzero(predicted == truth))
    interval = list(accuracy_interval(right, n))
    return {"n": n, "right": right, "accuracy": right / n, "interval": interval}


def describe_accuracy(found: dict[str, Any]) -> str:
    """Return one line about what `accuracy` returns."""
    low, high = found["interval"]
    return (
        f"accuracy {found['accuracy']:.1%} ({found['right']} of {found['n']}; 95% interval "
        f"{low:.1%} to {high:.1%})"
    )


def scores(
    classes: AnyArray, predicted: AnyArray, probabilities: FloatArray | None, truth: AnyArray
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
        **accuracy(predicted, truth),
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
