"""Classify multivariate time series of different lengths, with explanations and error bounds.

Public names and parts are imported when they are first used, so ``import slts`` is cheap.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slts import datasets, tables
    from slts.alignment import Alignment, Itakura, align, aligned_products, distance, similarity
    from slts.errors import DataError, ModelFileError
    from slts.estimators import (
        BBSClassifier,
        BBSClassifierCV,
        LDMLTClassifier,
        LocalSLTSClassifier,
        OneNNClassifier,
        SimilaritySVC,
        SLTSClassifier,
        SLTSClassifierCV,
    )
    from slts.features.explanation import explain
    from slts.features.summary import summarize
    from slts.guarantees import certify, goodness, landmarks_needed, prediction_sets
    from slts.persistence import load, save
    from slts.series import SeriesBatch, as_series
    from slts.tables import scan_series
    from slts.training.landmarks import select_landmarks

__version__ = "0.2.0"

__all__ = [
    "Alignment",
    "BBSClassifier",
    "BBSClassifierCV",
    "DataError",
    "Itakura",
    "LDMLTClassifier",
    "LocalSLTSClassifier",
    "ModelFileError",
    "OneNNClassifier",
    "SLTSClassifier",
    "SLTSClassifierCV",
    "SeriesBatch",
    "SimilaritySVC",
    "align",
    "aligned_products",
    "as_series",
    "certify",
    "datasets",
    "distance",
    "explain",
    "goodness",
    "landmarks_needed",
    "load",
    "prediction_sets",
    "save",
    "scan_series",
    "select_landmarks",
    "similarity",
    "summarize",
    "tables",
]

# The part that each public name comes from.
_PUBLIC = {
    name: part
    for part, names in {
        "alignment": (
            *("Alignment", "Itakura", "align", "aligned_products", "distance", "similarity"),
        ),
        "errors": ("DataError", "ModelFileError"),
        "estimators": (
            *("BBSClassifier", "BBSClassifierCV", "SLTSClassifier", "SLTSClassifierCV"),
            *("LDMLTClassifier", "LocalSLTSClassifier", "OneNNClassifier", "SimilaritySVC"),
        ),
        "features.explanation": ("explain",),
        "features.summary": ("summarize",),
        "guarantees": ("certify", "goodness", "landmarks_needed", "prediction_sets"),
        "tables": ("scan_series",),
        "training.landmarks": ("select_landmarks",),
        "persistence": ("load", "save"),
        "series": ("SeriesBatch", "as_series"),
    }.items()
    for name in names
}
# Parts that are attributes of slts without an import of their own.
_PARTS = {
    *(name.partition(".")[0] for name in _PUBLIC.values()),
    *("datasets", "execution", "plots", "report", "solvers"),
}


def __getattr__(name: str) -> Any:
    """Import a public name or a part when it is first used."""
    if name in _PARTS:
        return importlib.import_module(f"slts.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'slts' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"slts.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, and the parts that have more of them."""
    return [*__all__, "__version__", "guarantees", "persistence", "plots", "report"]
