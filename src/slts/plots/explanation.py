"""One prediction, taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slts.extras import import_extra
from slts.plots.axes import axes_or_new, channel_labels, signed_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from slts.explanation import Explanation


def plot_contributions(
    explanation: Explanation, label: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw which steps and channels spoke for a class, and which against it.

    Parameters
    ----------
    explanation
        From `slts.explain`.
    label
        The class; None takes the predicted one. With two classes there is one map: what speaks for
        the second speaks against the first.
    ax
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Time runs right, one row per channel; the map and the offset sum to the decision value.
    """
    position, sign = explanation.for_class(label)
    terms = sign * explanation.contributions[position]
    ax = axes_or_new(ax, figsize=(7.0, 4.0))
    names = channel_labels(explanation.channel_names, terms.shape[1])
    signed_image(ax, terms.T, "contribution", aspect="auto", interpolation="nearest")
    ax.set_yticks(range(len(names)), names)
    ax.xaxis.set_major_locator(import_extra("matplotlib.ticker", "plots").MaxNLocator(integer=True))
    ax.set(xlabel="step", ylabel="channel")
    ax.set_title(
        f"class {explanation.predicted if label is None else label}: decision "
        f"{sign * explanation.decision[position]:.3f} = "
        f"{sign * explanation.offset[position]:.3f} + map"
    )
    return ax
