"""The paper's theorem about a learned metric, as printed and corrected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators import SLTSClassifier, SLTSClassifierCV
from slts.guarantees import bounds
from slts.guarantees.certificate import Certificate, Conditions
from slts.guarantees.held_out import INDEPENDENT, check_batch, check_labels
from slts.series import SeriesBatch
from slts.series.keys import series_digests
from slts.solvers import SQUARED_NORMS

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
