"""What BBS and SLTS share: fitting, decision values, the similarity map; and their CV variants."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.estimators.base import SeriesClassifier
from slts.estimators.parameters import PARAMETERS, SEVERAL_COUNTS
from slts.learning.hinge import Solution
from slts.models.linear_form import LinearForm
from slts.models.origins import Origins
from slts.models.row_map import RowMap
from slts.series import SeriesBatch
from slts.training.held_out import SearchResult
from slts.training.landmark_fit import LandmarkFit, LandmarkOptions, fit_landmarks

# The paper's grids.
GAMMAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
LAMS = (0.1, 1.0, 10.0)
# Bytes of grouped sums that are held at once in prediction.
_DECISION_BYTES = 64 * 2**20


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
class LandmarkClassifier(TransformerMixin, SeriesClassifier):  # type: ignore[misc]
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

    landmarks_: SeriesBatch = field(init=False)
    landmark_indices_: IntArray = field(init=False)
    row_map_: RowMap = field(init=False)
    coef_: FloatArray = field(init=False)
    metrics_: FloatArray = field(init=False)
    reports_: tuple[SolveReport, ...] = field(init=False)
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
            source = self._training_source(X, y, sample_weight, groups)
            options = self._options(
                LandmarkOptions,
                parameters=self._candidates(),
                cv=getattr(self, self._cv_name),
                cv_name=self._cv_name,
                settings=AlignmentSettings(self.objective, self.band, self.normalize, self.dtype),
            )
            self._store(fit_landmarks(source, options))
        return self

    def _store(self, fit: LandmarkFit) -> None:
        self.landmarks_, self.landmark_indices_ = fit.landmarks, fit.landmark_indices
        origins = Origins.of(fit.landmarks, fit.landmark_indices, fit.landmark_codes)
        self._remember(fit.first_pass, origins)
        self.row_map_ = fit.row_map
        self.coef_ = np.stack([separator.coef for separator in fit.separators])
        d = self.n_channels_in_ + (fit.row_map.constant is not None)
        self.metrics_ = np.broadcast_to(np.eye(d), (len(self.coef_), d, d))
        if fit.metrics:
            self.metrics_ = np.stack([solution.metric for solution in fit.metrics])
        self.reports_ = self._reports(fit)
        named = isinstance(self.landmarks, str)
        self.fit_params_ = {
            "landmarks": self.landmarks if named else "indices",
            "class_weight": "equal" if self.class_weight is None else "by class",
            "regularizer": self.regularizer,
            "normalize": self.normalize,
            **fit.chosen,
        }
        self._calibrate_on(None if fit.search is None else fit.search.held_out)
        self.validation_ = None
        if fit.search is not None:
            self.validation_ = fit.search.validation
            self._keep_search(fit.search)

    def _reports(self, fit: LandmarkFit) -> tuple[SolveReport, ...]:
        reports = []
        for k, label in enumerate(self.positive_classes_):
            if fit.metrics:
                reports.append(_report(label, "metric", fit.metrics[k]))
            reports.append(_report(label, "separator", fit.separators[k]))
        return tuple(reports)

    def _decide(self, batch: SeriesBatch) -> FloatArray:
        """Return decision values, aligning with the landmarks in use only."""
        used = np.flatnonzero(self.coef_.any(axis=0))
        values = np.zeros((len(batch), len(self.coef_)))
        if len(used) == 0:
            return values
        coef, rows = self.coef_[:, used], self.row_map_(batch)
        aligner = self._landmark_aligner("used")
        with self._progress("Aligning") as progress:
            if not self.learns_metric:
                return np.asarray(np.dot(aligner.similarities(rows, progress=progress), coef.T))
            step = max(1, _DECISION_BYTES // (8 * self.metrics_.size))
            for begin in range(0, len(rows), step):
                part = slice(begin, begin + step)
                sums = aligner.grouped(rows[part], coef)
                values[part] = np.einsum("icde,cde->ic", sums, self.metrics_)
                progress(min(begin + step, len(rows)), len(rows))
        return values

    def _landmark_aligner(self, name: str) -> Aligner:
        """Return the aligner with all landmarks, or with those that have a weight ("used")."""

        def rows() -> SeriesBatch:
            used = np.flatnonzero(self.coef_.any(axis=0))
            return self.row_map_(self.landmarks_[used] if name == "used" else self.landmarks_)

        inputs = (self.landmarks_, self.row_map_, self.coef_)
        return self._aligner(name, self.row_map_.settings, rows, inputs)

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
        return self._apply(type(self)._transform, X)

    def _transform(self, batch: SeriesBatch) -> FloatArray:
        rows = self.row_map_(batch)
        aligner = self._landmark_aligner("all")
        with self._progress("Aligning") as progress:
            if not self.learns_metric:
                return np.asarray(aligner.similarities(rows, progress=progress))
            projected = aligner.projected(rows, self.metrics_, progress=progress)
        return np.asarray(projected.transpose(0, 2, 1).reshape(len(rows), self.coef_.size))

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

    def linear_forms(self) -> tuple[LinearForm, ...]:
        """The linear forms whose sum is the decision, for `slts.explain`: one."""
        check_is_fitted(self)
        used = np.flatnonzero(self.coef_.any(axis=0))
        form = LinearForm(
            name="",
            positives=self.positive_classes_,
            aligner=self._landmark_aligner("used"),
            landmark_indices=self.landmark_indices_[used],
            coef=self.coef_[:, used],
            factors=self.metrics_[:, np.newaxis, np.newaxis],
            groups=np.zeros(len(used), dtype=np.int64),
            group_names=("all",),
            intercept=np.zeros(len(self.coef_)),
            rows=self.row_map_,
        )
        return (form,)


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
