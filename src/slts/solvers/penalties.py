"""Penalties of the metric that are not smooth, and Newton steps that minimise hinge + penalty.

The steps minimise a smoothed problem whose width shrinks. The hinge ``[u]_+`` becomes ``min_x x -
width (log x + log(x - u))``, whose slope lies strictly between 0 and 1: multipliers are inside
their boxes, and every point has a lower bound. The functions are self-concordant, so damped Newton
steps converge.

Each penalty is a convex function of the matrix W. Near its kinks, or its boundary, a smooth
function with a width replaces it: ``smooth`` returns its value, gradient and curvature. The
curvature is diagonal in a frame of orthonormal coordinates that depends on W.

L1            strength sum_kl |W_kl|                   smoothed entry by entry
Nuclear       strength sum_k sigma_k(W)                the same for the singular values
Semidefinite  strength ||W||_F^2 where W = W' >= 0     with a log barrier of the eigenvalues
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.solvers._solvers import solve_definite
from slts.solvers.hinge import (
    Certified,
    HingeRows,
    Multipliers,
    Penalty,
    SquaredNorm,
    ray_minimiser,
)


class Frame:
    """Orthonormal coordinates in which the curvature is diagonal; here the entries themselves."""

    def project(self, rows: FloatArray) -> FloatArray:
        """Return the coordinates of flattened matrices, one per row."""
        return rows

    def lift(self, coordinates: FloatArray) -> FloatArray:
        """Return the flattened matrix that has these coordinates."""
        return coordinates


class Smooth(NamedTuple):
    """A smoothed penalty near one matrix. Where the value is infinite there are no derivatives."""

    value: float
    gradient: FloatArray
    curvature: FloatArray
    frame: Frame


class SmoothedPenalty(Penalty):
    """A penalty that Newton steps minimise after smoothing, by default a multiple of a norm."""

    def minimiser(self, gradient: FloatArray) -> FloatArray:
        """Return zero, which minimises norm - <gradient, W> unless that is unbounded."""
        return np.zeros(self.order**2)

    def minimise(
        self, rows: HingeRows, point: Certified, start: FloatArray | None, tol: float, max_iter: int
    ) -> Certified:
        """Minimise loss + penalty by Newton steps from the saturated point."""
        return minimise_smoothed(rows, self, point, tol, max_iter)

    def start(self, width: float) -> FloatArray:
        """Return a matrix where the smoothed penalty is finite."""
        return np.zeros(self.order**2)

    @abstractmethod
    def smooth(self, coef: FloatArray, width: float) -> Smooth:
        """Return the smoothed penalty and its derivatives."""

    @abstractmethod
    def simplify(self, coef: FloatArray, width: float, cut: float) -> FloatArray:
        """Set entries, singular values or eigenvalues to zero that the smoothing made non-zero.

        A larger ``cut`` sets more of them to zero.
        """

    def best_scale(self, coef: FloatArray, margins: FloatArray, weights: FloatArray) -> float:
        """Return the factor of ``coef`` that minimises hinge + penalty, given its margins."""
        return ray_minimiser(margins, weights, linear=self.value(coef))

    def _matrix(self, coef: FloatArray) -> FloatArray:
        return coef.reshape(self.order, self.order)

    def _norm_bound(self, multipliers: Multipliers, norm: float) -> float:
        """Return the dual value of multipliers whose gradient has this dual norm.

        They are scaled into the dual ball.
        """
        return multipliers.total * min(1.0, self.strength / norm if norm > 0.0 else 1.0)


class L1(SmoothedPenalty):
    """``strength * sum_kl |W_kl|``."""

    def value(self, coef: FloatArray) -> float:
        """Return the penalty."""
        return self.strength * float(np.abs(coef).sum())

    def bound(self, multipliers: Multipliers) -> float:
        """Return the lower bound that the multipliers prove."""
        return self._norm_bound(multipliers, float(np.abs(multipliers.gradient).max()))

    def smooth(self, coef: FloatArray, width: float) -> Smooth:
        """Return the smoothed penalty and its derivatives."""
        values, slopes, curvature = _smooth_abs(coef, self.strength, width / coef.size)
        return Smooth(float(values.sum()), slopes, curvature, Frame())

    def simplify(self, coef: FloatArray, width: float, cut: float) -> FloatArray:
        """Set entries to zero that the smoothing made non-zero."""
        return np.where(self.strength * np.abs(coef) < cut * width / coef.size, 0.0, coef)


class Nuclear(SmoothedPenalty):
    """``strength`` times the sum of the singular values."""

    def value(self, coef: FloatArray) -> float:
        """Return the penalty."""
        return self.strength * float(np.linalg.svd(self._matrix(coef), compute_uv=False).sum())

    def bound(self, multipliers: Multipliers) -> float:
        """Return the lower bound that the multipliers prove."""
        norm = np.linalg.norm(self._matrix(multipliers.gradient), 2)
        return self._norm_bound(multipliers, float(norm))

    def smooth(self, coef: FloatArray, width: float) -> Smooth:
        """Return the smoothed penalty and its derivatives."""
        s, nu = self.strength, width / self.order
        left, sigma, right = np.linalg.svd(self._matrix(coef))
        values, slopes, _ = _smooth_abs(sigma, s, nu)
        gradient = (left * slopes) @ right
        # Quotients of slopes: (h'(a) - h'(b)) / (a - b) for the symmetric part, and with plus signs
        # for the other, computed without cancellation.
        a, b = sigma[:, np.newaxis], sigma[np.newaxis]
        root = np.hypot(nu, s * sigma)
        root_a, root_b = root[:, np.newaxis], root[np.newaxis]
        cross = a * root_b + b * root_a
        ratio = np.divide(a + b, cross, out=np.full_like(cross, 1.0 / nu), where=cross > 0.0)
        scale = s * s / ((nu + root_a) * (nu + root_b))
        even = scale * (nu + nu * nu * ratio)
        odd = scale * (nu + 1.0 / ratio)
        upper, above = np.triu_indices(self.order), np.triu_indices(self.order, 1)
        curvature = np.concatenate([even[upper], odd[above]])
        frame = _Turned(left, right.T, symmetric_only=False)
        return Smooth(float(values.sum()), gradient.ravel(), curvature, frame)

    def simplify(self, coef: FloatArray, width: float, cut: float) -> FloatArray:
        """Set singular values to zero that the smoothing made non-zero."""
        left, sigma, right = np.linalg.svd(self._matrix(coef))
        kept = self.strength * sigma >= cut * width / self.order
        return np.asarray((left[:, kept] * sigma[kept]) @ right[kept]).ravel()


class Semidefinite(SmoothedPenalty):
    """``strength * ||W||_F^2`` of symmetric positive semi-definite matrices."""

    degree = 2

    def value(self, coef: FloatArray) -> float:
        """Return the penalty of a matrix that is semi-definite by construction."""
        return self.strength * float(coef @ coef)

    def bound(self, multipliers: Multipliers) -> float:
        """Return the dual value: only the positive part of the gradient matters."""
        eigenvalues = np.linalg.eigvalsh(self._matrix(multipliers.gradient))
        positive = np.maximum(eigenvalues, 0.0)
        return multipliers.total - float(positive @ positive) / (4.0 * self.strength)

    def minimiser(self, gradient: FloatArray) -> FloatArray:
        """Return the matrix that minimises penalty - <gradient, W>."""
        eigenvalues, vectors = np.linalg.eigh(self._matrix(gradient))
        return self._assemble(np.maximum(eigenvalues, 0.0) / (2.0 * self.strength), vectors)

    def start(self, width: float) -> FloatArray:
        """Return the minimiser of penalty and barrier, or the identity if that is smaller."""
        size = min(1.0, float(np.sqrt(width / (2.0 * self.strength * self.order))))
        return size * np.eye(self.order).ravel()

    def smooth(self, coef: FloatArray, width: float) -> Smooth:
        """Return penalty and barrier with their derivatives; infinite outside the cone."""
        s, nu = self.strength, width / self.order
        eigenvalues, vectors = np.linalg.eigh(self._matrix(coef))
        if eigenvalues[0] <= 0.0:
            return Smooth(np.inf, coef, coef, Frame())
        gradient = self._assemble(2.0 * s * eigenvalues - nu / eigenvalues, vectors)
        upper = np.triu_indices(self.order)
        curvature = 2.0 * s + nu / np.outer(eigenvalues, eigenvalues)[upper]
        value = self.value(coef) - nu * float(np.log(eigenvalues).sum())
        return Smooth(value, gradient, curvature, _Turned(vectors, vectors, symmetric_only=True))

    def simplify(self, coef: FloatArray, width: float, cut: float) -> FloatArray:
        """Set eigenvalues to zero that the barrier made positive."""
        eigenvalues, vectors = np.linalg.eigh(self._matrix(coef))
        kept = 2.0 * self.strength * eigenvalues**2 >= cut * width / self.order
        return self._assemble(np.where(kept, eigenvalues, 0.0), vectors)

    def best_scale(self, coef: FloatArray, margins: FloatArray, weights: FloatArray) -> float:
        """Return the factor of ``coef`` that minimises hinge + penalty, given its margins."""
        return ray_minimiser(margins, weights, square=self.value(coef))

    def _matrix(self, coef: FloatArray) -> FloatArray:
        matrix = coef.reshape(self.order, self.order)
        return np.asarray(0.5 * (matrix + matrix.T))

    @staticmethod
    def _assemble(eigenvalues: FloatArray, vectors: FloatArray) -> FloatArray:
        half = (vectors * eigenvalues) @ vectors.T
        return np.asarray(0.5 * (half + half.T)).ravel()


class _Turned(Frame):
    """Symmetric and skew parts of ``left' W right``; the former alone for symmetric matrices."""

    def __init__(self, left: FloatArray, right: FloatArray, *, symmetric_only: bool) -> None:
        self._left, self._right, self._symmetric_only = left, right, symmetric_only
        self._upper = np.triu_indices(len(left))
        self._above = np.triu_indices(len(left), 1)
        self._scale = np.where(self._upper[0] == self._upper[1], 0.5, np.sqrt(0.5))

    def project(self, rows: FloatArray) -> FloatArray:
        d = len(self._left)
        turned = self._left.T @ rows.reshape(-1, d, d) @ self._right
        flipped = turned.transpose(0, 2, 1)
        even = (turned + flipped)[:, *self._upper] * self._scale
        if self._symmetric_only:
            return np.asarray(even)
        odd = (turned - flipped)[:, *self._above] * np.sqrt(0.5)
        return np.hstack([even, odd])

    def lift(self, coordinates: FloatArray) -> FloatArray:
        d = len(self._left)
        even, odd = np.zeros((d, d)), np.zeros((d, d))
        n_even = len(self._scale)
        even[self._upper] = coordinates[:n_even] * self._scale
        matrix = even + even.T
        if not self._symmetric_only:
            odd[self._above] = coordinates[n_even:] * np.sqrt(0.5)
            matrix += odd - odd.T
        return np.asarray(self._left @ matrix @ self._right.T).ravel()


