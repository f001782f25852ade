"""`Dataset`: series with their labels, and `Columns`: the columns of the table they come from."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.quantities import list_first
from slts.series.batch import SeriesBatch


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
    def wide(self) -> bool:
        """Whether every row is a series with one channel."""
        return self.form == "wide"

    @property
    def long(self) -> bool:
        """Whether every row is one step."""
        return self.form == "long"

    @property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels; the one channel in wide form has none."""
        return self.channels if self.has_header and not self.wide else None

    def __str__(self) -> str:
        time = self.time if self.every is None else f"{self.time} (every {self.every})"
        if self.long and time is None:
            time = "none (steps are in the order of the rows)"
        roles = {"id": self.id, "time": time, "label": self.label, "groups": self.groups}
        texts = [f"{role}={name}" for role, name in roles.items() if name is not None]
        if self.wide:
            texts.append(f"one series per row, steps={_listed(self.channels)}")
        else:
            texts.append(f"channels={_listed(self.channels)}")
        if self.ignored:
            texts.append(f"not used: {_listed(self.ignored)}")
        return ", ".join(texts)


def call(role: str, *names: str) -> str:
    """Return how to name columns in Python and, in brackets, on the command line.

    Examples
    --------
    >>> from slts.series.dataset import call
    >>> call("label", "gait"), call("id", "a", "b c")
    ("label='gait' (--label gait)", "id=['a', 'b c'] (--id a --id 'b c')")
    """
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
