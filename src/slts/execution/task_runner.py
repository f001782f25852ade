"""Run tasks on the parts of a source, here or on a cluster; on blocks of a grid, in threads."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from slts.execution.memory import ArrayBlock, Spill, StoredBlocks, release_memory
from slts.execution.progress import Progress, silent
from slts.execution.threads import one_blas_thread, thread_count

# The last blocks to finish leave at most about 1/6 of a worker's time idle, and largest go first.
_BLOCKS_PER_WORKER = 6

Result = TypeVar("Result")
# (part, argument shared by all parts, argument of this part) -> result
Task: TypeAlias = Callable[[Any, Any, Any], Result]


# Starts a part, given its number and its own argument; returns what waits for its result.
Start: TypeAlias = Callable[[int, Any], Callable[[], Result]]


class TaskRunner(ABC):
    """Calls pure tasks on parts: a task that is lost with its worker is called again."""

    def __init__(self) -> None:
        self._kept: list[Sequence[Any]] = []

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """Number of tasks that run at the same time."""

    @property
    def is_remote(self) -> bool:
        """Whether kept blocks lie on other machines."""
        return False

    @abstractmethod
    def starting(
        self, task: Task[Result], parts: Sequence[Any], shared: Any
    ) -> AbstractContextManager[tuple[Start[Result], int]]:
        """Give what starts a part, and how many parts to start before the next result is read.

        An error inside the context cancels what was started.
        """

    def map(
        self,
        task: Task[Result],
        parts: Sequence[Any],
        shared: Any = None,
        own: Callable[[int], Any] | None = None,
        *,
        progress: Progress = silent,
    ) -> Iterator[Result]:
        """Yield results in the order of the parts.

        `own` is called shortly before a part starts, so it may depend on earlier results.
        """
        started, waiting = 0, deque[Callable[[], Result]]()
        with self.starting(task, parts, shared) as (start, ahead):
            for number in range(len(parts)):
                while started < min(len(parts), number + ahead):
                    waiting.append(start(started, None if own is None else own(started)))
                    started += 1
                yield waiting.popleft()()
                progress(number + 1, len(parts))

    @abstractmethod
    def keep(
        self,
        task: Task[Iterator[ArrayBlock]],
        parts: Sequence[Any],
        shared: Any = None,
        *,
        memory: float,
        progress: Progress = silent,
    ) -> Sequence[Any]:
        """Compute blocks of arrays and keep them where they are computed.

        The result is passed to `map` as its parts. Blocks beyond `memory` bytes on this machine
        are written to temporary files.
        """

    @abstractmethod
    def _forget(self, kept: Any) -> None:
        """Release the result of `keep`."""

    def release(self, kept: Sequence[Any]) -> None:
        """Free blocks that are no longer needed."""
        self._forget(kept)
        self._kept = [others for others in self._kept if others is not kept]

    def __enter__(self) -> Self:
        """Use as a context."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release everything: a traceback may still refer to it."""
        for kept in list(self._kept):
            self.release(kept)


class Stopped(Exception):  # noqa: N818 - internal signal
    """Raised inside a task whose result is no longer needed."""


# Pools whose threads wait for the next map, and how many threads each has, the newest last: to
# start threads takes longer than many a map. A forked process has none of them.
_IDLE: dict[ThreadPoolExecutor, int] = {}
_MOST_IDLE = 4
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_IDLE.clear)


@contextmanager
def _pool(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Give threads to one map. They are kept for others once it has all its results."""
    # Another thread may have taken one that was seen.
    idle = (pool for pool, n in list(_IDLE.items()) if n == n_threads and _IDLE.pop(pool, 0))
    pool = next(idle, None) or ThreadPoolExecutor(n_threads)
    try:
        yield pool
    except BaseException:
        pool.shutdown()
        raise
    _IDLE[pool] = n_threads
    for oldest in list(_IDLE)[:-_MOST_IDLE]:
        if _IDLE.pop(oldest, 0):
            oldest.shutdown()


_current = threading.local()


def check_stopped() -> None:
    """Leave a task early if its result is no longer needed. Tasks call it between batches."""
    stop: threading.Event | None = getattr(_current, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped


class _SpilledParts(list[StoredBlocks]):
    """Blocks of all parts, and the storage that holds them."""

    def __init__(self, memory: float) -> None:
        super().__init__()
        self.spill = Spill(memory)


class ThreadRunner(TaskRunner):
    """Runs tasks in threads of this process.

    Parameters
    ----------
    n_jobs
        Number of threads, by joblib's convention; see `thread_count` for the limit.
    cancel
        Called if the work is cancelled (an error, Ctrl-C), so that running tasks can return early.
    """

    def __init__(self, n_jobs: int | None, cancel: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._workers, self._cancel = thread_count(n_jobs), cancel

    @property
    def n_workers(self) -> int:
        """Number of threads."""
        return self._workers

    def keep(
        self,
        task: Task[Iterator[ArrayBlock]],
        parts: Sequence[Any],
        shared: Any = None,
        *,
        memory: float,
        progress: Progress = silent,
    ) -> Sequence[StoredBlocks]:
        """See `TaskRunner.keep`."""
        kept = _SpilledParts(memory)
        self._kept.append(kept)

        def stored(part: Any, shared: Any, own: Any) -> StoredBlocks:
            return kept.spill.store(task(part, shared, own))

        try:
            kept.extend(self.map(stored, parts, shared, progress=progress))
        except BaseException:
            self.release(kept)
            raise
        release_memory()
        return kept

    def _forget(self, kept: _SpilledParts) -> None:
        kept.clear()
        kept.spill.close()

    @contextmanager
    def starting(
        self, task: Task[Result], parts: Sequence[Any], shared: Any
    ) -> Iterator[tuple[Start[Result], int]]:
        """See `TaskRunner.starting`."""
        workers = min(self._workers, len(parts))
        if workers <= 1:
            yield lambda number, mine: partial(task, parts[number], shared, mine), 1
            return
        stop, errors = threading.Event(), list[BaseException]()
        # When a result is read, its thread may still hold what was submitted.
        calls, results = dict[int, Callable[[], Result]](), dict[int, Result]()
        ended = SimpleQueue[None]()

        def stoppable(number: int) -> None:
            _current.stop = stop
            try:
                # A thread that was just stopped must not start another part.
                check_stopped()
                results[number] = calls.pop(number)()
            except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
                errors.append(error)
            finally:
                ended.put(None)

        def result(number: int) -> Result:
            while number not in results:
                # Short waits let Ctrl-C work on every platform. A condition or a future could be
                # left in a wrong state by Ctrl-C.
                with suppress(Empty):
                    ended.get(timeout=0.1)
                if errors:
                    raise errors.pop(0)
            return results.pop(number)

        with one_blas_thread(), _pool(self._workers) as pool:

            def start(number: int, mine: Any) -> Callable[[], Result]:
                calls[number] = partial(task, parts[number], shared, mine)
                pool.submit(stoppable, number)
                return partial(result, number)

            try:
                # One part waits for every thread, so a slow part does not leave others idle.
                yield start, 2 * workers
            except BaseException:
                stop.set()
                self._cancel()
                pool.shutdown(wait=True, cancel_futures=True)
                # They refer to frames that refer to them.
                errors.clear()
                raise


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
    total, done = sum(block.cost for block in blocks), 0.0
    for block, _ in zip(blocks, runner.map(lambda block, *_: task(block), blocks), strict=True):
        done += block.cost
        progress(done, total)
