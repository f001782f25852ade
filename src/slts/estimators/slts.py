"""SLTS: a metric learned for each class, then a sparse separator over landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slts._typing import FloatArray, IntArray
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.estimators.tuning import GAMMAS, LAMS, TunedLandmarks, check_grid, check_positive
from slts.execution import Progress
from slts.learning.landmark import LandmarkData, LandmarkModel, fit_slts, slts_decisions
from slts.learning.regularized_metric import check_regularizer


class SLTSClassifier(LandmarkClassifier):
    """Similarity learning for time series: the paper's classifier.

    For each class (one for two classes) a metric M is learned by a convex hinge problem on aligned
    products, then a sparse separator over K_M to the landmarks by a linear program; both are solved
    to a certified duality gap (relative, 1e-6; 1e-4 for a metric with another regularizer than the
    paper's).

    Parameters
    ----------
    n_landmarks
        How many training series serve as landmarks: an int, or a fraction of the training set.
        None is the paper's rule: half of them, at most 100.
    landmarks
        How they are chosen: ``"random"``, ``"kmedoids"``, ``"dselect"``, or their indices.
    gamma
        Margin of both stages; the larger, the sparser.
    lam
        Weight of the penalty of M. Only lam * gamma^2 matters; lam * gamma where it is a norm.
    regularizer
        The penalty of M: ``"frobenius"`` (||M||_F^2, the paper's), ``"nuclear"`` (the sum of the
        singular values: low rank), ``"l1"`` (the sum of the absolute entries: few of them) or
        ``"mahalanobis"`` (||M||_F^2 with M symmetric positive semi-definite, so that K_M is a
        scalar product of linearly mapped rows).
    objective, band
        How paths are found; see `slts.align`.
    scale
        Map of each channel, fitted on the training steps, before anything else: None,
        ``"standard"`` (mean and standard deviation), ``"robust"`` (median and quartiles) or
        ``"asinh"`` (robust, with heavy tails squashed).
    homogeneous
        Append a constant channel before normalising, so that amplitude survives: True, False, or
        ``"auto"`` (with one channel only, where unit rows keep nothing but the sign).
    normalize
        Scale every step to unit norm.
    class_weight
        None, ``"balanced"`` or a dict of weights by label.
    calibration_cv
        How decisions are held out to calibrate `predict_proba`: an int (folds), a fraction, a
        splitter; None skips it, and `predict_proba` with it.
    dtype
        ``"float64"`` or ``"float32"``: precision of alignments in `fit` and in prediction. Half the
        digits take half the memory; decisions agree to about 1e-5 of the largest, except where two
        paths nearly tie and the other one is taken. Landmarks are chosen in float64 in any case, so
        that they are the same.
    device
        ``"cpu"``; ``"cuda"``, an NVIDIA GPU through CuPy (extra ``cuda``), that aligns in `fit` and
        in prediction; or ``"auto"``: the GPU if there is one and the work is large enough, which is
        logged once. Model files do not keep it.
    memory_limit
        About how much memory learning may take beside the series and Python itself, in bytes or as
        text such as ``"2GB"``. Alignments that would take more are found part by part, and what is
        kept of them goes to temporary files; parameters are then chosen, and probabilities
        calibrated, on a sample. None is half of the memory there is, and 1 GiB for series that are
        read from elsewhere.
    n_jobs
        Threads of the CPU, by joblib's convention.
    random_state
        Seed of landmarks and folds.
    verbose
        Show progress.

    Attributes
    ----------
    classes_, n_features_in_
        Labels, and number of channels.
    landmarks_, landmark_indices_
        The landmarks, and which training series they are.
    metrics_ : ndarray of shape (problems, d, d)
        The learned M; one problem per class, one for two classes. d is the number of channels, and
        one more with the homogeneous channel.
    coef_ : ndarray of shape (problems, n_landmarks)
        Weights of the landmarks, with exact zeros.
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

    def __init__(
        self,
        n_landmarks: int | float | None = None,
        *,
        landmarks: Any = "random",
        gamma: float = 3e-3,
        lam: float = 0.1,
        regularizer: str = "frobenius",
        objective: str = "affinity",
        band: Any = None,
        scale: str | None = None,
        homogeneous: bool | str = "auto",
        normalize: bool = True,
        class_weight: Any = None,
        calibration_cv: Any = 3,
        dtype: str = "float64",
        device: str = "cpu",
        memory_limit: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.gamma = gamma
        self.lam = lam
        self.regularizer = regularizer
        self.objective = objective
        self.band = band
        self.scale = scale
        self.homogeneous = homogeneous
        self.normalize = normalize
        self.class_weight = class_weight
        self.calibration_cv = calibration_cv
        self.dtype = dtype
        self.device = device
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _parameters(self) -> list[dict[str, float]]:
        self._check_options()
        gamma, lam = (check_positive(n, self, getattr(self, n)) for n in ("gamma", "lam"))
        return [{"gamma": gamma, "lam": lam}]

    def _check_options(self) -> None:
        name = type(self).__name__
        check_regularizer(self.regularizer, name)

    @property
    def _needs_all_in_memory(self) -> str | None:
        return None if self.regularizer == "frobenius" else f"regularizer={self.regularizer!r}"

    def _held_out_decisions(
        self,
        data: LandmarkData,
        train: IntArray,
        test: IntArray,
        parameters: Sequence[dict[str, float]],
    ) -> FloatArray:
        pairs = [(p["gamma"], p["lam"]) for p in parameters]
        return slts_decisions(
            data, train, test, pairs, regularizer=self.regularizer, n_jobs=self.n_jobs
        )

    def _solve(
        self, data: LandmarkData, parameters: dict[str, float], progress: Progress | None
    ) -> LandmarkModel:
        gamma, lam = parameters["gamma"], parameters["lam"]
        return fit_slts(
            data, gamma, lam, regularizer=self.regularizer, n_jobs=self.n_jobs, progress=progress
        )


class SLTSClassifierCV(TunedLandmarks, SLTSClassifier):
    """`SLTSClassifier` that chooses gamma, lam, and the number of landmarks if several are given.

    Alignments are found once for all parameters and splits; the best parameters are refitted on
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
        Values to choose from; the paper's by default. Equal lam * gamma^2 (lam * gamma where the
        penalty is a norm) are solved once.
    cv
        An int (stratified folds), a hold-out fraction such as the paper's 0.3, or a splitter.

    Attributes
    ----------
    best_params_, best_score_
        The choice and its mean held-out accuracy.
    cv_results_
        All scores, in scikit-learn's form.
    """

    def __init__(
        self,
        n_landmarks: Any = None,
        *,
        landmarks: Any = "random",
        gammas: Sequence[float] = GAMMAS,
        lams: Sequence[float] = LAMS,
        regularizer: str = "frobenius",
        cv: Any = 0.3,
        objective: str = "affinity",
        band: Any = None,
        scale: str | None = None,
        homogeneous: bool | str = "auto",
        normalize: bool = True,
        class_weight: Any = None,
        dtype: str = "float64",
        device: str = "cpu",
        memory_limit: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.gammas = gammas
        self.lams = lams
        self.regularizer = regularizer
        self.cv = cv
        self.objective = objective
        self.band = band
        self.scale = scale
        self.homogeneous = homogeneous
        self.normalize = normalize
        self.class_weight = class_weight
        self.dtype = dtype
        self.device = device
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _parameters(self) -> list[dict[str, float]]:
        self._check_options()
        gammas = check_grid("gammas", self, self.gammas)
        lams = check_grid("lams", self, self.lams)
        return [{"gamma": gamma, "lam": lam} for gamma in gammas for lam in lams]
