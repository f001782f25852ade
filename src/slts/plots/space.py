"""Series as points: principal components of their similarities to landmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA

from slts.plots.axes import COLOURS, MARKERS, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        Shape (series, landmarks), for instance of `slts.similarity` or a model's `transform`.
    y
        Labels.
    highlight
        A class to set apart from all others; None gives every class its colour and marker.
    ax
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        The title says how much of the variance the two components explain.
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
        ax.scatter(
            points[members, 0], points[members, 1], s=14, alpha=0.8, linewidths=0, label=name,
            color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)],
        )  # fmt: skip
    ax.legend(fontsize="small", markerscale=1.5)
    share = 100 * pca.explained_variance_ratio_.sum()
    ax.set(xlabel="first component", ylabel="second component")
    ax.set_title(f"two components: {share:.0f}% of the variance")
    return ax
