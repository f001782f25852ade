"""``slts evaluate`` and ``slts certify``: measure a model on labelled series, bound its error."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from slts.cli import options
from slts.cli.data import load_model, open_scan
from slts.cli.scoring import copies_warning, describe_accuracy, scores
from slts.cli.terminal import show_json, show_table
from slts.errors import DataError
from slts.guarantees import Certificate, certify
from slts.guarantees.held_out import HeldOut


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
    found = scores(
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
        show_json({"data": scan.name, **found, **copies, "certificate": certified})
        return
    _print(found)
    if certificate is not None:
        typer.echo(certificate.headline.sentence)


def _print(found: dict[str, Any]) -> None:
    typer.echo(describe_accuracy(found))
    typer.echo(f"balanced accuracy {found['balanced_accuracy']:.1%}")
    if found["log_loss"] is not None:
        typer.echo(f"log-loss {found['log_loss']:.4f}")
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
            for row in found["by_class"]
        ],
    )
    names = [str(name) for name in found["classes"]]
    rows = [[name, *map(str, row)] for name, row in zip(names, found["confusion"], strict=True)]
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
