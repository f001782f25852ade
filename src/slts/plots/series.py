"""Series: two of them aligned, or many as points in similarity space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA

from slts.alignment import Alignment, Band, align
from slts.extras import import_extra
from slts.plots.axes import SEQUENTIAL, axes_or_new, integer_ticks, style
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
    """Draw the affinity matrix of two series, the path on it, and the series at its sides.

    Parameters
    ----------
    a, b
        One series each, (channels, time).
    alignment
        Result of `slts.align`; None aligns the series with `objective` and `band`.
    objective, band
        Passed to `slts.align` if `alignment` is None.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        The axes of the matrix. Time of `b` runs right, time of `a` runs down.
    """
    found = align(a, b, objective=objective, band=band) if alignment is None else alignment
    rows_a, rows_b = as_series([a]), as_series([b])
    affinity = normalize_rows(rows_a).values @ normalize_rows(rows_b).values.T
    if ax is None:
        # Without a layout engine: it would undo the axes appended below.
        _, new = import_extra("matplotlib.pyplot", "plots").subplots(figsize=(7, 7))
        ax = new
    assert ax is not None
    image = ax.imshow(affinity, cmap=SEQUENTIAL, aspect="auto", origin="upper")
    ax.plot(found.path[:, 1], found.path[:, 0], color="black", linewidth=3.5)
    ax.plot(found.path[:, 1], found.path[:, 0], color="white", linewidth=1.2, marker=".")
    ax.set(xlabel="step of b", ylabel="step of a")
    ax.yaxis.set_label_position("right")
    ax.yaxis.tick_right()
    ax.xaxis.set_major_locator(integer_ticks())
    ax.yaxis.set_major_locator(integer_ticks())

    divider = import_extra("mpl_toolkits.axes_grid1", "plots").make_axes_locatable(ax)
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


def plot_similarity_space(
    similarities: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    highlight: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the first two principal components of similarities to landmarks.

    Parameters
    ----------
    similarities
        Shape (series, landmarks), for example from `slts.similarity` or a model's `transform`.
    y
        Labels.
    highlight
        A class to distinguish from all others; None gives every class a colour and a marker.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        The title gives the share of the variance that the two components explain.
    """
    labels = np.asarray(y)
    pca = PCA(2, random_state=0)
    points = pca.fit_transform(np.asarray(similarities, dtype=np.float64))
    ax = axes_or_new(ax)
    if highlight is not None:
        groups = [("others", labels != highlight), (f"class {highlight}", labels == highlight)]
    else:
        groups = [(str(label), labels == label) for label in np.unique(labels)]
    for k, (name, members) in enumerate(groups):
        first, second = points[members].T
        ax.scatter(first, second, s=14, alpha=0.8, linewidths=0, label=name, **style(k))
    ax.legend(fontsize="small", markerscale=1.5)
    share = 100 * pca.explained_variance_ratio_.sum()
    ax.set(xlabel="first component", ylabel="second component")
    ax.set_title(f"two components: {share:.0f}% of the variance")
    return ax
