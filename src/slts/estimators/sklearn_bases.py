"""The bases from scikit-learn. The stub beside this file gives them types."""

from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if

__all__ = ["BaseEstimator", "ClassifierMixin", "TransformerMixin", "available_if"]
