"""`certify`: bounds on the risk of a trained classifier."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from slts._typing import AnyArray, IntArray
from slts.errors import DataError
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.guarantees import statements
from slts.guarantees.bounds import check_probability
from slts.guarantees.certificate import Bound, Certificate
from slts.guarantees.held_out import HeldOut, check_batch, check_labels, require_labels_of_scan
from slts.guarantees.statements import (
    FIXED_LANDMARKS,
    INDEPENDENT,
    UNIT_ROWS,
    BoundInputs,
    Conditions,
    bound_inputs,
)
from slts.learning.metric import SQUARED_NORMS, term_of
from slts.series import SeriesBatch
from slts.series.source import series_digests
from slts.training.source import is_source

_SAMPLES = ("holdout", "training")
# Largest number of compared models: delta is divided by it.
_MOST_MODELS = 10**100
# Smallest number of certified training series.
_FEWEST = 8
# Relative difference allowed between the objective of the fit and that of the series given.
_OBJECTIVE_TOLERANCE = 1e-6


def certify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    delta: float = 0.05,
    n_models: int = 1,
    sample: str = "holdout",
    pool: npt.ArrayLike | None = None,
) -> Certificate:
    """Bound the risk of a trained classifier.

    Parameters
    ----------
    model
        Any fitted classifier. Bounds from the training sample need `SLTSClassifier`,
        `BBSClassifier`, or one of their CV variants.
    X
        Series in memory, or for held-out series a scan with labels
        (``slts.scan_series(..., label=...)``). With ``sample="holdout"`` they must be independent
        of everything that was done to get the model; with ``sample="training"`` they are the
        series that it was fitted on.
    y
        Labels of series in memory; None for a scan.
    groups
        Group of each held-out series, such as the subject. The groups, not the series, are then
        the independent draws, and the bounds are on the mean error in a new group. None for a
        scan, which contains them (``slts.scan_series(..., groups="subject")``).
    delta
        Probability of failure of each bound.
    n_models
        Number of models (parameters, estimators) compared on the same series. The bounds hold for
        all of them. The candidates of a CV variant are counted automatically.
    sample
        ``"holdout"`` gives exact bounds on the error. ``"training"`` needs only the training
        series, and leaves landmarks out of the certified sample.
    pool
        With ``sample="training"`` and landmarks given as indices: indices of the series from which
        they were chosen. All of them are left out of the certified sample. Landmarks drawn at
        random are their own pool.

    Returns
    -------
    Certificate
        The headline and all bounds that apply.

    Raises
    ------
    DataError
        If held-out series are copies of training series, or if y has labels that the model was not
        trained on. With ``sample="training"``, if X and y are not the training sample, or if the
        landmarks were chosen by looking at all of it.

    See Also
    --------
    fit_certified : Split, fit and certify, so that every bound applies.

    Examples
    --------
    >>> import numpy as np, slts
    >>> from slts.guarantees import certify
    >>> rng = np.random.default_rng(0)
    >>> y = np.tile(["left", "right"], 60)
    >>> X = [rng.normal(size=(2, 15)) + (c == "right") * np.array([[4.0], [0.0]]) for c in y]
    >>> model = slts.SLTSClassifier(random_state=0).fit(X[:40], y[:40])
    >>> certificate = certify(model, X[40:], y[40:])
    >>> round(certificate.headline.value, 3)
    0.037
    """
    check_parameters(delta, n_models)
    if sample not in _SAMPLES:
        raise ValueError(
            f"The 'sample' parameter of certify must be one of {_SAMPLES}. Got {sample!r} instead."
        )
    if pool is not None and sample == "holdout":
        raise ValueError("The 'pool' parameter of certify is for sample='training' only.")
    check_is_fitted(model)
    is_scan = is_source(X)
    if is_scan:
        require_labels_of_scan(y, groups)
    if sample == "holdout":
        return HeldOut.of(model, X, y, groups).certificate(delta, n_models)
    if groups is not None:
        raise DataError(
            "groups need held-out series: bounds from the training sample hold for independent "
            "series only. Use the sample 'holdout'."
        )
    if is_scan:
        raise DataError(
            "bounds from the training sample need its series in memory: read them with "
            "slts.files.read_series, or certify on held-out series (the sample 'holdout')."
        )
    if not isinstance(model, LandmarkClassifier):
        raise DataError(
            f"{type(model).__name__} has no bounds from its training sample: certify it on "
            f"held-out series (the sample 'holdout')."
        )
    labels = check_labels(model, y)
    batch = check_batch(model, X, labels)
    bounds = training_bounds(model, batch, labels, delta, n_models, pool)
    return Certificate(tuple(bounds), float(delta), type(model).__name__, int(n_models))


def training_bounds(
    model: LandmarkClassifier,
    batch: SeriesBatch,
    labels: AnyArray,
    delta: float,
    n_models: int,
    pool: npt.ArrayLike | None = None,
    *,
    metric_only: bool = False,
) -> list[Bound]:
    """Bounds from the series that a classifier over landmarks was fitted on.

    `metric_only` leaves out the bound on the separator.
    """
    indices = _certified_indices(model, batch, pool)
    training = bound_inputs(model, batch, labels, labels[model.landmark_indices_])
    _require_training_sample(model, training)
    certified = training.take(indices)
    checked = ["the series are those the model was fitted on, with equal weights", UNIT_ROWS]
    unchecked = [INDEPENDENT]
    unchecked.append(
        "gamma, lam and the number of landmarks were not chosen on the training series by hand "
        "(n_models counts the choices)"
    )
    if pool is None:
        checked.append(FIXED_LANDMARKS)
    else:
        unchecked.append("landmarks were chosen by looking only at the series of the pool")
    n_models *= len(getattr(model, "cv_results_", {"params": [None]})["params"])
    conditions = Conditions(
        model.positive_classes_, certified.labels, delta, n_models, tuple(checked),
        tuple(unchecked),
    )  # fmt: skip
    if not model.learns_metric:
        return [statements.pac_bayes("separator", model, certified, conditions)]
    stages = ["metric"] if metric_only else ["classifier", "metric"]
    bounds = [statements.pac_bayes(stage, model, certified, conditions) for stage in stages]
    # The other bounds rest on the strong convexity of ||M||_F^2.
    if model.fit_params_["regularizer"] in SQUARED_NORMS:
        bounds += statements.metric_bounds(model, training, certified, conditions)
    return bounds


def check_parameters(delta: Any, n_models: Any) -> None:
    """Raise an error if delta is not a probability or n_models not a positive int."""
    check_probability("delta", delta)
    is_int = isinstance(n_models, numbers.Integral) and not isinstance(n_models, bool)
    if not is_int or not 1 <= n_models <= _MOST_MODELS:
        # Python refuses to write ints of thousands of digits.
        given = "a larger one" if is_int and n_models > 0 else repr(n_models)
        raise ValueError(
            f"The 'n_models' parameter must be an int from 1 to 10**100. Got {given} instead."
        )


def _certified_indices(
    model: LandmarkClassifier, batch: SeriesBatch, pool: npt.ArrayLike | None
) -> IntArray:
    """Training series that are independent of the landmarks, given the landmarks' positions."""
    rows = model.row_map_
    if not rows.settings.normalize:
        raise DataError(
            "normalize=False: without unit rows the features are unbounded, and no bound from the "
            "training sample holds. Certify on held-out series."
        )
    if model.fit_params_["class_weight"] != "equal":
        raise DataError(
            "the model was fitted with class_weight: the bounds from the training sample need "
            "class_weight=None, even if the classes are balanced. Certify on held-out series, or "
            "fit with class_weight=None."
        )
    for fitted, what, remedy in (
        (rows.scale, "the scale of the channels", "scale=None"),
        (rows.constant, "the value of the constant channel", "homogeneous=False"),
    ):
        if fitted is not None:
            raise DataError(
                f"{what} was fitted on all training series, so none of them is independent of the "
                f"features. Use fit_certified, or {remedy}."
            )
    indices = model.landmark_indices_
    same = indices.max() < len(batch) and batch[indices].to_list()
    if not same or not all(map(np.array_equal, same, model.landmarks_)):
        raise DataError(
            "X is not the training sample of this model: its series at landmark_indices_ are not "
            "the landmarks. Pass X and y in the order of the fit."
        )
    if len(np.unique(series_digests(batch))) < len(batch):
        raise DataError(
            "some training series are repeated. Landmarks are drawn from distinct series, so the "
            "others are not independent of them. Certify on held-out series."
        )
    certified = np.setdiff1d(np.arange(len(batch)), _pool(model, len(batch), pool))
    if len(certified) < _FEWEST:
        raise DataError(
            f"{len(certified)} training series are outside the pool of the landmarks: at least "
            f"{_FEWEST} are needed."
        )
    return certified


