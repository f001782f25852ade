"""Models: metrics of a class, weights of its landmarks, contributions to a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slts.explanation import landmark_strength
from slts.extras import import_extra
from slts.models.linear_form import LinearForm
from slts.models.row_map import RowMap
from slts.plots.axes import (
    AGAINST,
    CHANNELS,
    FOR,
    axes_or_new,
    channel_labels,
    signed_colours,
    signed_image,
    time_axis,
)
from slts.series.missing import fill_gaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from slts.explanation import Explanation

# Number of groups drawn by default.
_MOST_GROUPS = 8


def plot_metric(model: Any, label: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the metric of one class: the weight of each pair of channels.

    A `LocalSLTSClassifier` has several metrics per class. Drawn is the one for landmarks of the
    same class in the first comparison, the mean over the parts of the landmarks;
    `plot_local_metrics` draws them all.

    Parameters
    ----------
    model
        A fitted `LocalSLTSClassifier`, `SLTSClassifier` or `SLTSClassifierCV`.
    label
        The class. Two classes share one metric.
    ax
        Axes to draw on; None makes a new figure.

    Returns
    -------
    Axes
        Rows are channels of the series, columns are channels of the landmarks.
    """
    form = _first_form(model)
    position, sign = model.decision_of(label)
    own = form.local_metrics[position, form.own_group(position)]
    if sign < 0 and str(label) in form.group_names:
        own = sign * form.local_metrics[position, form.group_names.index(str(label))]
    metric = own.mean(axis=0)
    ax = axes_or_new(ax, figsize=(6.0, 5.0))
    names = channel_labels(model.channel_names_in_, len(metric))
    if form.has_components or len(metric) > len(names):
        names = [f"feature {u}" for u in range(len(metric))]
    ax.figure.colorbar(signed_image(ax, metric), ax=ax, label="weight")
    parts = f", mean of {len(own)} parts" if len(own) > 1 else ""
    comparison = f" ({form.name}{parts})" if form.name else ""
    ax.set(title=f"metric of class {label}{comparison}", xlabel="channel of the landmark")
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
    names = channel_labels(model.channel_names_in_, metrics.shape[-1])
    if form.has_components or metrics.shape[-1] > len(names):
        # Components, and levels or changes of a channel, have no name of their own.
        names = []
    largest = float(np.abs(metrics).max()) or 1.0
    axes = figure.subplots(n_groups, n_phases, squeeze=False)
    for g, row in enumerate(axes):
        row[0].set_ylabel(f"landmarks of {form.group_names[shown[g]]}")
        for f, ax in enumerate(row):
            image = ax.imshow(metrics[g, f], cmap=signed_colours(), vmin=-largest, vmax=largest)
            ax.set_yticks(range(len(names)) if f == 0 else [], names if f == 0 else [])
            last = g == n_groups - 1
            ax.set_xticks(range(len(names)) if last else [], names if last else [], rotation=90)
            ax.tick_params(labelsize="x-small")
            if g == 0 and n_phases > 1:
                ax.set_title(f"part {f + 1} of {n_phases}")
    figure.colorbar(image, ax=axes, label="weight", shrink=0.6)
    figure.suptitle(
        f"metrics of class {label}: {form.name}\nrows: of the series, columns: of the landmark",
        fontsize="medium",
    )
    return figure


def plot_landmark_weights(
    model: Any, label: Any, *, count: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the landmarks that count most for one class.

    The landmarks of a `LocalSLTSClassifier` have metrics, not weights. Drawn is their effect: how
    much the contribution to the score differs between the model's landmarks.

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
    form, (position, sign) = _first_form(model), model.decision_of(label)
    weights = sign * form.coef[position]
    weighted = form.has_one_metric and isinstance(form.rows, RowMap)
    if not weighted:
        features = model.transform(model.landmarks_)
        weights = landmark_strength(features, len(form.positives), len(form.landmarks))[position]
    used = np.flatnonzero(weights)
    used = used[np.argsort(-np.abs(weights[used]), kind="stable")]
    shown = used[:count][::-1]
    ax = axes_or_new(ax, figsize=(6.5, max(2.0, 0.25 * len(shown) + 1.0)))
    positive = weights[shown] > 0
    ax.barh(
        range(len(shown)),
        weights[shown],
        color=[FOR if sign else AGAINST for sign in positive],
        hatch=["" if sign else "//" for sign in positive],
    )
    names = [model.series_name(index) for index in form.landmark_indices[shown].tolist()]
    ax.set_yticks(range(len(shown)), names)
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set(xlabel="weight" if weighted else "effect on the score")
    # The form has the landmarks with a weight. SimilaritySVC has no others.
    n_chosen = len(getattr(model, "landmark_indices_", form.landmark_indices))
    listed = f", the first {len(shown)} shown" if len(shown) < len(used) else ""
    ax.set_title(f"class {label}: {len(used)} of {n_chosen} landmarks in use{listed}")
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
        The map: one row per channel; time runs right. Map and offset sum to the decision value.
        Below it is the series: the three channels that contribute most, standardised.
    """
    position, sign = explanation.for_class(label)
    terms = sign * explanation.contributions[position]
    ax = axes_or_new(ax, figsize=(7.5, 5.0))
    names = channel_labels(explanation.channel_names, terms.shape[1])
    image = signed_image(ax, terms.T, aspect="auto", interpolation="nearest")
    divider = import_extra("mpl_toolkits.axes_grid1", "plots").make_axes_locatable(ax)
    below = divider.append_axes("bottom", size="45%", pad=0.12, sharex=ax)
    bar = divider.append_axes("right", size="3%", pad=0.12)
    ax.figure.colorbar(image, cax=bar, label="contribution")
    values = explanation.series.values
    filled = fill_gaps(explanation.series).values
    spread = np.where(filled.std(axis=0) > 0, filled.std(axis=0), 1.0)
    # Channels of the data; a map can also have the constant channel.
    sums = np.abs(terms.sum(axis=0))[: values.shape[1]]
    strongest = np.argsort(-sums, kind="stable").tolist()
    # The legend has the order of the rows of the map.
    for u, colour in sorted(zip(strongest, CHANNELS, strict=False)):
        line = (values[:, u] - filled[:, u].mean()) / spread[u]
        below.plot(line, color=colour, linewidth=1.0, label=names[u])
    below.legend(fontsize="small", ncols=3, loc="upper left", bbox_to_anchor=(0.0, -0.25))
    below.set_yticks([])
    below.set_ylabel("series")
    time_axis(below, explanation.series.times)
    ax.tick_params(labelbottom=False)
    ax.set_yticks(range(len(names)), names)
    ax.set_title(
        f"class {explanation.predicted if label is None else label}: score "
        f"{sign * explanation.decision[position]:.3f} = offset "
        f"{sign * explanation.offset[position]:.3f} + sum of the map",
        fontsize="medium",
    )
    return ax


def _first_form(model: Any) -> LinearForm:
    """The first linear form of a model."""
    if not hasattr(model, "linear_forms"):
        raise TypeError(
            f"{type(model).__name__} has no landmarks with weights or metrics. Use a classifier "
            f"that slts.explain accepts."
        )
    form: LinearForm = model.linear_forms()[0]
    return form
