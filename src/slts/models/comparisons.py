"""Comparisons of the local classifier: a representation, an objective, and their products."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner, AlignmentSettings
from slts.models.representations import Representation
from slts.series import SeriesBatch
from slts.series.channels import leading_directions, pool_steps

# Some groups of landmarks, and their features: shape (series, groups, phases, d, r).
GroupFeatures: TypeAlias = tuple[slice, AnyArray]

# Bytes of products that are held at once.
CHUNK_BYTES = 128 * 2**20


@dataclass(frozen=True, eq=False)
class Comparison:
    """One way to compare series with landmarks.

    Parameters
    ----------
    representation
        Maps series to the rows that are aligned.
    settings
        Objective and band of the alignment.
    basis
        Directions of the landmarks' rows that metrics use, shape (d, r): metrics have rank r.
    """

    representation: Representation
    settings: AlignmentSettings
    basis: FloatArray

    @classmethod
    def fit(
        cls,
        representation: Representation,
        settings: AlignmentSettings,
        rows: SeriesBatch,
        rank: int,
    ) -> Comparison:
        """Take the leading principal directions of the landmarks' rows."""
        d = rows.n_channels
        if rank >= d:
            return cls(representation, settings, np.eye(d))
        return cls(representation, settings, leading_directions(rows.values, rank))

    @property
    def name(self) -> str:
        """Representation and objective, for people."""
        return f"{self.representation.name}, {self.settings.objective}"

    def aligner(self, landmarks: SeriesBatch) -> Aligner:
        """Return the aligner of some rows of the representation, as `features` needs it."""
        return Aligner(landmarks, self.settings, basis=self.basis)

    def features(
        self, rows: SeriesBatch, aligner: Aligner, weights: FloatArray, n_phases: int
    ) -> Iterator[GroupFeatures]:
        """Yield mean products T of each group and phase, times the basis; some groups at a time.

        A landmark belongs to one group (see `group_weights`), so every pair is aligned once. `rows`
        and the landmarks of the aligner are rows of the representation. What a GPU has aligned
        stays there.
        """
        size = 8 * max(1, len(rows)) * n_phases * self.basis.size
        step = max(1, CHUNK_BYTES // size)
        if step >= len(weights):
            every = slice(0, len(weights))
            yield every, aligner.grouped(rows, weights, n_phases=n_phases, on_device=True)
            return
        for begin in range(0, len(weights), step):
            part = slice(begin, min(begin + step, len(weights)))
            members = np.flatnonzero(weights[part].any(axis=0))
            some, own = aligner.subset(members), weights[part, members]
            yield part, some.grouped(rows, own, n_phases=n_phases, on_device=True)


def group_weights(groups: IntArray) -> FloatArray:
    """Return the weights of the landmarks in the mean of each group, shape (groups, landmarks)."""
    weights = np.zeros((int(groups.max()) + 1, len(groups)))
    weights[groups, np.arange(len(groups))] = 1.0
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def with_rows(
    comparisons: Iterable[Comparison], batch: SeriesBatch, n_jobs: int | None = None
) -> Iterator[tuple[Comparison, SeriesBatch]]:
    """Yield comparisons with their rows; successive comparisons share those of a representation."""
    last, pooled, rows = None, batch, batch
    for comparison in comparisons:
        own = comparison.representation
        if last is None or last.max_length != own.max_length:
            # Averaged here, so that the representations find short series.
            pooled = pool_steps(batch, own.max_length)
        if own is not last:
            rows = own(pooled, n_jobs)
        last = own
        yield comparison, rows
