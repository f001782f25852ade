"""Series: two of them aligned, one explained, or many as points in similarity space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA

from slts.alignment import Alignment, Band, align
from slts.estimators.linear import LinearClassifier
from slts.features.explanation import Explanation
from slts.guarantees.held_out import required_inner_model
from slts.plots.axes import (
    SEQUENTIAL,
    axes_grid,
    axes_or_new,
    channel_labels,
    channel_style,
    integer_ticks,
    pyplot,
    signed_image,
    style,
    time_axis,
)
from slts.series import SeriesBatch, as_series, normalize_rows
from slts.series.convert import check_one_per_series
from slts.series.values import fill_gaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Channels in the legend of an alignment.
_MOST_NAMED = 7
# Channels of an explained series.
_MOST_DRAWN = 3


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

    Channels are standardised over both series, so that they share one axis.

    Parameters
    ----------
    a, b
        One series each: (channels, time), or a batch of one series, whose names are shown.
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
    rows_a, rows_b = _one_series(a), _one_series(b)
    alignment = alignment or align(rows_a[0], rows_b[0], objective=objective, band=band)
    affinity = normalize_rows(rows_a).values @ normalize_rows(rows_b).values.T
    # Without a layout engine: it would undo the axes appended below.
    ax = ax or pyplot.figure(figsize=(7, 7)).add_subplot()
    image = ax.imshow(affinity, cmap=SEQUENTIAL, aspect="auto", origin="upper")
    ax.plot(alignment.path[:, 1], alignment.path[:, 0], color="black", linewidth=3.5)
    ax.plot(alignment.path[:, 1], alignment.path[:, 0], color="white", linewidth=1.2, marker=".")
    name_a, name_b = _name(rows_a, "a"), _name(rows_b, "b")
    ax.set(xlabel=f"step of {name_b}", ylabel=f"step of {name_a}")
    ax.yaxis.set_label_position("right")
    ax.yaxis.tick_right()
    ax.xaxis.set_major_locator(integer_ticks())
    ax.yaxis.set_major_locator(integer_ticks())

    divider = axes_grid.make_axes_locatable(ax)
    left = divider.append_axes("left", size="25%", pad=0.1, sharey=ax)
    top = divider.append_axes("top", size="25%", pad=0.1, sharex=ax)
    bar = divider.append_axes("bottom", size="4%", pad=0.6)
    names = channel_labels(rows_a.channel_names or rows_b.channel_names, rows_a.n_channels)
    both = fill_gaps(SeriesBatch.concatenate([rows_a.anonymous(), rows_b.anonymous()])).values
    centre, spread = both.mean(axis=0), np.where(both.std(axis=0) > 0, both.std(axis=0), 1.0)
    # Channels that vary most come first: only they are named in the legend.
    for k, u in enumerate(np.argsort(-both.std(axis=0), kind="stable")):
        line = {"linewidth": 0.9, **channel_style(int(u))}
        one, two = ((rows.values[:, u] - centre[u]) / spread[u] for rows in (rows_a, rows_b))
        left.plot(one, range(rows_a.n_steps), **line)
        shown = names[u] if k < _MOST_NAMED else "_"
        top.plot(range(rows_b.n_steps), two, label=shown, **line)
    left.invert_xaxis()
    for panel in (left, top):
        panel.tick_params(left=False, labelleft=False, bottom=False, labelbottom=False)
    left.set_xlabel("standardised", fontsize="small")
    text = f"{name_b}: similarity {alignment.similarity:.3f}, path of {alignment.length} steps"
    top.set_title(text, loc="left", fontsize="medium")
    more = f"channels, {_MOST_NAMED} of {len(names)}" if len(names) > _MOST_NAMED else "channels"
    # In the corner that the two panels leave free.
    top.legend(
        title=more, fontsize="x-small", title_fontsize="x-small", loc="lower right",
        bbox_to_anchor=(-0.02, 0.0), handlelength=1.2, borderaxespad=0.0,
    )  # fmt: skip
    label = "affinity of unit rows, a·b"
    ax.figure.colorbar(image, cax=bar, orientation="horizontal", label=label)
    return ax


def _one_series(x: Any) -> SeriesBatch:
    return x if isinstance(x, SeriesBatch) else as_series([x], layout="channels_first")


def _name(batch: SeriesBatch, otherwise: str) -> str:
    return otherwise if batch.series_names is None else batch.series_names[0]


def plot_contributions(
    explanation: Explanation, label: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the contributions of steps and channels to the decision for a class.

    Parameters
    ----------
    explanation
        From `slts.explain`.
    label
        The class; None is the predicted class. Two classes share contributions with opposite signs.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        A heat map: one row per channel; time runs right. Contributions and offset sum to the
        decision value. Below it is the series: the three channels that contribute most,
        standardised. Shades are the stretches that support the class most, with their share.
    """
    if not isinstance(explanation, Explanation):
        raise TypeError(
            f"The 'explanation' parameter of plot_contributions must be the result of "
            f"slts.explain(model, x). Got {type(explanation).__name__} instead."
        )
    position, sign = explanation.for_class(label)
    terms = sign * explanation.contributions[position]
    ax = axes_or_new(ax, figsize=(7.5, 5.0))
    names = channel_labels(explanation.channel_names, terms.shape[1])
    image = signed_image(ax, terms.T, aspect="auto", interpolation="nearest")
    divider = axes_grid.make_axes_locatable(ax)
    below = divider.append_axes("bottom", size="45%", pad=0.12, sharex=ax)
    bar = divider.append_axes("right", size="3%", pad=0.12)
    ax.figure.colorbar(image, cax=bar, label="contribution")
    values = explanation.series.values
    filled = fill_gaps(explanation.series).values
    spread = np.where(filled.std(axis=0) > 0, filled.std(axis=0), 1.0)
    sums = np.abs(terms.sum(axis=0))
    strongest = np.argsort(-sums, kind="stable").tolist()
    # The legend has the order of the rows.
    for u in sorted(strongest[:_MOST_DRAWN]):
        line = (values[:, u] - filled[:, u].mean()) / spread[u]
        below.plot(line, linewidth=1.0, label=names[u], **channel_style(u))
    below.legend(fontsize="small", ncols=3, loc="upper left", bbox_to_anchor=(0.0, -0.25))
    for stretch in explanation.stretches(label):
        below.axvspan(stretch.first - 0.5, stretch.last + 0.5, color="0.5", alpha=0.2, linewidth=0)
        middle = (stretch.first + stretch.last) / 2
        below.annotate(
            f"{stretch.share:.0%}", (middle, 0.98), xycoords=("data", "axes fraction"),
            ha="center", va="top", fontsize="x-small",
        )  # fmt: skip
    below.set_yticks([])
    below.set_ylabel("series")
    time_axis(below, explanation.series.times)
    ax.tick_params(labelbottom=False)
    ax.set_yticks(range(len(names)), names)
    ax.set_title(
        f"class {explanation.predicted if label is None else label}: decision value "
        f"{sign * explanation.decision[position]:.3f} = offset "
        f"{sign * explanation.offset[position]:.3f} + sum of contributions",
        fontsize="medium",
    )
    return ax


