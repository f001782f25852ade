"""``slts explain``: explain the prediction for one series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer import Option

from slts._typing import FloatArray
from slts.atomic_files import atomic_file
from slts.cli import options
from slts.cli.options import check_output, load_model, read_batches
from slts.cli.terminal import CommandError, show_json, show_table
from slts.extras import import_extra
from slts.features.explanation import Explanation, explain
from slts.quantities import count, time_texts
from slts.series import SeriesBatch

_SERIES = "Identifier of the series; its position from 0 if series have no identifiers."
Series = Annotated[
    str | None, Option("--series", "-s", help=_SERIES, show_default="the first series")
]
ForClass = Annotated[
    str | None, Option("--class", help="Class to explain.", show_default="the predicted class")
]
Top = Annotated[int, Option(min=1, help="Number of rows in each table; another has the rest.")]
Plot = Annotated[Path | None, Option(help="Plot the contributions: .png, .svg, .pdf.")]


@options.with_common_options
def explain_prediction(
    model: options.ModelFile,
    data: options.Data,
    series: Series = None,
    for_class: ForClass = None,
    top: Top = 5,
    plot: Plot = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Show what contributes to a decision value.

    Channels and steps have contributions. Their sum plus the offset is the decision value. The
    intercept plus the contributions of landmarks and snippets is the same decision value.
    """
    if plot is not None:
        check_output(plot, "--plot", (".png", ".svg", ".pdf"), model, data)
        import_extra("matplotlib", "plots").use("agg")
    fitted = load_model(model, common)
    name, x = _find(series, data, common, fitted)
    try:
        explanation = explain(fitted, x)
    except TypeError as error:
        raise CommandError(str(error)) from error
    chosen = _find_class(explanation, for_class)
    if plot is not None:
        _plot(explanation, chosen, plot)
    content = _content(name, explanation, chosen, fitted.outputs(x).probabilities)
    if common.as_json:
        show_json(content)
        return
    _show_classes(content, top)
    _show_contributions(content, explanation, fitted, top)
    if plot is not None:
        common.messages.done(f"plot: {plot}")


def _find(
    wanted: str | None, data: str, common: options.CommonOptions, model: Any
) -> tuple[str, SeriesBatch]:
    """Return the series with an identifier; None is the first one."""
    n_series, examples = 0, list[str]()
    for batch in read_batches(data, common, model):
        ids = range(n_series, n_series + len(batch)) if batch.ids is None else batch.ids.tolist()
        names = list(map(str, ids))
        wanted = names[0] if wanted is None else wanted
        if wanted in names:
            k = names.index(wanted)
            return wanted, batch.series[k : k + 1]
        examples = examples or names[:3]
        n_series += len(batch)
    raise CommandError(
        f"--series {wanted}: none of the {n_series:,} series of {data} has this identifier. "
        f"Identifiers are {', '.join(examples)} and so on"
    )


def _find_class(explanation: Explanation, text: str | None) -> Any:
    """Return the class that `text` names; the predicted class for None."""
    if text is None:
        return explanation.predicted
    labels = {str(label): label for label in explanation.labels.tolist()}
    if text not in labels:
        classes = ", ".join(map(repr, labels))
        raise typer.BadParameter(f"{text!r} is not one of {classes}", param_hint="--class")
    return labels[text]


def _plot(explanation: Explanation, chosen: Any, path: Path) -> None:
    from slts.plots import plot_contributions

    figure: Any = plot_contributions(explanation, chosen).figure
    with atomic_file(path) as temporary:
        figure.savefig(temporary, dpi=150, bbox_inches="tight")


def _content(
    name: str, explanation: Explanation, chosen: Any, probabilities: FloatArray | None
) -> dict[str, Any]:
    """Return the explanation with one entry per class, also if two classes share a decision."""
    labels = explanation.labels.tolist()
    positions, signs = map(np.array, zip(*map(explanation.for_class, labels), strict=True))
    n_channels = explanation.contributions.shape[2]
    return {
        "series": name,
        "predicted": explanation.predicted,
        "explained": chosen,
        "classes": labels,
        "decision": signs * explanation.decision[positions],
        "offset": signs * explanation.offset[positions],
        "probabilities": None
        if probabilities is None
        else dict(zip(map(str, labels), probabilities[0].tolist(), strict=True)),
        "channels": list(explanation.channel_names or map(str, range(n_channels))),
        "contributions": signs[:, None, None] * explanation.contributions[positions],
        "stretches": [
            [stretch._asdict() for stretch in explanation.stretches(label)] for label in labels
        ],
        "landmarks": explanation.landmark_indices,
        "landmark_names": explanation.landmark_names,
        "by_landmark": signs[:, None] * explanation.by_landmark[positions],
        "by_snippet": signs[:, None] * explanation.by_snippet[positions],
        "intercept": signs * explanation.intercept[positions],
        "similarities": explanation.similarities,
    }


