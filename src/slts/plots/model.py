"""Models: metrics of a class, weights of its landmarks, contributions to a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slts.extras import import_extra
from slts.models.linear_form import LinearForm
from slts.models.row_map import RowMap
from slts.plots.axes import (
    COLOURS,
    DIVERGING,
    axes_or_new,
    channel_labels,
    integer_ticks,
    signed_image,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from slts.explanation import Explanation

# Number of groups drawn by default.
_MOST_GROUPS = 8


def plot_metric(model: Any, label: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the metric of one class: the weight of each pair of channels.

    Parameters
    ----------
    model
        A fitted `SLTSClassifier` or `SLTSClassifierCV`.
    label
        The class. Two classes share one metric.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Rows are channels of the series, columns are channels of the landmarks.
    """
    form = _single_form(model)
    metric = form.metrics[model.decision_of(label)[0]]
    ax = axes_or_new(ax, figsize=(6.0, 5.0))
    names = channel_labels(model.channel_names_in_, len(metric))
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
        The class. Two classes share the metrics with opposite signs.
    comparison
        Position in `comparisons_`.
    groups
        Positions in `group_names_`; None draws the first eight groups.
    figure
        Figure to draw on; None makes a new one.

    Returns
    -------
    Figure
        One row per group, one column per phase of the landmark, one colour scale for all.
    """
    form = [form for form in model.linear_forms() if isinstance(form, LinearForm)][comparison]
    shown = np.arange(len(form.group_names))[:_MOST_GROUPS] if groups is None else np.array(groups)
    position, sign = model.decision_of(label)
    metrics = sign * form.local_metrics[position, shown]
    n_groups, n_phases = metrics.shape[:2]
    if figure is None:
        size = (2.2 * n_phases + 1.5, 2.0 * n_groups + 0.8)
        pyplot = import_extra("matplotlib.pyplot", "plots")
        figure = pyplot.figure(figsize=size, layout="constrained")
    largest = float(np.abs(metrics).max()) or 1.0
    axes = figure.subplots(n_groups, n_phases, squeeze=False)
    for g, row in enumerate(axes):
        row[0].set_ylabel(f"landmarks of {form.group_names[shown[g]]}")
        for f, ax in enumerate(row):
            image = ax.imshow(metrics[g, f], cmap=DIVERGING, vmin=-largest, vmax=largest)
            ax.set(xticks=[], yticks=[])
            if g == 0 and n_phases > 1:
                ax.set_title(f"part {f + 1} of {n_phases}")
    figure.colorbar(image, ax=axes, label="weight", shrink=0.6)
    figure.supxlabel("row of the landmark")
    figure.supylabel("row of the series")
    figure.suptitle(f"metrics of class {label}: {form.name}")
    return figure


def plot_landmark_weights(
    model: Any, label: Any, *, count: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the largest landmark weights of one class.

    Parameters
    ----------
    model
        A fitted classifier with one metric per class.
    label
        The class. Two classes share the weights with opposite signs.
    count
        Largest number of landmarks.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        One bar per landmark, labelled with the index of its training series.
    """
    form = _single_form(model)
    position, sign = model.decision_of(label)
    weights = sign * form.coef[position]
    used = np.flatnonzero(weights)
    used = used[np.argsort(-np.abs(weights[used]), kind="stable")]
    shown = used[:count][::-1]
    ax = axes_or_new(ax, figsize=(6.0, max(2.0, 0.25 * len(shown) + 1.0)))
    positive = weights[shown] > 0
    ax.barh(
        range(len(shown)),
        weights[shown],
        color=[COLOURS[0] if sign else COLOURS[1] for sign in positive],
        hatch=["" if sign else "//" for sign in positive],
    )
    ax.set_yticks(range(len(shown)), [str(k) for k in form.landmark_indices[shown]])
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set(xlabel="weight", ylabel="landmark (training series)")
    # The form has the landmarks with a weight. SimilaritySVC has no others.
    n_chosen = len(getattr(model, "landmark_indices_", form.landmark_indices))
    ax.set_title(f"class {label}: {len(used)} of {n_chosen} landmarks in use")
    return ax


def plot_contributions(
    explanation: Explanation, label: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the contributions of steps and channels to the decision for a class.

    Parameters
    ----------
    explanation
        From `slts.explain`.
    label
        The class; None is the predicted class. Two classes share one map with opposite signs.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        One row per channel; time runs right. Map and offset sum to the decision value.
    """
    position, sign = explanation.for_class(label)
    terms = sign * explanation.contributions[position]
    ax = axes_or_new(ax, figsize=(7.0, 4.0))
    names = channel_labels(explanation.channel_names, terms.shape[1])
    signed_image(ax, terms.T, "contribution", aspect="auto", interpolation="nearest")
    ax.set_yticks(range(len(names)), names)
    ax.xaxis.set_major_locator(integer_ticks())
    ax.set(xlabel="step", ylabel="channel")
    ax.set_title(
        f"class {explanation.predicted if label is None else label}: decision "
        f"{sign * explanation.decision[position]:.3f} = "
        f"{sign * explanation.offset[position]:.3f} + map"
    )
    return ax


def _single_form(model: Any) -> LinearForm:
    """The linear form of a model with one metric per class."""
    forms: tuple[Any, ...] = model.linear_forms() if hasattr(model, "linear_forms") else ()
    form: LinearForm | None = forms[0] if len(forms) == 1 else None
    # A local classifier may have one metric too, but not of the channels of the data.
    if form is not None and form.has_one_metric and isinstance(form.rows, RowMap):
        return form
    raise TypeError(
        f"{type(model).__name__} does not have one metric per class. For LocalSLTSClassifier "
        f"use plot_local_metrics."
    )
