"""Penalties of the metric, and smoothings of those that are not smooth.

Each is a convex function of the matrix W. Near its kinks, or its boundary, a smooth function with a
width replaces it: ``smooth`` returns the value, gradient and curvature of that function. The
curvature is diagonal in a frame of orthonormal coordinates that depends on W.

SquaredNorm   strength ||W||_F^2                       smooth itself, in hinge.py
L1            strength sum_kl |W_kl|                   smoothed entry by entry
Nuclear       strength sum_k sigma_k(W)                the same for the singular values
Semidefinite  strength ||W||_F^2 where W = W' >= 0     with a log barrier of the eigenvalues
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from slts._typing import FloatArray
from slts.solvers.hinge import Multipliers, Penalty, SquaredNorm, ray_minimiser


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
