"""Threads: how many there are, ours and those of BLAS; maps over parts and over blocks of work.

BLAS has one thread while this package works (`one_blas_thread`): its threads spin while they wait
for each other, which can take many times as long as the work if other programs use the cores.
Large products of a fit are cut into tiles for our threads instead (`fit_threads`).
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from numbers import Integral
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import cpu_count, effective_n_jobs
from threadpoolctl import OpenBLASController, ThreadpoolController

from slts.execution.progress import Progress, silent

# More threads than this only wait for each other; each needs memory for its stack and its batch.
_THREADS_PER_CORE = 4

# Reentrant: the garbage collector may end a context in a thread that holds it.
_LOCK = threading.RLock()
# The limit holds for the whole process. It ends when the last context that uses it ends.
_CONTEXTS: set[object] = set()
# Numbers of threads before the limit, by the path of the library.
_BEFORE: dict[str, int] = {}
# State of this thread: threads for its large products, and an event that stops its tasks.
_current, _NEVER = threading.local(), threading.Event()
# The last blocks to finish leave at most about 1/6 of a worker's time idle, and largest go first.
_BLOCKS_PER_WORKER = 6
# Of the largest block. Smaller ones would take less time than to start a thread.
_SMALLEST_BLOCK = 1 / 8

Item = TypeVar("Item")
Result = TypeVar("Result")
# (part, argument shared by all parts, argument of this part) -> result
Task: TypeAlias = Callable[[Any, Any, Any], Result]

if hasattr(os, "register_at_fork"):
    # Other threads do not exist in a forked process: the first context to end restores BLAS.
    os.register_at_fork(after_in_child=_CONTEXTS.clear)


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads by joblib's convention, at most four for each core."""
    if n_jobs is not None and not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be a whole number or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: 1 is one thread, and -1 uses all cores")
    wanted = int(effective_n_jobs(n_jobs))
    # Counting cores reads files, which takes as long as a prediction.
    if wanted <= _THREADS_PER_CORE:
        return wanted
    return int(min(wanted, _THREADS_PER_CORE * cpu_count()))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread. Contexts of several threads may overlap in any order."""
    context = object()
    try:
        with _LOCK:
            for library in _libraries():
                _BEFORE.setdefault(library.filepath, library.num_threads)
            _CONTEXTS.add(context)
            _set_blas_threads(dict.fromkeys(_BEFORE, 1))
        yield
    finally:
        with _LOCK:
            _CONTEXTS.discard(context)
            if not _CONTEXTS:
                _set_blas_threads(_BEFORE)
                _BEFORE.clear()


@contextmanager
def use_fit_threads(n_jobs: int | None) -> Iterator[None]:
    """Cut large products of this thread into tiles for the threads of `n_jobs`.

    None means as many threads as BLAS has without our limit. Inside another context, it means the
    threads of that context.
    """
    outer: int | None = getattr(_current, "fit_threads", None)
    with one_blas_thread():
        try:
            if n_jobs is not None:
                _current.fit_threads = thread_count(n_jobs)
            elif outer is None:
                _current.fit_threads = max(_BEFORE.values(), default=1)
            yield
        finally:
            _current.fit_threads = outer


def fit_threads() -> int:
    """Return the number of threads for large products: one in threads that a map has started."""
    return getattr(_current, "fit_threads", None) or 1


def _set_blas_threads(numbers: dict[str, int]) -> None:
    # Since threadpoolctl 3.8, the first thread that sets them keeps this right to itself.
    clear = getattr(OpenBLASController, "clear_controlling_thread", lambda **_: None)
    clear(force=True)
    for library in _libraries():
        if library.filepath in numbers:
            library.set_num_threads(numbers[library.filepath])
    clear(force=True)


def _libraries() -> list[Any]:
    # SciPy has a BLAS of its own, which may be loaded later.
    return _find_libraries("scipy.linalg" in sys.modules)


@cache
def _find_libraries(_: bool) -> list[Any]:
    # The search takes milliseconds, as long as a fit on few series.
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


# ---- maps over parts


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
        Number of threads, by joblib's convention; see `thread_count` for the limit.
    cancel
        Called if the work is cancelled (an error, Ctrl-C), so that running tasks can return early.
    """

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

        `own` is called shortly before a part starts, so it may depend on earlier results. An error
        stops the parts that have not ended.
        """
        n_threads, stop = min(self.n_workers, len(parts)), threading.Event()

        def call(number: int) -> Callable[[], Result]:
            return partial(task, parts[number], shared, None if own is None else own(number))

        if n_threads <= 1:
            for number in range(len(parts)):
                yield call(number)()
                progress(number + 1, len(parts))
            return
        futures = deque[Future[Result]]()
        pool = ThreadPoolExecutor(n_threads, initializer=_start, initargs=(stop,))
        # Ctrl-C while a thread starts hides it from the pool: it must not have a part yet.
        started = threading.Barrier(n_threads)
        try:
            with one_blas_thread():
                for _ in range(n_threads):
                    pool.submit(started.wait)
                for number in range(len(parts)):
                    # One part waits for every thread, so a slow part does not leave others idle.
                    while len(futures) < min(2 * n_threads, len(parts) - number):
                        futures.append(pool.submit(_run, call(number + len(futures))))
                    _wait_for_first(futures)
                    yield futures.popleft().result()
                    progress(number + 1, len(parts))
        except BaseException:
            stop.set()
            started.abort()
            self._cancel()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            futures.clear()


def _start(stop: threading.Event) -> None:
    """Prepare a thread of a map: its large products are not cut for further threads."""
    _current.stop, _current.fit_threads = stop, 1


def _run(call: Callable[[], Result]) -> Result:
    check_stopped()
    return call()


def _wait_for_first(futures: Sequence[Future[Any]]) -> None:
    """Wait for the first result, or raise the error of any part."""
    while not futures[0].done():
        # Short waits let Ctrl-C work on every platform.
        running = [future for future in futures if not future.done()]
        wait(running, timeout=0.1, return_when=FIRST_COMPLETED)
        for future in futures:
            if future.done():
                future.result()
        # This map may be part of a task itself.
        check_stopped()


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
