"""Models: metrics of a class, weights of its landmarks, and accuracy by their number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from slts.features.explanation import linear_model
from slts.features.summary import class_metrics, landmark_effects
from slts.plots.axes import (
    AGAINST,
    FOR,
    LINES,
    axes_or_new,
    channel_labels,
    signed_image,
    style,
    ticker,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_metric(model: Any, label: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the metric of one class: the weight of each pair of channels.

    A `LocalSLTSClassifier` has several metrics per class. Drawn is the one for landmarks of the
    same class in the first feature map, the mean over the phases of the landmarks;
    ``model_.metrics()`` returns them all.

    Parameters
    ----------
    model
        A fitted `LocalSLTSClassifier`, `SLTSClassifier` or `SLTSClassifierCV`.
    label
        The class. The two classes of an `SLTSClassifier` share one metric.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Rows are channels of the series, columns are channels of the landmarks.
    """
    by_phase = class_metrics(model, label)
    feature_map, metric = model.model_.aligned[0], by_phase.mean(axis=0)
    channels = channel_labels(model.channel_names_in_, model.n_channels_in_)
    ax = axes_or_new(ax, figsize=(6.0, 5.0))
    names = feature_map.row_map.row_names(channels)
    names = names or [f"feature {u}" for u in range(len(metric))]
    ax.figure.colorbar(signed_image(ax, metric), ax=ax, label="weight")
    phases = f", mean of {len(by_phase)} phases" if len(by_phase) > 1 else ""
    compared = "" if feature_map.bank_per_output else f" ({feature_map.name}{phases})"
    ax.set_title(f"metric of class {label}{compared}")
    ax.set(xlabel="channel of the landmark", ylabel="channel of the series")
    ax.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 2 else 0)
    ax.set_yticks(range(len(names)), names)
    return ax


def plot_landmark_weights(
    model: Any, label: Any, *, count: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the landmarks that count most for one class.

    The landmarks of a `LocalSLTSClassifier` have metrics, not weights. Drawn is their effect: how
    much the contribution to the decision value differs between the model's landmarks.

    Parameters
    ----------
    model
        A fitted classifier that `slts.explain` accepts.
    label
        The class. Two classes share the weights with opposite signs.
    count
        Largest number of landmarks.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        One bar per landmark, labelled with its class and name.
    """
    landmarks = linear_model(model).aligned[0]
    indices = model.landmark_indices_[landmarks.used]
    position, sign = model.decision_of(label)
    effects, weighted = landmark_effects(model)
    weights = sign * effects[position] if weighted else effects[position]
    used = np.flatnonzero(weights)
    used = used[np.argsort(-np.abs(weights[used]), kind="stable")]
    shown = used[:count][::-1]
    ax = axes_or_new(ax, figsize=(6.5, max(2.0, 0.25 * len(shown) + 1.0)))
    colours = np.where(weights[shown] > 0, FOR, AGAINST).tolist()
    hatches = np.where(weights[shown] > 0, "", "//").tolist()
    ax.barh(range(len(shown)), weights[shown], color=colours, hatch=hatches)
    names = [model.series_name(index) for index in indices[shown].tolist()]
    ax.set_yticks(range(len(shown)), names)
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set(xlabel="weight" if weighted else "effect on the decision value")
    listed = f", the first {len(shown)} shown" if len(shown) < len(used) else ""
    n_landmarks = len(model.landmark_indices_)
    ax.set_title(f"class {label}: {len(used)} of {n_landmarks} landmarks in use{listed}")
    return ax


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
    ax.yaxis.set_major_formatter(ticker.PercentFormatter(xmax=1.0))
    ax.legend()
    ax.grid(alpha=0.3)
    return ax
