"""Mehrotra predictor-corrector steps for problems with paired non-negative variables.

A :class:`System` holds the problem: its paired variables, its Newton equations and its values.
:func:`minimise` chooses the target of every step and its length.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs

from slts._typing import FloatArray

_CHUNK = 2048
_STEP_FRACTION = 0.995
_MAX_CORRECTORS = 2


class Direction(NamedTuple):
    """Change of the paired variables and of the free variables."""

    primal: FloatArray
    dual: FloatArray
    free: FloatArray


class System(Protocol):
    """A problem whose pairs satisfy ``primal * dual = 0`` at the optimum.

    ``coupled`` means that primal and dual move by the same step (quadratic objective).
    """

    coupled: bool
    primal: FloatArray
    dual: FloatArray

    def values(self) -> tuple[float, float]:
        """Return a primal and a dual value that bracket the optimum."""
        ...

    def factor(self) -> None:
        """Factorise the normal equations at the current point."""
        ...

    def direction(self, target: FloatArray) -> Direction:
        """Solve the Newton equations for a change ``target`` of the products."""
        ...

    def advance(self, direction: Direction, primal_step: float, dual_step: float) -> None:
        """Move along ``direction``."""
        ...


def weighted_gram(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``rows' diag(weights) rows`` without a full-size scaled copy."""
    n_columns = rows.shape[1]
    gram = np.zeros((n_columns, n_columns))
    root = np.sqrt(weights)
    for start in range(0, rows.shape[0], _CHUNK):
        part = rows[start : start + _CHUNK] * root[start : start + _CHUNK, None]
        gram += part.T @ part
    return gram


class Factor:
    """Cholesky factor of ``matrix + diag(diagonal)``; overwrites ``matrix``.

    If rounding makes the matrix indefinite, the diagonal is raised until it is not. The direction
    is then inexact, which costs iterations but does not affect the certificate.
    """

    def __init__(self, matrix: FloatArray, diagonal: FloatArray | float) -> None:
        size = matrix.shape[0]
        matrix.flat[:: size + 1] += diagonal
        # Symmetric scaling by the diagonal: the entries span many orders of magnitude.
        self._scale: FloatArray = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), np.finfo(float).tiny))
        matrix *= self._scale[:, None]
        matrix *= self._scale[None, :]
        ridge, failed = 1e-15, True
        while failed:
            if ridge > 1.0:
                raise LinAlgError("The matrix is not positive definite.")
            matrix.flat[:: size + 1] = 1.0 + ridge
            # The transpose is the same matrix, in the order of LAPACK.
            self._factor, failed = dpotrf(matrix.T, lower=True, clean=False)
            ridge *= 100.0

    def solve(self, right: FloatArray) -> FloatArray:
        """Solve for one right-hand side."""
        scaled: FloatArray = dpotrs(self._factor, self._scale * right, lower=True)[0]
        return self._scale * scaled


def minimise(system: System, *, tol: float, max_iter: int, floor: float = 0.0) -> int:
    """Move ``system`` until ``primal - dual <= tol * max(primal, floor)``, or progress ends.

    Returns the number of steps. ``system.values()`` is called at the point where they end.
    """
    best = np.inf
    stalled = 0
    for n_iter in range(max_iter):
        primal, dual = system.values()
        gap = primal - dual
        if gap <= tol * max(primal, floor) or not np.isfinite(gap):
            return n_iter
        stalled = 0 if gap < 0.9 * best else stalled + 1
        best = min(best, gap)
        if stalled >= 15:
            return n_iter
        try:
            # Pairs of numbers that underflow give no direction; the point before them is kept.
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                system.factor()
                _step(system)
        except LinAlgError:
            return n_iter
    system.values()
    return max_iter


def _step(system: System) -> None:
    primal, dual = system.primal, system.dual
    products = primal * dual
    mean = float(products.mean())
    affine = system.direction(-products)
    along = _lengths(system, affine)
    reached = float(np.mean((primal + along[0] * affine.primal) * (dual + along[1] * affine.dual)))
    centre = mean * (reached / mean) ** 3
    second_order = affine.primal * affine.dual
    direction = system.direction(centre - products - second_order)
    lengths = _lengths(system, direction)
    correction = second_order
    for _ in range(_MAX_CORRECTORS):
        # Gondzio: move the outlying products of a longer step back towards the centre.
        reach = [min(1.0, 1.5 * length + 0.1) for length in lengths]
        trial = (primal + reach[0] * direction.primal) * (dual + reach[1] * direction.dual)
        low, high = 0.1 * centre, 10.0 * centre
        pull = np.where(trial < low, low - trial, np.maximum(np.minimum(high - trial, 0.0), -high))
        correction = correction - pull
        candidate = system.direction(centre - products - correction)
        candidate_lengths = _lengths(system, candidate)
        if min(candidate_lengths) < min(lengths) + 0.01:
            break
        direction, lengths = candidate, candidate_lengths
    steps = [min(1.0, _STEP_FRACTION * length) for length in lengths]
    if not all(np.isfinite(part).all() for part in (lengths, *direction)):
        raise LinAlgError("The direction is not finite.")
    system.advance(direction, *steps)


def _lengths(system: System, direction: Direction) -> tuple[float, float]:
    """Return the longest steps (at most one) that keep the pairs non-negative."""
    primal = _length(system.primal, direction.primal)
    dual = _length(system.dual, direction.dual)
    if system.coupled:
        return (min(primal, dual),) * 2
    return primal, dual


def _length(values: FloatArray, change: FloatArray) -> float:
    steepest = float(np.min(change / values))
    return 1.0 if steepest >= -1.0 else -1.0 / steepest
