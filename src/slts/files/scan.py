"""`SeriesScan`: series that are read again whenever they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from slts.bytesize import format_bytes
from slts.columns import Columns
from slts.errors import DataError
from slts.files.tables import read_batches, read_whole
from slts.series.dataset import Dataset, join
from slts.series.source import Part

# Number of series that are read at once if all are wanted.
_MANY = 1 << 14


class SeriesScan:
    """Series that are not kept in memory but read when needed, in batches or in parts.

    `scan_series` makes it. Iteration yields batches of 1024 series with labels.

    Attributes
    ----------
    name
        Name for messages.
    columns
        Role of each column; None for sources without named columns.
    """

    def __init__(
        self,
        name: str,
        columns: Columns | None = None,
        parts: Sequence[Part] = (),
        n_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.columns = columns
        self._parts = parts
        self._n_bytes = n_bytes

    @property
    def n_bytes(self) -> int | None:
        """Approximate memory of all series as float64, if it is known."""
        return self._n_bytes

    @cached_property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels, if they have names."""
        if self.columns is not None:
            return self.columns.channel_names
        return next(self.batches(labels=False, batch_size=1)).series.channel_names

    @property
    def requires_unique_ids(self) -> bool:
        """Whether series are assembled from rows, so that identifiers must not be repeated."""
        columns = self.columns
        return columns is not None and columns.id is not None and columns.long

    def parts(self, *, labels: bool = True) -> Sequence[Part]:
        """Return parts that can be read independently, also by other processes.

        Parameters
        ----------
        labels : bool
            Whether labels will be read. If not, files need not agree on them.

        Returns
        -------
        sequence of parts
            In order. Every series is in exactly one part; some parts may have no series.
        """
        del labels
        return self._parts

    def batches(self, *, labels: bool = True, batch_size: int = 1024) -> Iterator[Dataset]:
        """Read all series in batches.

        Parameters
        ----------
        labels : bool
            Whether labels are needed. If not, they may be missing.
        batch_size : int
            Largest number of series in a batch.

        Yields
        ------
        Dataset
            The next series.
        """
        if batch_size < 1:
            raise DataError(f"batch_size must be at least 1, got {batch_size}")
        parts: Sequence[Any] = self.parts(labels=labels)
        if self.requires_unique_ids and len(parts) > 1:
            found = read_batches(parts, labels=labels, batch_size=batch_size)
        else:
            found = chain.from_iterable(
                part.batches(labels=labels, batch_size=batch_size) for part in parts
            )
        is_empty = True
        for batch in found:
            is_empty = False
            yield batch
        if is_empty:
            raise DataError(f"{self.name} has no series")

    def read(self, *, labels: bool = True) -> Dataset:
        """Read all series into memory; in long form, rows may have any order."""
        if self.requires_unique_ids:
            tables: Sequence[Any] = self.parts(labels=labels)
            return join(read_whole(tables, labels=labels))
        return join(self.batches(labels=labels, batch_size=_MANY))

    def __iter__(self) -> Iterator[Dataset]:
        """Read all series in batches."""
        return self.batches()

    def __repr__(self) -> str:
        """Return a line with source, columns and size."""
        known = [self.name]
        if self.columns is not None:
            known.append(str(self.columns))
        if self.n_bytes is not None:
            known.append(f"about {format_bytes(self.n_bytes)}")
        return f"SeriesScan({'; '.join(known)})"
