"""`certify`: what is guaranteed about a trained classifier."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, column_or_1d

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.base import SeriesClassifier
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.estimators.streams import as_stream
from slts.guarantees.certificate import Bound, Certificate
from slts.guarantees.evidence import Evidence, gather, problems_of
from slts.guarantees.known_series import KnownSeries, labels_of_unknown
from slts.guarantees.statements import (
    FIXED_LANDMARKS,
    INDEPENDENT,
    UNIT_ROWS,
    Terms,
    hold_out_error,
    hold_out_one_vs_rest,
    metric_bounds,
    pac_bayes,
)
from slts.learning.regularized_metric import SQUARED_NORMS
from slts.series import SeriesBatch, as_series

SAMPLES = ("holdout", "training")
# Fewest certified series a training-sample bound is computed from.
_FEWEST = 8
# Relative difference allowed between the objective of the fit and that of the series given.
_SAME = 1e-6


def certify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
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
    X, y
        Series and labels. With ``sample="holdout"`` they must be independent of everything that
        was done to get the model; with ``sample="training"`` they are what it was fitted on.
        Held-out series may be read from elsewhere, as in `fit`: the path of a Parquet data set and
        so on, with y the name of the column of labels, or None.
    delta
        Probability of failure of each bound.
    n_models
        Number of models (parameters, estimators) that are compared on the same series; the bounds
        hold for all of them. Candidates of a CV variant are counted by themselves.
    sample
        ``"holdout"`` gives exact bounds on the error. ``"training"`` needs no series beyond those
        of training; landmarks are left out of the certified sample.
    pool
        With ``sample="training"`` and landmarks given as indices: indices of the series they were
        chosen among, all left out of the certified sample. Landmarks drawn with dice are their own
        pool.

    Returns
    -------
    Certificate
        The headline and all bounds that apply.

    Raises
    ------
    DataError
        If a held-out series is one that the model keeps from training, if y has labels the model
        does not know, if X, y are not the training sample, or if its landmarks were chosen by
        looking at all of it.

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
    check_delta(delta)
    check_count("n_models", n_models)
    if sample not in SAMPLES:
        raise ValueError(
            f"The 'sample' parameter of certify must be one of {SAMPLES}. Got {sample!r} instead."
        )
    if pool is not None and sample == "holdout":
        raise ValueError("The 'pool' parameter of certify is for sample='training' only.")
    check_is_fitted(model)
    if isinstance(model, SeriesClassifier) and (y is None or isinstance(y, str)):
        stream = as_stream(X, y, model.channel_names_in_, model.classes_)
        if stream is not None and sample == "training":
            raise DataError(
                "bounds from the training sample need its series in memory: read them with "
                "slts.files.read_series, or certify on held-out series, sample='holdout'."
            )
        if stream is not None:
            X, y = stream, labels_of_unknown(model, stream)
    labels = check_labels(model.classes_, y)
    if sample == "holdout":
        found = hold_out_bounds(model, X, labels, delta, n_models, "held-out")
        return Certificate(found[0], tuple(found), delta, len(labels), _name(model), n_models)
    if not isinstance(model, LandmarkClassifier):
        raise DataError(
            f"{_name(model)} has no bounds from its training sample: certify it on held-out "
            f"series, sample='holdout'."
        )
    batch = check_batch(model, X, labels)
    codes = np.searchsorted(model.classes_, labels)
    found = training_bounds(model, batch, codes, delta, n_models, pool)
    n = int(found[0].details["n"])
    return Certificate(found[0], tuple(found), delta, n, _name(model), n_models)


def hold_out_bounds(
    model: Any, X: Any, labels: AnyArray, delta: float, n_models: int, source: str
) -> list[Bound]:
    """Clopper-Pearson bounds: of the classifier, and of every sign of one over landmarks."""
    checked: tuple[str, ...] = ("every label is known to the model",)
    in_memory = as_stream(X) is None
    if isinstance(model, SeriesClassifier) and in_memory:
        X = check_batch(model, X, labels)
    unchecked: tuple[str, ...] = (
        INDEPENDENT,
        f"the {source} series played no part in choosing the model or its parameters",
    )
    inner = _inner_model(model)
    seen_as_given = not hasattr(getattr(model, "best_estimator_", model), "steps")
    if isinstance(inner, SeriesClassifier) and seen_as_given:
        known = KnownSeries.of(inner)
        if known is not None and in_memory:
            known.refuse(known.find(as_series(X)))
        checked += ("no held-out series is one the model keeps from training",)
    else:
        unchecked += (f"the {source} series are none that the model was trained on",)
    terms = Terms(delta, n_models, source, checked, unchecked)
    if not isinstance(model, LandmarkClassifier):
        return [hold_out_error(np.asarray(model.predict(X)), labels, terms)]
    decisions = model.decision_function(X)
    columns: FloatArray = decisions[:, np.newaxis] if decisions.ndim == 1 else decisions
    two = columns.shape[1] == 1
    chosen = (columns[:, 0] > 0).astype(int) if two else columns.argmax(axis=1)
    problems = problems_of(model)
    signs = np.stack([np.where(labels == p.positive, 1.0, -1.0) for p in problems])
    found = [hold_out_error(model.classes_[chosen], labels, terms)]
    if not two:
        found.append(hold_out_one_vs_rest(columns.T, signs, problems, terms))
    return found


def training_bounds(
    model: LandmarkClassifier,
    batch: SeriesBatch,
    codes: IntArray,
    delta: float,
    n_models: int,
    pool: npt.ArrayLike | None = None,
    *,
    metric_only: bool = False,
) -> list[Bound]:
    """Bounds from the series a classifier over landmarks was fitted on.

    `metric_only` leaves out the bound on the separator.
    """
    certified = _certified_indices(model, batch, pool)
    everyone = gather(model, batch, codes, codes[model.landmark_indices_])
    _require_training_sample(model, everyone)
    evidence = everyone.take(certified)
    candidates = len(getattr(model, "cv_results_", {"params": [None]})["params"])
    checked = ["the series are those the model was fitted on, all weighing the same", UNIT_ROWS]
    unchecked = [
        INDEPENDENT,
        "gamma, lam and the number of landmarks were not chosen on the training series by hand "
        "(n_models counts the choices)",
    ]
    if pool is None:
        checked.append(FIXED_LANDMARKS)
    else:
        unchecked.append("landmarks were chosen by looking at the series of the pool only")
    terms = Terms(delta, n_models * candidates, "training", tuple(checked), tuple(unchecked))
    problems = problems_of(model)
    if problems[0].lam is None:
        return [pac_bayes("separator", problems, evidence, terms)]
    found = [] if metric_only else [pac_bayes("classifier", problems, evidence, terms)]
    found.append(pac_bayes("metric", problems, evidence, terms))
    if problems[0].regularizer not in SQUARED_NORMS:
        # The others rest on the strong convexity of ||M||_F^2.
        return found
    return found + metric_bounds(problems, everyone, evidence, terms)


def check_delta(delta: Any) -> None:
    """Refuse what is not a probability of failure."""
    usable = isinstance(delta, numbers.Real) and not isinstance(delta, bool)
    if not usable or not 0.0 < float(delta) < 1.0:
        raise ValueError(
            f"The 'delta' parameter must be a probability strictly between 0 and 1. "
            f"Got {delta!r} instead."
        )


def check_count(name: str, value: Any) -> None:
    """Refuse what is not a positive int."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"The '{name}' parameter must be an int >= 1. Got {value!r} instead.")


