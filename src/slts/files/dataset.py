"""What is read from a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.series import SeriesBatch

__all__ = ["Columns", "Dataset", "join"]


@dataclass(frozen=True)
class Columns:
    """Which column of a table was taken for what.

    Attributes
    ----------
    id
        Column that tells series apart; None where every row, or file, is a series.
    time
        Column by which the steps of a series are ordered; None takes them as they come.
    label
        Column with the label, if there is one.
    channels
        Columns with the values, in the order of the channels.
    guessed
        Those of ``"id"``, ``"time"``, ``"label"`` and ``"channels"`` that nobody named.
    ignored
        Columns that are none of these.

    Examples
    --------
    >>> from slts.files import Columns
    >>> print(Columns("recording", "t", "speaker", ("c1", "c2", "c3")))
    id=recording, time=t, label=speaker, channels=c1..c3
    """

    id: str | None
    time: str | None
    label: str | None
    channels: tuple[str, ...]
    guessed: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()

    def used(self, *, labels: bool) -> list[str]:
        """Return the columns to read, each once."""
        roles = (self.id, self.time, self.label if labels else None)
        return [name for name in roles if name is not None] + [*self.channels]

    def __str__(self) -> str:
        roles = [("id", self.id), ("time", self.time), ("label", self.label)]
        parts = [f"{role}={name}" for role, name in roles if name is not None]
        parts.append(f"channels={_span(self.channels)}")
        if self.ignored:
            parts.append(f"not used: {_span(self.ignored)}")
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Series of a file, or a batch of them.

    Attributes
    ----------
    series
        The series.
    labels
        One label per series, or None; text from text files, else as they are stored.
    ids
        One identifier per series, or None where a file has none.
    source
        Name of the file.
    columns
        How a table was read; None for files that are no tables.
    notes
        What was done to the data beyond reading, such as sorting by time.
    share
        How much of the file has been read, from 0 to 1; None where that is unknown.
    """

    series: SeriesBatch
    labels: AnyArray | None = None
    ids: AnyArray | None = None
    source: str = ""
    columns: Columns | None = None
    notes: tuple[str, ...] = ()
    share: float | None = None

    def __len__(self) -> int:
        """Return the number of series."""
        return len(self.series)

    def __getitem__(self, part: slice) -> Dataset:
        """Return the series of a slice, with what belongs to them."""
        return Dataset(
            self.series[part],
            None if self.labels is None else self.labels[part],
            None if self.ids is None else self.ids[part],
            self.source,
            self.columns,
            self.notes,
            self.share,
        )


def join(parts: Iterable[Dataset]) -> Dataset:
    """Put batches of one file together.

    Parameters
    ----------
    parts : iterable of Dataset
        At least one.

    Returns
    -------
    Dataset
        All series.
    """
    every = list(parts)
    if not every:
        raise DataError("there is no series to read")
    if len(every) == 1:
        return every[0]
    return Dataset(
        SeriesBatch.concatenate(part.series for part in every),
        _joined([part.labels for part in every]),
        _joined([part.ids for part in every]),
        every[0].source,
        every[0].columns,
        tuple(dict.fromkeys(note for part in every for note in part.notes)),
        every[-1].share,
    )


def _joined(arrays: Sequence[AnyArray | None]) -> AnyArray | None:
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def _span(names: Sequence[str]) -> str:
    """Names in few words: c1..c12 where they are numbered, else the first ones."""
    matches = [re.fullmatch(r"(.*?)(\d+)", name) for name in names]
    if len(names) > 2 and all(matches):
        stems = {match[1] for match in matches if match}
        numbers = [int(match[2]) for match in matches if match]
        if len(stems) == 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return f"{names[0]}..{names[-1]}"
    if len(names) > 8:
        return f"{','.join(names[:6])} and {len(names) - 6} more"
    return ",".join(names)
