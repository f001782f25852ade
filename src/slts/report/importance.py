"""Importance of channels and feature maps, and the learned metrics: content and section."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from slts._typing import FloatArray
from slts.estimators.linear import LinearClassifier
from slts.estimators.neighbours import NearestNeighbor
from slts.features.summary import ModelSummary, class_metrics
from slts.report.markup import MOST_COLUMNS, Cell, Content, meter, percent, section, table
from slts.report.packing import rounded

# Feature maps in words.
_WORDS = {
    "values": "the values of the channels",
    "changes": "the values and their changes from step to step",
    "snippets": "how often short parts of training series occur",
}


def importance(model: Any, summary: ModelSummary | None, channels: list[str]) -> dict[str, Any]:
    """Importance of channels and feature maps, and the metrics to draw.

    Parameters
    ----------
    model
        A fitted classifier.
    summary
        From `slts.summarize`; None if the model cannot be summarized.
    channels
        Names of the channels.

    Returns
    -------
    dict
        ``channels`` has one row of shares per decision value, or is None if decisions are not sums
        over channels. ``metrics`` is empty if the model has no learned metric.
    """
    by_channel = by_map = metric_map = None
    metrics: list[dict[str, Any]] = []
    names = [*channels, "constant"]
    if summary is not None:
        aligned = model.model_.aligned
        # Rows that are channels, if there are any.
        named = (k for k, one in enumerate(aligned) if one.row_map.row_names(channels))
        drawn = next(named, 0)
        metrics, row_map = _class_metrics(model, drawn), aligned[drawn].row_map
        by_channel = rounded(shares(summary.channel_importance))
        if len(summary.map_names) > 1:
            means = rounded(shares(summary.map_importance).mean(axis=0))
            by_map = list(map(list, zip(summary.map_names, means, strict=True)))
            metric_map = aligned[drawn].name
        n_rows = aligned[drawn].shape[2]
        names = row_map.row_names(channels) or [f"feature {u}" for u in range(n_rows)]
    elif isinstance(model, NearestNeighbor) and model.model_.metric is not None:
        values = rounded(model.model_.metric, 3)
        metrics = [{"decision": None, "part": None, "values": values}]
    return {
        "channels": by_channel,
        "feature_maps": by_map,
        "metrics": metrics,
        "metric_channels": names[: len(metrics[0]["values"])] if metrics else [],
        "metric_map": metric_map if metrics else None,
    }


def shares(values: FloatArray) -> FloatArray:
    """Divide each row by the sum of its absolute values."""
    totals = np.abs(values).sum(axis=1, keepdims=True)
    return np.asarray(values / np.where(totals > 0, totals, 1.0))


def _class_metrics(model: LinearClassifier, feature_map: int) -> list[dict[str, Any]]:
    """The metrics of each decision value for the landmarks of its class, by phase.

    Metrics of one decision value stand side by side on the page, distinguished by ``part``.
    """
    metrics = [class_metrics(model, label, feature_map) for label in model.positive_classes_]
    if all((values == np.eye(len(values))).all() for phases in metrics for values in phases):
        return []
    return [
        {
            "decision": decision,
            "part": None if len(phases) == 1 else f"phase {phase + 1} of {len(phases)}",
            "values": rounded(values, 3),
        }
        for decision, phases in enumerate(metrics)
        for phase, values in enumerate(phases)
    ]


def importance_section(content: Content) -> str:
    """Importance of channels and feature maps, and the container of the metrics."""
    parts = content["importance"]
    if parts["channels"] is None and not parts["metrics"]:
        return ""
    story, tables = "", []
    if parts["channels"] is not None:
        story, listing = _channels(content)
        tables.append(listing)
    if parts["feature_maps"]:
        tables.append(_feature_maps(parts["feature_maps"]))
    return section(
        "importance",
        story=story,
        tables=f'<div class="beside">{"".join(tables)}</div>' if tables else "",
        metrics=section("metrics", about=_about_metrics(parts))
        if parts["metrics"]
        else section("no_metrics"),
    )


def _channels(content: Content) -> tuple[str, str]:
    """A sentence about the most important channel, and a table of all channels."""
    model, importance = content["model"], content["importance"]["channels"]
    names = [*model["channels"], "constant"][: len(importance[0])]
    mean = [sum(column) / len(importance) for column in zip(*importance, strict=True)]
    largest, peak = max(mean) or 1.0, max(map(max, importance)) or 1.0
    by_class = 1 < len(importance) <= MOST_COLUMNS
    rows: list[list[str | Cell]] = []
    for u in range(len(names)):
        rows.append(
            [names[u], Cell(meter(mean[u] / largest, f"{100 * mean[u]:.1f}"), "total left")]
        )
        if by_class:
            rows[-1] += [
                Cell(f"{100 * row[u]:.0f}", "yes", f"--t:{row[u] / peak:.2f}") for row in importance
            ]
    head: list[str | Cell] = [Cell("channel", "corner"), Cell("mean", "left")]
    if by_class:
        head += [model["classes"][c] for c in model["decision_classes"]]
    over = "the landmarks" if content["data"] is None else "the series of this report"
    caption = f"Share of the absolute contributions in percent, averaged over {over}."
    if by_class:
        caption += " One column per class."
    if len(names) > len(model["channels"]):
        caption += f" {section('constant_channel')}"
    top = max(range(len(names)), key=mean.__getitem__)
    story = f"<strong>{escape(names[top])}</strong> is the most important channel"
    average = " on average over the classes" if len(importance) > 1 else ""
    listing = table("Importance of channels", rows, head=head, css="tint", caption=caption)
    return f"<p>{story}{average}: {percent(mean[top])} of all contributions.</p>", listing


def _feature_maps(importance: list[list[Any]]) -> str:
    peak = max(share for _, share in importance) or 1.0
    rows = [
        [
            Cell(f"{escape(name)}<small>{_WORDS[name]}</small>", "about"),
            Cell(meter(share / peak, f"{100 * share:.1f}"), "total left"),
        ]
        for name, share in importance
    ]
    caption = (
        "The model compares series in several ways, its feature maps. Share of each feature map in "
        "the decision values, in percent."
    )
    return table("Importance of feature maps", rows, css="tint", caption=caption)


def _about_metrics(importance: Content) -> str:
    metrics, name = importance["metrics"], importance["metric_map"]
    sentences = [section("one_metric" if metrics[0]["decision"] is None else "metric_of_a_class")]
    if any(metric["part"] is not None for metric in metrics):
        sentences.append(section("metrics_of_phases"))
    if name is not None:
        sentences.append(section("metrics_of_map", name=escape(name), words=_WORDS[name]))
    if "constant" in importance["metric_channels"]:
        sentences.append(section("constant_channel"))
    return " ".join(sentences)
