"""The figure of mean ranks, drawn with matplotlib (extra ``plots``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slts.bench.methods import BY_NAME
from slts.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INK, _BAR = "#1c1c1c", "#1f5fa8"


def draw_ranks(table: Mapping[str, Any]) -> Figure:
    """Methods on the axis of mean ranks; bars join those too near to be told apart."""
    ranks = sorted(table["ranks"].items(), key=lambda item: item[1])
    groups = joined([rank for _, rank in ranks], table["critical"])
    module = import_extra("matplotlib.figure", "plots")
    depth = 1.0 + 0.35 * len(groups)
    figure: Figure = module.Figure(figsize=(7.0, 1.0 + 0.28 * (depth + len(ranks))))
    ax = figure.subplots()
    for level, (first, last) in enumerate(groups):
        y = -0.5 - 0.35 * level
        ends = (ranks[first][1] - 0.04, ranks[last][1] + 0.04)
        ax.plot(ends, (y, y), color=_BAR, lw=4, solid_capstyle="round")
    half = (len(ranks) + 1) // 2
    low, high = 1.0, float(len(ranks))
    for k, (name, rank) in enumerate(ranks):
        left = k < half
        y = -depth - 0.6 * (k if left else len(ranks) - 1 - k)
        x = low - 0.1 if left else high + 0.1
        ax.plot((rank, rank, x), (0.0, y, y), color=_INK, lw=0.9)
        label = f"{BY_NAME[name].title}  {rank:.2f}"
        ax.text(x, y, f"{label} " if left else f" {label}", va="center",
                ha="right" if left else "left", fontsize=10)  # fmt: skip
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
    """Longest runs of sorted ranks that lie within the critical difference, as (first, last).

    Examples
    --------
    >>> from slts.bench.figures import joined
    >>> joined([1.0, 1.5, 2.2, 4.0], 1.0)
    [(0, 1), (1, 2)]
    """
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(k for k, other in enumerate(ranks) if other - rank <= critical)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found
