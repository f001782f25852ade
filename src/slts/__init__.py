"""Learned similarity for ragged multivariate time series."""

from slts.alignment import Alignment, Itakura, align, aligned_products, similarity
from slts.errors import DataError, ModelFileError
from slts.series import SeriesBatch, as_series

__version__ = "0.1.0"

__all__ = [
    "Alignment",
    "DataError",
    "Itakura",
    "ModelFileError",
    "SeriesBatch",
    "align",
    "aligned_products",
    "as_series",
    "similarity",
]