def check_labels(classes: AnyArray, y: Any) -> AnyArray:
    """Labels as an array, all of them known."""
    labels: AnyArray = column_or_1d(y)
    if len(labels) == 0:
        raise DataError("y is empty: a certificate needs series to rest on.")
    known = set(classes.tolist())
    unseen = [label for label in np.unique(labels).tolist() if label not in known]
    if unseen:
        raise DataError(
            f"y has labels that the model was not trained on: {unseen}. It knows "
            f"{sorted(known)}; a certificate can only speak of these."
        )
    return labels


def check_batch(model: SeriesClassifier, X: Any, labels: AnyArray) -> SeriesBatch:
    """Series the model accepts, one per label."""
    batch = as_series(model.check_series(X))
    if len(batch) != len(labels):
        raise DataError(
            f"X and y have inconsistent lengths: {len(batch)} series and {len(labels)} labels."
        )
    return batch


def _inner_model(model: Any) -> Any:
    """The classifier inside searches and pipelines."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return model


def _certified_indices(
    model: LandmarkClassifier, batch: SeriesBatch, pool: npt.ArrayLike | None
) -> IntArray:
    """Training series that the landmarks, given their places, are independent of."""
    if getattr(model, "path_metrics_", None) is not None:
        raise DataError(
            "realign: the paths were found under metrics that know the labels of all training "
            "series, so none of them is independent of the features. Certify on held-out series, "
            "or fit with realign=0."
        )
    if not model.normalize:
        raise DataError(
            "normalize=False: without unit rows the features have no bounded norm, and none of the "
            "bounds from the training sample holds. Certify on held-out series."
        )
    if model.row_map_.scale is not None:
        raise DataError(
            "the scale of the channels was fitted on all training series, so none of them is "
            "independent of the features. Use fit_certified, or scale=None."
        )
    if model.row_map_.constant is not None:
        raise DataError(
            "the constant channel was scaled on all training series, so none of them is "
            "independent of the features. Use fit_certified, or homogeneous=False."
        )
    indices = model.landmark_indices_
    same = indices.max() < len(batch) and batch[indices].to_list()
    if not same or not all(map(np.array_equal, same, model.landmarks_)):
        raise DataError(
            "X is not the training sample of this model: its series at landmark_indices_ are not "
            "the landmarks. Give X and y in the order they were fitted in."
        )
    left_out = _pool_of(model, len(batch), pool)
    certified = np.setdiff1d(np.arange(len(batch)), left_out)
    if len(certified) < _FEWEST:
        raise DataError(
            f"only {len(certified)} training series remain without the landmarks' pool: at least "
            f"{_FEWEST} are needed."
        )
    return certified


def _pool_of(model: LandmarkClassifier, n_series: int, pool: npt.ArrayLike | None) -> IntArray:
    indices = model.landmark_indices_
    by_name = isinstance(model.landmarks, str)
    if by_name and model.landmarks != "random":
        raise DataError(
            f"landmarks={model.landmarks!r} were chosen by looking at all training series, so none "
            f"is left to certify on. Use fit_certified, which chooses them in a separate part; or "
            f"choose them with select_landmarks in a pool, fit with landmarks=indices, and certify "
            f"with pool=."
        )
    if pool is None:
        if by_name:
            return indices
        raise DataError(
            "the landmarks were given as indices: say with pool= which training series they were "
            "chosen among; pool=model.landmark_indices_ if they were drawn with dice."
        )
    chosen = np.unique(np.asarray(pool))
    usable = chosen.dtype.kind in "iu" and len(chosen) and 0 <= chosen[0] <= chosen[-1] < n_series
    if not usable or not np.isin(indices, chosen).all():
        raise DataError(
            "pool must hold indices of training series, all landmarks (landmark_indices_) among "
            "them."
        )
    return chosen.astype(np.int64)


def _require_training_sample(model: LandmarkClassifier, everyone: Evidence) -> None:
    """The objective on X, y must be the one the fit reported."""
    risks = everyone.losses.mean(axis=1)
    separators = [report for report in model.reports_ if report.stage == "separator"]
    for c, problem in enumerate(problems_of(model)):
        if problem.objective is not None and problem.lam is not None:
            value, reported = risks[c] + problem.lam * problem.penalty, problem.objective
        else:
            scores = everyone.labels[c] * (everyone.similarities[c] @ problem.coef)
            value, reported = np.maximum(0.0, 1.0 - scores).mean(), separators[c].objective
        if abs(value - reported) > _SAME * max(1.0, abs(reported)):
            raise DataError(
                f"X, y are not the training sample of this model, or the series weighed "
                f"differently: the objective of class {problem.positive!r} is {value:.6g} on them, "
                f"and was {reported:.6g} in training."
            )


def _name(model: Any) -> str:
    return type(model).__name__
