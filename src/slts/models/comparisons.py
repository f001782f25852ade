"""Views of the local classifier: a representation, a rule of alignment, and the products these give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.alignment.reductions import grouped_products
from slts.models.representations import Representation
from slts.series import SeriesBatch
from slts.series.channels import leading_directions

# Some groups of landmarks, and their features: shape (series, groups, phases, d, r).
Part: TypeAlias = tuple[slice, AnyArray]

# Products held at once.
CHUNK_BYTES = 128 * 2**20


@dataclass(frozen=True, eq=False)
class Comparison:
    """One way of comparing series with landmarks.

    Parameters
    ----------
    representation
        Which rows are aligned.
    settings
        How.
    basis
        Directions in which rows of landmarks are looked at, shape (d, r): metrics have rank r.
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
        """Take the directions that hold most of the landmarks' rows."""
        d = rows.n_channels
        if rank >= d:
            return cls(representation, settings, np.eye(d))
        return cls(representation, settings, leading_directions(rows.values, rank))

    @property
    def name(self) -> str:
        """For people: representation and objective."""
        return f"{self.representation.name}, {self.settings.objective}"

    def features(
        self,
        series: SeriesBatch,
        landmarks: SeriesBatch,
        groups: IntArray,
        n_phases: int,
        *,
        dtype: str = "float64",
        device: str = "cpu",
        n_jobs: int | None = None,
    ) -> Iterator[Part]:
        """Mean products T of each group and phase, times the basis; some groups at a time.

        A landmark belongs to one group, so that no alignment is found twice. Series and landmarks
        come as rows of the representation.
        """
        settings = AlignmentSettings(
            self.settings.objective, self.settings.band, normalize=False, dtype=dtype
        )
        size = np.dtype(dtype).itemsize * max(1, len(series)) * n_phases * series.n_channels**2
        n_groups = int(groups.max()) + 1
        step = max(1, min(n_groups, CHUNK_BYTES // size))
        basis = self.basis.astype(dtype)
        for begin in range(0, n_groups, step):
            part = slice(begin, min(begin + step, n_groups))
            members = np.flatnonzero((groups >= part.start) & (groups < part.stop))
            weights = np.zeros((part.stop - part.start, len(members)))
            weights[groups[members] - part.start, np.arange(len(members))] = 1.0
            weights /= weights.sum(axis=1, keepdims=True)
            found = grouped_products(
                series, landmarks[members], weights, settings,
                n_phases=n_phases, device=device, n_jobs=n_jobs,
            )  # fmt: skip
            yield part, found @ basis


class LastRows:
    """Rows of the representation asked for last: comparisons come representation by representation, and mapping takes its time."""

    def __init__(self) -> None:
        self._representation: Representation | None = None
        self._rows: tuple[SeriesBatch, ...] = ()

    def of(self, representation: Representation, *batches: SeriesBatch) -> tuple[SeriesBatch, ...]:
        """Rows of the batches, which are the same every time."""
        if representation is not self._representation:
            self._representation, self._rows = (
                representation,
                tuple(representation(batch) for batch in batches),
            )
        return self._rows
