"""How good a similarity is, as Balcan, Blum and Srebro define it, and how many landmarks it needs.

A similarity K is (epsilon, gamma, tau)-good if the mean of [1 - l g(x)/gamma]_+ is at most epsilon,
where g(x) is the mean of l'K(x, x') over a set of reasonable x' with probability at least tau. Only
K/gamma matters. For the theorems about landmarks, divide both by the largest |K|, which for K_M is
at most the operator norm of M.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, eye, hstack

from slts._typing import FloatArray
from slts.guarantees.bounds import check_probability
from slts.solvers.hinge import check_positive

# The paper's theorem requires delta strictly below gamma epsilon/4.
_BELOW = 0.99


@dataclass(frozen=True)
class Goodness:
    """Empirical goodness, and the weights of the landmarks that attain it.

    Attributes
    ----------
    epsilon
        Smallest mean hinge loss at margin `gamma` over all reasonable sets with mass `tau`.
    gamma, tau
        The parameters.
    weights
        Share of each landmark. They sum to 1, and none exceeds 1/(tau n).
    tau_attained
        1/(n max weights), at least `tau` (or 1/n).
    """

    epsilon: float
    gamma: float
    tau: float
    weights: FloatArray
    tau_attained: float


class LandmarksNeeded(NamedTuple):
    """Numbers of landmarks that suffice.

    `paper` is the paper's Theorem 2 at `paper_delta`, the smaller of the requested delta and the
    largest delta that the theorem allows. `sharp` follows from McDiarmid's inequality.
    """

    paper: int
    sharp: int
    paper_delta: float


def goodness(
    K: npt.ArrayLike, y: npt.ArrayLike, landmark_y: npt.ArrayLike, gamma: float, tau: float
) -> Goodness:
    """Compute the exact empirical goodness of a similarity.

    Parameters
    ----------
    K
        Similarities of series to landmarks, shape (series, landmarks).
    y, landmark_y
        Labels of series and landmarks, +1 or -1.
    gamma
        Margin, positive.
    tau
        Mass of the reasonable landmarks, in (0, 1]; 1 means all landmarks.

    Returns
    -------
    Goodness
        Epsilon is nondecreasing in tau, but not monotone in gamma: a small margin amplifies the
        losses of examples on the wrong side.

    Examples
    --------
    >>> from slts.guarantees import goodness
    >>> K = [[1.0, 0.5], [-0.5, 0.5]]
    >>> goodness(K, [1, -1], [1, -1], gamma=0.5, tau=1.0).epsilon
    0.25
    >>> goodness(K, [1, -1], [1, -1], gamma=0.5, tau=0.5).epsilon
    0.0
    """
    K, y, landmark_y = _check_arrays(K, y, landmark_y)
    check_positive("gamma", gamma)
    _check_tau(tau)
    n = K.shape[1]
    margins = y[:, np.newaxis] * K * landmark_y / gamma
    weights = np.full(n, 1.0 / n)
    if tau < 1.0:
        weights = _best_weights(margins, min(1.0, 1.0 / (tau * n)))
    epsilon = float(np.maximum(0.0, 1.0 - margins @ weights).mean())
    return Goodness(epsilon, gamma, tau, weights, 1.0 / (n * float(weights.max())))


def landmarks_needed(
    epsilon: float, gamma: float, tau: float = 1.0, delta: float = 0.05
) -> LandmarksNeeded:
    """Number of landmarks with which a good similarity separates with `epsilon` more hinge loss.

    Parameters
    ----------
    epsilon
        Allowed loss beyond the epsilon of the definition (the paper's epsilon_1).
    gamma
        Margin of a similarity in [-1, 1]. For K_M, divide gamma by the operator norm of M.
    tau
        Mass of the reasonable set.
    delta
        Probability of failure.

    Examples
    --------
    >>> from slts.guarantees import landmarks_needed
    >>> landmarks_needed(0.5, 1.0).sharp
    48
    """
    check_probability("delta", delta)
    check_positive("epsilon", epsilon)
    check_positive("gamma", gamma)
    _check_tau(tau)
    margin = gamma * epsilon
    paper_delta = min(delta, _BELOW * margin / 4.0)
    log_paper = math.log(2.0 / paper_delta)
    paper = 2.0 / tau * (log_paper + 16.0 * log_paper / margin**2)
    if tau == 1.0:
        sharp = _reasonable_needed(margin, math.log(1.0 / delta))
    else:
        # Half of delta is for drawing enough reasonable landmarks, half for their mean.
        half = math.log(2.0 / delta)
        count = _reasonable_needed(margin, half)
        sharp = (count + half + math.sqrt(half * half + 2.0 * count * half)) / tau
    return LandmarksNeeded(math.ceil(paper), math.ceil(sharp), paper_delta)


def _reasonable_needed(margin: float, log_failure: float) -> float:
    return (1.0 + math.sqrt(2.0 * log_failure)) ** 2 / margin**2


def _best_weights(margins: FloatArray, cap: float) -> FloatArray:
    """Minimise the mean of [1 - margins w]_+ over the simplex with w <= cap."""
    m, n = margins.shape
    result = linprog(
        np.concatenate([np.zeros(n), np.full(m, 1.0 / m)]),
        A_ub=hstack([csr_matrix(-margins), -eye(m)], format="csr"),
        b_ub=-np.ones(m),
        A_eq=csr_matrix(np.concatenate([np.ones(n), np.zeros(m)])[np.newaxis]),
        b_eq=[1.0],
        bounds=[(0.0, cap)] * n + [(0.0, None)] * m,
        method="highs",
    )
    if result.status != 0:
        raise RuntimeError(f"the linear program of the goodness failed: {result.message}")
    weights = np.clip(result.x[:n], 0.0, cap)
    return np.asarray(weights / weights.sum())


def _check_arrays(
    K: npt.ArrayLike, y: npt.ArrayLike, landmark_y: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    similarities = np.asarray(K, dtype=np.float64)
    rows, columns = np.asarray(y, dtype=np.float64), np.asarray(landmark_y, dtype=np.float64)
    if similarities.shape != (rows.size, columns.size) or not rows.size * columns.size:
        raise ValueError(
            f"K must have one row for each y and one column for each landmark_y. Got shapes "
            f"{similarities.shape}, {rows.shape} and {columns.shape} instead."
        )
    if not np.isfinite(similarities).all():
        raise ValueError("K must be finite. Got NaN or infinite values instead.")
    if not (np.isin(rows, (-1, 1)).all() and np.isin(columns, (-1, 1)).all()):
        raise ValueError("y and landmark_y must be +1 or -1: one class against the rest.")
    return similarities, rows, columns


def _check_tau(tau: float) -> None:
    if not 0.0 < tau <= 1.0:
        raise ValueError(f"The 'tau' parameter must be in (0, 1]. Got {tau!r} instead.")
