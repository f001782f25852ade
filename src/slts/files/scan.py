"""`scan_series`: a source of series of which nothing is kept, read again whenever it is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.files.columns import Wanted
from slts.files.dask_collections import DaskOrigin, is_collection
from slts.files.dataset import Columns, Dataset, join
from slts.files.forms import Place, understood
from slts.files.long_form import SeenIds
from slts.files.opening import STDIN
from slts.files.row_groups import ParquetOrigin
from slts.files.sources import absolute, is_list_of_paths
from slts.series.preview import size_text
from slts.series.source import Part

__all__ = ["SeriesScan", "scan_series"]


class DataPart(Part, Protocol):
    """A part that gives data sets."""

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read the series; there may be none."""


class _Origin(Protocol):
    """Where the series of a scan come from."""

    @property
    def name(self) -> str:
        """What to call it in messages."""

    @property
    def columns(self) -> Columns | None:
        """What the columns are, of a table."""

    @property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels, if they have any."""

    @property
    def n_bytes(self) -> int | None:
        """About how much memory all series would take."""

    @property
    def in_rows(self) -> bool:
        """Whether series are put together from rows, so that none may come back."""

    def parts(self, *, labels: bool) -> Sequence[DataPart]:
        """The parts, in order."""


class SeriesScan:
    """Series that stay where they are until they are read, batch by batch, part by part.

    Made by `scan_series`; it implements `slts.series.source.SeriesSource`. Iteration gives batches
    of 1024 series, with labels.
    """

    def __init__(self, origin: _Origin) -> None:
        self._origin = origin

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self._origin.name

    @property
    def columns(self) -> Columns | None:
        """Which column was taken for what; None for what is no table."""
        return self._origin.columns

    @property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels, if they have any."""
        return self._origin.channel_names

    @property
    def n_bytes(self) -> int | None:
        """About how much memory all series would take as float64, if that can be told."""
        return self._origin.n_bytes

    @property
    def in_rows(self) -> bool:
        """Whether series are put together from rows, so that no identifier may come back."""
        return self._origin.in_rows

    def parts(self, *, labels: bool = True) -> list[DataPart]:
        """Cut the source into parts that can be read apart, on other processes too.

        Parameters
        ----------
        labels : bool
            Whether labels will be read; if not, files need not agree on them.

        Returns
        -------
        list of parts
            In order. Every series is in one of them; some may hold none.
        """
        return list(self._origin.parts(labels=labels))

    def batches(self, *, labels: bool = True, batch_size: int = 1024) -> Iterator[Dataset]:
        """Read all series batch by batch.

        Parameters
        ----------
        labels : bool
            Whether labels are wanted. If not, they may be missing.
        batch_size : int
            Series in a batch, at most.

        Yields
        ------
        Dataset
            The next series.
        """
        if batch_size < 1:
            raise DataError(f"batch_size must be at least 1, got {batch_size}")
        parts = self.parts(labels=labels)
        seen, count = SeenIds(), 0
        for part in parts:
            for found in part.batches(labels=labels, batch_size=batch_size):
                if len(parts) > 1 and found.ids is None:
                    found = replace(found, ids=np.arange(count, count + len(found)))
                elif len(parts) > 1 and self._origin.in_rows and found.ids is not None:
                    _refuse_known(seen, found.ids, part.name)
                count += len(found)
                yield found
        if count == 0:
            raise DataError(f"{self.name} has no rows, or no series")

    def read(self, *, labels: bool = True) -> Dataset:
        """Read all series into memory."""
        return join(self.batches(labels=labels, batch_size=1 << 14))

    def __iter__(self) -> Iterator[Dataset]:
        """Read all series batch by batch."""
        return self.batches()

    def __repr__(self) -> str:
        """Return a line with source, columns and size."""
        known = [self.name]
        if self.columns is not None:
            known.append(str(self.columns))
        if self.n_bytes is not None:
            known.append(f"about {size_text(self.n_bytes)}")
        return f"SeriesScan({'; '.join(known)})"


def _refuse_known(seen: SeenIds, ids: AnyArray, where: str) -> None:
    again = seen.add(ids)
    if again is not None:
        raise DataError(
            f"{where}: series {ids.tolist()[again]!r} comes back after other series; rows of a "
            f"series must stand together, and in one partition. Sort the rows by their id"
        )


def scan_series(
    source: object,
    *,
    id: str | None = None,
    time: str | None = None,
    label: str | None = None,
    channels: str | Sequence[str] | None = None,
    expect: Sequence[str] | None = None,
    classes: Sequence[object] | None = None,
) -> SeriesScan:
    """Look at a source of series without reading it: for data larger than memory.

    Of Parquet, parts can be read apart from each other; rows of a series in long form must stand
    together.

    Parameters
    ----------
    source : str, path, list of paths or dask collection
        What `read_series` takes, except standard input. Or a dask DataFrame in long form, with all
        rows of a series in one partition; or a dask Bag of series of shape (channels, time), or of
        pairs of series and label.
    id, time, label, channels, expect, classes
        As for `read_series`.

    Returns
    -------
    SeriesScan
        The source, to be read as often as needed.

    Raises
    ------
    DataError
        If columns are missing or cannot be told apart in the first rows.

    See Also
    --------
    read_series : Read all of a file.
    iter_series : Read a file once, batch by batch.
    """
    wanted = Wanted(id, time, label, channels, expect, classes)
    if is_collection(source):
        return SeriesScan(DaskOrigin(source, wanted))
    if not isinstance(source, str | os.PathLike) and not is_list_of_paths(source):
        raise DataError(
            f"source must be a path, a list of paths, a dask DataFrame or a dask Bag, got "
            f"{type(source).__name__}"
        )
    if isinstance(source, str | os.PathLike) and os.fspath(source) == STDIN:
        raise DataError("source is standard input, which can be read only once: save it to a file")
    place = Place(source, wanted)
    columns, lists = None, False
    if place.is_table:
        with place.table() as table:
            columns, lists = understood(table, wanted)
    if place.parquet and columns is not None:
        return SeriesScan(ParquetOrigin(place.source, place.parquet, columns, lists))
    name = place.source.name
    return SeriesScan(_FileOrigin(_FilePart(name, absolute(name), wanted, columns, lists)))


@dataclass(frozen=True)
class _FilePart:
    """All of a source that is read from front to back."""

    name: str
    path: str
    wanted: Wanted
    columns: Columns | None
    lists: bool

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read the source once more."""
        return Place(self.path, self.wanted).batches(
            labels=labels, batch_size=batch_size, columns=self.columns, lists=self.lists
        )


class _FileOrigin:
    """A source in one part."""

    def __init__(self, part: _FilePart) -> None:
        self.name = part.name
        self.in_rows = not part.lists
        self._part = part
        self._place = Place(part.path, part.wanted)

    @cached_property
    def _first(self) -> Dataset:
        return next(self._part.batches(labels=False, batch_size=1))

    @property
    def columns(self) -> Columns | None:
        """What the columns are."""
        return self._first.columns if self._place.is_folder else self._part.columns

    @property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels."""
        columns = self._part.columns
        return self._first.series.channel_names if columns is None else columns.channels

    @property
    def n_bytes(self) -> int | None:
        """Size on disk."""
        return self._place.n_bytes()

    def parts(self, *, labels: bool) -> list[_FilePart]:
        """The one part."""
        del labels
        return [self._part]
