"""Problems ``min_w sum_i c_i [1 - <r_i, w>]_+ + term(w)``: rows, points and their lower bounds.

A row is ``r_i = label_i * x_i``, and the weights c_i sum to one. Multipliers u_i between zero and
c_i prove a lower bound ``sum_i u_i - conjugate(sum_i u_i r_i)``, so every point has a duality gap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from slts._typing import AnyArray, FloatArray
from slts.errors import warn
from slts.solvers._solvers import SquaredNormSystem

# Relative gap of a solution in closed form: rounding.
EXACT = 1e-12
# Relative gap of a solution that is good enough as a reference for a working set.
ROUGH_TOL = 0.1
# Margins this close to one are on both sides: the side of a row must not depend on rounding.
_SLACK = 1e-9
# Strengths, relative to the one asked for, whose solution is a new start where steps stall.
_RESTARTS = (1.3, 0.7, 3.0)
# The working set usually has all rows that decide after two or three rounds.
_MAX_ROUNDS = 100


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

    @property
    def longest(self) -> float:
        """Length of the longest row; one if all rows are zero."""
        square = float(np.einsum("ij,ij->i", self.signed, self.signed).max())
        if not np.isfinite(square):
            raise ValueError(
                "The squared norms of the rows must be finite. Scale the features down."
            )
        return float(np.sqrt(square)) or 1.0

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


@dataclass(frozen=True)
class Penalty(HingeTerm):
    """A penalty of flattened square matrices with ``order`` rows."""

    strength: float
    order: int
    # A primal value below it is rounding.
    floor = 1e-9
    # The penalty of a W is a^degree times that of W.
    degree = 1

    @abstractmethod
    def minimise(
        self, rows: HingeRows, point: Certified, start: FloatArray | None, tol: float, max_iter: int
    ) -> Certified:
        """Minimise loss + penalty from the saturated point, or from a guess of the solution."""

    def in_units(self, unit: float) -> Self:
        """Return the penalty of metrics of rows in units of ``unit``."""
        return replace(self, strength=self.strength / unit**self.degree)


class SquaredNorm(Penalty):
    """``strength * ||W||_F^2``."""

    degree = 2

    def value(self, coef: FloatArray) -> float:
        """Return the penalty."""
        return self.strength * float(coef @ coef)

    def bound(self, multipliers: Multipliers) -> float:
        """Return the lower bound that the multipliers prove."""
        total, gradient = multipliers
        return total - float(gradient @ gradient) / (4.0 * self.strength)

    def minimiser(self, gradient: FloatArray) -> FloatArray:
        """Return the minimiser of penalty - <gradient, W>."""
        return gradient / (2.0 * self.strength)

    def minimise(
        self, rows: HingeRows, point: Certified, start: FloatArray | None, tol: float, max_iter: int
    ) -> Certified:
        """Minimise loss + penalty over working sets by interior-point steps."""
        steps = partial(interior_minimiser, penalty=self, max_iter=max_iter)
        approximate, solve = partial(steps, tol=ROUGH_TOL), partial(steps, tol=tol)
        point = minimise_over_working_sets(rows, self, approximate, solve, start, tol=tol)
        # On its own ray the minimiser satisfies loss + 2 lam ||M||^2 <= 1, however large the gap.
        margins = rows.margins(point.coef)
        factor = ray_minimiser(margins, rows.weights, square=self.value(point.coef))
        return point._replace(coef=factor * point.coef, loss=rows.loss(factor * margins))


def interior_minimiser(
    rows: HingeRows,
    start: FloatArray | None,
    *,
    penalty: SquaredNorm,
    tol: float,
    max_iter: int,
) -> Certified:
    """Take interior-point steps with all rows until the gap closes.

    Steps from an unlucky start can shrink to nothing. They do not from the optimum of a similar
    problem.
    """
    zero, n_iter = np.zeros(rows.n_columns), 0
    coef = zero if start is None else start
    for ratio in (1.0, *_RESTARTS):
        if ratio != 1.0:
            similar = SquaredNormSystem(rows.signed, rows.weights, ratio * penalty.strength, zero)
            n_iter += similar.minimise(tol=tol, max_iter=max_iter - n_iter, floor=penalty.floor)
            coef = similar.coef
        system = SquaredNormSystem(rows.signed, rows.weights, penalty.strength, coef)
        n_iter += system.minimise(tol=tol, max_iter=max_iter - n_iter, floor=penalty.floor)
        point = Certified(system.coef, system.loss, Multipliers(*system.certificate), n_iter)
        if penalty.closes(point, tol) or n_iter >= max_iter:
            break
    return point


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


# ---- working sets

# Minimises over some rows, from a guess of the solution.
Solve: TypeAlias = Callable[[HingeRows, FloatArray | None], Certified]


def minimise_over_working_sets(
    rows: HingeRows,
    term: HingeTerm,
    approximate: Solve,
    solve: Solve,
    start: FloatArray | None,
    *,
    tol: float,
    size: int | None = None,
) -> Certified:
    """Minimise loss + term over all rows by solving problems of few rows.

    Only rows near the margin decide. The working set has the rows whose margins at a reference
    point are nearest to one. The other rows above one are left out; the other rows below one are
    replaced by one row, their weighted mean. By convexity this problem bounds the whole from below,
    and it is exact if no other row changes its side of the margin. Rows that do join the working
    set.

    Parameters
    ----------
    rows, term
        The problem.
    approximate, solve
        Minimise over a sample of the rows, to ``ROUGH_TOL``, and over a working set.
    start
        A guess of the solution.
    tol
        Relative gap over all rows at which rows on the wrong side no longer matter. Zero goes on
        until there are none.
    size
        Number of rows of the sample, and of the first working set. Fewer than twice as many rows
        are solved at once. None chooses it: a solution has at most about as many rows at the margin
        as columns.
    """
    size = size or max(1000, 6 * rows.n_columns, rows.n_rows // 20)
    if rows.n_rows <= 2 * size:
        return solve(rows, start)

    step = rows.n_rows // size
    sample = HingeRows(rows.signed[::step], rows.weights[::step] / rows.weights[::step].sum())
    rough = approximate(sample, start)
    guesses = [rough.coef] if start is None else [rough.coef, start]
    coef = min(guesses, key=lambda coef: rows.loss(rows.margins(coef)) + term.value(coef))
    short, n_iter = 1.0 - rows.margins(coef), rough.n_iter
    was_below, inside = short > 0.0, np.zeros(rows.n_rows, dtype=bool)
    inside[np.argpartition(np.abs(short), size)[:size]] = True
    for _ in range(_MAX_ROUNDS):
        point = solve(_with_mean_below(rows, inside, was_below), coef)
        coef, n_iter = point.coef, n_iter + point.n_iter
        short = 1.0 - rows.margins(coef)
        loss = float(rows.weights @ np.maximum(short, 0.0))
        point = point._replace(loss=loss, n_iter=n_iter)
        moved = np.where(was_below, -short, short) > _SLACK
        wrong = np.flatnonzero(moved & ~inside)
        if wrong.size == 0 or term.closes(point, tol):
            break
        # At most double the working set, by the rows that are farthest on the wrong side.
        most = np.count_nonzero(inside)
        inside[wrong[np.argsort(-np.abs(short[wrong]))[:most]]] = True
    return point


def _with_mean_below(
    rows: HingeRows, inside: npt.NDArray[np.bool_], was_below: npt.NDArray[np.bool_]
) -> HingeRows:
    """Return the rows inside, and one row for the others that were below the margin."""
    others = np.where(was_below & ~inside, rows.weights, 0.0)
    weight = float(others.sum())
    if weight == 0.0:
        return HingeRows(rows.signed[inside], rows.weights[inside])
    mean = rows.combine(others) / weight
    return HingeRows(
        np.vstack([rows.signed[inside], mean]), np.append(rows.weights[inside], weight)
    )


# ---- reports


@dataclass(frozen=True)
class SolveReport:
    """One solved problem: its objective, and its distance from the optimum at most."""

    positive: Any
    stage: str
    gamma: float
    objective: float
    gap: float
    n_iter: int
    converged: bool


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

    def report(self, positive: Any, stage: str) -> SolveReport:
        """Return a report of this solution for a positive class, without its coefficients."""
        return SolveReport(
            positive, stage, self.gamma, self.objective, self.gap, self.n_iter, self.converged
        )

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
