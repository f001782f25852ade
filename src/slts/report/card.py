"""The model card: parameters, facts about the fit, provenance."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from typing import Any

import numpy as np

from slts import __version__
from slts.estimators.linear import LinearClassifier
from slts.estimators.neighbours import NearestNeighbor
from slts.quantities import count, list_first
from slts.report.markup import Cell, Content, items, section, table
from slts.report.packing import rounded
from slts.report.predictions import Predictions
from slts.report.references import row_map_of
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
    kind = type(inner)
    facts = [["Classifier", f"{kind.__module__.partition('.')[0]}.{kind.__name__}"]]
    facts += _facts(inner)
    if n_numbers is not None:
        facts.append(["Numbers stored", f"{n_numbers:,}"])
    # Parameters that were chosen by a search, of scikit-learn or of the classifier itself.
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
    """Digest of what determines the predictions; None if the model is not one of slts."""
    if isinstance(model, LinearClassifier):
        return _digest([model.model_, np.asarray(model.classes_)])
    if isinstance(model, NearestNeighbor):
        return _digest([model.model_, np.asarray(model.classes_)])
    return None


def data_fingerprint(batch: SeriesBatch, labels: Any) -> str:
    """Digest of series and labels."""
    parts = [batch.values, batch.offsets]
    return _digest(parts if labels is None else [*parts, np.asarray(labels)])


def _digest(content: Any) -> str:
    """Digest of dataclasses, arrays and series, without the names of channels and series."""
    digest = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, SeriesBatch):
            add([value.values, value.offsets])
        elif isinstance(value, np.ndarray) and value.dtype.kind not in "OUS":
            digest.update(f"{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        elif isinstance(value, list | tuple):
            for item in value:
                add(item)
        elif is_dataclass(value):
            for field in fields(value):
                add(getattr(value, field.name))
        else:
            digest.update(repr(getattr(value, "tolist", lambda: value)()).encode())

    add(content)
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
    if isinstance(model, LinearClassifier):
        landmarks, snippets = model.model_.aligned[0], model.model_.snippets
        chosen = f"{len(landmarks.used)} with a nonzero weight, of {landmarks.n_landmarks} chosen"
        facts.append(["Landmarks", chosen])
        if snippets is not None:
            n_steps = count(snippets.n_steps, "step")
            facts.append(["Snippets", f"{len(snippets):,}, each of {n_steps}"])
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
    if isinstance(model, LinearClassifier):
        limits.append(
            "Contributions are exact: they show what the model used. They do not show what would "
            "happen if a channel changed in reality."
        )
    rows = row_map_of(model)
    if rows is not None and rows.normalize and rows.constant is None:
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
