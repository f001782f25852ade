"""Models: metrics of a class, weights of its landmarks, accuracy by their number, snippets."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.features.explanation import linear_model, required_snippets
from slts.features.summary import (
    class_metrics,
    landmark_effects,
    snippet_in_series,
    snippets_to_show,
)
from slts.plots.axes import (
    AGAINST,
    FOR,
    LINES,
    axes_or_new,
    channel_labels,
    integer_ticks,
    pyplot,
    signed_colours,
    signed_image,
    style,
    ticker,
    time_axis,
)
from slts.series import SeriesBatch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_metric(model: Any, label: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the metric of one class: the weight of each pair of channels.

    A `LocalSLTSClassifier` has several metrics per class. Drawn is the one for landmarks of the
    same class in the first feature map, the mean over the phases of the landmarks;
    ``model_.metrics()`` returns them all.

    Parameters
    ----------
    model
        A fitted `LocalSLTSClassifier`, `SLTSClassifier` or `SLTSClassifierCV`.
    label
        The class. The two classes of an `SLTSClassifier` share one metric.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Rows are channels of the series, columns are channels of the landmarks.
    """
    by_phase = class_metrics(model, label)
    feature_map, metric = model.model_.aligned[0], by_phase.mean(axis=0)
    channels = channel_labels(model.channel_names_in_, model.n_channels_in_)
    ax = axes_or_new(ax, figsize=(6.0, 5.0))
    names = feature_map.row_map.row_names(channels)
    names = names or [f"feature {u}" for u in range(len(metric))]
    ax.figure.colorbar(signed_image(ax, metric), ax=ax, label="weight")
    phases = f", mean of {len(by_phase)} phases" if len(by_phase) > 1 else ""
    compared = "" if feature_map.bank_per_output else f" ({feature_map.name}{phases})"
    ax.set_title(f"metric of class {label}{compared}")
    ax.set(xlabel="channel of the landmark", ylabel="channel of the series")
    ax.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 2 else 0)
    ax.set_yticks(range(len(names)), names)
    return ax


