"""Learned similarity for ragged multivariate time series."""

import importlib
from typing import Any

from slts import datasets, files
from slts.alignment import Alignment, Itakura, align, aligned_products, similarity
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
from slts.explanation import explain, summarize
from slts.files import scan_series
from slts.guarantees import certify, fit_certified, goodness, landmarks_needed
from slts.landmarks import select_landmarks
from slts.persistence import load, save
from slts.series import SeriesBatch, as_series

__version__ = "0.1.0"

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
    "explain",
    "files",
    "fit_certified",
    "goodness",
    "landmarks_needed",
    "load",
    "save",
    "scan_series",
    "select_landmarks",
    "similarity",
    "summarize",
]


def __getattr__(name: str) -> Any:
    """Import `slts.plots` and `slts.report` when they are asked for: few programs do."""
    if name in ("plots", "report"):
        return importlib.import_module(f"slts.{name}")
    raise AttributeError(f"module 'slts' has no attribute {name!r}")
