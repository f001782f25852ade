"""Ridge regression on sums over series, its penalty chosen by exact leave-one-out.

There may be many more features than series, so features are given by their inner products with
some series, the anchors. With few series all of them are anchors. The solution is a linear
combination of the anchors' features, so it is linear in the features. It has as many coordinates
as there are anchors, or as features if these are fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.learning.anchor_span import AnchorSpan
from slts.learning.banded import BandForm
from slts.learning.blas import (
    add_gram,
    eigh,
    map_rows,
    matmul,
    mirror,
    on_device_of,
    on_gpu,
    on_host,
    row_blocks,
)

# Penalties as multiples of the mean squared norm of the centred features.
PENALTIES = tuple(float(a) for a in np.logspace(-4.0, 3.0, 22))
# Errors with a smaller relative difference are equal.
_TIE = 1e-9
# Smallest 1 - leverage: a series of leverage one determines its own fit.
_LEVERAGE_ROOM = 1e-9
# Series whose coordinates are summed at once.
_SUMMED = 1024
# Series that a thread leaves out at once, and bytes of their decisions.
_LEFT_OUT, _LEFT_OUT_BYTES = 256, 4 * 2**20
# Errors of more targets than this are estimated from as many random sums of them: with thousands of
# classes they would take longer than everything else.
MOST_TARGETS = 256


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Solution of min_f sum_i w_i |y_i - f(x_i)|^2 + penalty |f|^2 with a free intercept.

    Parameters
    ----------
    weights
        f = intercept + sum_s weights[s] <features of anchor s, features of x>, shape (anchors,
        targets).
    slope
        The same in the coordinates of an `AnchorSpan`, shape (coordinates, targets).
    intercept
        Shape (targets,).
    penalties
        The penalties that were tried.
    errors
        Weighted mean squared leave-one-out error of each penalty; of more than 256 targets an
        unbiased estimate. Series of `LeftOut` have the errors of their own fit.
    best
        Position of the chosen penalty.
    left_out
        Prediction for each given series by the fit to all other series, shape (series, targets);
        that of `LeftOut`, if the series is one of them.
    objective
        Objective of the solution, divided by the sum of sample weights.
    gap
        Upper bound on the difference to the minimum in the span of the anchors.
    """

    weights: FloatArray
    slope: FloatArray
    intercept: FloatArray
    penalties: FloatArray
    errors: FloatArray
    best: int
    left_out: FloatArray
    objective: float
    gap: float

    @property
    def error(self) -> float:
        """Error of the chosen penalty."""
        return float(self.errors[self.best])


class LeftOut(NamedTuple):
    """Some series that were left out of an earlier fit, which has chosen features by them.

    A fit with the chosen features must not leave them out again: their errors would be too small,
    and so would the penalty.

    Parameters
    ----------
    series
        Their positions.
    errors
        Their error for each penalty, relative to the features of that fit.
    predictions
        Predictions for them at the best of these penalties, shape (series, targets).
    """

    series: IntArray
    errors: FloatArray
    predictions: FloatArray


