"""``slts evaluate``: how good a model is on labelled series."""

from __future__ import annotations

from typing import Any

import numpy as np
import typer

from slts._typing import AnyArray, FloatArray
from slts.cli.answers import accuracy_in_words, answer, scores
from slts.cli.data import load_model
from slts.cli.large_data import Spelled, limit_of, read_or_scan
from slts.cli.options import (
    Channels,
    ColumnOptions,
    Data,
    Device,
    Id,
    Jobs,
    Json,
    Label,
    MemoryLimit,
    ModelFile,
    Quiet,
    Time,
    Verbose,
)
from slts.cli.terminal import CommandError, Voice, show_json, show_table
from slts.errors import DataError
from slts.guarantees import Certificate, certify


def evaluate(
    model: ModelFile,
    data: Data,
    jobs: Jobs = 0,
    device: Device = "cpu",
    id: Id = None,
    time: Time = None,
    label: Label = None,
    channels: Channels = None,
    memory_limit: MemoryLimit = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Measure a model: accuracy, log-loss, every class, confusions, and what is guaranteed."""
    voice = Voice(quiet, verbose)
    fitted = load_model(model, jobs, device=device, shows_progress=voice.shows_progress)
    columns = ColumnOptions(id, time, label, channels)
    series, truth, source = read_or_scan(data, columns, voice, limit_of(memory_limit), fitted)
    if isinstance(series, Spelled):
        figures = scores(fitted.classes_, *_outputs(fitted, series, voice))
    else:
        assert truth is not None
        figures = scores(fitted.classes_, *answer(fitted, series), truth)
    certificate: Certificate | None = None
    try:
        certificate = certify(fitted, series, truth)
    except DataError as error:
        # The figures stand; what they are worth is for the user to know.
        voice.say(f"no certificate: {error}")
    if as_json:
        guaranteed = None if certificate is None else certificate.to_dict()
        show_json({"data": source, **figures, "certificate": guaranteed})
        return
    _print(figures)
    if certificate is not None:
        typer.echo(certificate.headline.sentence)


def _outputs(
    model: Any, series: Spelled, voice: Voice
) -> tuple[AnyArray, FloatArray | None, AnyArray]:
    """Predictions, probabilities and labels, batch by batch."""
    predicted, chances, truth, done = [], [], [], 0
    model.verbose = False
    with voice.counting("Evaluating") as progress:
        for batch in series.batches():
            if batch.labels is None:
                raise CommandError(f"{series.name} has no labels: name their column: --label")
            labels, probable = answer(model, batch.series)
            predicted.append(labels)
            truth.append(batch.labels)
            if probable is not None:
                chances.append(probable)
            done += len(batch)
            progress(done, batch.share)
    if not predicted:
        raise CommandError(f"{series.name} holds no series")
    every = np.concatenate(chances) if chances else None
    return np.concatenate(predicted), every, np.concatenate(truth)


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
