"""The squared Euclidean norm as a regularizer of the hinge loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray
from slts.learning.interior import Direction, Factor, weighted_gram


@dataclass(frozen=True)
class Ridge:
    """The term ``strength * ||w||^2``."""

    strength: float

    def value(self, coef: FloatArray) -> float:
        """Return the term at ``coef``."""
        return self.strength * float(coef @ coef)

    def conjugate(self, gradient: FloatArray) -> float:
        """Return its convex conjugate."""
        return float(gradient @ gradient) / (4.0 * self.strength)

    def system(
        self, rows: FloatArray, weights: FloatArray, linear: FloatArray, start: FloatArray
    ) -> RidgeSystem:
        """Return the interior system of hinge + term."""
        return RidgeSystem(self, rows, weights, linear, start)


class RidgeSystem:
    """Pairs (excess, multiplier) and (shortfall, rest of the box) of every row.

    Invariants up to rounding, restored each iteration: ``excess - shortfall = rows @ coef - 1``
    and ``multiplier + rest = weights``. The dual equation ``2 strength coef = rows' multiplier +
    linear`` holds in the limit only.
    """

    coupled = True

    def __init__(
        self,
        term: Ridge,
        rows: FloatArray,
        weights: FloatArray,
        linear: FloatArray,
        start: FloatArray,
    ) -> None:
        self._term, self._rows, self._weights, self._linear = term, rows, weights, linear
        self._size = rows.shape[0]
        self.coef = start
        self.primal = split(rows @ start - 1.0)
        self.dual = 0.5 * np.concatenate([weights, weights])

    def multipliers(self) -> FloatArray:
        """Return the dual variables of the rows, inside their boxes."""
        return np.minimum(self.dual[: self._size], self._weights)

    def values(self) -> tuple[float, float]:
        """Return a primal and a dual value of the restricted problem."""
        self._margins = self._rows @ self.coef
        multipliers = self.multipliers()
        self._gradient = multipliers @ self._rows + self._linear
        loss = float(self._weights @ np.maximum(1.0 - self._margins, 0.0))
        return (
            loss + self._term.value(self.coef) - float(self._linear @ self.coef),
            float(multipliers.sum()) - self._term.conjugate(self._gradient),
        )

    def factor(self) -> None:
        """Factorise ``2 strength I + rows' D rows``."""
        self._ratio = self.primal / self.dual
        self._metric = 1.0 / (self._ratio[: self._size] + self._ratio[self._size :])
        gram = weighted_gram(self._rows, self._metric)
        self._factor = Factor(gram, 2.0 * self._term.strength)
        self._dual_residual = self._gradient - 2.0 * self._term.strength * self.coef
        self._primal_residual = (
            self._margins - 1.0 - self.primal[: self._size] + self.primal[self._size :]
        )

    def direction(self, target: FloatArray) -> Direction:
        """Solve the Newton equations for a change ``target`` of the products."""
        scaled = target / self.dual
        right = scaled[: self._size] - scaled[self._size :] - self._primal_residual
        coef = self._factor.solve(self._dual_residual + (self._metric * right) @ self._rows)
        change = self._rows @ coef
        multiplier = self._metric * (right - change)
        dual = np.concatenate([multiplier, -multiplier])
        primal = scaled - self._ratio * dual
        couple(primal, self._ratio, change + self._primal_residual)
        return Direction(primal, dual, coef)

    def advance(self, direction: Direction, primal_step: float, dual_step: float) -> None:
        """Move along ``direction``."""
        self.primal = self.primal + primal_step * direction.primal
        self.dual = self.dual + dual_step * direction.dual
        self.coef = self.coef + primal_step * direction.free


def split(values: FloatArray) -> FloatArray:
    """Return positive ``a, b`` (stacked) with ``a - b = values``, smooth at zero."""
    spread = max(float(np.mean(np.abs(values))), 1e-3)
    root = np.sqrt(values * values + spread * spread)
    return np.concatenate([0.5 * (root + values), 0.5 * (root - values)])


def couple(pair: FloatArray, ratio: FloatArray, difference: FloatArray) -> None:
    """Make the halves of ``pair`` differ by ``difference`` exactly, in place.

    The half with the larger ``ratio`` carries the larger rounding error, so it is the one replaced.
    """
    size = difference.shape[0]
    first = ratio[:size] > ratio[size:]
    pair[:size] = np.where(first, pair[size:] + difference, pair[:size])
    pair[size:] = np.where(first, pair[size:], pair[:size] - difference)
