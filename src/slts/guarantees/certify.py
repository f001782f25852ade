"""`certify`: bounds on the risk of a trained classifier; the paper's theorem on learned metrics."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators import SLTSClassifier, SLTSClassifierCV
from slts.guarantees import bounds
from slts.guarantees.bounds import Certificate, Conditions, check_probability
from slts.guarantees.held_out import INDEPENDENT, HeldOut, check_batch, check_labels
from slts.series import SeriesBatch
from slts.series.dataset import SeriesScan
from slts.series.keys import series_digests
from slts.solvers import SQUARED_NORMS

# Largest number of compared models: delta is divided by it.
_MOST_MODELS = 10**100


def certify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    delta: float = 0.05,
    n_models: int = 1,
    sample: str = "holdout",
    copies: str = "error",
) -> Certificate:
    """Bound the risk of a trained classifier.

    Parameters
    ----------
    model
        Any fitted classifier. Bounds from the training sample need `SLTSClassifier` or
        `SLTSClassifierCV`.
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
        ``"holdout"`` gives exact bounds on the error. ``"training"`` bounds the hinge risk of the
        metrics from the training series alone, by the paper's theorem, corrected and as printed.
    copies
        ``"error"`` raises an error if more than one of a hundred held-out series equals a training
        series; fewer are counted as new, and the certificate names them. ``"allow"`` counts any
        number as new. Constant series are never copies.

    Returns
    -------
    Certificate
        The headline and all bounds that apply.

    Raises
    ------
    DataError
        If many held-out series are equal to training series, or if y has labels that the model was
        not trained on. With ``sample="training"``, if X and y are not the training sample, or if
        the theorem does not hold for the way in which the model was fitted.

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
    check_probability("delta", delta)
    is_int = isinstance(n_models, numbers.Integral) and not isinstance(n_models, bool)
    if not is_int or not 1 <= n_models <= _MOST_MODELS:
        raise ValueError(
            f"The 'n_models' parameter must be an int from 1 to 10**100. Got {n_models!r} instead."
        )
    if sample not in ("holdout", "training"):
        raise ValueError(
            f"The 'sample' parameter must be 'holdout' or 'training'. Got {sample!r} instead."
        )
    check_is_fitted(model)
    if sample == "holdout":
        return HeldOut.of(model, X, y, groups).certificate(delta, n_models, copies)
    if groups is not None or isinstance(X, SeriesScan):
        raise DataError(
            "sample='training' needs the training series in memory, without groups: its bounds "
            "hold for independent series only. Certify on held-out series instead."
        )
    return certify_metrics(model, X, y, delta, n_models)


# ---- the paper's theorem, as printed and corrected


# Relative difference allowed between the objective of the fit and that of X and y.
_OBJECTIVE_TOLERANCE = 1e-5
_CHECKED = (
    "the series are those the model was fitted on, with equal weights",
    "rows have at most unit length, so every Z has norm at most 1",
    "landmarks were drawn at random, and are not among the certified series",
)
_UNCHECKED = (
    INDEPENDENT,
    "gamma, lam and the number of landmarks were not chosen on the training series by hand "
    "(n_models counts the choices)",
)
_CLAIM = "the mean hinge loss of the metric on new series is at most {:.4g}."
_REMARK = (
    'The paper\'s theorem rests on its Lemma "bound on the loss function", which is false in '
    "general. The theorem is true nevertheless for fixed landmarks. These landmarks are training "
    "series, which its proof does not allow."
)


