"""Linear SVM on similarities to the training series."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.estimators.all_series import AllSeriesClassifier
from slts.models.linear_form import LinearForm
from slts.series import SeriesBatch
from slts.training.options import SvmOptions
from slts.training.similarity_fit import fit_svm
from slts.training.source import is_source

# What C is chosen from, ascending: ties go to the smaller one.
CS = tuple(4.0**k for k in range(-3, 5))


class SimilaritySVC(AllSeriesClassifier):
    """Linear L2 SVM, one-vs-rest, on similarities K_I to all distinct training series.

    Parameters
    ----------
    C
        Inverse of the penalty, as in scikit-learn's `LinearSVC`; or ``"auto"``, the power of 4
        from 1/64 to 256 with the best held-out accuracy. All candidates share one set of
        alignments.
    fit_intercept
        Learn a bias. Similarities to many series hardly need one.
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
        Threads of the CPU, by joblib's convention.
    random_state
        Seed of folds.
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

    def __init__(
        self,
        C: float | str = "auto",
        *,
        fit_intercept: bool = False,
        objective: str = "affinity",
        band: Any = None,
        scale: str | None = None,
        homogeneous: bool | str = "auto",
        normalize: bool = True,
        class_weight: Any = None,
        calibration_cv: Any = 3,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.objective = objective
        self.band = band
        self.scale = scale
        self.homogeneous = homogeneous
        self.normalize = normalize
        self.class_weight = class_weight
        self.calibration_cv = calibration_cv
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    coef_: FloatArray
    intercept_: FloatArray
    C_: float

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Align all training series with each other, choose C and train the SVM.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` takes, or a scan, which is read into memory.
        y
            Labels of any type, one per series; None for a scan, which has its own.
        sample_weight
            Non-negative weight of each series in the loss; None is 1 for all.
        groups
            Group of each series, such as the subject: a group is held out as a whole. None for a
            scan, which has its own (``scan_series(..., groups="subject")``).

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._fitting():
            settings = AlignmentSettings(self.objective, self.band, self.normalize)
            first_pass = self._read_training_data(X, y, sample_weight, groups)
            self._keep(first_pass, settings)
            options = SvmOptions(
                C=CS if self.C == "auto" else (float(self.C),),
                fit_intercept=self.fit_intercept,
                class_weight=self.class_weight,
                calibration_cv=self.calibration_cv,
                bar=self._progress,
            )
            fit = fit_svm(
                first_pass,
                self.classes_,
                options,
                lambda: self._nearness_of_rows(self.training_rows_),
                in_memory=not is_source(X),
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
