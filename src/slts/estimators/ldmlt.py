"""LDMLT: nearest neighbour under a learned Mahalanobis DTW."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.estimators.neighbors import NearestNeighbor
from slts.learning.logdet import LogDetSolution
from slts.series import SeriesBatch
from slts.series.channels import transform_rows
from slts.training.logdet_cycles import learn_logdet_metric


class LDMLTClassifier(NearestNeighbor):
    """Label of the nearest training series under a learned Mahalanobis DTW distance.

    The distance is the least sum of (a - b)'M(a - b) along a path. M is learned from triplets of
    training series by LogDet-regularised steps.

    Parameters
    ----------
    n_cycles
        Most cycles; triplets are rebuilt under the current M in each.
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
        Append a constant channel before rows are normalised, so that amplitude is kept: True,
        False, or ``"auto"`` (only with one channel, where unit rows keep nothing but the sign).
    normalize
        Scale every step to unit norm.
    calibration_size
        Number of training series that are compared with all others to calibrate `predict_proba`.
        None skips calibration, and `predict_proba` is not available.
    device
        Where rankings and predictions are aligned: ``"cpu"``; ``"cuda"``, an NVIDIA GPU through
        CuPy (extra ``cuda``); or ``"auto"``, the GPU if there is one and the work is large enough
        (logged once). Paths of triplets are always found on the CPU. Model files do not store it.
    n_jobs
        Threads of the CPU, by joblib's convention.
    random_state
        Seed of the triplets and of the series used for calibration.
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

    def __init__(
        self,
        *,
        n_cycles: int = 8,
        triplets_per_series: float = 20.0,
        margin: float = 0.0,
        ranking_limit: int | None = 1500,
        scale: str | None = None,
        homogeneous: bool | str = "auto",
        normalize: bool = True,
        calibration_size: int | None = 500,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_cycles = n_cycles
        self.triplets_per_series = triplets_per_series
        self.margin = margin
        self.ranking_limit = ranking_limit
        self.scale = scale
        self.homogeneous = homogeneous
        self.normalize = normalize
        self.calibration_size = calibration_size
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    metric_: FloatArray
    report_: LogDetSolution

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the metric and keep the training series.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` takes, or a scan, which is read into memory.
        y
            Labels of any type, one per series; None for a scan, which has its own.

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
