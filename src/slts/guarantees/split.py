"""`fit_certified`: split the series so that every bound applies, fit, certify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lapack, qr
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.guarantees import bounds as formulas
from slts.guarantees import statements
from slts.guarantees.certificate import Bound, Certificate
from slts.guarantees.certify import check_parameters, training_bounds
from slts.guarantees.held_out import HeldOut
from slts.guarantees.overlap import digests_of_both_lengths, number_connected
from slts.guarantees.statements import (
    FIXED_LANDMARKS,
    INDEPENDENT,
    UNIT_ROWS,
    BoundInputs,
    Conditions,
    bound_inputs,
)
from slts.learning.separator import SeparatorSolution, solve_separator
from slts.series import SeriesBatch, as_series
from slts.series.convert import check_one_per_series
from slts.series.shape_digests import shape_digests
from slts.series.source import series_digests
from slts.training.first_pass import class_weights
from slts.training.held_out import HeldOutDecisions, Split, held_out_decisions, make_splits

# Folds of the part for separators that probabilities are calibrated on.
_FOLDS = 3
# A margin within this distance of one may be tight. The rebuilt weights decide.
_MARGIN_TOLERANCE = 1e-6
# Weights agree if they differ by less than this share of their norm.
_WEIGHT_TOLERANCE = 1e-6
_BINDING = 1e-9


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
    check_one_per_series(len(batch), labels, "y", "labels")
    over_landmarks = isinstance(estimator, LandmarkClassifier)
    parts = _split(batch, _check_shares(shares, over_landmarks), random_state)
    if over_landmarks:
        if not isinstance(estimator.landmarks, str):
            raise ValueError(
                "fit_certified chooses landmarks in its first part: set landmarks= to 'random', "
                "'kmedoids' or 'dselect', not indices."
            )
        _require_all_classes(labels, parts[0], "landmarks and metrics")
        _require_all_classes(labels, parts[1], "separators")
        model = clone(estimator).fit(batch[parts[0]], labels[parts[0]])
        return _certified_on_parts(model, batch, labels, parts, delta, n_models)
    learn, held_out = np.concatenate(parts[:2]), parts[2]
    model = clone(estimator).fit(batch[learn], labels[learn])
    found = HeldOut.of(model, batch[held_out], labels[held_out])
    return model, found.certificate(delta, n_models)


def _certified_on_parts(
    model: LandmarkClassifier,
    batch: SeriesBatch,
    labels: AnyArray,
    parts: Sequence[IntArray],
    delta: float,
    n_models: int,
) -> tuple[LandmarkClassifier, Certificate]:
    """Learn the separators again on the second part, and bound everything."""
    first, second, third = parts
    on_first: list[Bound] = []
    notes: tuple[str, ...] = ()
    if model.learns_metric:
        given = batch[first], labels[first], delta, n_models
        try:
            on_first = training_bounds(model, *given, metric_only=True)
        except DataError as error:
            notes = (f"there are no bounds on the metric from the first part: {error}",)
    landmark_labels = labels[first][model.landmark_indices_]
    inputs = bound_inputs(model, batch[second], labels[second], landmark_labels)
    codes = np.searchsorted(model.classes_, labels[second])
    totals = np.bincount(codes).astype(np.float64)
    by_class = class_weights(model.class_weight, model.classes_, totals)
    weights = by_class[codes] / by_class[codes].mean()
    coef, solutions, schemes = _fit_separators(model, inputs, weights)
    decisions = None
    if model.probability_scale_ is not None:
        keys = series_digests(batch[second])
        splits = make_splits(_FOLDS, codes, keys, name="calibration_cv")
        decisions = _held_out_decisions(model, inputs, codes, weights, splits)
    model = model.with_separators(
        coef, solutions, held_out=decisions, positions=first,
        digests=np.unique(shape_digests(batch[second])),
    )  # fmt: skip
    checked = (FIXED_LANDMARKS, "metrics are independent of the certified series")
    conditions = Conditions(
        model.positive_classes_, inputs.labels, delta, n_models, checked, (INDEPENDENT,)
    )  # fmt: skip
    bounds = [_compression_bound(schemes, conditions)]
    if inputs.m >= 8:
        bounds.append(statements.pac_bayes("separator", model, inputs, conditions))
    if model.learns_metric and model.row_map_.settings.normalize:
        unit_rows = replace(conditions, checked=(*checked, UNIT_ROWS))
        bounds.append(statements.hold_out_hinge(model, inputs, unit_rows))
    if len(third):
        held_out = HeldOut.of(model, batch[third], labels[third])
        bounds = [*held_out.certificate(delta, n_models).bounds, *bounds]
    name = type(model).__name__
    return model, Certificate((*bounds, *on_first), float(delta), name, int(n_models), notes)


def _fit_separators(
    model: LandmarkClassifier, inputs: BoundInputs, weights: FloatArray
) -> tuple[FloatArray, list[SeparatorSolution], list[Compression | None]]:
    """Learn separators on other series, and compress them."""
    gamma, solutions, schemes = model.fit_params_["gamma"], [], []
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
    gamma, found = model.fit_params_["gamma"], []
    for train, test in splits:
        decisions = np.empty((len(test), len(inputs.labels)))
        for c, (K, signs) in enumerate(zip(inputs.similarities, inputs.labels, strict=True)):
            solution = solve_separator(
                K[train], signs[train], gamma=gamma, sample_weight=weights[train]
            )
            decisions[:, c] = K[test] @ solution.coef
        found.append(decisions)
    return held_out_decisions(found, splits, codes, np.ones(len(codes)))


def _check_shares(shares: Sequence[float], over_landmarks: bool) -> FloatArray:
    values = np.asarray(shares, dtype=np.float64)
    usable = values.shape == (3,) and np.isclose(values.sum(), 1.0) and bool((values >= 0.0).all())
    usable = usable and (values[:2].min() > 0.0 if over_landmarks else 0.0 < values[2] < 1.0)
    if not usable:
        wanted = "the first two positive" if over_landmarks else "the third positive and below 1"
        raise ValueError(
            f"The 'shares' parameter of fit_certified must be three shares that sum to 1, "
            f"{wanted}. Got {shares!r} instead."
        )
    return values


def _split(batch: SeriesBatch, shares: FloatArray, random_state: Any) -> list[IntArray]:
    """Cut a random order into three parts, each in the order of X; copies are in one part."""
    draws = number_connected(digests_of_both_lengths(batch))
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


@dataclass(frozen=True)
class Compression:
    """A separator as a function of a few examples.

    Attributes
    ----------
    coef
        The rebuilt weights of all landmarks.
    used
        Landmarks with a nonzero weight.
    tight
        Examples with margin one that determine the weights, given `used` and, if `radius_binds`,
        the signs.
    radius_binds
        Whether ||coef||_1 = 1/gamma is one of the equations.
    errors
        Errors on all other examples. A decision value of zero is an error.
    """

    coef: FloatArray
    used: IntArray
    tight: IntArray
    radius_binds: bool
    errors: int


def compress(
    K: FloatArray, labels: FloatArray, coef: FloatArray, gamma: float
) -> Compression | None:
    """Find examples that determine the weights, rebuild the weights from them, and compare.

    Parameters
    ----------
    K
        Similarities of the examples to the landmarks.
    labels
        +1 or -1.
    coef
        Weights of the landmarks, a vertex of the linear program of the separator.
    gamma
        Margin of the separator.

    Returns
    -------
    Compression or None
        None if the weights cannot be rebuilt. There is no compression bound then.
    """
    used = np.flatnonzero(coef)
    norm = float(np.sum(np.abs(coef)))
    if len(used) == 0:
        return None
    binds = norm * gamma >= 1.0 - _BINDING
    signs = np.sign(coef[used]) if binds else None
    rows = labels[:, np.newaxis] * K[:, used]
    near = np.flatnonzero(np.abs(rows @ coef[used] - 1.0) <= _MARGIN_TOLERANCE)
    needed = len(used) - int(binds)
    tight = near[_independent_rows(rows[near], signs, needed)]
    if len(tight) < needed:
        return None
    values = _solve(rows[tight], signs, 1.0 / gamma)
    if values is None or np.abs(values - coef[used]).max() > _WEIGHT_TOLERANCE * norm:
        return None
    rebuilt = np.zeros_like(coef)
    rebuilt[used] = values
    wrong = rows @ values <= 0.0
    errors = int(np.count_nonzero(wrong) - np.count_nonzero(wrong[tight]))
    return Compression(rebuilt, used, np.sort(tight), binds, errors)


def _independent_rows(rows: FloatArray, signs: FloatArray | None, count: int) -> IntArray:
    """Up to `count` rows that are linearly independent of each other and of `signs`."""
    if count == 0 or len(rows) == 0:
        return np.empty(0, dtype=np.int64)
    if signs is not None:
        rows = rows - np.outer(rows @ signs, signs) / (signs @ signs)
    pivots = qr(rows.T, mode="r", pivoting=True)[1]
    return np.asarray(pivots[:count], dtype=np.int64)


def _solve(rows: FloatArray, signs: FloatArray | None, radius: float) -> FloatArray | None:
    """Weights with margin one on `rows` and, if their signs are given, with L1 norm `radius`."""
    right = np.ones(len(rows))
    if signs is not None:
        rows, right = np.vstack([rows, signs]), np.append(right, radius)
    # Similarities and signs have different units.
    scale = np.abs(rows).max(axis=1)
    if not np.all(scale > 0.0):
        return None
    _, _, values, info = lapack.dgesv(rows / scale[:, np.newaxis], right / scale)
    return np.asarray(values) if info == 0 else None


def _compression_bound(schemes: Sequence[Compression | None], conditions: Conditions) -> Bound:
    """Compression bound on the 0-1 error of separators learned on the sample."""
    m, values = conditions.labels.shape[1], []
    for scheme in schemes:
        value = 1.0
        if scheme is not None:
            value = formulas.compression_bound(
                scheme.errors, m, len(scheme.coef), len(scheme.used), len(scheme.tight),
                conditions.share, radius_binds=scheme.radius_binds,
            )  # fmt: skip
        values.append(value)
    found = zip(conditions.classes, schemes, strict=True)
    return conditions.join(
        "compression",
        values,
        n_used=[None if scheme is None else len(scheme.used) for scheme in schemes],
        n_tight=[None if scheme is None else len(scheme.tight) for scheme in schemes],
        not_rebuilt=[str(label) for label, scheme in found if scheme is None],
        multiclass=statements.multiclass(values),
    )
