"""The search behind ``partitioned``: which rows come to the solver, and when the gap is closed."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, cast

import numpy as np

from slts._typing import FloatArray
from slts.errors import DataError
from slts.learning.equal_rows import lone
from slts.learning.hinge import HingeRows, ray_minimiser
from slts.learning.part_queries import (
    CheckParts,
    CheckReply,
    PartsQuery,
    Reply,
    Rows,
    Split,
    SplitReply,
)
from slts.learning.working_set import error_left, most_drawn

Solution = TypeVar("Solution")
Solver: TypeAlias = Generator[PartsQuery, list[Reply], Solution]

_SAMPLE_TOL = 1e-5
_SAMPLE_ERROR = 1e-3  # of margins, that the tolerance leaves
_LAST_TOL = 1e-3  # in units of the tolerance asked for
_FEWEST_SAMPLED = 200
_MAX_THINNED = 6
_MAX_MOVES = 4
_MAX_ROUNDS = 100
# No margin this close to one is told apart from one: the side of a row must not depend on rounding.
_NARROWEST = 1e-7
# What is left of the sum of the rows below, after rows have left it, is rounding if it is smaller.
_LEFTOVER = 1e-12


@dataclass(frozen=True)
class Found:
    """A minimiser in memory, with its loss and the bound it proves."""

    coef: FloatArray
    loss: float
    dual: float
    n_iter: int
    vertex: bool = True


class Problem(Protocol):
    """What the search must know of a problem ``hinge + value``."""

    @property
    def size(self) -> int:
        """A good number of rows to begin with."""
        ...

    @property
    def floor(self) -> float:
        """Primal values below it count as ``floor`` in the relative gap."""
        ...

    @property
    def slack(self) -> float:
        """Margins this close to one are on both sides."""
        ...

    @property
    def first_tol(self) -> float:
        """Relative gap that is fine enough while rows still join."""
        ...

    @property
    def separates(self) -> bool:
        """Whether a vertex is wanted and, where the loss is zero, the smallest separator."""
        ...

    def value(self, coef: FloatArray) -> float:
        """Return the regularizer at ``coef``."""
        ...

    def solve(self, rows: HingeRows, start: FloatArray | None, tol: float, max_iter: int) -> Found:
        """Minimise over rows in memory."""
        ...

    def approach(
        self, rows: HingeRows, start: FloatArray | None, tol: float, max_iter: int
    ) -> tuple[FloatArray, int]:
        """Return a point near the minimiser, and the iterations it took."""
        ...


class Master:
    """The problem in memory: rows taken from the parts, and one row for all others below one."""

    def __init__(self, replies: Sequence[SplitReply]) -> None:
        merged = SplitReply.merged(replies)
        # Positions in their parts; of the merged rows they mean nothing.
        self.known = tuple(reply.inside.index for reply in replies)
        self._taken = merged.inside
        self._n_below, self._weight, self._vector = merged.n_below, merged.weight, merged.vector
        self._least = _LEFTOVER * merged.weight
        self.n_rows, self.loss = merged.n_rows, merged.loss

    @property
    def n_taken(self) -> int:
        """Number of rows that came from the parts, equal ones counted once."""
        return self._taken.n_rows

    @property
    def whole(self) -> bool:
        """Whether all rows came."""
        return sum(known.size for known in self.known) == self.n_rows

    def rows(self) -> HingeRows:
        """Return the rows of the problem in memory; the mean row, if there is one, is the last."""
        features, weights = self._taken.features, self._taken.weights
        if self._n_below > 0 and self._weight > self._least:
            features = np.vstack([features, self._vector / self._weight])
            weights = np.append(weights, self._weight)
        return HingeRows(features, np.ones(weights.size), weights)

    def mean_is_tight(self, coef: FloatArray) -> bool:
        """Whether the row that stands for all others has margin one."""
        tight = abs(float(self._vector @ coef) - self._weight) <= _NARROWEST * self._weight
        return self._n_below > 0 and tight

    def join(self, replies: Sequence[CheckReply], limit: int) -> None:
        """Take the rows that are most wrong, at most ``limit``."""
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
        joined = Rows.concatenated(wrong)
        taken = Rows.concatenated([self._taken, joined])
        self._taken = taken.merged(taken.groups())
        left = joined.take(np.concatenate([reply.below for reply in replies])[chosen])
        self._n_below -= left.index.size
        self._weight -= float(left.weights.sum())
        self._vector = self._vector - left.weights @ left.features


class Search:
    """The best point and the best bound so far, and the way to better ones."""

    def __init__(
        self,
        problem: Problem,
        n_columns: int,
        n_rows: int,
        tol: float,
        max_iter: int,
        most_bytes: float,
    ) -> None:
        self._problem, self._n_rows, self._tol, self._max_iter = problem, n_rows, tol, max_iter
        self._draw = most_drawn(problem.size, n_columns, most_bytes)
        self._width = np.inf
        self._settled = False
        self.coef = np.zeros(n_columns)
        self.loss = self.primal = np.inf
        self.dual = 0.0
        self.vertex = False
        self.n_iter = self.n_rounds = self.n_taken = 0

    @property
    def _unit(self) -> float:
        return max(self.primal, self._problem.floor)

    @property
    def _gap(self) -> float:
        return self.primal - self.dual

    def run(self, sample: HingeRows) -> Solver[None]:
        """Search until the gap closes or nothing changes any more."""
        reference: FloatArray | None = yield from self._locate(sample)
        for move in range(_MAX_MOVES + 1):
            assert reference is not None
            master = yield from self._split(reference)
            if master.n_rows == 0:
                raise DataError("The parts hold no row of positive weight; add rows or weights.")
            while master.rows().n_rows == 0:
                self._width *= 4.0
                master = yield from self._split(reference)
            reference = yield from self._exhaust(master, reference, move)
            if reference is None:
                return

    def _split(
        self, reference: FloatArray, rate: float = np.inf, seed: int = 0, *, merge: bool = True
    ) -> Solver[Master]:
        replies = yield Split(reference, self._width, rate, seed, merge)
        self.n_rounds += 1
        return Master(cast(list[SplitReply], replies))

    def _approach(self, rows: HingeRows, start: FloatArray | None, tol: float) -> FloatArray:
        coef, n_iter = self._problem.approach(rows, start, tol, self._max_iter)
        self.n_iter += n_iter
        return coef

    def _offer(self, coef: FloatArray, loss: float, vertex: bool) -> None:
        """Keep a point if it is the best so far; of vertices that close the gap, the last."""
        primal = loss + self._problem.value(coef)
        closes = primal - self.dual <= self._tol * max(primal, self._problem.floor)
        if primal < self.primal or (self._problem.separates and closes):
            self.coef, self.loss, self.primal, self.vertex = coef, loss, primal, vertex
            self._settled = False

    def _exhaust(
        self, master: Master, reference: FloatArray, move: int
    ) -> Solver[FloatArray | None]:
        """Let wrong rows join until the gap closes; return a new reference if they are too many."""
        problem, tol = self._problem, self._tol
        least = max(problem.first_tol, 0.1 * tol)
        target, start = least, reference
        shares = np.array([known.size for known in master.known], dtype=np.float64)
        for _ in range(_MAX_ROUNDS):
            limit = 2 * max(problem.size, master.n_taken)
            self.n_taken = max(self.n_taken, master.n_taken)
            target = tol if master.whole else target
            found = problem.solve(master.rows(), start, target, self._max_iter)
            self.n_iter += found.n_iter
            self.dual = max(self.dual, found.dual)
            if master.whole:
                self._offer(found.coef, found.loss, found.vertex)
                self._settled = True
                return None
            replies = yield CheckParts(
                found.coef, reference, master.known, problem.slack, limit, shares
            )
            self.n_rounds += 1
            checks = cast(list[CheckReply], replies)
            loss, n_wrong = sum(check.loss for check in checks), sum(c.n_wrong for c in checks)
            # A vertex, and the smallest separator, must be those of the rows, not of their mean.
            posing = problem.separates and n_wrong > 0 and master.mean_is_tight(found.coef)
            small = problem.separates and n_wrong > 0 and loss <= tol * problem.floor
            self._offer(found.coef, loss, found.vertex and not posing)
            self._settled = self.coef is found.coef and n_wrong == 0
            if self._gap <= tol * self._unit and not (posing or small):
                return None
            if n_wrong > limit and move < _MAX_MOVES:
                # First the sample is to blame, then the width.
                if move == 0:
                    return (yield from self._locate(None))
                worse = master.loss + problem.value(reference) > self.primal
                best = self.coef if worse else reference
                return (yield from self._refine(best, 8.0 * self._width))
            if n_wrong:
                master.join(checks, limit)
                # Where many rows were wrong, many may be left.
                shares = np.array([check.n_wrong for check in checks], dtype=np.float64)
                target = min(max(0.01 * self._gap / self._unit, 0.1 * tol), least)
            elif target > _LAST_TOL * tol:
                target = min(0.1 * target, 0.1 * tol)
            else:
                return None
            start = found.coef
        return None

    def _locate(self, sample: HingeRows | None) -> Solver[FloatArray]:
        """Find a reference, and the width around it that holds the rows that decide."""
        size, n_rows, zero = self._problem.size, self._n_rows, np.zeros_like(self.coef)
        self._width = np.inf
        if n_rows <= 2 * size:
            return zero
        if sample is None or np.count_nonzero(sample.weights) < _FEWEST_SAMPLED:
            drawn = yield from self._split(zero, rate=self._draw, seed=1, merge=False)
            sample = drawn.rows()
            if drawn.n_taken == 0:
                return zero
        self._sample = HingeRows.build(sample.features, sample.labels, sample.weights)
        # Equal rows come as one, so only different ones are counted.
        self._lone = lone(self._sample)
        return (yield from self._refine(*self._guess()))

    def _refine(self, coef: FloatArray, error: float) -> Solver[FloatArray]:
        """Improve a reference until the rows within its error are few enough to come.

        While they are too many, a random choice of them, with the exact sum of all others, gives a
        reference with a fraction of the error.
        """
        sample, last, lowest, crowd = self._lone, coef, np.inf, np.inf
        for seed in range(2, 2 + _MAX_THINNED):
            distance = np.abs(1.0 - sample.margins(coef))
            self._width = max(error, self._width_of(self._problem.size, distance), _NARROWEST)
            share = float(sample.weights[distance <= self._width].sum())
            if share * self._n_rows <= self._draw or share > 0.9 * crowd:
                # Few enough, or rows so much alike that a smaller width holds as many.
                return coef
            thinned = yield from self._split(coef, rate=self._draw / share, seed=seed)
            if thinned.n_taken == 0:
                break
            primal = thinned.loss + self._problem.value(coef)
            if primal > lowest:
                # The step went beyond the rows that could hold it.
                coef, error, crowd = last, 8.0 * error, np.inf
                continue
            last, lowest, crowd = coef, primal, share
            # The objective is flat to second order: margins must be far better than the width.
            tol = min(max(0.01 * self._width**2, 1e-9), _SAMPLE_TOL)
            coef = self._approach(thinned.rows(), coef, tol)
            error = self._width * min(0.5, error_left(coef.size, self._draw))
        distance = np.abs(1.0 - sample.margins(coef))
        self._width = max(self._width_of(self._draw, distance), _NARROWEST)
        return coef

    def _guess(self) -> tuple[FloatArray, float]:
        """Return the sample's solution, and how far its margins may be from those of all rows."""
        sample = self._sample
        found = self._approach(sample, None, _SAMPLE_TOL)
        if sample.n_rows < 2:
            return found, np.inf
        halves = [
            self._approach(sample.subset(np.arange(first, sample.n_rows, 2)), found, _SAMPLE_TOL)
            for first in (0, 1)
        ]
        # Half of the difference of the halves has the error of the whole; twice that is safe.
        apart = np.abs(sample.margins(halves[0] - halves[1]))
        rest = max(0.0, 1.0 - sample.n_rows / self._n_rows)
        return found, max(float(np.quantile(apart, 0.9) * np.sqrt(rest)), _SAMPLE_ERROR)

    def _width_of(self, count: int, distance: FloatArray) -> float:
        """Return the width that holds about ``count`` of all rows, equal ones counted once.

        A solution of the sample has some of its rows exactly at the margin, so small widths are
        extrapolated from more rows.
        """
        expected = count * self._sample.n_rows / self._n_rows
        rank = min(distance.size, max(int(np.ceil(expected)), 2 * self.coef.size + 50))
        return float(np.partition(distance, rank - 1)[rank - 1] * min(1.0, expected / rank))

    def settle_on_ray(self) -> Solver[None]:
        """Scale the point to the minimiser on its ray, so that ``loss + 2 value <= 1``."""
        if self._settled or not self.coef.any():
            return
        width = min(self._width / 8.0, 0.5)
        for _ in range(_MAX_ROUNDS):
            self._width = width = max(width, _NARROWEST)
            rows = (yield from self._split(self.coef)).rows()
            margins = rows.margins(self.coef)
            best = ray_minimiser(margins, rows.weights, square=self._problem.value(self.coef))
            # Between these factors no row left in its part changes its side.
            low, high = 1.0 / (1.0 + width), 1.0 / (1.0 - width) if width < 1.0 else np.inf
            factor = min(max(best, low), high)
            self.coef = factor * self.coef
            self.loss = rows.loss(factor * margins)
            self.primal = self.loss + self._problem.value(self.coef)
            if factor == best:
                return
            width *= 2.0
