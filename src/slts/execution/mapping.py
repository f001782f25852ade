"""Map tasks over parts in threads of this process; blocks of a grid of work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from slts.execution.progress import Progress, silent
from slts.execution.threads import thread_count, use_fit_threads

# The last blocks to finish leave at most about 1/6 of a worker's time idle, and largest go first.
_BLOCKS_PER_WORKER = 6
# Of the largest block. Smaller ones would take less time than to start a thread.
_SMALLEST_BLOCK = 1 / 8

Item = TypeVar("Item")
Result = TypeVar("Result")
# (part, argument shared by all parts, argument of this part) -> result
Task: TypeAlias = Callable[[Any, Any, Any], Result]

# Set if the tasks of this thread must stop.
_current, _NEVER = threading.local(), threading.Event()


class Stopped(Exception):  # noqa: N818 - internal signal
    """Raised inside a task whose result is no longer needed."""


def check_stopped() -> None:
    """Leave a task early if its result is no longer needed. Tasks call it between batches."""
    if getattr(_current, "stop", _NEVER).is_set():
        raise Stopped


class ThreadRunner:
    """Runs tasks in threads that live as long as one map.

    Parameters
    ----------
    n_jobs
        Number of threads, by joblib's convention; see `thread_count` for the limit. One thread is
        that of the caller.
    cancel
        Called if the work is cancelled (an error, Ctrl-C), so that running tasks can return early.
    """

    is_remote = False

    def __init__(self, n_jobs: int | None, cancel: Callable[[], None] = lambda: None) -> None:
        self.n_workers, self._cancel = thread_count(n_jobs), cancel

    def map(
        self,
        task: Task[Result],
        parts: Sequence[Any],
        shared: Any = None,
        own: Callable[[int], Any] | None = None,
        *,
        progress: Progress = silent,
    ) -> Iterator[Result]:
        """Yield the results of a task in the order of the parts.

        `own` is called shortly before a part starts, so it may depend on earlier results. The first
        error of any part is raised, and stops the others.
        """

        def call(number: int) -> Callable[[], Result]:
            return partial(task, parts[number], shared, None if own is None else own(number))

        n_threads = min(self.n_workers, len(parts))
        if n_threads <= 1:
            for number in range(len(parts)):
                yield call(number)()
                progress(number + 1, len(parts))
            return
        threads = _Threads()
        try:
            threads.start(n_threads)
            for number in range(len(parts)):
                # One part waits for every thread, so a slow part does not leave others idle.
                while threads.n_parts < min(len(parts), number + 2 * n_threads):
                    threads.put(call(threads.n_parts))
                yield threads.result(number)
                progress(number + 1, len(parts))
        except BaseException:
            threads.stop.set()
            self._cancel()
            raise
        finally:
            threads.join()


class _Threads:
    """The threads of one map, and what they exchange with the thread that waits for results.

    Ctrl-C raises an error anywhere in the main thread, which could leave a lock, a condition or a
    future in a wrong state. Simple queues, dictionaries and lists have no such states.
    """

    def __init__(self) -> None:
        self.n_parts, self.stop = 0, threading.Event()
        self._threads = list[threading.Thread]()
        self._calls, self._ended = SimpleQueue[Any](), SimpleQueue[None]()
        self._results, self._errors = dict[int, Any](), list[BaseException]()

    def start(self, n_threads: int) -> None:
        """Start threads. They wait for parts: one at work would delay the start of the others."""
        for _ in range(n_threads):
            # A daemon: a map that was left unfinished must not keep the process alive.
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()

    def put(self, call: Callable[[], Any]) -> None:
        """Queue the next part."""
        self._calls.put((self.n_parts, call))
        self.n_parts += 1

    def result(self, number: int) -> Any:
        """Wait for a result, or raise the first error of any part."""
        while number not in self._results:
            # Short waits let Ctrl-C work on every platform.
            with suppress(Empty):
                self._ended.get(timeout=0.1)
            if self._errors:
                raise self._errors.pop(0)
            # This map may be part of a task itself.
            check_stopped()
        return self._results.pop(number)

    def join(self) -> None:
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            # Ctrl-C may have come before it was alive. It then ends without a task.
            if thread.is_alive():
                thread.join()
        # Errors refer to frames that refer to this object.
        self._errors.clear()
        self._results.clear()

    def _work(self) -> None:
        _current.stop = self.stop
        try:
            with use_fit_threads(1):
                while self._run(self._calls.get()):
                    pass
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            self._errors.append(error)
            self._ended.put(None)

    def _run(self, numbered: tuple[int, Callable[[], Any]] | None) -> bool:
        """Run a part. A function of its own: a thread that waits holds no part and no result."""
        if numbered is None:
            return False
        check_stopped()
        number, call = numbered
        self._results[number] = call()
        self._ended.put(None)
        return True


def map_threads(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    n_jobs: int | None = None,
    cancel: Callable[[], None] = lambda: None,
    progress: Progress = silent,
) -> list[Result]:
    """Return the results of `function` for all items, in order; see `ThreadRunner`."""
    runner = ThreadRunner(n_jobs, cancel)
    return list(runner.map(lambda item, *_: function(item), list(items), progress=progress))


# ---- blocks of about equal cost


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
        share = float(rows.sum() * columns.sum()) / (_BLOCKS_PER_WORKER * workers)
        block_cost = min(block_cost, max(share, _SMALLEST_BLOCK * block_cost))
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
    total, done = sum(block.cost for block in blocks), 0.0
    for block, _ in zip(blocks, runner.map(lambda block, *_: task(block), blocks), strict=True):
        done += block.cost
        progress(done, total)
