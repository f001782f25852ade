"""Nearest neighbours: the class of the most similar training series."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.estimators.base import SeriesClassifier, checked_settings
from slts.models.row_map import RowMap
from slts.series import SeriesBatch
from slts.training.first_pass import FirstPass

__all__ = ["NearestNeighbor", "OneNNClassifier"]


class NearestNeighbor(SeriesClassifier):
    """Base of the nearest-neighbour classifiers, which differ in how nearness is defined.

    Attributes
    ----------
    training_rows_, training_codes_, training_indices_
        Distinct training series as rows, their classes, and their positions in X.
    """

    calibration_size: int | None
    training_rows_: SeriesBatch
    training_codes_: IntArray
    training_indices_: IntArray
    row_map_: RowMap

    @abstractmethod
    def _nearness_of_rows(self, rows: SeriesBatch) -> FloatArray:
        """Return the nearness of rows to each training series."""

    def nearness(self, X: Any) -> FloatArray:
        """Nearness of series to every distinct training series.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes.

        Returns
        -------
        ndarray
            Shape (series, training series); larger is nearer.
        """
        check_is_fitted(self)
        return self._nearness_of_rows(self.row_map_(self.check_series(X)))

    def _decide(self, batch: SeriesBatch) -> FloatArray:
        return self._decisions(self._nearness_of_rows(self.row_map_(batch)))

    @property
    def _calibrates(self) -> bool:
        return self.calibration_size is not None

    def _decisions(self, nearness: FloatArray) -> FloatArray:
        """Return the nearness of the nearest series of each class; with two, the difference."""
        nearest = np.column_stack(
            [nearness[:, self.training_codes_ == c].max(axis=1) for c in range(len(self.classes_))]
        )
        return nearest if len(self.classes_) > 2 else nearest[:, 1:] - nearest[:, :1]

    def _keep(self, found: FirstPass, row_map: RowMap) -> None:
        self.row_map_, self.training_rows_ = row_map, row_map(found.sample.series)
        self.training_codes_, self.training_indices_ = found.codes, found.indices

    def _calibrate(self) -> None:
        """Fit the scale of probabilities on training series, each left out in turn."""
        self.probability_scale_ = self.held_out_margins_ = None
        size = self.calibration_size
        if size is None:
            return
        if isinstance(size, bool) or not isinstance(size, numbers.Integral) or size < 1:
            raise ValueError(
                f"The 'calibration_size' parameter of {type(self).__name__} must be an int >= 1 or "
                f"None. Got {size!r} instead."
            )
        # The only series of a class has no neighbour of its class. Training series are in random
        # order, so the first ones are a random choice.
        held_out = np.flatnonzero(np.bincount(self.training_codes_)[self.training_codes_] > 1)
        held_out = held_out[:size]
        if len(held_out) == 0:
            self.probability_scale_ = np.ones(len(self.classes_))
            return
        nearness = self._nearness_of_rows(self.training_rows_[held_out])
        nearness[np.arange(len(held_out)), held_out] = -np.inf
        decisions, codes = self._decisions(nearness), self.training_codes_[held_out]
        self._calibrate_on(decisions, codes)


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
            settings = checked_settings(self, self.objective, self.band, self.normalize)
            found = self._read_training_data(X, y)
            series = found.sample.series
            self._keep(
                found,
                RowMap.fit(series, settings, homogeneous=self.homogeneous, scale=self.scale),
            )
            self._calibrate()
        return self

    def _nearness_of_rows(self, rows: SeriesBatch) -> FloatArray:
        kept = self.training_rows_
        aligner = self._aligner("all", self.row_map_.settings, lambda: kept, (kept,))
        with self._progress("Aligning") as progress:
            return np.asarray(aligner.similarities(rows, progress=progress), dtype=np.float64)
