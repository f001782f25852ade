"""What constraint generation asks about the rows of a hinge loss, and the replies.

Rows may be stored in parts: in memory, on disk or on other machines. A reply depends only on the
query and on the rows of the part, so a part may be asked again elsewhere. The replies of the blocks
of a part merge, in block order, to the reply of the part.

Every row has a key, and rows of equal key are sent as one row that has the sum of their weights. In
parts the key is a hash of the row: there may be many equal rows, for instance where all series of a
class are the same. In memory the key is the position, which takes no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray
from slts.errors import DataError
from slts.hashing import splitmix64, splitmix64_finalised
from slts.learning.hinge import HingeExamples

Keys: TypeAlias = npt.NDArray[np.uint64]

# Margins this close to one count as one: the side of a row must not depend on rounding.
NARROWEST = 1e-7
# A smaller share of the sum of the rows below, after rows have left it, is rounding.
_LEFTOVER = 1e-12


def row_keys(features: FloatArray) -> Keys:
    """Return a hash of every row; equal rows have equal hashes.

    Different rows have equal hashes with a probability of 1e-9 among 100,000 rows.
    """
    factors = np.random.default_rng(0).integers(2**64, size=features.shape[1], dtype=np.uint64)
    # Adding zero gives both zeros the same bits.
    bits = splitmix64_finalised((features + 0.0).view(np.uint64))
    return splitmix64_finalised(bits @ (factors | np.uint64(1)))


@dataclass(frozen=True, eq=False)
class PickedRows:
    """Rows that are sent to the solver: signed features, weights, keys, one minus the margin."""

    features: FloatArray
    weights: FloatArray
    keys: Keys
    short: FloatArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.weights.size)

    @classmethod
    def picked(
        cls,
        rows: HingeExamples,
        chosen: npt.NDArray[np.bool_],
        short: FloatArray,
        first: int,
        *,
        by_position: bool,
    ) -> PickedRows:
        """Pick rows of a block whose first row has position ``first`` in the part."""
        index = np.flatnonzero(chosen)
        features, weights = rows.take(index), rows.weights[index]
        if by_position:
            return cls(features, weights, (index + first).astype(np.uint64), short[index])
        return cls(features, weights, row_keys(features), short[index]).merged()

    @classmethod
    def concatenated(cls, several: Sequence[PickedRows]) -> PickedRows:
        """Return the rows of all, merged."""
        if len(several) == 1:
            return several[0]
        columns = ((rows.features, rows.weights, rows.keys, rows.short) for rows in several)
        return cls(*map(np.concatenate, zip(*columns, strict=True))).merged()

    def merged(self) -> PickedRows:
        """Return one row for each key."""
        if np.unique(self.keys).size == self.n_rows:
            return self
        keys, first, owner = np.unique(self.keys, return_index=True, return_inverse=True)
        weights: FloatArray = np.bincount(owner, weights=self.weights).astype(np.float64)
        return PickedRows(self.features[first], weights, keys, self.short[first])

    def take(self, index: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> PickedRows:
        """Return some of the rows."""
        return PickedRows(
            self.features[index], self.weights[index], self.keys[index], self.short[index]
        )


@dataclass(frozen=True, eq=False)
class NearReply:
    """Rows near the margin, and sums over the other rows below it.

    ``n_rows`` counts the rows of positive weight, ``n_left`` those of them that are not near.
    ``loss`` is the loss of all rows at the reference. ``weight`` and ``vector`` are weight and
    weighted signed sum of the rows outside ``near`` whose margin is below one.
    """

    near: PickedRows
    n_rows: int
    n_left: int
    weight: float
    vector: FloatArray
    loss: float

    @classmethod
    def merged(cls, replies: Sequence[NearReply]) -> NearReply:
        """Return the reply of consecutive blocks together."""
        return cls(
            PickedRows.concatenated([reply.near for reply in replies]),
            sum(reply.n_rows for reply in replies),
            sum(reply.n_left for reply in replies),
            float(sum(reply.weight for reply in replies)),
            np.sum([reply.vector for reply in replies], axis=0),
            float(sum(reply.loss for reply in replies)),
        )


@dataclass(frozen=True, eq=False)
class NearQuery:
    """Pick the rows whose margin at ``reference`` is within ``width`` of one; sum the others.

    A finite ``rate`` picks a random choice of these rows only: each with probability
    ``min(1, rate * weight)``, its weight divided by that probability. The choice depends on
    ``seed`` and on the keys.
    """

    reference: FloatArray
    width: float
    by_position: bool = False
    rate: float = np.inf
    seed: int = 0

    def answer(self, rows: HingeExamples, part: int = 0, first: int = 0) -> NearReply:
        """Answer for a block of a part; the first row of the block has position ``first``."""
        (margins,) = _margins(rows, first, self.reference)
        short, used = 1.0 - margins, rows.weights > 0.0
        is_near, n_used = (np.abs(short) <= self.width) & used, int(np.count_nonzero(used))
        below = np.where((short > 0.0) & ~is_near, rows.weights, 0.0)
        near = PickedRows.picked(rows, is_near, short, first, by_position=self.by_position)
        if np.isfinite(self.rate):
            chance = np.minimum(1.0, self.rate * near.weights)
            drawn = _random_numbers(near.keys, self.seed) < chance
            scaled = PickedRows(near.features, near.weights / chance, near.keys, near.short)
            near = scaled.take(drawn)
        return NearReply(
            near,
            n_used,
            n_used - int(np.count_nonzero(is_near)),
            float(below.sum()),
            rows.combine(below),
            rows.loss(margins),
        )


@dataclass(frozen=True, eq=False)
class CheckReply:
    """Loss of all rows at the coefficients, and rows that moved to the other side of the margin.

    ``wrong`` has at most ``limit`` of these rows, those farthest from the margin. ``n_wrong``
    counts all of them; equal rows that were found together count once.
    """

    loss: float
    wrong: PickedRows
    n_wrong: int
    limit: int

    @classmethod
    def merged(cls, replies: Sequence[CheckReply]) -> CheckReply:
        """Return the reply of consecutive blocks together.

        Equal rows are equally far from the margin, so the limit leaves out all of them or none.
        """
        wrong = PickedRows.concatenated([reply.wrong for reply in replies])
        n_equal = sum(reply.wrong.n_rows for reply in replies) - wrong.n_rows
        n_wrong, limit = sum(reply.n_wrong for reply in replies) - n_equal, replies[0].limit
        if wrong.n_rows > limit:
            wrong = wrong.take(np.argsort(-np.abs(wrong.short), kind="stable")[:limit])
        return cls(float(sum(reply.loss for reply in replies)), wrong, n_wrong, limit)


@dataclass(frozen=True, eq=False)
class CheckQuery:
    """Evaluate ``coef``, and find unknown rows on another side of the margin than at ``reference``.

    Known are the rows within ``width`` of the margin at the reference, and those whose keys the
    part has in ``known``. A part returns at most as many rows as it has in ``limits``. Margins
    within ``slack`` of one are on both sides.
    """

    coef: FloatArray
    reference: FloatArray
    width: float
    slack: float
    known: tuple[Keys, ...]
    limits: tuple[int, ...]
    by_position: bool = False

    def answer(self, rows: HingeExamples, part: int = 0, first: int = 0) -> CheckReply:
        """Answer for a block of a part; the first row of the block has position ``first``."""
        margins, before = _margins(rows, first, self.coef, self.reference)
        short, far = 1.0 - margins, np.abs(1.0 - before) > self.width
        wrong = (np.where(before < 1.0, -short, short) > self.slack) & far & (rows.weights > 0.0)
        found = PickedRows.picked(rows, wrong, short, first, by_position=self.by_position)
        found = found.take(~np.isin(found.keys, self.known[part]))
        reply = CheckReply(rows.loss(margins), found, found.n_rows, self.limits[part])
        return CheckReply.merged([reply])


Query: TypeAlias = NearQuery | CheckQuery
Reply: TypeAlias = NearReply | CheckReply


class ReducedRows:
    """Rows sent by the parts, and one row for all others below one."""

    def __init__(self, replies: Sequence[NearReply]) -> None:
        merged = NearReply.merged(replies)
        self._sent, self._weight, self._vector = merged.near, merged.weight, merged.vector
        self._least = _LEFTOVER * merged.weight
        self.n_rows, self.loss, self.whole = merged.n_rows, merged.loss, merged.n_left == 0
        self.known: tuple[Keys, ...] = (np.empty(0, dtype=np.uint64),) * len(replies)
        self._shares = np.array([reply.near.n_rows for reply in replies], dtype=np.float64)

    @property
    def n_sent(self) -> int:
        """Number of rows sent by the parts."""
        return self._sent.n_rows

    @property
    def _has_mean(self) -> bool:
        return self._weight > self._least

    def rows(self) -> HingeExamples:
        """Return the rows of the reduced problem; the mean row, if there is one, is the last."""
        features, weights = self._sent.features, self._sent.weights
        if self._has_mean:
            features = np.vstack([features, self._vector / self._weight])
            weights = np.append(weights, self._weight)
        return HingeExamples(features, np.ones(weights.size), weights)

    def mean_is_tight(self, coef: FloatArray) -> bool:
        """Whether the row that stands for the rows below has margin one."""
        tight = abs(float(self._vector @ coef) - self._weight) <= NARROWEST * self._weight
        return self._has_mean and tight

    def limits(self, limit: int) -> tuple[int, ...]:
        """Return how many rows each part may return; together about ``limit``.

        Half of the limit is divided evenly, half by the rows that were sent or wrong before.
        """
        total, even = float(self._shares.sum()), 1.0 / self._shares.size
        parts = self._shares / total if total > 0.0 else np.full_like(self._shares, even)
        return tuple(np.ceil(0.5 * limit * (even + parts)).astype(int).tolist())

    def join(self, replies: Sequence[CheckReply], limit: int) -> None:
        """Add the wrong rows that are farthest from the margin, about ``limit``."""
        far = np.concatenate([np.abs(reply.wrong.short) for reply in replies])
        least = np.partition(far, -limit)[-limit] if far.size > limit else 0.0
        chosen = [reply.wrong.take(np.abs(reply.wrong.short) >= least) for reply in replies]
        self.known = tuple(
            np.concatenate([known, rows.keys])
            for known, rows in zip(self.known, chosen, strict=True)
        )
        joined = PickedRows.concatenated(chosen)
        self._sent = PickedRows.concatenated([self._sent, joined])
        # A wrong row is above the margin now if it was below at the reference.
        left = joined.take(joined.short < 0.0)
        self._weight -= float(left.weights.sum())
        self._vector = self._vector - np.dot(left.weights, left.features)
        self._shares = np.array([reply.n_wrong for reply in replies], dtype=np.float64)


def _margins(rows: HingeExamples, first: int, *coefs: FloatArray) -> FloatArray:
    """Return the margins at each of ``coefs``, one row each."""
    margins = rows.margins(np.stack(coefs))
    with np.errstate(over="ignore"):
        total = margins.sum()
    # A sum of finite numbers may overflow.
    if not np.isfinite(total) and not np.isfinite(margins).all():
        broken = np.flatnonzero(~np.isfinite(margins).all(axis=0))
        raise DataError(
            f"The 'features' must be finite. Row {first + int(broken[0])} of a part is not. "
            "Remove it or replace its values."
        )
    return margins


def _random_numbers(keys: Keys, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each key."""
    return (splitmix64(keys + np.uint64(seed << 32)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
