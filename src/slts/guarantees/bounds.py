"""The formulas of the bounds, as functions of numbers; docs/bounds.md states them.

Each bound holds with probability at least 1 - delta over an independent sample of m examples, given
landmarks that are independent of the sample. `risk` is the mean hinge loss on the sample, and M has
the shape (d, d).
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtr, rel_entr

from slts._typing import AnyArray, FloatArray

# Grids of the PAC-Bayes bound: scales of the posterior mean, and margins.
_N_SCALES, _MARGINS = 24, np.linspace(0.0, 3.0, 13)
_SMALLEST_SCALE = 0.5
# Number of radii of the norm bound. Each is sqrt(2) times smaller than the one before.
_N_RADII = 20
# Rounding allowed when a norm is compared with its bound, which closed-form solutions attain.
_ROUNDING = 1e-9
# After 60 halvings of [0, 1] the two ends are neighbouring doubles, or nearly so.
_HALVINGS = 60


def check_probability(name: str, value: Any) -> None:
    """Raise an error if a parameter is not a number strictly between 0 and 1."""
    usable = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not usable or not 0.0 < float(value) < 1.0:
        raise ValueError(
            f"The '{name}' parameter must be a number strictly between 0 and 1. "
            f"Got {value!r} instead."
        )


def stability_constant(gamma: float, lam: float) -> float:
    """Constant kappa = 1/(lam gamma^2): one of m examples changes no loss by more than kappa/m."""
    return 1.0 / (lam * gamma * gamma)


def margin_radius(gamma: float, lam: float) -> float:
    """Radius p = min(sqrt(kappa/2), kappa/2), an upper bound on ||M||_F/gamma at the minimiser."""
    half = 0.5 * stability_constant(gamma, lam)
    return min(math.sqrt(half), half)


def loss_range(radius: float) -> float:
    """Largest difference B = min(1 + p, 2 p) of two losses where ||M||_F/gamma <= p."""
    return min(1.0 + radius, 2.0 * radius)


def paper_loss_bound(d: int, gamma: float, lam: float) -> float:
    """The paper's bound on the loss, sqrt(2 d)/(gamma sqrt(lam)). It is false: see the docs."""
    return math.sqrt(2.0 * d) / (gamma * math.sqrt(lam))


def paper_bound(risk: float, m: int, d: int, gamma: float, lam: float, delta: float) -> float:
    """The paper's generalization bound on the hinge risk of M, as printed."""
    stability = 4.0 * d / (gamma * gamma * lam)
    spread = stability + math.sqrt(2.0 * d / lam) / gamma
    return risk + stability / m + spread * math.sqrt(2.0 * math.log(2.0 / delta) / m)


def stability_bound(
    risk: float,
    m: int,
    gamma: float,
    lam: float,
    delta: float,
    *,
    excluded: int = 0,
    gap: float = 0.0,
) -> float:
    """Stability bound on the hinge risk of M, with sharp constants.

    Parameters
    ----------
    risk
        Mean hinge loss on the m - excluded certified examples.
    m
        Number of training examples.
    gamma, lam, delta
        Parameters of the metric problem, and the probability of failure.
    excluded
        Number of training examples left out of `risk`: the landmarks among them.
    gap
        Duality gap of M. Its distance from the minimiser is at most sqrt(gap/lam).
    """
    kappa, radius = stability_constant(gamma, lam), margin_radius(gamma, lam)
    certified = m - excluded
    spread = 2.0 * kappa * certified / m
    if not excluded:
        # The objective changes by at most B/m and its norm part by 2 p/m; the risk by their sum.
        spread = kappa + min(kappa, 2.0 * radius)
    inexact = 2.0 * math.sqrt(max(gap, 0.0) / lam) / gamma
    width = (spread + loss_range(radius)) * _deviation(certified, delta)
    return risk + kappa / m + width + inexact


def a_priori_norm_bound(risk: float, m: int, gamma: float, lam: float, delta: float) -> float:
    """Bound on the hinge risk, uniform over ||M||_F <= gamma p. It needs no exact solver."""
    radius = margin_radius(gamma, lam)
    return risk + 2.0 * radius / math.sqrt(m) + loss_range(radius) * _deviation(m, delta)


