"""``slts evaluate``: how good a model is on labelled series."""

from __future__ import annotations

from typing import Any

import typer

from slts.cli.answers import accuracy_in_words, scores
from slts.cli.data import load_model, read_labelled
from slts.cli.options import (
    Channels,
    ColumnOptions,
    Data,
    Id,
    Jobs,
    Json,
    Label,
    ModelFile,
    Quiet,
    Time,
    Verbose,
)
from slts.cli.terminal import Voice, show_json, show_table
from slts.errors import DataError
from slts.guarantees import Certificate, certify


def evaluate(
    model: ModelFile,
    data: Data,
    jobs: Jobs = 0,
    id: Id = None,
    time: Time = None,
    label: Label = None,
    channels: Channels = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Measure a model: accuracy, log-loss, every class, confusions, and what is guaranteed."""
    voice = Voice(quiet, verbose)
    fitted = load_model(model, jobs, shows_progress=voice.shows_progress)
    found, truth = read_labelled(
        data, ColumnOptions(id, time, label, channels), voice, model=fitted
    )
    figures = scores(fitted, found.series, truth)
    certificate: Certificate | None = None
    try:
        certificate = certify(fitted, found.series, truth)
    except DataError as error:
        # The figures stand; what they are worth is for the user to know.
        voice.say(f"no certificate: {error}")
    if as_json:
        guaranteed = None if certificate is None else certificate.to_dict()
        show_json({"data": found.source, **figures, "certificate": guaranteed})
        return
    _print(figures)
    if certificate is not None:
        typer.echo(certificate.headline.sentence)


def _print(figures: dict[str, Any]) -> None:
    typer.echo(accuracy_in_words(figures))
    typer.echo(f"balanced accuracy {figures['balanced_accuracy']:.1%}")
    if figures["log_loss"] is not None:
        typer.echo(f"log-loss {figures['log_loss']:.4f}")
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
            for row in figures["by_class"]
        ],
    )
    names = [str(name) for name in figures["classes"]]
    rows = [[name, *map(str, row)] for name, row in zip(names, figures["confusion"], strict=True)]
    show_table(["is", *names], rows, title="confusion: rows are the truth, columns predictions")
