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
from slts.series.channels import leading_directions

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

    def features(
        self, rows: SeriesBatch, aligner: Aligner, groups: IntArray, n_phases: int
    ) -> Iterator[GroupFeatures]:
        """Yield mean products T of each group and phase, times the basis; some groups at a time.

        A landmark belongs to one group, so every pair is aligned once. `rows` and the landmarks of
        the aligner are rows of the representation.
        """
        size = 8 * max(1, len(rows)) * n_phases * rows.n_channels**2
        n_groups = int(groups.max()) + 1
        step = max(1, min(n_groups, CHUNK_BYTES // size))
        for begin in range(0, n_groups, step):
            part = slice(begin, min(begin + step, n_groups))
            members = np.flatnonzero((groups >= part.start) & (groups < part.stop))
            weights = np.zeros((part.stop - part.start, len(members)))
            weights[groups[members] - part.start, np.arange(len(members))] = 1.0
            weights /= weights.sum(axis=1, keepdims=True)
            some = aligner if len(members) == len(groups) else aligner.subset(members)
            yield part, some.grouped(rows, weights, n_phases=n_phases) @ self.basis


def with_rows(
    comparisons: Iterable[Comparison], batch: SeriesBatch
) -> Iterator[tuple[Comparison, SeriesBatch]]:
    """Yield comparisons with their rows; successive comparisons share those of a representation."""
    last, rows = None, batch
    for comparison in comparisons:
        if comparison.representation is not last:
            last, rows = comparison.representation, comparison.representation(batch)
        yield comparison, rows
