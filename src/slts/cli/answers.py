"""What a model says of series: labels and probabilities from one set of alignments."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, log_loss, precision_recall_fscore_support

from slts._typing import AnyArray, FloatArray
from slts.guarantees.bounds import accuracy_interval
from slts.series import SeriesBatch


def answer(model: Any, series: SeriesBatch) -> tuple[AnyArray, FloatArray | None]:
    """Return predicted labels, and probabilities where the model is calibrated."""
    labels, _, chances = model.outputs(series)
    return labels, chances


def accuracy_of(predicted: AnyArray, truth: AnyArray) -> dict[str, Any]:
    """Accuracy with the exact 95% interval of Clopper and Pearson."""
    n = len(truth)
    right = int(np.count_nonzero(predicted == truth))
    interval = list(accuracy_interval(right, n))
    return {"n": n, "right": right, "accuracy": right / n, "interval": interval}


def accuracy_in_words(found: dict[str, Any]) -> str:
    """One line about an accuracy."""
    low, high = found["interval"]
    return (
        f"accuracy {found['accuracy']:.1%} ({found['right']} of {found['n']}; 95% interval "
        f"{low:.1%} to {high:.1%})"
    )


def scores(
    classes: AnyArray, predicted: AnyArray, chances: FloatArray | None, truth: AnyArray
) -> dict[str, Any]:
    """Accuracy, balanced accuracy, log-loss, figures by class and the confusion matrix."""
    precision, recall, f1, support = precision_recall_fscore_support(
        truth, predicted, labels=classes, zero_division=0.0
    )
    present = np.isin(classes, truth)
    loss = None
    if chances is not None:
        codes = np.searchsorted(classes, truth)
        loss = float(log_loss(codes, chances, labels=np.arange(len(classes))))
    return {
        **accuracy_of(predicted, truth),
        # Of the classes that occur; the others have no recall.
        "balanced_accuracy": float(recall[present].mean()),
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
