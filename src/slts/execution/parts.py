"""Who works on parts of something that is not in memory: threads here, or others elsewhere."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from slts.execution.machine import give_back_memory
from slts.execution.progress import Progress
from slts.execution.shelf import Block, Kept, Shelf

Result = TypeVar("Result")
# (part, what is the same for all parts, what is the part's own) -> result
Task: TypeAlias = Callable[[Any, Any, Any], Result]
Own: TypeAlias = Callable[[int], Any]


@dataclass(frozen=True)
class Crew(Generic[Result]):
    """Workers that have been given a task; parts go by their numbers.

    Attributes
    ----------
    begin
        Takes a part and what is its own.
    wait
        Gives the result of a part that was begun.
    ahead
        Parts to begin before the next result is wanted.
    """

    begin: Callable[[int, Any], None]
    wait: Callable[[int], Result]
    ahead: int


class Mapper(ABC):
    """Calls tasks on parts. Tasks are pure: one that is lost with its worker is called again."""

    def __init__(self) -> None:
        self._held: list[Sequence[Any]] = []

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """How many tasks run at a time."""

    @abstractmethod
    def _crew(
        self, task: Task[Result], parts: Sequence[Any], common: Any
    ) -> AbstractContextManager[Crew[Result]]:
        """Workers for a task; an error while they work stops what was begun."""

    def map(
        self,
        task: Task[Result],
        parts: Sequence[Any],
        common: Any = None,
        own: Own | None = None,
        *,
        progress: Progress | None = None,
    ) -> Iterator[Result]:
        """Results in the order of the parts.

        `own` is asked shortly before a part is begun, so that it may depend on earlier results.
        """
        begun = 0
        with self._crew(task, parts, common) as crew:
            for number in range(len(parts)):
                while begun < min(len(parts), number + crew.ahead):
                    crew.begin(begun, None if own is None else own(begun))
                    begun += 1
                yield crew.wait(number)
                if progress is not None:
                    progress(number + 1, len(parts))

    @abstractmethod
    def hold(
        self,
        task: Task[Iterator[Block]],
        parts: Sequence[Any],
        common: Any = None,
        *,
        memory: float,
        progress: Progress | None = None,
    ) -> Sequence[Any]:
        """Blocks of arrays that stay where they are made; give the result to `map` as its parts.

        What is beyond `memory` bytes on this machine goes to temporary files.
        """

    @abstractmethod
    def _forget(self, held: Any) -> None:
        """Let go of what `hold` gave."""

    def release(self, held: Sequence[Any]) -> None:
        """Say that what was held is not needed any more."""
        self._forget(held)
        self._held = [others for others in self._held if others is not held]

    def __enter__(self) -> Self:
        """Use as a context."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release everything; a traceback may still refer to it."""
        for held in list(self._held):
            self.release(held)


class Stopped(Exception):  # noqa: N818 - nobody sees it
    """Raised inside a task whose result nobody wants any more."""


_current = threading.local()


def check_stopped() -> None:
    """Leave a task early if its work has become useless; tasks call it between batches."""
    stop: threading.Event | None = getattr(_current, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped


class _Shelved(list[Kept]):
    """What the parts have made, and the shelf it lies on."""

    def __init__(self, memory: float) -> None:
        super().__init__()
        self.shelf = Shelf(memory)


class ThreadMapper(Mapper):
    """Parts in threads of this process.

    Parameters
    ----------
    n_jobs
        Threads, by joblib's convention.
    """

    def __init__(self, n_jobs: int | None) -> None:
        super().__init__()
        self._workers = int(effective_n_jobs(n_jobs))

    @property
    def n_workers(self) -> int:
        """Number of threads."""
        return self._workers

    def hold(
        self,
        task: Task[Iterator[Block]],
        parts: Sequence[Any],
        common: Any = None,
        *,
        memory: float,
        progress: Progress | None = None,
    ) -> Sequence[Kept]:
        """See `Mapper.hold`."""
        held = _Shelved(memory)
        self._held.append(held)

        def shelved(part: Any, common: Any, mine: Any) -> Kept:
            return held.shelf.keep(task(part, common, mine))

        try:
            held.extend(self.map(shelved, parts, common, progress=progress))
        except BaseException:
            self.release(held)
            raise
        give_back_memory()
        return held

    def _forget(self, held: _Shelved) -> None:
        held.clear()
        held.shelf.close()

    @contextmanager
    def _crew(
        self, task: Task[Result], parts: Sequence[Any], common: Any
    ) -> Iterator[Crew[Result]]:
        workers = min(self._workers, len(parts))
        own: dict[int, Any] = {}
        if workers <= 1:
            yield Crew(own.__setitem__, lambda n: task(parts[n], common, own.pop(n)), 1)
            return
        stop = threading.Event()
        running: dict[int, Future[Result]] = {}

        def stoppable(number: int, mine: Any) -> Result:
            _current.stop = stop
            # A thread that has just been stopped must not begin another part.
            check_stopped()
            return task(parts[number], common, mine)

        # Threads that each call BLAS must not each start threads of their own.
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:

            def begin(number: int, mine: Any) -> None:
                running[number] = pool.submit(stoppable, number, mine)

            try:
                # One waiting for every thread: a slow part must not leave the others idle.
                yield Crew(begin, lambda n: _patiently(running.pop(n)), 2 * workers)
            except BaseException:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def _patiently(future: Future[Result]) -> Result:
    """Wait in short spells, which keep Ctrl-C alive on every platform."""
    while True:
        try:
            return future.result(timeout=0.2)
        except NotYet:
            if future.done():
                return future.result()
