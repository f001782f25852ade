"""``slts predict``: label series, however many."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from slts.cli.answers import answer
from slts.cli.data import load_model, read_unlabelled
from slts.cli.options import (
    Channels,
    ColumnOptions,
    Data,
    Device,
    Id,
    Jobs,
    Json,
    Label,
    ModelFile,
    Quiet,
    Time,
    Verbose,
)
from slts.cli.places import check_place
from slts.cli.predictions import STDOUT, SUFFIXES, prediction_writer
from slts.cli.terminal import Voice, show_json


def predict(
    model: ModelFile,
    data: Data,
    out: Annotated[
        str,
        typer.Option("--out", "-o", help=f"File: {', '.join(SUFFIXES)}; - is CSV on the output."),
    ] = STDOUT,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Series in memory at a time.")
    ] = 1024,
    jobs: Jobs = 0,
    device: Device = "cpu",
    id: Id = None,
    time: Time = None,
    label: Label = None,
    channels: Channels = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Predict a label and probabilities for every series.

    CSV, Parquet and folders are read batch by batch, so memory does not grow with their size.
    """
    voice = Voice(quiet, verbose)
    if out != STDOUT:
        if Path(out).suffix.lower() not in SUFFIXES:
            raise typer.BadParameter(
                f"must end in one of {', '.join(SUFFIXES)}, got {out}", param_hint="--out"
            )
        check_place(Path(out), "predictions", [model, data])
    fitted = load_model(model, jobs, device=device)
    batches = read_unlabelled(
        data, ColumnOptions(id, time, label, channels), voice, fitted, batch_size
    )
    done, counts = 0, Counter[str]()
    with (
        prediction_writer(out, fitted.classes_.tolist(), json_lines=as_json) as writer,
        voice.counting("Predicting") as progress,
    ):
        for batch in batches:
            labels, chances = answer(fitted, batch.series)
            numbers = range(done, done + len(batch))
            writer.write(numbers if batch.ids is None else batch.ids.tolist(), labels, chances)
            done += len(batch)
            counts.update(map(str, labels.tolist()))
            progress(done, batch.share)
    if out == STDOUT:
        return
    if as_json:
        show_json({"out": out, "n_series": done, "predicted": counts})
    else:
        typer.echo(f"{done} predictions: {out}")
