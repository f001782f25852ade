"""Ridge regression on inner products, its penalty chosen by exact leave-one-out.

There may be many more features than series, so features are given by their inner products with
some series, the anchors. With few series all of them are anchors. The solution is a linear
combination of the anchors' features, so it is linear in the features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from slts._typing import FloatArray

# Penalties as multiples of the mean squared norm of the centred features.
PENALTIES = tuple(float(a) for a in np.logspace(-4.0, 3.0, 22))
# Eigenvalues below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-10
# Errors with a smaller relative difference are equal.
_TIE = 1e-9
# Smallest 1 - leverage: a series of leverage one determines its own fit.
_LEVERAGE_ROOM = 1e-9
# Errors of more targets than this are estimated from as many random sums of them: with thousands of
# classes they would take longer than everything else.
_MOST_TARGETS = 256


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Solution of min_f sum_i w_i |y_i - f(x_i)|^2 + penalty |f|^2 with a free intercept.

    Parameters
    ----------
    weights
        f = intercept + sum_s weights[s] <features of anchor s, features of x>, shape (anchors,
        targets).
    intercept
        Shape (targets,).
    penalties
        The penalties that were tried.
    errors
        Weighted mean squared leave-one-out error of each penalty; of more than 256 targets an
        unbiased estimate.
    best
        Position of the chosen penalty.
    left_out
        Prediction for each series by the fit to all other series, shape (series, targets).
    objective
        Objective of the solution, divided by the sum of sample weights.
    gap
        Upper bound on the difference to the minimum in the span of the anchors.
    """

    weights: FloatArray
    intercept: FloatArray
    penalties: FloatArray
    errors: FloatArray
    best: int
    left_out: FloatArray
    objective: float
    gap: float


def fit_loo_ridge(
    products: FloatArray,
    anchors: FloatArray,
    targets: FloatArray,
    sample_weight: FloatArray,
    penalties: FloatArray,
) -> RidgeFit:
    """Solve for all penalties with one factorisation, and keep the best.

    Parameters
    ----------
    products
        Inner products of all series with the anchors, shape (series, anchors).
    anchors
        Inner products of the anchors, shape (anchors, anchors).
    targets
        Shape (series, targets).
    sample_weight
        Non-negative weights, shape (series,).
    penalties
        Candidates, ascending.

    Returns
    -------
    RidgeFit
        Exact in the span of the anchors, hence exact if every series is an anchor.
    """
    # Coordinates in the span of the centred anchors keep inner products.
    centre = anchors.mean(axis=1)
    gram = anchors - centre - centre[:, np.newaxis] + anchors.mean()
    values, vectors = eigh(gram, overwrite_a=True, check_finite=False, driver="evd")
    kept = values > _RANK_TOLERANCE * max(float(values[-1]), np.finfo(float).tiny)
    basis = vectors[:, kept] / np.sqrt(values[kept])
    basis -= basis.mean(axis=0)
    coordinates = products @ basis

    total = float(sample_weight.sum())
    mean = sample_weight @ coordinates / total
    target_mean = sample_weight @ targets / total
    root = np.sqrt(sample_weight)[:, np.newaxis]
    x, y = root * (coordinates - mean), root * (targets - target_mean)
    spectrum, rotation = eigh(x.T @ x, overwrite_a=True, check_finite=False, driver="evd")
    spectrum = np.maximum(spectrum, 0.0)
    x = x @ rotation
    squares = x * x
    summed = y if y.shape[1] <= _MOST_TARGETS else y @ _random_signs(y.shape[1])
    projected = x.T @ summed
    # The intercept adds to the leverage of every series.
    share = sample_weight / total
    errors = np.empty(len(penalties))
    # From the largest to the smallest: of equal errors, the largest penalty is chosen.
    best, best_leverage = len(penalties) - 1, share
    for k in reversed(range(len(penalties))):
        shrunk = 1.0 / (spectrum + penalties[k])
        residual = summed - x @ (shrunk[:, np.newaxis] * projected)
        leverage = squares @ shrunk + share
        # The leave-one-out residual is residual / (1 - leverage).
        residual /= np.maximum(1.0 - leverage, _LEVERAGE_ROOM)[:, np.newaxis]
        errors[k] = float(np.einsum("ij,ij->", residual, residual)) / total / y.shape[1]
        if k == best or errors[k] < (1.0 - _TIE) * errors[best]:
            best, best_leverage = k, leverage
    penalty = float(penalties[best])
    best_slope = (1.0 / (spectrum + penalty))[:, np.newaxis] * (x.T @ y)
    slope = rotation @ best_slope
    intercept = target_mean - mean @ slope
    error = targets - (coordinates @ slope + intercept)
    residual = y - x @ best_slope
    gradient = penalty * best_slope - x.T @ residual
    objective = float((residual**2).sum() + penalty * (best_slope**2).sum())
    return RidgeFit(
        weights=basis @ slope,
        intercept=intercept,
        penalties=np.asarray(penalties, dtype=np.float64),
        errors=errors,
        best=best,
        left_out=targets - error / np.maximum(1.0 - best_leverage, _LEVERAGE_ROOM)[:, np.newaxis],
        objective=objective / total,
        # The squared gradient bounds the gap of a strongly convex quadratic.
        gap=float((gradient**2).sum()) / penalty / total,
    )


def _random_signs(n_targets: int) -> FloatArray:
    """Return scaled signs that sum targets up, so that squared norms keep their expectation."""
    signs = np.random.RandomState(0).randint(2, size=(n_targets, _MOST_TARGETS))
    return np.asarray((2.0 * signs - 1.0) / np.sqrt(_MOST_TARGETS))
