"""Problems ``min_w sum_i c_i [1 - <r_i, w>]_+ + term(w)``: rows, points and their lower bounds.

A row is ``r_i = label_i * x_i``, and the weights c_i sum to one. Multipliers u_i between zero and
c_i prove a lower bound ``sum_i u_i - conjugate(sum_i u_i r_i)``, so every point has a duality gap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from slts._typing import AnyArray, FloatArray
from slts.errors import warn

# Relative gap of a solution in closed form: rounding.
EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class HingeRows:
    """Rows ``label_i * x_i``, shape (n_rows, n_columns), and their positive weights."""

    signed: FloatArray
    weights: FloatArray

    @classmethod
    def build(
        cls,
        features: AnyArray,
        labels: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
        name: str,
    ) -> HingeRows:
        """Validate, drop rows of weight zero, and scale the weights to sum to one.

        ``name`` is the name of ``features`` in error messages.
        """
        features = np.asarray(features)
        if features.ndim != 2 or 0 in features.shape:
            raise ValueError(
                f"The '{name}' must be a non-empty 2-D array. Got shape {features.shape} instead."
            )
        if not np.isfinite(features).all():
            raise ValueError(f"The '{name}' must be finite. Remove or replace NaN and infinity.")
        signs = np.asarray(labels, dtype=np.float64)
        if signs.shape != features.shape[:1] or not np.all(np.abs(signs) == 1.0):
            raise ValueError(
                f"The 'labels' must be {features.shape[0]} values of +1 or -1. "
                f"Got shape {signs.shape}, values {np.unique(signs)[:5]} instead."
            )
        weights = np.ones(len(signs)) if sample_weight is None else np.asarray(sample_weight, float)
        if weights.shape != signs.shape or not (np.all(weights >= 0.0) and weights.sum() > 0.0):
            raise ValueError(
                f"The 'sample_weight' must be {signs.size} non-negative values, not all zero. "
                f"Got shape {weights.shape} instead."
            )
        used = weights > 0.0
        if not used.all():
            features, signs, weights = features[used], signs[used], weights[used]
        signed = np.multiply(features, signs[:, np.newaxis], dtype=np.float64, order="C")
        return cls(signed, weights / weights.sum())

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weights)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.signed.T)

    @cached_property
    def total(self) -> FloatArray:
        """The weighted sum of all rows."""
        return self.combine(self.weights)

    def margins(self, coef: FloatArray) -> FloatArray:
        """Return ``<r_i, coef>`` for every row."""
        # Unlike `@`, `dot` always releases the GIL.
        margins: FloatArray = np.dot(self.signed, coef)
        return margins

    def combine(self, multipliers: FloatArray) -> FloatArray:
        """Return ``sum_i multipliers_i r_i``."""
        total: FloatArray = np.dot(multipliers, self.signed)
        return total

    def loss(self, margins: FloatArray) -> float:
        """Return the weighted hinge loss."""
        return float(self.weights @ np.maximum(1.0 - margins, 0.0))

    def scaled(self, factor: float) -> HingeRows:
        """Return ``factor`` times the rows."""
        return HingeRows(self.signed * factor, self.weights)


class Multipliers(NamedTuple):
    """A dual point: the sum of the multipliers, and the sum of the rows weighted by them."""

    total: float
    gradient: FloatArray


class Certified(NamedTuple):
    """A point with its loss, and a dual point that bounds the optimum from below."""

    coef: FloatArray
    loss: float
    multipliers: Multipliers
    n_iter: int
    vertex: bool = True


class HingeTerm(ABC):
    """The convex term beside the loss.

    Attributes
    ----------
    floor
        Gaps are relative to the primal value, or to ``floor`` where that is larger.
    """

    floor: float

    @abstractmethod
    def value(self, coef: FloatArray) -> float:
        """Return the term at ``coef``."""

    @abstractmethod
    def bound(self, multipliers: Multipliers) -> float:
        """Return the lower bound on loss + term that the multipliers prove."""

    @abstractmethod
    def minimiser(self, gradient: FloatArray) -> FloatArray:
        """Return the minimiser of term - <gradient, w>, or zero where that is unbounded."""

    def primal(self, point: Certified) -> float:
        """Return loss + term."""
        return point.loss + self.value(point.coef)

    def closes(self, point: Certified, tol: float) -> bool:
        """Whether the gap is at most ``tol``, relative to the primal value."""
        primal = self.primal(point)
        return primal - self.bound(point.multipliers) <= tol * max(primal, self.floor)


def saturated_point(rows: HingeRows, term: HingeTerm) -> Certified:
    """Return the point whose multipliers are at their weights: optimal if no margin exceeds one."""
    coef = term.minimiser(rows.total)
    return Certified(coef, rows.loss(rows.margins(coef)), Multipliers(1.0, rows.total), 0)


def ray_minimiser(
    margins: FloatArray, weights: FloatArray, *, square: float = 0.0, linear: float = 0.0
) -> float:
    """Return the ``a >= 0`` that minimises ``sum_i c_i [1 - a f_i]_+ + a^2 square + a linear``."""
    if square == 0.0 and linear == 0.0:
        return 1.0
    order = np.argsort(-margins)[: np.count_nonzero(margins > 0.0)]
    breaks, pull = 1.0 / margins[order], (weights * margins)[order]
    # How much the loss falls before each breakpoint 1 / f, and after the last.
    falls = float(weights @ margins) - linear - np.append(0.0, np.cumsum(pull))
    passed = int(np.searchsorted(2.0 * square * breaks - falls[:-1], 0.0))
    last = float(breaks[passed - 1]) if passed else 0.0
    return last if square == 0.0 else max(last, float(falls[passed]) / (2.0 * square))


@dataclass(frozen=True)
class Solution:
    """What every solver reports beside its coefficients.

    Attributes
    ----------
    gamma : float
        The margin the problem was solved for.
    objective : float
        Value of the problem at the solution.
    dual : float
        Lower bound on the optimum, from multipliers inside their boxes.
    n_iter : int
        Iterations; 0 where the optimum has a closed form or is inherited.
    converged : bool
        Whether the gap is small enough, relative to the objective.
    """

    gamma: float
    objective: float
    dual: float
    n_iter: int
    converged: bool

    @property
    def gap(self) -> float:
        """``objective - dual``."""
        return self.objective - self.dual

    def warn_if_open(self, name: str, tol: float) -> None:
        """Warn if the gap is too large; ``name`` is the name of the problem."""
        if not self.converged:
            warn(
                f"The {name} has a duality gap of {self.gap:.2e} at objective "
                f"{self.objective:.6g} (tol={tol:g}).",
                ConvergenceWarning,
            )


def check_positive(name: str, *values: float) -> None:
    """Raise an error if a parameter is not positive and finite."""
    for value in values:
        if not (np.isfinite(value) and value > 0.0):
            raise ValueError(f"The '{name}' must be positive and finite. Got {value!r} instead.")