class NormalEquations:
    """Sums over series that determine a ridge regression; the sums of parts are added.

    Coordinates should have a mean near zero: the sums are centred afterwards.

    Parameters
    ----------
    n_coordinates, n_targets
        Sizes of the problem.
    """

    def __init__(self, n_coordinates: int, n_targets: int) -> None:
        self._weight = 0.0
        self._first = np.zeros(n_coordinates)
        self._targets = np.zeros(n_targets)
        # The upper triangle alone is summed. A few rows are kept as they are: they are smaller.
        self._gram: FloatArray | None = None
        self._rows: list[FloatArray] = []
        self._cross = np.zeros((n_coordinates, n_targets))
        self._squares = 0.0

    def add(self, coordinates: FloatArray, targets: FloatArray, sample_weight: FloatArray) -> None:
        """Add series: coordinates, targets of shape (series, targets), and weights."""
        weighted = sample_weight[:, np.newaxis] * targets
        self._weight += float(sample_weight.sum())
        self._targets += weighted.sum(axis=0)
        factors = on_device_of(coordinates, np.column_stack([weighted, sample_weight]))
        sums = on_host(matmul(coordinates.T, factors))
        self._cross += sums[:, :-1]
        self._first += sums[:, -1]
        self._squares += float(np.einsum("ij,ij->", weighted, targets))
        weigh = bool((sample_weight != 1.0).any())
        root = on_device_of(coordinates, np.sqrt(sample_weight)[:, np.newaxis])
        for rows in row_blocks(coordinates, _SUMMED):
            some = coordinates[rows]
            # What is not summed at once must be a copy.
            self._rows.append(root[rows] * some if weigh or len(some) < _SUMMED else some)
            self._sum_rows(_SUMMED)

    def _sum_rows(self, at_least: int) -> None:
        """Sum the rows that are kept, if there are enough of them."""
        if sum(map(len, self._rows)) < at_least:
            return
        rows = self._rows[0] if len(self._rows) == 1 else np.concatenate(self._rows)
        self._rows = []
        if self._gram is None:
            self._gram = on_device_of(rows, np.zeros((len(self._first), len(self._first))))
        add_gram(self._gram, rows.T)

    def __iadd__(self, other: NormalEquations) -> Self:
        """Add the sums of other series."""
        self._weight += other._weight
        self._first += other._first
        self._targets += other._targets
        self._cross += other._cross
        self._squares += other._squares
        if self._gram is None:
            self._gram = other._gram
        elif other._gram is not None:
            self._gram += other._gram
        self._rows += other._rows
        self._sum_rows(_SUMMED)
        return self

    def solve(
        self,
        span: AnchorSpan,
        targets: FloatArray,
        sample_weight: FloatArray,
        penalties: FloatArray,
        importance: FloatArray | None = None,
        known: LeftOut | None = None,
    ) -> RidgeFit:
        """Solve for all penalties with one factorisation, and keep the best.

        Parameters
        ----------
        span, targets, sample_weight
            Some or all of the series in the sums. Each of them is left out once, unless it is
            known already.
        penalties
            Candidates, ascending.
        importance
            Weights of these series in the leave-one-out error, if other than in the sums.
        known
            Those of them that were left out of an earlier fit.
        """
        self._sum_rows(1)
        assert self._gram is not None
        mirror(self._gram)
        total = self._weight
        mean, target_mean = self._first / total, self._targets / total
        gram = on_device_of(span.coordinates, self._gram)
        cross = self._cross - np.outer(self._first, target_mean)
        squares = self._squares - float(self._targets @ target_mean)
        form = _Spectral if on_gpu(gram) else BandForm
        system = form(gram, self._first / np.sqrt(total), penalties)
        # Targets are rows in what the system takes and returns.
        rotated = system.rotate(on_device_of(gram, cross.T))
        found = system.solve(on_device_of(gram, _summed(on_host(rotated).T).T))
        slopes = found.reshape(found.shape[0] * found.shape[1], len(gram)).T
        y, shift = targets - target_mean, on_device_of(gram, mean)

        def decide(rows: IntArray) -> tuple[FloatArray, FloatArray]:
            x = system.rotate(span.coordinates[rows] - shift)
            leverages = sample_weight[rows, np.newaxis] * on_host(system.quadratic(x))
            # The intercept has a share of the leverage, too.
            leverages += sample_weight[rows, np.newaxis] / total
            return on_host(x @ slopes), leverages

        importance = sample_weight if importance is None else importance
        shares = importance / importance.sum()
        rows, errors = np.arange(len(targets)), np.zeros(len(penalties))
        if known is not None:
            rows = np.setdiff1d(rows, known.series)
            errors = shares[known.series].sum() * known.errors
        errors, best, kept = _leave_out(decide, span.coordinates, rows, y, shares, errors)
        penalty = float(penalties[best])
        slope = system.rotate(system.solve(rotated, best)[0], back=True).T
        decided, curved = on_host(matmul(span.coordinates, slope)), on_host(matmul(gram, slope))
        slope = on_host(slope)
        residual = y - (decided - mean @ slope)
        left_out = targets.astype(np.float64)
        left_out[rows] -= residual[rows] / kept
        if known is not None:
            left_out[known.series] = known.predictions
        gradient = penalty * slope - cross + curved - np.outer(self._first, mean @ slope)
        return RidgeFit(
            weights=span.anchor_weights(slope),
            slope=slope,
            intercept=target_mean - (mean + span.centre) @ slope,
            penalties=np.asarray(penalties, dtype=np.float64),
            errors=errors,
            best=best,
            left_out=left_out,
            objective=(squares + float((slope * (gradient - cross)).sum())) / total,
            # The squared gradient bounds the gap of a strongly convex quadratic.
            gap=float((gradient**2).sum()) / penalty / total,
        )


