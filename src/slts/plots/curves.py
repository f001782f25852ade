"""Curves: accuracy by number of landmarks, goodness of a similarity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from slts.extras import import_extra
from slts.plots.axes import LINES, axes_or_new, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from slts.guarantees import GoodnessProfile


def plot_accuracy_by_landmarks(
    curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike | None]],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the number of landmarks, one line per method.

    Parameters
    ----------
    curves
        Method -> (numbers of landmarks, mean accuracies, half-widths of their intervals or None).
        Accuracies are fractions, as from `score`.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Lines differ in colour, marker and dash. Intervals are shaded. The axis is in percent.
    """
    ax = axes_or_new(ax)
    for k, (name, (counts, means, widths)) in enumerate(curves.items()):
        x, mean = np.asarray(counts), np.asarray(means, dtype=np.float64)
        (line,) = ax.plot(x, mean, LINES[k % len(LINES)], label=name, **style(k))
        if widths is not None:
            half = np.asarray(widths, dtype=np.float64)
            low, high = mean - half, mean + half
            ax.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    ax.set(xlabel="landmarks", ylabel="accuracy")
    percent = import_extra("matplotlib.ticker", "plots").PercentFormatter
    ax.yaxis.set_major_formatter(percent(xmax=1.0))
    ax.legend()
    ax.grid(alpha=0.3)
    return ax


def plot_goodness(profile: GoodnessProfile, *, ax: Axes | None = None) -> Axes:
    """Draw epsilon against gamma, one line per tau.

    Parameters
    ----------
    profile
        From `slts.guarantees.goodness_profile`.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Lower is better. Epsilon 1 is the value of a similarity that is always zero.
    """
    ax = axes_or_new(ax)
    for k, (tau, epsilon) in enumerate(zip(profile.taus, profile.epsilon.T, strict=True)):
        share = f"{100 * tau:.3g}%"
        ax.plot(profile.gammas, epsilon, LINES[k % len(LINES)], label=share, **style(k))
    ax.axhline(1.0, color="grey", linewidth=0.8)
    ax.set(xscale="log", xlabel="margin gamma", ylabel="hinge loss epsilon", ylim=(0.0, None))
    ax.legend(title="tau, share of the landmarks")
    ax.grid(alpha=0.3)
    return ax
