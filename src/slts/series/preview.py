"""The small HTML table that notebooks show for a batch of series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Protocol

import numpy as np

from slts._typing import FloatArray, IntArray

__all__ = ["html_preview", "size_text"]

_WIDTH, _HEIGHT = 160, 28
_MAX_POINTS = 80
_MAX_CHANNELS = 6


class _Batch(Protocol):
    """What a preview needs of a batch."""

    @property
    def lengths(self) -> IntArray: ...
    @property
    def n_channels(self) -> int: ...
    @property
    def channel_names(self) -> tuple[str, ...] | None: ...
    def __iter__(self) -> Iterator[FloatArray]: ...


def size_text(n_bytes: int) -> str:
    """Return a number of bytes in decimal units, such as "1.2 MB"."""
    size = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def html_preview(title: str, head: _Batch, n_series: int) -> str:
    """Draw the first series of a batch as a table of lengths and curves.

    Parameters
    ----------
    title : str
        Caption of the table.
    head : SeriesBatch
        The series to show.
    n_series : int
        How many there are in all.

    Returns
    -------
    str
        An HTML fragment; all text in it is escaped.
    """
    shown = min(head.n_channels, _MAX_CHANNELS)
    names: Sequence[str] = head.channel_names or [str(c) for c in range(head.n_channels)]
    channels = ", ".join(escape(name) for name in names[:shown])
    if shown < head.n_channels:
        channels += f", and {head.n_channels - shown} more"
    lines = [
        f"<table><caption>{escape(title)}</caption>",
        f"<thead><tr><th>series</th><th>steps</th><th>channels {channels}</th></tr></thead>",
        "<tbody>",
    ]
    for index, (length, series) in enumerate(zip(head.lengths, head, strict=True)):
        curves = _curves(series[:shown])
        lines.append(f"<tr><td>{index}</td><td>{length}</td><td>{curves}</td></tr>")
    if n_series > len(head.lengths):
        rest = n_series - len(head.lengths)
        lines.append(f'<tr><td colspan="3">and {rest} more</td></tr>')
    lines.append("</tbody></table>")
    return "\n".join(lines)


def _curves(series: FloatArray) -> str:
    """Draw the channels of a (channels, time) series over one another as an SVG."""
    n_steps = series.shape[1]
    steps = np.unique(np.linspace(0, n_steps - 1, min(n_steps, _MAX_POINTS)).round().astype(int))
    # Halves, because the range of finite numbers can exceed the largest one.
    half = series[:, steps] / 2
    span = float(half.max() - half.min())
    height = (half.max() - half) / span if span > 0 else np.full_like(half, 0.5)
    x = (steps + 0.5) / n_steps * _WIDTH
    y = 2 + height * (_HEIGHT - 4)
    lines = []
    for channel, row in enumerate(y):
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, row, strict=True))
        colour = f"hsl({channel * 360 // _MAX_CHANNELS},60%,45%)"
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'role="img" aria-label="values over time">{"".join(lines)}</svg>'
    )
