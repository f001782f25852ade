"""What a model looks at: channels, metrics, landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slts._typing import FloatArray
from slts.estimators.ldmlt import LDMLTClassifier
from slts.explanation import summarize
from slts.models.linear_form import LinearForm
from slts.report.packing import short, shorts
from slts.series import SeriesBatch


@dataclass(frozen=True)
class MetricMap:
    """One matrix to draw as a heat map.

    Attributes
    ----------
    problem
        Which decision value it belongs to; None if all share it.
    part
        What tells it from other maps of the same problem, such as a phase; maps of one problem
        stand side by side.
    values
        The matrix, shape (channels of the series, channels of the landmark).
    """

    problem: int | None
    part: str | None
    values: FloatArray


def metric_maps(model: Any) -> list[MetricMap]:
    """The learned metrics of a model; none where it compares like with like (M = I).

    Of a model with a metric for every group of landmarks and phase, those of a class for the
    landmarks of the same class are drawn, phase by phase.
    """
    if isinstance(model, LDMLTClassifier):
        return [MetricMap(None, None, model.metric_)]
    if not hasattr(model, "linear_forms"):
        return []
    if hasattr(model, "metrics_"):
        identity = np.broadcast_to(np.eye(model.metrics_.shape[1]), model.metrics_.shape)
        plain = np.array_equal(model.metrics_, identity)
        return [] if plain else [MetricMap(c, None, M) for c, M in enumerate(model.metrics_)]
    form = _plainest(model.linear_forms())
    n_problems, _, n_phases, d, _ = form.local_metrics.shape
    if np.array_equal(form.local_metrics, np.broadcast_to(np.eye(d), form.local_metrics.shape)):
        return []
    maps = []
    for problem in range(n_problems):
        group = _own_group(form, problem)
        for phase in range(n_phases):
            part = None if n_phases == 1 else f"part {phase + 1} of {n_phases}"
            maps.append(MetricMap(problem, part, form.local_metrics[problem, group, phase]))
    return maps


def _plainest(forms: tuple[LinearForm, ...]) -> LinearForm:
    """The form whose rows are the channels, if there is one: its metrics can be read."""
    plain = [form for form in forms if getattr(form.rows, "components", None) is None]
    return (plain or list(forms))[0]


def _comparison(model: Any) -> str | None:
    """Which of several forms the maps are of."""
    forms = model.linear_forms() if hasattr(model, "linear_forms") else ()
    return _plainest(forms).name if len(forms) > 1 and not realigned(model) else None


def realigned(model: Any) -> bool:
    """Whether each class has paths of its own; its forms are then no comparisons of the series."""
    return getattr(model, "path_metrics_", None) is not None


def _own_group(form: LinearForm, problem: int) -> int:
    """Landmarks of the class itself; where groups are others, those with the largest metrics."""
    label = str(form.positives[problem])
    if label in form.group_names:
        return form.group_names.index(label)
    sizes = np.square(form.local_metrics[problem]).sum(axis=(1, 2, 3))
    return int(sizes.argmax())


def _names_of_rows(model: Any, channels: list[str], d: int) -> list[str]:
    """Names of the rows and columns of the maps."""
    form = _plainest(model.linear_forms()) if hasattr(model, "linear_forms") else None
    reduced = form is not None and getattr(form.rows, "components", None) is not None
    if reduced or d > len(channels) + 1:
        return [f"feature {u}" for u in range(d)]
    return [*channels, "constant"][:d]


def looks_at(model: Any, series: SeriesBatch | None, channels: list[str]) -> dict[str, Any]:
    """Channel importance and metric maps.

    Parameters
    ----------
    model
        A fitted classifier.
    series
        To average importance over; None takes the landmarks.
    channels
        Their names.

    Returns
    -------
    dict
        ``importance`` has one row per problem, each a share of its sum, and is None where
        decisions are no sums over channels; ``n_numbers`` is what the model stores.
    """
    importance = n_numbers = comparisons = None
    if hasattr(model, "linear_forms"):
        summary = summarize(model, series, n_jobs=model.n_jobs)
        totals = summary.channel_importance.sum(axis=1, keepdims=True)
        importance = summary.channel_importance / np.where(totals > 0, totals, 1.0)
        n_numbers = summary.n_numbers
        if len(summary.comparison_names) > 1 and not realigned(model):
            of_comparison = (
                summary.comparison_importance / summary.comparison_importance.sum(axis=1)[:, None]
            ).mean(0)
            comparisons = [
                [name, short(share)]
                for name, share in zip(summary.comparison_names, of_comparison, strict=True)
            ]
    maps = [
        {"problem": m.problem, "part": m.part, "values": shorts(m.values, 3)}
        for m in metric_maps(model)
    ]
    names = _names_of_rows(model, channels, len(maps[0]["values"])) if maps else []
    return {
        "importance": None if importance is None else shorts(importance),
        "on": "landmarks" if series is None else "series",
        "maps": maps,
        "names": names,
        "comparisons": comparisons,
        "comparison": _comparison(model) if maps else None,
        "n_numbers": n_numbers,
    }


def has_weights(model: Any) -> bool:
    """Whether landmarks differ by their weights; else they differ by the metrics of their group."""
    forms = model.linear_forms()
    one = len(forms) == 1 and forms[0].local_metrics.shape[1:3] == (1, 1)
    return one or realigned(model)


def landmark_weights(coef: FloatArray) -> FloatArray:
    """Share of each landmark in the weights of each problem, with their signs.

    Weights of different problems have no common unit; shares do.
    """
    totals = np.abs(coef).sum(axis=1, keepdims=True)
    return np.asarray(coef / np.where(totals > 0, totals, 1.0))


def landmark_shares(model: Any, series: SeriesBatch | None) -> FloatArray:
    """Mean share of each landmark in the size of the scores, shape (problems, landmarks)."""
    batch = model.landmarks_ if series is None else series
    n_landmarks = len(model.landmark_indices_)
    terms = np.abs(model.transform(batch)).reshape(len(batch), -1, n_landmarks).mean(axis=0)
    totals = terms.sum(axis=1, keepdims=True)
    return np.asarray(terms / np.where(totals > 0, totals, 1.0))