def _pool(model: LandmarkClassifier, n_series: int, pool: npt.ArrayLike | None) -> IntArray:
    """Indices of the training series from which the landmarks were chosen."""
    indices = model.landmark_indices_
    method = model.fit_params_["landmarks"]
    by_name = method != "indices"
    if by_name and method != "random":
        raise DataError(
            f"landmarks={method!r} were chosen by looking at all training series, so none "
            f"is left to certify on. Use fit_certified, which chooses them in a separate part. Or "
            f"choose them in a pool with select_landmarks, fit with landmarks=indices, and certify "
            f"with pool=."
        )
    if pool is None:
        if by_name:
            return indices
        raise DataError(
            "the landmarks were given as indices: pass in pool= the indices of the training series "
            "from which they were chosen. If they were drawn at random, use "
            "pool=model.landmark_indices_."
        )
    chosen = np.unique(np.asarray(pool))
    usable = chosen.dtype.kind in "iu" and len(chosen) and 0 <= chosen[0] <= chosen[-1] < n_series
    if not usable or not np.isin(indices, chosen).all():
        raise DataError(
            "pool must hold indices of training series, including all landmarks "
            "(model.landmark_indices_)."
        )
    return chosen.astype(np.int64)


def _require_training_sample(model: LandmarkClassifier, training: BoundInputs) -> None:
    """Raise an error if the objective on the sample is not the one that the fit reported."""
    stage = "metric" if model.learns_metric else "separator"
    reports = [report for report in model.reports_ if report.stage == stage]
    for c, report in enumerate(reports):
        if model.learns_metric:
            metric, fitted = model.metrics_[c], model.fit_params_
            penalty = term_of(fitted["regularizer"], fitted["lam"], len(metric))
            value = training.losses[c].mean() + penalty.value(metric.ravel())
        else:
            scores = training.labels[c] * (training.similarities[c] @ model.coef_[c])
            value = np.maximum(0.0, 1.0 - scores).mean()
        reported = report.objective
        if abs(value - reported) > _OBJECTIVE_TOLERANCE * max(1.0, abs(reported)):
            raise DataError(
                f"X, y are not the training sample of this model, or the fit used other weights: "
                f"the objective of class {report.positive} is {value:.6g} on them, and was "
                f"{reported:.6g} in training."
            )
