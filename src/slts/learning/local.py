"""Local metrics: inner products of grouped aligned products, and the number of phases."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.learning.anchor_span import AnchorSpan
from slts.learning.blas import (
    add_gram,
    add_products,
    add_scaled,
    mirror,
    on_device_of,
    on_gpu,
    on_host,
    take_rows,
)
from slts.learning.calibration import two_sided
from slts.learning.loo_ridge import LeftOut, RidgeFit, fit_loo_ridge

# Standard errors of the paired difference by which a richer model must be better.
_LEAST_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Choice:
    """One candidate of the model selection.

    Parameters
    ----------
    n_phases
        Number of parts of a landmark that have their own metrics.
    penalty
        The best penalty for it, relative to the mean squared norm of the features; that of the
        chosen candidate is the best for all series.
    error, accuracy
        Mean squared error and accuracy of the leave-one-out decision values of at most 2000
        training series. Landmarks and scales are not refitted, so both are optimistic: they serve
        to compare candidates.
    chosen
        Whether this candidate was chosen.
    reason
        Why, or why not.
    """

    n_phases: int
    penalty: float
    error: float
    accuracy: float
    chosen: bool
    reason: str


class FeatureGram:
    """Inner products of all series with some anchors, summed over comparisons.

    Parameters
    ----------
    anchors
        Indices of the series that span the solution.
    n_series
        Number of training series.
    arrays
        NumPy, or CuPy to compute on its GPU.
    """

    def __init__(self, anchors: IntArray, n_series: int, arrays: Any = np) -> None:
        self._anchors = anchors
        self._all = np.array_equal(anchors, np.arange(n_series))
        # Pages of zeros are first touched by the threads that sum.
        self._zeros = partial(arrays.zeros, (n_series, len(anchors)), dtype=np.float64)
        self._total: FloatArray = self._zeros()
        # Of the current comparison, if it has features yet.
        self._comparison: FloatArray | None = None
        self.comparison_weights: list[float] = []
        self._norm = 0.0

    @property
    def on_gpu(self) -> bool:
        """Whether the inner products are on a GPU."""
        return on_gpu(self._total)

    def add(self, features: AnyArray) -> AnyArray:
        """Add features of the current comparison, shape (series, ...). Return the anchors' own."""
        if self._comparison is None:
            self._comparison = self._zeros()
        own = self._of_anchors(features)
        if self._all:
            # The other triangle is filled in the end.
            add_gram(self._comparison, self._flat(features))
        else:
            add_products(self._comparison, self._flat(features), self._flat(own))
        return own

    def _flat(self, features: AnyArray) -> FloatArray:
        flat: FloatArray = on_device_of(self._total, features.reshape(len(features), -1))
        return flat.astype(np.float64, copy=False)

    def _of_anchors(self, array: AnyArray) -> AnyArray:
        return array if self._all else take_rows(array, self._anchors)

    def end_comparison(self, share: float = 1.0) -> None:
        """Scale the current comparison: its centred features get `share` as mean squared norm."""
        products, self._comparison = self._comparison, None
        assert products is not None
        if self._all:
            mirror(products)
        own = self._of_anchors(products)
        norm = float(np.trace(own) / len(own) - own.mean())
        # Features that are the same for all series have no information.
        weight = share / norm if norm > 1e-12 * float(np.trace(own)) / len(own) else 0.0
        add_scaled(self._total, products, weight)
        self.comparison_weights.append(weight)
        self._norm += share * float(weight > 0.0)

    def plus(self, other: FeatureGram, weight: float) -> FeatureGram:
        """Return the sum with other features of the same series, times a weight."""
        both = copy(self)
        both._total = self._total.copy()
        add_scaled(both._total, other._total, weight)
        both._norm = self._norm + weight * other._norm
        both.comparison_weights = [
            *self.comparison_weights,
            *(weight * own for own in other.comparison_weights),
        ]
        return both

    def solve(
        self,
        targets: FloatArray,
        sample_weight: FloatArray,
        penalties: FloatArray,
        known: LeftOut | None = None,
    ) -> RidgeFit:
        """Fit the targets on the features of all comparisons; penalties are relative."""
        return fit_loo_ridge(
            self._total,
            self._of_anchors(self._total),
            targets,
            sample_weight,
            self.absolute(penalties),
            known,
        )

    def absolute(self, penalties: FloatArray) -> FloatArray:
        """Multiply relative penalties by the mean squared norm of the features."""
        return (self._norm or 1.0) * penalties

    def span(self) -> AnchorSpan:
        """Return the coordinates of all series in the span of the anchors."""
        return AnchorSpan.of(self._total, self._of_anchors(self._total))


def linear_values(features: AnyArray, functions: FloatArray) -> FloatArray:
    """Values of linear functions of the features (series, ...), shape (series, functions)."""
    own = functions.reshape(len(functions), -1)
    flat = features.reshape(len(features), own.shape[1])
    # Unlike `@`, this lets other threads work if there are few values.
    values: FloatArray = on_host(flat.dot(on_device_of(flat, own.T)))
    return values


def fewer_phases(products: AnyArray, n_phases: int) -> AnyArray:
    """Add up neighbouring phases of products (series, groups, phases, d, r)."""
    m, groups, phases, d, r = products.shape
    if phases == n_phases:
        return products
    joined: AnyArray = products.reshape(m, groups, n_phases, phases // n_phases, d * r).sum(axis=3)
    return joined.reshape(m, groups, n_phases, d, r)


def choose_phases(
    fits: Mapping[int, RidgeFit],
    targets: FloatArray,
    codes: IntArray,
    sample_weight: FloatArray,
    penalties: FloatArray,
) -> tuple[int, tuple[Choice, ...]]:
    """Choose more phases only if the leave-one-out error is clearly smaller.

    The smallest of several noisy errors is often small by chance, so a richer model must be better
    by two standard errors of the paired difference.

    Parameters
    ----------
    fits
        Fits by number of phases, in ascending order.
    targets, codes, sample_weight
        Targets, classes and weights of the training series.
    penalties
        The relative penalties that were tried.

    Returns
    -------
    int
        The number of phases.
    tuple of Choice
        One per candidate.
    """
    share = sample_weight / sample_weight.sum()
    losses = {n: ((fit.left_out - targets) ** 2).mean(axis=1) for n, fit in fits.items()}
    chosen = next(iter(fits))
    reasons = {chosen: "the smallest number of phases"}
    for n in list(fits)[1:]:
        gains = losses[chosen] - losses[n]
        gain = float(share @ gains)
        standard_error = float(np.sqrt(share**2 @ (gains - gain) ** 2))
        text = (
            f"leave-one-out error {'lower' if gain > 0 else 'higher'} by {abs(gain):.4f} than with "
            f"{chosen}, standard error {standard_error:.4f}"
        )
        if gain > _LEAST_STANDARD_ERRORS * standard_error:
            reasons[chosen] += f"; replaced by {n} phases"
            chosen, reasons[n] = n, text
        else:
            reasons[n] = f"{text}: not clearly better"
    choices = tuple(
        Choice(
            n_phases=n,
            penalty=float(penalties[fit.best]),
            error=float(share @ losses[n]),
            accuracy=float(
                np.average(two_sided(fit.left_out).argmax(axis=1) == codes, weights=sample_weight)
            ),
            chosen=n == chosen,
            reason=reasons[n],
        )
        for n, fit in fits.items()
    )
    return chosen, choices
