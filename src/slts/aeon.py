"""Adapter that makes an slts classifier an aeon classifier; needs ``pip install "slts[demo]"``."""

from __future__ import annotations

from typing import Any, ClassVar

from slts.estimators import SLTSClassifier
from slts.estimators.adapter import AdaptedClassifier
from slts.extras import import_extra

__all__ = ["AeonClassifier"]

_BaseClassifier: Any = import_extra("aeon.classification.base", "demo").BaseClassifier
_check_n_jobs: Any = import_extra("aeon.utils.validation", "demo").check_n_jobs


class AeonClassifier(AdaptedClassifier, _BaseClassifier):  # type: ignore[misc]
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

    def _thread_count(self) -> int:
        # Every aeon classifier has this attribute.
        count: int = _check_n_jobs(self.n_jobs)
        self._n_jobs = count
        return count

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        """Parameters for aeon's checks. Their data sets are small, so all series are landmarks."""
        return {"estimator": SLTSClassifier(n_landmarks=1.0, random_state=0)}
