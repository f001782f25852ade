"""Coordinates of series in the span of some of them, the anchors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray
from slts.learning._solvers import factorise_pivoted, solve_lower
from slts.learning.blas import eigh, map_rows, matmul, on_device_of, on_gpu, on_host

# Pivots below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-10
# Series that a thread treats at once.
_ROWS = 256


@dataclass(frozen=True, eq=False)
class AnchorSpan:
    """Coordinates of series in the span of the centred anchors; they keep inner products.

    Parameters
    ----------
    anchor_weights
        Maps linear functions of the coordinates, shape (coordinates, functions), to weights of the
        anchors: inner products with the anchors, times these, are the values of the functions plus
        those of `centre`.
    centre
        Shape (coordinates,).
    coordinates
        Those of some series; their mean is zero. Shape (series, coordinates). They are on the GPU
        if the products are.
    """

    anchor_weights: Callable[[FloatArray], FloatArray]
    centre: FloatArray
    coordinates: FloatArray

    @classmethod
    def of(cls, products: FloatArray, anchors: FloatArray) -> AnchorSpan:
        """Take inner products of series with the anchors, and of the anchors."""
        centre = anchors.mean(axis=1)
        gram = anchors - centre
        gram += anchors.mean() - centre[:, np.newaxis]
        least = _RANK_TOLERANCE * max(float(gram.diagonal().max()), np.finfo(float).tiny)
        axes = (_SpectralAxes if on_gpu(gram) else _PivotedAxes)(gram, least)
        mean = sum(map_rows(lambda rows: products[rows].sum(axis=0), products, _ROWS))
        mean = mean[np.newaxis] / len(products)
        origin = on_host(axes.coordinates(mean, 0.0 * mean))[0]
        own = axes.of_anchors() if products is anchors else axes.coordinates(products, mean)
        return cls(axes.anchor_weights, origin, own)


class _PivotedAxes:
    """Orthonormal axes of the anchors, by Cholesky with pivots. Small pivots are rounding."""

    def __init__(self, gram: FloatArray, least: float) -> None:
        # The matrix is symmetric, so its transpose is the same in Fortran's order.
        self._factor = gram.T
        order, rank = factorise_pivoted(self._factor, least)
        self._order, self._pivots = np.array(order), np.array(order[:rank], dtype=np.intp)

    def of_anchors(self) -> FloatArray:
        # LAPACK leaves the other triangle as it was.
        found = np.empty((len(self._order), len(self._pivots)))
        found[self._order] = np.tril(self._factor[:, : len(self._pivots)])
        return found

    def coordinates(self, products: FloatArray, mean: FloatArray) -> FloatArray:
        found = np.empty((len(products), len(self._pivots)))
        shift = mean.take(self._pivots, axis=1) - mean.mean()

        def solve(rows: slice) -> None:
            some = products[rows]
            own = some.take(self._pivots, axis=1) - shift
            own -= some.mean(axis=1, keepdims=True)
            found[rows] = solve_lower(self._factor, own)

        map_rows(solve, products, _ROWS)
        return found

    def anchor_weights(self, slope: FloatArray) -> FloatArray:
        weights = np.zeros((len(self._order), slope.shape[1]))

        def solve(columns: slice) -> None:
            own = solve_lower(self._factor, slope.T[columns], transposed=True)
            weights[self._pivots, columns] = own.T

        map_rows(solve, slope.T, _ROWS)
        centred: FloatArray = weights - weights.mean(axis=0)
        return centred


class _SpectralAxes:
    """Does on a GPU what `_PivotedAxes` does on the CPU, by eigenvectors."""

    def __init__(self, gram: FloatArray, least: float) -> None:
        values, vectors = eigh(gram)
        roots, vectors = np.sqrt(values[values > least]), vectors[:, values > least]
        self._anchors: FloatArray = vectors * roots
        self._basis: FloatArray = vectors / roots
        self._basis -= self._basis.mean(axis=0)

    def of_anchors(self) -> FloatArray:
        return self._anchors

    def coordinates(self, products: FloatArray, mean: FloatArray) -> FloatArray:
        found: FloatArray = matmul(products, self._basis) - matmul(mean, self._basis)
        return found

    def anchor_weights(self, slope: FloatArray) -> FloatArray:
        found: FloatArray = on_host(matmul(self._basis, on_device_of(self._basis, slope)))
        return found
