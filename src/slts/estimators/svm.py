"""Linear SVM on similarities to the training series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.base import SeriesClassifier, check_positive, checked_settings
from slts.learning.calibration import two_sided
from slts.models.linear_form import LinearForm
from slts.models.row_map import RowMap
from slts.series import SeriesBatch
from slts.training.first_pass import FirstPass, class_weights
from slts.training.source import is_source
from slts.training.splits import Split, make_splits

# What C is chosen from, ascending: ties go to the smaller one.
CS = tuple(4.0**k for k in range(-3, 5))
# Folds that C is chosen on if nothing is held out for calibration.
_FOLDS = 3


class SimilaritySVC(SeriesClassifier):
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
    training_rows_: SeriesBatch
    training_indices_: IntArray
    row_map_: RowMap

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Align all training series with each other, choose C and train the SVM.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` takes, or a scan, which is read into memory.
        y
            Labels of any type, one per series; None for a scan, which has its own.
        sample_weight
            Non-negative weight of each series in the loss; None is 1 for all.

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._fitting():
            candidates = self._candidates()
            settings = checked_settings(self, self.objective, self.band, self.normalize)
            found = self._read_training_data(X, y, sample_weight)
            series, codes = found.sample.series, found.codes
            weights = found.sample.weights
            by_class = class_weights(self.class_weight, self.classes_, found.totals)
            weights = weights * by_class[codes]
            self.row_map_ = RowMap.fit(
                series, settings, homogeneous=self.homogeneous, scale=self.scale
            )
            self.training_rows_ = self.row_map_(series)
            self.training_indices_ = found.indices
            splits = self._splits(found, None if is_source(X) else found.indices, len(candidates))
            K = self._similarities(self.training_rows_)
            self.C_ = self._choose(K, found, weights, splits, candidates)
            self.coef_, self.intercept_ = self._train(K, codes, weights, self.C_)
        return self

    def _candidates(self) -> tuple[float, ...]:
        if isinstance(self.C, str) and self.C == "auto":
            return CS
        return (check_positive("C", self, self.C, otherwise=" or 'auto'"),)

    def _splits(self, found: FirstPass, indices: IntArray | None, n_candidates: int) -> list[Split]:
        """Return what is held out: for calibration, or else for the choice of C alone."""
        calibrates = self.calibration_cv is not None or n_candidates == 1
        return make_splits(
            self.calibration_cv if calibrates else _FOLDS, found.codes, found.sample.keys,
            name="calibration_cv" if calibrates else "C='auto'",
            indices=indices, n_series=found.n_series,
        )  # fmt: skip

    def _choose(
        self,
        K: FloatArray,
        found: FirstPass,
        weights: FloatArray,
        splits: Sequence[Split],
        candidates: Sequence[float],
    ) -> float:
        """Return the C with the best held-out accuracy; calibrate on its held-out decisions."""
        self.probability_scale_ = self.held_out_margins_ = None
        if not splits:
            return candidates[0]
        codes, multiplicities = found.codes, found.sample.weights
        scores = np.empty((len(candidates), len(splits)))
        held_out: list[list[FloatArray]] = [[] for _ in candidates]
        with self._progress("Training on parts") as progress:
            for k, (train, test) in enumerate(splits):
                self._require_all_classes(codes[train])
                for c, C in enumerate(candidates):
                    coef, intercept = self._train(K[train], codes[train], weights[train], C)
                    decisions = two_sided(K[test] @ coef.T + intercept)
                    correct = decisions.argmax(axis=1) == codes[test]
                    scores[c, k] = np.average(correct, weights=weights[test])
                    held_out[c].append(decisions)
                    if progress is not None:
                        progress(k * len(candidates) + c + 1, scores.size)
        best = int(np.argmax(scores.mean(axis=1)))
        if self.calibration_cv is not None:
            tested = np.concatenate([test for _, test in splits])
            share = multiplicities[tested] / multiplicities[tested].mean()
            self._calibrate_on(np.concatenate(held_out[best]), codes[tested], share)
        return candidates[best]

    def nearness(self, X: Any) -> FloatArray:
        """Similarity of series to every distinct training series.

        Parameters
        ----------
        X
            Anything `slts.as_series` takes.

        Returns
        -------
        ndarray
            Shape (series, training series).
        """
        check_is_fitted(self)
        return self._similarities(self.row_map_(self.check_series(X)))

    def _similarities(self, rows: SeriesBatch) -> FloatArray:
        kept = self.training_rows_
        aligner = self._aligner("all", self.row_map_.settings, lambda: kept, (kept,))
        with self._progress("Aligning") as progress:
            return np.asarray(aligner.similarities(rows, progress=progress), dtype=np.float64)

    def _decide(self, batch: SeriesBatch) -> FloatArray:
        return self._similarities(self.row_map_(batch)) @ self.coef_.T + self.intercept_

    @property
    def _calibrates(self) -> bool:
        return self.calibration_cv is not None

    def linear_form(self) -> LinearForm:
        """The fitted model as a linear form of aligned products, which `slts.explain` uses."""
        check_is_fitted(self)
        d = self.training_rows_.n_channels
        return LinearForm(
            name="",
            positives=self.positive_classes_,
            landmarks=self.training_rows_,
            landmark_indices=self.training_indices_,
            coef=self.coef_,
            local_metrics=np.broadcast_to(np.eye(d), (len(self.coef_), 1, 1, d, d)),
            groups=np.zeros(len(self.training_rows_), dtype=np.int64),
            group_names=("all",),
            intercept=self.intercept_,
            rows=self.row_map_,
            settings=self.row_map_.settings,
        )

    def linear_forms(self) -> tuple[LinearForm, ...]:
        """The linear forms whose sum is the decision: one."""
        return (self.linear_form(),)

    def _require_all_classes(self, codes: IntArray) -> None:
        missing = np.setdiff1d(np.arange(len(self.classes_)), codes)
        if len(missing):
            raise DataError(
                f"calibration_cv leaves class {self.classes_.tolist()[missing[0]]!r} out of a "
                f"training part: every training part must have all classes."
            )

    def _train(
        self, K: FloatArray, codes: IntArray, weights: FloatArray, C: float
    ) -> tuple[FloatArray, FloatArray]:
        # The primal solver needs no seed and does not slow down as C grows.
        svm = LinearSVC(C=C, dual=False, fit_intercept=self.fit_intercept)
        svm.fit(K, codes, sample_weight=weights)
        return svm.coef_, np.broadcast_to(svm.intercept_, len(svm.coef_)).astype(np.float64)
