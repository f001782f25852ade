"""Problems with a weighted hinge loss ``sum_i c_i [1 - f_i]_+`` over many rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from slts._typing import FloatArray
from slts.errors import warn

_BLOCK_ELEMENTS = 1 << 20


@dataclass(frozen=True)
class HingeExamples:
    """Rows ``label_i * features_i`` with weights ``c_i``.

    The weights of a whole problem sum to one, those of a part of it to less. ``features`` may be
    float32; every product is computed in float64, block by block.
    """

    features: npt.NDArray[np.floating]
    labels: FloatArray
    weights: FloatArray

    @classmethod
    def build(
        cls,
        features: npt.NDArray[np.floating],
        labels: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
        *,
        name: str = "features",
    ) -> HingeExamples:
        """Validate, drop rows of weight zero, and scale the weights to sum to one.

        ``name`` is the name of ``features`` in error messages.
        """
        features = np.asarray(features)
        if features.ndim != 2 or 0 in features.shape:
            raise ValueError(
                f"The '{name}' must be a non-empty 2-D array. Got shape {features.shape} instead."
            )
        if features.dtype != np.float32:
            features = features.astype(np.float64, copy=False)
        # The sum of finite numbers may overflow, so it only tells where to look closer.
        with np.errstate(over="ignore"):
            total = features.sum(dtype=np.float64)
        if not np.isfinite(total) and not np.isfinite(features).all():
            raise ValueError(f"The '{name}' must be finite. Remove or replace NaN and infinity.")
        signs = np.asarray(labels, dtype=np.float64)
        if signs.shape != features.shape[:1] or not np.all(np.abs(signs) == 1.0):
            raise ValueError(
                f"The 'labels' must be {features.shape[0]} values of +1 or -1. "
                f"Got shape {signs.shape}, values {np.unique(signs)[:5]} instead."
            )
        if sample_weight is None:
            return cls(features, signs, np.full(signs.shape, 1.0 / signs.size))
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != signs.shape or not (np.all(weights >= 0.0) and weights.sum() > 0.0):
            raise ValueError(
                f"The 'sample_weight' must be {signs.size} non-negative values, not all zero. "
                f"Got shape {weights.shape} instead."
            )
        used = weights > 0.0
        if not used.all():
            features, signs, weights = features[used], signs[used], weights[used]
        return cls(features, signs, weights / weights.sum())

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.features.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.features.shape[1])

    @cached_property
    def total(self) -> FloatArray:
        """The weighted sum of all rows."""
        return self.combine(self.weights)

    def margins(self, coef: FloatArray) -> FloatArray:
        """Return ``f_i = label_i * <coef, features_i>``, for each row if ``coef`` is 2-D."""
        out = np.empty((*coef.shape[:-1], self.n_rows))
        for part, block in self._blocks():
            # BLAS is slower for a matrix of two columns than for two vectors.
            for one, margins in zip(np.atleast_2d(coef), np.atleast_2d(out), strict=True):
                np.matmul(block, one, out=margins[part])
        out *= self.labels
        return out

    def combine(self, multipliers: FloatArray) -> FloatArray:
        """Return ``sum_i multipliers_i * label_i * features_i``."""
        signed = multipliers * self.labels
        total = np.zeros(self.n_columns)
        if not signed.any():
            return total
        for part, block in self._blocks():
            # Unlike `@`, this lets other threads work if the result is short.
            total += np.dot(signed[part], block)
        return total

    def take(self, index: npt.NDArray[np.intp] | slice) -> FloatArray:
        """Return a signed float64 copy of some rows."""
        return self.features[index] * self.labels[index][:, None]

    def scaled(self, factor: float) -> HingeExamples:
        """Return ``factor`` times the rows, as float64, with the labels multiplied in."""
        rows = self.features * (factor * self.labels)[:, None]
        return HingeExamples(rows, np.ones(self.n_rows), self.weights)

    def part(self, index: npt.NDArray[np.intp] | npt.NDArray[np.bool_] | slice) -> HingeExamples:
        """Return some of the rows with their weights."""
        return HingeExamples(self.features[index], self.labels[index], self.weights[index])

    def subset(self, index: npt.NDArray[np.intp]) -> HingeExamples:
        """Return some of the rows; their weights are scaled to keep the sum of all weights."""
        part = self.part(index)
        return replace(part, weights=part.weights * (self.weights.sum() / part.weights.sum()))

    def longest(self) -> float:
        """Return the length of the longest row, or one if all rows are zero."""
        square = max(float(np.einsum("ij,ij->i", rows, rows).max()) for _, rows in self._blocks())
        if not np.isfinite(square):
            raise ValueError(
                "The squared norms of the rows must be finite. Scale the features down."
            )
        return float(np.sqrt(square)) or 1.0

    def loss(self, margins: FloatArray) -> float:
        """Return the weighted hinge loss."""
        return float(self.weights @ np.maximum(1.0 - margins, 0.0))

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        if self.features.dtype == np.float64:
            yield slice(None), self.features  # type: ignore[misc]
            return
        step = max(1, _BLOCK_ELEMENTS // max(1, self.n_columns))
        for start in range(0, self.n_rows, step):
            part = slice(start, start + step)
            yield part, self.features[part].astype(np.float64)


def check_positive(name: str, *values: float) -> None:
    """Raise an error if a parameter is not positive and finite."""
    for value in values:
        if not (np.isfinite(value) and value > 0.0):
            raise ValueError(f"The '{name}' must be positive and finite. Got {value!r} instead.")


class Multipliers(NamedTuple):
    """A dual point: the sum of the multipliers, and the sum of the rows weighted by them.

    Multipliers between zero and the weights of the rows prove a lower bound on hinge + convex term:
    ``total - conjugate(gradient)``.
    """

    total: float
    gradient: FloatArray


class Certified(NamedTuple):
    """A point with its loss, and a dual point that bounds the optimum from below."""

    coef: FloatArray
    loss: float
    multipliers: Multipliers
    n_iter: int
    vertex: bool = True

    def in_units(self, unit: float) -> Certified:
        """Return the solution for rows that are ``unit`` times as large."""
        total, gradient = self.multipliers
        multipliers = Multipliers(total, gradient * unit)
        return self._replace(coef=self.coef / unit, multipliers=multipliers)


@dataclass(frozen=True)
class Solution:
    """What every solution reports beside its coefficients.

    Attributes
    ----------
    gamma : float
        The margin the problem was solved for.
    objective : float
        Value of the problem at the solution.
    dual : float
        Lower bound on the optimum, from multipliers inside their boxes.
    n_iter : int
        Iterations; 0 where the optimum is known in closed form or inherited.
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


