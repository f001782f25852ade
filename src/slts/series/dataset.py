"""`Dataset`: series with labels; `SeriesScan`: series in parts; `Columns`: roles of columns."""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.quantities import format_bytes, list_first
from slts.series.batch import SeriesBatch

# Most channels that a message lists, to be pasted.
_MOST_LISTED = 12
# Number of series that are read at once if all are wanted.
_MANY = 1 << 14


@dataclass(frozen=True)
class Columns:
    """The role of each column of a table.

    Attributes
    ----------
    channels
        Columns with the values, in the order of the channels; in wide form, of the steps.
    id
        Column that identifies the series; None if every row is one series without a name. The names
        of several columns are joined.
    time
        Column that orders the steps of a series; None keeps the order of the rows.
    label, groups
        Columns with the label and with the group of a series, if there are any.
    form
        "long": every row is one step. "wide": every row is a series with one channel, and every
        column a step. "lists": every row is a series, with one list per channel.
    every
        Interval of the time grid on which series are resampled, such as 20ms.
    time_form
        How the time is read if it is text; see `slts.tables.rows`.
    id_columns
        The columns that identify the series, if they are several.
    ignored
        Columns without a role.
    has_header
        Whether the columns have names; if not, they are numbered.

    Examples
    --------
    >>> from slts.tables import Columns
    >>> print(Columns(("c1", "c2", "c3"), id="recording", time="t", label="speaker"))
    id=recording, time=t, label=speaker, channels=c1..c3
    """

    channels: tuple[str, ...]
    id: str | None = None
    time: str | None = None
    label: str | None = None
    groups: str | None = None
    form: Literal["long", "wide", "lists"] = "long"
    every: str | None = None
    time_form: str | None = None
    id_columns: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    has_header: bool = True

    @property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels; the one channel in wide form has none."""
        if not self.has_header or self.form == "wide":
            return None
        return tuple(unicodedata.normalize("NFC", name) for name in self.channels)

    def used(self, *, labels: bool) -> list[str]:
        """Return the columns to read; labels and groups only if labels are needed."""
        names = [*(self.id_columns or (self.id,)), self.time]
        names += [self.label, self.groups] if labels else []
        return [*dict.fromkeys(n for n in (*names, *self.channels) if n is not None)]

    def __str__(self) -> str:
        time = self.time if self.every is None else f"{self.time} (every {self.every})"
        if self.form == "long" and time is None:
            time = "none (steps are in the order of the rows)"
        roles = {"id": self.id, "time": time, "label": self.label, "groups": self.groups}
        texts = [f"{role}={name}" for role, name in roles.items() if name is not None]
        if self.form == "wide":
            texts.append(f"one series per row, steps={_listed(self.channels)}")
        else:
            texts.append(f"channels={_listed(self.channels)}")
        if self.ignored:
            texts.append(f"not used: {_listed([name or '(no name)' for name in self.ignored])}")
        return ", ".join(texts)


def call(role: str, *names: str) -> str:
    """Return how to name columns in Python and, in brackets, on the command line.

    Many channels are cut.

    Examples
    --------
    >>> from slts.series.dataset import call
    >>> call("label", "gait"), call("id", "a", "b c")
    ("label='gait' (--label gait)", "id=['a', 'b c'] (--id a --id 'b c')")
    """
    if role == "channels" and len(names) > _MOST_LISTED:
        return "channels=[...] (--channels ...)"
    value = repr(names[0]) if len(names) == 1 else repr(list(names))
    options = [f"--{role} {shlex.quote(name)}" for name in names]
    if role == "channels":
        options = [f"--channels {shlex.quote(','.join(names))}"]
    return f"{role}={value} ({' '.join(options)})"


def _listed(names: Sequence[str]) -> str:
    return list_first(names, separator=",")


@dataclass(frozen=True, eq=False)
class Dataset:
    """The series of a source, or a batch of them.

    Attributes
    ----------
    series
        The series.
    labels
        One label per series, or None. Labels from text files are text; other files keep the type
        they store.
    ids
        One identifier per series, or None if the source has none.
    source
        Name of the source.
    columns
        The role of each column; None for sources without named columns.
    notes
        Changes made to the data while reading, such as sorting by time.
    share
        Share of the source that has been read, from 0 to 1; None if it is unknown.
    groups
        One group per series, such as the subject, or None. They are read with the labels.
    """

    series: SeriesBatch
    labels: AnyArray | None = None
    ids: AnyArray | None = None
    source: str = ""
    columns: Columns | None = None
    notes: tuple[str, ...] = ()
    share: float | None = None
    groups: AnyArray | None = None

    def __len__(self) -> int:
        """Return the number of series."""
        return len(self.series)

    def __getitem__(self, key: slice | AnyArray) -> Dataset:
        """Return the series of a slice or a mask, with all that belongs to them."""
        return replace(
            self,
            series=self.series[key],
            labels=None if self.labels is None else self.labels[key],
            ids=None if self.ids is None else self.ids[key],
            groups=None if self.groups is None else self.groups[key],
        )

    @property
    def name(self) -> str:
        """Name for messages, as of other parts of a scan."""
        return self.source

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Yield some series at a time."""
        whole = self if labels else replace(self, labels=None, groups=None)
        for begin in range(0, len(self), batch_size):
            yield whole[begin : begin + batch_size]


