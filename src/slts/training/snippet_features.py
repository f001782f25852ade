"""Standardised features of snippets, some snippets at a time, and the way back to coefficients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.models.comparisons import CHUNK_BYTES
from slts.models.snippets import Snippets
from slts.series import SeriesBatch


class SnippetFeatures:
    """How often snippets occur in training series.

    Parameters
    ----------
    snippets
        The snippets.
    batch
        Training series.
    n_jobs
        Number of threads.
    """

    def __init__(self, snippets: Snippets, batch: SeriesBatch, n_jobs: int | None) -> None:
        self.snippets, self._batch, self._n_jobs = snippets, batch, n_jobs
        # Features of a snippet: thresholds, kinds.
        self._shape = snippets.thresholds.shape[1], snippets.n_kinds
        self._moments: list[tuple[slice, FloatArray, FloatArray]] = []

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield features of zero mean and unit variance, shape (series, features)."""
        self._moments.clear()
        size = 8 * len(self._batch) * self._shape[0] * self._shape[1]
        step = max(1, CHUNK_BYTES // size)
        for begin in range(0, len(self.snippets), step):
            part = slice(begin, begin + step)
            features = self._features(part, self._batch)
            centre, spread = features.mean(axis=0), features.std(axis=0)
            # Features that are the same for all series have no information.
            spread[spread <= 1e-9] = np.inf
            self._moments.append((part, centre, spread))
            yield (features - centre) / spread

    def coefficients(self, weights: FloatArray, anchors: IntArray) -> tuple[FloatArray, FloatArray]:
        """Combine the anchors' features with the weights of the solution.

        Parameters
        ----------
        weights
            Shape (anchors, problems).
        anchors
            Positions of the anchors.

        Returns
        -------
        coef : ndarray of shape (problems, snippets, thresholds, kinds)
            Coefficients of features that are not standardised.
        shift : ndarray of shape (problems,)
            What their standardisation adds to the decision values.
        """
        some, coef, shift = self._batch[anchors], [], np.zeros(weights.shape[1])
        for part, centre, spread in self._moments:
            features = (self._features(part, some) - centre) / spread
            own = (weights.T @ features) / spread
            shift -= own @ centre
            coef.append(own.reshape(len(own), -1, *self._shape))
        return np.concatenate(coef, axis=1), shift

    def _features(self, part: slice, batch: SeriesBatch) -> FloatArray:
        some = self.snippets.subset(part)
        found = some.features(some.counts(batch, self._n_jobs), batch.lengths)
        return found.reshape(len(batch), -1)
