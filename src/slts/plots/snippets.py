"""Snippets: the short landmarks that count most for and against a class."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.features.explanation import linear_model, required_snippets
from slts.features.summary import snippet_in_series, snippets_to_show
from slts.plots.axes import (
    AGAINST,
    FOR,
    channel_labels,
    integer_ticks,
    pyplot,
    signed_colours,
    time_axis,
)
from slts.series import SeriesBatch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
        One block per snippet. In a series, a thick line marks the closest occurrence, and shades
        show what the snippet adds at each step where it occurs.
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
    window = window[(window >= 0) & (window < n)]
    largest, shades = float(np.abs(added).max()) or 1.0, signed_colours()
    for ax, channel in zip(axes, channels, strict=True):
        values = series.values[:, channel]
        ax.plot(values, color="black", linewidth=0.8)
        ax.plot(window, values[window], color=colour, linewidth=2.0, marker=".")
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
