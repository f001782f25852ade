"""Mehrotra predictor-corrector steps for problems with paired non-negative variables.

A :class:`System` holds the problem: its paired variables, its Newton equations and its values.
:func:`minimise` chooses the target of every step and its length. The systems are

SquaredNormSystem   hinge + ``strength * ||w||^2``: the metric
L1BallSystem        hinge where ``||a||_1 <= radius``: the separator
SmallestNormSystem  ``min ||a||_1`` with every margin at least one: the separator of separable rows

Their rows are signed float64 features (labels of one), no larger than about one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs

from slts._typing import FloatArray
from slts.learning.hinge import HingeExamples, HingeProblem, Multipliers

_CHUNK = 2048
_STEP_FRACTION = 0.995
_MAX_CORRECTORS = 2
_PRICE_FRACTION = 3e-3


class Direction(NamedTuple):
    """Change of the paired variables and of the coefficients."""

    primal: FloatArray
    dual: FloatArray
    coef: FloatArray


class System(ABC):
    """A problem whose pairs satisfy ``primal * dual = 0`` at the optimum.

    ``coupled`` means that primal and dual move by the same step (quadratic objective).
    """

    coupled = False
    primal: FloatArray
    dual: FloatArray
    coef: FloatArray

    @abstractmethod
    def values(self) -> tuple[float, float]:
        """Return a primal and a dual value that bracket the optimum."""

    @abstractmethod
    def factor(self) -> None:
        """Factorise the normal equations at the current point."""

    @abstractmethod
    def direction(self, target: FloatArray) -> Direction:
        """Solve the Newton equations for a change ``target`` of the products."""

    def advance(self, direction: Direction, primal_step: float, dual_step: float) -> None:
        """Move along ``direction``."""
        self.primal = self.primal + primal_step * direction.primal
        self.dual = self.dual + dual_step * direction.dual
        self.coef = self.coef + primal_step * direction.coef


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


class _HingeSystem(System):
    """Pairs (excess, multiplier) and (shortfall, weight - multiplier) of every row.

    ``values`` sets margins, loss and ``certificate``, the dual point, at the current point.
    """

    margins: FloatArray
    loss: float
    certificate: Multipliers

    def __init__(self, problem: HingeProblem, rows: HingeExamples, coef: FloatArray) -> None:
        self._problem, self.coef = problem, coef
        self._rows, self._weights = np.asarray(rows.features, dtype=np.float64), rows.weights
        self._size = rows.n_rows

    def values(self) -> tuple[float, float]:
        """Return a primal and a dual value that bracket the optimum."""
        self.margins = self._rows @ self.coef
        # Rounding can move a multiplier out of its box.
        multipliers = np.minimum(self.dual[: self._size], self._weights)
        self._gradient = multipliers @ self._rows
        self.loss = float(self._weights @ np.maximum(1.0 - self.margins, 0.0))
        self.certificate = Multipliers(float(multipliers.sum()), self._gradient)
        primal = self.loss + self._problem.value(self.coef)
        return primal, self._problem.bound(self.certificate)


class SquaredNormSystem(_HingeSystem):
    """The system of hinge + squared norm.

    Invariants up to rounding, restored each iteration: ``excess - shortfall = rows @ coef - 1`` and
    the multipliers of a row sum to its weight. The dual equation
    ``2 strength coef = rows' multiplier`` holds in the limit only.
    """

    coupled = True

    def __init__(
        self, problem: HingeProblem, strength: float, rows: HingeExamples, start: FloatArray
    ) -> None:
        super().__init__(problem, rows, start)
        self._twice = 2.0 * strength
        self.primal = _positive_parts(self._rows @ start - 1.0)
        self.dual = 0.5 * np.concatenate([rows.weights, rows.weights])

    def factor(self) -> None:
        """Factorise ``2 strength I + rows' D rows``."""
        over, short = self.primal[: self._size], self.primal[self._size :]
        self._ratio = self.primal / self.dual
        self._metric = 1.0 / (self._ratio[: self._size] + self._ratio[self._size :])
        self._factor = Factor(weighted_gram(self._rows, self._metric), self._twice)
        self._dual_residual = self._gradient - self._twice * self.coef
        self._row_residual = self.margins - 1.0 - over + short

    def direction(self, target: FloatArray) -> Direction:
        """Solve the Newton equations for a change ``target`` of the products."""
        scaled = target / self.dual
        right = scaled[: self._size] - scaled[self._size :] - self._row_residual
        coef = self._factor.solve(self._dual_residual + (self._metric * right) @ self._rows)
        change = self._rows @ coef
        multiplier = self._metric * (right - change)
        dual = np.concatenate([multiplier, -multiplier])
        primal = scaled - self._ratio * dual
        _set_difference(primal, self._ratio, change + self._row_residual)
        return Direction(primal, dual, coef)


