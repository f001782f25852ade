"""Axes, colours and labels shared by the plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.extras import LazyModule
from slts.quantities import time_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

pyplot: Any = LazyModule("matplotlib.pyplot", "plots")
ticker: Any = LazyModule("matplotlib.ticker", "plots")
colors: Any = LazyModule("matplotlib.colors", "plots")
# Axes beside axes.
axes_grid: Any = LazyModule("mpl_toolkits.axes_grid1", "plots")

# It keeps its order in grey and for colour-blind readers.
SEQUENTIAL = "cividis"
# Colours of the report: for a class and against it; the leading channels.
FOR, AGAINST = "#1a5fa4", "#ad4800"
CHANNELS = ("#6b3fa0", "#00706b", "#806200")
# Palette of Okabe and Ito.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":")


def axes_or_new(ax: Axes | None, *, figsize: tuple[float, float] = (6.0, 4.5)) -> Axes:
    """`ax` itself, or the axes of a new figure."""
    return ax or pyplot.figure(figsize=figsize, layout="constrained").add_subplot()


def style(k: int) -> dict[str, Any]:
    """Colour and marker of the k-th class or line; both repeat after their last."""
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}


def integer_ticks() -> Any:
    """A new tick locator that uses integers only."""
    return ticker.MaxNLocator(integer=True)


def signed_colours() -> Any:
    """A colour map from `AGAINST` through white to `FOR`."""
    return colors.LinearSegmentedColormap.from_list("sides", [AGAINST, "white", FOR])


def signed_image(ax: Axes, values: FloatArray, **options: Any) -> Any:
    """Draw signed values, white at zero."""
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    return ax.imshow(values, cmap=signed_colours(), vmin=-largest, vmax=largest, **options)


def time_axis(ax: Axes, times: AnyArray | None) -> None:
    """Label steps on the x axis with the user's times, if there are any."""
    ax.xaxis.set_major_locator(integer_ticks())
    ax.set_xlabel("step" if times is None else "time")
    if times is None:
        return
    texts = time_texts(times)
    if times.dtype.kind == "M":
        days = times[-1] - times[0] >= np.timedelta64(1, "D")
        texts = [text.split("T")[0 if days else -1] for text in texts]
    labels = dict(enumerate(texts))
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: labels.get(round(x), "")))


def channel_labels(names: tuple[str, ...] | None, count: int) -> list[str]:
    """Names of `count` channels; without names, their numbers."""
    return [str(k) for k in range(count)] if names is None else list(names)
