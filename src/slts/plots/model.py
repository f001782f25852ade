"""What a model looks at: its metrics and its landmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slts.extras import import_extra
from slts.plots.axes import (
    COLOURS,
    DIVERGING,
    axes_or_new,
    channel_labels,
    class_position,
    signed_image,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from slts.models.linear_form import LinearForm

# Groups drawn unless others are asked for.
_MOST_GROUPS = 8


def plot_metric(model: Any, label: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the metric of one class: which channel of a series is compared with which of a landmark.

    Parameters
    ----------
    model
        A fitted `SLTSClassifier` or `SLTSClassifierCV`.
    label
        The class; with two classes, the second.
    ax
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Rows are channels of the series, columns channels of the landmarks.
    """
    form = _one_metric(model)[0]
    metrics = model.metrics_ if hasattr(model, "metrics_") else form.metrics
    metric = metrics[class_position(form.positives, label)]
    ax = axes_or_new(ax, figsize=(6.0, 5.0))
    names = channel_labels(model.landmarks_.channel_names, len(metric))
    signed_image(ax, metric, "weight")
    ax.set(title=f"metric of class {label}", xlabel="channel of the landmark")
    ax.set_ylabel("channel of the series")
    ax.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 2 else 0)
    ax.set_yticks(range(len(names)), names)
    return ax


def plot_local_metrics(
    model: Any, label: Any, *, comparison: int = 0, groups: Any = None, figure: Figure | None = None
) -> Figure:
    """Draw the metrics of one class by group of landmarks and phase.

    Parameters
    ----------
    model
        A fitted `LocalSLTSClassifier`.
    label
        The class; with two classes, the second.
    comparison
        Position in `comparisons_`.
    groups
        Which, as positions in `group_names_`; None shows the first eight.
    figure
        Where to draw; None makes a new one.

    Returns
    -------
    Figure
        One map for each group (down) and phase of the landmark (across), on one scale of colours.
    """
    form = model.linear_forms()[comparison]
    shown = np.arange(len(form.group_names))[:_MOST_GROUPS] if groups is None else np.array(groups)
    metrics = form.local_metrics[class_position(form.positives, label)][shown]
    n_groups, n_phases = metrics.shape[:2]
    if figure is None:
        pyplot = import_extra("matplotlib.pyplot", "plots")
        figure = pyplot.figure(
            figsize=(2.2 * n_phases + 1.5, 2.0 * n_groups + 0.8), layout="constrained"
        )
    largest = float(np.abs(metrics).max()) or 1.0
    axes = figure.subplots(n_groups, n_phases, squeeze=False)
    for g, row in enumerate(axes):
        row[0].set_ylabel(f"landmarks of {form.group_names[shown[g]]}")
        for f, ax in enumerate(row):
            image = ax.imshow(metrics[g, f], cmap=DIVERGING, vmin=-largest, vmax=largest)
            ax.set_xticks([])
            ax.set_yticks([])
            if g == 0 and n_phases > 1:
                ax.set_title(f"part {f + 1} of {n_phases}")
    figure.colorbar(image, ax=axes, label="weight", shrink=0.6)
    figure.supxlabel("row of the landmark")
    figure.supylabel("row of the series")
    figure.suptitle(f"metrics of class {label}: {form.name}")
    return figure


def _one_metric(model: Any) -> tuple[LinearForm, ...]:
    """The forms of a model with one metric per class: one, or one per class."""
    if not hasattr(model, "linear_form"):
        raise TypeError(
            f"{type(model).__name__} has several metrics for a class: use plot_local_metrics."
        )
    forms: tuple[LinearForm, ...] = model.linear_forms()
    return forms


def plot_landmark_weights(
    model: Any, label: Any, *, count: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the weights of the landmarks that weigh most for one class.

    Parameters
    ----------
    model
        A fitted classifier over landmarks.
    label
        The class; with two classes, the second.
    count
        How many at most.
    ax
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        One bar per landmark, named by the index of its training series.
    """
    forms = _one_metric(model)
    form = forms[0]
    coef = np.sum([form.coef for form in forms], axis=0)
    weights = coef[class_position(form.positives, label)]
    used = np.flatnonzero(weights)
    used = used[np.argsort(-np.abs(weights[used]), kind="stable")]
    shown = used[:count][::-1]
    ax = axes_or_new(ax, figsize=(6.0, max(2.0, 0.25 * len(shown) + 1.0)))
    colours = [COLOURS[0] if weight > 0 else COLOURS[1] for weight in weights[shown]]
    bars = ax.barh(range(len(shown)), weights[shown], color=colours)
    for bar, weight in zip(bars, weights[shown], strict=True):
        bar.set_hatch("" if weight > 0 else "//")
    ax.set_yticks(range(len(shown)), [str(k) for k in form.landmark_indices[shown]])
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set(xlabel="weight", ylabel="landmark (training series)")
    ax.set_title(f"class {label}: {len(used)} of {len(model.landmark_indices_)} landmarks in use")
    return ax
