"""Classifiers that compare series with all distinct training series: nearest neighbours, LDMLT."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.estimators.base import SeriesClassifier
from slts.estimators.parameters import at_least
from slts.features.models import Neighbours, Origins
from slts.series import SeriesBatch
from slts.solvers.logdet import LogDetSolution
from slts.training.neighbour_fit import (
    LogDetOptions,
    learn_logdet_metric,
    left_out_decisions,
)


@dataclass(eq=False, repr=False, kw_only=True)
class NearestNeighbor(SeriesClassifier):
    """Base of the nearest-neighbour classifiers, which differ in how nearness is defined.

    Attributes
    ----------
    model_ : Neighbours
        The distinct training series, and how series are compared with them.
    training_indices_ : ndarray
        Their positions in X.
    """

    scale: str | None = None
    homogeneous: bool | str = "auto"
    normalize: bool = True
    calibration_size: int | None = 500

    model_: Neighbours = field(init=False)
    training_indices_: IntArray = field(init=False)

    @property
    def training_rows_(self) -> SeriesBatch:
        """The distinct training series as rows."""
        return self.model_.rows

    @property
    def training_codes_(self) -> IntArray:
        """Classes of the distinct training series."""
        return self.model_.codes

    def features(self, X: Any) -> FloatArray:
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
        return self.model_.nearness(self.check_series(X), self._resources)

    def kneighbors(self, X: Any, n_neighbors: int = 5) -> tuple[FloatArray, IntArray]:
        """Nearest distinct training series of each series, nearest first.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts.
        n_neighbors
            Number of neighbours; all training series if there are fewer.

        Returns
        -------
        nearness : ndarray of shape (series, neighbours)
            The similarity K_I of `OneNNClassifier`, where larger is nearer, or the distance of
            `LDMLTClassifier`, a sum of (a - b)'M(a - b).
        indices : ndarray of shape (series, neighbours)
            Positions among the training series: ``y[indices]`` are their labels.
        """
        if not at_least(1).accepts(n_neighbors):
            raise ValueError(
                f"The 'n_neighbors' parameter of kneighbors must be {at_least(1).text}. Got "
                f"{n_neighbors!r} instead."
            )
        nearness = self.features(X)
        order = np.argsort(-nearness, axis=1, kind="stable")[:, :n_neighbors]
        nearest = np.take_along_axis(nearness, order, axis=1)
        return nearest if self.model_.metric is None else -nearest, self.training_indices_[order]

    def _keep_series(self, X: Any, y: Any, settings: AlignmentSettings, seed: int) -> None:
        """Keep the training series."""
        data = self._read(X, y, seed=seed, keeps_all=True)
        self.model_ = Neighbours.fit(
            data.named_series, data.codes, settings, scale=self.scale, homogeneous=self.homogeneous
        )
        self.training_indices_ = data.indices
        self.origins_ = Origins.of(data.series, data.indices, data.codes)

    @property
    def _calibrates(self) -> bool:
        return self.calibration_size is not None

    def _calibrate(self) -> None:
        """Fit the scale of probabilities on training series, each left out in turn."""
        held_out = validation = None
        if self.calibration_size is not None:
            with self._progress("Aligning") as progress:
                held_out, validation = left_out_decisions(
                    self.model_, int(self.calibration_size), self._resources
                )
                progress(1, 1)
        self._calibrate_on(held_out, validation)
        if self._calibrates and held_out is None:
            # Every class has one series only.
            self.probability_scale_ = np.ones(len(self.classes_))

    def check_fitted(self) -> None:
        """Raise an error if fitted attributes do not fit each other, as in a damaged file."""
        if len(self.training_indices_) != len(self.training_rows_):
            raise ValueError("training_indices_ does not have one position for each series")
        if not np.isin(np.arange(len(self.classes_)), self.training_codes_).all():
            raise ValueError("model_ does not have series of every class")


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
        with self._fitting() as seed:
            self._keep_series(
                X, y, AlignmentSettings(self.objective, self.band, self.normalize), seed
            )
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
        with self._fitting() as seed:
            self._keep_series(X, y, AlignmentSettings("distance", None, self.normalize), seed)
            with self._progress("Learning the metric") as progress:
                options = LogDetOptions(
                    n_cycles=self.n_cycles,
                    triplets_per_series=self.triplets_per_series,
                    margin=self.margin,
                    ranking_limit=self.ranking_limit,
                    seed=seed,
                    resources=self._resources,
                )
                self.report_ = learn_logdet_metric(
                    self.training_rows_, self.training_codes_, options, progress
                )
            self.model_ = replace(self.model_, metric=self.report_.metric)
            self._calibrate()
        return self

    @property
    def metric_(self) -> FloatArray:
        """The learned M."""
        return self.report_.metric
