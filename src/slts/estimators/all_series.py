"""Classifiers that keep all training series: nearest neighbours, LDMLT, and a linear SVM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.estimators.base import SeriesClassifier
from slts.learning.logdet import LogDetSolution
from slts.models.linear_form import LinearForm
from slts.models.row_map import RowMap
from slts.series import SeriesBatch
from slts.series.channels import transform_rows
from slts.training.all_series_fit import (
    fit_svm,
    learn_logdet_metric,
    left_out_decisions,
    nearest_decisions,
)
from slts.training.first_pass import FirstPass

# What C is chosen from, ascending: ties go to the smaller one.
CS = tuple(4.0**k for k in range(-3, 5))


@dataclass(eq=False, repr=False, kw_only=True)
class AllSeriesClassifier(SeriesClassifier):
    """Base of the classifiers that compare series with all distinct training series.

    Attributes
    ----------
    training_rows_, training_indices_
        Distinct training series as rows, and their positions in X.
    """

    scale: str | None = None
    homogeneous: bool | str = "auto"
    normalize: bool = True

    training_rows_: SeriesBatch = field(init=False)
    training_indices_: IntArray = field(init=False)
    row_map_: RowMap = field(init=False)

    def _keep(self, first_pass: FirstPass, settings: AlignmentSettings) -> None:
        """Keep the training series as rows."""
        series = first_pass.sample.series.anonymous()
        self.row_map_ = RowMap.fit(series, settings, homogeneous=self.homogeneous, scale=self.scale)
        self.training_rows_, self.training_indices_ = self.row_map_(series), first_pass.indices

    def nearness(self, X: Any) -> FloatArray:
        """Nearness of series to every distinct training series.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts.

        Returns
        -------
        ndarray
            Shape (series, training series); larger is nearer.
        """
        check_is_fitted(self)
        return self._nearness_of_rows(self.row_map_(self.check_series(X)))

    def _nearness_of_rows(self, rows: SeriesBatch) -> FloatArray:
        """Return the nearness of rows to each training series: here their similarity."""
        aligner = self._training_aligner()
        with self._progress("Aligning") as progress:
            return np.asarray(aligner.similarities(rows, progress=progress), dtype=np.float64)

    def _training_aligner(self) -> Aligner:
        kept = self.training_rows_
        return self._aligner("all", self.row_map_.settings, lambda: kept, (kept,))


@dataclass(eq=False, repr=False, kw_only=True)
class NearestNeighbor(AllSeriesClassifier):
    """Base of the nearest-neighbour classifiers, which differ in how nearness is defined.

    Attributes
    ----------
    training_codes_
        Classes of the distinct training series.
    """

    calibration_size: int | None = 500

    training_codes_: IntArray = field(init=False)

    def _keep(self, first_pass: FirstPass, settings: AlignmentSettings) -> None:
        super()._keep(first_pass, settings)
        self.training_codes_ = first_pass.codes

    def _decide(self, batch: SeriesBatch) -> FloatArray:
        nearness = self._nearness_of_rows(self.row_map_(batch))
        return nearest_decisions(nearness, self.training_codes_, len(self.classes_))

    @property
    def _calibrates(self) -> bool:
        return self.calibration_size is not None

    def _calibrate(self) -> None:
        """Fit the scale of probabilities on training series, each left out in turn."""
        self.probability_scale_ = self.held_out_margins_ = self.validation_ = None
        size = self.calibration_size
        if size is None:
            return
        held_out, self.validation_ = left_out_decisions(
            lambda rows: self._nearness_of_rows(self.training_rows_[rows]),
            self.training_codes_,
            len(self.classes_),
            int(size),
        )
        self._calibrate_on(held_out)
        if self.probability_scale_ is None:
            # Every class has one series only.
            self.probability_scale_ = np.ones(len(self.classes_))


@dataclass(eq=False, repr=False, kw_only=True)
class OneNNClassifier(NearestNeighbor):
    """Nearest neighbour under the similarity K_I.

    Parameters
    ----------
    objective, band
        How paths are found; see `slts.align`.
    scale
        Scaling of each channel, fitted on the training steps: None, ``"standard"`` (mean and
        standard deviation), ``"robust"`` (median and quartiles) or ``"asinh"`` (robust, with
        compressed tails).
    homogeneous
        Append a constant channel before rows are scaled to unit length, which keeps the amplitude:
        True, False, or ``"auto"`` (only with one channel, where unit rows keep only the sign).
    normalize
        Scale every step to unit length.
    calibration_size
        Number of training series that are compared with all others to calibrate `predict_proba`.
        None skips calibration, and `predict_proba` is not available.
    device
        Where alignments run: ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``);
        or ``"auto"``, the GPU if there is one and the work is large enough (logged once). Model
        files do not store it.
    n_jobs
        Number of CPU threads, by joblib's convention.
    random_state
        Seed for the series used for calibration.
    verbose
        Show progress.

    Attributes
    ----------
    classes_, n_features_in_
        Labels, and number of channels.
    training_rows_, training_codes_, training_indices_
        Distinct training series as rows, their classes, and their positions in X.
    """

    objective: str = "affinity"
    band: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the training series.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` accepts, or a scan, which is read into
            memory.
        y
            Labels of any type, one per series; None for a scan, which contains them.

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._fitting():
            settings = AlignmentSettings(self.objective, self.band, self.normalize)
            first_pass = self._read_training_data(X, y)
            self._keep(first_pass, settings)
            self._calibrate()
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class LDMLTClassifier(NearestNeighbor):
    """Label of the nearest training series under a learned Mahalanobis DTW distance.

    The distance is the smallest sum of (a - b)'M(a - b) along a path. M is learned from triplets of
    training series by LogDet-regularised steps.

    Parameters
    ----------
    n_cycles
        Largest number of cycles. Each cycle rebuilds the triplets under the current M.
    triplets_per_series
        Triplets per ranked series in the first cycle.
    margin
        Margin by which the series of the same class must be nearer.
    ranking_limit
        Largest number of series that a cycle ranks and draws triplets from; None for all.
    scale
        Scaling of each channel, fitted on the training steps: None, ``"standard"`` (mean and
        standard deviation), ``"robust"`` (median and quartiles) or ``"asinh"`` (robust, with
        compressed tails).
    homogeneous
        Append a constant channel before rows are scaled to unit length, which keeps the amplitude:
        True, False, or ``"auto"`` (only with one channel, where unit rows keep only the sign).
    normalize
        Scale every step to unit length.
    calibration_size
        Number of training series that are compared with all others to calibrate `predict_proba`.
        None skips calibration, and `predict_proba` is not available.
    device
        Where rankings and predictions are aligned: ``"cpu"``; ``"cuda"``, an NVIDIA GPU through
        CuPy (extra ``cuda``); or ``"auto"``, the GPU if there is one and the work is large enough
        (logged once). Paths of triplets are always found on the CPU. Model files do not store it.
    n_jobs
        Number of CPU threads, by joblib's convention.
    random_state
        Seed for the triplets and for the series used for calibration.
    verbose
        Show progress.

    Attributes
    ----------
    classes_, n_features_in_
        Labels, and number of channels.
    metric_ : ndarray of shape (d, d)
        The learned M, positive definite, of trace d.
    report_ : LogDetSolution
        Disorder of the training set after every cycle, number of updates, convergence.
    training_rows_, training_codes_, training_indices_
        Distinct training series as rows, their classes, and their positions in X.
    """

    n_cycles: int = 8
    triplets_per_series: float = 20.0
    margin: float = 0.0
    ranking_limit: int | None = 1500

    metric_: FloatArray = field(init=False)
    report_: LogDetSolution = field(init=False)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the metric and keep the training series.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` accepts, or a scan, which is read into
            memory.
        y
            Labels of any type, one per series; None for a scan, which contains them.

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._fitting():
            settings = AlignmentSettings("distance", None, self.normalize)
            first_pass = self._read_training_data(X, y)
            self._keep(first_pass, settings)
            with self._progress("Learning the metric") as progress:
                self.report_ = learn_logdet_metric(
                    self.training_rows_,
                    self.training_codes_,
                    n_cycles=self.n_cycles,
                    triplets_per_series=self.triplets_per_series,
                    margin=self.margin,
                    ranking_limit=self.ranking_limit,
                    random_state=self._seed(),
                    device=self.device,
                    n_jobs=self.n_jobs,
                    progress=progress,
                )
            self.metric_ = self.report_.metric
            self._calibrate()
        return self

    def _nearness_of_rows(self, rows: SeriesBatch) -> FloatArray:
        aligner = self._aligner(
            "all",
            self.row_map_.settings,
            lambda: transform_rows(self.training_rows_, self.metric_),
            (self.training_rows_, self.metric_),
        )
        with self._progress("Aligning") as progress:
            distances = aligner.distances(transform_rows(rows, self.metric_), progress=progress)
        return -np.asarray(distances, dtype=np.float64)


@dataclass(eq=False, repr=False, kw_only=True)
class SimilaritySVC(AllSeriesClassifier):
    """Linear L2 SVM, one-vs-rest, on similarities K_I to all distinct training series.

    Parameters
    ----------
    C
        Inverse of the penalty, as in scikit-learn's `LinearSVC`; or ``"auto"``, the power of 4
        from 1/64 to 256 with the best held-out accuracy. All candidates share one set of
        alignments.
    fit_intercept
        Learn an intercept. It is rarely needed with similarities to many series.
    objective, band
        How paths are found; see `slts.align`.
    scale
        Scaling of each channel, fitted on the training steps: None, ``"standard"`` (mean and
        standard deviation), ``"robust"`` (median and quartiles) or ``"asinh"`` (robust, with
        compressed tails).
    homogeneous
        Append a constant channel before rows are scaled to unit length, which keeps the amplitude:
        True, False, or ``"auto"`` (only with one channel, where unit rows keep only the sign).
    normalize
        Scale every step to unit length.
    class_weight
        None, ``"balanced"`` or a dict of weights by label.
    calibration_cv
        How decisions are held out to choose C and to calibrate `predict_proba`: an int (folds), a
        fraction, or a splitter. None skips calibration, and `predict_proba` is not available; C is
        then chosen on 3 folds.
    device
        Where alignments run: ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``);
        or ``"auto"``, the GPU if there is one and the work is large enough (logged once). Model
        files do not store it.
    n_jobs
        Number of CPU threads, by joblib's convention.
    random_state
        Seed for the folds.
    verbose
        Show progress.

    Attributes
    ----------
    classes_, n_features_in_
        Labels, and number of channels.
    coef_, intercept_
        Coefficients of the SVM, shapes (problems, training series) and (problems,); the intercept
        is zero unless `fit_intercept`.
    C_ : float
        The C that was given or chosen.
    training_rows_, training_indices_
        Distinct training series as rows, and their positions in X.
    """

    C: float | str = field(default="auto", kw_only=False)
    fit_intercept: bool = False
    objective: str = "affinity"
    band: Any = None
    class_weight: Any = None
    calibration_cv: Any = 3

    coef_: FloatArray = field(init=False)
    intercept_: FloatArray = field(init=False)
    C_: float = field(init=False)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Align all training series with each other, choose C and train the SVM.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` accepts, or a scan, which is read into
            memory.
        y
            Labels of any type, one per series; None for a scan, which contains them.
        sample_weight
            Non-negative weight of each series in the loss; None means 1 for all.
        groups
            Group of each series, such as the subject: a group is held out as a whole. None for a
            scan, which contains them (``scan_series(..., groups="subject")``).

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._fitting():
            settings = AlignmentSettings(self.objective, self.band, self.normalize)
            first_pass = self._read_training_data(X, y, sample_weight, groups)
            self._keep(first_pass, settings)
            fit = fit_svm(
                first_pass,
                lambda: self._nearness_of_rows(self.training_rows_),
                self._progress,
                Cs=CS if self.C == "auto" else (float(self.C),),
                fit_intercept=self.fit_intercept,
                class_weight=self.class_weight,
                calibration_cv=self.calibration_cv,
            )
            self.C_, self.coef_, self.intercept_ = fit.C, fit.coef, fit.intercept
            self._calibrate_on(fit.held_out)
            self.validation_ = fit.validation
        return self

    def _decide(self, batch: SeriesBatch) -> FloatArray:
        return self._nearness_of_rows(self.row_map_(batch)) @ self.coef_.T + self.intercept_

    @property
    def _calibrates(self) -> bool:
        return self.calibration_cv is not None

    def linear_forms(self) -> tuple[LinearForm, ...]:
        """The linear forms whose sum is the decision, for `slts.explain`: one."""
        check_is_fitted(self)
        d = self.training_rows_.n_channels
        form = LinearForm(
            name="",
            positives=self.positive_classes_,
            aligner=self._training_aligner(),
            landmark_indices=self.training_indices_,
            coef=self.coef_,
            factors=np.broadcast_to(np.eye(d), (len(self.coef_), 1, 1, d, d)),
            groups=np.zeros(len(self.training_rows_), dtype=np.int64),
            group_names=("all",),
            intercept=self.intercept_,
            rows=self.row_map_,
        )
        return (form,)
