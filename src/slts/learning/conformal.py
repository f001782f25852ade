"""Conformal p-values: how unusual a decision is for a class, beside those of held-out series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.learning.calibration import two_sided

# Margins that are kept; more give no better quantiles.
_MOST = 10_000


@dataclass(frozen=True, eq=False)
class HeldOutMargins:
    """Margins of held-out series for their true classes.

    Parameters
    ----------
    margins
        Decision value of the true class minus the largest of the others, shape (series,).
    codes
        True classes, 0 to K-1.
    weights
        How many independent draws each series stands for: the series of a group share one.
    independent
        Whether the series played no part in training.
    """

    margins: FloatArray
    codes: IntArray
    weights: FloatArray
    independent: bool

    @classmethod
    def of(
        cls,
        decisions: FloatArray,
        codes: IntArray,
        weights: FloatArray | None = None,
        *,
        independent: bool = False,
    ) -> HeldOutMargins:
        """Keep the margins of at most 10,000 series, the first ones."""
        part = slice(_MOST)
        codes = np.asarray(codes, dtype=np.int64)[part]
        margins = class_margins(decisions[part])[np.arange(len(codes)), codes]
        shares = np.ones(len(codes)) if weights is None else np.array(weights[part])
        return cls(margins, codes, shares, independent)

    def n_draws(self, n_classes: int, *, per_class: bool) -> FloatArray:
        """Return the number of independent draws that each class is compared with."""
        if not per_class:
            return np.full(n_classes, self.weights.sum())
        return np.bincount(self.codes, self.weights, n_classes).astype(np.float64)

    def p_values(self, decisions: FloatArray, *, per_class: bool = False) -> FloatArray:
        """Return the p-value of every class for new series, shape (series, classes).

        It is the share of draws whose margins are at most that of the new series, which counts as
        one of them: among all held-out series, or among those of the class.
        """
        margins = class_margins(decisions)
        totals = self.n_draws(margins.shape[1], per_class=per_class)
        found = np.empty_like(margins)
        for c in range(margins.shape[1]):
            own = self.codes == c if per_class else np.ones(len(self.codes), dtype=bool)
            order = np.argsort(self.margins[own], kind="stable")
            below = np.concatenate([[0.0], np.cumsum(self.weights[own][order])])
            ranks = np.searchsorted(self.margins[own][order], margins[:, c], side="right")
            found[:, c] = (below[ranks] + 1.0) / (totals[c] + 1.0)
        return found


def class_margins(decisions: FloatArray) -> FloatArray:
    """Return each decision value minus the largest of the others, shape (series, classes)."""
    scores = two_sided(decisions)
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    others = scores.copy()
    others[rows, best] = -np.inf
    margins: FloatArray = scores - scores[rows, best][:, np.newaxis]
    margins[rows, best] = scores[rows, best] - others.max(axis=1)
    return margins
