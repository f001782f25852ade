"""Axes to draw on, and colours that keep their order in grey and for colour-blind readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slts._typing import FloatArray
from slts.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEQUENTIAL = "cividis"
DIVERGING = "PuOr"
# Okabe and Ito's palette, each with a marker of its own.
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


def signed_image(ax: Axes, values: FloatArray, label: str, **options: Any) -> Any:
    """Draw signed values, white at zero, with a colour bar."""
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    image = ax.imshow(values, cmap=DIVERGING, vmin=-largest, vmax=largest, **options)
    ax.figure.colorbar(image, ax=ax, label=label)
    return image


def channel_labels(names: tuple[str, ...] | None, count: int) -> list[str]:
    """Names of the channels; a channel beyond them is the homogeneous one."""
    if names is None:
        return [str(k) for k in range(count)]
    return [*names, "constant"][:count] if count > len(names) else list(names)


def class_position(classes: Any, label: Any) -> int:
    """Where `label` stands among the classes that have a decision value."""
    known: list[Any] = np.asarray(classes).tolist()
    if label not in known:
        names = ", ".join(map(repr, known))
        raise ValueError(f"The 'label' parameter must be one of {names}. Got {label!r} instead.")
    return known.index(label)
