"""``slts explain``: explain the prediction for one series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from slts._typing import FloatArray
from slts.atomic_files import atomic_file
from slts.cli import options
from slts.cli.data import check_output_path, load_model, read_batches
from slts.cli.terminal import CommandError, show_json, show_table
from slts.extras import import_extra
from slts.features.explanation import Explanation, explain
from slts.quantities import count
from slts.series import SeriesBatch
from slts.series.naming import time_texts

_BATCH_SIZE = 1024
_PICTURES = (".png", ".svg", ".pdf")


@options.command
def explain_prediction(
    model: options.ModelFile,
    data: options.Data,
    series: Annotated[str, typer.Option("--series", "-s")] = "0",
    for_class: Annotated[
        str | None, typer.Option("--class", show_default="the predicted class")
    ] = None,
    top: Annotated[int, typer.Option(min=1)] = 5,
    plot: Path | None = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Show what contributes to the decision value of a class.

    Channels and steps have contributions. Their sum plus the offset is the decision value. The
    intercept plus the contributions of landmarks and snippets is the same decision value.

    Parameters
    ----------
    series
        Identifier of the series. If no series has this identifier, a number is a position,
        counted from 0.
    for_class
        Class to explain.
    top
        Number of rows in each table, before the sum of the others.
    plot
        Plot the contributions: .png, .svg, .pdf.
    """
    if plot is not None:
        check_output_path(plot, "the plot", "--plot", _PICTURES, [model, data])
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
    _print(fitted, explanation, content, top)
    if plot is not None:
        common.messages.done(f"plot: {plot}")


def _find(
    wanted: str, data: str, common: options.CommonOptions, model: Any
) -> tuple[str, SeriesBatch]:
    """Return the series with an identifier, or at a position if none has that identifier."""
    position = int(wanted) if wanted.isdecimal() else None
    at_position: tuple[str, SeriesBatch] | None = None
    done, first = 0, list[str]()
    for batch in read_batches(data, common, model, _BATCH_SIZE):
        names = None if batch.ids is None else [str(name) for name in batch.ids.tolist()]
        first = first or (names or [])[:3]
        if names is not None and wanted in names:
            at = names.index(wanted)
            return wanted, batch.series[at : at + 1]
        if position is not None and done <= position < done + len(batch):
            at = position - done
            at_position = (wanted if names is None else names[at], batch.series[at : at + 1])
            if names is None:
                break
        done += len(batch)
    if at_position is None:
        like = f", such as {', '.join(map(repr, first))}" if first else ""
        raise CommandError(
            f"{data} has {done} series, and none has the identifier or the position {wanted}. "
            f"Give an identifier{like}, or a position from 0 to {done - 1}"
        )
    return at_position


def _find_class(explanation: Explanation, text: str | None) -> Any:
    """Return the class that `text` names; the predicted class for None."""
    if text is None:
        return explanation.predicted
    labels = {str(label): label for label in explanation.labels.tolist()}
    if text not in labels:
        raise typer.BadParameter(
            f"there is no class {text!r}. The classes are {', '.join(map(repr, labels))}",
            param_hint="--class",
        )
    return labels[text]


def _plot(explanation: Explanation, chosen: Any, path: Path) -> None:
    from slts.plots import plot_contributions

    pyplot: Any = import_extra("matplotlib.pyplot", "plots")
    figure: Any = plot_contributions(explanation, chosen).figure
    with atomic_file(path) as fresh:
        figure.savefig(fresh, dpi=150, bbox_inches="tight")
    pyplot.close(figure)


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
        "landmarks": explanation.landmark_indices,
        "landmark_names": explanation.landmark_names,
        "by_landmark": signs[:, None] * explanation.by_landmark[positions],
        "by_snippet": signs[:, None] * explanation.by_snippet[positions],
        "intercept": signs * explanation.intercept[positions],
        "similarities": explanation.similarities,
    }


def _print(model: Any, explanation: Explanation, content: dict[str, Any], top: int) -> None:
    labels, chosen, scores = content["classes"], content["explained"], content["decision"]
    typer.echo(f"series {content['series']}: predicted {content['predicted']}")
    chances = content["probabilities"]
    rows = []
    for c in np.argsort(-scores, kind="stable")[:top]:
        name = str(labels[c])
        rows.append([name, f"{scores[c]:.4f}", f"{chances[name]:.3f}" if chances else ""])
    show_table(["class", "decision value", "probability"], rows)
    c = labels.index(chosen)
    against = f", against {labels[1 - c]}" if len(labels) == 2 else ""
    of_class = f"class {chosen}{against}: decision value {scores[c]:.4f} ="

    def show_largest(
        header: list[str], cells: Callable[[int], list[str]], values: FloatArray, total: float
    ) -> None:
        """Show the largest contributions in absolute value, and the sum of the others."""
        order = np.argsort(-np.abs(values), kind="stable").tolist()
        rows, parts = [cells(i) for i in order[:top]], values[order[:top]].tolist()
        if others := order[top:]:
            rows.append([count(len(others), "other"), *[""] * (len(header) - 1)])
            parts.append(values[others].sum())
        shown = _adding_up(total, parts)
        rows = [[*row, f"{part:+.4f}"] for row, part in zip(rows, shown, strict=True)]
        show_table([*header, "contribution"], rows)

    def landmark(j: int) -> list[str]:
        return [content["landmark_names"][j], f"{content['similarities'][j]:.4f}"]

    def snippet(k: int) -> list[str]:
        text = model.describe_snippet(k, explanation.channel_names)
        compared = model.snippets_.compared(k)
        text += "" if compared == "values" else f", {compared}"
        return [text, str(np.count_nonzero(explanation.occurrences(k)))]

    terms, times = content["contributions"][c], explanation.series.times
    texts = [] if times is None else time_texts(times)
    offset, total = _adding_up(scores[c], [content["offset"][c], terms.sum()])
    typer.echo(f"{of_class} offset {offset:.4f} + contributions {total:.4f}")
    show_largest(["channel"], lambda u: [content["channels"][u]], terms.sum(axis=0), total)
    head = ["step", "time"] if texts else ["step"]
    show_largest(head, lambda i: [str(i), *texts[i : i + 1]], terms.sum(axis=1), total)
    of_landmarks, of_snippets = content["by_landmark"][c], content["by_snippet"][c]
    intercept, *sums = _adding_up(
        scores[c], [content["intercept"][c], of_landmarks.sum(), of_snippets.sum()]
    )
    also = f" + snippets {sums[1]:.4f}" if len(of_snippets) else ""
    typer.echo(f"{of_class} intercept {intercept:.4f} + landmarks {sums[0]:.4f}{also}")
    show_largest(["landmark", "plain similarity"], landmark, of_landmarks, sums[0])
    if len(of_snippets):
        show_largest(["snippet", "number of steps where it occurs"], snippet, of_snippets, sums[1])


def _adding_up(total: float, parts: Sequence[float]) -> list[float]:
    """Round to four decimals, each part up or down, so that the parts sum to the rounded total.

    Examples
    --------
    >>> from slts.cli.explain import _adding_up
    >>> _adding_up(1.0, [-0.70406, 1.70406])
    [-0.7041, 1.7041]
    """
    units = 1e4 * np.asarray(parts, dtype=np.float64)
    whole = np.floor(units)
    n_up = round(1e4 * round(total, 4)) - int(whole.sum())
    whole[np.argsort(whole - units, kind="stable")[:n_up]] += 1.0
    # Without the sign of a zero.
    return [float(value) for value in whole / 1e4 + 0.0]
