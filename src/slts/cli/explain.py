"""``slts explain``: why a series was given its label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from slts._typing import FloatArray
from slts.atomic_files import whole_file
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
from slts.cli.terminal import CommandError, Voice, show_json, show_table
from slts.explanation import Explanation, explain
from slts.extras import import_extra
from slts.series import SeriesBatch

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
    device: Device = "cpu",
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
        check_place(plot, "the picture", [model, data])
    voice = Voice(quiet, verbose)
    fitted = load_model(model, jobs, device=device)
    columns = ColumnOptions(id, time, label, channels)
    name, x = _find(series, data, columns, voice, fitted)
    try:
        found = explain(fitted, x)
    except TypeError as error:
        raise CommandError(str(error)) from error
    chosen = _chosen(found, for_class)
    chances = answer(fitted, x)[1]
    if plot is not None:
        _draw(found, chosen, plot)
    if as_json:
        show_json(_content(name, found, chosen, chances))
        return
    _print(name, found, chosen, chances, top)
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


def _chosen(found: Explanation, for_class: str | None) -> Any:
    """The class to explain, as the model spells it."""
    if for_class is None:
        return found.predicted
    labels = {str(label): label for label in found.labels.tolist()}
    if for_class not in labels:
        raise typer.BadParameter(
            f"there is no class {for_class!r}; there are {', '.join(labels)}", param_hint="--class"
        )
    return labels[for_class]


def _draw(found: Explanation, chosen: Any, path: Path) -> None:
    from slts.plots import plot_contributions

    pyplot: Any = import_extra("matplotlib.pyplot", "plots")
    figure: Any = plot_contributions(found, chosen).figure
    with whole_file(path) as fresh:
        figure.savefig(fresh, dpi=150, bbox_inches="tight")
    pyplot.close(figure)


def _channel_names(found: Explanation) -> list[str]:
    count = found.contributions.shape[2]
    return list(found.channel_names or map(str, range(count)))


def _content(
    name: str, found: Explanation, chosen: Any, chances: FloatArray | None
) -> dict[str, Any]:
    labels = found.labels.tolist()
    values = [found.for_class(label) for label in labels]
    positions = [position for position, _ in values]
    signs = np.array([sign for _, sign in values])
    return {
        "series": name,
        "predicted": found.predicted,
        "explained": chosen,
        "classes": labels,
        "decision": signs * found.decision[positions],
        "offset": signs * found.offset[positions],
        "probabilities": None
        if chances is None
        else dict(zip(map(str, labels), chances[0].tolist(), strict=True)),
        "channels": _channel_names(found),
        "contributions": signs[:, None, None] * found.contributions[positions],
        "landmarks": found.landmark_indices,
        "by_landmark": signs[:, None] * found.by_landmark[positions],
        "similarities": found.similarities,
    }


def _print(
    name: str, found: Explanation, chosen: Any, chances: FloatArray | None, top: int
) -> None:
    typer.echo(f"series {name}: predicted {found.predicted}")
    labels = found.labels.tolist()
    values = [found.for_class(label) for label in labels]
    scores = np.array([sign * found.decision[position] for position, sign in values])
    show_table(
        ["class", "score", "probability"],
        [
            [str(labels[c]), f"{scores[c]:.4f}", "" if chances is None else f"{chances[0, c]:.3f}"]
            for c in np.argsort(-scores, kind="stable")[:top].tolist()
        ],
    )
    position, sign = found.for_class(chosen)
    others = [str(label) for label in labels if label != chosen]
    against = f", against {others[0]}" if len(labels) == 2 else ""
    typer.echo(
        f"class {chosen}{against}: score {sign * found.decision[position]:.4f} = "
        f"offset {sign * found.offset[position]:.4f} + contributions"
    )
    names = _channel_names(found)
    _ranking("channel", names, sign * found.by_channel[position], top)
    steps = [str(step) for step in range(found.by_step.shape[1])]
    _ranking("step", steps, sign * found.by_step[position], top)
    through = sign * found.by_landmark[position]
    show_table(
        ["landmark", "similarity", "contribution"],
        [
            [
                str(found.landmark_indices[j]),
                f"{found.similarities[j]:.4f}",
                f"{through[j]:+.4f}",
            ]
            for j in _largest(through, top)
        ],
    )


def _ranking(what: str, names: list[str], values: FloatArray, top: int) -> None:
    rows = [[names[i], f"{values[i]:+.4f}"] for i in _largest(values, top)]
    show_table([what, "contribution"], rows)


def _largest(values: FloatArray, top: int) -> list[int]:
    found: list[int] = np.argsort(-np.abs(values), kind="stable")[:top].tolist()
    return found
