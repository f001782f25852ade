"""Weights of a separator, rebuilt from the few examples that determine them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, qr

from slts._typing import FloatArray, IntArray

# A margin this near to one may be tight; the rebuilt weights decide.
_TIGHT = 1e-6
# Weights agree if they differ by less than this share of their norm.
_AGREE = 1e-6
_BINDING = 1e-9


@dataclass(frozen=True)
class Compression:
    """A separator as a function of few examples.

    Attributes
    ----------
    coef
        The rebuilt weights, of all landmarks.
    used
        Landmarks with a weight.
    tight
        Examples whose margin is one and which, with `used` (and the signs, if `radius_binds`),
        determine the weights.
    radius_binds
        Whether ||coef||_1 = 1/gamma is one of the equations.
    errors
        Errors on all other examples; a decision value of zero is one.
    """

    coef: FloatArray
    used: IntArray
    tight: IntArray
    radius_binds: bool
    errors: int


def compress(
    K: FloatArray, labels: FloatArray, coef: FloatArray, gamma: float
) -> Compression | None:
    """Find examples that determine the weights, rebuild these, and compare.

    Parameters
    ----------
    K
        Similarities of the examples to the landmarks.
    labels
        +1 or -1.
    coef
        Weights of the landmarks, a vertex of the separator's linear program.
    gamma
        Its margin.

    Returns
    -------
    Compression or None
        None if the weights cannot be rebuilt: then no bound follows.
    """
    used = np.flatnonzero(coef)
    norm = float(np.sum(np.abs(coef)))
    if len(used) == 0:
        return None
    binds = norm * gamma >= 1.0 - _BINDING
    signs = np.sign(coef[used])
    rows = labels[:, np.newaxis] * K[:, used]
    near = np.flatnonzero(np.abs(rows @ coef[used] - 1.0) <= _TIGHT)
    needed = len(used) - int(binds)
    chosen = near[_independent_rows(rows[near], signs if binds else None, needed)]
    if len(chosen) < needed:
        return None
    values = _solve(rows[chosen], signs if binds else None, 1.0 / gamma)
    if values is None or np.abs(values - coef[used]).max() > _AGREE * norm:
        return None
    rebuilt = np.zeros_like(coef)
    rebuilt[used] = values
    rest = np.ones(len(K), dtype=bool)
    rest[chosen] = False
    errors = int(np.count_nonzero((rows @ values)[rest] <= 0.0))
    return Compression(rebuilt, used, np.sort(chosen), binds, errors)


def _independent_rows(rows: FloatArray, signs: FloatArray | None, count: int) -> IntArray:
    """Up to `count` rows that are independent of each other and of `signs`."""
    if count == 0 or len(rows) == 0:
        return np.empty(0, dtype=np.int64)
    if signs is not None:
        rows = rows - np.outer(rows @ signs, signs) / (signs @ signs)
    pivots = qr(rows.T, mode="r", pivoting=True)[1]
    return np.asarray(pivots[:count], dtype=np.int64)


def _solve(rows: FloatArray, signs: FloatArray | None, radius: float) -> FloatArray | None:
    """Weights with margin one on `rows`, and norm `radius` if their signs are given."""
    right = np.ones(len(rows))
    if signs is not None:
        rows, right = np.vstack([rows, signs]), np.append(right, radius)
    # Rows of similarities and of signs have different units.
    scale = np.abs(rows).max(axis=1)
    if not np.all(scale > 0.0):
        return None
    _, _, values, info = lapack.dgesv(rows / scale[:, np.newaxis], right / scale)
    return np.asarray(values) if info == 0 else None