def certify_metrics(model: Any, X: Any, y: Any, delta: float, n_models: int) -> Certificate:
    """Bound the hinge risk of every metric from the series that the model was fitted on."""
    if not isinstance(model, SLTSClassifier | SLTSClassifierCV):
        raise DataError(
            f"{type(model).__name__} has no bounds from its training sample: certify it on "
            f"held-out series (sample='holdout')."
        )
    labels = check_labels(model, y)
    batch = check_batch(model, X, labels)
    _check_fit(model)
    certified = _certified_series(model, batch)
    losses = np.maximum(0.0, 1.0 - _margins(model, batch, labels))
    mean_losses, risks = losses.mean(axis=1), losses[:, certified].mean(axis=1)
    gamma, lam = model.fit_params_["gamma"], model.fit_params_["lam"]
    reports = [report for report in model.reports_ if report.stage == "metric"]
    _check_objectives(reports, mean_losses + lam * np.sum(model.metrics_**2, axis=(1, 2)))
    n, m, d = len(batch), len(certified), model.metrics_.shape[-1]
    # The candidates of a search share delta.
    n_candidates = len(getattr(model, "cv_results_", {"params": [None]})["params"])
    conditions = Conditions(delta, n_models * n_candidates, m, _CHECKED, _UNCHECKED)
    classes, share = model.positive_classes_, conditions.share(len(losses))
    gaps, trivial = np.array([report.gap for report in reports]), np.ones(len(losses))
    stability = bounds.stability_bound(risks, n, gamma, lam, share, excluded=n - m, gap=gaps)
    paper = bounds.paper_bound(mean_losses, n, d, gamma, lam, share)
    by_class = dict(zip(map(str, classes), risks.tolist(), strict=True))
    results = (
        conditions.joint_bound(
            "stability", "hinge risk of M", classes, stability, trivial, _CLAIM,
            risk_by_class=by_class,
        ),
        conditions.joint_bound(
            "the paper's theorem", "hinge risk of M", classes, paper, trivial, _CLAIM,
            remark=_REMARK,
        ),
    )  # fmt: skip
    return Certificate(results, float(delta), type(model).__name__, int(n_models))


def _check_objectives(reports: Sequence[Any], objectives: FloatArray) -> None:
    """Raise an error if objectives on the sample are not those that the fit reported."""
    for report, objective in zip(reports, objectives, strict=True):
        reported = report.objective
        if abs(objective - reported) > _OBJECTIVE_TOLERANCE * max(1.0, abs(reported)):
            raise DataError(
                f"X, y are not the training sample of this model, or the fit used other weights: "
                f"the objective of class {report.positive} is {objective:.6g} on them, and was "
                f"{reported:.6g} in training."
            )


def _check_fit(model: Any) -> None:
    """Raise an error if the theorem does not hold for the way in which the model was fitted."""
    fitted = model.fit_params_
    landmarks, regularizer = fitted["landmarks"], fitted["regularizer"]
    scale = fitted["scale"]
    has_constant = model.metrics_.shape[-1] > model.n_channels_in_
    reasons = {
        "normalize=False leaves the features unbounded": not fitted["normalize"],
        "class_weight gives series different weights": fitted["class_weight"] != "equal",
        f"regularizer={regularizer!r} is not a squared norm": regularizer not in SQUARED_NORMS,
        f"landmarks={landmarks!r} were not drawn at random": landmarks != "random",
        f"scale={scale!r} was fitted on all training series": scale != "none",
        "the constant channel was fitted on all training series": has_constant,
    }
    for reason, violated in reasons.items():
        if violated:
            raise DataError(
                f"there are no bounds from the training sample, because {reason}. Certify on "
                f"held-out series (sample='holdout')."
            )


def _certified_series(model: Any, batch: SeriesBatch) -> IntArray:
    """Positions of the training series that are not landmarks."""
    digests, indices = series_digests(batch), model.landmark_indices_
    if indices.max() >= len(batch) or not np.array_equal(
        digests[indices], series_digests(model.landmarks_)
    ):
        raise DataError(
            "X is not the training sample of this model: its series at landmark_indices_ are not "
            "the landmarks. Pass X and y in the order of the fit."
        )
    if len(np.unique(digests)) < len(batch):
        raise DataError(
            "some training series are repeated. Landmarks are drawn from distinct series, so the "
            "others are not independent of them. Certify on held-out series."
        )
    certified = np.setdiff1d(np.arange(len(batch)), indices)
    if len(certified) == 0:
        raise DataError("all training series are landmarks: none is left to certify on.")
    return certified


def _margins(model: Any, batch: SeriesBatch, labels: AnyArray) -> FloatArray:
    """Margins l_i <M, Z_i>/gamma of every metric, shape (problems, series)."""
    signs = np.where(labels == model.positive_classes_[:, np.newaxis], 1.0, -1.0)
    shape = len(batch), len(signs), len(model.landmark_indices_)
    K = np.asarray(model.transform(batch)).reshape(shape)
    scores = np.einsum("icj,cj->ci", K, signs[:, model.landmark_indices_]) / shape[2]
    return np.asarray(signs * scores / model.fit_params_["gamma"])
