"""Learned similarity for ragged multivariate time series."""

from slts import datasets
from slts.alignment import Alignment, Itakura, align, aligned_products, similarity
from slts.errors import DataError, ModelFileError
from slts.estimators import (
    BBSClassifier,
    BBSClassifierCV,
    LDMLTClassifier,
    OneNNClassifier,
    SimilaritySVC,
    SLTSClassifier,
    SLTSClassifierCV,
)
from slts.explain import explain
from slts.landmarks import select_landmarks
from slts.series import SeriesBatch, as_series

__version__ = "0.1.0"

__all__ = [
    "Alignment",
    "BBSClassifier",
    "BBSClassifierCV",
    "DataError",
    "Itakura",
    "LDMLTClassifier",
    "ModelFileError",
    "OneNNClassifier",
    "SLTSClassifier",
    "SLTSClassifierCV",
    "SeriesBatch",
    "SimilaritySVC",
    "align",
    "aligned_products",
    "as_series",
    "datasets",
    "explain",
    "select_landmarks",
    "similarity",
]
