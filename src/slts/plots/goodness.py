"""How good a similarity is, over margins and shares of reasonable landmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slts.plots.axes import COLOURS, LINES, MARKERS, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from slts.guarantees import GoodnessProfile


def plot_goodness(profile: GoodnessProfile, *, ax: Axes | None = None) -> Axes:
    """Draw epsilon against gamma, one line per tau.

    Parameters
    ----------
    profile
        From `slts.guarantees.goodness_profile`.
    ax
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Lower is better; at epsilon 1 a similarity that is always zero does as well.
    """
    ax = axes_or_new(ax)
    for k, tau in enumerate(profile.taus):
        ax.plot(
            profile.gammas, profile.epsilon[:, k], LINES[k % len(LINES)],
            color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)], label=f"{tau:g}",
        )  # fmt: skip
    ax.axhline(1.0, color="grey", linewidth=0.8)
    ax.set(xscale="log", xlabel="margin gamma", ylabel="hinge loss epsilon", ylim=(0.0, None))
    ax.legend(title="share tau of landmarks")
    ax.grid(alpha=0.3)
    return ax
