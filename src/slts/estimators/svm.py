"""Linear SVM on similarities to the training series."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.base import SeriesClassifier
from slts.estimators.splitting import make_splits
from slts.estimators.streams import takes_streams
from slts.estimators.tuning import check_positive
from slts.learning.calibration import fit_scale
from slts.models.linear_form import LinearForm
from slts.models.row_map import RowMap
from slts.series import SeriesBatch


class SimilaritySVC(SeriesClassifier):
    """Linear L2 SVM, one-vs-rest, whose features are similarities K_I to all training series.

    Parameters
    ----------
    C
        Inverse of the penalty, as in scikit-learn's `LinearSVC`.
    fit_intercept
        Learn a bias. Similarities to many series hardly need one.
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
    class_weight
        None, ``"balanced"`` or a dict of weights by label.
    calibration_cv
        How decisions are held out to calibrate `predict_proba`: an int (folds), a fraction, a
        splitter; None skips it, and `predict_proba` with it.
    device
        ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``), that aligns in `fit` and
        in prediction; or ``"auto"``: the GPU if there is one and the work is large enough, which is
        logged once. Model files do not keep it.
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
        Of the SVM, shapes (problems, training series) and (problems,); the latter is zero unless
        `fit_intercept`.
    """

    def __init__(
        self,
        C: float = 1.0,
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
    training_rows_: SeriesBatch

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Align all training series with each other and train the SVM.

        Parameters
        ----------
        X
            Training series, anything `slts.as_series` takes.
        y
            Labels of any type, one per series.
        sample_weight
            Non-negative weight of each series in the loss; None is 1 for all.

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._all_or_nothing():
            check_positive("C", self, self.C)
            settings = self._settings()
            batch, codes = self._check_training_data(X, y)
            weights = self._check_weights(batch, codes, sample_weight, self.class_weight)
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            self.row_map_ = RowMap.fit(
                batch, settings, homogeneous=self.homogeneous, scale=self.scale
            )
            self.training_rows_ = self.row_map_(batch)
            K = self._similarities(self.training_rows_, self.training_rows_)
            self.probability_scale_ = None
            if self.calibration_cv is not None:
                splits = make_splits(
                    self.calibration_cv,
                    codes,
                    random_state=seed,
                    name="calibration_cv",
                    classes=self.classes_,
                )
                held_out = []
                for train, test in splits:
                    self._require_all_classes(codes[train])
                    coef, intercept = self._train(K[train], codes[train], weights[train])
                    held_out.append(K[test] @ coef.T + intercept)
                values = np.concatenate(held_out)
                truth = np.concatenate([codes[test] for _, test in splits])
                self.probability_scale_ = fit_scale(values, truth)
            self.coef_, self.intercept_ = self._train(K, codes, weights)
        return self

    def nearness(self, X: Any) -> FloatArray:
        """Similarity K_I of every series to every training series.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes.

        Returns
        -------
        ndarray
            Shape (series, training series).
        """
        return self._similarities(self._new_rows(X), self.training_rows_)

    @takes_streams
    def decision_function(self, X: Any) -> FloatArray:
        """Decision values of the SVM; see `SeriesClassifier.decision_function`."""
        values = self.nearness(X) @ self.coef_.T + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    @property
    def _calibrates(self) -> bool:
        return self.calibration_cv is not None

    def linear_form(self) -> LinearForm:
        """The fitted model as numbers: what `slts.explain` takes apart."""
        check_is_fitted(self)
        d = self.training_rows_.n_channels
        return LinearForm(
            name="",
            positives=self.positive_classes_,
            landmarks=self.training_rows_,
            landmark_indices=np.arange(len(self.training_rows_)),
            coef=self.coef_,
            local_metrics=np.broadcast_to(np.eye(d), (len(self.coef_), 1, 1, d, d)),
            groups=np.zeros(len(self.training_rows_), dtype=np.int64),
            group_names=("all",),
            intercept=self.intercept_,
            rows=self.row_map_,
            settings=self._settings(),
        )

    def linear_forms(self) -> tuple[LinearForm, ...]:
        """`linear_form`, as models with several forms give theirs."""
        return (self.linear_form(),)

    def _require_all_classes(self, codes: IntArray) -> None:
        missing = np.setdiff1d(np.arange(len(self.classes_)), codes)
        if len(missing):
            raise DataError(
                f"calibration_cv leaves class {self.classes_.tolist()[missing[0]]!r} out of a "
                f"training part: every part must hold all classes."
            )

    def _train(
        self, K: FloatArray, codes: IntArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        # The primal solver needs no seed and does not slow down as C grows.
        svm = LinearSVC(C=self.C, dual=False, fit_intercept=self.fit_intercept)
        svm.fit(K, codes, sample_weight=weights)
        return svm.coef_, np.broadcast_to(svm.intercept_, len(svm.coef_)).astype(np.float64)
