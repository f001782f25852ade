"""Nearest neighbours: the class of the most similar training series."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.estimators.all_series import AllSeriesClassifier
from slts.series import SeriesBatch
from slts.training.first_pass import FirstPass
from slts.training.similarity_fit import left_out_decisions, nearest_decisions

__all__ = ["NearestNeighbor", "OneNNClassifier"]


class NearestNeighbor(AllSeriesClassifier):
    """Base of the nearest-neighbour classifiers, which differ in how nearness is defined.

    Attributes
    ----------
    training_codes_
        Classes of the distinct training series.
    """

    calibration_size: int | None
    training_codes_: IntArray

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
        Append a constant channel before rows are normalised, so that amplitude is kept: True,
        False, or ``"auto"`` (only with one channel, where unit rows keep nothing but the sign).
    normalize
        Scale every step to unit norm.
    calibration_size
        Number of training series that are compared with all others to calibrate `predict_proba`.
        None skips calibration, and `predict_proba` is not available.
    device
        Where alignments run: ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``);
        or ``"auto"``, the GPU if there is one and the work is large enough (logged once). Model
        files do not store it.
    n_jobs
        Threads of the CPU, by joblib's convention.
    random_state
        Seed of the series used for calibration.
    verbose
        Show progress.

    Attributes
    ----------
    classes_, n_features_in_
        Labels, and number of channels.
    training_rows_, training_codes_, training_indices_
        Distinct training series as rows, their classes, and their positions in X.
    """

    def __init__(
        self,
        *,
        objective: str = "affinity",
        band: Any = None,
        scale: str | None = None,
        homogeneous: bool | str = "auto",
        normalize: bool = True,
        calibration_size: int | None = 500,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.objective = objective
        self.band = band
        self.scale = scale
        self.homogeneous = homogeneous
        self.normalize = normalize
        self.calibration_size = calibration_size
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the training series.

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
            settings = AlignmentSettings(self.objective, self.band, self.normalize)
            first_pass = self._read_training_data(X, y)
            self._keep(first_pass, settings)
            self._calibrate()
        return self
