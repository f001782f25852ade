"""LDMLT: nearest neighbour under a learned Mahalanobis DTW."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.alignment.reductions import distances
from slts.estimators.neighbors import NearestNeighbor
from slts.learning.logdet import LogDetSolution, learn_logdet_metric, transform_rows
from slts.models.row_map import RowMap
from slts.series import SeriesBatch


class LDMLTClassifier(NearestNeighbor):
    """Label of the nearest training series under a learned Mahalanobis DTW distance.

    The distance is the least sum of (a - b)'M(a - b) along a path, M learned from triplets of
    training series with LogDet-regularised steps.

    Parameters
    ----------
    n_cycles
        How often triplets are rebuilt under the current M, at most.
    triplets_per_series
        Triplets of the first cycle, per training series.
    margin
        How much nearer the series of the same class must be.
    ranking_limit
        Rank against at most so many training series per cycle; None ranks all pairs.
    scale
        Map of each channel, fitted on the training steps, before anything else: None,
        ``"standard"`` (mean and standard deviation), ``"robust"`` (median and quartiles) or
        ``"asinh"`` (robust, with heavy tails squashed).
    homogeneous
        Append a constant channel before normalising: True, False, or ``"auto"`` (with one channel).
    normalize
        Scale every step to unit norm.
    calibration_size
        How many training series are compared with all others to calibrate `predict_proba`; None
        skips it, and `predict_proba` with it.
    device
        ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``), for rankings in `fit`
        and distances in prediction; or ``"auto"``: the GPU if there is one and the work is large
        enough, which is logged once. Paths of triplets, one after another, are found on the CPU.
        Model files do not keep it.
    n_jobs
        Threads of the CPU, by joblib's convention.
    random_state
        Seed of the triplets.
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
        calibration_size: int | None = 200,
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

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the metric and keep the training series.

        Parameters
        ----------
        X
            Training series, anything `slts.as_series` takes.
        y
            Labels of any type, one per series.

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._all_or_nothing():
            batch, self.training_codes_ = self._check_training_data(X, y)
            self.row_map_ = RowMap.fit(
                batch, self._settings(), homogeneous=self.homogeneous, scale=self.scale
            )
            self.training_rows_ = rows = self.row_map_(batch)
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            with self._progress("Learning the metric") as progress:
                self.report_ = learn_logdet_metric(
                    rows,
                    self.training_codes_,
                    n_cycles=self.n_cycles,
                    triplets_per_series=self.triplets_per_series,
                    margin=self.margin,
                    ranking_limit=self.ranking_limit,
                    random_state=seed,
                    device=self.device,
                    n_jobs=self.n_jobs,
                    progress=progress,
                )
            self.metric_ = self.report_.metric
            self._calibrate()
        return self

    def _settings(self) -> AlignmentSettings:
        return AlignmentSettings("distance", None, self.normalize)

    def nearness_of_rows(self, rows: SeriesBatch) -> FloatArray:
        series, others = (transform_rows(r, self.metric_) for r in (rows, self.training_rows_))
        settings = self._settings()
        with self._progress("Aligning") as progress:
            D = distances(
                series, others, settings,
                device=self.device, n_jobs=self.n_jobs, progress=progress,
            )  # fmt: skip
        return -D.astype(np.float64, copy=False)
