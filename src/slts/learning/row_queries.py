"""What constraint generation asks about the rows of a hinge loss, and the replies.

Rows may be stored in parts: in memory, on disk or on other machines. A reply depends only on the
query and on the rows of the part, so a part may be asked again elsewhere. The replies of the blocks
of a part merge, in block order, to the reply of the part.

Equal rows, for instance where all series of a class are the same, are sent as one row that has the
sum of their weights (:class:`PickedRows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.errors import DataError
from slts.hashing import scrambled
from slts.learning.hinge import FEWEST_TO_GROUP, Groups, HingeExamples, bits_of, group_equal_rows

# Margins this close to one count as one: the side of a row must not depend on rounding.
NARROWEST = 1e-7
# A smaller share of the sum of the rows below, after rows have left it, is rounding.
_LEFTOVER = 1e-12


@dataclass(frozen=True, eq=False)
class PickedRows:
    """Rows that are sent to the solver: signed features, weights and positions in the part.

    One row may stand for several equal rows of the part: ``index`` has the positions of all of
    them, and ``owner`` the row that stands for each position.
    """

    features: FloatArray
    weights: FloatArray
    index: IntArray
    owner: npt.NDArray[np.intp]

    @property
    def n_rows(self) -> int:
        """Number of rows; equal rows that were merged count once."""
        return int(self.weights.size)

    @classmethod
    def picked(cls, rows: HingeExamples, index: npt.NDArray[np.intp], first: int) -> PickedRows:
        """Pick rows of a block whose first row has position ``first`` in the part."""
        at = index.astype(np.int64) + first
        return cls(rows.take(index), rows.weights[index], at, np.arange(index.size))

    @classmethod
    def concatenated(cls, several: Sequence[PickedRows]) -> PickedRows:
        """Return all rows, in order."""
        if len(several) == 1:
            return several[0]
        before = np.cumsum([0, *(rows.n_rows for rows in several)])
        return cls(
            np.concatenate([rows.features for rows in several]),
            np.concatenate([rows.weights for rows in several]),
            np.concatenate([rows.index for rows in several]),
            np.concatenate([rows.owner + n for rows, n in zip(several, before, strict=False)]),
        )

    def take(self, index: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> PickedRows:
        """Return some of the rows, in their order, with all positions they stand for."""
        kept = np.zeros(self.n_rows, dtype=bool)
        kept[index] = True
        rank, some = np.cumsum(kept) - 1, kept[self.owner]
        return PickedRows(
            self.features[kept], self.weights[kept], self.index[some], rank[self.owner[some]]
        )

    def groups(self, keys: npt.NDArray[np.bool_] | None = None) -> Groups | None:
        """Group equal rows that have equal ``keys``; return None if that saves little."""
        if self.n_rows < FEWEST_TO_GROUP:
            return None
        return group_equal_rows(
            HingeExamples(self.features, np.ones(self.n_rows), self.weights), keys
        )

    def merged(self, groups: Groups | None) -> PickedRows:
        """Return one row for each group."""
        if groups is None:
            return self
        return PickedRows(
            self.features[groups.first],
            groups.sums(self.weights),
            self.index,
            groups.owner[self.owner],
        )


@dataclass(frozen=True, eq=False)
class NearReply:
    """Rows near the margin, and sums over the other rows below it.

    ``n_rows`` counts the rows of positive weight. ``loss`` is the loss of all rows at the
    reference. ``n_below``, ``weight`` and ``vector`` are number, weight and weighted signed sum of
    the rows outside ``near`` whose margin is below one.
    """

    near: PickedRows
    n_rows: int
    n_below: int
    weight: float
    vector: FloatArray
    loss: float
    merge: bool

    @classmethod
    def merged(cls, replies: Sequence[NearReply]) -> NearReply:
        """Return the reply of consecutive blocks together."""
        if len(replies) == 1:
            return replies[0]
        near, merge = PickedRows.concatenated([reply.near for reply in replies]), replies[0].merge
        return cls(
            near.merged(near.groups()) if merge else near,
            sum(reply.n_rows for reply in replies),
            sum(reply.n_below for reply in replies),
            float(sum(reply.weight for reply in replies)),
            np.sum([reply.vector for reply in replies], axis=0),
            float(sum(reply.loss for reply in replies)),
            merge,
        )


@dataclass(frozen=True, eq=False)
class NearQuery:
    """Pick the rows whose margin at ``reference`` is within ``width`` of one; sum the others.

    A finite ``rate`` picks a random choice of these rows only: each with probability
    ``min(1, rate * weight)``, its weight divided by that probability. The choice depends on the
    rows and ``seed``, not on blocks and parts. ``merge`` replaces equal rows by one.
    """

    reference: FloatArray
    width: float
    rate: float = np.inf
    seed: int = 0
    merge: bool = True

    def common(self) -> NearQuery:
        """Return what all parts need to know."""
        return self

    def own(self, part: int) -> None:
        """Return what only ``part`` needs to know: nothing."""

    def with_own(self, own: Own | None) -> NearQuery:
        """Return the query of a part, from the common and its own information."""
        return self

    def answer(self, rows: HingeExamples, first: int) -> NearReply:
        """Answer for a block of rows whose first row has position ``first`` in the part."""
        (margins,) = _margins(rows, first, self.reference)
        weights, used = rows.weights, rows.weights > 0.0
        short = 1.0 - margins
        is_near = (np.abs(short) <= self.width) & used
        below = (short > 0.0) & used & ~is_near
        near = PickedRows.picked(rows, np.flatnonzero(is_near), first)
        if self.merge:
            near = near.merged(near.groups())
        if np.isfinite(self.rate):
            chance = np.minimum(1.0, self.rate * near.weights)
            drawn = _random_numbers(near, self.seed) < chance
            near = replace(near, weights=near.weights / chance).take(drawn)
        return NearReply(
            near,
            int(np.count_nonzero(used)),
            int(np.count_nonzero(below)),
            float(weights[below].sum()),
            rows.combine(np.where(below, weights, 0.0)),
            rows.loss(margins),
            self.merge,
        )


@dataclass(frozen=True, eq=False)
class CheckReply:
    """Loss of all rows at the coefficients, and rows that moved to the other side of the margin.

    ``below`` and ``score`` belong to the rows in ``wrong``: whether the margin was below one at the
    reference, and the weight times the distance of the margin from one now. ``n_wrong`` counts all
    such rows; equal rows that were found together count once.
    """

    loss: float
    wrong: PickedRows
    below: npt.NDArray[np.bool_]
    score: FloatArray
    n_wrong: int
    limit: int

    @classmethod
    def merged(cls, replies: Sequence[CheckReply]) -> CheckReply:
        """Return the reply of consecutive blocks together."""
        if len(replies) == 1:
            return replies[0]
        return cls(
            float(sum(reply.loss for reply in replies)),
            PickedRows.concatenated([reply.wrong for reply in replies]),
            np.concatenate([reply.below for reply in replies]),
            np.concatenate([reply.score for reply in replies]),
            sum(reply.n_wrong for reply in replies),
            replies[0].limit,
        ).shortened()

    def shortened(self) -> CheckReply:
        """Merge equal rows that were on the same side, and keep the rows of largest score."""
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
    """What a :class:`CheckQuery` tells one part only: sorted known positions, and a limit."""

    known: IntArray
    limit: int


@dataclass(frozen=True, eq=False)
class CheckQuery:
    """Evaluate ``coef``, and find unknown rows on another side of the margin than at ``reference``.

    ``owns`` has one entry for each part: rows that are known already are not returned, and at most
    ``limit`` rows, those of largest score. Margins within ``slack`` of one are on both sides.
    """

    coef: FloatArray
    reference: FloatArray
    slack: float
    owns: tuple[Own, ...]

    def common(self) -> CheckQuery:
        """Return what all parts need to know."""
        return replace(self, owns=())

    def own(self, part: int) -> Own:
        """Return what only ``part`` needs to know."""
        return self.owns[part]

    def with_own(self, own: Own | None) -> CheckQuery:
        """Return the query of a part, from the common and its own information."""
        return self if own is None else replace(self, owns=(own,))

    def answer(self, rows: HingeExamples, first: int) -> CheckReply:
        """Answer for a block of rows whose first row has position ``first`` in the part."""
        ((known, limit),) = self.owns
        margins, before = _margins(rows, first, self.coef, self.reference)
        below, short = before < 1.0, 1.0 - margins
        wrong = (np.where(below, -short, short) > self.slack) & (rows.weights > 0.0)
        begin, end = np.searchsorted(known, [first, first + rows.n_rows])
        wrong[known[begin:end] - first] = False
        index = np.flatnonzero(wrong)
        return CheckReply(
            rows.loss(margins),
            PickedRows.picked(rows, index, first),
            below[index],
            rows.weights[index] * np.abs(short[index]),
            index.size,
            limit,
        ).shortened()


Query: TypeAlias = NearQuery | CheckQuery
Reply: TypeAlias = NearReply | CheckReply


class ReducedRows:
    """Rows sent by the parts, and one row for all others below one."""

    def __init__(self, replies: Sequence[NearReply]) -> None:
        merged = NearReply.merged(replies)
        # Positions in the parts; the positions in the merged rows mean nothing.
        self.known = tuple(reply.near.index for reply in replies)
        self._sent = merged.near
        self._n_below, self._weight, self._vector = merged.n_below, merged.weight, merged.vector
        self._least, self._merge = _LEFTOVER * merged.weight, merged.merge
        self.n_rows, self.loss = merged.n_rows, merged.loss
        self._shares = np.array([known.size for known in self.known], dtype=np.float64)

    @property
    def n_sent(self) -> int:
        """Number of rows sent by the parts; equal rows count once."""
        return self._sent.n_rows

    @property
    def whole(self) -> bool:
        """Whether all rows were sent."""
        return sum(known.size for known in self.known) == self.n_rows

    def rows(self) -> HingeExamples:
        """Return the rows of the reduced problem; the mean row, if there is one, is the last."""
        features, weights = self._sent.features, self._sent.weights
        if self._n_below > 0 and self._weight > self._least:
            features = np.vstack([features, self._vector / self._weight])
            weights = np.append(weights, self._weight)
        return HingeExamples(features, np.ones(weights.size), weights)

    def mean_is_tight(self, coef: FloatArray) -> bool:
        """Whether the row that stands for the rows below has margin one."""
        tight = abs(float(self._vector @ coef) - self._weight) <= NARROWEST * self._weight
        return self._n_below > 0 and tight

    def owns(self, limit: int) -> tuple[Own, ...]:
        """Return what a check tells each part; all together return at most about ``limit`` rows.

        Half of the limit is divided evenly, half by the rows that were sent or wrong before.
        """
        total, even = float(self._shares.sum()), 1.0 / len(self.known)
        parts = self._shares / total if total > 0.0 else np.full(len(self.known), even)
        limits = np.ceil(0.5 * limit * (even + parts)).astype(int)
        return tuple(Own(rows, int(most)) for rows, most in zip(self.known, limits, strict=True))

    def join(self, replies: Sequence[CheckReply], limit: int) -> None:
        """Add the wrong rows of largest score, at most ``limit``."""
        score = np.concatenate([reply.score for reply in replies])
        chosen = np.zeros(score.size, dtype=bool)
        chosen[np.argsort(-score, kind="stable")[:limit]] = True
        ends = np.cumsum([reply.score.size for reply in replies])
        pieces = np.split(chosen, ends[:-1])
        wrong = [reply.wrong.take(piece) for reply, piece in zip(replies, pieces, strict=True)]
        self.known = tuple(
            np.sort(np.concatenate([known, rows.index]))
            for known, rows in zip(self.known, wrong, strict=True)
        )
        joined = PickedRows.concatenated(wrong)
        sent = PickedRows.concatenated([self._sent, joined])
        self._sent = sent.merged(sent.groups()) if self._merge else sent
        left = joined.take(np.concatenate([reply.below for reply in replies])[chosen])
        self._n_below -= left.index.size
        self._weight -= float(left.weights.sum())
        self._vector = self._vector - left.weights @ left.features
        self._shares = np.array([reply.n_wrong for reply in replies], dtype=np.float64)


def _margins(rows: HingeExamples, first: int, *coefs: FloatArray) -> FloatArray:
    """Return the margins at each of ``coefs``, one row each."""
    margins = rows.margins(np.stack(coefs))
    broken = np.flatnonzero(~np.isfinite(margins.sum(axis=0)))
    if broken.size:
        raise DataError(
            f"The 'features' must be finite. Row {first + int(broken[0])} of a part is not. "
            "Remove it or replace its values."
        )
    return margins


def _random_numbers(rows: PickedRows, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each row: a hash of its bits, and of the position if repeated.

    A row is repeated if an equal row comes before it.
    """
    bits = bits_of(rows.features)
    factors = np.random.default_rng(seed).integers(2**64, size=bits.shape[1], dtype=np.uint64)
    hashes = scrambled((bits ^ (bits >> np.uint64(29))) @ (factors | np.uint64(1)))
    repeated = np.ones(hashes.size, dtype=bool)
    repeated[np.unique(hashes, return_index=True)[1]] = False
    first = rows.index[np.unique(rows.owner, return_index=True)[1]]
    hashes[repeated] = scrambled(hashes[repeated] + scrambled(first[repeated].astype(np.uint64)))
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53
