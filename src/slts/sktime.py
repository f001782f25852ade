"""Adapter that makes an slts classifier a sktime classifier; ``pip install "slts[sktime]"``."""

from __future__ import annotations

from typing import Any, ClassVar

from slts.estimators import OneNNClassifier, SLTSClassifier
from slts.estimators.adapter import AdaptedClassifier
from slts.extras import import_extra
from slts.series import SeriesBatch, as_series

__all__ = ["SktimeClassifier"]

_BaseClassifier: Any = import_extra("sktime.classification.base", "sktime").BaseClassifier


class SktimeClassifier(AdaptedClassifier, _BaseClassifier):  # type: ignore[misc]
    """Any slts classifier with sktime's interface.

    Parameters
    ----------
    estimator
        The classifier to adapt; None is ``SLTSClassifier()``.
    n_jobs
        Number of threads, by joblib's convention. It replaces `n_jobs` of `estimator`.

    Attributes
    ----------
    classes_, n_classes_
        Labels and their number.
    estimator_
        The fitted slts classifier, with all its own attributes and methods.

    Examples
    --------
    >>> import numpy as np, slts
    >>> from slts.sktime import SktimeClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["left", "right"], 20)
    >>> X = rng.normal(size=(40, 2, 15)) + (y == "right")[:, None, None] * np.array([[2.0], [0.0]])
    >>> SktimeClassifier(slts.OneNNClassifier()).fit(X, y).predict(X[:1])
    array(['left'], dtype='<U5')
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": "The slts developers",
        "maintainers": "The slts developers",
        "X_inner_mtype": ["df-list", "numpy3D"],
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:missing_values": True,
        "capability:multithreading": True,
        "capability:predict_proba": True,
        "capability:categorical_in_X": False,
    }

    def _series(self, X: Any) -> SeriesBatch:
        """Read a list of data frames, one row per step, or an array."""
        if not isinstance(X, list):
            return super()._series(X)
        batch = as_series([frame.to_numpy() for frame in X], layout="time_first")
        return SeriesBatch(batch.values, batch.offsets, tuple(map(str, X[0].columns)))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters for sktime's checks. Their data sets are small, so all series are landmarks.

        Parameters
        ----------
        parameter_set
            Ignored; present for sktime.

        Returns
        -------
        list of dict
            One set of parameters for each estimator to check.
        """
        return [
            {"estimator": SLTSClassifier(n_landmarks=1.0, random_state=0)},
            {"estimator": OneNNClassifier()},
        ]
