"""``slts certify``: what is guaranteed about a model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from slts.cli.data import load_model
from slts.cli.large_data import limit_of, read_or_scan
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
from slts.cli.terminal import Voice, show_json
from slts.guarantees import certify


class Sample(StrEnum):
    """Which series the data are."""

    holdout = "holdout"
    training = "training"


def certify_model(
    model: ModelFile,
    data: Data,
    delta: Annotated[
        float, typer.Option("--delta", help="Probability that a bound fails, between 0 and 1.")
    ] = 0.05,
    sample: Annotated[
        Sample, typer.Option("--sample", help="Whether the model was trained on these data.")
    ] = Sample.holdout,
    n_models: Annotated[
        int, typer.Option("--n-models", min=1, help="Models compared on the same data.")
    ] = 1,
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
    """Prove an upper bound on the share of mistakes on new series."""
    if not 0.0 < delta < 1.0:
        raise typer.BadParameter("must lie between 0 and 1", param_hint="--delta")
    voice = Voice(quiet, verbose)
    fitted = load_model(model, jobs, device=device, shows_progress=voice.shows_progress)
    columns = ColumnOptions(id, time, label, channels)
    series, truth, source = read_or_scan(data, columns, voice, limit_of(memory_limit), fitted)
    certificate = certify(
        fitted, series, truth, delta=delta, n_models=n_models, sample=sample.value
    )
    if as_json:
        show_json({"data": source, **certificate.to_dict()})
    else:
        typer.echo(str(certificate))
