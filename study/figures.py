"""The figures of both studies."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from slts.plots import plot_alignment
from study.markdown import Table
from study.methods import BY_NAME
from study.paper import TITLES
from study.statistics import SIGNIFICANT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RANKS, POOL_RANKS = "accuracy-ranks", "accuracy-pool-ranks"
_INK, _COLOURS = "#1c1c1c", {"bbs": "#b5651d", "slts": "#1f5fa8"}
# The order of the panels in the paper.
_PANELS = ("auslan", "arabic_digits", "japanese_vowels")


def draw_reproduction(tables: Table) -> dict[str, Figure]:
    """Draw the figures of the paper that there are results for."""
    figures = {}
    if tables["figure1"]:
        figures["figure1"] = _draw_path(tables["figure1"])
    if tables["figure2"]:
        figures["figure2"] = _draw_landmarks(tables["figure2"])
    if tables["figure3"] and tables["figure3"]["shown"]:
        figures["figure3"] = _draw_space(tables["figure3"]["shown"])
    return figures


def draw_accuracy(tables: Table) -> dict[str, Figure]:
    """Draw the mean ranks, if there are any."""
    ranks = {RANKS: tables["ranks"], POOL_RANKS: tables["pool"]["all"]["ranks"]}
    return {name: _draw_ranks(table) for name, table in ranks.items() if table}


def render(figure: Figure) -> dict[str, bytes]:
    """Return the figure as PNG and SVG, by suffix; the same bytes every time."""
    files = {}
    for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
        stream = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "slts"}):
            figure.savefig(stream, format=suffix, dpi=160, metadata=metadata, bbox_inches="tight")
        files[suffix] = stream.getvalue()
    return files


def _draw_path(pair: Sequence[Sequence[Sequence[float]]]) -> Figure:
    """Figure 1: the path of two series."""
    figure = Figure(figsize=(6.0, 6.0), layout="constrained")
    plot_alignment(np.array(pair[0]), np.array(pair[1]), ax=figure.subplots())
    return figure


def _draw_landmarks(panels: Mapping[str, Sequence[Table]]) -> Figure:
    """Figure 2: accuracy for different numbers of landmarks, one panel per data set."""
    names = sorted(panels, key=lambda name: (*_PANELS, name).index(name))
    n_rows = math.ceil(len(names) / 2)
    figure = Figure(figsize=(9.0, 2.7 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, 2, squeeze=False).ravel()
    for ax, name in zip(axes, names, strict=False):
        _draw_panel(ax, panels[name])
        ax.set_title(TITLES[name], loc="left", fontsize=10)
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    axes[0].legend(frameon=False, loc="lower right")
    return figure


def _draw_panel(ax: Axes, points: Sequence[Table]) -> None:
    counts = [point["landmarks"] for point in points]
    clear = [point.get("p", 1.0) < SIGNIFICANT for point in points]
    for method, line in (("bbs", "--"), ("slts", "-")):
        means = np.array([point[method]["mean"] for point in points])
        widths = np.array([point[method]["interval"] or 0.0 for point in points])
        colour = _COLOURS[method]
        ax.fill_between(counts, means - widths, means + widths, color=colour, alpha=0.15, lw=0)
        ax.plot(counts, means, line, color=colour, label=method.upper())
        faces = [colour if filled else "white" for filled in clear]
        ax.scatter(counts, means, s=22, c=faces, edgecolors=colour, zorder=3)
    low, high = ax.get_ylim()
    ax.set(xlabel="landmarks", ylabel="accuracy, %", ylim=(max(low, 0.0), min(high, 101.0)))
    ax.grid(alpha=0.25)


def _draw_space(shown: Table) -> Figure:
    """Figure 3: principal components of the similarity space."""
    figure = Figure(figsize=(9.0, 8.0), layout="constrained")
    codes = np.array(shown["codes"])
    axes = figure.subplots(2, 2).ravel()
    for k, (ax, points) in enumerate(zip(axes, shown["points"], strict=False)):
        xy = np.array(points)
        if k == 0:
            ax.scatter(*xy.T, c=codes, cmap="tab10", s=9)
        else:
            inside = codes == k - 1
            ax.scatter(*xy[~inside].T, color="0.65", s=9, label="other classes")
            ax.scatter(*xy[inside].T, color=_COLOURS["slts"], s=12, label=f"class {k}")
            ax.legend(frameon=False, fontsize=8)
        title = f"Metric for class {k}" if k else "No metric learning"
        variance = f"{shown['variance'][k]:.0f}% of the variance"
        ax.set_title(f"{title}: {variance}", loc="left", fontsize=10)
        ax.set(xticks=[], yticks=[], xlabel="first component", ylabel="second component")
    return figure


def _draw_ranks(table: Mapping[str, Any]) -> Figure:
    """Methods on the axis of mean ranks; bars join those that do not differ significantly."""
    ranks = sorted(table["ranks"].items(), key=lambda item: item[1])
    groups = joined([rank for _, rank in ranks], table["critical"])
    depth = 1.0 + 0.35 * len(groups)
    figure = Figure(figsize=(7.0, 1.0 + 0.28 * (depth + len(ranks))))
    ax = figure.subplots()
    for level, (first, last) in enumerate(groups):
        y = -0.5 - 0.35 * level
        ends = (ranks[first][1] - 0.04, ranks[last][1] + 0.04)
        ax.plot(ends, (y, y), color=_COLOURS["slts"], lw=4, solid_capstyle="round")
    half = (len(ranks) + 1) // 2
    low, high = 1.0, float(len(ranks))
    for k, (name, rank) in enumerate(ranks):
        left = k < half
        y = -depth - 0.6 * (k if left else len(ranks) - 1 - k)
        x = low - 0.1 if left else high + 0.1
        ax.plot((rank, rank, x), (0.0, y, y), color=_INK, lw=0.9)
        label = f" {BY_NAME[name].title}  {rank:.2f} "
        ax.text(x, y, label, va="center", ha="right" if left else "left", fontsize=10)
    y = 0.9
    ax.plot((low, low + table["critical"]), (y, y), color=_INK, lw=1.5)
    ax.text(low, y + 0.2, f"critical difference {table['critical']:.2f}", fontsize=9)
    ax.plot((low, high), (0.0, 0.0), color=_INK, lw=1.2)
    for tick in range(int(low), int(high) + 1):
        ax.plot((tick, tick), (0.0, 0.12), color=_INK, lw=1.2)
        ax.text(tick, 0.2, str(tick), ha="center", fontsize=9)
    ax.set(xlim=(low - 1.6, high + 1.6), ylim=(-depth - 0.6 * half, 1.6))
    ax.set_axis_off()
    return figure


def joined(ranks: Sequence[float], critical: float) -> list[tuple[int, int]]:
    """Return the longest runs of sorted ranks within the critical difference, as (first, last)."""
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(k for k, other in enumerate(ranks) if other - rank <= critical)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found
