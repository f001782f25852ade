"""Calculate how a fit would share its work among many threads, on a machine with few cores.

Tasks run one after the other and are timed. A virtual clock shares them out among the threads, as
`ThreadRunner` and `StepQueue` do. The result is an estimate: threads of a real machine also wait
for memory and for the GIL, and threads that tasks start themselves are not counted. The table shows
which steps gain least.

    python benchmarks/schedule.py --threads 16
"""

from __future__ import annotations

import argparse
import heapq
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from inputs import paper_data
from threads import CLASSIFIERS

from slts.execution import StepQueue, ThreadRunner, thread_count, use_fit_threads
from slts.execution import threads as thread_counts


class Schedule:
    """The virtual clock, and what every map of tasks has taken."""

    def __init__(self) -> None:
        # Seconds that the virtual clock is behind.
        self._hidden = 0.0
        self._inside = False
        # By place in the source: number of tasks, seconds of all tasks, seconds of the maps.
        self.maps: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])

    def now(self) -> float:
        """Return the virtual time."""
        return time.perf_counter() - self._hidden

    def wait_until(self, when: float) -> None:
        """Set the virtual time, unless it is later."""
        self._hidden -= max(0.0, when - self.now())

    def run(self, task: Callable[[], Any]) -> tuple[Any, float]:
        """Call a task while the virtual clock stands still; return its result and its seconds."""
        begin, self._inside = time.perf_counter(), True
        try:
            with use_fit_threads(1):
                result = task()
        finally:
            self._inside = False
            taken = time.perf_counter() - begin
            self._hidden += taken
        return result, taken

    @contextmanager
    def starting(
        self, runner: ThreadRunner, task: Any, parts: Sequence[Any], shared: Any
    ) -> Iterator[tuple[Any, int]]:
        """Replace `ThreadRunner.starting`."""
        n_threads = min(runner.n_workers, len(parts))
        if n_threads <= 1 or self._inside:
            yield lambda number, mine: partial(task, parts[number], shared, mine), 1
            return
        free, record, begin = [0.0] * n_threads, self.maps[_place()], self.now()

        def start(number: int, mine: Any) -> Callable[[], Any]:
            result, taken = self.run(partial(task, parts[number], shared, mine))
            end = max(heapq.heappop(free), self.now()) + taken
            heapq.heappush(free, end)
            record[0] += 1
            record[1] += taken

            def wait() -> Any:
                self.wait_until(end)
                return result

            return wait

        yield start, 2 * n_threads
        record[2] += self.now() - begin

    def run_steps(self, queue: StepQueue, n_jobs: int | None, on_step: Any = None) -> None:
        """Replace `StepQueue.run`. What a step puts is seen when the step ends."""
        record, begin = self.maps[_place()], self.now()
        idle, clock, number = thread_count(n_jobs), begin, 0
        running: list[tuple[float, int, list[tuple[Any, bool]]]] = []
        put = queue.put
        while queue._waiting or running:
            while idle and queue._waiting:
                added: list[tuple[Any, bool]] = []
                queue.put = lambda step, last=False, own=added: own.append((step, last))  # type: ignore[method-assign, misc]
                _, taken = self.run(queue._waiting.pop())
                queue.put = put  # type: ignore[method-assign]
                heapq.heappush(running, (clock + taken, number, added))
                record[0] += 1
                record[1] += taken
                idle, number = idle - 1, number + 1
            clock, _, added = heapq.heappop(running)
            idle += 1
            for step, last in added:
                queue.put(step, last=last)
        self.wait_until(clock)
        record[2] += self.now() - begin


def _place() -> str:
    """Name the function that maps, and the one that called it."""
    frame, names = sys._getframe(2), list[str]()
    while frame.f_back is not None and len(names) < 2:
        path = Path(frame.f_code.co_filename)
        if "slts" in path.parts and path.parent.name != "execution" and path.name != "blas.py":
            names.append(f"{path.stem}.{frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(names)


def main() -> None:
    """Run the calculation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rows", type=int, default=8, help="how many steps to show")
    options = parser.parse_args()
    schedule = Schedule()
    vars(thread_counts)["cpu_count"] = lambda: options.threads
    ThreadRunner.starting = lambda *args: schedule.starting(*args)  # type: ignore[method-assign]
    StepQueue.run = lambda *args: schedule.run_steps(*args)  # type: ignore[method-assign]
    name, (X, y), _ = paper_data()
    print(f"{name}, {options.threads} threads, seconds")
    for title, (kind, settings) in CLASSIFIERS.items():
        model = kind(**settings, n_jobs=options.threads, random_state=0)
        model.fit(X[::3], y[::3])
        schedule.maps.clear()
        begin, virtual = time.perf_counter(), schedule.now()
        model.fit(X, y)
        one, many = time.perf_counter() - begin, schedule.now() - virtual
        in_maps = sum(record[2] for record in schedule.maps.values())
        print(f"\n{title}: one thread {one:.2f}, {options.threads} threads {many:.2f}, ", end="")
        print(f"{one / many:.1f} times as fast; outside of maps {many - in_maps:.2f}")
        order = sorted(schedule.maps.items(), key=lambda item: -item[1][2])
        for place, (n_tasks, work, span) in order[: options.rows]:
            gain = work / max(span, 1e-9)
            print(f"{n_tasks:7d} tasks {work:8.2f} -> {span:5.2f} {gain:6.1f}  {place}", flush=True)


if __name__ == "__main__":
    main()
