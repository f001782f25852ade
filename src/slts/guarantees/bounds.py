"""The formulas, as functions of numbers. What each one needs is said in the user guide.

All hold with probability at least 1 - delta over an independent sample of size m, given landmarks
that are independent of it. `risk` is the mean hinge loss on the sample; d x d is the size of M.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from slts._typing import FloatArray
from slts.guarantees.inversions import binomial_upper, kl_inverse, log_binomial

# Grids of the PAC-Bayes bound: scales of the posterior mean, and margins.
_N_SCALES, _MARGINS = 24, np.linspace(0.0, 3.0, 13)
_SMALLEST_SCALE = 0.5
# The number of radii of the norm bound, each sqrt(2) times smaller than the one before.
_N_RADII = 20
# Rounding allowed when a norm is compared with its bound, which closed-form solutions attain.
_ROUNDING = 1e-9


def stability_constant(gamma: float, lam: float) -> float:
    """Constant kappa = 1/(lam gamma^2): one example of m moves no loss by more than kappa/m."""
    return 1.0 / (lam * gamma * gamma)


def margin_radius(gamma: float, lam: float) -> float:
    """Radius p = min(sqrt(kappa/2), kappa/2), at least ||M||_F/gamma of the minimiser."""
    half = 0.5 * stability_constant(gamma, lam)
    return min(math.sqrt(half), half)


def loss_range(radius: float) -> float:
    """Range B = min(1 + p, 2 p): how far losses of two examples differ when ||M||_F/gamma <= p."""
    return min(1.0 + radius, 2.0 * radius)


def paper_loss_bound(d: int, gamma: float, lam: float) -> float:
    """The paper's bound on the loss, sqrt(2 d)/(gamma sqrt(lam)). False: see the user guide."""
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
    """Stability bound on the hinge risk of M with sharp constants.

    Parameters
    ----------
    risk
        Mean hinge loss on the m - excluded examples that are certified.
    m
        Number of training examples.
    gamma, lam, delta
        Parameters of the metric problem, and the probability of failure.
    excluded
        Training examples left out of `risk`: the landmarks among them.
    gap
        Duality gap of M; its distance from the minimiser is at most sqrt(gap/lam).
    """
    kappa, radius = stability_constant(gamma, lam), margin_radius(gamma, lam)
    certified = m - excluded
    spread = 2.0 * kappa * certified / m
    if not excluded:
        # The objective moves by B/m at most, its norm part by 2 p/m; so the risk by their sum.
        spread = kappa + min(kappa, 2.0 * radius)
    inexact = 2.0 * math.sqrt(max(gap, 0.0) / lam) / gamma
    width = (spread + loss_range(radius)) * _deviation(certified, delta)
    return risk + kappa / m + width + inexact


def a_priori_norm_bound(risk: float, m: int, gamma: float, lam: float, delta: float) -> float:
    """Bound on the hinge risk, uniform over ||M||_F <= gamma p; it needs no exact solver."""
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
    """Bound on the hinge risk from the norm M has, and from the size of the features.

    Parameters
    ----------
    risk
        Mean hinge loss on m examples.
    norm
        ||M||_F.
    mean_square
        Mean of ||Z_i||_F^2, in [0, 1].
    m, gamma, lam, delta
        As everywhere.

    Raises
    ------
    ValueError
        If the norm exceeds gamma p: then M is no minimiser, and radii fixed beforehand end there.
    """
    largest = margin_radius(gamma, lam) * (1.0 + _ROUNDING)
    if norm / gamma > largest:
        raise ValueError(
            f"||M||_F/gamma = {norm / gamma:.6g} exceeds {largest:.6g}, its bound at the minimiser "
            f"for gamma={gamma:g}, lam={lam:g}: M was not learned with these, or not to the end."
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

    A loss lies within ||M||_op/gamma of 1, for the nuclear norm of Z_i is at most 1.
    """
    return risk + loss_range(operator_norm / gamma) * _deviation(m, delta)


def clopper_pearson(errors: int, n: int, delta: float, *, n_models: int = 1) -> float:
    """Exact upper bound on an error rate from errors among n held-out examples.

    Parameters
    ----------
    errors, n
        Errors, and held-out examples.
    delta
        Probability of failure.
    n_models
        Number of models compared on the same examples; the bound holds for all of them.
    """
    return binomial_upper(errors, n, math.log(delta / n_models))


def accuracy_interval(right: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of Clopper and Pearson for a share of right answers.

    Parameters
    ----------
    right, n
        Right answers, and answers.
    confidence
        Probability that the interval holds the accuracy.
    """
    each = (1 - confidence) / 2
    return 1 - clopper_pearson(n - right, n, each), clopper_pearson(right, n, each)


class PacBayes(NamedTuple):
    """A PAC-Bayes bound, and where on its grids it was attained."""

    value: float
    scale: float
    margin: float


def pac_bayes_bound(cosines: FloatArray, delta: float, *, extra: float = 0.0) -> PacBayes:
    """Bound on the 0-1 error of a linear classifier sgn <w, x>.

    The posterior is N(mu w/||w||, I), the prior N(0, I). Where the sign is wrong, the margin under
    the posterior is below s with probability at least Phi(s); s = 0 gives the classic factor 2.

    Parameters
    ----------
    cosines
        l_i <w, x_i>/(||w|| ||x_i||), at least 8 of them.
    delta
        Probability of failure.
    extra
        Logarithm of the number of feature spaces that were to choose from.
    """
    m = len(cosines)
    if m < 8:
        raise ValueError(f"The PAC-Bayes bound needs at least 8 examples. Got {m} instead.")
    scales = np.geomspace(_SMALLEST_SCALE, math.sqrt(2.0 * m), _N_SCALES)
    losses = np.empty((_N_SCALES, len(_MARGINS)))
    for row, scale in zip(losses, scales, strict=True):
        row[:] = ndtr(_MARGINS[:, np.newaxis] - scale * cosines).mean(axis=1)
    price = math.log(2.0 * math.sqrt(m) * losses.size / delta) + extra
    budget = (0.5 * scales[:, np.newaxis] ** 2 + price) / m
    values = kl_inverse(losses, budget) / ndtr(_MARGINS)
    best = np.unravel_index(int(np.argmin(values)), values.shape)
    value = min(1.0, float(values[best]))
    return PacBayes(value, float(scales[best[0]]), float(_MARGINS[best[1]]))


def choice_of_landmarks(n_landmarks: int, n_used: int) -> float:
    """Logarithm of the price of not knowing beforehand which landmarks are used."""
    return log_binomial(n_landmarks, n_used) + math.log(n_landmarks)


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
        Landmarks, and how many have a weight.
    n_tight
        Examples whose margin is exactly one and which determine the weights.
    delta
        Probability of failure.
    radius_binds
        Whether the weights also attain the largest norm, so that their signs are needed.
    """
    choices = choice_of_landmarks(n_landmarks, n_used) + log_binomial(m, n_tight)
    # Whether the radius binds is one choice in two.
    choices += math.log(2.0) + (n_used * math.log(2.0) if radius_binds else 0.0)
    return binomial_upper(errors, m - n_tight, math.log(delta) - choices)


def _deviation(m: int, delta: float) -> float:
    """McDiarmid's deviation of a mean of m values whose range is 1."""
    return math.sqrt(math.log(1.0 / delta) / (2.0 * m))
