"""``slts report``: a page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slts.cli.data import load_model, match_labels, read_data
from slts.cli.options import (
    Channels,
    ColumnOptions,
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
from slts.cli.terminal import Voice, show_json


def report(
    model: ModelFile,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DATA", help="Series to show and, with labels, to test on."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
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
    """Write one self-contained HTML page about a model and how it does on data."""
    # Here, because it is large and no other command needs it.
    from slts.report import write_report

    if out.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"must end in .html, got {out.name}", param_hint="--out")
    check_place(out, "the report", [model, data])
    voice = Voice(quiet, verbose)
    fitted = load_model(model, jobs, device=device)
    X = y = ids = None
    if data is not None:
        columns = ColumnOptions(id, time, label, channels)
        expect, classes = fitted.channel_names_in_, fitted.classes_
        found = read_data(data, columns, voice, expect=expect, classes=classes)
        X, ids = found.series, None if found.ids is None else found.ids.tolist()
        y = None if found.labels is None else match_labels(found, fitted.classes_)
    write_report(fitted, out, X=X, y=y, ids=ids, title=title, verbose=voice.shows_progress)
    if as_json:
        show_json({"report": str(out), "bytes": out.stat().st_size})
    else:
        typer.echo(str(out))
