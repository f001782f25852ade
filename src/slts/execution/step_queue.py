"""A queue of steps for several threads. A step may add other steps."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from slts.execution.task_runner import ThreadRunner


class StepQueue:
    """Steps that wait for a thread, for one run. A step may put others while it runs.

    An error of a step is raised once the steps that are running have ended.
    """

    def __init__(self) -> None:
        self._waiting, self._running, self._failed = deque[Callable[[], None]](), 0, False
        self._changed = threading.Condition()

    def put(self, step: Callable[[], None], *, last: bool = False) -> None:
        """Add a step: the next one to start or, with `last`, the last one of those that wait."""
        with self._changed:
            (self._waiting.appendleft if last else self._waiting.append)(step)
            self._changed.notify()

    def run(self, n_jobs: int | None, on_step: Callable[[], None] = lambda: None) -> None:
        """Run all steps. This thread is one of `n_jobs`, and calls `on_step` after its own."""
        runner = ThreadRunner(n_jobs)
        parts = range(runner.n_workers)
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
        with self._changed:
            # Short waits let Ctrl-C work on every platform.
            while self._running and not (self._waiting or self._failed):
                self._changed.wait(0.1)
            if self._failed or not self._waiting:
                return False
            step = self._waiting.pop()
            self._running += 1
        step()
        with self._changed:
            self._running -= 1
            if not self._running:
                self._changed.notify_all()
        return True
