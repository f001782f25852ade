"""The model card: parameters, facts about the fit, provenance."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import joblib

from slts import __version__
from slts.estimators.base import SeriesClassifier
from slts.quantities import count
from slts.report.predictions import Predictions
from slts.report.references import References

# Packages that determine the numbers of a model.
_PACKAGES = ("numpy", "scipy", "scikit-learn")
# Largest length of the text of a parameter.
_LONGEST = 160


def card(model: Any, references: References, predictions: Predictions | None) -> dict[str, Any]:
    """Parameters, facts and provenance of a model: a search, or the classifier itself."""
    inner = references.model
    # Parameters that were chosen by a search, of scikit-learn or of the classifier itself.
    chosen = {**getattr(model, "best_params_", {}), **getattr(inner, "best_params_", {})}
    facts = _facts(inner, references)
    if chosen:
        text = ", ".join(f"{name} = {value}" for name, value in chosen.items())
        facts.append(["Chosen by the search", text])
    provenance = [
        ["Software", ", ".join(f"{name} {version(name)}" for name in _PACKAGES)],
        ["Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"],
        ["Fingerprint of the model", _digest([inner.classes_, references.fitted])],
    ]
    if predictions is not None:
        batch = predictions.batch
        digest = _digest([batch.values, batch.offsets, predictions.labels])
        provenance.append(["Fingerprint of the data", digest])
    return {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "library": f"slts {__version__}",
        "facts": facts,
        "provenance": provenance,
        "parameters": _parameters(inner),
    }


def _parameters(model: SeriesClassifier) -> list[list[str]]:
    """Name, value and origin of every parameter."""
    defaults = type(model)().get_params(deep=False)
    rows = []
    for name, value in model.get_params(deep=False).items():
        text = repr(value)
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        rows.append([name, shown, "default" if repr(defaults[name]) == text else "set"])
    return rows


def _facts(model: SeriesClassifier, references: References) -> list[list[str]]:
    facts = [
        ["Classifier", f"slts.{type(model).__name__}"],
        ["Trained on", f"{model.n_series_in_:,} series with {model.n_steps_in_:,} steps in total"],
        *references.facts,
    ]
    validation, of = model.validation_, ""
    if validation is not None:
        if validation.n_groups is not None:
            of = f", {count(validation.n_groups, 'group')}"
        held_out = f"{100 * validation.accuracy:.1f}% ({validation.kind}{of})"
        facts.append(["Accuracy on training series that were held out", held_out])
    return facts


def _digest(content: Any) -> str:
    return f"sha1:{joblib.hash(content, hash_name='sha1')}"
