"""`fit_certified`: split the series so that every bound applies, fit, certify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.validation import column_or_1d

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.guarantees import statements
from slts.guarantees.bound_inputs import (
    BoundInputs,
    Compression,
    bound_inputs,
    compress,
    parameters_of,
)
from slts.guarantees.certificate import Bound, Certificate
from slts.guarantees.certify import check_parameters, training_bounds
from slts.guarantees.held_out import HeldOut
from slts.guarantees.overlap import distinct_draws
from slts.guarantees.statements import FIXED_LANDMARKS, INDEPENDENT, UNIT_ROWS, Conditions
from slts.learning.separator import SeparatorSolution, solve_separator
from slts.series import SeriesBatch, as_series
from slts.series.outlines import outline_digests
from slts.series.source import series_keys
from slts.training.held_out import HeldOutDecisions, Split, make_splits

# Folds of the part for separators that probabilities are calibrated on.
_FOLDS = 3


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

    A classifier over landmarks learns landmarks and metrics on the first part and its separators on
    the second. The second part then bounds the separators by compression and PAC-Bayes, and the
    third part is held out. Any other classifier learns on the first two parts.

    Parameters
    ----------
    estimator
        Any unfitted classifier.
    X, y
        Series in memory and their labels.
    delta
        Probability of failure of each bound.
    shares
        Shares of the three parts. They are drawn without regard to labels, as the bounds require.
        The third may be 0 for classifiers over landmarks: compression then gives the headline.
    n_models
        Number of models that are compared on the same series and split.
    random_state
        Seed of the split.

    Returns
    -------
    model, certificate
        The fitted classifier and its certificate. ``model.landmark_indices_`` refer to X.
    """
    check_parameters(delta, n_models)
    batch, labels = as_series(X), column_or_1d(y)
    if len(batch) != len(labels):
        raise DataError(
            f"X and y have inconsistent lengths: {len(batch)} series and {len(labels)} labels."
        )
    over_landmarks = isinstance(estimator, LandmarkClassifier)
    parts = _split(batch, _check_shares(shares, over_landmarks), random_state)
    notes: list[str] = []
    if over_landmarks:
        if not isinstance(estimator.landmarks, str):
            raise ValueError(
                "fit_certified chooses landmarks in its first part: set landmarks= to 'random', "
                "'kmedoids' or 'dselect', not indices."
            )
        _require_all_classes(labels, parts[0], "landmarks and metrics")
        _require_all_classes(labels, parts[1], "separators")
        model = clone(estimator).fit(batch[parts[0]], labels[parts[0]])
        model, bounds, notes = _certified_on_parts(model, batch, labels, parts, delta, n_models)
    else:
        learn, held_out = np.concatenate(parts[:2]), parts[2]
        model = clone(estimator).fit(batch[learn], labels[learn])
        bounds = HeldOut.of(model, batch[held_out], labels[held_out]).bounds(delta, n_models)
    name = type(model).__name__
    return model, Certificate(tuple(bounds), float(delta), name, int(n_models), tuple(notes))


def _certified_on_parts(
    model: LandmarkClassifier,
    batch: SeriesBatch,
    labels: AnyArray,
    parts: Sequence[IntArray],
    delta: float,
    n_models: int,
) -> tuple[LandmarkClassifier, list[Bound], list[str]]:
    """Learn the separators again on the second part, and bound everything."""
    first, second, third = parts
    on_first, notes = _metric_bounds(model, batch[first], labels[first], delta, n_models)
    landmark_labels = labels[first][model.landmark_indices_]
    inputs = bound_inputs(model, batch[second], labels[second], landmark_labels)
    weights = _class_weights(model.class_weight, labels[second])
    coef, solutions, schemes = _fit_separators(model, inputs, weights)
    held_out = None
    if model.probability_scale_ is not None:
        codes = np.searchsorted(model.classes_, labels[second])
        splits = make_splits(
            _FOLDS, codes, series_keys(batch[second], seed=0), name="calibration_cv"
        )
        held_out = _held_out_decisions(model, inputs, codes, weights, splits)
    model = model.with_separators(
        coef, solutions, held_out=held_out, positions=first,
        digests=np.unique(outline_digests(batch[second])),
    )  # fmt: skip
    checked = (FIXED_LANDMARKS, "metrics are independent of the certified series")
    conditions = Conditions(delta, n_models, "second part's", checked, (INDEPENDENT,))
    bounds = [statements.compression(model, inputs.labels, schemes, conditions)]
    if inputs.m >= 8:
        bounds.append(statements.pac_bayes("separator", model, inputs, conditions))
    if parameters_of(model)[1] is not None and model.row_map_.settings.normalize:
        unit_rows = replace(conditions, checked=(*checked, UNIT_ROWS))
        bounds.append(statements.hold_out_hinge(model, inputs, unit_rows))
    if len(third):
        bounds = HeldOut.of(model, batch[third], labels[third]).bounds(delta, n_models) + bounds
    return model, bounds + on_first, notes


