"""Minimise hinge + convex term over many rows by solving problems of few rows.

A reduced problem has the rows whose margin at a reference point is near one. Other rows above one
are left out; other rows below one are replaced by a single row, their weighted mean. By convexity
the reduced problem bounds the whole from below, exactly so if no other row changes its side of the
margin. One pass over all rows evaluates its minimiser and returns rows that did change their side.
They join the reduced problem. Values and gap always are those of all rows.

The algorithm is a generator: it yields a query about the rows and is sent the list of the replies
of all parts. Rows in memory are one part that is asked directly (:func:`solve_in_memory`). Several
problems share each pass over rows in parts (:func:`solve_together`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import TypeAlias, TypeVar, cast

import numpy as np

from slts._typing import FloatArray
from slts.errors import DataError
from slts.learning.hinge import (
    Certified,
    HingeExamples,
    HingeProblem,
    Multipliers,
    ray_minimiser,
)
from slts.learning.row_queries import (
    NARROWEST,
    CheckQuery,
    CheckReply,
    NearQuery,
    NearReply,
    Query,
    ReducedRows,
    Reply,
    row_keys,
)

Key = TypeVar("Key")
Solution = TypeVar("Solution")
QueryStream: TypeAlias = Generator[Query, list[Reply], Solution]

# Numbers of a block of rows in memory that is asked at once.
_BLOCK_ELEMENTS = 1 << 20
# Fewest rows in memory for each row of their sample.
_SAMPLE_RATIO = 8
# Rows of a sample, for each column, beyond which it grows no more.
_SAMPLED_PER_COLUMN = 200
# Rows with a weight, below which a given sample is replaced by a drawn one.
_FEWEST_SAMPLED = 200
# Tolerance for a sample whose error is not estimated; the steps usually end far below it.
_ROUGH_TOL = 0.3
# Tolerance for half of a sample, and the largest one for rows near a reference.
_SAMPLE_TOL = 1e-3
# Smallest error of margins that is assumed.
_SAMPLE_ERROR = 1e-3
# Largest share of the error that another sample may leave.
_WORTHWHILE = 0.5
# Smallest tolerance of a reduced problem, relative to the tolerance asked for.
_LAST_TOL = 1e-3
# Excess over a bound that rounding explains.
_ROUNDING = 1e-12
# Most samples that are drawn to find a reference.
_MAX_SAMPLES = 6
# Most new references after the first.
_MAX_MOVES = 4
# Most passes over all rows for one reference.
_MAX_ROUNDS = 100


def solve_in_memory(
    problem: HingeProblem,
    rows: HingeExamples,
    *,
    start: FloatArray | None,
    tol: float,
    max_iter: int,
) -> Certified:
    """Minimise over rows in memory, all at once or, if there are many, by constraint generation.

    Parameters
    ----------
    problem
        The problem.
    rows
        All rows.
    start
        A guess of the solution.
    tol, max_iter
        Relative duality gap, and iterations allowed for each reduced problem.
    """
    size = problem.first_size(rows.n_rows, rows.n_columns)
    if rows.n_rows <= 2 * size:
        return problem.begin(rows, start).finish(tol, max_iter)
    known = problem.closed_form(rows)
    if known is not None:
        return known
    most = _most_sampled(problem, rows.n_rows, rows.n_columns)
    most = max(size, min(rows.n_rows // _SAMPLE_RATIO, most))
    search = ConstraintGeneration(
        problem, rows.n_rows, rows.n_columns, most, tol, max_iter, in_memory=True
    )
    if start is not None:
        loss = rows.loss(rows.margins(start))
        search.offer(search.best._replace(coef=start, loss=loss))
    sample = _sample_by_weight(rows, most)
    return solve_together(
        {0: search.run(sample)}, lambda queries: {0: [_answer_in_blocks(queries[0], rows)]}
    )[0]


def _answer_in_blocks(query: Query, rows: HingeExamples) -> Reply:
    """Answer for rows in memory, block by block: replies may copy most rows of a block."""
    replies, step = [], max(1, _BLOCK_ELEMENTS // rows.n_columns)
    for first in range(0, rows.n_rows, step):
        replies.append(query.answer(rows.part(slice(first, first + step)), first=first))
    return type(replies[0]).merged(replies)  # type: ignore[arg-type]


def solve_in_parts(
    problem: HingeProblem,
    sample: HingeExamples,
    n_rows: int,
    *,
    tol: float,
    max_iter: int,
    most_bytes: float,
) -> QueryStream[Certified]:
    """Minimise over rows in parts.

    Parameters
    ----------
    problem
        The problem.
    sample
        A uniform choice of the rows, some thousands. Only the run time depends on it.
    n_rows
        Number of rows in all parts together.
    tol, max_iter
        Relative duality gap over all rows, and iterations allowed for each reduced problem.
    most_bytes
        Approximate limit for the features of the rows in memory.
    """
    most = _most_sampled(problem, n_rows, sample.n_columns, most_bytes)
    search = ConstraintGeneration(problem, n_rows, sample.n_columns, most, tol, max_iter)
    return search.run(sample)


def rows_in_memory(
    problem: type[HingeProblem], n_rows: int, n_columns: int, most_bytes: float
) -> int:
    """Return about how many of ``n_rows`` rows :func:`solve_in_parts` holds in memory."""
    return min(n_rows, _most_sampled(problem, n_rows, n_columns, most_bytes))


def _most_sampled(
    problem: HingeProblem | type[HingeProblem],
    n_rows: int,
    n_columns: int,
    most_bytes: float = np.inf,
) -> int:
    """Return the largest useful sample: twice the first size, or more within the bytes."""
    within = int(min(_SAMPLED_PER_COLUMN * n_columns, most_bytes / (8 * n_columns)))
    return max(2 * problem.first_size(n_rows, n_columns), within)


def solve_together(
    solvers: Mapping[Key, QueryStream[Solution]],
    ask: Callable[[dict[Key, Query]], Mapping[Key, list[Reply]]],
) -> dict[Key, Solution]:
    """Advance several solvers in lockstep, with one pass over the parts for all their queries.

    Parameters
    ----------
    solvers : mapping
        Generators, for instance from :func:`slts.learning.metric_in_parts`.
    ask : callable
        Takes the open queries by key and returns, for each, the replies of all parts in order.

    Returns
    -------
    dict
        The solution of every solver, in the order of ``solvers``.
    """
    solutions: dict[Key, Solution] = {}
    queries: dict[Key, Query] = {}
    replies: dict[Key, list[Reply] | None] = dict.fromkeys(solvers)
    while len(solutions) < len(solvers):
        for key in list(replies):
            try:
                # The first message to a generator is None. Replies are large, so none is kept.
                queries[key] = solvers[key].send(cast(list[Reply], replies.pop(key)))
            except StopIteration as stop:
                queries.pop(key, None)
                solutions[key] = stop.value
        if queries:
            replies = dict(ask(dict(queries)))
    return {key: solutions[key] for key in solvers}


class ConstraintGeneration:
    """The best point and the best bound so far, and the search for better ones.

    Parameters
    ----------
    problem
        The problem.
    n_rows, n_columns
        Shape of all parts together.
    most
        Largest number of rows of a sample, and of the first reduced problem.
    tol, max_iter
        Relative duality gap, and iterations allowed for each reduced problem.
    in_memory
        Whether the rows are one part in memory, and the sample was drawn by weight. Passes are then
        cheap: the search starts from a rough solution of the sample, and lets rows join rather than
        sampling them again.
    """

    def __init__(
        self,
        problem: HingeProblem,
        n_rows: int,
        n_columns: int,
        most: int,
        tol: float,
        max_iter: int,
        *,
        in_memory: bool = False,
    ) -> None:
        self._problem, self._n_rows, self._most = problem, n_rows, most
        self._size = problem.first_size(n_rows, n_columns)
        self._tol, self._max_iter, self._in_memory = tol, max_iter, in_memory
        self._drawn = in_memory
        # Share of the error of margins that a solution on a sample of the rows within it leaves:
        # noise of the gradient over density of the rows.
        self._shrink = 4.0 * float(np.sqrt(n_columns / most))
        self._resample = self._shrink <= _WORTHWHILE or not in_memory
        self._width = np.inf
        zero = np.zeros(n_columns)
        self.best = Certified(zero, np.inf, Multipliers(0.0, zero), 0, vertex=False)

    @property
    def _relative_gap(self) -> float:
        primal = self._problem.primal(self.best)
        gap = primal - self._problem.bound(self.best.multipliers)
        return gap / max(primal, self._problem.floor)

    def offer(self, found: Certified) -> None:
        """Keep a point if it is the best so far; of vertices that close the gap, the last."""
        problem, point = self._problem, found._replace(multipliers=self.best.multipliers)
        closes = problem.wants_vertex and problem.closes(point, self._tol)
        if closes or problem.primal(point) < problem.primal(self.best):
            self.best = point._replace(n_iter=self.best.n_iter)

    def _note(self, found: Certified) -> None:
        """Count the iterations, and keep the bound if it is the best so far."""
        bounds = self.best.multipliers, found.multipliers
        self.best = self.best._replace(
            multipliers=max(bounds, key=self._problem.bound),
            n_iter=self.best.n_iter + found.n_iter,
        )

    def run(self, sample: HingeExamples) -> QueryStream[Certified]:
        """Search until the gap closes or nothing changes any more.

        ``sample`` is a random choice of the rows.
        """
        reference: FloatArray | None = yield from self._locate(sample)
        for move in range(_MAX_MOVES + 1):
            assert reference is not None
            reduced = yield from self._reduce(reference)
            if move == 0 and self._is_worse(reference, reduced):
                # The point offered at the start is better.
                reference = self.best.coef
                self._width = self._width_of(self._most, self._distance(reference))
                reduced = yield from self._reduce(reference)
            if reduced.n_rows == 0:
                raise DataError("No row has a positive weight. Add rows or weights.")
            while reduced.rows().n_rows == 0:
                self._width *= 4.0
                reduced = yield from self._reduce(reference)
            reference = yield from self._exhaust(reduced, reference, move)
            if reference is None:
                break
        if not self._problem.wants_vertex:
            yield from self._settle_on_ray()
        return self.best

    def _reduce(
        self, reference: FloatArray, rate: float = np.inf, seed: int = 0
    ) -> QueryStream[ReducedRows]:
        query = NearQuery(reference, self._width, self._in_memory, rate, seed)
        return ReducedRows(cast(list[NearReply], (yield query)))

    def _is_worse(self, reference: FloatArray, reduced: ReducedRows) -> bool:
        """Whether a reference, whose loss is that of ``reduced``, is worse than the best point."""
        problem = self._problem
        return reduced.loss + problem.value(reference) > problem.primal(self.best)

    def _approach(self, rows: HingeExamples, start: FloatArray, tol: float) -> FloatArray:
        """Return a rough solution of some rows; their bound is not one of all rows."""
        found = self._problem.begin(rows, start).approach(tol, self._max_iter)
        self.best = self.best._replace(n_iter=self.best.n_iter + found.n_iter)
        return found.coef

    def _exhaust(
        self, reduced: ReducedRows, reference: FloatArray, move: int
    ) -> QueryStream[FloatArray | None]:
        """Add wrong rows until the gap closes; return a new reference if they are too many."""
        problem, tol = self._problem, self._tol
        target, solver = tol, problem.begin(reduced.rows(), reference)
        for _ in range(_MAX_ROUNDS):
            found = solver.finish(target, self._max_iter)
            self._note(found)
            if reduced.whole:
                self.offer(found)
                return None
            limit = max(self._size, reduced.n_sent)
            query = CheckQuery(
                found.coef, reference, self._width, problem.slack, reduced.known,
                reduced.limits(limit), self._in_memory,
            )  # fmt: skip
            checks = cast(list[CheckReply], (yield query))
            loss, n_wrong = sum(check.loss for check in checks), sum(c.n_wrong for c in checks)
            # A vertex, and the smallest separator, must be those of the rows, not of their mean.
            of_mean = n_wrong > 0 and reduced.mean_is_tight(found.coef)
            separates = n_wrong > 0 and loss <= tol * problem.floor
            self.offer(found._replace(loss=loss, vertex=found.vertex and not of_mean))
            provisional = problem.wants_vertex and (of_mean or separates)
            if self._relative_gap <= tol and not provisional:
                return None
            if n_wrong > limit and move < _MAX_MOVES and self._resample:
                return (yield from self._move(reduced, reference))
            if n_wrong:
                reduced.join(checks, limit)
                solver = problem.begin(reduced.rows(), found.coef)
                target = 0.3 * tol
            elif target > _LAST_TOL * tol:
                target = min(0.1 * target, 0.3 * tol)
            else:
                return None
        return None

    def _move(self, reduced: ReducedRows, reference: FloatArray) -> QueryStream[FloatArray]:
        """Return a new reference: first a given sample may be bad, then the width too small."""
        if not self._drawn:
            return (yield from self._locate(None))
        best = self.best.coef if self._is_worse(reference, reduced) else reference
        return (yield from self._refine(best, 8.0 * self._width))

    def _locate(self, sample: HingeExamples | None) -> QueryStream[FloatArray]:
        """Find a reference, and the width around it that has the rows that decide.

        Without a sample, or with a small one, a sample is drawn.
        """
        zero = np.zeros_like(self.best.coef)
        self._width = np.inf
        if self._n_rows <= 2 * self._size:
            return zero
        if sample is None or np.count_nonzero(sample.weights) < _FEWEST_SAMPLED:
            self._drawn = True
            drawn = yield from self._reduce(zero, rate=self._most, seed=1)
            sample = drawn.rows()
            if drawn.n_sent == 0:
                return zero
        self._sample = HingeExamples.build(sample.features, sample.labels, sample.weights)
        self._counted = self._sample
        if not self._in_memory:
            # Equal rows are sent as one, so only distinct rows count.
            first = np.unique(row_keys(self._sample.take(slice(None))), return_index=True)[1]
            self._counted = self._sample.part(first)
        coef, error = self._guess()
        return (yield from self._refine(coef, error))

    def _refine(self, coef: FloatArray, error: float) -> QueryStream[FloatArray]:
        """Improve a reference until the rows within its error are few.

        While they are too many, a sample of them, with the exact sum of all others, gives a
        reference with a fraction of the error.
        """
        last, wide, lowest, crowd = coef, error, np.inf, np.inf
        problem, weights = self._problem, self._counted.weights
        if self._drawn:
            # Drawn by weight: a row that is heavier than others counts as one of them.
            weights = np.minimum(weights, 1.0 / self._sample.n_rows)
        for seed in range(2, 2 + _MAX_SAMPLES):
            distance = self._distance(coef)
            self._width = max(error, self._width_of(self._size, distance), NARROWEST)
            share = float(weights[distance <= self._width].sum())
            if share * self._n_rows <= self._most or share > 0.9 * crowd:
                # Few enough, or rows so similar that a smaller width has as many.
                return coef
            if not self._resample:
                break
            thinned = yield from self._reduce(coef, rate=self._most / share, seed=seed)
            if thinned.n_sent == 0:
                break
            primal = thinned.loss + problem.value(coef)
            if primal > lowest:
                # The last step was too long: the rows that should limit it were not sampled.
                coef, error, crowd = last, wide, np.inf
                continue
            last, lowest, crowd, wide = coef, primal, share, self._width
            # The objective is flat to second order: margins must be far better than the width.
            tol = min(max(0.01 * self._width**2, 1e-9), _SAMPLE_TOL)
            coef = self._approach(thinned.rows(), coef, tol)
            error = self._width * min(0.5, self._shrink)
        self._width = max(self._width_of(self._most, self._distance(coef)), NARROWEST)
        return coef

    def _distance(self, coef: FloatArray) -> FloatArray:
        """Return how far the margins of distinct sampled rows are from one."""
        return np.abs(1.0 - self._counted.margins(coef))

    def _guess(self) -> tuple[FloatArray, float]:
        """Return a solution of the sample, and the likely error of its margins."""
        sample, start = self._sample, self.best.coef
        if self._in_memory or sample.n_rows < 2:
            return self._approach(sample, start, _ROUGH_TOL), self._shrink
        one, two = (
            self._approach(sample.subset(np.arange(first, sample.n_rows, 2)), start, _SAMPLE_TOL)
            for first in (0, 1)
        )
        # The error of their mean is about half of the difference of the halves; use twice that.
        apart = np.abs(sample.margins(one - two))
        rest = max(0.0, 1.0 - sample.n_rows / self._n_rows)
        error = max(float(np.quantile(apart, 0.9) * np.sqrt(rest)), _SAMPLE_ERROR)
        return 0.5 * (one + two), error

    def _width_of(self, count: int, distance: FloatArray) -> float:
        """Return the width that has about ``count`` of all distinct rows.

        A solution of the sample has some of its rows exactly at the margin, so small widths are
        extrapolated from more rows.
        """
        expected = count * self._sample.n_rows / self._n_rows
        rank = min(distance.size, max(int(np.ceil(expected)), 2 * self._sample.n_columns + 50))
        return float(np.partition(distance, rank - 1)[rank - 1] * min(1.0, expected / rank))

    def _settle_on_ray(self) -> QueryStream[None]:
        """Scale a point with ``loss + 2 value > 1`` to the minimiser on its ray."""
        problem = self._problem
        if self.best.loss + 2.0 * problem.value(self.best.coef) <= 1.0 + _ROUNDING:
            return
        width = min(self._width / 8.0, 0.5)
        for _ in range(_MAX_ROUNDS):
            self._width = width = max(width, NARROWEST)
            coef = self.best.coef
            rows = (yield from self._reduce(coef)).rows()
            margins = rows.margins(coef)
            best = ray_minimiser(margins, rows.weights, square=problem.value(coef))
            # Between these factors no row that was left out changes its side.
            low, high = 1.0 / (1.0 + width), 1.0 / (1.0 - width) if width < 1.0 else np.inf
            factor = min(max(best, low), high)
            self.best = self.best._replace(coef=factor * coef, loss=rows.loss(factor * margins))
            if factor == best:
                return
            width *= 2.0


def _sample_by_weight(rows: HingeExamples, count: int) -> HingeExamples:
    """Draw about ``count`` rows with probabilities in proportion to their weights.

    Heavy rows are always drawn.
    """
    weights = rows.weights
    light = np.minimum(weights, weights.sum() / count)
    chance = np.minimum(1.0, weights * (count / light.sum()))
    drawn = np.random.default_rng(0).random(rows.n_rows) < chance
    return replace(rows.part(drawn), weights=(weights / chance)[drawn])
