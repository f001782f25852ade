"""The model card: parameters, facts about the fit, provenance."""

from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from typing import Any

import numpy as np

from slts import __version__
from slts.models.snippets import SnippetForm
from slts.quantities import count, list_first
from slts.report.markup import Cell, Content, items, section, table
from slts.report.packing import rounded
from slts.report.predictions import Predictions
from slts.series import SeriesBatch

# Largest number of class names in the model card.
_MOST_NAMES = 60
# Packages that determine the numbers of a model.
_PACKAGES = ("numpy", "scipy", "scikit-learn")
# Largest length of the text of a parameter.
_LONGEST = 160


def card(
    model: Any, inner: Any, predictions: Predictions | None, n_numbers: int | None
) -> dict[str, Any]:
    """Parameters, facts and provenance.

    Parameters
    ----------
    model
        The model of the report.
    inner
        The classifier in a search; otherwise `model` itself.
    predictions
        The series of the report, if any.
    n_numbers
        Numbers that the model stores, if known.
    """
    own = type(inner)
    facts = [["Classifier", f"{own.__module__.partition('.')[0]}.{own.__name__}"]]
    facts += _facts(inner)
    if n_numbers is not None:
        facts.append(["Numbers stored", f"{n_numbers:,}"])
    # Parameters found by a search, of scikit-learn or of the classifier itself.
    chosen = {**getattr(model, "best_params_", {}), **getattr(inner, "best_params_", {})}
    if chosen:
        text = ", ".join(f"{name} = {value}" for name, value in chosen.items())
        facts.append(["Chosen by the search", text])
    provenance = [
        ["Software", ", ".join(f"{name} {version(name)}" for name in _PACKAGES)],
        ["Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"],
    ]
    fingerprint = model_fingerprint(inner)
    if fingerprint is not None:
        provenance.append(["Fingerprint of the model", fingerprint])
    if predictions is not None:
        fingerprint = data_fingerprint(predictions.batch, predictions.labels)
        provenance.append(["Fingerprint of the data", fingerprint])
    return {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "library": f"slts {__version__}",
        "facts": facts,
        "limits": _limits(inner),
        "provenance": provenance,
        "parameters": _parameters(inner),
    }


def model_fingerprint(model: Any) -> str | None:
    """Digest of the numbers that determine the predictions; None if unknown."""
    if hasattr(model, "linear_forms"):
        parts = []
        for form in model.linear_forms():
            if isinstance(form, SnippetForm):
                parts += _numbers_of_snippets(form)
                continue
            parts += [form.landmarks.values, form.landmarks.offsets, form.coef]
            parts += [form.local_metrics, form.groups, form.intercept]
    elif hasattr(model, "training_rows_"):
        parts = [model.training_rows_.values, model.training_rows_.offsets, model.training_codes_]
        parts.append(getattr(model, "metric_", np.empty(0)))
    else:
        return None
    return _digest([*parts, np.asarray(model.classes_)])


def _numbers_of_snippets(form: SnippetForm) -> list[Any]:
    snippets = form.snippets
    scale = [snippets.scale.centre, snippets.scale.spread]
    places = [snippets.first, snippets.channels, snippets.dilations]
    how = [snippets.shape_only, snippets.by_strength]
    limits = [snippets.thresholds, snippets.longest or 0]
    return [snippets.values, *scale, *places, *how, *limits, form.coef]


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


def _parameters(model: Any) -> list[list[str]]:
    """Name, value and origin of every parameter."""
    if not hasattr(model, "get_params"):
        return []
    try:
        defaults = type(model)().get_params(deep=False)
    except TypeError:
        # The classifier has required arguments.
        defaults = {}
    rows = []
    for name, value in model.get_params(deep=False).items():
        text = repr(value)
        default = name in defaults and repr(defaults[name]) == text
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        rows.append([name, shown, "default" if default else "set"])
    return rows


def _facts(model: Any) -> list[list[str]]:
    n_channels = getattr(model, "n_channels_in_", getattr(model, "n_features_in_", "not recorded"))
    facts = [["Classes", str(len(model.classes_))], ["Channels", str(n_channels)]]
    if hasattr(model, "n_series_in_"):
        steps = f"{model.n_series_in_:,} series with {model.n_steps_in_:,} steps in total"
        facts.append(["Trained on", steps])
    if hasattr(model, "landmarks_") and hasattr(model, "coef_"):
        used = int(np.count_nonzero(model.coef_.any(axis=0)))
        chosen = f"{used} with a nonzero weight, of {len(model.landmarks_)} chosen"
        facts.append(["Landmarks", chosen])
    if getattr(model, "snippets_", None) is not None:
        n_steps = count(model.snippets_.n_steps, "step")
        facts.append(["Snippets", f"{len(model.snippets_):,}, each of {n_steps}"])
    if hasattr(model, "reports_"):
        gap = rounded(max((report.gap for report in model.reports_), default=0.0), 2)
        unsolved = sum(not report.converged for report in model.reports_)
        solved = f"{unsolved} not solved to tolerance" if unsolved else "solved"
        problems = count(len(model.reports_), "convex problem")
        facts.append(["Solver", f"{problems}, {solved}; largest duality gap {gap:g}"])
    if hasattr(model, "best_score_"):
        facts.append(["Validation accuracy in the search", f"{100 * model.best_score_:.1f}%"])
    return facts


def _limits(model: Any) -> list[str]:
    """What the report does not show."""
    limits = []
    if hasattr(model, "linear_forms"):
        limits.append(
            "Contributions are exact: they show what the model used. They do not show what would "
            "happen if a channel changed in reality."
        )
    rows = getattr(model, "row_map_", None)
    if rows is not None and rows.settings.normalize and rows.constant is None:
        limits.append(
            "Each step is scaled to unit length. The model uses the relation of the channels, not "
            "the amplitude of a step."
        )
    limits.append(
        "The model always predicts one of its training classes. Neither a low probability nor an "
        "empty prediction set proves that a series belongs to none of them."
    )
    return limits


def card_section(content: Content) -> str:
    """Facts, limits, provenance and parameters."""
    card, names = content["card"], content["model"]["classes"]
    provenance = [["Report made", card["made"]], ["Library", card["library"]], *card["provenance"]]
    parameters = [
        [Cell(f"<code>{escape(name)}</code>"), Cell(f"<code>{escape(value)}</code>"), origin]
        for name, value, origin in card["parameters"]
    ]
    head, text = ["Name", "Value", "Origin"], ["", "text"]
    return section(
        "card",
        facts=table("Model", card["facts"], columns=text),
        classes=escape(list_first(names, _MOST_NAMES)),
        limits=items(card["limits"]),
        provenance=table("Provenance", provenance, columns=text),
        parameters=table("Parameters", parameters, head=head, columns=text),
    )