def _metric_bounds(
    model: LandmarkClassifier, batch: SeriesBatch, labels: AnyArray, delta: float, n_models: int
) -> tuple[list[Bound], list[str]]:
    """Bounds on the metrics from the series they were learned on, or a note why there are none."""
    if parameters_of(model)[1] is None:
        return [], []
    try:
        return training_bounds(model, batch, labels, delta, n_models, metric_only=True), []
    except DataError as error:
        return [], [f"bounds on the metric from its own part: {error}"]


def _fit_separators(
    model: LandmarkClassifier, inputs: BoundInputs, weights: FloatArray
) -> tuple[FloatArray, list[SeparatorSolution], list[Compression | None]]:
    """Learn separators on other series, and compress them."""
    gamma, solutions, schemes = parameters_of(model)[0], [], []
    coef = np.zeros_like(model.coef_)
    for c in range(len(coef)):
        K, signs = inputs.similarities[c], inputs.labels[c]
        solution = solve_separator(K, signs, gamma=gamma, sample_weight=weights)
        scheme = compress(K, signs, solution.coef, gamma)
        # The bound is for the weights that the few examples determine, to the last bit.
        coef[c] = solution.coef if scheme is None else scheme.coef
        solutions.append(solution)
        schemes.append(scheme)
    return coef, solutions, schemes


def _held_out_decisions(
    model: LandmarkClassifier,
    inputs: BoundInputs,
    codes: IntArray,
    weights: FloatArray,
    splits: Sequence[Split],
) -> HeldOutDecisions:
    """Cross-validated decisions of the new separators."""
    gamma = parameters_of(model)[0]
    decisions = np.empty((len(codes), len(inputs.labels)))
    for train, test in splits:
        for c, (K, signs) in enumerate(zip(inputs.similarities, inputs.labels, strict=True)):
            solution = solve_separator(
                K[train], signs[train], gamma=gamma, sample_weight=weights[train]
            )
            decisions[test, c] = K[test] @ solution.coef
    # The only series of a class is in no test part.
    tested = np.concatenate([test for _, test in splits])
    return decisions[tested], codes[tested], np.ones(len(tested))


def _class_weights(class_weight: Any, labels: AnyArray) -> FloatArray:
    """Weight of every series, with mean 1."""
    given = dict(class_weight) if isinstance(class_weight, Mapping) else class_weight
    weights = compute_sample_weight(given, labels)
    return np.asarray(weights / weights.mean())


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


def _split(batch: SeriesBatch, shares: FloatArray, random_state: Any) -> list[IntArray]:
    """Cut a random order into three parts, each in the order of X; copies are in one part."""
    draws = distinct_draws(batch)
    order = check_random_state(random_state).permutation(draws.max() + 1)
    ends = np.round(np.cumsum(shares)[:2] * len(order)).astype(int)
    return [np.flatnonzero(np.isin(draws, part)) for part in np.split(order, ends)]


def _require_all_classes(labels: AnyArray, part: IntArray, purpose: str) -> None:
    missing = np.setdiff1d(labels, labels[part])
    if len(missing):
        raise DataError(
            f"the part for {purpose} ({len(part)} series) has no series of class "
            f"{', '.join(map(repr, missing.tolist()))}: give it a larger share, or more series. "
            f"Drawing again until it has all classes would invalidate the bounds."
        )
