"""How much memory learning from a stream will take, told before it is taken."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from slts.execution import free_disk

_LOGGER = logging.getLogger("slts")

# A batch of series as it is read: decoded columns, checked, put together, mapped.
_COPIES = 6
# Batches and blocks of results are cut to about this size.
CHUNK = 16 * 2**20
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
    batch_size
        Series read at a time.
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
    ) -> MemoryPlan:
        """Reckon with series of `n_channels` whose rows are mapped to `n_rows` channels.

        `sample` is the size of the `n_sample` series that were drawn, `item` that of a number of a
        result, and so on; all sizes are in bytes.
        """
        problems = 1 if n_classes == 2 else n_classes
        square = n_rows * n_rows
        of_sums = item * n_classes * square if learns_metric else 0
        of_similarities = item * n_landmarks * (problems if learns_metric else 1)
        per_tuning = item * n_landmarks * (square if learns_metric else 1) + 2 * of_sums
        series = 8.0 * n_channels * n_steps / n_series
        batch_size = int(min(4096, max(16, CHUNK / series)))
        widest = max(square if learns_metric else 0, n_landmarks)
        working = max(2500.0, 10.0 * widest, n_series ** (2.0 / 3.0))
        reading = (1 if remote else n_workers) * (
            _COPIES * batch_size * series + 2 * CHUNK + max(of_sums, of_similarities)
        )
        solving = 8.0 * 4 * problems * min(working, n_series) * widest
        fewest = min(n_series, max(FEWEST_TUNING, n_landmarks, 4 * n_classes))
        room = min(2 * TUNING_SHARE * limit, limit - 2 * sample - reading - solving)
        n_tuning = max(fewest, int(room / (2 * per_tuning)))
        n_tuning = min(n_sample, MOST_TUNING, n_tuning)
        rest = reading + solving + 2.0 * fewest * per_tuning
        return cls(
            limit=limit,
            sample=2 * sample,
            tuning=2.0 * n_tuning * per_tuning,
            reading=reading,
            solving=solving,
            held=float(n_series) * max(of_sums, of_similarities),
            n_tuning=n_tuning,
            batch_size=batch_size,
            remote=remote,
            enough=max(rest + 2 * sample, rest / (1 - 2 * SAMPLE_SHARE)),
        )

    @property
    def needed(self) -> float:
        """What must be in memory."""
        return self.sample + self.tuning + self.reading + self.solving

    @property
    def resident(self) -> float:
        """What is left for results; the rest of them goes to temporary files."""
        return max(0.0, _FULL * self.limit - self.needed)

    @property
    def spilled(self) -> float:
        """Bytes of temporary files."""
        return 0.0 if self.remote else max(0.0, self.held - self.resident)

    def check(self, owner: str) -> None:
        """Refuse a limit that is too small, or a disk."""
        if self.needed > self.limit:
            raise ValueError(
                f"The 'memory_limit' parameter of {owner} is too small: {amount(self.limit)}, and "
                f"at least {amount(1.05 * self.enough)} are needed ({self._parts()}). Raise it, or "
                f"take fewer n_landmarks."
            )
        if self.spilled > free_disk():
            raise OSError(
                f"{amount(self.spilled)} of temporary files are needed and the disk has "
                f"{amount(free_disk())}: set TMPDIR to a folder with more room, or raise "
                f"memory_limit"
            )

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
            "solving": self.solving,
        }
        return ", ".join(f"{name}: {amount(size)}" for name, size in named.items())


def amount(size: float) -> str:
    """Bytes in words.

    Examples
    --------
    >>> from slts.estimators.memory_plan import amount
    >>> amount(2_340_000_000), amount(45_600_000), amount(700)
    ('2.3 GB', '46 MB', '1 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 0.9995e9 else f"{max(1.0, size / 1e6):.0f} MB"
