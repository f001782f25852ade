"""Nearest neighbours: the class of the most similar training series."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from slts._typing import FloatArray, IntArray
from slts.estimators.base import SeriesClassifier
from slts.estimators.streams import takes_streams
from slts.learning.calibration import fit_scale
from slts.models.row_map import RowMap
from slts.series import SeriesBatch


class NearestNeighbor(SeriesClassifier):
    """Base of the nearest-neighbour classifiers: they differ in what "near" means."""

    calibration_size: int | None
    random_state: Any
    training_codes_: IntArray
    training_rows_: SeriesBatch

    @abstractmethod
    def nearness_of_rows(self, rows: SeriesBatch) -> FloatArray:
        """Nearness of series, their rows mapped, to each training series."""

    def nearness(self, X: Any) -> FloatArray:
        """Nearness of every series to every training series; larger is nearer.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes.

        Returns
        -------
        ndarray
            Shape (series, training series).
        """
        return self.nearness_of_rows(self._new_rows(X))

    @takes_streams
    def decision_function(self, X: Any) -> FloatArray:
        """Nearness to the nearest training series of each class.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes; or series to be read: a path or several,
            `slts.scan_series`, a Dask bag or data frame.

        Returns
        -------
        ndarray
            Shape (series, classes); for two classes (series,), the second minus the first.
        """
        return self._decide(self.nearness(X))

    @property
    def _calibrates(self) -> bool:
        return self.calibration_size is not None

    def _decide(self, nearness: FloatArray) -> FloatArray:
        columns = [
            nearness[:, self.training_codes_ == c].max(axis=1) for c in range(len(self.classes_))
        ]
        if len(columns) == 2:
            return np.asarray(columns[1] - columns[0])
        return np.column_stack(columns)

    def _calibrate(self) -> None:
        """Leave single training series out and see how decisive the nearest others are."""
        self.probability_scale_ = None
        size = self.calibration_size
        if size is None:
            return
        if isinstance(size, bool) or not isinstance(size, numbers.Integral) or size < 1:
            raise ValueError(
                f"The 'calibration_size' parameter of {type(self).__name__} must be an int >= 1 or "
                f"None. Got {size!r} instead."
            )
        # The only member of a class has no like to be near to.
        held_out = np.flatnonzero(np.bincount(self.training_codes_)[self.training_codes_] > 1)
        if len(held_out) == 0:
            self.probability_scale_ = 1.0
            return
        if len(held_out) > self.calibration_size:
            rng = check_random_state(self.random_state)
            held_out = np.sort(rng.choice(held_out, self.calibration_size, replace=False))
        nearness = self.nearness_of_rows(self.training_rows_[held_out])
        nearness[np.arange(len(held_out)), held_out] = -np.inf
        self.probability_scale_ = fit_scale(self._decide(nearness), self.training_codes_[held_out])


class OneNNClassifier(NearestNeighbor):
    """Nearest neighbour under the similarity K_I.

    Parameters
    ----------
    objective, band
        How paths are found; see `slts.align`.
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
        ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``), that aligns in `fit` and
        in prediction; or ``"auto"``: the GPU if there is one and the work is large enough, which is
        logged once. Model files do not keep it.
    n_jobs
        Threads of the CPU, by joblib's convention.
    random_state
        Seed of the series taken for calibration.
    verbose
        Show progress.

    Attributes
    ----------
    classes_, n_features_in_
        Labels, and number of channels.
    """

    def __init__(
        self,
        *,
        objective: str = "affinity",
        band: Any = None,
        scale: str | None = None,
        homogeneous: bool | str = "auto",
        normalize: bool = True,
        calibration_size: int | None = 200,
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

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the training series.

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
            settings = self._settings()
            batch, self.training_codes_ = self._check_training_data(X, y)
            self.row_map_ = RowMap.fit(
                batch, settings, homogeneous=self.homogeneous, scale=self.scale
            )
            self.training_rows_ = self.row_map_(batch)
            self._calibrate()
        return self

    def nearness_of_rows(self, rows: SeriesBatch) -> FloatArray:
        return self._similarities(rows, self.training_rows_)
