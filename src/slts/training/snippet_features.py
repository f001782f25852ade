"""Standardised features of snippets, and the way back to coefficients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.execution import Block, map_blocks
from slts.learning.blas import map_rows, take_rows
from slts.models.comparisons import CHUNK_BYTES
from slts.models.snippets import MOST_KINDS, N_THRESHOLDS, Snippets
from slts.series import SeriesBatch
from slts.series.missing import fill_gaps

# Snippets whose features a thread standardises at a time.
_SNIPPETS = 8
# Rows of counts that a thread converts at a time.
_CONVERTED = 1024


def snippet_bytes(n_series: int, n_anchors: int, n_snippets: int) -> float:
    """Estimate the memory for features of snippets.

    Those of some snippets exist twice; counts of the anchors are kept.
    """
    per_snippet = 8.0 * n_series * N_THRESHOLDS * MOST_KINDS
    chunk = min(n_snippets * per_snippet, max(CHUNK_BYTES, per_snippet))
    return 2 * chunk + 4.0 * n_anchors * n_snippets * N_THRESHOLDS


class SnippetFeatures:
    """How often snippets occur in training series.

    Parameters
    ----------
    snippets
        The snippets.
    batch
        Training series.
    anchors
        Positions of the series that span the solution.
    n_jobs
        Number of threads.
    """

    def __init__(
        self, snippets: Snippets, batch: SeriesBatch, anchors: IntArray, n_jobs: int | None
    ) -> None:
        self.snippets, self.anchors, self._n_jobs = snippets, anchors, n_jobs
        # Once, and not for every part of the snippets.
        self._batch = fill_gaps(batch, snippets.scale.centre)
        self._all = np.array_equal(anchors, np.arange(len(batch)))
        # Some snippets: counts of the anchors, means and standard deviations of the features.
        self._parts: list[tuple[npt.NDArray[np.int32], FloatArray, FloatArray]] = []

    @property
    def n_series(self) -> int:
        """Number of training series."""
        return len(self._batch)

    @property
    def n_done(self) -> int:
        """Number of snippets that have been counted."""
        return sum(counts.shape[1] for counts, _, _ in self._parts)

    def features(self) -> Iterator[FloatArray]:
        """Yield features of all series, shape (series, features), some snippets at a time.

        Those of the anchors have zero mean and unit variance.
        """
        self._parts.clear()
        size = 8 * len(self._batch) * self.snippets.thresholds.shape[1] * self.snippets.n_kinds
        step = max(1, CHUNK_BYTES // size)
        for begin in range(0, len(self.snippets), step):
            some = self.snippets.subset(np.arange(begin, min(begin + step, len(self.snippets))))
            counts = some.counts(self._batch, self._n_jobs)
            features, centre, spread = self._standardise(counts)
            own = counts if self._all else take_rows(counts, self.anchors)
            self._parts.append((own, centre, spread))
            del counts, own
            yield features

    def _standardise(
        self, counts: npt.NDArray[np.int32]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return features of all series, with the means and standard deviations of the anchors."""
        width = N_THRESHOLDS * self.snippets.n_kinds
        # Columns are contiguous: threads would wait for each other's new pages otherwise.
        features = np.empty((counts.shape[1] * width, len(counts))).T
        centre, spread = np.empty((2, features.shape[1]))

        def task(block: Block) -> None:
            some = slice(block.column_begin, block.column_end)
            columns = slice(some.start * width, some.stop * width)
            found = self._features(counts[:, some], self._batch.lengths)
            own = found if self._all else found[self.anchors]
            centre[columns] = own.mean(axis=0)
            found -= centre[columns]
            own = found if self._all else found[self.anchors]
            spread[columns] = np.sqrt(np.einsum("ij,ij->j", own, own) / len(own))
            # Features that are the same for all anchors have no information.
            spread[columns][spread[columns] <= 1e-9] = np.inf
            np.divide(found, spread[columns], out=features[:, columns])

        starts = range(0, counts.shape[1], _SNIPPETS)
        blocks = [
            Block(0, len(counts), k, min(k + _SNIPPETS, counts.shape[1]), 1.0) for k in starts
        ]
        map_blocks(task, blocks, n_jobs=self._n_jobs)
        return features, centre, spread

    def shares(self) -> FloatArray:
        """Mean share of the anchors' steps within each threshold, shape (snippets, thresholds)."""
        shape = -1, N_THRESHOLDS, self.snippets.n_kinds
        return np.concatenate([centre.reshape(shape)[:, :, 0] for _, centre, _ in self._parts])

    def coefficients(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Combine the anchors' features with the weights of the solution.

        Parameters
        ----------
        weights
            Shape (anchors, problems).

        Returns
        -------
        coef : ndarray of shape (problems, snippets, thresholds, kinds)
            Coefficients of features that are not standardised.
        shift : ndarray of shape (problems,)
            What their standardisation adds to the decision values.
        """
        coef, shift = [], np.zeros(weights.shape[1])
        for own, (counts, centre, spread) in zip(
            self._standardised(weights), self._parts, strict=True
        ):
            own = own / spread
            shift -= own @ centre
            coef.append(own.reshape(len(own), *counts.shape[1:], -1))
        return np.concatenate(coef, axis=1), shift

    def effects(self, weights: FloatArray) -> FloatArray:
        """Return the squared norm of each snippet's coefficients of standardised features."""
        found = [
            np.square(own).reshape(len(own), counts.shape[1], -1).sum(axis=(0, 2))
            for own, (counts, _, _) in zip(self._standardised(weights), self._parts, strict=True)
        ]
        return np.concatenate(found)

    def _standardised(self, weights: FloatArray) -> Iterator[FloatArray]:
        """Yield coefficients of standardised features, some snippets at a time.

        Weights are divided instead of counts, of which there are more, and sums are standardised.
        """
        divisors = self.snippets.divisors(self._batch.lengths[self.anchors])
        by_kind = (weights[:, :, np.newaxis] / divisors[:, np.newaxis]).reshape(len(weights), -1)
        totals = weights.sum(axis=0)
        for counts, centre, spread in self._parts:
            sums = _weighted_sums(counts.reshape(len(counts), -1).T, by_kind)
            # (snippets * thresholds, problems, kinds) to (problems, features).
            sums = sums.reshape(len(sums), len(totals), -1).swapaxes(0, 1)
            yield (sums.reshape(len(totals), -1) - np.outer(totals, centre)) / spread

    def _features(self, counts: npt.NDArray[np.int32], lengths: IntArray) -> FloatArray:
        return self.snippets.features(counts, lengths).reshape(len(counts), -1)


def _weighted_sums(counts: npt.NDArray[np.int32], weights: FloatArray) -> FloatArray:
    """Return ``counts @ weights``. Few counts are converted to floating point at a time."""
    products = map_rows(lambda rows: counts[rows].astype(np.float64) @ weights, counts, _CONVERTED)
    return np.concatenate(products)
