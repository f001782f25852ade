"""Run tasks on the parts of a source: in threads here, or on the workers of a cluster."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

from slts.execution.memory import ArrayBlock, Spill, StoredBlocks, release_memory
from slts.execution.progress import Progress, silent
from slts.execution.threads import one_blas_thread, thread_count

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
    def _started(
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
        with self._started(task, parts, shared) as (start, ahead):
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
    def _started(
        self, task: Task[Result], parts: Sequence[Any], shared: Any
    ) -> Iterator[tuple[Start[Result], int]]:
        workers = min(self._workers, len(parts))
        if workers <= 1:
            yield lambda number, mine: lambda: task(parts[number], shared, mine), 1
            return
        stop, running = threading.Event(), set[Future[Result]]()

        def stoppable(number: int, mine: Any) -> Result:
            _current.stop = stop
            # A thread that was just stopped must not start another part.
            check_stopped()
            return task(parts[number], shared, mine)

        def result(future: Future[Result]) -> Result:
            # Short waits let Ctrl-C work on every platform, and an error of any part is raised.
            while not future.done():
                wait([future], timeout=0.1)
                for other in [other for other in running if other.done()]:
                    other.result()
            running.discard(future)
            return future.result()

        with one_blas_thread(), ThreadPoolExecutor(workers) as pool:

            def start(number: int, mine: Any) -> Callable[[], Result]:
                future = pool.submit(stoppable, number, mine)
                running.add(future)
                return lambda: result(future)

            try:
                # One part waits for every thread, so a slow part does not leave others idle.
                yield start, 2 * workers
            except BaseException:
                stop.set()
                self._cancel()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
