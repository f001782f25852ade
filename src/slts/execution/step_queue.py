"""A queue of steps for several threads. A step may add other steps."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

from slts.execution.task_runner import ThreadRunner


class StepQueue:
    """Steps that wait for a thread, for one run. A step may put others while it runs.

    An error of a step is raised once the steps that are running have ended.
    """

    def __init__(self) -> None:
        self._waiting, self._running, self._failed = deque[Callable[[], None]](), 0, False
        self._lock, self._n_threads = threading.Lock(), 1
        # One for each step that waits and, at the end, for each thread. Ctrl-C could leave a
        # condition in a wrong state.
        self._wake = SimpleQueue[None]()

    def put(self, step: Callable[[], None], *, last: bool = False) -> None:
        """Add a step: the next one to start or, with `last`, the last one of those that wait."""
        with self._lock:
            (self._waiting.appendleft if last else self._waiting.append)(step)
        self._wake.put(None)

    def run(self, n_jobs: int | None, on_step: Callable[[], None] = lambda: None) -> None:
        """Run all steps. This thread is one of `n_jobs`, and calls `on_step` after its own."""
        runner = ThreadRunner(n_jobs)
        self._n_threads = runner.n_workers
        parts = range(self._n_threads)
        if not self._waiting:
            return
        try:
            with runner.starting(lambda *_: self._work(), parts, None) as (start, _):
                with self._stopping_others():
                    others = [start(number, None) for number in parts[1:]]
                    while self._run_one():
                        on_step()
                for end in others:
                    end()
        finally:
            # Steps may refer to this queue.
            self._waiting.clear()

    def _work(self) -> None:
        with self._stopping_others():
            while self._run_one():
                pass

    @contextmanager
    def _stopping_others(self) -> Iterator[None]:
        """Stop all threads after their steps if there is an error here."""
        try:
            yield
        except BaseException:
            # Threads that wait look at it from time to time.
            self._failed = True
            raise

    def _run_one(self) -> bool:
        """Run the next step, once there is one; return False if none will come."""
        while True:
            # Short waits let Ctrl-C work on every platform.
            with suppress(Empty):
                self._wake.get(timeout=0.1)
                break
            if self._failed:
                return False
        with self._lock:
            if self._failed or not self._waiting:
                return False
            step = self._waiting.pop()
            self._running += 1
        step()
        with self._lock:
            self._running -= 1
            ended = not self._running and not self._waiting
        for _ in range(self._n_threads if ended else 0):
            self._wake.put(None)
        return True
