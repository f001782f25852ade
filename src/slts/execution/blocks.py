"""Blocks of about equal cost, and running a task on every block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from slts.execution.progress import Progress, silent
from slts.execution.task_runner import ThreadRunner

# The last blocks to finish leave at most about 1/6 of a worker's time idle, and largest go first.
_BLOCKS_PER_WORKER = 6


@dataclass(frozen=True, slots=True)
class Block:
    """Rows [row_begin, row_end) against columns [column_begin, column_end), and their cost."""

    row_begin: int
    row_end: int
    column_begin: int
    column_end: int
    cost: float


def partition(
    row_costs: npt.ArrayLike,
    column_costs: npt.ArrayLike,
    *,
    block_cost: float,
    workers: int = 1,
    split_columns: bool = True,
) -> list[Block]:
    """Cut the grid whose cell (p, q) costs ``row_costs[p] * column_costs[q]``.

    Blocks cost at most `block_cost` where single rows (and columns, if they may be split) allow it,
    and less if each of several `workers` would otherwise get too few to share them out evenly.
    They cover every cell once.
    """
    rows = np.asarray(row_costs, dtype=np.float64)
    columns = np.asarray(column_costs, dtype=np.float64)
    if workers > 1:
        total = float(rows.sum() * columns.sum())
        block_cost = min(block_cost, total / (_BLOCKS_PER_WORKER * workers))
    heaviest = float(rows.max(initial=0.0))
    column_runs = [(0, len(columns))]
    if split_columns and heaviest * columns.sum() > block_cost:
        column_runs = _runs(columns, block_cost / heaviest)
    blocks = []
    for column_begin, column_end in column_runs:
        width = float(columns[column_begin:column_end].sum())
        for row_begin, row_end in _runs(rows, block_cost / width if width > 0 else np.inf):
            cost = float(rows[row_begin:row_end].sum()) * width
            blocks.append(Block(row_begin, row_end, column_begin, column_end, cost))
    return blocks


def _runs(costs: npt.NDArray[np.float64], limit: float) -> list[tuple[int, int]]:
    """Consecutive runs of items, each costing at most `limit` unless it is one item."""
    ends = np.cumsum(costs)
    runs = []
    begin, spent = 0, 0.0
    while begin < len(costs):
        end = max(begin + 1, int(np.searchsorted(ends, spent + limit, side="right")))
        runs.append((begin, end))
        begin, spent = end, float(ends[end - 1])
    return runs


def map_blocks(
    task: Callable[[Block], None],
    blocks: Sequence[Block],
    *,
    n_jobs: int | None = None,
    cancel: Callable[[], None] = lambda: None,
    progress: Progress = silent,
) -> None:
    """Call `task` on every block; each writes its own part of the result.

    Parameters
    ----------
    task
        Must release the GIL to profit from threads.
    blocks
        What to work on.
    n_jobs
        joblib's convention: None is 1 unless a ``joblib.parallel_config`` says otherwise, -1 is
        every core, -2 all but one. See `thread_count` for the limit.
    cancel
        Called when the work is cancelled (an error, Ctrl-C), so that a running `task` can return
        early.
    progress
        Called with (cost done, cost in all) as blocks finish.
    """
    runner = ThreadRunner(n_jobs, cancel)
    if runner.n_workers > 1:
        # Largest first, so that no thread is left with a large block at the end.
        blocks = sorted(blocks, key=lambda block: -block.cost)
    spent = list(accumulate(block.cost for block in blocks))

    def advance(done: float, _: float) -> None:
        progress(spent[int(done) - 1], spent[-1])

    for _ in runner.map(lambda block, *_: task(block), blocks, progress=advance):
        pass
