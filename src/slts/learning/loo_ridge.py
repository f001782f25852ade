"""Ridge regression on inner products, its penalty chosen by exact leave-one-out.

With many more features than series everything happens among series: features enter through their
inner products with some anchors, which are all series when these are few. The solution is a
combination of the anchors' features, so it is linear in the features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from slts._typing import FloatArray

# Penalties as multiples of the mean squared norm of the centred features.
PENALTIES = tuple(float(a) for a in np.logspace(-4.0, 3.0, 22))
# Directions below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-10
# Errors closer than this are the same.
_TIE = 1e-9
# A series that alone decides its own fit says nothing when left out.
_LEVERAGE_ROOM = 1e-9


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
        Those tried.
    errors
        Weighted mean squared leave-one-out error of each.
    best
        Position of the chosen one.
    left_out
        What the solution predicts for each series when it is fitted to all others, shape (series,
        targets).
    objective
        Value reached, divided by the sum of sample weights.
    gap
        Bound on its distance from the least one in the span of the anchors.
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
    """Solve for every penalty at the price of one, and keep the best.

    Parameters
    ----------
    products
        Inner products of all series with the anchors, shape (series, anchors).
    anchors
        Inner products of the anchors, shape (anchors, anchors).
    targets
        Shape (series, targets).
    sample_weight
        Positive or zero, shape (series,).
    penalties
        To choose from, ascending.

    Returns
    -------
    RidgeFit
        Exact for the features seen by the anchors; so exact if every series is one.
    """
    # Feature coordinates in the span of the centred anchors: rows' Euclidean geometry is the same.
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
    projected = x.T @ y
    squares = x * x
    # An intercept, too, leans on every series.
    share = sample_weight / total
    errors = np.empty(len(penalties))
    # From the largest down: of equals the most regularised is taken.
    best, best_slope, best_leverage = len(penalties) - 1, projected, share
    for k in reversed(range(len(penalties))):
        shrunk = 1.0 / (spectrum + penalties[k])
        slope = shrunk[:, np.newaxis] * projected
        residual = y - x @ slope
        leverage = squares @ shrunk + share
        # y - f without the series itself = residual / (1 - leverage).
        residual /= np.maximum(1.0 - leverage, _LEVERAGE_ROOM)[:, np.newaxis]
        errors[k] = float(np.einsum("ij,ij->", residual, residual)) / total / y.shape[1]
        if k == best or errors[k] < (1.0 - _TIE) * errors[best]:
            best, best_slope, best_leverage = k, slope, leverage
    slope = rotation @ best_slope
    intercept = target_mean - mean @ slope
    error = targets - (coordinates @ slope + intercept)
    penalty = float(penalties[best])
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
        # A quadratic this strongly convex lies no lower than its gradient allows.
        gap=float((gradient**2).sum()) / penalty / total,
    )