def plot_similarity_space(
    model: Any, X: Any, y: npt.ArrayLike, *, highlight: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw series as points: the first two principal components of what the model sees of them.

    Parameters
    ----------
    model
        A fitted classifier of slts, or a search or pipeline that ends in one. Its `features` are
        shown: similarities to landmarks or training series, or contributions of landmarks.
    X, y
        Series and their labels.
    highlight
        A class to distinguish from all others; None gives every class a colour and a marker.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Rings are landmarks, in the colour of their class. The title gives the share of the variance
        that the two components explain.
    """
    # Of a pipeline, the last step has the similarities, to the series as it sees them.
    classifier, X = required_inner_model(model, X)
    labels, batch = np.asarray(y), classifier.check_series(X)
    check_one_per_series(len(batch), labels, "y", "labels")
    pca = PCA(2, random_state=0)
    points = pca.fit_transform(classifier.features(batch))
    ax = axes_or_new(ax)
    rings, ring_labels = np.empty((0, 2)), labels[:0]
    if isinstance(classifier, LinearClassifier):
        rings = pca.transform(classifier.features(classifier.landmarks_))
        codes = [classifier.series_class(index) for index in classifier.landmark_indices_.tolist()]
        ring_labels = classifier.classes_[np.array(codes)]
    classes = [(str(label), labels == label, ring_labels == label) for label in np.unique(labels)]
    if highlight is not None:
        classes = [
            ("others", labels != highlight, ring_labels != highlight),
            (f"class {highlight}", labels == highlight, ring_labels == highlight),
        ]
    for k, (name, members, landmarks) in enumerate(classes):
        x, z = points[members].T
        ax.scatter(x, z, s=14, alpha=0.8, linewidths=0, label=name, **style(k))
        if len(ring_labels):
            x, z = rings[landmarks].T
            ax.scatter(x, z, s=60, facecolors="none", edgecolors=style(k)["color"])
    if len(ring_labels):
        ax.scatter([], [], s=60, facecolors="none", edgecolors="grey", label="landmark")
    ax.legend(fontsize="small")
    ax.set(xlabel="first component", ylabel="second component")
    ax.set_title(f"two components: {pca.explained_variance_ratio_.sum():.0%} of the variance")
    return ax
