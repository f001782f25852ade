"""Importance of channels and comparisons, and the learned metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slts._typing import FloatArray
from slts.explanation import ModelSummary
from slts.models.linear_form import LinearForm
from slts.report.packing import rounded


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
        forms = [form for form in model.linear_forms() if isinstance(form, LinearForm)]
        form = _readable(forms)
        metrics = _class_metrics(form)
        by_channel = rounded(shares(summary.channel_importance))
        if len(summary.comparison_names) > 1:
            means = rounded(shares(summary.comparison_importance).mean(axis=0))
            by_comparison = [
                list(pair) for pair in zip(summary.comparison_names, means, strict=True)
            ]
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


def _readable(forms: Sequence[LinearForm]) -> LinearForm:
    """The first form whose rows are channels, not principal components; else the first."""
    return next((form for form in forms if not form.has_components), forms[0])


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
            "part": None if n_phases == 1 else f"part {phase + 1} of {n_phases}",
            "values": rounded(metrics[decision, form.own_group(decision), phase], 3),
        }
        for decision in range(n_decisions)
        for phase in range(n_phases)
    ]
