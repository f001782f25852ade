"""The metric and the separator when the rows lie in parts: on disk, or on other machines.

Rows whose margin at a reference is near one come to the solver. Of the others, those above one are
left out and those below one are replaced by a single row, their weighted mean. By convexity this
smaller problem, solved in memory, bounds the whole from below; the bound is exact once no other row
changes its side. One pass over the parts evaluates its minimiser on all rows and returns the rows
that did change, which join. Values and gap are always those of all rows.

The solvers are generators: they yield a query for every part and are sent the list of the replies,
so that many problems can share each pass over the data (:func:`solve_together`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np

from slts._typing import FloatArray
from slts.execution import Progress
from slts.learning import metric, separator
from slts.learning.hinge import HingeRows
from slts.learning.metric import MetricSolution
from slts.learning.part_queries import PartsQuery, Reply
from slts.learning.part_search import Found, Search, Solver
from slts.learning.separator import SeparatorSolution
from slts.learning.working_set import most_drawn

Key = TypeVar("Key")
Solution = TypeVar("Solution")


@dataclass(frozen=True)
class MetricInParts(MetricSolution):
    """A metric, with the passes over the parts it took and the rows that came to the solver."""

    n_rounds: int
    n_taken: int


@dataclass(frozen=True)
class SeparatorInParts(SeparatorSolution):
    """A separator, with the passes over the parts it took and the rows that came to the solver."""

    n_rounds: int
    n_taken: int


def metric_in_parts(
    sample: HingeRows,
    n_rows: int,
    *,
    gamma: float,
    lam: float,
    tol: float = 1e-6,
    max_iter: int = 500,
    most_bytes: float = np.inf,
) -> Solver[MetricInParts]:
    """Solve the metric problem on rows in parts; see :func:`slts.learning.solve_metric`.

    Parameters
    ----------
    sample : HingeRows
        A uniform choice of the rows, some thousands: only the work depends on it.
    n_rows : int
        Number of rows in all parts together.
    gamma, lam : float
        Parameters, both positive.
    tol : float
        Relative duality gap, over all rows.
    max_iter : int
        Interior-point iterations allowed in one problem in memory.
    most_bytes : float
        About how large the features of the rows in memory may be.

    Returns
    -------
    generator of queries
        Sent the replies of all parts, it returns the solution, whose ``metric`` is flat.

    Warns
    -----
    ConvergenceWarning
        If the gap stays above ``tol``.
    """
    gamma, lam = float(gamma), float(lam)
    metric.check_pairs([(gamma, lam)])
    strength = metric.strength_of(gamma, lam)
    problem = _Metric(strength, metric.working_size(n_rows, sample.n_columns))
    search = Search(problem, sample.n_columns, n_rows, tol, max_iter, most_bytes)
    yield from search.run(sample)
    yield from search.settle_on_ray()
    point = metric.Point(search.coef, search.loss, search.primal, search.dual, search.n_iter)
    metric.warn_if_open(point, strength, tol)
    solution = metric.report(point, gamma * point.coef, gamma, lam, tol)
    return MetricInParts(**vars(solution), n_rounds=search.n_rounds, n_taken=search.n_taken)


def separator_in_parts(
    sample: HingeRows,
    n_rows: int,
    *,
    gamma: float,
    tol: float = 1e-6,
    max_iter: int = 200,
    most_bytes: float = np.inf,
) -> Solver[SeparatorInParts]:
    """Solve the separator's program on rows in parts; see :func:`slts.learning.solve_separator`.

    The parameters, beside ``gamma``, are those of :func:`metric_in_parts`.
    """
    gamma = float(gamma)
    separator.check_gammas([gamma])
    problem = _Separator(gamma, separator.working_size(sample.n_columns))
    search = Search(problem, sample.n_columns, n_rows, tol, max_iter, most_bytes)
    yield from search.run(sample)
    point = separator.Point(
        search.coef, np.zeros(0), search.loss, search.dual, search.n_iter, False, search.vertex
    )
    solution = separator.report(point, point.coef, gamma, tol)
    separator.warn_if_open(solution, tol)
    return SeparatorInParts(**vars(solution), n_rounds=search.n_rounds, n_taken=search.n_taken)


def rows_of_metric(n_rows: int, n_columns: int, most_bytes: float) -> int:
    """Return about how many rows of so many :func:`metric_in_parts` has in memory."""
    size = metric.working_size(n_rows, n_columns)
    return min(n_rows, most_drawn(size, n_columns, most_bytes))


def rows_of_separator(n_rows: int, n_columns: int, most_bytes: float) -> int:
    """Return about how many rows of so many :func:`separator_in_parts` has in memory."""
    return min(n_rows, most_drawn(separator.working_size(n_columns), n_columns, most_bytes))


def solve_together(
    solvers: Mapping[Key, Solver[Solution]],
    ask: Callable[[dict[Key, PartsQuery]], Mapping[Key, list[Reply]]],
    progress: Progress | None = None,
) -> dict[Key, Solution]:
    """Advance several solvers in lockstep, with one pass over the parts for all their queries.

    Parameters
    ----------
    solvers : mapping
        Generators from :func:`metric_in_parts` or :func:`separator_in_parts`.
    ask : callable
        Given the open queries by key, returns for each the replies of all parts, in order; part
        ``i`` is to be asked ``query.common().with_own(query.own(i))``.
    progress : callable, optional
        Called with the number of solvers done and that of all.

    Returns
    -------
    dict
        The solution of every solver, in the order of ``solvers``.
    """
    solutions: dict[Key, Solution] = {}
    queries: dict[Key, PartsQuery] = {}
    replies: dict[Key, list[Reply] | None] = dict.fromkeys(solvers)
    while len(solutions) < len(solvers):
        for key in list(replies):
            try:
                # The first message to a generator is None. Replies are large: none is kept.
                queries[key] = solvers[key].send(cast(list[Reply], replies.pop(key)))
            except StopIteration as stop:
                queries.pop(key, None)
                solutions[key] = stop.value
                if progress is not None:
                    progress(len(solutions), len(solvers))
        if queries:
            replies = dict(ask(dict(queries)))
    return {key: solutions[key] for key in solvers}


@dataclass(frozen=True)
class _Metric:
    strength: float
    size: int
    floor = metric.PRIMAL_FLOOR
    slack = 0.0
    first_tol = 1e-4
    separates = False

    def value(self, coef: FloatArray) -> float:
        return self.strength * float(coef @ coef)

    def solve(self, rows: HingeRows, start: FloatArray | None, tol: float, max_iter: int) -> Found:
        point = metric.solve_rows(rows, self.strength, start, tol, max_iter)
        return Found(point.coef, point.loss, point.dual, point.n_iter)

    def approach(
        self, rows: HingeRows, start: FloatArray | None, tol: float, max_iter: int
    ) -> tuple[FloatArray, int]:
        point = metric.solve_rows(rows, self.strength, start, tol, max_iter)
        return point.coef, point.n_iter


@dataclass(frozen=True)
class _Separator:
    gamma: float
    size: int
    floor = separator.LOSS_FLOOR
    slack = 1e-9
    first_tol = 0.0
    separates = True

    def value(self, coef: FloatArray) -> float:
        return 0.0

    def solve(self, rows: HingeRows, start: FloatArray | None, tol: float, max_iter: int) -> Found:
        point = separator.solve_rows(rows, self.gamma, tol, max_iter)
        return Found(point.coef, point.objective, point.bound, point.n_iter, point.vertex)

    def approach(
        self, rows: HingeRows, start: FloatArray | None, tol: float, max_iter: int
    ) -> tuple[FloatArray, int]:
        return separator.approach_rows(rows, self.gamma, tol, max_iter)
