"""Estimate the memory that learning over landmarks needs, before it is used."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

import numpy as np

from slts.execution import TaskRunner, free_disk
from slts.learning import MetricProblem, SeparatorProblem, rows_in_memory
from slts.quantities import format_bytes
from slts.training.metric_pipeline import metrics_at_once

_LOGGER = logging.getLogger("slts")

# Copies of a batch of series while it is read: decoded, checked, joined, mapped to rows.
_COPIES_IN_MEMORY = 6
# Bytes of a batch and of a block of results; smaller if many threads read.
_LEAST_CHUNK, _MOST_CHUNK = 2**20, 16 * 2**20
_READING_SHARE = 1 / 4
# Share of the limit for problems that are solved at the same time. A problem holds its rows twice;
# the one that is being solved needs them four more times.
_SOLVING_SHARE = 2 / 5
_HELD_ROWS, _WORKING_ROWS = 2, 4
# Copies of its rows that a problem makes if all of them are in memory: chosen rows, and scaled.
_COPIES_SOLVED = 2
# Series that parameters are chosen on and solvers start from.
MOST_TUNING, FEWEST_TUNING = 10_000, 500
# Shares of the limit for the sample and its alignments; both are copied once.
SAMPLE_SHARE, TUNING_SHARE = 1 / 12, 1 / 6
# Share of the limit that results may fill: freed memory is not returned at once.
_FULL = 0.85


@dataclass(frozen=True)
class LandmarkWork:
    """The numbers that decide how much memory learning needs.

    Attributes
    ----------
    n_series, n_steps, n_channels
        Size of the source.
    row_width
        Channels of the rows that are aligned.
    n_classes, n_landmarks
        Number of classes and of landmarks.
    n_sample, n_extra, sample_bytes
        Uniform sample, series that top up rare classes, and the bytes of both.
    complete
        Whether the sample holds all series.
    item
        Bytes of a number of a result.
    learns_metric
        Whether products are kept, or similarities alone.
    n_candidates
        Number of parameters whose decisions for held-out series are compared.
    n_solvers
        Threads that solve problems in memory.
    """

    n_series: int
    n_steps: int
    n_channels: int
    row_width: int
    n_classes: int
    n_landmarks: int
    n_sample: int
    n_extra: int
    sample_bytes: float
    complete: bool
    item: int
    learns_metric: bool
    n_candidates: int = 0
    n_solvers: int = 1

    @property
    def _square(self) -> int:
        return self.row_width**2

    @property
    def problems(self) -> int:
        """Number of one-vs-rest problems."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def _sums(self) -> int:
        """Bytes of the class sums of a series."""
        return self.item * self.n_classes * self._square if self.learns_metric else 0

    @property
    def per_result(self) -> int:
        """Largest number of bytes kept per series if alignments are computed in parts."""
        problems = self.problems if self.learns_metric else 1
        return max(self._sums, self.item * self.n_landmarks * problems)

    @property
    def _held(self) -> int:
        """Bytes of the alignments of a series in memory."""
        numbers = self.n_landmarks * (self._square if self.learns_metric else 1)
        return self.item * numbers + 2 * self._sums

    def _solved(self, n_problems: float) -> float:
        """Bytes of the similarities of a series from which problems in memory are solved."""
        # Every thread has copies of its rows.
        numbers = _COPIES_SOLVED * min(self.n_solvers, n_problems)
        if self.learns_metric:
            # Those of some metrics are computed at once, while other threads solve the last
            # problems of those before.
            numbers += min(n_problems, metrics_at_once(self.row_width) + self.n_solvers - 1)
        return 8.0 * self.n_landmarks * numbers

    @property
    def _searched(self) -> float:
        """Bytes of what parameters are chosen from, for each series."""
        return self._solved(np.inf) + 8 * self.problems * self.n_candidates

    @property
    def per_tuning(self) -> float:
        """Bytes of the alignments of a series in memory, and of the choice of parameters."""
        return self._held + self._searched

    @property
    def in_memory(self) -> float:
        """Bytes if the alignments of all series are held in memory."""
        n, searched = float(self.n_sample), min(self.n_sample, MOST_TUNING)
        # The series that parameters are chosen on are copied, unless these are all.
        copied = self._held if searched < n else 0
        most = max(n * self._solved(self.problems), searched * (self._searched + copied))
        return 2 * self.sample_bytes + n * self._held + most

    @property
    def enough_for_all(self) -> float:
        """A limit with which the sample holds all series, and all alignments are in memory."""
        if self.complete:
            return self.in_memory
        series = 8.0 * self.n_channels * self.n_steps
        every = replace(self, n_sample=self.n_series, sample_bytes=series)
        return max(series / SAMPLE_SHARE, every.in_memory)

    def row_bytes(self, most: float) -> float:
        """Bytes of the rows of one problem in memory, at most `most` if that is enough."""
        n, width = self.n_series, self.n_landmarks
        separator = 8.0 * width * rows_in_memory(SeparatorProblem, n, width, most)
        if not self.learns_metric:
            return separator
        width = self._square
        return max(separator, 8.0 * width * rows_in_memory(MetricProblem, n, width, most))


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes that learning uses if alignments lie in parts, by purpose.

    Attributes
    ----------
    limit
        Bytes that may be used.
    sample, tuning, reading, solving
        The sample; its alignments; batches that are read and aligned; the solvers.
    kept
        Results for all series, at the stage that has most.
    n_tuning
        Number of series whose alignments are in memory.
    batch_size, chunk
        Series read at a time, and bytes of a block of results.
    at_once, rows_bytes
        Problems solved at the same time, and bytes of the rows of each.
    remote
        Whether `kept` lies on other machines.
    enough
        A limit that is sufficient.
    """

    limit: float
    sample: float
    tuning: float
    reading: float
    solving: float
    kept: float
    n_tuning: int
    batch_size: int
    chunk: int
    at_once: int
    rows_bytes: float
    remote: bool
    enough: float

    @classmethod
    def make(cls, work: LandmarkWork, limit: float, runner: TaskRunner) -> MemoryPlan | None:
        """Divide the limit; return None if the alignments of all series fit in memory."""
        if work.complete and work.in_memory <= limit:
            return None
        readers = 1 if runner.is_remote else runner.n_workers
        plan = cls._within(work, limit, work.sample_bytes, work.n_sample, readers, runner.is_remote)
        if plan.needed <= limit:
            return plan
        # With a larger limit the sample grows too.
        enough = 1e6
        while True:
            sample = max(work.sample_bytes, enough * SAMPLE_SHARE)
            larger = cls._within(work, enough, sample, work.n_series, readers, runner.is_remote)
            if larger.needed <= enough:
                break
            enough *= 1.1
        return replace(plan, enough=min(1.1 * enough, work.enough_for_all))

    @classmethod
    def _within(
        cls,
        work: LandmarkWork,
        limit: float,
        sample: float,
        n_sample: int,
        readers: int,
        remote: bool,
    ) -> MemoryPlan:
        series = 8.0 * work.n_channels * work.n_steps / work.n_series
        chunk = limit * _READING_SHARE / readers / (_COPIES_IN_MEMORY + 2)
        chunk = min(_MOST_CHUNK, max(_LEAST_CHUNK, chunk))
        batch = min(max(chunk, series), work.n_series * series)
        block = min(max(chunk, work.per_result), work.n_series * work.per_result)
        reading = readers * (_COPIES_IN_MEMORY * batch + 2 * block)
        for_solving = limit * _SOLVING_SHARE
        most_rows = for_solving / (_HELD_ROWS + _WORKING_ROWS)
        rows = work.row_bytes(most_rows)
        at_once = int((for_solving / rows - _WORKING_ROWS) / _HELD_ROWS)
        at_once = min(work.problems, max(1, at_once))
        solving = (_HELD_ROWS * at_once + _WORKING_ROWS) * rows
        fewest = min(work.n_series, max(FEWEST_TUNING, work.n_landmarks, 4 * work.n_classes))
        room = min(2 * TUNING_SHARE * limit, limit - 2 * sample - max(reading, solving))
        n_tuning = max(fewest, int(room / (2 * work.per_tuning)) - work.n_extra)
        n_tuning = min(n_sample, MOST_TUNING, n_tuning)
        return cls(
            limit=limit,
            sample=2 * sample,
            tuning=2.0 * (n_tuning + work.n_extra) * work.per_tuning,
            reading=reading,
            solving=solving,
            kept=float(work.n_series) * work.per_result,
            n_tuning=n_tuning,
            batch_size=int(min(4096, max(1, chunk / series))),
            chunk=int(chunk),
            at_once=at_once,
            rows_bytes=most_rows,
            remote=remote,
            enough=limit,
        )

    @property
    def needed(self) -> float:
        """Bytes that must be in memory; nothing is read while problems are solved."""
        return self.sample + self.tuning + max(self.reading, self.solving)

    @property
    def resident(self) -> float:
        """Bytes left for results; the rest of them goes to temporary files."""
        return max(0.0, _FULL * self.limit - self.needed)

    @property
    def spilled(self) -> float:
        """Bytes of temporary files."""
        return 0.0 if self.remote else max(0.0, self.kept - self.resident)

    def check(self, owner: str) -> None:
        """Raise an error if the memory or the disk is too small; log the plan otherwise."""
        if self.needed > self.limit:
            raise ValueError(
                f"The 'memory_limit' parameter of {owner} is too small: "
                f"{format_bytes(self.limit)}. A limit of "
                f"{format_bytes(math.ceil(self.enough / 1e6) * 1e6)} is sufficient "
                f"({self._purposes()}). Raise it{self._alternative()}."
            )
        if self.spilled > free_disk():
            raise OSError(
                f"Temporary files need {format_bytes(self.spilled)}, but the disk has "
                f"{format_bytes(free_disk())} left: set TMPDIR to a folder with more space, or "
                f"raise memory_limit"
            )
        _LOGGER.info("%s", self)

    def _alternative(self) -> str:
        if self.reading > max(self.tuning, self.sample):
            return ", or use fewer threads (n_jobs)"
        why = ": landmarks and some series of every class must be in memory"
        return f", or lower n_landmarks{why if self.sample > self.tuning else ''}"

    def __str__(self) -> str:
        """Describe the plan in one line."""
        if self.remote:
            where = f"results: {format_bytes(self.kept)} on the workers"
        else:
            where = f"results: {format_bytes(min(self.kept, self.resident))}"
            if self.spilled:
                where += f", and {format_bytes(self.spilled)} in temporary files"
        total = self.needed + (0.0 if self.remote else min(self.kept, self.resident))
        return (
            f"memory: about {format_bytes(total)} of {format_bytes(self.limit)} "
            f"({self._purposes()}, {where})"
        )

    def _purposes(self) -> str:
        named = {
            "sample": self.sample,
            "its alignments": self.tuning,
            "reading": self.reading,
            "then solving": self.solving,
        }
        return ", ".join(f"{name}: {format_bytes(size)}" for name, size in named.items())
