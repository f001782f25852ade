"""Axes, colours and labels shared by the plots."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.extras import LazyModule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

pyplot: Any = LazyModule("matplotlib.pyplot", "plots")
ticker: Any = LazyModule("matplotlib.ticker", "plots")
dates: Any = LazyModule("matplotlib.dates", "plots")
colors: Any = LazyModule("matplotlib.colors", "plots")
# Axes beside axes.
axes_grid: Any = LazyModule("mpl_toolkits.axes_grid1", "plots")

# It keeps its order in grey and for colour-blind readers.
SEQUENTIAL = "cividis"
# Colours of the report: for a class and against it; channels.
FOR, AGAINST = "#1a5fa4", "#ad4800"
CHANNELS = ("#6b3fa0", "#00706b", "#806200", "#a63c7f", "#1b1b1a")
# Palette of Okabe and Ito.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":")
_MOST_TICKS = 6
# How dates are written whose distance is at least so many days.
_TIME_FORMATS = (
    (1.0, "%Y-%m-%d"), (1 / 24, "%m-%d %H:%M"), (1 / 1440, "%H:%M"), (1 / 86400, "%H:%M:%S"),
    (0.0, "%H:%M:%S.%f"),
)  # fmt: skip


def axes_or_new(ax: Axes | None, *, figsize: tuple[float, float] = (6.0, 4.5)) -> Axes:
    """`ax` itself, or the axes of a new figure."""
    return ax or pyplot.figure(figsize=figsize, layout="constrained").add_subplot()


def style(k: int) -> dict[str, Any]:
    """Colour and marker of the k-th class or line; both repeat after their last."""
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}


def channel_style(u: int) -> dict[str, Any]:
    """Colour and dashes of channel u, the same in all plots and in the report."""
    return {
        "color": CHANNELS[u % len(CHANNELS)],
        "linestyle": LINES[u // len(CHANNELS) % len(LINES)],
    }


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
    """Label steps on the x axis; with times of the user, at round ones of these."""
    ax.xaxis.set_major_locator(integer_ticks())
    timed = times is not None and times[0] != times[-1]
    ax.set_xlabel("time" if timed else "step")
    if times is None or not timed:
        return
    dated, scale = times.dtype.kind == "M", times
    if dated:
        scale = dates.date2num(times)
        locator = dates.AutoDateLocator(minticks=3)
        ticks = np.asarray(locator.tick_values(*dates.num2date(scale[[0, -1]])))
    else:
        ticks = ticker.MaxNLocator(_MOST_TICKS, steps=[1, 2, 5, 10]).tick_values(*scale[[0, -1]])
    gap, rounding = ticks[1] - ticks[0], 1e-9 * (scale[-1] - scale[0])
    ticks = ticks[(ticks >= scale[0] - rounding) & (ticks <= scale[-1] + rounding)]
    ticks = ticks[:: max(1, -(-len(ticks) // _MOST_TICKS))]
    if dated:
        form = next(form for least, form in _TIME_FORMATS if gap >= 0.999 * least)
        labels = [f"{date:{form}}".removesuffix("000") for date in dates.num2date(ticks)]
    else:
        digits = max(0, math.ceil(-math.log10(gap) - 1e-9))
        labels = [f"{tick:.{digits}f}" for tick in ticks]
    ax.set_xticks(np.interp(ticks, scale, np.arange(len(scale))), labels)


def channel_labels(names: tuple[str, ...] | None, count: int) -> list[str]:
    """Names of `count` channels; without names, their numbers."""
    return [str(k) for k in range(count)] if names is None else list(names)
