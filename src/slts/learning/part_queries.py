"""What a solver asks about rows that lie in parts, and what the parts answer.

An answer is a pure function of the query and the rows, so a part may be asked again, elsewhere.
The answers of the blocks of a part merge in block order to the answer of the part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.errors import DataError
from slts.learning.hinge import HingeRows


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that leave their part: signed features, weights, and positions in the part."""

    features: FloatArray
    weights: FloatArray
    index: IntArray

    @classmethod
    def concatenated(cls, several: Sequence[Rows]) -> Rows:
        """Return all rows, in order."""
        return cls(
            np.concatenate([rows.features for rows in several]),
            np.concatenate([rows.weights for rows in several]),
            np.concatenate([rows.index for rows in several]),
        )

    def take(self, index: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Rows:
        """Return some of the rows."""
        return Rows(self.features[index], self.weights[index], self.index[index])


@dataclass(frozen=True, eq=False)
class SplitReply:
    """Rows near the margin, and sums over the rows below it.

    ``n_rows`` counts the rows of positive weight; ``loss`` is that of all rows at the reference;
    ``n_below``, ``weight`` and ``vector`` are
    the number, weight and weighted signed sum of the rows outside with a margin below one.
    """

    inside: Rows
    n_rows: int
    n_below: int
    weight: float
    vector: FloatArray
    loss: float

    @classmethod
    def merged(cls, replies: Sequence[SplitReply]) -> SplitReply:
        """Return the answer of consecutive blocks together."""
        return cls(
            Rows.concatenated([reply.inside for reply in replies]),
            sum(reply.n_rows for reply in replies),
            sum(reply.n_below for reply in replies),
            float(sum(reply.weight for reply in replies)),
            np.sum([reply.vector for reply in replies], axis=0),
            float(sum(reply.loss for reply in replies)),
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Take the rows whose margin at ``reference`` is within ``width`` of one; sum the others.

    With a finite ``rate`` only a random choice of them is taken: each with a chance of ``rate``
    times its weight, and a weight that makes up for it. The lot is drawn from ``seed`` and the row
    itself, so it does not depend on how the rows are cut, except where rows are repeated.
    """

    reference: FloatArray
    width: float
    rate: float = np.inf
    seed: int = 0

    def for_part(self, part: int) -> Split:
        """Return what ``part`` needs to know."""
        return self

    def answer(self, rows: HingeRows, first: int) -> SplitReply:
        """Answer for a block of rows, the first of which has position ``first`` in the part."""
        (margins,) = _margins(rows, first, self.reference)
        weights, used = rows.weights, rows.weights > 0.0
        short = 1.0 - margins
        near = (np.abs(short) <= self.width) & used
        below = (short > 0.0) & used & ~near
        index = np.flatnonzero(near)
        inside = Rows(rows.take(index), weights[index], index.astype(np.int64) + first)
        if np.isfinite(self.rate):
            chance = np.minimum(1.0, self.rate * inside.weights)
            lucky = _lottery(inside, self.seed) < chance
            inside = replace(inside, weights=inside.weights / chance).take(lucky)
        return SplitReply(
            inside,
            int(np.count_nonzero(used)),
            int(np.count_nonzero(below)),
            float(weights[below].sum()),
            rows.combine(np.where(below, weights, 0.0)),
            float(rows.loss(margins)),
        )


@dataclass(frozen=True, eq=False)
class CheckReply:
    """Loss of all rows at the coefficients, and the rows whose side has changed.

    ``below`` and ``score`` belong to the rows in ``wrong``: whether the margin was below one at the
    reference, and by how much (times the weight) it is wrong now. ``n_wrong`` counts all of them.
    """

    loss: float
    wrong: Rows
    below: npt.NDArray[np.bool_]
    score: FloatArray
    n_wrong: int
    limit: int

    @classmethod
    def merged(cls, replies: Sequence[CheckReply]) -> CheckReply:
        """Return the answer of consecutive blocks together."""
        wrong = Rows.concatenated([reply.wrong for reply in replies])
        below = np.concatenate([reply.below for reply in replies])
        score = np.concatenate([reply.score for reply in replies])
        limit = replies[0].limit
        if score.size > limit:
            worst = np.sort(np.lexsort((wrong.index, -score))[:limit])
            wrong, below, score = wrong.take(worst), below[worst], score[worst]
        loss = float(sum(reply.loss for reply in replies))
        return cls(loss, wrong, below, score, sum(reply.n_wrong for reply in replies), limit)


@dataclass(frozen=True, eq=False)
class Check:
    """Evaluate ``coef`` and find rows not in ``known`` on the other side than at ``reference``.

    ``known`` are sorted positions in the part; margins within ``slack`` of one are on both sides;
    at most ``limit`` rows are returned, the most wrong ones.
    """

    coef: FloatArray
    reference: FloatArray
    known: IntArray
    slack: float
    limit: int

    def answer(self, rows: HingeRows, first: int) -> CheckReply:
        """Answer for a block of rows, the first of which has position ``first`` in the part."""
        margins, before = _margins(rows, first, self.coef, self.reference)
        below, short = before < 1.0, 1.0 - margins
        wrong = (np.where(below, -short, short) > self.slack) & (rows.weights > 0.0)
        begin, end = np.searchsorted(self.known, [first, first + rows.n_rows])
        wrong[self.known[begin:end] - first] = False
        index = np.flatnonzero(wrong)
        n_wrong = index.size
        score = rows.weights[index] * np.abs(short[index])
        if n_wrong > self.limit:
            worst = np.sort(np.lexsort((index, -score))[: self.limit])
            index, score = index[worst], score[worst]
        return CheckReply(
            rows.loss(margins),
            Rows(rows.take(index), rows.weights[index], index.astype(np.int64) + first),
            below[index],
            score,
            n_wrong,
            self.limit,
        )


@dataclass(frozen=True, eq=False)
class CheckParts:
    """A :class:`Check` of every part; they differ in the rows that are known already."""

    coef: FloatArray
    reference: FloatArray
    known: tuple[IntArray, ...]
    slack: float
    limit: int

    def for_part(self, part: int) -> Check:
        """Return what ``part`` needs to know."""
        return Check(self.coef, self.reference, self.known[part], self.slack, self.limit)


Block: TypeAlias = tuple[
    npt.NDArray[np.floating], npt.NDArray[np.number], npt.NDArray[np.floating], int
]
PartQuery: TypeAlias = Split | Check
PartsQuery: TypeAlias = Split | CheckParts
Reply: TypeAlias = SplitReply | CheckReply


def answer(query: PartQuery, blocks: Iterable[Block]) -> Reply:
    """Answer for a part, given as at least one block (which may have no rows).

    Parameters
    ----------
    query : Split or Check
        What ``for_part`` of the solver's query returned.
    blocks : iterable of (features, labels, weights, first)
        Consecutive rows of the part: features of shape (rows, columns), float32 or float64 (the
        arithmetic is float64), labels of +1 or -1, weights that sum to one over all parts, and the
        position in the part of the first row.
    """
    rows = (
        (HingeRows(features, np.asarray(labels, np.float64), np.asarray(weights, np.float64)), at)
        for features, labels, weights, at in blocks
    )
    if isinstance(query, Split):
        return SplitReply.merged([query.answer(block, at) for block, at in rows])
    return CheckReply.merged([query.answer(block, at) for block, at in rows])


def _margins(rows: HingeRows, first: int, *coefs: FloatArray) -> FloatArray:
    """Return the margins at each of ``coefs``, one line each."""
    margins = rows.margins(np.stack(coefs, axis=1)).T
    broken = np.flatnonzero(~np.isfinite(margins.sum(axis=0)))
    if broken.size:
        raise DataError(
            f"The 'features' must be finite. Row {first + int(broken[0])} of a part is not; "
            "remove it or replace its values."
        )
    return margins


def _lottery(rows: Rows, seed: int) -> FloatArray:
    """Draw a number in [0, 1) for each row from its bits; repeated rows also from the position."""
    bits = (rows.features + 0.0).view(np.uint64)
    factors = np.random.default_rng(seed).integers(2**64, size=bits.shape[1], dtype=np.uint64)
    lots = _mix((bits ^ (bits >> np.uint64(29))) @ (factors | np.uint64(1)))
    repeated = np.ones(lots.size, dtype=bool)
    repeated[np.unique(lots, return_index=True)[1]] = False
    lots[repeated] = _mix(lots[repeated] + _mix(rows.index[repeated].astype(np.uint64)))
    return (lots >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scramble (splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))