class _Spectral:
    """Does on a GPU what `BandForm` does on the CPU: B has the eigenvalues."""

    def __init__(self, matrix: FloatArray, subtracted: FloatArray, shifts: FloatArray) -> None:
        column = on_device_of(matrix, subtracted[:, np.newaxis])
        values, self._vectors = eigh(matrix - column * column.T)
        self._shifted = np.maximum(values, 0.0) + on_device_of(matrix, shifts)[:, np.newaxis]

    def rotate(self, rows: FloatArray, *, back: bool = False) -> FloatArray:
        return matmul(rows, self._vectors.T if back else self._vectors)

    def solve(self, rows: FloatArray, shift: int | None = None) -> FloatArray:
        shifted = self._shifted if shift is None else self._shifted[shift : shift + 1]
        solved: FloatArray = rows / shifted[:, np.newaxis]
        return solved

    def quadratic(self, rows: FloatArray) -> FloatArray:
        return matmul(rows**2, 1.0 / self._shifted.T)


def fit_loo_ridge(
    products: FloatArray,
    anchors: FloatArray,
    targets: FloatArray,
    sample_weight: FloatArray,
    penalties: FloatArray,
    known: LeftOut | None = None,
) -> RidgeFit:
    """Fit series in memory.

    Parameters
    ----------
    products
        Inner products of all series with the anchors, shape (series, anchors).
    anchors
        Inner products of the anchors, shape (anchors, anchors): the same array if every series is
        an anchor, in the same order.
    targets
        Shape (series, targets).
    sample_weight
        Non-negative weights, shape (series,).
    penalties
        Candidates, ascending.
    known
        Series that were left out of an earlier fit.

    Returns
    -------
    RidgeFit
        Exact in the span of the anchors, hence exact if every series is an anchor.
    """
    span = AnchorSpan.of(products, anchors)
    equations = NormalEquations(span.coordinates.shape[1], targets.shape[1])
    equations.add(span.coordinates, targets, sample_weight)
    return equations.solve(span, targets, sample_weight, penalties, known=known)


def _leave_out(
    decide: Callable[[IntArray], tuple[FloatArray, FloatArray]],
    coordinates: FloatArray,
    series: IntArray,
    y: FloatArray,
    shares: FloatArray,
    errors: FloatArray,
) -> tuple[FloatArray, int, FloatArray]:
    """Choose the penalty by leave-one-out.

    Parameters
    ----------
    decide
        Returns decisions (series, penalties * targets) and leverages (series, penalties) of some
        series.
    coordinates
        Those of all series.
    series
        Positions of the series that are left out.
    y, shares
        Centred targets of all series, and their shares of the error.
    errors
        What other series add to the error of each penalty.

    Returns
    -------
    tuple
        The error of each penalty; the position of the best; what each series keeps of its residual
        there, shape (series, 1): 1 - leverage.
    """
    shares, n_penalties = shares / y.shape[1], len(errors)
    y = _summed(y)

    def leave_out(block: slice) -> tuple[FloatArray, FloatArray]:
        rows = series[block]
        fitted, leverages = decide(rows)
        kept = np.maximum(1.0 - leverages, _LEVERAGE_ROOM)
        residuals = y[rows, np.newaxis] - fitted.reshape(*kept.shape, -1)
        residuals /= kept[:, :, np.newaxis]
        return kept, np.einsum("i,ipt,ipt->p", shares[rows], residuals, residuals)

    # Every thread holds the decisions of its series.
    n_rows = _LEFT_OUT_BYTES // max(1, 8 * n_penalties * y.shape[1])
    # Only the number of these coordinates matters, and whether they are on a GPU.
    found = map_rows(leave_out, coordinates[: len(series)], min(max(1, n_rows), _LEFT_OUT))
    errors = sum((added for _, added in found), errors)
    # Of equal errors, the largest penalty is chosen.
    best = len(errors) - 1
    for k in reversed(range(len(errors))):
        if errors[k] < (1.0 - _TIE) * errors[best]:
            best = k
    kept = [own[:, best, np.newaxis] for own, _ in found]
    return errors, best, np.concatenate([np.empty((0, 1)), *kept])


def _summed(columns: FloatArray) -> FloatArray:
    """Return the columns of all targets, or random sums of them if they are many."""
    if columns.shape[1] <= MOST_TARGETS:
        return columns
    signs = np.random.RandomState(0).randint(2, size=(columns.shape[1], MOST_TARGETS))
    # Squared norms keep their expectation.
    return np.asarray(columns @ ((2.0 * signs - 1.0) / np.sqrt(MOST_TARGETS)))