def _smooth_abs(
    values: FloatArray, strength: float, width: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``min_t s t - width log(t^2 - x^2)``, which smooths ``s |x|``, and its derivatives."""
    root = np.hypot(width, strength * values)
    outer = width + root
    smoothed = outer - width * np.log(2.0 * width * outer / strength**2)
    slopes = strength**2 * values / outer
    return smoothed, slopes, strength**2 * width / (root * outer)


PENALTIES: dict[str, type[Penalty]] = {
    "frobenius": SquaredNorm,
    "nuclear": Nuclear,
    "l1": L1,
    "mahalanobis": Semidefinite,
}


# ---- Newton steps


_SHRINK = 0.15
_SMALLEST_WIDTH = 1e-13
_STEPS_PER_WIDTH = 60
# Widths tried after the first one that closes the gap, to find exact zeros.
_MORE_WIDTHS = 4
_SHORTEST = 1e-10
# The steps for one width end when the next one promises a decrease below this share of the width.
_CENTRED = 0.01
# Rows that together change the Newton matrix by a smaller share are left out of it.
_NEGLIGIBLE = 1e-3
# Thresholds for zero, from large to small, in units of the smoothing.
_CUTS = (1e4, 1e3, 1e2, 1e1, 0.0)


def minimise_smoothed(
    rows: HingeRows, penalty: SmoothedPenalty, best: Certified, tol: float, max_iter: int
) -> Certified:
    """Improve a point until the gap closes, or the Newton steps are used up.

    Of the points within the gap the simplest is returned: entries, singular values or eigenvalues
    that are zero except for the smoothing are zero.
    """
    width, n_closed = 1.0, 0
    coef = penalty.start(width)
    while True:
        coef, multipliers, n_iter = _centre(rows, penalty, coef, width, max_iter - best.n_iter)
        own = Multipliers(float(multipliers.sum()), rows.combine(multipliers))
        bound = max(best.multipliers, own, key=penalty.bound)
        best = best._replace(multipliers=bound, n_iter=best.n_iter + n_iter)
        best, simple = _improve(rows, penalty, best, coef, width, tol)
        n_closed += penalty.closes(best, tol)
        used_up = best.n_iter >= max_iter or width < _SMALLEST_WIDTH
        if simple or n_closed > _MORE_WIDTHS or used_up:
            return best
        width *= _SHRINK


def _evaluate(
    rows: HingeRows, coef: FloatArray, multipliers: Multipliers, n_iter: int = 0
) -> Certified:
    return Certified(coef, rows.loss(rows.margins(coef)), multipliers, n_iter)


def _improve(
    rows: HingeRows,
    penalty: SmoothedPenalty,
    best: Certified,
    centre: FloatArray,
    width: float,
    tol: float,
) -> tuple[Certified, bool]:
    """Return the simplest point within the gap and True, or else the best point and False."""
    for cut in _CUTS:
        coef = penalty.simplify(centre, width, cut)
        # Without the dropped values, margins are a little short of one.
        coef = coef * penalty.best_scale(coef, rows.margins(coef), rows.weights)
        point = _evaluate(rows, coef, best.multipliers, best.n_iter)
        if cut > 0.0 and penalty.closes(point, tol):
            return point, True
        best = min(best, point, key=penalty.primal)
    return best, False


class _Step(NamedTuple):
    """A Newton step, the change of the multipliers with it, and twice the decrease it promises."""

    coef: FloatArray
    multipliers: FloatArray
    promise: float


def _centre(
    rows: HingeRows, penalty: SmoothedPenalty, coef: FloatArray, width: float, budget: int
) -> tuple[FloatArray, FloatArray, int]:
    """Take the Newton steps for one width; return where they end, multipliers, and their number."""
    margins, smooth = rows.margins(coef), penalty.smooth(coef, width)
    n_iter = 0
    while True:
        multipliers, curvature = _hinge_slopes(rows, margins, width)
        step = _newton(rows, smooth, multipliers, curvature)
        last = step.promise <= _CENTRED * width or n_iter >= min(budget, _STEPS_PER_WIDTH)
        change, length = rows.margins(step.coef), 0.0 if last else 1.0
        here = smooth.value + _smooth_loss(rows, margins, width)
        while length > 0.0:
            # Halve the step until it decreases the smoothed objective.
            ahead = penalty.smooth(coef + length * step.coef, width)
            there = ahead.value + _smooth_loss(rows, margins + length * change, width)
            if there <= here - 0.1 * length * step.promise:
                break
            length = 0.5 * length if length > _SHORTEST else 0.0
        if length == 0.0:
            # Multipliers after one more step satisfy the dual constraint to first order.
            return coef, np.clip(multipliers + step.multipliers, 0.0, rows.weights), n_iter
        coef, margins, smooth = coef + length * step.coef, margins + length * change, ahead
        n_iter += 1


def _newton(
    rows: HingeRows, smooth: Smooth, multipliers: FloatArray, curvature: FloatArray
) -> _Step:
    slope = smooth.gradient - rows.combine(multipliers)
    # In units of the penalty's curvature the Newton matrix is I + A'A.
    units = 1.0 / np.sqrt(smooth.curvature)
    A = smooth.frame.project(rows.signed) * np.sqrt(curvature)[:, np.newaxis]
    A *= units
    heavy = np.flatnonzero(np.einsum("ij,ij->i", A, A) > _NEGLIGIBLE / rows.n_rows)
    A = A[heavy]
    right = smooth.frame.project(slope[np.newaxis])[0] * units
    solution, image = _solve_identity_plus(A, right)
    change = np.zeros_like(multipliers)
    change[heavy] = np.sqrt(curvature[heavy]) * image
    return _Step(smooth.frame.lift(-solution * units), change, float(solution @ right))


def _solve_identity_plus(A: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve ``(I + A'A) x = right`` on the smaller side; return x and A x, free of cancellation."""
    n, p = A.shape
    if n == 0:
        # LAPACK takes no empty right-hand side.
        return right, np.empty(0)
    if n >= p:
        solution = solve_definite(A.T @ A, 1.0, right)
        return solution, A @ solution
    image = solve_definite(A @ A.T, 1.0, A @ right)
    return right - A.T @ image, image


def _smooth_loss(rows: HingeRows, margins: FloatArray, width: float) -> float:
    short = 1.0 - margins
    half = width + np.hypot(width, 0.5 * short)
    values = 0.5 * short + half - width * np.log(2.0 * width * half)
    return float(rows.weights @ values)


def _hinge_slopes(
    rows: HingeRows, margins: FloatArray, width: float
) -> tuple[FloatArray, npt.NDArray[np.float64]]:
    """Return multipliers between zero and the weights, and the curvature of every row."""
    short = 1.0 - margins
    root = np.hypot(width, 0.5 * short)
    half = width + root
    below = width / (half - 0.5 * np.minimum(short, 0.0))
    multipliers = np.where(short > 0.0, 0.5 + 0.25 * short / half, below)
    return rows.weights * multipliers, rows.weights * width / (4.0 * root * half)
