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

_SCORES = ("class", "precision", "recall", "f1", "series")


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
    # Classes without series have no recall, and classes that are not predicted no precision.
    by_class = precision_recall_fscore_support(
        truth, predicted, labels=classes, zero_division=np.nan
    )
    loss = None
    if held_out.probabilities is not None:
        codes = np.searchsorted(classes, truth)
        loss = float(log_loss(codes, held_out.probabilities, labels=np.arange(len(classes))))
    return {
        **accuracy(predicted, truth, held_out.groups),
        "n_copies": held_out.n_copies,
        "balanced_accuracy": float(np.nanmean(by_class[1])),
        "log_loss": loss,
        "by_class": [
            dict(zip(_SCORES, row, strict=True))
            for row in zip(classes.tolist(), *by_class, strict=True)
        ],
        "classes": classes.tolist(),
        "confusion": confusion_matrix(truth, predicted, labels=classes).tolist(),
    }


def _show_classes(measured: dict[str, Any]) -> None:
    rows = [[str(name), *map(_cell, row)] for name, *row in map(dict.values, measured["by_class"])]
    show_table(_SCORES, rows)
    names = [str(name) for name in measured["classes"]]
    rows = [[name, *map(str, row)] for name, row in zip(names, measured["confusion"], strict=True)]
    show_table(["true", *names], rows, title="confusion matrix: columns are predictions")


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if np.isnan(value) else f"{value:.3f}"