def norm_hinge_bound(
    risk: float,
    norm: float,
    mean_square: float,
    m: int,
    gamma: float,
    lam: float,
    delta: float,
) -> float:
    """Bound on the hinge risk from the norm of M and the size of the features.

    Parameters
    ----------
    risk
        Mean hinge loss on m examples.
    norm
        ||M||_F.
    mean_square
        Mean of ||Z_i||_F^2, in [0, 1].
    m, gamma, lam, delta
        Number of examples, parameters of the metric problem, probability of failure.

    Raises
    ------
    ValueError
        If the norm exceeds gamma p: M is not the minimiser, and no radius was fixed for it.
    """
    largest = margin_radius(gamma, lam) * (1.0 + _ROUNDING)
    if norm / gamma > largest:
        raise ValueError(
            f"||M||_F/gamma = {norm / gamma:.6g} exceeds {largest:.6g}, its bound at the minimiser "
            f"for gamma={gamma:g}, lam={lam:g}: M was learned with other parameters, or the solver "
            f"did not converge."
        )
    radii = largest * 2.0 ** (-0.5 * np.arange(_N_RADII))
    radius = float(radii[radii >= norm / gamma][-1])
    square = float(kl_inverse(mean_square, math.log(2.0 / delta) / m))
    complexity = 2.0 * radius * math.sqrt(square / m)
    return risk + complexity + loss_range(radius) * _deviation(m, delta / (2 * _N_RADII))


def hold_out_hinge_bound(
    risk: float, operator_norm: float, m: int, gamma: float, delta: float
) -> float:
    """Hoeffding's bound on the hinge risk of an M that is independent of the sample.

    Every loss is within ||M||_op/gamma of 1, because the nuclear norm of Z_i is at most 1.
    """
    return risk + loss_range(operator_norm / gamma) * _deviation(m, delta)


def clopper_pearson(errors: int, n: int, delta: float) -> float:
    """Exact upper bound on an error rate from the errors among n held-out examples."""
    return binomial_upper(errors, n, math.log(delta))


def mean_over_groups(values: AnyArray, groups: AnyArray) -> tuple[float, int]:
    """Return the mean over the groups of the mean value in each, and the number of groups."""
    members = np.unique(groups, return_inverse=True)[1]
    means = np.bincount(members, weights=values) / np.bincount(members)
    return float(means.mean()), len(means)


def group_error_bound(error: float, n_groups: int, delta: float) -> float:
    """Upper bound on the mean error of a new group, from the mean over independent groups.

    `error` is the mean over the groups of the error rate in each. The relative-entropy form of
    Hoeffding's inequality holds for independent values in [0, 1].
    """
    return float(kl_inverse(error, math.log(1.0 / delta) / n_groups))


