"""The paper's figures, drawn with matplotlib (extra ``plots``)."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from slts.alignment import align
from slts.extras import import_extra
from slts.plots import plot_alignment
from slts.study.paper import TITLES
from slts.study.problems import Dataset
from slts.study.statistics import SIGNIFICANT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Table = dict[str, Any]

# Lengths of the two series and of the path in the paper's Figure 1.
_PAPER_PATH = (10, 8, 12)
_COLOURS = {"bbs": "#b5651d", "slts": "#1f5fa8"}
_PANELS = (
    "auslan", "arabic_digits", "japanese_vowels",
    "robot_lp1", "robot_lp2", "robot_lp3", "robot_lp4", "robot_lp5",
)  # fmt: skip


def draw_path(dataset: Dataset) -> Figure:
    """Figure 1: two series of one class, as long as the paper's where there are such."""
    a, b = _pair_like_the_papers(dataset)
    figure = _figure((6.0, 6.0))
    plot_alignment(dataset.batch[a], dataset.batch[b], ax=figure.subplots())
    return figure


def draw_landmarks(panels: dict[str, list[Table]]) -> Figure:
    """Figure 2: accuracy against the number of landmarks, one panel per data set."""
    names = [name for name in _PANELS if name in panels]
    names += [name for name in panels if name not in names]
    n_rows = math.ceil(len(names) / 2)
    figure = _figure((9.0, 2.7 * n_rows))
    axes = figure.subplots(n_rows, 2, squeeze=False).ravel()
    for ax, name in zip(axes, names, strict=False):
        _draw_panel(ax, panels[name])
        ax.set_title(TITLES[name], loc="left", fontsize=10)
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    axes[0].legend(frameon=False, loc="lower right")
    return figure


def draw_space(shown: Table) -> Figure:
    """Figure 3: principal components of the similarity space."""
    figure = _figure((9.0, 8.0))
    axes = figure.subplots(2, 2).ravel()
    codes = np.asarray(shown["codes"])
    for k, (ax, points) in enumerate(zip(axes, shown["points"], strict=False)):
        xy = np.asarray(points)
        if k == 0:
            ax.scatter(*xy.T, c=codes, cmap="tab10", s=9)
            title = "No metric learning"
        else:
            inside = codes == k - 1
            ax.scatter(*xy[~inside].T, color="0.65", s=9, label="other classes")
            ax.scatter(*xy[inside].T, color=_COLOURS["slts"], s=12, label=f"class {k}")
            ax.legend(frameon=False, fontsize=8)
            title = f"Metric for class {k}"
        ax.set_title(
            f"{title}: {shown['variance'][k]:.0f}% of the variance", loc="left", fontsize=10
        )
        ax.set(xticks=[], yticks=[], xlabel="first component", ylabel="second component")
    return figure


def render(figure: Figure) -> dict[str, bytes]:
    """The figure as PNG and SVG, by suffix; the same bytes every time."""
    files = {}
    matplotlib = import_extra("matplotlib", "plots")
    for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
        stream = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "slts"}):
            figure.savefig(stream, format=suffix, dpi=160, metadata=metadata, bbox_inches="tight")
        files[suffix] = stream.getvalue()
    return files


def _figure(size: tuple[float, float]) -> Figure:
    # Not by pyplot, which would keep figures and look for a screen.
    module = import_extra("matplotlib.figure", "plots")
    figure: Figure = module.Figure(figsize=size, layout="constrained")
    return figure


def _draw_panel(ax: Axes, points: list[Table]) -> None:
    counts = [point["landmarks"] for point in points]
    clear = [point.get("p", 1.0) < SIGNIFICANT for point in points]
    for method in ("bbs", "slts"):
        means = np.array([point[method]["mean"] for point in points])
        widths = np.array([point[method]["interval"] or 0.0 for point in points])
        colour = _COLOURS[method]
        ax.fill_between(counts, means - widths, means + widths, color=colour, alpha=0.15, lw=0)
        line = "-" if method == "slts" else "--"
        ax.plot(counts, means, line, color=colour, label=method.upper())
        faces = [colour if yes else "white" for yes in clear]
        ax.scatter(counts, means, s=22, c=faces, edgecolors=colour, zorder=3)
    low, high = ax.get_ylim()
    ax.set(xlabel="landmarks", ylabel="accuracy, %", ylim=(max(low, 0.0), min(high, 101.0)))
    ax.grid(alpha=0.25)


def _pair_like_the_papers(dataset: Dataset) -> tuple[int, int]:
    """Indices of two series of one class whose lengths, and path, come nearest to the paper's."""
    lengths, labels = dataset.batch.lengths, dataset.labels
    first = np.argsort(np.abs(lengths - _PAPER_PATH[0]), kind="stable")[:30]
    best, pair = math.inf, (0, 0)
    for a in first.tolist():
        same = np.flatnonzero(labels == labels[a])
        same = same[same != a]
        near = same[np.argsort(np.abs(lengths[same] - _PAPER_PATH[1]), kind="stable")[:5]]
        for b in near.tolist():
            length = align(dataset.batch[a], dataset.batch[b]).length
            found = (int(lengths[a]), int(lengths[b]), length)
            miss = sum(abs(x - y) for x, y in zip(found, _PAPER_PATH, strict=True))
            if miss < best:
                best, pair = miss, (a, b)
    return pair
