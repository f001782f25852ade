"""What a solver asks about rows that lie in parts, and what the parts answer.

An answer is a pure function of the query and the rows, so a part may be asked again, elsewhere.
The answers of the blocks of a part merge in block order to the answer of the part.

Many rows may be equal, for instance where all series of a class are the same: one row with the sum
of their weights stands for them (:class:`Rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.errors import DataError
from slts.learning.equal_rows import FEW, Groups, bits_of, groups_of
from slts.learning.hinge import HingeRows
from slts.series.source import scrambled


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that leave their part: signed features and weights, and the positions they stand for.

    A row may stand for several equal ones of the part: ``index`` are the positions of all of them,
    and ``owner`` the row that stands for each.
    """

    features: FloatArray
    weights: FloatArray
    index: IntArray
    owner: npt.NDArray[np.intp]

    @property
    def n_rows(self) -> int:
        """Number of rows, each of which may stand for several."""
        return int(self.weights.size)

    @classmethod
    def picked(cls, rows: HingeRows, index: npt.NDArray[np.intp], first: int) -> Rows:
        """Return rows of a block, the first of which has position ``first`` in the part."""
        at = index.astype(np.int64) + first
        return cls(rows.take(index), rows.weights[index], at, np.arange(index.size))

    @classmethod
    def concatenated(cls, several: Sequence[Rows]) -> Rows:
        """Return all rows, in order."""
        before = np.cumsum([0, *(rows.n_rows for rows in several)])
        return cls(
            np.concatenate([rows.features for rows in several]),
            np.concatenate([rows.weights for rows in several]),
            np.concatenate([rows.index for rows in several]),
            np.concatenate([rows.owner + n for rows, n in zip(several, before, strict=False)]),
        )

    def take(self, index: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Rows:
        """Return some of the rows, in their order, with all positions they stand for."""
        kept = np.zeros(self.n_rows, dtype=bool)
        kept[index] = True
        rank, some = np.cumsum(kept) - 1, kept[self.owner]
        return Rows(
            self.features[kept], self.weights[kept], self.index[some], rank[self.owner[some]]
        )

    def groups(self, apart: npt.NDArray[np.bool_] | None = None) -> Groups | None:
        """Return the groups of equal rows that agree in ``apart``; None if they save little."""
        if self.n_rows < FEW:
            return None
        return groups_of(HingeRows(self.features, np.ones(self.n_rows), self.weights), apart)

    def merged(self, groups: Groups | None) -> Rows:
        """Return one row for each group."""
        if groups is None:
            return self
        return Rows(
            self.features[groups.first],
            groups.sums(self.weights),
            self.index,
            groups.owner[self.owner],
        )


@dataclass(frozen=True, eq=False)
class SplitReply:
    """Rows near the margin, and sums over the rows below it.

    ``n_rows`` counts the rows of positive weight; ``loss`` is that of all rows at the reference;
    ``n_below``, ``weight`` and ``vector`` are
    the number, weight and weighted signed sum of the rows outside with a margin below one.
    Equal rows inside are merged if the query says so.
    """

    inside: Rows
    n_rows: int
    n_below: int
    weight: float
    vector: FloatArray
    loss: float
    merge: bool

    @classmethod
    def merged(cls, replies: Sequence[SplitReply]) -> SplitReply:
        """Return the answer of consecutive blocks together."""
        inside, merge = Rows.concatenated([reply.inside for reply in replies]), replies[0].merge
        return cls(
            inside.merged(inside.groups()) if merge else inside,
            sum(reply.n_rows for reply in replies),
            sum(reply.n_below for reply in replies),
            float(sum(reply.weight for reply in replies)),
            np.sum([reply.vector for reply in replies], axis=0),
            float(sum(reply.loss for reply in replies)),
            merge,
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Take the rows whose margin at ``reference`` is within ``width`` of one; sum the others.

    With a finite ``rate`` only a random choice of them is taken: each with a chance of ``rate``
    times its weight, and a weight that makes up for it. The lot is drawn from ``seed`` and the row
    itself, so it does not depend on how the rows are cut, except where rows are repeated. Equal
    rows are merged before, so that they do not crowd out the others, unless ``merge`` is False: the
    rows drawn are then like all rows, and so are halves of them.
    """

    reference: FloatArray
    width: float
    rate: float = np.inf
    seed: int = 0
    merge: bool = True

    def common(self) -> Split:
        """Return what all parts need to know."""
        return self

    def own(self, part: int) -> None:
        """Return what only ``part`` needs to know: nothing."""

    def with_own(self, own: Own | None) -> Split:
        """Return the query of a part, from what is common and what is its own."""
        return self

    def answer(self, rows: HingeRows, first: int) -> SplitReply:
        """Answer for a block of rows, the first of which has position ``first`` in the part."""
        (margins,) = _margins(rows, first, self.reference)
        weights, used = rows.weights, rows.weights > 0.0
        short = 1.0 - margins
        near = (np.abs(short) <= self.width) & used
        below = (short > 0.0) & used & ~near
        inside = Rows.picked(rows, np.flatnonzero(near), first)
        if self.merge:
            inside = inside.merged(inside.groups())
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
            self.merge,
        )


@dataclass(frozen=True, eq=False)
class CheckReply:
    """Loss of all rows at the coefficients, and the rows whose side has changed.

    ``below`` and ``score`` belong to the rows in ``wrong``: whether the margin was below one at the
    reference, and by how much (times the weight) it is wrong now. ``n_wrong`` counts all of them,
    equal ones that were found together once.
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
        return cls(
            float(sum(reply.loss for reply in replies)),
            Rows.concatenated([reply.wrong for reply in replies]),
            np.concatenate([reply.below for reply in replies]),
            np.concatenate([reply.score for reply in replies]),
            sum(reply.n_wrong for reply in replies),
            replies[0].limit,
        ).shortened()

    def shortened(self) -> CheckReply:
        """Merge equal rows of the same side before, and keep the most wrong ones."""
        wrong, below, score, n_wrong = self.wrong, self.below, self.score, self.n_wrong
        groups = wrong.groups(below)
        if groups is not None:
            n_wrong -= wrong.n_rows - groups.first.size
            wrong, below, score = wrong.merged(groups), below[groups.first], groups.sums(score)
        if score.size > self.limit:
            worst = np.argsort(-score, kind="stable")[: self.limit]
            worst.sort()
            wrong, below, score = wrong.take(worst), below[worst], score[worst]
        return CheckReply(self.loss, wrong, below, score, n_wrong, self.limit)


class Own(NamedTuple):
    """What a :class:`Check` tells one part only."""

    known: IntArray
    limit: int


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

    def with_own(self, own: Own | None) -> Check:
        """Return the query of a part, from what is common and what is its own."""
        return self if own is None else replace(self, known=own.known, limit=own.limit)

    def answer(self, rows: HingeRows, first: int) -> CheckReply:
        """Answer for a block of rows, the first of which has position ``first`` in the part."""
        margins, before = _margins(rows, first, self.coef, self.reference)
        below, short = before < 1.0, 1.0 - margins
        wrong = (np.where(below, -short, short) > self.slack) & (rows.weights > 0.0)
        begin, end = np.searchsorted(self.known, [first, first + rows.n_rows])
        wrong[self.known[begin:end] - first] = False
        index = np.flatnonzero(wrong)
        return CheckReply(
            rows.loss(margins),
            Rows.picked(rows, index, first),
            below[index],
            rows.weights[index] * np.abs(short[index]),
            index.size,
            self.limit,
        ).shortened()


@dataclass(frozen=True, eq=False)
class CheckParts:
    """A :class:`Check` of every part.

    They differ in the rows that are known already, and in how many of the ``limit`` rows a part may
    return: half of these are shared evenly, half by ``shares``, so that all parts together return
    at most ``limit`` and one for each part.
    """

    coef: FloatArray
    reference: FloatArray
    known: tuple[IntArray, ...]
    slack: float
    limit: int
    shares: FloatArray

    def common(self) -> Check:
        """Return what all parts need to know."""
        return Check(self.coef, self.reference, np.empty(0, dtype=np.int64), self.slack, 0)

    def own(self, part: int) -> Own:
        """Return what only ``part`` needs to know."""
        total = float(self.shares.sum())
        even = 1.0 / len(self.known)
        share = float(self.shares[part]) / total if total > 0.0 else even
        return Own(self.known[part], int(np.ceil(0.5 * self.limit * (even + share))))


PartQuery: TypeAlias = Split | Check
PartsQuery: TypeAlias = Split | CheckParts
Reply: TypeAlias = SplitReply | CheckReply


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
    bits = bits_of(rows.features)
    factors = np.random.default_rng(seed).integers(2**64, size=bits.shape[1], dtype=np.uint64)
    lots = scrambled((bits ^ (bits >> np.uint64(29))) @ (factors | np.uint64(1)))
    repeated = np.ones(lots.size, dtype=bool)
    repeated[np.unique(lots, return_index=True)[1]] = False
    first = rows.index[np.unique(rows.owner, return_index=True)[1]]
    lots[repeated] = scrambled(lots[repeated] + scrambled(first[repeated].astype(np.uint64)))
    return (lots >> np.uint64(11)).astype(np.float64) * 2.0**-53
