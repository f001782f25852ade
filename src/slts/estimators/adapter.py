"""What the adapters for aeon and sktime share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from slts._typing import FloatArray
from slts.estimators import SLTSClassifier
from slts.series import SeriesBatch, as_series


class AdaptedClassifier:
    """Passes the calls of another library's base class, which comes second, to an slts classifier.

    Parameters
    ----------
    estimator
        The classifier to adapt; None is ``SLTSClassifier()``.
    n_jobs
        Number of threads. It replaces `n_jobs` of `estimator`.
    """

    def __init__(self, estimator: Any = None, *, n_jobs: int = 1) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        super().__init__()

    def _fit(self, X: Any, y: npt.NDArray[Any]) -> Self:
        template = SLTSClassifier() if self.estimator is None else self.estimator
        model = clone(template).set_params(n_jobs=self._thread_count())
        self.estimator_ = model.fit(self._series(X), y)
        return self

    def _series(self, X: Any) -> SeriesBatch:
        # Other libraries say which axis holds the channels.
        return as_series(X, layout="channels_first")

    def _thread_count(self) -> int:
        return self.n_jobs

    def _predict(self, X: Any) -> npt.NDArray[Any]:
        return np.asarray(self.estimator_.predict(self._series(X)))

    def _predict_proba(self, X: Any) -> FloatArray:
        if not hasattr(self.estimator_, "predict_proba"):
            return np.asarray(super()._predict_proba(X))  # type: ignore[misc]
        return np.asarray(self.estimator_.predict_proba(self._series(X)))
