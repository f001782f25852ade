"""The L1 ball as a constraint on the minimiser of the hinge loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray
from slts.learning.interior import Direction, Factor, weighted_gram
from slts.learning.ridge import couple, split

_PRICE_FRACTION = 3e-3


@dataclass(frozen=True)
class L1Ball:
    """The constraint ``||a||_1 <= radius``, as a term that is zero or infinite."""

    radius: float

    def value(self, coef: FloatArray) -> float:
        """Return zero; every point offered here is inside the ball."""
        return 0.0

    def conjugate(self, gradient: FloatArray) -> float:
        """Return its convex conjugate."""
        return self.radius * float(np.max(np.abs(gradient)))

    def system(
        self, rows: FloatArray, weights: FloatArray, linear: FloatArray, start: FloatArray
    ) -> L1BallSystem:
        """Return the interior system of hinge + constraint."""
        return L1BallSystem(self, rows, weights, linear, start)


class L1BallSystem:
    """Pairs of the rows (as in ridge), of the two signed halves of ``coef`` and of the radius.

    ``coef = plus - minus`` and ``sum(plus + minus) + slack = radius``; the pairs are
    (plus, price - gradient), (minus, price + gradient) and (slack, price). The primal equalities
    hold from the start, the dual ones in the limit. ``start`` is not used: an interior point gains
    nothing from a vertex.
    """

    coupled = False

    def __init__(
        self,
        term: L1Ball,
        rows: FloatArray,
        weights: FloatArray,
        linear: FloatArray,
        start: FloatArray,
    ) -> None:
        self._term, self._rows, self._weights, self._linear = term, rows, weights, linear
        self._size, self._columns = rows.shape
        # Both halves and the slack share the radius evenly; the dual halves are centred on the
        # rows' products but not far below the gradient, which they have to dominate in the end.
        share = term.radius / (2 * self._columns + 1)
        multipliers = 0.5 * weights
        gradient = multipliers @ rows + linear
        excess = split(np.full(self._size, -1.0))
        half = np.full(2 * self._columns + 1, share)
        mean = float(np.mean(np.concatenate([multipliers, multipliers]) * excess))
        price = max(mean / share, _PRICE_FRACTION * float(np.max(np.abs(gradient))))
        self.coef = np.zeros(self._columns)
        self.primal = np.concatenate([excess, half])
        self.dual = np.concatenate([multipliers, multipliers, np.full(half.shape, price)])

    def multipliers(self) -> FloatArray:
        """Return the dual variables of the rows, inside their boxes."""
        inside: FloatArray = np.minimum(self.dual[: self._size], self._weights)
        return inside

    def values(self) -> tuple[float, float]:
        """Return a primal and a dual value of the restricted problem."""
        norm = float(np.sum(np.abs(self.coef)))
        if norm > self._term.radius:
            self.coef = self.coef * (self._term.radius / norm)
        self._margins = self._rows @ self.coef
        multipliers = self.multipliers()
        self._gradient = multipliers @ self._rows + self._linear
        loss = float(self._weights @ np.maximum(1.0 - self._margins, 0.0))
        return (
            loss - float(self._linear @ self.coef),
            float(multipliers.sum()) - self._term.conjugate(self._gradient),
        )

    def _parts(self, pairs: FloatArray) -> tuple[FloatArray, ...]:
        m, n = self._size, self._columns
        return pairs[:m], pairs[m : 2 * m], pairs[2 * m : 2 * m + n], pairs[2 * m + n : -1]

    def factor(self) -> None:
        """Factorise ``rows' D rows + diag`` and eliminate the price of the radius."""
        self._ratio = self.primal / self.dual
        over, short, plus, minus = self._parts(self._ratio)
        self._metric = 1.0 / (over + short)
        self._plus, self._minus = plus, minus
        total = plus + minus
        self._tilt = (plus - minus) / total
        self._factor = Factor(weighted_gram(self._rows, self._metric), 1.0 / total)
        self._response = self._factor.solve(self._tilt)
        self._pivot = (
            4.0 * float(np.sum(plus * minus / total))
            + float(self._tilt @ self._response)
            + self.primal[-1] / self.dual[-1]
        )
        self._set_residuals()

    def _set_residuals(self) -> None:
        over, short, plus, minus = self._parts(self.primal)
        _, _, up, down = self._parts(self.dual)
        price = self.dual[-1]
        self._row_residual = self._margins - 1.0 - over + short
        self._up_residual = price - self._gradient - up
        self._down_residual = price + self._gradient - down
        self._radius_residual = self._term.radius - float(
            plus.sum() + minus.sum() + self.primal[-1]
        )

    def direction(self, target: FloatArray) -> Direction:
        """Solve the Newton equations for a change ``target`` of the products."""
        scaled = target / self.dual
        over, short, plus, minus = self._parts(scaled)
        rise = plus - self._plus * self._up_residual
        fall = minus - self._minus * self._down_residual
        total = self._plus + self._minus
        right = over - short - self._row_residual
        base = self._factor.solve((rise - fall) / total + (self._metric * right) @ self._rows)
        price = (
            float(np.sum(rise + fall))
            - float(self._tilt @ (rise - fall - base))
            + scaled[-1]
            - self._radius_residual
        ) / self._pivot
        coef = base - price * self._response
        change = self._rows @ coef
        multiplier = self._metric * (right - change)
        gradient = multiplier @ self._rows
        dual = np.concatenate(
            [
                multiplier,
                -multiplier,
                price - gradient + self._up_residual,
                price + gradient + self._down_residual,
                [price],
            ]
        )
        primal = scaled - self._ratio * dual
        edge = 2 * self._size
        couple(primal[:edge], self._ratio[:edge], change + self._row_residual)
        couple(primal[edge:-1], self._ratio[edge:-1], coef)
        return Direction(primal, dual, coef)

    def advance(self, direction: Direction, primal_step: float, dual_step: float) -> None:
        """Move along ``direction``."""
        self.primal = self.primal + primal_step * direction.primal
        self.dual = self.dual + dual_step * direction.dual
        _, _, plus, minus = self._parts(self.primal)
        self.coef = plus - minus
