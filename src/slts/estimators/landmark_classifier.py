"""What BBS and SLTS share: fitting, decision values, the similarity map; and their CV variants."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.estimators.linear import LinearClassifier
from slts.estimators.parameters import PARAMETERS, SEVERAL_COUNTS
from slts.estimators.prediction import apply
from slts.estimators.sklearn_bases import TransformerMixin
from slts.series import SeriesBatch
from slts.solvers.hinge import Solution
from slts.training.held_out import SearchResult
from slts.training.landmark_fit import LandmarkFit, fit_landmarks
from slts.training.options import LandmarkOptions

# The paper's grids.
GAMMAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
LAMS = (0.1, 1.0, 10.0)


@dataclass(frozen=True)
class SolveReport:
    """One solved problem: its objective, and its distance from the optimum at most."""

    positive: Any
    stage: str
    gamma: float
    objective: float
    gap: float
    n_iter: int
    converged: bool


@dataclass(eq=False, repr=False, kw_only=True)
class LandmarkClassifier(TransformerMixin, LinearClassifier):
    """Base of the sparse classifiers over landmarks.

    A decision value is sum_j coef_[c, j] <metrics_[c], T(x, landmark j)>.
    """

    n_landmarks: int | float | None = field(default=None, kw_only=False)
    landmarks: Any = "random"
    objective: str = "affinity"
    band: Any = None
    scale: str | None = None
    homogeneous: bool | str = "auto"
    normalize: bool = True
    class_weight: Any = None
    dtype: str = "float64"
    memory_limit: Any = None

    reports_: tuple[SolveReport, ...] = field(init=False)
    n_sampled_: int = field(init=False)
    # How the model was fitted, whatever its parameters are now; certificates depend on it.
    fit_params_: dict[str, Any] = field(init=False)

    # Whether a metric is learned for each class; otherwise M = I.
    learns_metric = True
    # Penalty of the metrics; a parameter of SLTS.
    regularizer = "frobenius"
    # The parameter that gives the splits.
    _cv_name = "calibration_cv"

    @abstractmethod
    def _candidates(self) -> list[dict[str, float]]:
        """Return the parameters to choose from, one if there is no choice."""

    def _keep_search(self, result: SearchResult) -> None:
        """Store the scores of a search, for classifiers that report them."""

    @property
    def _calibrates(self) -> bool:
        return getattr(self, self._cv_name) is not None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose landmarks, align once, learn.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` accepts, or a scan (`slts.scan_series`),
            which need not fit in memory.
        y
            Labels of any type, one per series; None for a scan, which contains them.
        sample_weight
            Non-negative weight of each series in the loss; None means 1 for all.
        groups
            Group of each series, such as the subject: a group is held out as a whole, by folds, a
            fraction, or a splitter such as `GroupKFold`. None for a scan, which has its own
            (``scan_series(..., groups="subject")``).

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._fitting():
            data = self._read(X, y, sample_weight, groups)
            options = self._options(
                LandmarkOptions,
                parameters=self._candidates(),
                cv=getattr(self, self._cv_name),
                cv_name=self._cv_name,
                settings=AlignmentSettings(self.objective, self.band, self.normalize, self.dtype),
            )
            self._store(fit_landmarks(data, options))
        return self

    def _store(self, fit: LandmarkFit) -> None:
        self.model_, self.landmark_indices_ = fit.model, fit.landmark_indices
        self.origins_, self.n_sampled_ = fit.origins, fit.n_sampled
        self.reports_ = self._reports(fit)
        named = isinstance(self.landmarks, str)
        self.fit_params_ = {
            "landmarks": self.landmarks if named else "indices",
            "class_weight": "equal" if self.class_weight is None else "by class",
            "regularizer": self.regularizer,
            "normalize": bool(self.normalize),
            "scale": self.scale or "none",
            **fit.chosen,
        }
        if fit.search is None:
            self._calibrate_on(None, None)
        else:
            self._calibrate_on(fit.search.held_out, fit.search.validation)
            self._keep_search(fit.search)

    @property
    def coef_(self) -> FloatArray:
        """Weights of the landmarks, shape (problems, landmarks), with exact zeros."""
        return self.model_.aligned[0].weights

    @property
    def metrics_(self) -> FloatArray:
        """The metric of each problem, shape (problems, d, d)."""
        return self.model_.coefs[0][:, 0, 0]

    def _reports(self, fit: LandmarkFit) -> tuple[SolveReport, ...]:
        reports = []
        for k, label in enumerate(self.positive_classes_):
            if fit.metrics:
                reports.append(_report(label, "metric", fit.metrics[k]))
            reports.append(_report(label, "separator", fit.separators[k]))
        return tuple(reports)

    def transform(self, X: Any) -> FloatArray:
        """Similarity of every series to every landmark, under each class's metric.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts, or a scan.

        Returns
        -------
        ndarray
            Shape (series, features), named by `get_feature_names_out`.
        """
        check_is_fitted(self)
        return apply(self, type(self)._transform, X)

    def _transform(self, batch: SeriesBatch) -> FloatArray:
        feature_map = self.model_.aligned[0]
        if not self.learns_metric:
            return feature_map.similarities(batch, None, self._resources)
        K = feature_map.similarities(batch, self.metrics_, self._resources)
        return K.swapaxes(1, 2).reshape(len(batch), self.coef_.size)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the columns of `transform`.

        Parameters
        ----------
        input_features
            Ignored; present for scikit-learn.

        Returns
        -------
        ndarray
            ``"landmark3"``, or with a metric per class ``"class1_landmark3"``.
        """
        check_is_fitted(self)
        names = [f"landmark{j}" for j in self.landmark_indices_]
        if self.learns_metric:
            names = [f"class{c}_{name}" for c in self.positive_classes_ for name in names]
        return np.asarray(names, dtype=object)


@dataclass(eq=False, repr=False, kw_only=True)
class TunedLandmarkClassifier(LandmarkClassifier):
    """Base of the CV variants: splits from `cv`, several numbers of landmarks, scores."""

    n_landmarks: Any = field(default=None, kw_only=False)
    gammas: Sequence[float] = GAMMAS
    cv: Any = 0.3

    best_params_: dict[str, Any] = field(init=False)
    best_score_: float = field(init=False)
    cv_results_: dict[str, Any] = field(init=False)
    n_splits_: int = field(init=False)

    _cv_name = "cv"
    parameter_kinds: ClassVar = {**PARAMETERS, "n_landmarks": SEVERAL_COUNTS}

    def _keep_search(self, result: SearchResult) -> None:
        self.best_params_ = result.best_params
        self.best_score_ = float(result.scores[result.best].mean())
        self.cv_results_ = result.cv_results
        self.n_splits_ = result.scores.shape[1]


def _report(label: Any, stage: str, s: Solution) -> SolveReport:
    return SolveReport(label, stage, s.gamma, s.objective, s.gap, s.n_iter, s.converged)
