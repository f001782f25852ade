"""SLTS and BBS, the classifiers over landmarks, and their CV variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slts.estimators.landmark_classifier import LAMS, LandmarkClassifier, TunedLandmarkClassifier


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
