"""Who works on parts of something that is not in memory: threads here, or others elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from slts.execution.progress import Progress
from slts.execution.shelf import Block, Kept, Shelf

Result = TypeVar("Result")
# (part, what is the same for all parts, what is the part's own) -> result
Task: TypeAlias = Callable[[Any, Any, Any], Result]
Own: TypeAlias = Callable[[int], Any]


class Mapper(Protocol):
    """Calls tasks on parts. Tasks are pure: one that is lost with its worker is called again."""

    @property
    def n_workers(self) -> int:
        """How many tasks run at a time."""

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

    def release(self, held: Sequence[Any]) -> None:
        """Say that what was held is not needed any more."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Stopped(Exception):  # noqa: N818 - nobody sees it
    """Raised inside a task whose result nobody wants any more."""


_current = threading.local()


def check_stopped() -> None:
    """Leave a task early if its work has become useless; tasks call it between batches."""
    stop: threading.Event | None = getattr(_current, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped


class ThreadMapper:
    """Parts in threads of this process.

    Parameters
    ----------
    n_jobs
        Threads, by joblib's convention.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self._workers = int(effective_n_jobs(n_jobs))
        self._shelves: list[tuple[list[Kept], Shelf]] = []

    @property
    def n_workers(self) -> int:
        """Number of threads."""
        return self._workers

    def map(
        self,
        task: Task[Result],
        parts: Sequence[Any],
        common: Any = None,
        own: Own | None = None,
        *,
        progress: Progress | None = None,
    ) -> Iterator[Result]:
        """See `Mapper.map`."""

        def call(number: int, mine: Any) -> Result:
            return task(parts[number], common, mine)

        for done, result in enumerate(self._in_order(call, len(parts), own)):
            yield result
            if progress is not None:
                progress(done + 1, len(parts))

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
        shelf = Shelf(memory)
        held: list[Kept] = []
        self._shelves.append((held, shelf))

        def shelved(part: Any, common: Any, mine: Any) -> Kept:
            return shelf.keep(task(part, common, mine))

        try:
            held.extend(self.map(shelved, parts, common, progress=progress))
        except BaseException:
            self.release(held)
            raise
        return held

    def release(self, held: Sequence[Any]) -> None:
        """See `Mapper.release`."""
        for entry in [entry for entry in self._shelves if entry[0] is held]:
            entry[0].clear()
            entry[1].close()
            self._shelves.remove(entry)

    def __enter__(self) -> Self:
        """Use as a context."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove what is held."""
        for held, _ in list(self._shelves):
            self.release(held)

    def _in_order(
        self, call: Callable[[int, Any], Result], count: int, own: Own | None
    ) -> Iterator[Result]:
        workers = min(self._workers, count)
        if workers <= 1:
            for number in range(count):
                yield call(number, None if own is None else own(number))
            return
        stop = threading.Event()

        def stoppable(number: int, mine: Any) -> Result:
            _current.stop = stop
            # A thread that has just been stopped must not begin another part.
            check_stopped()
            return call(number, mine)

        running: dict[int, Future[Result]] = {}
        begun = 0
        # Threads that each call BLAS must not each start threads of their own.
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
            try:
                for number in range(count):
                    # One waiting for every thread: a slow part must not leave the others idle.
                    while begun < min(count, number + 2 * workers):
                        mine = None if own is None else own(begun)
                        running[begun] = pool.submit(stoppable, begun, mine)
                        begun += 1
                    yield _patiently(running.pop(number))
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
