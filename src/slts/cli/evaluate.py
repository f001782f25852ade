"""``slts evaluate``: measure a model on labelled series. ``slts certify``: bound its error.

Other commands that measure accuracy use the first part.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import typer
from sklearn.metrics import confusion_matrix, log_loss, precision_recall_fscore_support
from typer import Option

from slts._typing import AnyArray
from slts.cli import options
from slts.cli.options import Expected, load_model, open_scan, read_data
from slts.cli.terminal import CommandError, Messages, show_json, show_table
from slts.errors import DataError
from slts.estimators import LocalSLTSClassifier
from slts.guarantees import Certificate, certify
from slts.guarantees.bounds import accuracy_interval, group_accuracy_interval, mean_over_groups
from slts.guarantees.held_out import HeldOut
from slts.quantities import count
from slts.solvers.calibration import Validation
from slts.tables import SeriesScan


def measure(model: Any, scan: SeriesScan, messages: Messages) -> tuple[HeldOut, Certificate | None]:
    """Predict labelled series, and bound the error on new series if the model has not seen them."""
    held_out = HeldOut.of(model, scan)
    try:
        certificate = held_out.certificate()
    except DataError as error:
        messages.say(f"no certificate: {error}")
        return held_out, None
    if held_out.n_copies:
        messages.say(held_out.check_copies("allow"))
    return held_out, certificate


def accuracy(
    predicted: AnyArray, truth: AnyArray, groups: AnyArray | None = None
) -> dict[str, Any]:
    """Return the accuracy with a 95% interval.

    The interval is exact (Clopper and Pearson) if series are independent. With groups, it is one
    for the mean accuracy of a new group.
    """
    right = predicted == truth
    measured = _of_series(len(truth), int(np.count_nonzero(right)))
    if groups is None:
        return measured
    return measured | _of_groups(*mean_over_groups(right, groups))


def validation_accuracy(validation: Validation | None) -> dict[str, Any] | None:
    """Return the accuracy on series that a fit held out, if it did, as `accuracy` does."""
    if validation is None:
        return None
    n = validation.n_series
    measured = {"kind": validation.kind, **_of_series(n, validation.accuracy * n)}
    if validation.n_groups is None or validation.group_accuracy is None:
        return measured
    return measured | _of_groups(validation.group_accuracy, validation.n_groups)


def _of_series(n: int, right: float) -> dict[str, Any]:
    interval = list(accuracy_interval(round(right), n))
    return {"n": n, "right": round(right), "accuracy": right / n, "interval": interval}


def _of_groups(mean: float, n: int) -> dict[str, Any]:
    interval = list(group_accuracy_interval(mean, n))
    return {"n_groups": n, "group_accuracy": mean, "interval": interval}


def describe_accuracy(measured: dict[str, Any]) -> str:
    """Return one line about what `accuracy` returns."""
    low, high = measured["interval"]
    interval = f"{low:.1%} to {high:.1%}"
    text = f"accuracy {measured['accuracy']:.1%} ({measured['right']} of {measured['n']}"
    if "n_groups" not in measured:
        return f"{text}; 95% interval {interval})"
    return (
        f"{text}); mean over {count(measured['n_groups'], 'group')} "
        f"{measured['group_accuracy']:.1%} (95% interval for a new group {interval})"
    )


# ---- slts evaluate


_SCORES = ("class", "precision", "recall", "f1", "series")


WithoutChannels = Annotated[
    bool,
    Option(
        "--without-channels",
        help="Also show the leave-one-out accuracy without each channel, for DATA as training "
        "series (at most 30 channels).",
    ),
]


@options.with_common_options
def evaluate(
    model: options.ModelFile,
    data: options.Data,
    groups: options.Groups = None,
    without_channels: WithoutChannels = False,
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
    if without_channels:
        measured["without_channels"] = _without_channels(fitted, data, common)
    if common.as_json:
        certified = None if certificate is None else certificate.to_dict()
        show_json({"data": scan.name, **measured, "certificate": certified})
        return
    typer.echo(describe_accuracy(measured))
    typer.echo(f"balanced accuracy {measured['balanced_accuracy']:.1%}")
    if measured["log_loss"] is not None:
        typer.echo(f"log-loss {measured['log_loss']:.4f}")
    _show_classes(measured)
    if without_channels:
        parts = measured["without_channels"]
        order = sorted(parts["without"].items(), key=lambda one: -one[1])
        rows = [[name, f"{share:.1%}"] for name, share in [("none", parts["all"]), *order]]
        show_table(["channel left out", "leave-one-out accuracy"], rows)
    if certificate is not None:
        typer.echo(certificate.headline.sentence)


def _without_channels(model: Any, data: str, common: options.CommonOptions) -> dict[str, Any]:
    """Return the leave-one-out accuracy on labelled series, and without each channel by name."""
    if not isinstance(model, LocalSLTSClassifier):
        raise CommandError("--without-channels needs a model of the method local")
    series = read_data(data, common, Expected.of_model(model))
    found = model.accuracy_without_channels(series.series, series.labels)
    names = series.series.channel_names or tuple(map(str, range(series.series.n_channels)))
    shares = {names[k]: share for k, share in zip(found.channels, found.without, strict=True)}
    return {"n_series": found.n_series, "all": found.accuracy, "without": shares}


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


# ---- slts certify


Delta = Annotated[float, Option(callback=options.check_share, help="Probability of failure.")]
Sample = Annotated[
    Literal["holdout", "training"],
    Option(help="Whether the data are held out or the model was trained on them."),
]
Copies = Annotated[
    Literal["error", "allow"],
    Option(help="Whether many held-out series may equal training series."),
]
NModels = Annotated[int, Option(min=1, max=10**100, help="Number of models compared here.")]


@options.with_common_options
def certify_model(
    model: options.ModelFile,
    data: options.Data,
    delta: Delta = 0.05,
    sample: Sample = "holdout",
    n_models: NModels = 1,
    groups: options.Groups = None,
    copies: Copies = "error",
    *,
    common: options.CommonOptions,
) -> None:
    """Compute an upper bound on the error on new series."""
    fitted = load_model(model, common, verbose=not common.quiet)
    expected = Expected.of_model(fitted)
    if sample == "holdout":
        scan = open_scan(data, common, expected, groups)
        certificate = certify(fitted, scan, delta=delta, n_models=n_models, copies=copies)
    else:
        # These bounds need all training series at once.
        series = read_data(data, common, expected, groups)
        certificate = certify(
            fitted, series.series, series.labels, groups=series.groups, delta=delta,
            n_models=n_models, sample=sample,
        )  # fmt: skip
    if common.as_json:
        show_json({"data": data, **certificate.to_dict()})
    else:
        typer.echo(str(certificate))
