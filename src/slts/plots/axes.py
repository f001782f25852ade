"""Axes, colours and labels shared by the plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slts._typing import FloatArray
from slts.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Both keep their order in grey and for colour-blind readers.
SEQUENTIAL = "cividis"
DIVERGING = "PuOr"
# Palette of Okabe and Ito.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":")


def axes_or_new(ax: Axes | None, *, figsize: tuple[float, float] = (6.0, 4.5)) -> Axes:
    """`ax` itself, or the axes of a new figure."""
    if ax is not None:
        return ax
    pyplot = import_extra("matplotlib.pyplot", "plots")
    _, new = pyplot.subplots(figsize=figsize, layout="constrained")
    made: Axes = new
    return made


def style(k: int) -> dict[str, Any]:
    """Colour and marker of the k-th group; both repeat after their last."""
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}


def integer_ticks() -> Any:
    """A new tick locator that uses integers only."""
    return import_extra("matplotlib.ticker", "plots").MaxNLocator(integer=True)


def signed_image(ax: Axes, values: FloatArray, label: str, **options: Any) -> None:
    """Draw signed values, white at zero, with a colour bar."""
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    image = ax.imshow(values, cmap=DIVERGING, vmin=-largest, vmax=largest, **options)
    ax.figure.colorbar(image, ax=ax, label=label)


def channel_labels(names: tuple[str, ...] | None, count: int) -> list[str]:
    """Names of `count` channels; one channel more than names is the constant channel."""
    if names is None:
        return [str(k) for k in range(count)]
    return [*names, "constant"][:count]
