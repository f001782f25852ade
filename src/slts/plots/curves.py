"""Accuracy against the number of landmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from slts.plots.axes import COLOURS, LINES, MARKERS, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_accuracy_by_landmarks(
    curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike | None]],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the number of landmarks, one line per method.

    Parameters
    ----------
    curves
        Method -> (numbers of landmarks, mean accuracies in %, half-widths of their intervals or
        None).
    ax
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Lines differ by colour, marker and dash; intervals are shaded.
    """
    ax = axes_or_new(ax)
    for k, (name, (counts, means, widths)) in enumerate(curves.items()):
        x, mean = np.asarray(counts), np.asarray(means, dtype=np.float64)
        colour = COLOURS[k % len(COLOURS)]
        style = LINES[k % len(LINES)]
        ax.plot(x, mean, style, marker=MARKERS[k % len(MARKERS)], color=colour, label=name)
        if widths is not None:
            half = np.asarray(widths, dtype=np.float64)
            ax.fill_between(x, mean - half, mean + half, color=colour, alpha=0.15, linewidth=0)
    ax.set(xlabel="landmarks", ylabel="accuracy (%)")
    ax.legend()
    ax.grid(alpha=0.3)
    return ax
