"""Metrics, similarities under them, and what is solved with these, side by side in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from slts._typing import FloatArray
from slts.execution import Progress, StepQueue

Item = TypeVar("Item")

# Metrics whose similarities are computed together, at least.
_FEWEST_AT_ONCE = 3


def metrics_at_once(n_channels: int) -> int:
    """Return how many metrics T is multiplied with at once.

    Similarities are an eighth as large as T then, or those of a few metrics. The number of threads
    does not matter, so results have the same bits.
    """
    return max(n_channels**2 // 8, _FEWEST_AT_ONCE)


class MetricPipeline(Generic[Item]):
    """Calls a task with the similarities under each metric of some paths, in threads.

    Steps that learn metrics run before all others. A thread that finds none computes similarities
    or runs a task, while others learn metrics. Similarities are computed for one group of metrics
    at a time, and only if no task waits for a thread, so that few of them are in memory. The last
    metrics, whose tasks take longest, come first.

    Parameters
    ----------
    paths, size
        Metrics as they become known, and their number in each path.
    n_channels
        Number of rows and columns of a metric.
    projection
        Returns arrays for the similarities under some metrics, and a function that fills a block of
        their rows.
    blocks
        All blocks of rows.
    task
        Called with the number of the path, that of the metric in it, and the similarities.
    """

    # Functions inside a function that refer to each other would keep the alignments in memory.

    def __init__(
        self,
        paths: Sequence[Iterator[FloatArray]],
        size: int,
        n_channels: int,
        projection: Callable[[FloatArray], tuple[list[FloatArray], Callable[[slice], None]]],
        blocks: Sequence[slice],
        task: Callable[[int, int, FloatArray], Item],
    ) -> None:
        self._paths, self._projection, self._blocks = paths, projection, blocks
        self._task, self._found = task, dict[int, Item]()
        # The first metrics of all paths, then the second ones.
        self._metrics = np.empty((len(paths) * size, n_channels, n_channels))
        self._step = metrics_at_once(n_channels)
        firsts = range(0, len(self._metrics), self._step)
        # How many metrics of each group are not known yet; groups that wait for their turn.
        self._missing = [len(self._group(first)) for first in firsts]
        self._ready, self._is_computing = list[int](), False
        self._steps, self._lock = StepQueue(), threading.Lock()

    def run(self, n_jobs: int | None, progress: Progress) -> list[Item]:
        """Return the results: those of the first metrics of all paths, then of the second ones."""
        for number in reversed(range(len(self._paths))):
            self._steps.put(partial(self._learn, number))
        total = len(self._metrics)
        self._steps.run(n_jobs, lambda: progress(len(self._found), total))
        progress(total, total)
        return [self._found[number] for number in range(total)]

    def _group(self, first: int) -> FloatArray:
        return self._metrics[first : first + self._step]

    def _learn(self, number: int) -> None:
        metric = next(self._paths[number % len(self._paths)], None)
        if metric is None:
            return
        self._metrics[number], group = metric, number // self._step
        with self._lock:
            self._missing[group] -= 1
            if not self._missing[group]:
                self._ready.append(group)
                if not self._is_computing:
                    self._steps.put(self._begin, last=True)
                    self._is_computing = True
        self._steps.put(partial(self._learn, number + len(self._paths)))

    def _begin(self) -> None:
        """Compute the similarities under the metrics of a group, in blocks of series."""
        with self._lock:
            self._is_computing = bool(self._ready)
            if not self._is_computing:
                return
            first = self._ready.pop() * self._step
        K, project = self._projection(self._group(first))
        blocks_left = list(self._blocks)
        for rows in self._blocks:
            self._steps.put(partial(self._fill, first, K, blocks_left, partial(project, rows)))

    def _fill(
        self, first: int, K: list[FloatArray], blocks_left: list[slice], project: Callable[[], None]
    ) -> None:
        project()
        with self._lock:
            blocks_left.pop()
            if blocks_left:
                return
        while K:
            self._steps.put(partial(self._solve, first + len(K) - 1, K.pop()))
        # Only now: another thread must not begin the next group before it finds these steps.
        self._steps.put(self._begin, last=True)

    def _solve(self, number: int, K: FloatArray) -> None:
        strength, path = divmod(number, len(self._paths))
        self._found[number] = self._task(path, strength, K)