class RowSolver(Protocol):
    """A solver for few rows that can continue with a finer tolerance."""

    def approach(self, tol: float, max_iter: int) -> Certified:
        """Minimise, not to a vertex."""
        ...

    def finish(self, tol: float, max_iter: int) -> Certified:
        """Minimise, to a vertex if the problem wants one."""
        ...


class HingeTerm(ABC):
    """The convex term of a problem hinge + term.

    Attributes
    ----------
    floor
        Primal values below it count as ``floor`` in the relative gap.
    """

    floor: float

    @abstractmethod
    def value(self, coef: FloatArray) -> float:
        """Return the term at ``coef``."""

    @abstractmethod
    def bound(self, multipliers: Multipliers) -> float:
        """Return the lower bound on hinge + term that the multipliers prove."""

    def primal(self, point: Certified) -> float:
        """Return hinge + term."""
        return point.loss + self.value(point.coef)

    def closes(self, point: Certified, tol: float) -> bool:
        """Whether the gap is at most ``tol``, relative to the primal value."""
        primal = self.primal(point)
        return primal - self.bound(point.multipliers) <= tol * max(primal, self.floor)

    def best_of(self, one: Certified, two: Certified) -> Certified:
        """Return the better point with the better bound, and the iterations of both."""
        point = min(one, two, key=self.primal)
        multipliers = max(one.multipliers, two.multipliers, key=self.bound)
        return point._replace(multipliers=multipliers, n_iter=one.n_iter + two.n_iter)


class HingeProblem(HingeTerm):
    """A problem hinge + term that is solved on few rows at a time.

    Attributes
    ----------
    slack
        Margins this close to one are on both sides.
    wants_vertex
        Whether the solution must be a vertex and, where the loss is zero, of the smallest norm.
    """

    slack: float
    wants_vertex: bool

    @abstractmethod
    def closed_form(self, rows: HingeExamples) -> Certified | None:
        """Return the minimiser if it is known without iterations."""

    @abstractmethod
    def begin(self, rows: HingeExamples, start: FloatArray | None) -> RowSolver:
        """Return a solver for all rows at once; ``start`` is a guess."""

    @staticmethod
    @abstractmethod
    def first_size(n_rows: int, n_columns: int) -> int:
        """Return the number of rows that constraint generation begins with."""


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
