"""The separator of smallest L1 norm: ``min ||a||_1`` with every margin at least one."""

from __future__ import annotations

import numpy as np

from slts._typing import FloatArray
from slts.learning.interior import Direction, Factor, weighted_gram
from slts.learning.ridge import couple


class SmallestNormSystem:
    """Pairs (margin - 1, multiplier), (plus, 1 - gradient) and (minus, 1 + gradient)."""

    coupled = False

    def __init__(self, rows: FloatArray, start: FloatArray) -> None:
        self._rows = rows
        self._size, self._columns = rows.shape
        unit = float(np.mean(np.abs(start))) or 1.0
        self.coef = start
        excess = np.maximum(rows @ start - 1.0, 0.1)
        plus = np.maximum(start, 0.0) + unit
        minus = np.maximum(-start, 0.0) + unit
        self.primal = np.concatenate([excess, plus, minus])
        self.dual = np.concatenate([unit / excess, np.ones(2 * self._columns)])

    def values(self) -> tuple[float, float]:
        """Return the norm and, once dual feasible by scaling, its lower bound."""
        self._margins = self._rows @ self.coef
        multipliers = self.dual[: self._size]
        self._gradient = multipliers @ self._rows
        steepest = max(1.0, float(np.max(np.abs(self._gradient))))
        shortest = float(np.min(self._margins))
        norm = float(np.sum(np.abs(self.coef)))
        value = norm / shortest if shortest > 0.0 else np.finfo(float).max
        return value, float(multipliers.sum()) / steepest

    def factor(self) -> None:
        """Factorise ``rows' D rows + diag``."""
        m, n = self._size, self._columns
        self._ratio = self.primal / self.dual
        self._metric = 1.0 / self._ratio[:m]
        self._total = self._ratio[m : m + n] + self._ratio[m + n :]
        self._factor = Factor(weighted_gram(self._rows, self._metric), 1.0 / self._total)
        self._row_residual = self._margins - 1.0 - self.primal[:m]
        prices = np.concatenate([1.0 - self._gradient, 1.0 + self._gradient])
        self._price_residual = prices - self.dual[m:]

    def direction(self, target: FloatArray) -> Direction:
        """Solve the Newton equations for a change ``target`` of the products."""
        m, n = self._size, self._columns
        scaled = target / self.dual
        right = scaled[:m] - self._row_residual
        halves = scaled[m:] - self._ratio[m:] * self._price_residual
        coef = self._factor.solve(
            (halves[:n] - halves[n:]) / self._total + (self._metric * right) @ self._rows
        )
        change = self._rows @ coef
        multiplier = self._metric * (right - change)
        gradient = multiplier @ self._rows
        prices = np.concatenate([-gradient, gradient]) + self._price_residual
        dual = np.concatenate([multiplier, prices])
        primal = scaled - self._ratio * dual
        couple(primal[m:], self._ratio[m:], coef)
        return Direction(primal, dual, coef)

    def advance(self, direction: Direction, primal_step: float, dual_step: float) -> None:
        """Move along ``direction``."""
        m, n = self._size, self._columns
        self.primal = self.primal + primal_step * direction.primal
        self.dual = self.dual + dual_step * direction.dual
        self.coef = self.primal[m : m + n] - self.primal[m + n :]