def _show_classes(content: dict[str, Any], top: int) -> None:
    """Show the decision values and probabilities of the classes with the largest ones."""
    typer.echo(f"series {content['series']}: predicted {content['predicted']}")
    decisions, probabilities = content["decision"], content["probabilities"]
    rows = []
    for c in np.argsort(-decisions, kind="stable")[:top]:
        name = str(content["classes"][c])
        probability = "" if probabilities is None else f"{probabilities[name]:.3f}"
        rows.append([name, f"{decisions[c]:.4f}", probability])
    show_table(["class", "decision value", "probability"], rows)


def _show_contributions(
    content: dict[str, Any], explanation: Explanation, model: Any, top: int
) -> None:
    """Show what contributes most: channels and steps, then landmarks and snippets."""
    labels = content["classes"]
    c = labels.index(content["explained"])
    against = f", against {labels[1 - c]}" if len(labels) == 2 else ""
    decision = f"class {labels[c]}{against}: decision value {content['decision'][c]:.4f}"

    terms, times = content["contributions"][c], explanation.series.times
    texts = [] if times is None else time_texts(times)
    typer.echo(f"{decision} = offset {content['offset'][c]:.4f} + contributions {terms.sum():.4f}")
    _show_terms(["channel"], lambda u: [content["channels"][u]], terms.sum(axis=0), top)
    header = ["step", "time"] if texts else ["step"]
    _show_terms(header, lambda i: [str(i), *texts[i : i + 1]], terms.sum(axis=1), top)

    _show_stretches(content["stretches"][c], content["channels"], texts)

    def landmark(j: int) -> list[str]:
        return [content["landmark_names"][j], f"{content['similarities'][j]:.4f}"]

    def snippet(k: int) -> list[str]:
        text = model.describe_snippet(k, explanation.channel_names)
        compared = model.snippets_.compared(k)
        n_steps = np.count_nonzero(explanation.occurrences(k))
        return [text if compared == "values" else f"{text}, {compared}", str(n_steps)]

    of_landmarks, of_snippets = content["by_landmark"][c], content["by_snippet"][c]
    sums = f"landmarks {of_landmarks.sum():.4f}"
    if len(of_snippets):
        sums += f" + snippets {of_snippets.sum():.4f}"
    typer.echo(f"{decision} = intercept {content['intercept'][c]:.4f} + {sums}")
    _show_terms(["landmark", "plain similarity"], landmark, of_landmarks, top)
    if len(of_snippets):
        header = ["snippet", "number of steps where it occurs"]
        _show_terms(header, snippet, of_snippets, top)


def _show_stretches(stretches: list[dict[str, Any]], channels: list[str], times: list[str]) -> None:
    """Show the stretches of steps that support the class most."""
    rows = []
    for one in stretches:
        first, last = one["first"], one["last"]
        time = [f"{times[first]} to {times[last]}"] if times else []
        numbers = f"{one['contribution']:+.4f}", f"{one['share']:.1%}"
        rows.append([f"{first} to {last}", *time, channels[one["channel"]], *numbers])
    header = ["steps", *(["time"] if times else []), "strongest channel", "contribution"]
    show_table([*header, "share of all steps that support the class"], rows)


def _show_terms(
    header: Sequence[str], cells: Callable[[int], list[str]], values: FloatArray, top: int
) -> None:
    """Show the largest contributions in absolute value, and the sum of the others."""
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    rows = [[*cells(k), f"{values[k]:+.4f}"] for k in order[:top]]
    others = order[top:]
    if others:
        blank = [""] * (len(header) - 1)
        rows.append([count(len(others), "other"), *blank, f"{values[others].sum():+.4f}"])
    show_table([*header, "contribution"], rows)