def join(batches: Iterable[Dataset]) -> Dataset:
    """Concatenate batches of one source, at least one."""
    every = list(batches)
    if not every:
        raise DataError("there are no series to read")
    if len(every) == 1:
        return every[0]
    return replace(
        every[-1],
        series=SeriesBatch.concatenate(batch.series for batch in every),
        labels=_concatenate([batch.labels for batch in every]),
        ids=_concatenate([batch.ids for batch in every]),
        groups=_concatenate([batch.groups for batch in every]),
        notes=tuple(dict.fromkeys(note for batch in every for note in batch.notes)),
    )


def _concatenate(arrays: Sequence[AnyArray | None]) -> AnyArray | None:
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def first_missing(values: Sequence[Any]) -> int | None:
    """Return the position of the first missing value: None, NaN or empty text."""
    for position, value in enumerate(values):
        is_nan = isinstance(value, float | np.floating) and np.isnan(value)
        if value is None or is_nan or (isinstance(value, str) and value == ""):
            return position
    return None


# -- Series in parts


class Part(Protocol):
    """A share of a source; small and picklable, so that it can be read by a worker."""

    @property
    def name(self) -> str:
        """Name for messages."""

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read the series; every series belongs to one part only."""


class SeriesScan:
    """Series that are not kept in memory but read when needed, in batches or in parts.

    `scan_series` makes it. Iteration yields batches of 1024 series with labels.

    Attributes
    ----------
    name
        Name for messages.
    columns
        Role of each column; None for sources without named columns.
    n_bytes
        Approximate memory of all series as float64; None if it is not known.
    requires_unique_ids
        Whether identifiers must not be repeated.
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
        self.n_bytes = n_bytes
        # Series are assembled from rows: a series that begins twice would be counted twice.
        self.requires_unique_ids = columns is not None and columns.id is not None
        self._parts = parts

    @cached_property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels, if they have names."""
        if self.columns is not None:
            return self.columns.channel_names
        return next(self.batches(labels=False, batch_size=1)).series.channel_names

    def parts(self, *, labels: bool = True) -> Sequence[Part]:
        """Return parts that can be read independently, also by other processes.

        Parameters
        ----------
        labels : bool
            Whether labels will be read. If not, files need not agree on them.

        Returns
        -------
        sequence of parts
            In order, whatever reads them. Every series is in exactly one part; some may have none.
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
        seen, is_empty = set[object](), True
        for part in self.parts(labels=labels):
            for batch in part.batches(labels=labels, batch_size=batch_size):
                for id in [] if batch.ids is None else batch.ids.tolist():
                    if id in seen and self.columns is not None:
                        raise DataError(f"{part.name}: {_repeated(id, self.columns)}")
                    seen.add(id)
                is_empty = False
                yield batch
        if is_empty:
            raise DataError(f"{self.name} has no series")

    def read(self, *, labels: bool = True) -> Dataset:
        """Read all series into memory."""
        return join(self.batches(labels=labels, batch_size=_MANY))

    def __iter__(self) -> Iterator[Dataset]:
        """Read all series in batches."""
        return self.batches()

    def __repr__(self) -> str:
        """Return a line with source, columns and size."""
        texts = [self.name]
        if self.columns is not None:
            texts.append(str(self.columns))
        if self.n_bytes is not None:
            texts.append(f"about {format_bytes(self.n_bytes)}")
        return f"SeriesScan({'; '.join(texts)})"


def _repeated(id: object, columns: Columns) -> str:
    """Return what is wrong if an identifier is repeated."""
    if columns.form == "long":
        return (
            f"series {id!r} is repeated after other series. All rows of a series must be "
            f"contiguous in a large table: sort it by {columns.id!r}"
        )
    return (
        f"series {id!r} is repeated, but every row is a series. If {columns.id!r} does not "
        f"identify a series, name all columns that do: {call('id', str(columns.id), '...')}"
    )
