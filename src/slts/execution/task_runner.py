"""Run tasks on the parts of a source: in threads here, or on the workers of a cluster."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDone
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, TypeVar

from slts.execution.memory import release_memory
from slts.execution.progress import Progress, silent
from slts.execution.spill import ArrayBlock, Spill, StoredBlocks
from slts.execution.threads import one_blas_thread, thread_count

Result = TypeVar("Result")
# (part, argument shared by all parts, argument of this part) -> result
Task: TypeAlias = Callable[[Any, Any, Any], Result]


@dataclass(frozen=True)
class Submission(Generic[Result]):
    """A task that is ready to run; parts are named by their numbers.

    Attributes
    ----------
    start
        Start a part, given its number and its own argument.
    wait
        Return the result of a part that was started.
    ahead
        Number of parts to start before the next result is read.
    """

    start: Callable[[int, Any], None]
    wait: Callable[[int], Result]
    ahead: int


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
    def _submission(
        self, task: Task[Result], parts: Sequence[Any], shared: Any
    ) -> AbstractContextManager[Submission[Result]]:
        """Prepare a task; an error inside the context cancels what was started."""

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
        started = 0
        with self._submission(task, parts, shared) as submission:
            for number in range(len(parts)):
                while started < min(len(parts), number + submission.ahead):
                    submission.start(started, None if own is None else own(started))
                    started += 1
                yield submission.wait(number)
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
    """

    def __init__(self, n_jobs: int | None) -> None:
        super().__init__()
        self._workers = thread_count(n_jobs)

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
    def _submission(
        self, task: Task[Result], parts: Sequence[Any], shared: Any
    ) -> Iterator[Submission[Result]]:
        workers = min(self._workers, len(parts))
        own: dict[int, Any] = {}
        if workers <= 1:
            yield Submission(own.__setitem__, lambda n: task(parts[n], shared, own.pop(n)), 1)
            return
        stop = threading.Event()
        running: dict[int, Future[Result]] = {}

        def stoppable(number: int, mine: Any) -> Result:
            _current.stop = stop
            # A thread that was just stopped must not start another part.
            check_stopped()
            return task(parts[number], shared, mine)

        with one_blas_thread(), ThreadPoolExecutor(workers) as pool:

            def start(number: int, mine: Any) -> None:
                running[number] = pool.submit(stoppable, number, mine)

            try:
                # One part waits for every thread, so a slow part does not leave others idle.
                yield Submission(start, lambda n: _wait_interruptibly(running.pop(n)), 2 * workers)
            except BaseException:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def _wait_interruptibly(future: Future[Result]) -> Result:
    """Wait in short intervals, so that Ctrl-C works on every platform."""
    while True:
        try:
            return future.result(timeout=0.2)
        except NotDone:
            if future.done():
                return future.result()
