"""An alignment on its grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slts.alignment import Alignment, Band, align
from slts.extras import import_extra
from slts.plots.axes import SEQUENTIAL
from slts.series import as_series, normalize_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_alignment(
    a: Any,
    b: Any,
    *,
    alignment: Alignment | None = None,
    objective: str = "affinity",
    band: Band = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the affinity matrix of two series with the path on it and the series at its sides.

    Parameters
    ----------
    a, b
        One series each, (channels, time).
    alignment
        As `slts.align` found it; None finds it with `objective` and `band`.
    objective, band
        Passed to `slts.align` when `alignment` is None.
    ax
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        The axes of the matrix; time of `b` runs right, time of `a` down.
    """
    pyplot = import_extra("matplotlib.pyplot", "plots")
    ticker = import_extra("matplotlib.ticker", "plots")
    axes_grid = import_extra("mpl_toolkits.axes_grid1", "plots")
    found = alignment if alignment is not None else align(a, b, objective=objective, band=band)
    rows_a, rows_b = as_series([a]), as_series([b])
    affinity = normalize_rows(rows_a).values @ normalize_rows(rows_b).values.T
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 7))
    assert ax is not None
    image = ax.imshow(affinity, cmap=SEQUENTIAL, aspect="auto", origin="upper")
    ax.plot(found.path[:, 1], found.path[:, 0], color="black", linewidth=3.5)
    ax.plot(found.path[:, 1], found.path[:, 0], color="white", linewidth=1.2, marker=".")
    ax.set(xlabel="step of b", ylabel="step of a")
    ax.yaxis.set_label_position("right")
    ax.yaxis.tick_right()
    ax.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(ticker.MaxNLocator(integer=True))

    divider = axes_grid.make_axes_locatable(ax)
    left = divider.append_axes("left", size="25%", pad=0.1, sharey=ax)
    top = divider.append_axes("top", size="25%", pad=0.1, sharex=ax)
    legend = divider.append_axes("bottom", size="4%", pad=0.6)
    left.plot(rows_a.values, range(rows_a.n_steps), linewidth=0.8)
    top.plot(range(rows_b.n_steps), rows_b.values, linewidth=0.8)
    left.invert_xaxis()
    left.set_title("a", loc="left")
    left.tick_params(left=False, labelleft=False)
    top.tick_params(bottom=False, labelbottom=False)
    top.set_title(f"b: similarity {found.similarity:.3f}, path of {found.length} steps", loc="left")
    ax.figure.colorbar(
        image, cax=legend, orientation="horizontal", label="affinity of unit rows, a·b"
    )
    return ax
