"""Equal rows of a hinge loss: one with the sum of their weights stands for them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.learning.hinge import HingeRows
from slts.series.source import scrambled

# Fewer rows than these are not searched for equal ones: in an answer, and in memory.
FEW, _FEW_IN_MEMORY = 64, 1000
_WORTHWHILE = 0.9  # share of distinct rows above which all rows are kept as they are
_PASS_ELEMENTS = 1 << 20


class Groups(NamedTuple):
    """Equal rows: the first of each group, in order, and the group of every row."""

    first: npt.NDArray[np.intp]
    owner: npt.NDArray[np.intp]

    def sums(self, values: FloatArray) -> FloatArray:
        """Add up the values of each group."""
        sums = np.bincount(self.owner, weights=values, minlength=self.first.size)
        return np.asarray(sums, dtype=np.float64)


def distinct(rows: HingeRows) -> HingeRows:
    """Return one row, with the sum of the weights, for rows that are equal with their labels.

    The problem stays the same. Where equal rows are few, ``rows`` itself is returned.
    """
    groups = groups_of(rows) if rows.n_rows >= _FEW_IN_MEMORY else None
    if groups is None:
        return rows
    return replace(_first_of(rows, groups), weights=groups.sums(rows.weights))


def lone(rows: HingeRows) -> HingeRows:
    """Return each of several equal rows once, with its own weight only.

    Such rows tell how many different ones there are. Where equal rows are few, ``rows`` itself is
    returned.
    """
    groups = groups_of(rows) if rows.n_rows >= FEW else None
    return rows if groups is None else _first_of(rows, groups)


def _first_of(rows: HingeRows, groups: Groups) -> HingeRows:
    return replace(
        rows,
        features=rows.features[groups.first],
        labels=rows.labels[groups.first],
        weights=rows.weights[groups.first],
    )


def bits_of(features: FloatArray) -> npt.NDArray[np.uint64]:
    """Return the bits of numbers, the same for both zeros."""
    return (features + 0.0).view(np.uint64)


def groups_of(rows: HingeRows, apart: npt.NDArray[np.bool_] | None = None) -> Groups | None:
    """Return the groups of equal signed rows that agree in ``apart``; None if they save little."""
    n, step = rows.n_rows, max(1, _PASS_ELEMENTS // max(1, rows.n_columns))
    factors = np.random.default_rng(0).integers(2**64, size=rows.n_columns, dtype=np.uint64)
    factors |= np.uint64(1)
    every = np.arange(n)
    pieces = [every[at : at + step] for at in range(0, n, step)]
    hashes = np.concatenate([scrambled(bits_of(rows.take(piece))) @ factors for piece in pieces])
    if apart is not None:
        hashes += apart
    _, first, owner = np.unique(hashes, return_index=True, return_inverse=True)
    if first.size > _WORTHWHILE * n:
        return None
    # Equal hashes do not prove equal rows: a row that differs from the first stays on its own.
    leader = first[owner]
    for piece in pieces:
        copies = piece[leader[piece] != piece]
        differs = np.any(rows.take(copies) != rows.take(leader[copies]), axis=1)
        if apart is not None:
            differs |= apart[copies] != apart[leader[copies]]
        leader[copies[differs]] = copies[differs]
    first, owner = np.unique(leader, return_inverse=True)
    return Groups(first, owner)
