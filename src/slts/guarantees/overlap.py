"""Copies among held-out series: of training series, and of each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import bdtrc

from slts._typing import AnyArray, IntArray
from slts.estimators.base import SeriesClassifier
from slts.series import SeriesBatch
from slts.series.shape_digests import shape_digests
from slts.series.source import Digests
from slts.training.first_pass import MOST_DIGESTS

# Independent series look like training series more often than those look like each other with
# this probability at most, before a certificate is refused.
_SIGNIFICANCE_LEVEL = 1e-3


def held_out_digests(model: SeriesClassifier, batch: SeriesBatch) -> Digests:
    """Return two digests of every series, for `Overlap.of`; shape (series, 2)."""
    if model.training_digests_ is None and not hasattr(model, "landmarks_"):
        # The model keeps the rows of its training series, not their values.
        batch = model.row_map_(batch)
    return digests_of_both_lengths(batch)


@dataclass(frozen=True, eq=False)
class Overlap:
    """Which held-out series have the digest of a training series, or of each other.

    Attributes
    ----------
    seen
        Whether each series looks like a training series.
    draws
        Number of a draw for each series: series that look the same are one draw.
    n_compared
        Number of training series that were compared.
    n_alike
        How many of these look like another one of them.
    complete
        Whether all training series were compared, not only those that the model keeps.
    """

    seen: npt.NDArray[np.bool_]
    draws: IntArray
    n_compared: int
    n_alike: int
    complete: bool

    @classmethod
    def of(cls, model: SeriesClassifier, digests: Digests) -> Overlap:
        """Compare `held_out_digests` with the training series of a model."""
        known = model.training_digests_
        complete = known is not None and len(known) < MOST_DIGESTS
        if known is None:
            kept = model.landmarks_ if hasattr(model, "landmarks_") else model.training_rows_
            known = shape_digests(kept)
        _, counts = np.unique(known, return_counts=True)
        n_alike = int(counts[counts > 1].sum())
        seen = np.asarray(np.isin(digests, known).any(axis=1))
        return cls(seen, number_connected(digests), len(known), n_alike, complete)

    @property
    def copies(self) -> IntArray:
        """Positions of held-out series that were trained on.

        Independent series look like training series as often as those look like each other.
        """
        found = np.flatnonzero(self.seen)
        chance = bdtrc(len(found) - 1, len(self.seen), self.n_alike / self.n_compared)
        return found[:0] if len(found) == 0 or chance > _SIGNIFICANCE_LEVEL else found

    @property
    def statements(self) -> tuple[list[str], list[str]]:
        """What a certificate says was checked, and what was not."""
        checked, unchecked = [], []
        n_seen, known = int(self.seen.sum()), f"{self.n_compared:,} training series"
        if n_seen:
            look = "looks like a training series, but is not"
            if n_seen > 1:
                look = "look like training series, but are not"
            unchecked.append(
                f"{n_seen} held-out series {look}: {self.n_alike} of {known} also look like each "
                f"other"
            )
        else:
            checked.append(
                f"no held-out series begins like one of {known}, apart from offset, scale and "
                f"noise of 1e-5"
            )
        if not self.complete:
            unchecked.append(
                f"no held-out series is a training series: only {self.n_compared} training series "
                f"{'was' if self.n_compared == 1 else 'were'} compared, because the model has no "
                f"digests of the others"
            )
        return checked, unchecked


def copies_sentence(n_copies: int, n: int) -> str:
    """Return how many series are copies of training series.

    Examples
    --------
    >>> from slts.guarantees.overlap import copies_sentence
    >>> copies_sentence(1, 40)
    '1 of 40 series is a copy of a training series'
    """
    are = "is a copy of a training series" if n_copies == 1 else "are copies of training series"
    return f"{n_copies:,} of {n:,} series {are}"


def draws_of_groups(draws: IntArray, groups: AnyArray) -> IntArray:
    """Return draws of whole groups; groups that share a draw of series are one draw."""
    _, which = np.unique(groups, return_inverse=True)
    return number_connected(np.column_stack([draws, which + draws.max() + 1]))


def digests_of_both_lengths(batch: SeriesBatch) -> Digests:
    """Return two digests of every series, as a copy may be shorter or longer; shape (series, 2)."""
    return np.column_stack([shape_digests(batch), shape_digests(batch, longer=True)])


def number_connected(names: AnyArray) -> IntArray:
    """Number series in their order; those that share a name, directly or not, are the same."""
    _, which = np.unique(names, return_inverse=True)
    which = which.reshape(names.shape)
    n, width = names.shape
    rows = np.repeat(np.arange(n), width)
    size = n + int(which.max()) + 1
    edges = coo_array((np.ones(rows.size), (rows, n + which.reshape(-1))), shape=(size, size))
    _, found = connected_components(edges, directed=False)
    _, first, which = np.unique(found[:n], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which].astype(np.int64)