class _L1System(System):
    """Newton equations where ``coef = plus - minus``, and ``sum(plus + minus)`` has a price.

    Beside the pairs of the rows there are (plus, price - gradient) and (minus, price + gradient).
    Rows have one pair (excess, multiplier) if their margins must be at least one, or also
    (shortfall, weight - multiplier) if they need not. The primal equations hold from the start, the
    dual ones in the limit. ``values`` sets the margins and the gradient.
    """

    price = 1.0
    margins: FloatArray
    _rows: FloatArray
    _gradient: FloatArray

    def _start(self, pairs: int) -> None:
        """Set the shape, with one or two pairs for each row."""
        (self._size, self._columns), self._per_row = self._rows.shape, pairs
        self._edge = pairs * self._size
        self._halves = slice(self._edge, self._edge + 2 * self._columns)

    def _excess(self, pairs: FloatArray) -> FloatArray:
        """Return excess, or excess - shortfall, of the rows."""
        over = pairs[: self._size]
        return over if self._per_row == 1 else over - pairs[self._size : self._edge]

    def factor(self) -> None:
        """Factorise ``rows' D rows + diag``."""
        self._ratio = self.primal / self.dual
        self._metric = 1.0 / self._ratio[: self._edge].reshape(self._per_row, -1).sum(axis=0)
        plus, minus = self._ratio[self._halves].reshape(2, -1)
        self._total = plus + minus
        self._factor = Factor(weighted_gram(self._rows, self._metric), 1.0 / self._total)
        self._row_residual = self.margins - 1.0 - self._excess(self.primal)
        prices = np.concatenate([self.price - self._gradient, self.price + self._gradient])
        self._price_residual = prices - self.dual[self._halves]

    def direction(self, target: FloatArray) -> Direction:
        """Solve the Newton equations for a change ``target`` of the products."""
        scaled = target / self.dual
        right = self._excess(scaled) - self._row_residual
        halves = scaled[self._halves] - self._ratio[self._halves] * self._price_residual
        rise, fall = halves.reshape(2, -1)
        coef = self._factor.solve((rise - fall) / self._total + (self._metric * right) @ self._rows)
        coef, price = self._with_price(coef, rise, fall, scaled)
        change = self._rows @ coef
        multiplier = self._metric * (right - change)
        gradient = multiplier @ self._rows
        of_rows = [multiplier, -multiplier][: self._per_row]
        slack = np.full(scaled.size - self._halves.stop, price)
        dual = np.concatenate([*of_rows, price - gradient, price + gradient, slack])
        # The residual is added last: it may be tiny, and price and gradient cancel.
        dual[self._halves] += self._price_residual
        primal = scaled - self._ratio * dual
        if self._per_row == 2:
            rows = slice(self._edge)
            _set_difference(primal[rows], self._ratio[rows], change + self._row_residual)
        _set_difference(primal[self._halves], self._ratio[self._halves], coef)
        return Direction(primal, dual, coef)

    def _with_price(
        self, coef: FloatArray, rise: FloatArray, fall: FloatArray, scaled: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return the change of the coefficients, and of the price: none if that is fixed."""
        return coef, 0.0


class SmallestNormSystem(_L1System):
    """The system of the smallest norm where every margin is at least one; its price is one."""

    def __init__(self, rows: FloatArray, start: FloatArray) -> None:
        self._rows, self.coef = rows, start
        self._start(1)
        unit = float(np.mean(np.abs(start))) or 1.0
        excess = np.maximum(rows @ start - 1.0, 0.1)
        halves = np.maximum(np.concatenate([start, -start]), 0.0) + unit
        self.primal = np.concatenate([excess, halves])
        self.dual = np.concatenate([unit / excess, np.ones(halves.shape)])

    def values(self) -> tuple[float, float]:
        """Return the norm at the smallest scale that separates, and a lower bound."""
        self.margins = self._rows @ self.coef
        multipliers = self.dual[: self._size]
        self._gradient = multipliers @ self._rows
        steepest = max(1.0, float(np.max(np.abs(self._gradient))))
        shortest = float(np.min(self.margins))
        norm = float(np.sum(np.abs(self.coef)))
        value = norm / shortest if shortest > 0.0 else np.finfo(float).max
        return value, float(multipliers.sum()) / steepest


class L1BallSystem(_L1System, _HingeSystem):
    """The system of the hinge loss in an L1 ball, ``sum(plus + minus) + slack = radius``.

    The last pair is (slack, price). There is no warm start: interior points do not profit from a
    vertex.
    """

    def __init__(self, problem: HingeProblem, radius: float, rows: HingeExamples) -> None:
        _HingeSystem.__init__(self, problem, rows, np.zeros(rows.n_columns))
        self._start(2)
        self._radius = radius
        # Both halves and the slack share the radius evenly. The dual halves are centred on the
        # rows' products but not far below the gradient, which they have to exceed in the end.
        half = np.full(2 * self._columns + 1, radius / (2 * self._columns + 1))
        multipliers = np.concatenate([0.5 * rows.weights, 0.5 * rows.weights])
        excess = _positive_parts(np.full(self._size, -1.0))
        steepest = float(np.max(np.abs(multipliers[: self._size] @ self._rows)))
        price = max(float(np.mean(multipliers * excess)) / half[0], _PRICE_FRACTION * steepest)
        self.primal = np.concatenate([excess, half])
        self.dual = np.concatenate([multipliers, np.full(half.shape, price)])

    def values(self) -> tuple[float, float]:
        """Return a primal and a dual value that bracket the optimum."""
        norm = float(np.sum(np.abs(self.coef)))
        if norm > self._radius:
            self.coef = self.coef * (self._radius / norm)
        return _HingeSystem.values(self)

    def factor(self) -> None:
        """Factorise, and eliminate the price of the radius."""
        self.price = float(self.dual[-1])
        super().factor()
        plus, minus = self._ratio[self._halves].reshape(2, -1)
        self._tilt = (plus - minus) / self._total
        self._response = self._factor.solve(self._tilt)
        self._pivot = (
            4.0 * float(np.sum(plus * minus / self._total))
            + float(self._tilt @ self._response)
            + self._ratio[-1]
        )
        self._radius_residual = self._radius - float(self.primal[self._edge :].sum())

    def _with_price(
        self, coef: FloatArray, rise: FloatArray, fall: FloatArray, scaled: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return the change of the coefficients and of the price that keeps the radius."""
        change = float(np.sum(rise + fall) - self._tilt @ (rise - fall - coef))
        price = (change + scaled[-1] - self._radius_residual) / self._pivot
        return coef - price * self._response, float(price)


def _positive_parts(values: FloatArray) -> FloatArray:
    """Return positive ``a, b`` (stacked) with ``a - b = values``, smooth at zero."""
    spread = max(float(np.mean(np.abs(values))), 1e-3)
    root = np.sqrt(values * values + spread * spread)
    return np.concatenate([0.5 * (root + values), 0.5 * (root - values)])


def _set_difference(pair: FloatArray, ratio: FloatArray, difference: FloatArray) -> None:
    """Make the halves of ``pair`` differ by ``difference`` exactly, in place.

    The half with the larger ``ratio`` has the larger rounding error, so it is the one replaced.
    """
    size = difference.shape[0]
    first = ratio[:size] > ratio[size:]
    pair[:size] = np.where(first, pair[size:] + difference, pair[:size])
    pair[size:] = np.where(first, pair[size:], pair[:size] - difference)
