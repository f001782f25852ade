"""Classifiers with a linear model: their base; a linear SVM on similarities to all series."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.estimators.base import SeriesClassifier
from slts.features.models import LinearModel
from slts.series import SeriesBatch
from slts.training.neighbour_fit import fit_svm
from slts.training.training_set import Fit

# What C is chosen from, ascending: ties go to the smaller one.
CS = tuple(4.0**k for k in range(-3, 5))


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(SeriesClassifier):
    """Base of the classifiers whose decision values are the outputs of a linear model.

    Attributes
    ----------
    model_ : LinearModel
        Feature maps with coefficients.
    landmark_indices_ : ndarray
        Positions of the landmarks among the training series.
    """

    model_: LinearModel = field(init=False)
    landmark_indices_: IntArray = field(init=False)

    def _keep(self, fit: Fit) -> None:
        """Store what was learned, and calibrate."""
        self.model_, self.origins_ = fit.model, fit.origins
        self.landmark_indices_ = fit.landmark_indices
        self._calibrate_on(fit.held_out, fit.validation)

    @property
    def landmarks_(self) -> SeriesBatch:
        """The landmarks."""
        return self.model_.aligned[0].landmarks

    @property
    def intercept_(self) -> FloatArray:
        """Constant part of the decision values, shape (problems,)."""
        return self.model_.intercept

    @property
    def n_numbers_(self) -> int:
        """Number of stored numbers: coefficients, maps, intercepts, landmarks."""
        return self.model_.n_numbers

    def check_fitted(self) -> None:
        """Raise an error if fitted attributes do not fit each other, as in a damaged file."""
        if len(self.model_.intercept) != len(self.positive_classes_):
            raise ValueError("model_ does not have one output for each problem")
        if len(self.landmark_indices_) != len(self.landmarks_):
            raise ValueError("landmark_indices_ does not have one position for each landmark")
        if self.landmarks_.n_channels != self.n_channels_in_:
            raise ValueError("landmarks_ do not have the channels of training")


@dataclass(eq=False, repr=False, kw_only=True)
class SimilaritySVC(LinearClassifier):
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
    landmarks_, landmark_indices_
        Distinct training series, and their positions in X.
    """

    C: float | str = field(default="auto", kw_only=False)
    fit_intercept: bool = False
    objective: str = "affinity"
    band: Any = None
    scale: str | None = None
    homogeneous: bool | str = "auto"
    normalize: bool = True
    class_weight: Any = None
    calibration_cv: Any = 3

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
        with self._fitting() as seed:
            data = self._read(X, y, sample_weight, groups, seed=seed, keeps_all=True)
            fit = fit_svm(
                data,
                AlignmentSettings(self.objective, self.band, self.normalize),
                self._resources,
                self._progress,
                Cs=CS if self.C == "auto" else (float(self.C),),
                fit_intercept=self.fit_intercept,
                scale=self.scale,
                homogeneous=self.homogeneous,
                class_weight=self.class_weight,
                calibration_cv=self.calibration_cv,
            )
            self._keep(fit)
            self.C_ = fit.C
        return self

    def features(self, X: Any) -> FloatArray:
        """Similarity of series to every distinct training series.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts.

        Returns
        -------
        ndarray
            Shape (series, training series).
        """
        check_is_fitted(self)
        batch = self.check_series(X)
        return self.model_.aligned[0].similarities(batch, None, self._resources)

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of the SVM, shape (problems, training series)."""
        return self.model_.aligned[0].weights

    @property
    def _calibrates(self) -> bool:
        return self.calibration_cv is not None
