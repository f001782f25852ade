"""The HTML table that notebooks show for a batch of series."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from slts._typing import FloatArray

_WIDTH, _HEIGHT = 160, 28
_MAX_POINTS = 80
_MAX_CHANNELS = 6


def html_preview(
    title: str, head: Sequence[FloatArray], names: Sequence[str], n_series: int
) -> str:
    """Draw the first series of a batch as a table of lengths and curves.

    Parameters
    ----------
    title : str
        Caption of the table.
    head : sequence of FloatArray
        The series to show, each (channels, time).
    names : sequence of str
        Names of the channels.
    n_series : int
        Number of series of the batch.

    Returns
    -------
    str
        An HTML fragment; all text in it is escaped.
    """
    channels = ", ".join(escape(name) for name in names[:_MAX_CHANNELS])
    if len(names) > _MAX_CHANNELS:
        channels += f", and {len(names) - _MAX_CHANNELS} more"
    lines = [
        f"<table><caption>{escape(title)}</caption>",
        f"<thead><tr><th>series</th><th>steps</th><th>channels {channels}</th></tr></thead>",
        "<tbody>",
    ]
    for index, series in enumerate(head):
        curves = _curves(series[:_MAX_CHANNELS])
        lines.append(f"<tr><td>{index}</td><td>{series.shape[1]}</td><td>{curves}</td></tr>")
    if n_series > len(head):
        lines.append(f'<tr><td colspan="3">and {n_series - len(head)} more</td></tr>')
    lines.append("</tbody></table>")
    return "\n".join(lines)


def _curves(series: FloatArray) -> str:
    """Draw the channels of a (channels, time) series in one SVG image."""
    n_steps = series.shape[1]
    steps = np.unique(np.linspace(0, n_steps - 1, min(n_steps, _MAX_POINTS)).round().astype(int))
    # Halves, because the range of finite numbers may overflow.
    half = series[:, steps] / 2
    known = half[~np.isnan(half)]
    low, high = known.min(initial=np.inf), known.max(initial=-np.inf)
    height = (high - half) / (high - low) if high > low else np.full_like(half, 0.5)
    x = (steps + 0.5) / n_steps * _WIDTH
    y = 2 + height * (_HEIGHT - 4)
    lines = []
    for channel, row in enumerate(y):
        known = ~np.isnan(half[channel])
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[known], row[known], strict=True))
        colour = f"hsl({channel * 360 // _MAX_CHANNELS},60%,45%)"
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'role="img" aria-label="values over time">{"".join(lines)}</svg>'
    )
