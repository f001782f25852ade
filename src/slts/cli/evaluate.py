"""``slts evaluate`` and ``slts certify``: measure a model on labelled series, bound its error.

Other commands measure accuracy with the same functions.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from sklearn.metrics import confusion_matrix, log_loss, precision_recall_fscore_support

from slts._typing import AnyArray, FloatArray
from slts.cli import options
from slts.cli.data import load_model, open_scan
from slts.cli.terminal import show_json, show_table
from slts.errors import DataError
from slts.guarantees import Certificate, certify
from slts.guarantees.bounds import accuracy_interval, group_accuracy_interval, mean_over_groups
from slts.guarantees.held_out import HeldOut, copies_sentence
from slts.quantities import count
from slts.solvers.calibration import Validation


@options.command
def evaluate(
    model: options.ModelFile,
    data: options.Data,
    groups: options.Groups = None,
    memory_limit: options.MemoryLimit = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Measure accuracy, log-loss and scores of every class.

    If the model was not trained on the series, a certificate bounds the error on new series.
    """
    fitted = load_model(
        model, common, memory_limit=memory_limit, shows_progress=common.messages.shows_progress
    )
    scan = open_scan(data, common, model=fitted, groups=groups)
    held_out = HeldOut.of(fitted, scan)
    measured = scores(
        fitted.classes_, held_out.predicted, held_out.probabilities, held_out.labels,
        held_out.groups,
    )  # fmt: skip
    certificate: Certificate | None = None
    try:
        certificate = held_out.certificate()
    except DataError as error:
        common.messages.say(f"no certificate: {error}")
    if held_out.n_copies:
        common.messages.say(copies_warning(held_out.n_copies, len(held_out.labels)))
    if common.as_json:
        certified = None if certificate is None else certificate.to_dict()
        copies = {"n_training_copies": held_out.n_copies}
        show_json({"data": scan.name, **measured, **copies, "certificate": certified})
        return
    _print(measured)
    if certificate is not None:
        typer.echo(certificate.headline.sentence)


def _print(measured: dict[str, Any]) -> None:
    typer.echo(describe_accuracy(measured))
    typer.echo(f"balanced accuracy {measured['balanced_accuracy']:.1%}")
    if measured["log_loss"] is not None:
        typer.echo(f"log-loss {measured['log_loss']:.4f}")
    show_table(
        ["class", "series", "precision", "recall", "F1"],
        [
            [
                str(row["class"]),
                str(row["series"]),
                f"{row['precision']:.3f}",
                "" if row["recall"] is None else f"{row['recall']:.3f}",
                f"{row['f1']:.3f}",
            ]
            for row in measured["by_class"]
        ],
    )
    names = [str(name) for name in measured["classes"]]
    rows = [[name, *map(str, row)] for name, row in zip(names, measured["confusion"], strict=True)]
    show_table(["true", *names], rows, title="confusion matrix: columns are predictions")


@options.command
def certify_model(
    model: options.ModelFile,
    data: options.Data,
    delta: Annotated[float, options.share()] = 0.05,
    sample: Annotated[str, options.choice(("holdout", "training"))] = "holdout",
    n_models: Annotated[int, typer.Option(min=1)] = 1,
    groups: options.Groups = None,
    memory_limit: options.MemoryLimit = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Compute an upper bound on the error on new series.

    Parameters
    ----------
    delta
        Probability that a bound fails, between 0 and 1.
    sample
        Whether the data are held out or the model was trained on them.
    n_models
        Number of models compared on these data.
    """
    if groups is not None and sample == "training":
        raise typer.BadParameter("needs --sample holdout", param_hint="--groups")
    fitted = load_model(
        model, common, memory_limit=memory_limit, shows_progress=common.messages.shows_progress
    )
    scan = open_scan(data, common, model=fitted, groups=groups)
    arguments: tuple[Any, ...] = (scan,)
    if sample == "training":
        # Bounds from the training sample need all its series at once.
        everything = scan.read()
        arguments = (everything.series, everything.labels)
    certificate = certify(fitted, *arguments, delta=delta, n_models=n_models, sample=sample)
    if common.as_json:
        show_json({"data": scan.name, **certificate.to_dict()})
    else:
        typer.echo(str(certificate))


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
        f"{text}({counts}); mean over {count(scores['n_groups'], 'group')} "
        f"{scores['group_accuracy']:.1%} "
        f"(95% interval for a new group {interval})"
    )


def copies_warning(n_copies: int, n: int) -> str:
    """Return a warning about training series in data that should be held out."""
    return (
        f"warning: {copies_sentence(n_copies, n)}. The accuracy does not show how well the model "
        f"classifies new series."
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
