"""`fit_certified`: divide the series so that every bound applies, fit, certify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.estimators.splitting import make_splits
from slts.guarantees.certificate import Bound, Certificate
from slts.guarantees.certify import check_count, check_delta, hold_out_bounds, training_bounds
from slts.guarantees.compression import Compression, compress
from slts.guarantees.evidence import Evidence, gather, problems_of
from slts.guarantees.statements import (
    FIXED_LANDMARKS,
    INDEPENDENT,
    UNIT_ROWS,
    Terms,
    compression,
    hold_out_hinge,
    pac_bayes,
)
from slts.learning.calibration import fit_scale
from slts.learning.separator import SeparatorSolution, solve_separator
from slts.series import SeriesBatch, as_series


def fit_certified(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    delta: float = 0.05,
    shares: Sequence[float] = (0.4, 0.4, 0.2),
    n_models: int = 1,
    random_state: Any = None,
) -> tuple[Any, Certificate]:
    """Fit a clone of an estimator on one part of the series and certify it on others.

    A classifier over landmarks learns landmarks and metrics on the first part, its separators on
    the second; so the second bounds them by compression and PAC-Bayes, and the third is held out.
    Any other classifier learns on the first two.

    Parameters
    ----------
    estimator
        Any unfitted classifier.
    X, y
        Series and labels.
    delta
        Probability of failure of each bound.
    shares
        Of the three parts. They are drawn without regard to labels, as the bounds require. The
        third may be 0 for classifiers over landmarks: then compression gives the headline.
    n_models
        Number of models that are compared on the same series and split.
    random_state
        Seed of the split.

    Returns
    -------
    model, certificate
        The fitted classifier, and what is guaranteed about it. ``model.landmark_indices_`` refer
        to X.
    """
    check_delta(delta)
    check_count("n_models", n_models)
    batch, labels = as_series(X), column_or_1d(y)
    if len(batch) != len(labels):
        raise DataError(
            f"X and y have inconsistent lengths: {len(batch)} series and {len(labels)} labels."
        )
    over_landmarks = isinstance(estimator, LandmarkClassifier)
    parts = _divide(len(batch), _check_shares(shares, over_landmarks), random_state)
    if not over_landmarks:
        learn = np.concatenate(parts[:2])
        model = clone(estimator).fit(batch[learn], labels[learn])
        bounds = hold_out_bounds(
            model, batch[parts[2]], labels[parts[2]], delta, n_models, "held-out"
        )
        return model, _certificate(model, bounds, delta, n_models)
    if not isinstance(estimator.landmarks, str):
        raise ValueError(
            "fit_certified chooses landmarks in its first part: give landmarks= 'random', "
            "'kmedoids' or 'dselect', not indices."
        )
    if getattr(estimator, "realign", 0):
        raise ValueError(
            "fit_certified bounds what is learned on paths at M = I: give realign=0, or fit and "
            "certify on held-out series."
        )
    for part, purpose in zip(parts[:2], ("landmarks and metrics", "separators"), strict=True):
        _require_all_classes(labels, part, purpose)
    model = clone(estimator).fit(batch[parts[0]], labels[parts[0]])
    bounds, notes = _bounds_on_parts(model, batch, labels, parts, delta, n_models)
    model.landmark_indices_ = parts[0][model.landmark_indices_]
    return model, _certificate(model, bounds, delta, n_models, notes)


def _bounds_on_parts(
    model: LandmarkClassifier,
    batch: SeriesBatch,
    labels: AnyArray,
    parts: Sequence[IntArray],
    delta: float,
    n_models: int,
) -> tuple[list[Bound], list[str]]:
    """Learn the separators anew on the second part; bound everything."""
    codes = np.searchsorted(model.classes_, labels)
    first, second, third = parts
    on_first, notes = _bounds_on_first(model, batch[first], codes[first], delta, n_models)
    landmark_codes = codes[first][model.landmark_indices_]
    evidence = gather(model, batch[second], codes[second], landmark_codes)
    weights = model._check_weights(batch[second], codes[second], None, model.class_weight)
    found = _separate(model, evidence, weights)
    _calibrate(model, evidence, codes[second], weights)
    problems = problems_of(model)
    terms = Terms(
        delta,
        n_models,
        "second part's",
        (FIXED_LANDMARKS, "metrics are independent of the certified series"),
        (INDEPENDENT,),
    )
    bounds = [compression(problems, evidence.labels, found, terms)]
    if evidence.m >= 8:
        bounds.append(pac_bayes("separator", problems, evidence, terms))
    if problems[0].lam is not None and model.normalize:
        hinge_terms = replace(terms, checked=(*terms.checked, UNIT_ROWS))
        bounds.append(hold_out_hinge(problems, evidence, hinge_terms))
    if len(third):
        held_out = hold_out_bounds(model, batch[third], labels[third], delta, n_models, "held-out")
        bounds = [*held_out, *bounds]
    return bounds + on_first, notes


def _bounds_on_first(
    model: LandmarkClassifier, batch: SeriesBatch, codes: IntArray, delta: float, n_models: int
) -> tuple[list[Bound], list[str]]:
    """Bounds on the metrics from the series they were learned on, where these apply."""
    if problems_of(model)[0].lam is None:
        return [], []
    try:
        return training_bounds(model, batch, codes, delta, n_models, metric_only=True), []
    except DataError as error:
        return [], [f"bounds on the metric from its own part: {error}"]


def _separate(
    model: LandmarkClassifier, evidence: Evidence, weights: FloatArray
) -> list[Compression | None]:
    """Replace the separators by ones learned on other series; rebuilt ones where possible."""
    problems, found = problems_of(model), []
    coef, solved = np.zeros_like(model.coef_), {}
    for c, problem in enumerate(problems):
        K, signs = evidence.similarities[c], evidence.labels[c]
        solution = solve_separator(K, signs, gamma=problem.gamma, sample_weight=weights)
        scheme = compress(K, signs, solution.coef, problem.gamma)
        # What is certified is the classifier that the few examples determine, to the last bit.
        coef[c] = solution.coef if scheme is None else scheme.coef
        found.append(scheme)
        solved[problem.positive] = solution
    model.coef_ = coef
    model.reports_ = tuple(
        report if report.stage != "separator" else _reported(report, solved[report.positive])
        for report in model.reports_
    )
    return found


def _reported(report: Any, solution: SeparatorSolution) -> Any:
    return replace(
        report,
        objective=solution.objective,
        gap=solution.gap,
        n_iter=solution.n_iter,
        converged=solution.converged,
    )


def _calibrate(
    model: LandmarkClassifier, evidence: Evidence, codes: IntArray, weights: FloatArray
) -> None:
    """Fit the scale of probabilities on held-out decisions of the new separators."""
    if not model._calibrates:
        return
    problems = problems_of(model)
    values, truth = [], []
    for train, test in make_splits(3, codes, random_state=0):
        columns = []
        for c, problem in enumerate(problems):
            K, signs = evidence.similarities[c], evidence.labels[c]
            solution = solve_separator(
                K[train], signs[train], gamma=problem.gamma, sample_weight=weights[train]
            )
            columns.append(K[test] @ solution.coef)
        values.append(np.column_stack(columns))
        truth.append(codes[test])
    decisions = np.concatenate(values)
    two = decisions.shape[1] == 1
    model.probability_scale_ = fit_scale(
        decisions[:, 0] if two else decisions, np.concatenate(truth)
    )


def _check_shares(shares: Sequence[float], over_landmarks: bool) -> FloatArray:
    values = np.asarray(shares, dtype=np.float64)
    usable = values.shape == (3,) and np.isclose(values.sum(), 1.0) and bool((values >= 0.0).all())
    usable = usable and (values[:2].min() > 0.0 if over_landmarks else 0.0 < values[2] < 1.0)
    if not usable:
        wanted = "the first two positive" if over_landmarks else "the third positive"
        raise ValueError(
            f"The 'shares' parameter of fit_certified must be three shares that sum to 1, "
            f"{wanted}. Got {shares!r} instead."
        )
    return values


def _divide(n_series: int, shares: FloatArray, random_state: Any) -> list[IntArray]:
    """Cut a random order into three parts, each in the order of X."""
    order = check_random_state(random_state).permutation(n_series)
    ends = np.round(np.cumsum(shares)[:2] * n_series).astype(int)
    return [np.sort(part).astype(np.int64) for part in np.split(order, ends)]


def _require_all_classes(labels: AnyArray, part: IntArray, purpose: str) -> None:
    missing = np.setdiff1d(labels, labels[part])
    if len(missing):
        raise DataError(
            f"the part for {purpose} ({len(part)} series) holds none of class "
            f"{', '.join(map(repr, missing.tolist()))}: give it a larger share, or more series. "
            f"Drawing again until all classes are there would void the bounds."
        )


def _certificate(
    model: Any, bounds: Sequence[Bound], delta: float, n_models: int, notes: Sequence[str] = ()
) -> Certificate:
    n = int(bounds[0].details["n"])
    return Certificate(
        bounds[0], tuple(bounds), delta, n, type(model).__name__, n_models, tuple(notes)
    )
