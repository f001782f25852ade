"""`Dataset`: series with their labels, identifiers and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slts._typing import AnyArray
from slts.columns import Columns
from slts.errors import DataError
from slts.series.batch import SeriesBatch
from slts.series.missing import trim_padding


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
    """Concatenate batches of one source.

    Parameters
    ----------
    batches : iterable of Dataset
        At least one batch.

    Returns
    -------
    Dataset
        All series.
    """
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


def checked(
    dataset: Dataset,
    channels: Sequence[str] | None,
    *,
    steps: Sequence[str] | None = None,
    place: Callable[[int], str] | None = None,
) -> Dataset:
    """Trim series to the last step with a value; raise an error if one has none, or is infinite.

    Parameters
    ----------
    dataset
        Series whose values are not checked.
    channels, steps
        Names of the channels or, in wide form, of the columns of the steps, for messages.
    place
        Where the series of a number is, for messages; by default its identifier, or its number.
    """
    dataset = replace(dataset, series=trim_padding(dataset.series))
    values, offsets = dataset.series.values, dataset.series.offsets
    finite = np.isfinite(values)
    if finite.all():
        return dataset
    infinite = np.logical_or.reduceat(np.isinf(values).any(axis=1), offsets[:-1])
    observed = np.logical_or.reduceat(finite.any(axis=1), offsets[:-1])
    wrong = infinite | ~observed
    if not wrong.any():
        return dataset
    position = int(np.argmax(wrong))
    reason = "the series has no values"
    if infinite[position]:
        series = values[offsets[position] : offsets[position + 1]]
        step, channel = np.argwhere(np.isinf(series))[0]
        of = f"of channel {channel}" if channels is None else f"of {channels[channel]!r}"
        of = of if steps is None else f"({steps[step]!r})"
        reason = f"step {step} {of} is infinite"
    if place is None:
        # Batches are parts of a table: a number would not be that of the whole.
        id = position if dataset.ids is None else dataset.ids[position].item()
        where = f"{dataset.source}: series {id!r}"
    else:
        where = place(position)
    raise DataError(f"{where}: {reason}. Correct it, or leave the series out")


def first_missing(values: Sequence[Any]) -> int | None:
    """Return the position of the first missing value: None, NaN or empty text."""
    for position, value in enumerate(values):
        is_nan = isinstance(value, float | np.floating) and np.isnan(value)
        if value is None or is_nan or (isinstance(value, str) and value == ""):
            return position
    return None
