"""How much memory learning from a stream will take, told before it is taken."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

from slts.execution import free_disk
from slts.learning.partitioned import rows_of_metric, rows_of_separator

_LOGGER = logging.getLogger("slts")

# A batch of series as it is read: decoded columns, checked, put together, mapped.
_COPIES = 6
# Batches and blocks of results are cut to about this size, smaller where readers are many.
_LEAST_CHUNK, _MOST_CHUNK = 2**20, 16 * 2**20
_READING_SHARE = 1 / 4
# Share of the limit for the problems that are solved at the same time, when nothing is read. Each
# has its rows twice, as they come and as they are held; the one that is worked on, four times more.
_SOLVING_SHARE = 2 / 5
_HELD_ROWS, _WORKED_ROWS = 2, 4
# Series that parameters are chosen on and solvers begin with; fewer do if memory is short.
MOST_TUNING, FEWEST_TUNING = 10_000, 500
# Shares of the limit for the sample and for its alignments; each is copied once while in use.
SAMPLE_SHARE, TUNING_SHARE = 1 / 12, 1 / 6
# Share of the limit that results may fill up: freed memory does not all go back at once.
_FULL = 0.85


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes that learning from a stream takes, by what they are for.

    Attributes
    ----------
    limit
        What may be taken.
    sample, tuning, reading, solving
        Series that were drawn; their alignments; batches that are read and aligned; the solvers.
    held
        Results for all series, at the stage that has most.
    n_tuning
        Series whose alignments are in memory.
    batch_size, chunk
        Series read at a time, and bytes of a block of results.
    at_once, rows_bytes
        Problems that are solved at the same time, and bytes of the rows of each.
    remote
        Whether `held` lies on other machines.
    enough
        A limit that will do: one that is larger lets the sample grow too.
    """

    limit: float
    sample: float
    tuning: float
    reading: float
    solving: float
    held: float
    n_tuning: int
    batch_size: int
    chunk: int
    at_once: int
    rows_bytes: float
    remote: bool
    enough: float

    @classmethod
    def make(
        cls,
        *,
        limit: float,
        n_series: int,
        n_steps: int,
        n_channels: int,
        n_rows: int,
        n_classes: int,
        n_landmarks: int,
        n_sample: int,
        sample: float,
        item: int,
        learns_metric: bool,
        n_workers: int,
        remote: bool,
        n_extra: int = 0,
    ) -> MemoryPlan:
        """Reckon with series of `n_channels` whose rows are mapped to `n_rows` channels.

        `sample` is the size of the `n_sample` series that were drawn and of `n_extra` more of rare
        classes, `item` the size of a number of a result; all sizes are in bytes.
        """
        problems = 1 if n_classes == 2 else n_classes
        square = n_rows * n_rows
        of_sums = item * n_classes * square if learns_metric else 0
        of_similarities = item * n_landmarks * (problems if learns_metric else 1)
        of_result = max(of_sums, of_similarities)
        per_tuning = item * n_landmarks * (square if learns_metric else 1) + 2 * of_sums
        series = 8.0 * n_channels * n_steps / n_series
        readers = 1 if remote else n_workers
        fewest = min(n_series, max(FEWEST_TUNING, n_landmarks, 4 * n_classes))

        def under(limit: float, sample: float, n_sample: int, enough: float) -> MemoryPlan:
            chunk = limit * _READING_SHARE / readers / (_COPIES + 2)
            chunk = min(_MOST_CHUNK, max(_LEAST_CHUNK, chunk))
            batch_size = int(min(4096, max(1, chunk / series)))
            batch = min(max(chunk, series), n_series * series)
            block = min(max(chunk, of_result), n_series * of_result)
            reading = readers * (_COPIES * batch + 2 * block)
            for_solving = limit * _SOLVING_SHARE
            most = for_solving / (_HELD_ROWS + _WORKED_ROWS)
            rows = 8.0 * n_landmarks * rows_of_separator(n_series, n_landmarks, most)
            if learns_metric:
                rows = max(rows, 8.0 * square * rows_of_metric(n_series, square, most))
            at_once = int((for_solving / rows - _WORKED_ROWS) / _HELD_ROWS)
            at_once = min(problems, max(1, at_once))
            solving = (_HELD_ROWS * at_once + _WORKED_ROWS) * rows
            room = min(2 * TUNING_SHARE * limit, limit - 2 * sample - max(reading, solving))
            n_tuning = max(fewest, int(room / (2 * per_tuning)) - n_extra)
            n_tuning = min(n_sample, MOST_TUNING, n_tuning)
            return cls(
                limit=limit,
                sample=2 * sample,
                tuning=2.0 * (n_tuning + n_extra) * per_tuning,
                reading=reading,
                solving=solving,
                held=float(n_series) * of_result,
                n_tuning=n_tuning,
                batch_size=batch_size,
                chunk=int(chunk),
                at_once=at_once,
                rows_bytes=most,
                remote=remote,
                enough=enough,
            )

        # A larger limit lets the sample grow too.
        enough = 1e6
        while under(enough, max(sample, enough * SAMPLE_SHARE), n_series, enough).needed > enough:
            enough *= 1.1
        return under(limit, sample, n_sample, enough)

    @property
    def needed(self) -> float:
        """What must be in memory; nothing is read while problems are solved."""
        return self.sample + self.tuning + max(self.reading, self.solving)

    @property
    def resident(self) -> float:
        """What is left for results; the rest of them goes to temporary files."""
        return max(0.0, _FULL * self.limit - self.needed)

    @property
    def spilled(self) -> float:
        """Bytes of temporary files."""
        return 0.0 if self.remote else max(0.0, self.held - self.resident)

    def check(self, owner: str, whole: float = math.inf) -> None:
        """Refuse a limit that is too small, or a disk; with `whole` all would be in memory."""
        if self.needed > self.limit:
            enough = min(1.1 * self.enough, whole)
            raise ValueError(
                f"The 'memory_limit' parameter of {owner} is too small: {amount(self.limit)}, and "
                f"{amount(math.ceil(enough / 1e6) * 1e6)} would do ({self._parts()}). "
                f"Raise it{self._or_else()}."
            )
        if self.spilled > free_disk():
            raise OSError(
                f"{amount(self.spilled)} of temporary files are needed and the disk has "
                f"{amount(free_disk())}: set TMPDIR to a folder with more room, or raise "
                f"memory_limit"
            )

    def _or_else(self) -> str:
        if self.reading > max(self.tuning, self.sample):
            return ", or take fewer threads (n_jobs)"
        why = ": they and some series of every class must be in memory"
        return f", or take fewer n_landmarks{why if self.sample > self.tuning else ''}"

    def tell(self) -> None:
        """Log what will be taken (logger "slts", level INFO)."""
        _LOGGER.info("%s", self)

    def __str__(self) -> str:
        """Say it in one line."""
        if self.remote:
            where = f"results: {amount(self.held)} on the workers"
        else:
            where = f"results: {amount(min(self.held, self.resident))}"
            if self.spilled:
                where += f", and {amount(self.spilled)} in temporary files"
        total = self.needed + (0.0 if self.remote else min(self.held, self.resident))
        return f"memory: about {amount(total)} of {amount(self.limit)} ({self._parts()}, {where})"

    def _parts(self) -> str:
        named = {
            "sample": self.sample,
            "its alignments": self.tuning,
            "reading": self.reading,
            "then solving": self.solving,
        }
        return ", ".join(f"{name}: {amount(size)}" for name, size in named.items())


def amount(size: float) -> str:
    """Bytes in words.

    Examples
    --------
    >>> from slts.estimators.memory_plan import amount
    >>> amount(2_340_000_000), amount(45_600_000), amount(7_000), amount(2)
    ('2.3 GB', '46 MB', '7 kB', '2 bytes')
    """
    for unit, name, digits in ((1e9, "GB", 1), (1e6, "MB", 0), (1e3, "kB", 0)):
        if size >= 0.9995 * unit:
            return f"{size / unit:.{digits}f} {name}"
    return f"{size:.0f} bytes"
