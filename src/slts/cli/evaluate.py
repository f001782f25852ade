"""``slts evaluate``: measure a model on labelled series."""

from __future__ import annotations

from typing import Any

import numpy as np
import typer
from sklearn.metrics import confusion_matrix, log_loss, precision_recall_fscore_support

from slts.cli import options
from slts.cli.accuracy import accuracy, describe_accuracy, measure
from slts.cli.data import Expected, load_model, open_scan
from slts.cli.terminal import show_json, show_table
from slts.guarantees.held_out import HeldOut


@options.with_common_options
def evaluate(
    model: options.ModelFile,
    data: options.Data,
    groups: options.Groups = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Measure accuracy, log-loss and scores of every class.

    If the model was not trained on the series, a certificate bounds the error on new series.
    """
    fitted = load_model(model, common, verbose=not common.quiet)
    scan = open_scan(data, common, Expected.of_model(fitted), groups)
    held_out, certificate = measure(fitted, scan, common.messages)
    measured = scores(held_out)
    if common.as_json:
        certified = None if certificate is None else certificate.to_dict()
        show_json({"data": scan.name, **measured, "certificate": certified})
        return
    typer.echo(describe_accuracy(measured))
    typer.echo(f"balanced accuracy {measured['balanced_accuracy']:.1%}")
    if measured["log_loss"] is not None:
        typer.echo(f"log-loss {measured['log_loss']:.4f}")
    _show_classes(measured)
    if certificate is not None:
        typer.echo(certificate.headline.sentence)


def scores(held_out: HeldOut) -> dict[str, Any]:
    """Return accuracy, balanced accuracy, log-loss, scores of every class, confusion matrix."""
    classes, truth, predicted = held_out.model.classes_, held_out.labels, held_out.predicted
    precision, recall, f1, support = precision_recall_fscore_support(
        truth, predicted, labels=classes, zero_division=0.0
    )
    loss = None
    if held_out.probabilities is not None:
        codes = np.searchsorted(classes, truth)
        loss = float(log_loss(codes, held_out.probabilities, labels=np.arange(len(classes))))
    return {
        **accuracy(predicted, truth, held_out.groups),
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
        "n_training_copies": held_out.n_copies,
    }


def _show_classes(measured: dict[str, Any]) -> None:
    rows = [
        [
            str(row["class"]),
            str(row["series"]),
            f"{row['precision']:.3f}",
            "" if row["recall"] is None else f"{row['recall']:.3f}",
            f"{row['f1']:.3f}",
        ]
        for row in measured["by_class"]
    ]
    show_table(["class", "series", "precision", "recall", "F1"], rows)
    names = [str(name) for name in measured["classes"]]
    rows = [[name, *map(str, row)] for name, row in zip(names, measured["confusion"], strict=True)]
    show_table(["true", *names], rows, title="confusion matrix: columns are predictions")