def accuracy_interval(right: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of Clopper and Pearson for the accuracy, from `right` of n."""
    each = (1 - confidence) / 2
    return 1 - clopper_pearson(n - right, n, each), clopper_pearson(right, n, each)


def group_accuracy_interval(
    accuracy: float, n_groups: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Two-sided interval for the mean accuracy of a new group, from the mean over groups."""
    each = (1 - confidence) / 2
    low = 1 - group_error_bound(1 - accuracy, n_groups, each)
    return low, group_error_bound(accuracy, n_groups, each)


def pac_bayes_bound(cosines: FloatArray, delta: float, *, extra: float = 0.0) -> float:
    """PAC-Bayes bound on the 0-1 error of a linear classifier sgn <w, x>.

    The posterior is N(mu w/||w||, I), the prior N(0, I). Where the sign is wrong, the margin under
    the posterior is below s with probability at least Phi(s); s = 0 gives the classic factor 2.

    Parameters
    ----------
    cosines
        l_i <w, x_i>/(||w|| ||x_i||) of at least 8 examples.
    delta
        Probability of failure.
    extra
        Logarithm of the number of feature spaces to choose from.
    """
    m = len(cosines)
    if m < 8:
        raise ValueError(f"The PAC-Bayes bound needs at least 8 examples. Got {m} instead.")
    scales = np.geomspace(_SMALLEST_SCALE, math.sqrt(2.0 * m), _N_SCALES)
    losses = np.stack([ndtr(_MARGINS[:, np.newaxis] - mu * cosines).mean(axis=1) for mu in scales])
    price = math.log(2.0 * math.sqrt(m) * losses.size / delta) + extra
    budget = (0.5 * scales[:, np.newaxis] ** 2 + price) / m
    return min(1.0, float(np.min(kl_inverse(losses, budget) / ndtr(_MARGINS))))


def choice_of_landmarks(n_landmarks: int, n_used: int) -> float:
    """Logarithm of the price for choosing the used landmarks on the sample."""
    return float(log_binomial(n_landmarks, n_used)) + math.log(n_landmarks)


def compression_bound(
    errors: int,
    m: int,
    n_landmarks: int,
    n_used: int,
    n_tight: int,
    delta: float,
    *,
    radius_binds: bool,
) -> float:
    """Bound on the 0-1 error of a separator that a few examples determine.

    Parameters
    ----------
    errors
        Errors on the m - n_tight examples that do not determine it.
    m
        Number of examples.
    n_landmarks, n_used
        Number of landmarks, and of those with a nonzero weight.
    n_tight
        Number of examples with margin one that determine the weights.
    delta
        Probability of failure.
    radius_binds
        Whether the weights also attain the largest L1 norm, so that their signs are needed.
    """
    choices = choice_of_landmarks(n_landmarks, n_used) + float(log_binomial(m, n_tight))
    # Whether the radius binds is one choice in two.
    choices += math.log(2.0) + (n_used * math.log(2.0) if radius_binds else 0.0)
    return binomial_upper(errors, m - n_tight, math.log(delta) - choices)


def _deviation(m: int, delta: float) -> float:
    """McDiarmid's deviation of the mean of m values with range 1."""
    return math.sqrt(math.log(1.0 / delta) / (2.0 * m))


# -- Upper confidence limits: tail bounds, inverted by bisection


def kl_bernoulli(q: npt.ArrayLike, p: npt.ArrayLike) -> FloatArray:
    """Divergence q ln(q/p) + (1 - q) ln((1 - q)/(1 - p)), elementwise."""
    q, p = np.asarray(q, dtype=np.float64), np.asarray(p, dtype=np.float64)
    return np.asarray(rel_entr(q, p) + rel_entr(1.0 - q, 1.0 - p))


def kl_inverse(q: npt.ArrayLike, budget: npt.ArrayLike) -> FloatArray:
    """Largest p in [q, 1] with kl(q, p) <= budget, rounded up, elementwise.

    With budget ln(1/delta)/m, it turns a mean of m values in [0, 1] into an upper bound.
    """
    low, budget = np.broadcast_arrays(np.asarray(q, dtype=np.float64), budget)
    q, high = low, np.ones_like(low)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        inside = kl_bernoulli(q, middle) <= budget
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray(high)


def binomial_upper(errors: int, n: int, log_delta: float) -> float:
    """Largest q with P(Bin(n, q) <= errors) >= exp(log_delta), rounded up.

    It takes the logarithm because a union bound over many choices makes delta smaller than any
    positive double.
    """
    if errors >= n:
        return 1.0
    k = np.arange(errors + 1)
    log_choose = log_binomial(n, k)
    low, high = errors / n, 1.0
    for _ in range(_HALVINGS):
        q = 0.5 * (low + high)
        if q >= 1.0:
            break
        terms = log_choose + k * math.log(q) + (n - k) * math.log1p(-q)
        # Faster than scipy's logsumexp, which spends most of its time on checks.
        peak = float(terms.max())
        if peak + math.log(np.exp(terms - peak).sum()) >= log_delta:
            low = q
        else:
            high = q
    return high


def log_binomial(n: int, k: npt.ArrayLike) -> FloatArray:
    """Logarithm of the binomial coefficient n over k, elementwise."""
    k = np.asarray(k, dtype=np.float64)
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
