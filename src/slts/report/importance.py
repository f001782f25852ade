"""Importance of channels and comparisons, and the learned metrics: content and section."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from slts._typing import FloatArray
from slts.explanation import ModelSummary, landmark_forms
from slts.models.linear_form import LinearForm
from slts.report.markup import MOST_COLUMNS, Cell, Content, meter, percent, section, table
from slts.report.packing import rounded

# Representations and objectives in words.
_WORDS = {
    "values": "the values of the channels",
    "changes": "the values and their changes from step to step",
    "levels": "how far values exceed levels of their channel, and how that changes",
    "affinity": "steps are aligned for the largest similarity",
    "cost": "steps are aligned for the smallest distance",
    "snippets": "how often short parts of training series occur",
}


def importance(model: Any, summary: ModelSummary | None, channels: list[str]) -> dict[str, Any]:
    """Importance of channels and comparisons, and the metrics to draw.

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
    by_channel = by_comparison = comparison = None
    metrics: list[dict[str, Any]] = []
    names = [*channels, "constant"]
    if summary is not None:
        forms = landmark_forms(model)
        # Rows that are channels, not principal components, if there are any.
        form = next((form for form in forms if not form.has_components), forms[0])
        metrics = _class_metrics(form)
        by_channel = rounded(shares(summary.channel_importance))
        if len(summary.comparison_names) > 1:
            means = rounded(shares(summary.comparison_importance).mean(axis=0))
            by_comparison = list(map(list, zip(summary.comparison_names, means, strict=True)))
            comparison = form.name
        if form.has_components or form.landmarks.n_channels > len(names):
            names = [f"feature {u}" for u in range(form.landmarks.n_channels)]
    elif hasattr(model, "metric_"):
        metrics = [{"decision": None, "part": None, "values": rounded(model.metric_, 3)}]
    return {
        "channels": by_channel,
        "comparisons": by_comparison,
        "metrics": metrics,
        "metric_channels": names[: len(metrics[0]["values"])] if metrics else [],
        "metric_comparison": comparison if metrics else None,
    }


def shares(values: FloatArray) -> FloatArray:
    """Divide each row by the sum of its absolute values."""
    totals = np.abs(values).sum(axis=1, keepdims=True)
    return np.asarray(values / np.where(totals > 0, totals, 1.0))


def _class_metrics(form: LinearForm) -> list[dict[str, Any]]:
    """The metrics of each decision value for the landmarks of its own class, by phase.

    Metrics of one decision value stand side by side on the page, distinguished by ``part``.
    """
    metrics = form.local_metrics
    n_decisions, _, n_phases, d, _ = metrics.shape
    if np.array_equal(metrics, np.broadcast_to(np.eye(d), metrics.shape)):
        return []
    return [
        {
            "decision": decision,
            "part": None if n_phases == 1 else f"phase {phase + 1} of {n_phases}",
            "values": rounded(metrics[decision, form.own_group(decision), phase], 3),
        }
        for decision in range(n_decisions)
        for phase in range(n_phases)
    ]


def importance_section(content: Content) -> str:
    """Importance of channels and comparisons, and the container of the metrics."""
    found = content["importance"]
    if found["channels"] is None and not found["metrics"]:
        return ""
    story, tables = "", []
    if found["channels"] is not None:
        story, listing = _channels(content)
        tables.append(listing)
    if found["comparisons"]:
        tables.append(_comparisons(found["comparisons"]))
    return section(
        "importance",
        story=story,
        tables=f'<div class="beside">{"".join(tables)}</div>' if tables else "",
        metrics=section("metrics", about=_about_metrics(found))
        if found["metrics"]
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


def _comparisons(comparisons: list[list[Any]]) -> str:
    peak = max(share for _, share in comparisons) or 1.0
    rows = [
        [
            Cell(f"{escape(name)}<small>{_words(name)}</small>", "about"),
            Cell(meter(share / peak, f"{100 * share:.1f}"), "total left"),
        ]
        for name, share in comparisons
    ]
    caption = (
        "The model compares series in several ways, each with its own alignments and metrics. "
        "Share of each comparison in the decision values, in percent."
    )
    return table("Importance of comparisons", rows, css="tint", caption=caption)


def _words(comparison: str) -> str:
    """What is compared, and how steps are aligned, in words."""
    what, _, objective = comparison.partition(", ")
    return "; ".join(_WORDS[part] for part in (what, objective) if part in _WORDS)


def _about_metrics(importance: Content) -> str:
    metrics, name = importance["metrics"], importance["metric_comparison"]
    sentences = [section("one_metric" if metrics[0]["decision"] is None else "metric_of_a_class")]
    if any(metric["part"] is not None for metric in metrics):
        sentences.append(section("metrics_of_phases"))
    if name is not None:
        sentences.append(section("metrics_of_comparison", name=escape(name), words=_words(name)))
    if "constant" in importance["metric_channels"]:
        sentences.append(section("constant_channel"))
    return " ".join(sentences)
