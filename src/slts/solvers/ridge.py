"""Ridge regression with a free intercept; exact predictions for series that are left out.

With coordinates c_i of series i such that sum_i w_i c_i = 0 and sum_i w_i c_i c_i' = diag(s), the
minimiser of sum_i w_i |y_i - b - B'c_i|^2 + penalty |B|^2 is

    b = mean of y,    B = cross / (s + penalty),    cross = sum_i w_i c_i (y_i - b)',

and the fit to all other series predicts series i with the residual

    (y_i - b - B'c_i) / (1 - h_i),    h_i = w_i (1 / sum w + sum_k c_ik^2 / (s_k + penalty)).

If several series are left out together, h is the matrix of

    w_i^(1/2) (1 / sum w + sum_k c_ik c_jk / (s_k + penalty)) w_j^(1/2)

of these series, and the residuals times w_i^(1/2) are divided by the matrix 1 - h.

`Span` finds such coordinates by one decomposition of the Gram matrix of the series. If there are
too many series for that, some of them span the solution, and `NormalEquations` sums over all.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, cast

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import warn
from slts.execution import fit_threads, map_threads

# Penalties as multiples of the mean squared norm of the features.
PENALTIES = tuple(float(a) for a in np.logspace(-4.0, 3.0, 22))
# Eigenvalues below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-10
# Smallest 1 - leverage: a series of leverage one determines its own fit.
_LEAST_KEPT = 1e-9
# Errors with a smaller relative difference are equal.
_TIE = 1e-9
# Largest relative gap of a solution.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class RidgeReport:
    """How a least-squares problem was solved.

    Attributes
    ----------
    objective
        Its objective at the solution, divided by the sum of the weights.
    gap
        Upper bound on the difference to the minimum.
    converged
        Whether the gap is small, relative to the objective.
    """

    objective: float
    gap: float
    converged: bool

    @classmethod
    def of(
        cls, slope: FloatArray, cross: FloatArray, curvature: FloatArray, squares: float,
        total: float, penalty: float,
    ) -> RidgeReport:  # fmt: skip
        """Compare a solution with the minimum, and warn if rounding leaves a large gap.

        `curvature` is the matrix of the problem times the slope, `squares` the weighted sum of
        squared targets, `total` the sum of the weights.
        """
        gradient = penalty * slope + curvature - cross
        objective = (squares + float((slope * (gradient - cross)).sum())) / total
        # The squared gradient bounds the gap of a strongly convex quadratic.
        gap = float((gradient**2).sum()) / penalty / total
        report = cls(objective, gap, gap <= _TOLERANCE * abs(objective))
        if not report.converged:
            warn(
                f"The least-squares problem is ill conditioned (duality gap {gap:.2g} at "
                f"objective {objective:.2g}): use larger penalties.",
                ConvergenceWarning,
            )
        return report


class RidgeSolution(NamedTuple):
    """A function intercept + slope'c of coordinates c, and how it was found.

    Shapes (coordinates, targets) and (targets,).
    """

    slope: FloatArray
    intercept: FloatArray
    report: RidgeReport


class LeaveOneOut(NamedTuple):
    """Each series predicted by the fit to all others, or to all other groups.

    Attributes
    ----------
    errors
        Weighted mean squared error of each penalty.
    best
        Position of the penalty with the smallest error.
    predictions
        Predictions at the best penalty, shape (series, targets).
    slope
        The fit to all series at the best penalty, shape (coordinates, targets).
    """

    errors: FloatArray
    best: int
    predictions: FloatArray
    slope: FloatArray

    @property
    def error(self) -> float:
        """The smallest error."""
        return float(self.errors[self.best])


@dataclass(frozen=True, eq=False)
class Span:
    """Coordinates in the span of some series, from one decomposition of their Gram matrix.

    Attributes
    ----------
    coordinates
        Those of the series, shape (series, coordinates), of weighted mean zero. They keep inner
        products of centred features.
    diagonal
        Their weighted sums of squares, shape (coordinates,); weighted sums of products are zero.
    basis, origin
        Coordinates of any series are ``products @ basis - origin``, where `products` are its inner
        products with these series. Shapes (series, coordinates) and (coordinates,).
    """

    coordinates: FloatArray
    diagonal: FloatArray
    basis: FloatArray
    origin: FloatArray

    @classmethod
    def of(cls, products: FloatArray, weights: FloatArray) -> Span:
        """Decompose a Gram matrix of features; an array of CuPy is decomposed on its GPU."""
        share, root = (
            on_device_of(products, a) for a in (weights / weights.sum(), np.sqrt(weights))
        )
        means = products @ share
        centred = products - means - means[:, None] + share @ means
        values, vectors = map(on_host, eigh(root[:, None] * centred * root))
        kept = values > _RANK_TOLERANCE * max(float(values[-1]), np.finfo(float).tiny)
        values, vectors, root = values[kept], vectors[:, kept], np.sqrt(weights)[:, None]
        basis = root * vectors / np.sqrt(values)
        basis -= (weights / weights.sum())[:, None] * basis.sum(axis=0)
        return cls(vectors * np.sqrt(values) / root, values, basis, on_host(means) @ basis)

    def solve(self, targets: FloatArray, weights: FloatArray, penalty: float) -> RidgeSolution:
        """Fit the series of the span, with the weights of its decomposition."""
        mean = weights @ targets / weights.sum()
        y, weighted = targets - mean, self.coordinates * weights[:, None]
        cross = matmul(weighted.T, y)
        slope = cross / (self.diagonal + penalty)[:, None]
        curvature = matmul(weighted.T, matmul(self.coordinates, slope))
        squares, total = float((weights[:, None] * y**2).sum()), float(weights.sum())
        report = RidgeReport.of(slope, cross, curvature, squares, total, penalty)
        return RidgeSolution(slope, mean, report)

    def leave_one_out(
        self,
        targets: FloatArray,
        weights: FloatArray,
        penalties: FloatArray,
        groups: IntArray | None = None,
    ) -> LeaveOneOut:
        """Leave out each series, or each group as a whole, for each penalty.

        Of equal errors, the largest penalty is best. Groups are numbered from 0.
        """
        total = weights.sum()
        mean = weights @ targets / total
        y, c = targets - mean, self.coordinates
        cross = matmul((c * weights[:, None]).T, y)
        inverse = 1.0 / (self.diagonal[:, None] + penalties)
        leverages = weights[:, None] * (1.0 / total + matmul(c**2, inverse))
        kept = np.maximum(1.0 - leverages, _LEAST_KEPT)

        def residuals(k: int) -> FloatArray:
            if groups is not None:
                return targets - self.leave_out(targets, weights, penalties[k], groups)
            return np.asarray((y - matmul(c, inverse[:, k, None] * cross)) / kept[:, k, None])

        errors = np.array(
            [weights @ (residuals(k) ** 2).mean(axis=1) / total for k in range(len(penalties))]
        )
        best = int(np.flatnonzero(errors <= (1.0 + _TIE) * errors.min())[-1])
        return LeaveOneOut(errors, best, targets - residuals(best), inverse[:, best, None] * cross)

    def leave_out(
        self, targets: FloatArray, weights: FloatArray, penalty: float, parts: IntArray
    ) -> FloatArray:
        """Predict the series of each part by the fit to all other parts, numbered from 0."""
        y, root = targets - weights @ targets / weights.sum(), np.sqrt(weights)[:, None]
        # The matrix h of all series is rows @ rows.T, and that of the intercept.
        rows = root * self.coordinates / np.sqrt(self.diagonal + penalty)
        residuals = root * y - matmul(rows, matmul(rows.T, root * y))
        rows = np.column_stack([rows, root / np.sqrt(weights.sum())])
        for part in range(parts.max() + 1):
            members = np.flatnonzero(parts == part)
            left = (1.0 + _LEAST_KEPT) * np.eye(len(members)) - gram(rows[members])
            residuals[members] = scipy.linalg.solve(left, residuals[members], assume_a="pos")
        return np.asarray(targets - residuals / root)


class NormalEquations:
    """Sums over series that determine a ridge regression; the sums of parts are added.

    Coordinates should have a mean near zero: the sums are centred afterwards.

    Parameters
    ----------
    n_coordinates, n_targets
        Sizes of the problem.
    """

    def __init__(self, n_coordinates: int, n_targets: int) -> None:
        self._weight, self._squares = 0.0, 0.0
        self._first, self._targets = np.zeros(n_coordinates), np.zeros(n_targets)
        self._gram = np.zeros((n_coordinates, n_coordinates))
        self._cross = np.zeros((n_coordinates, n_targets))

    def add(self, coordinates: FloatArray, targets: FloatArray, weights: FloatArray) -> None:
        """Add series: coordinates, targets of shape (series, targets), and weights."""
        weighted = weights[:, None] * targets
        self._weight += float(weights.sum())
        self._targets += weighted.sum(axis=0)
        self._first += weights @ coordinates
        self._cross += matmul(coordinates.T, weighted)
        self._squares += float(np.einsum("ij,ij->", weighted, targets))
        self._gram += gram((np.sqrt(weights)[:, None] * coordinates).T)

    def __iadd__(self, other: NormalEquations) -> Self:
        """Add the sums of other series."""
        self._weight += other._weight
        self._targets += other._targets
        self._first += other._first
        self._cross += other._cross
        self._squares += other._squares
        self._gram += other._gram
        return self

    def solve(self, penalty: float) -> RidgeSolution:
        """Fit all series in the sums."""
        total = self._weight
        mean, target_mean = self._first / total, self._targets / total
        matrix = self._gram - np.outer(self._first, mean)
        cross = self._cross - np.outer(self._first, target_mean)
        shifted = matrix + penalty * np.eye(len(matrix))
        factor = scipy.linalg.cho_factor(shifted, overwrite_a=True, check_finite=False)
        slope = scipy.linalg.cho_solve(factor, cross, check_finite=False)
        squares = self._squares - total * float(target_mean @ target_mean)
        report = RidgeReport.of(slope, cross, matmul(matrix, slope), squares, total, penalty)
        return RidgeSolution(slope, target_mean - mean @ slope, report)


# ---- products of large matrices, in tiles for the threads of a fit, or on a GPU

# Each tile is a call of BLAS in one thread, so sums have the same bits for every number of threads.
# Arrays of CuPy stay on their GPU.

# Rows and columns of a tile.
_TILE = 256
# Multiplications below which threads take longer than one.
_FEW = 2e7


def matmul(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a @ b."""
    if on_gpu(a):
        return a @ b
    if a.shape[0] * b.size < _FEW:
        # Unlike `@`, this lets other threads work if there are few values.
        return np.asarray(a.dot(b))
    product = np.empty((a.shape[0], b.shape[1]))
    _fill_tiles(product, a, b, symmetric=False)
    return product


