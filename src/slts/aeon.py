"""Adapter that makes an slts classifier an aeon classifier; needs ``pip install "slts[demo]"``."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from slts._typing import FloatArray
from slts.estimators import SLTSClassifier
from slts.extras import import_extra

__all__ = ["AeonClassifier"]

_BaseClassifier: Any = import_extra("aeon.classification.base", "demo").BaseClassifier
_check_n_jobs: Any = import_extra("aeon.utils.validation", "demo").check_n_jobs


class AeonClassifier(_BaseClassifier):  # type: ignore[misc]
    """Any slts classifier with aeon's interface.

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
    >>> from slts.aeon import AeonClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["left", "right"], 20)
    >>> X = [rng.normal(size=(2, 15)) + (c == "right") * np.array([[2.0], [0.0]]) for c in y]
    >>> AeonClassifier(slts.OneNNClassifier()).fit(X, y).predict(X[:1])
    array(['left'], dtype='<U5')
    """

    _tags: ClassVar[dict[str, Any]] = {
        "X_inner_type": ["np-list", "numpy3D"],
        "algorithm_type": "distance",
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:missing_values": True,
        "capability:multithreading": True,
    }

    def __init__(self, estimator: Any = None, *, n_jobs: int = 1) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        super().__init__()

    def _fit(self, X: Any, y: npt.NDArray[Any]) -> Self:
        self._n_jobs = _check_n_jobs(self.n_jobs)
        template = SLTSClassifier() if self.estimator is None else self.estimator
        self.estimator_ = clone(template).set_params(n_jobs=self._n_jobs).fit(X, y)
        return self

    def _predict(self, X: Any) -> npt.NDArray[Any]:
        return np.asarray(self.estimator_.predict(X))

    def _predict_proba(self, X: Any) -> FloatArray:
        if not hasattr(self.estimator_, "predict_proba"):
            return np.asarray(super()._predict_proba(X))
        return np.asarray(self.estimator_.predict_proba(X))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        """Parameters for aeon's checks. Their data sets are small, so all series are landmarks."""
        return {"estimator": SLTSClassifier(n_landmarks=1.0, random_state=0)}
