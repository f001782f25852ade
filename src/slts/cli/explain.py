"""``slts explain``: explain the prediction for one series."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from slts._typing import FloatArray
from slts.atomic_files import whole_file
from slts.cli import options
from slts.cli.data import load_model, read_batches
from slts.cli.output_paths import check_output_path
from slts.cli.terminal import CommandError, show_json, show_table
from slts.explanation import Explanation, explain
from slts.extras import import_extra
from slts.series import SeriesBatch

_BATCH_SIZE = 1024
_PICTURES = (".png", ".svg", ".pdf")


@options.with_common_options
def explain_prediction(
    model: options.ModelFile,
    data: options.Data,
    series: Annotated[
        str,
        typer.Option(
            "--series", "-s", help="Identifier of the series, or its position, counted from 0."
        ),
    ] = "0",
    for_class: Annotated[
        str | None,
        typer.Option("--class", help="Class to explain.", show_default="the predicted class"),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Number of rows in each table.")] = 5,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help=f"Plot the contributions: {', '.join(_PICTURES)}."),
    ] = None,
    *,
    common: options.CommonOptions,
) -> None:
    """Show what contributes to the score of a class.

    Channels and steps have contributions; their sum plus the offset is the score. The same score is
    the sum of the intercept and the contributions of landmarks and snippets.
    """
    if plot is not None:
        if plot.suffix.lower() not in _PICTURES:
            raise typer.BadParameter(
                f"must end in one of {', '.join(_PICTURES)}, got {plot}", param_hint="--plot"
            )
        import_extra("matplotlib", "plots").use("agg")
        check_output_path(plot, "the plot", [model, data])
    fitted = load_model(model, common)
    name, x = _find(series, data, common, fitted)
    try:
        explanation = explain(fitted, x)
    except TypeError as error:
        raise CommandError(str(error)) from error
    chosen = _find_class(explanation, for_class)
    probabilities = fitted.outputs(x)[2]
    if plot is not None:
        _plot(explanation, chosen, plot)
    if common.as_json:
        show_json(_content(name, explanation, chosen, probabilities))
        return
    _print(fitted, name, explanation, chosen, probabilities, top)
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
            f"{data} has {done} series, and none of them is {wanted!r}. Give an identifier{like}, "
            f"or a position from 0 to {done - 1}"
        )
    return at_position


def _find_class(explanation: Explanation, text: str | None) -> Any:
    """Return the class that `text` names; the predicted class for None."""
    if text is None:
        return explanation.predicted
    labels = {str(label): label for label in explanation.labels.tolist()}
    if text not in labels:
        raise typer.BadParameter(
            f"there is no class {text!r}; the classes are {', '.join(map(repr, labels))}",
            param_hint="--class",
        )
    return labels[text]


def _plot(explanation: Explanation, chosen: Any, path: Path) -> None:
    from slts.plots import plot_contributions

    pyplot: Any = import_extra("matplotlib.pyplot", "plots")
    figure: Any = plot_contributions(explanation, chosen).figure
    with whole_file(path) as fresh:
        figure.savefig(fresh, dpi=150, bbox_inches="tight")
    pyplot.close(figure)


def _channel_names(explanation: Explanation) -> list[str]:
    return list(explanation.channel_names or map(str, range(explanation.contributions.shape[2])))


def _content(
    name: str, explanation: Explanation, chosen: Any, probabilities: FloatArray | None
) -> dict[str, Any]:
    labels = explanation.labels.tolist()
    positions, signs = map(np.array, zip(*map(explanation.for_class, labels), strict=True))
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
        "channels": _channel_names(explanation),
        "contributions": signs[:, None, None] * explanation.contributions[positions],
        "landmarks": explanation.landmark_indices,
        "landmark_names": explanation.landmark_names,
        "by_landmark": signs[:, None] * explanation.by_landmark[positions],
        "by_snippet": signs[:, None] * explanation.by_snippet[positions],
        "intercept": signs * explanation.intercept[positions],
        "similarities": explanation.similarities,
    }


def _print(
    model: Any,
    name: str,
    explanation: Explanation,
    chosen: Any,
    probabilities: FloatArray | None,
    top: int,
) -> None:
    typer.echo(f"series {name}: predicted {explanation.predicted}")
    labels = explanation.labels.tolist()
    scores = np.array(
        [sign * explanation.decision[k] for k, sign in map(explanation.for_class, labels)]
    )
    chances = (
        [""] * len(labels) if probabilities is None else [f"{p:.3f}" for p in probabilities[0]]
    )
    show_table(
        ["class", "score", "probability"],
        [
            [str(labels[c]), f"{scores[c]:.4f}", chances[c]]
            for c in np.argsort(-scores, kind="stable")[:top]
        ],
    )
    position, sign = explanation.for_class(chosen)
    others = [str(label) for label in labels if label != chosen]
    against = f", against {others[0]}" if len(labels) == 2 else ""
    typer.echo(
        f"class {chosen}{against}: score {sign * explanation.decision[position]:.4f} = "
        f"offset {sign * explanation.offset[position]:.4f} + contributions"
    )

    def show_largest(
        header: list[str], cells: Callable[[int], list[str]], values: FloatArray
    ) -> None:
        """Show the largest contributions in absolute value."""
        order = np.argsort(-np.abs(values), kind="stable")[:top].tolist()
        rows = [[*cells(i), f"{sign * values[i]:+.4f}"] for i in order]
        show_table([*header, "contribution"], rows)

    def landmark(j: int) -> list[str]:
        return [explanation.landmark_names[j], f"{explanation.similarities[j]:.4f}"]

    def snippet(k: int) -> list[str]:
        how = ", shape only" if model.snippets_.shape_only[k] else ""
        text = model.describe_snippet(k, explanation.channel_names)
        return [text + how, str(np.count_nonzero(explanation.occurrences(k)))]

    names = _channel_names(explanation)
    show_largest(["channel"], lambda u: [names[u]], explanation.by_channel[position])
    times = explanation.series.times
    head = ["step"] if times is None else ["step", "time"]
    show_largest(
        head,
        lambda i: [str(i)] if times is None else [str(i), _as_text(times[i])],
        explanation.by_step[position],
    )
    show_largest(["landmark", "similarity"], landmark, explanation.by_landmark[position])
    if explanation.by_snippet.shape[1]:
        show_largest(
            ["snippet", "steps where it occurs"], snippet, explanation.by_snippet[position]
        )


def _as_text(time: Any) -> str:
    """Return a time as people write it: 6, not 6.0."""
    return f"{time:.10g}" if isinstance(time, float) else str(time)
