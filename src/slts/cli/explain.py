"""``slts explain``: why a series was given its label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from slts._typing import FloatArray
from slts.cli.answers import answer
from slts.cli.data import load_model, read_unlabelled
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
from slts.cli.places import check_place
from slts.cli.terminal import CommandError, Voice, show_json, show_table
from slts.explain import Explanation, explain
from slts.extras import import_extra
from slts.series import SeriesBatch
from slts.whole_files import whole_file

_BATCH = 1024
_PICTURES = (".png", ".svg", ".pdf")


def explain_prediction(
    model: ModelFile,
    data: Data,
    series: Annotated[
        str,
        typer.Option("--series", "-s", help="Its identifier, or its number, the first being 0."),
    ] = "0",
    for_class: Annotated[
        str | None,
        typer.Option("--class", help="Class to explain.", show_default="the predicted one"),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Rows of every table.")] = 5,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help=f"Draw the contributions: {', '.join(_PICTURES)}."),
    ] = None,
    jobs: Jobs = 0,
    id: Id = None,
    time: Time = None,
    label: Label = None,
    channels: Channels = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say which channels, steps and landmarks spoke for a class, and which against it.

    Contributions are exact: with the offset they sum to the score of the class.
    """
    if plot is not None:
        if plot.suffix.lower() not in _PICTURES:
            raise typer.BadParameter(
                f"must end in one of {', '.join(_PICTURES)}, got {plot}", param_hint="--plot"
            )
        import_extra("matplotlib", "plots").use("agg")
        check_place(plot, "the picture")
    voice = Voice(quiet, verbose)
    fitted = load_model(model, jobs)
    columns = ColumnOptions(id, time, label, channels)
    name, x = _find(series, data, columns, voice, fitted)
    try:
        found = explain(fitted, x)
    except TypeError as error:
        raise CommandError(str(error)) from error
    position = _class_position(found, for_class)
    chances = answer(fitted, x)[1]
    if plot is not None:
        _draw(found, position, plot)
    if as_json:
        show_json(_content(name, found, fitted.classes_.tolist(), chances))
        return
    _print(name, found, position, fitted.classes_.tolist(), chances, top)
    if plot is not None:
        typer.echo(f"picture: {plot}")


def _find(
    wanted: str, data: str, columns: ColumnOptions, voice: Voice, model: Any
) -> tuple[str, SeriesBatch]:
    """Look for a series by its identifier; by its number if none has that identifier."""
    number = int(wanted) if wanted.isdecimal() else None
    by_number: tuple[str, SeriesBatch] | None = None
    done = 0
    for batch in read_unlabelled(data, columns, voice, model, _BATCH):
        names = None if batch.ids is None else [str(name) for name in batch.ids.tolist()]
        if names is not None and wanted in names:
            at = names.index(wanted)
            return wanted, batch.series[at : at + 1]
        if number is not None and done <= number < done + len(batch):
            at = number - done
            by_number = (wanted if names is None else names[at], batch.series[at : at + 1])
            if names is None:
                break
        done += len(batch)
    if by_number is None:
        raise CommandError(f"{data} has {done} series, and none is called {wanted!r}")
    return by_number


def _class_position(found: Explanation, for_class: str | None) -> int:
    names = [str(name) for name in found.classes.tolist()]
    if for_class is None:
        return int(np.argmax(found.decision))
    if for_class not in names:
        raise typer.BadParameter(
            f"there is no score of class {for_class!r}; there is of {', '.join(names)}",
            param_hint="--class",
        )
    return names.index(for_class)


def _draw(found: Explanation, position: int, path: Path) -> None:
    from slts.plots import plot_contributions

    pyplot: Any = import_extra("matplotlib.pyplot", "plots")
    figure: Any = plot_contributions(found, found.classes[position]).figure
    with whole_file(path) as fresh:
        figure.savefig(fresh, dpi=150, bbox_inches="tight")
    pyplot.close(figure)


def _channel_names(found: Explanation) -> list[str]:
    count = found.contributions.shape[2]
    return list(found.channel_names or map(str, range(count)))


def _content(
    name: str, found: Explanation, classes: list[Any], chances: FloatArray | None
) -> dict[str, Any]:
    return {
        "series": name,
        "predicted": found.predicted,
        "classes": found.classes,
        "decision": found.decision,
        "offset": found.offset,
        "probabilities": None
        if chances is None
        else dict(zip(map(str, classes), chances[0].tolist(), strict=True)),
        "channels": _channel_names(found),
        "contributions": found.contributions,
        "landmarks": found.landmark_indices,
        "by_landmark": found.by_landmark,
        "similarities": found.similarities,
    }


def _print(
    name: str,
    found: Explanation,
    position: int,
    classes: list[Any],
    chances: FloatArray | None,
    top: int,
) -> None:
    typer.echo(f"series {name}: predicted {found.predicted}")
    order = np.argsort(-found.decision, kind="stable")
    by_name = {} if chances is None else dict(zip(classes, chances[0].tolist(), strict=True))
    scored = found.classes.tolist()
    show_table(
        ["class", "score", "probability"],
        [
            [str(scored[c]), f"{found.decision[c]:.4f}", _share(by_name.get(scored[c]))]
            for c in order[:top].tolist()
        ],
    )
    against = f", against {classes[0]}" if len(classes) == 2 else ""
    typer.echo(
        f"class {scored[position]}{against}: score {found.decision[position]:.4f} = "
        f"offset {found.offset[position]:.4f} + contributions"
    )
    names = _channel_names(found)
    _ranking("channel", names, found.by_channel[position], top)
    steps = [str(step) for step in range(found.by_step.shape[1])]
    _ranking("step", steps, found.by_step[position], top)
    strongest = _largest(found.by_landmark[position], top)
    show_table(
        ["landmark", "similarity", "contribution"],
        [
            [
                str(found.landmark_indices[j]),
                f"{found.similarities[j]:.4f}",
                f"{found.by_landmark[position, j]:+.4f}",
            ]
            for j in strongest
        ],
    )


def _ranking(what: str, names: list[str], values: FloatArray, top: int) -> None:
    rows = [[names[i], f"{values[i]:+.4f}"] for i in _largest(values, top)]
    show_table([what, "contribution"], rows)


def _largest(values: FloatArray, top: int) -> list[int]:
    found: list[int] = np.argsort(-np.abs(values), kind="stable")[:top].tolist()
    return found


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