def gram(rows: FloatArray) -> FloatArray:
    """Return ``rows @ rows.T``; only one of its triangles is computed."""
    if on_gpu(rows):
        return rows @ rows.T
    product = np.empty((len(rows), len(rows)))
    _fill_tiles(product, rows, rows.T, symmetric=True)
    return product


def eigh(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, ascending, and eigenvectors of a symmetric matrix."""
    if on_gpu(symmetric):
        values, vectors = sys.modules["cupy"].linalg.eigh(symmetric)
    else:
        # Unlike SciPy's function, this lets other threads work.
        values, vectors = np.linalg.eigh(symmetric)
    return values, vectors


def _fill_tiles(product: FloatArray, a: FloatArray, b: FloatArray, *, symmetric: bool) -> None:
    def fill(corner: tuple[int, int]) -> None:
        rows = slice(corner[0], corner[0] + _TILE)
        columns = slice(corner[1], corner[1] + _TILE)
        if not symmetric:
            np.matmul(a[rows], b[:, columns], out=product[rows, columns])
        elif columns.start >= rows.start:
            tile = np.matmul(a[rows], b[:, columns])
            product[rows, columns], product[columns, rows] = tile, tile.T

    first_rows, first_columns = (range(0, n, _TILE) for n in product.shape)
    corners = list(itertools.product(first_rows, first_columns))
    map_threads(fill, corners, n_jobs=fit_threads())


def on_gpu(array: Any) -> bool:
    """Whether an array is CuPy's."""
    # Not if CuPy is absent, blocked, or being imported by another thread.
    return isinstance(array, getattr(sys.modules.get("cupy"), "ndarray", ()))


def on_host(array: FloatArray) -> FloatArray:
    """Return an array of NumPy."""
    return cast(FloatArray, sys.modules["cupy"].asnumpy(array)) if on_gpu(array) else array


def on_device_of(other: AnyArray, array: AnyArray) -> Any:
    """Return an array on the GPU of another, or on the host if the other is there."""
    return sys.modules["cupy"].asarray(array) if on_gpu(other) else on_host(array)
