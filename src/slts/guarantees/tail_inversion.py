"""Upper confidence limits, found by inverting tail bounds with bisection."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, rel_entr

from slts._typing import FloatArray

# After 60 halvings of [0, 1] the two ends are neighbouring doubles, or nearly so.
_HALVINGS = 60


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
    log_choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
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


def log_binomial(n: int, k: int) -> float:
    """Logarithm of the binomial coefficient n over k."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
