"""SLTS and BBS, the classifiers over landmarks, and their CV variants."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray
from slts.alignment import AlignmentSettings
from slts.estimators.base import TransformerMixin
from slts.estimators.linear import LinearClassifier
from slts.estimators.parameters import PARAMETERS, SEVERAL_COUNTS
from slts.estimators.prediction import apply
from slts.series import SeriesBatch
from slts.solvers.hinge import SolveReport
from slts.training.held_out import SearchResult
from slts.training.landmark_fit import fit_landmarks
from slts.training.training_set import LandmarkOptions

# The paper's grids.
GAMMAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
LAMS = (0.1, 1.0, 10.0)


@dataclass(eq=False, repr=False, kw_only=True)
class LandmarkClassifier(TransformerMixin, LinearClassifier):
    """Base of the sparse classifiers over landmarks.

    A decision value is sum_j coef_[c, j] <metrics_[c], T(x, landmark j)>.
    """

    n_landmarks: int | float | None = field(default=None, kw_only=False)
    landmarks: Any = "random"
    objective: str = "affinity"
    band: Any = None
    scale: str | None = None
    homogeneous: bool | str = "auto"
    normalize: bool = True
    class_weight: Any = None
    dtype: str = "float64"
    memory_limit: Any = None

    reports_: tuple[SolveReport, ...] = field(init=False)
    n_sampled_: int = field(init=False)
    # How the model was fitted, whatever its parameters are now; certificates depend on it.
    fit_params_: dict[str, Any] = field(init=False)

    # Whether a metric is learned for each class; otherwise M = I.
    learns_metric = True
    # Penalty of the metrics; a parameter of SLTS.
    regularizer = "frobenius"
    # The parameter that gives the splits.
    _cv_name = "calibration_cv"

    @abstractmethod
    def _candidates(self) -> list[dict[str, float]]:
        """Return the parameters to choose from, one if there is no choice."""

    def _keep_search(self, result: SearchResult) -> None:
        """Store the scores of a search, for classifiers that report them."""

    @property
    def _calibrates(self) -> bool:
        return getattr(self, self._cv_name) is not None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose landmarks, align once, learn.

        Parameters
        ----------
        X
            Training series: anything `slts.as_series` accepts, or a scan (`slts.scan_series`),
            which need not fit in memory.
        y
            Labels of any type, one per series; None for a scan, which contains them.
        sample_weight
            Non-negative weight of each series in the loss; None means 1 for all.
        groups
            Group of each series, such as the subject: a group is held out as a whole, by folds, a
            fraction, or a splitter such as `GroupKFold`. None for a scan, which has its own
            (``scan_series(..., groups="subject")``).

        Returns
        -------
        Self
            The fitted classifier.
        """
        with self._fitting() as seed:
            data = self._read(X, y, sample_weight, groups, seed=seed)
            options = self._options(
                LandmarkOptions,
                parameters=self._candidates(),
                cv=getattr(self, self._cv_name),
                cv_name=self._cv_name,
                settings=AlignmentSettings(self.objective, self.band, self.normalize, self.dtype),
                seed=seed,
            )
            fit = fit_landmarks(data, options)
            self._keep(fit)
            self.reports_, self.n_sampled_ = fit.reports, fit.n_sampled
            self.fit_params_ = {
                "landmarks": self.landmarks if isinstance(self.landmarks, str) else "indices",
                "class_weight": "equal" if self.class_weight is None else "by class",
                "regularizer": self.regularizer,
                "normalize": bool(self.normalize),
                "scale": self.scale or "none",
                **fit.chosen,
            }
            if fit.search is not None:
                self._keep_search(fit.search)
        return self

    @property
    def coef_(self) -> FloatArray:
        """Weights of the landmarks, shape (problems, landmarks), with exact zeros."""
        return self.model_.aligned[0].weights

    @property
    def metrics_(self) -> FloatArray:
        """The metric of each problem, shape (problems, d, d)."""
        return self.model_.coefs[0][:, 0, 0]

    def transform(self, X: Any) -> FloatArray:
        """Similarity of every series to every landmark, under each class's metric.

        Parameters
        ----------
        X
            Anything `slts.as_series` accepts, or a scan.

        Returns
        -------
        ndarray
            Shape (series, features), named by `get_feature_names_out`.
        """
        check_is_fitted(self)
        return apply(self, type(self)._transform, X)

    def _transform(self, batch: SeriesBatch) -> FloatArray:
        feature_map = self.model_.aligned[0]
        if not self.learns_metric:
            return feature_map.similarities(batch, None, self._resources)
        K = feature_map.similarities(batch, self.metrics_, self._resources)
        return K.swapaxes(1, 2).reshape(len(batch), self.coef_.size)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the columns of `transform`.

        Parameters
        ----------
        input_features
            Ignored; present for scikit-learn.

        Returns
        -------
        ndarray
            ``"landmark3"``, or with a metric per class ``"class1_landmark3"``.
        """
        check_is_fitted(self)
        names = [f"landmark{j}" for j in self.landmark_indices_]
        if self.learns_metric:
            names = [f"class{c}_{name}" for c in self.positive_classes_ for name in names]
        return np.asarray(names, dtype=object)


@dataclass(eq=False, repr=False, kw_only=True)
class TunedLandmarkClassifier(LandmarkClassifier):
    """Base of the CV variants: splits from `cv`, several numbers of landmarks, scores."""

    n_landmarks: Any = field(default=None, kw_only=False)
    gammas: Sequence[float] = GAMMAS
    cv: Any = 0.3

    best_params_: dict[str, Any] = field(init=False)
    best_score_: float = field(init=False)
    cv_results_: dict[str, Any] = field(init=False)
    n_splits_: int = field(init=False)

    _cv_name = "cv"
    parameter_kinds: ClassVar = {**PARAMETERS, "n_landmarks": SEVERAL_COUNTS}

    def _keep_search(self, result: SearchResult) -> None:
        self.best_params_ = result.best_params
        self.best_score_ = float(result.scores[result.best].mean())
        self.cv_results_ = result.cv_results
        self.n_splits_ = result.scores.shape[1]


# ---- the classifiers


@dataclass(eq=False, repr=False, kw_only=True)
class SLTSClassifier(LandmarkClassifier):
    """Similarity learning for time series: the paper's classifier.

    For each class, a metric M is learned by a convex hinge problem on aligned products. Then a
    sparse separator is learned on the similarities K_M to the landmarks, by a linear program. Two
    classes need one metric and one separator. Both problems are solved to a certified relative
    duality gap of 1e-6 (1e-4 for a metric with another regularizer than the paper's).

    Parameters
    ----------
    n_landmarks
        Number of training series that serve as landmarks: an int, or a fraction of the distinct
        training series. None uses the paper's rule: half of them, at most 100.
    landmarks
        How landmarks are chosen: ``"random"``, ``"kmedoids"``, ``"dselect"``, or their indices.
    gamma
        Margin of both stages; a larger margin gives a sparser separator.
    lam
        Weight of the penalty on M. Decisions depend on lam and gamma only through lam * gamma^2
        (lam * gamma if the penalty is a norm).
    regularizer
        The penalty on M: ``"frobenius"`` (||M||_F^2, the paper's), ``"nuclear"`` (sum of singular
        values: low rank), ``"l1"`` (sum of absolute entries: few nonzero ones) or ``"mahalanobis"``
        (||M||_F^2 with M symmetric positive semi-definite, so that K_M is a scalar product of
        linearly mapped rows).
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
        How decisions are held out to calibrate `predict_proba`: an int (folds), a fraction, or a
        splitter. None skips calibration, and `predict_proba` is not available.
    dtype
        Precision of the alignments in `fit` and in prediction, ``"float64"`` or ``"float32"``.
        Single precision halves the memory. Decisions agree to about 1e-5 of the largest, except
        if two paths nearly tie.
    device
        Where alignments run: ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``);
        or ``"auto"``, the GPU if there is one and the work is large enough (logged once). Model
        files do not store it.
    memory_limit
        Memory that training may use, in bytes or as text such as ``"2GB"``. None means half of the
        memory that the process may use. If the alignments of all series need more than half of it,
        the classifier learns from a sample of `n_sampled_` series.
    n_jobs
        Number of CPU threads, by joblib's convention.
    random_state
        Seed for landmarks, sample and folds.
    verbose
        Show progress.

    Attributes
    ----------
    classes_, n_features_in_
        Labels, and number of channels.
    landmarks_, landmark_indices_
        The landmarks, and their positions among the training series.
    metrics_ : ndarray of shape (problems, d, d)
        The learned M; one problem per class, one for two classes. d is the number of channels, plus
        one with the homogeneous channel.
    coef_ : ndarray of shape (problems, n_landmarks)
        Weights of the landmarks, with exact zeros.
    n_sampled_ : int
        Number of distinct series that were learned from: all, unless memory is short.
    reports_
        Objective, duality gap and iterations of every solve.

    Examples
    --------
    >>> import numpy as np, slts
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["left", "right"], 20)
    >>> X = [rng.normal(size=(2, 15)) + (c == "right") * np.array([[2.0], [0.0]]) for c in y]
    >>> model = slts.SLTSClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y)
    1.0
    """

    gamma: float = 3e-3
    lam: float = 0.1
    regularizer: str = "frobenius"
    calibration_cv: Any = 3

    def _candidates(self) -> list[dict[str, float]]:
        return [{"gamma": float(self.gamma), "lam": float(self.lam)}]


@dataclass(eq=False, repr=False, kw_only=True)
class SLTSClassifierCV(TunedLandmarkClassifier):
    """`SLTSClassifier` that chooses gamma, lam, and the number of landmarks if several are given.

    Alignments are computed once for all parameters and splits. The best parameters are refitted on
    all training series. Other parameters and attributes are those of `SLTSClassifier`.

    Parameters
    ----------
    n_landmarks
        As for `SLTSClassifier`, or a list to choose from.
    landmarks, regularizer, objective, band, scale, homogeneous, normalize, class_weight
        As for `SLTSClassifier`.
    dtype, device, memory_limit, n_jobs, random_state, verbose
        As for `SLTSClassifier`.
    gammas, lams
        Values to choose from; the paper's by default. Pairs of equal strength (lam * gamma^2, or
        lam * gamma if the penalty is a norm) are solved once.
    cv
        An int (stratified folds), a hold-out fraction such as the paper's 0.3, a splitter, or pairs
        of index arrays. Equal series with equal labels are merged, and only the index of the first
        one counts. With `groups` in `fit`, folds and fractions hold out whole groups, and splitters
        such as `GroupKFold` get the groups. Probabilities are calibrated on the same held-out
        series.

    Attributes
    ----------
    best_params_, best_score_
        The chosen parameters and their mean held-out accuracy.
    cv_results_
        All scores, in scikit-learn's format.
    """

    lams: Sequence[float] = LAMS
    regularizer: str = "frobenius"

    def _candidates(self) -> list[dict[str, float]]:
        return [{"gamma": float(g), "lam": float(lam)} for g in self.gammas for lam in self.lams]


@dataclass(eq=False, repr=False, kw_only=True)
class BBSClassifier(LandmarkClassifier):
    """Sparse linear classifier over similarities K_I to landmarks (Balcan, Blum and Srebro).

    For each class, it minimises the mean hinge loss subject to ||coef||_1 <= 1/gamma. This linear
    program is solved exactly. Two classes need one problem.

    Parameters
    ----------
    n_landmarks
        Number of training series that serve as landmarks: an int, or a fraction of the distinct
        training series. None uses the paper's rule: half of them, at most 100.
    landmarks
        How landmarks are chosen: ``"random"``, ``"kmedoids"``, ``"dselect"``, or their indices.
    gamma
        Margin; a larger margin gives a sparser separator.
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
        How decisions are held out to calibrate `predict_proba`: an int (folds), a fraction, or a
        splitter. None skips calibration, and `predict_proba` is not available.
    dtype
        Precision of the alignments in `fit` and in prediction, ``"float64"`` or ``"float32"``.
        Single precision halves the memory. Decisions agree to about 1e-5 of the largest, except
        if two paths nearly tie.
    device
        Where alignments run: ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``);
        or ``"auto"``, the GPU if there is one and the work is large enough (logged once). Model
        files do not store it.
    memory_limit
        Memory that training may use, in bytes or as text such as ``"2GB"``. None means half of the
        memory that the process may use. If the alignments of all series need more than half of it,
        the classifier learns from a sample of `n_sampled_` series.
    n_jobs
        Number of CPU threads, by joblib's convention.
    random_state
        Seed for landmarks, sample and folds.
    verbose
        Show progress.

    Attributes
    ----------
    classes_, n_features_in_
        Labels, and number of channels.
    landmarks_, landmark_indices_
        The landmarks, and their positions among the training series.
    coef_ : ndarray of shape (problems, n_landmarks)
        Weights with exact zeros; one problem per class, one for two classes.
    metrics_ : ndarray of shape (problems, d, d)
        Identity matrices.
    n_sampled_ : int
        Number of distinct series that were learned from: all, unless memory is short.
    reports_
        Objective, duality gap and iterations of every solve.
    """

    gamma: float = 1e-2
    calibration_cv: Any = 3
    learns_metric = False

    def _candidates(self) -> list[dict[str, float]]:
        return [{"gamma": float(self.gamma)}]


@dataclass(eq=False, repr=False, kw_only=True)
class BBSClassifierCV(TunedLandmarkClassifier):
    """`BBSClassifier` that chooses gamma, and the number of landmarks if several are given.

    Alignments are computed once for all parameters and splits. The best parameters are refitted on
    all training series. Other parameters and attributes are those of `BBSClassifier`.

    Parameters
    ----------
    n_landmarks
        As for `BBSClassifier`, or a list to choose from.
    landmarks, objective, band, scale, homogeneous, normalize, class_weight
        As for `BBSClassifier`.
    dtype, device, memory_limit, n_jobs, random_state, verbose
        As for `BBSClassifier`.
    gammas
        Margins to choose from; the paper's by default.
    cv
        An int (stratified folds), a hold-out fraction such as the paper's 0.3, a splitter, or pairs
        of index arrays. Equal series with equal labels are merged, and only the index of the first
        one counts. With `groups` in `fit`, folds and fractions hold out whole groups, and splitters
        such as `GroupKFold` get the groups. Probabilities are calibrated on the same held-out
        series.

    Attributes
    ----------
    best_params_, best_score_
        The chosen parameters and their mean held-out accuracy.
    cv_results_
        All scores, in scikit-learn's format.
    """

    learns_metric = False

    def _candidates(self) -> list[dict[str, float]]:
        return [{"gamma": float(gamma)} for gamma in self.gammas]
