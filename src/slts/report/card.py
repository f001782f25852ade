"""The model card: parameters, what came out of the fit, and where everything is from."""

from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from slts import __version__
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.report.insight import realigned
from slts.report.markup import count
from slts.report.packing import short
from slts.report.sample import Sample
from slts.series import SeriesBatch

# Packages whose numerics a model depends on.
_PACKAGES = ("numpy", "scipy", "scikit-learn")
# Longest value of a parameter that is written out.
_LONGEST = 160


def card(model: Any, inner: Any, sample: Sample | None, n_numbers: int | None) -> dict[str, Any]:
    """Parameters, facts and provenance.

    Parameters
    ----------
    model
        What was given.
    inner
        The classifier inside a search; `model` itself otherwise.
    sample
        The data given, if any.
    n_numbers
        Numbers the model stores, if known.
    """
    classifier = type(inner)
    return {
        "estimator": type(model).__name__,
        "classifier": f"{classifier.__module__.partition('.')[0]}.{classifier.__name__}",
        "parameters": _parameters(inner),
        "chosen": [[name, str(value)] for name, value in _chosen(model, inner).items()],
        "facts": _facts(inner, n_numbers),
        "limits": _limits(inner),
        "provenance": {
            "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "library": f"slts {__version__}",
            "software": ", ".join(f"{name} {version(name)}" for name in _PACKAGES),
            "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
            "model": model_fingerprint(inner),
            "data": None if sample is None else data_fingerprint(sample.batch, sample.labels),
        },
    }


def model_fingerprint(model: Any) -> str | None:
    """Digest of the numbers a model decides with; None where they are not known."""
    if hasattr(model, "linear_forms"):
        parts = []
        for form in model.linear_forms():
            parts += [form.landmarks.values, form.landmarks.offsets, form.coef]
            parts += [form.local_metrics, form.groups, form.intercept]
    elif hasattr(model, "training_rows_"):
        parts = [model.training_rows_.values, model.training_rows_.offsets, model.training_codes_]
        parts.append(getattr(model, "metric_", np.empty(0)))
    else:
        return None
    return _digest([*parts, np.asarray(model.classes_)])


def data_fingerprint(batch: SeriesBatch, labels: Any) -> str:
    """Digest of series and labels."""
    parts = [batch.values, batch.offsets]
    return _digest(parts if labels is None else [*parts, np.asarray(labels)])


def _digest(arrays: list[Any]) -> str:
    digest = hashlib.sha256()
    for array in map(np.asarray, arrays):
        text = array.dtype.kind in "OUS"
        content = repr(array.tolist()).encode() if text else np.ascontiguousarray(array).tobytes()
        digest.update(f"{array.shape}".encode() + content)
    return f"sha256:{digest.hexdigest()}"


def _parameters(model: Any) -> list[dict[str, Any]]:
    if not hasattr(model, "get_params"):
        return []
    try:
        defaults = type(model)().get_params(deep=False)
    except TypeError:
        # A classifier that cannot be made without arguments.
        defaults = {}
    rows = []
    for name, value in model.get_params(deep=False).items():
        text = repr(value)
        rows.append(
            {
                "name": name,
                "value": text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…",
                "default": name in defaults and repr(defaults[name]) == text,
            }
        )
    return rows


def _chosen(model: Any, inner: Any) -> dict[str, Any]:
    """Parameters found by a search, ours or scikit-learn's."""
    return {**getattr(model, "best_params_", {}), **getattr(inner, "best_params_", {})}


def _facts(model: Any, n_numbers: int | None) -> list[list[str]]:
    facts = [
        ["Classes", str(len(model.classes_))],
        ["Channels", str(getattr(model, "n_channels_in_", model.n_features_in_))]
        if hasattr(model, "n_features_in_")
        else ["Channels", "not recorded"],
    ]
    if hasattr(model, "n_series_in_"):
        steps = f"{model.n_series_in_:,} series, together {model.n_steps_in_:,} steps"
        facts.append(["Trained on", steps])
    if isinstance(model, LandmarkClassifier):
        used = int(np.count_nonzero(model.coef_.any(axis=0)))
        facts.append(["Landmarks", f"{used} with a weight, of {len(model.landmarks_)} chosen"])
    if hasattr(model, "reports_"):
        worst = max((report.gap for report in model.reports_), default=0.0)
        unsolved = sum(not report.converged for report in model.reports_)
        facts.append(
            [
                "Solver",
                f"{count(len(model.reports_), 'convex problem')}, "
                + ("solved" if not unsolved else f"{unsolved} not solved to tolerance")
                + f"; largest duality gap {short(worst, 2):g}",
            ]
        )
    if hasattr(model, "best_score_"):
        facts.append(["Held-out accuracy in the search", f"{100 * model.best_score_:.1f}%"])
    if n_numbers is not None:
        facts.append(["Numbers stored", f"{n_numbers:,}"])
    return facts


def _limits(model: Any) -> list[str]:
    """What a reader might otherwise take the report to say."""
    limits = []
    if hasattr(model, "linear_forms"):
        limits.append(
            "Contributions are exact sums: they say what the model used, not what would happen in "
            "the world if a channel changed."
        )
    rows = getattr(model, "row_map_", None)
    if getattr(model, "normalize", False) and rows is not None and rows.constant is None:
        limits.append(
            "Every step is scaled to unit length first: how strong a step is plays no part, only "
            "how its channels relate."
        )
    if realigned(model) and len(model.classes_) > 2:
        limits.append(
            "Every class has alignments of its own, under its metric: lines between aligned steps "
            "are drawn as the predicted class has them."
        )
    limits.append(
        "It answers with one of the classes it was trained on, whatever it is given; it cannot say "
        "that a series belongs to none of them."
    )
    return limits