def plot_landmark_weights(
    model: Any, label: Any, *, count: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the landmarks that count most for one class.

    The landmarks of a `LocalSLTSClassifier` have metrics, not weights. Drawn is their effect: how
    much the contribution to the decision value differs between the model's landmarks.

    Parameters
    ----------
    model
        A fitted classifier that `slts.explain` accepts.
    label
        The class. Two classes share the weights with opposite signs.
    count
        Largest number of landmarks.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        One bar per landmark, labelled with its class and name.
    """
    landmarks = linear_model(model).aligned[0]
    indices = model.landmark_indices_[landmarks.used]
    position, sign = model.decision_of(label)
    effects, weighted = landmark_effects(model)
    weights = sign * effects[position] if weighted else effects[position]
    used = np.flatnonzero(weights)
    used = used[np.argsort(-np.abs(weights[used]), kind="stable")]
    shown = used[:count][::-1]
    ax = axes_or_new(ax, figsize=(6.5, max(2.0, 0.25 * len(shown) + 1.0)))
    colours = np.where(weights[shown] > 0, FOR, AGAINST).tolist()
    hatches = np.where(weights[shown] > 0, "", "//").tolist()
    ax.barh(range(len(shown)), weights[shown], color=colours, hatch=hatches)
    names = [model.series_name(index) for index in indices[shown].tolist()]
    ax.set_yticks(range(len(shown)), names)
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set(xlabel="weight" if weighted else "effect on the decision value")
    listed = f", the first {len(shown)} shown" if len(shown) < len(used) else ""
    n_landmarks = len(model.landmark_indices_)
    ax.set_title(f"class {label}: {len(used)} of {n_landmarks} landmarks in use{listed}")
    return ax


def plot_accuracy_by_landmarks(
    curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike | None]],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the number of landmarks, one line per method.

    Parameters
    ----------
    curves
        Method -> (numbers of landmarks, mean accuracies, half-widths of their intervals or None).
        Accuracies are fractions, as from `score`.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Lines differ in colour, marker and dash. Intervals are shaded. The axis is in percent.
    """
    ax = axes_or_new(ax)
    for k, (name, (counts, means, widths)) in enumerate(curves.items()):
        x, mean = np.asarray(counts), np.asarray(means, dtype=np.float64)
        (line,) = ax.plot(x, mean, LINES[k % len(LINES)], label=name, **style(k))
        if widths is not None:
            half = np.asarray(widths, dtype=np.float64)
            low, high = mean - half, mean + half
            ax.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    ax.set(xlabel="landmarks", ylabel="accuracy")
    ax.yaxis.set_major_formatter(ticker.PercentFormatter(xmax=1.0))
    ax.legend()
    ax.grid(alpha=0.3)
    return ax


# ---- snippets


# Channels drawn of one snippet.
_MOST_ROWS = 4
# Inches: a channel, a line of text, ticks and space. Letters of small text in an inch.
_ROW, _LINE, _TICKS, _LETTERS = 0.5, 0.18, 0.45, 13
# What a title says about how a snippet is compared.
_REMARKS = {
    "values": "",
    "shape only": "\nshape only: level, slope and amplitude do not matter",
    "by strength": "\nby strength: occurs where steps follow it strongly, at any level",
}


def plot_snippets(
    model: Any, label: Any, *, X: Any = None, count: int = 3, figure: Figure | None = None
) -> Figure:
    """Draw the snippets that count most for and against a class.

    The number of a snippet is its `snippet_effect` over the landmarks of the model, as in
    `slts.summarize`. Each channel has its own scale, in the units of the data. At most four
    channels of a snippet are drawn.

    Parameters
    ----------
    model
        A fitted `LocalSLTSClassifier` with snippets.
    label
        The class.
    X
        Series to look for the snippets in, of which at most 100 are used. Each snippet is drawn
        beside the series in which it adds most, for the class or against it.
    count
        Largest number of snippets for the class, and against it.
    figure
        Figure to draw on; None makes a new one.

    Returns
    -------
    Figure
        One block per snippet. In a series, a thick line marks the steps of the closest occurrence,
        all of them if the snippet has means of steps, and shades show what the snippet adds at each
        step where it occurs.
    """
    linear = linear_model(model)
    snippets, _ = required_snippets(linear)
    position, sign = model.decision_of(label)
    batch = None if X is None else model.check_series(X)
    # The value of two classes supports the second one: what counts for it is against the first.
    sides = snippets_to_show(model, batch, count)[position][:: int(sign)]
    shown = [one for side in sides for one in side]
    width = (6.0 if batch is None else 9.0) if figure is None else figure.get_figwidth()
    titles = [_title(model, one.snippet, label, sign * one.weight, width) for one in shown]
    drawn = [snippets.prominent_rows(one.snippet, _MOST_ROWS) for one in shown]
    heights = [
        _ROW * len(rows) + _LINE * (title.count("\n") + 1) + _TICKS
        for rows, title in zip(drawn, titles, strict=True)
    ]
    if figure is None:
        figure = pyplot.figure(figsize=(width, sum(heights) + 0.4), layout="constrained")
    figure.suptitle(f"class {label}: snippets for it and against it")
    if not shown:
        return figure
    ratios = [1.0] if batch is None else [1.0, 2.0]
    blocks = figure.subfigures(len(shown), 1, height_ratios=heights, squeeze=False)[:, 0]
    for block, one, rows, title in zip(blocks, shown, drawn, titles, strict=True):
        colour = FOR if sign * one.weight > 0 else AGAINST
        block.suptitle(title, x=0.01, ha="left", fontsize="small", color=colour)
        grid = block.subplots(
            len(rows), len(ratios), sharex="col", squeeze=False, width_ratios=ratios
        )
        _draw_snippet(grid[:, 0], model, one.snippet, rows, colour)
        if batch is not None:
            example = batch[one.example : one.example + 1]
            centre, added = snippet_in_series(linear, one.snippet, example)
            channels = snippets.channels_of(one.snippet)[rows]
            window = centre + snippets.reach(one.snippet)
            _draw_series(grid[:, 1], example, channels, window, sign * added[position], colour)
            name = example.name_of(0, "") if batch.series_names else f"series {one.example}"
            text = f"contributes {sign * one.adds:+.2g} in {name}"
            grid[0, 1].set_title(text, fontsize="x-small", loc="right")
            if snippets.compared(one.snippet) == "values":
                _share_scales(grid)
    return figure


def _title(model: Any, k: int, label: Any, weight: float, width: float) -> str:
    side = "for" if weight > 0 else "against"
    text = model.describe_snippet(k)
    lines = fill(f"{side} {label}, {weight:+.2g}: {text}", int(_LETTERS * width))
    return lines + _REMARKS[model.snippets_.compared(k)]


def _draw_snippet(axes: Any, model: Any, k: int, rows: IntArray, colour: str) -> None:
    snippets = model.snippets_
    names = channel_labels(model.channel_names_in_, model.n_channels_in_)
    # A snippet that is longer than its series has no first step there: count its own steps.
    steps = max(0, int(snippets.starts[k])) + snippets.dilations[k] * np.arange(snippets.n_steps)
    for ax, row in zip(axes, rows, strict=True):
        ax.plot(steps, snippets.values_of(k)[row], color=colour, linewidth=2.0, marker=".")
        name = names[snippets.channels_of(k)[row]]
        ax.set_ylabel(name, rotation=0, ha="right", va="center", fontsize="small")
        _tidy(ax)


def _draw_series(
    axes: Any,
    series: SeriesBatch,
    channels: IntArray,
    window: IntArray,
    added: FloatArray,
    colour: str,
) -> None:
    """Draw channels of a series, the steps of a window, and what is added at each step."""
    n = series.n_steps
    # Steps that are apart are marked.
    marker = "." if window[1] - window[0] > 1 else None
    window = window[(window >= 0) & (window < n)]
    largest, shades = float(np.abs(added).max()) or 1.0, signed_colours()
    for ax, channel in zip(axes, channels, strict=True):
        values = series.values[:, channel]
        ax.plot(values, color="black", linewidth=0.8)
        ax.plot(window, values[window], color=colour, linewidth=2.0, marker=marker)
        _tidy(ax)
        low, high = ax.get_ylim()
        ax.imshow(
            added[np.newaxis], cmap=shades, vmin=-largest, vmax=largest, alpha=0.35, zorder=0,
            aspect="auto", interpolation="nearest", extent=(-0.5, n - 0.5, 0.0, 1.0),
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
        ax.set(xlim=(-0.5, n - 0.5), ylim=(low, high))
    time_axis(axes[-1], series.times)
    axes[-1].xaxis.label.set_size("x-small")


def _share_scales(grid: Any) -> None:
    """Give a channel of a snippet and of the series the same limits."""
    for left, right in grid:
        limits = np.array([left.get_ylim(), right.get_ylim()])
        left.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        right.set_ylim(left.get_ylim())


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.set_major_locator(integer_ticks())
    ax.locator_params(axis="y", nbins=3)
    ax.tick_params(labelsize="x-small")
