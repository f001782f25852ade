"""Bags and data frames of dask as series, a part per partition; dask is not imported for others."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.extras import dask_client, import_extra
from slts.files.chunks import Chunk, first_missing
from slts.files.columns import NUMERIC, Wanted, kind_of, resolve_columns
from slts.files.dataset import Columns, Dataset
from slts.files.long_form import iter_long
from slts.series import as_series

__all__ = ["BagPart", "DaskOrigin", "FramePart", "is_collection"]

# Rows that are looked at to tell the columns apart.
_SAMPLE_ROWS = 20_000


def is_collection(X: object) -> bool:
    """Tell whether `X` is a bag or a data frame of dask.

    Parameters
    ----------
    X : object
        Anything.

    Returns
    -------
    bool
        Whether `scan_series` takes it for partitions of series.
    """
    return _is_bag(X) or _is_frame(X)


def _is_bag(X: object) -> bool:
    module = sys.modules.get("dask.bag")
    return isinstance(X, getattr(module, "Bag", ()))


def _is_frame(X: object) -> bool:
    module = sys.modules.get("dask.dataframe")
    return isinstance(X, getattr(module, "DataFrame", ()))


@dataclass(frozen=True)
class BagPart:
    """A partition of a bag, whose elements are series or pairs of series and label.

    Attributes
    ----------
    number
        Counted from 0.
    payload
        The partition as a dask `Delayed`.
    """

    number: int
    payload: Any = field(repr=False)

    @property
    def name(self) -> str:
        """Number of the partition."""
        return f"dask bag, partition {self.number}"

    def holding(self, partition: Sequence[Any]) -> HeldElements:
        """Return a part that reads what the payload computes to."""
        return HeldElements(self.name, partition)

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Compute the partition here and read it."""
        held = self.holding(_computed(self.payload))
        yield from held.batches(labels=labels, batch_size=batch_size)


@dataclass(frozen=True)
class HeldElements:
    """Elements of a bag in memory."""

    name: str
    elements: Sequence[Any] = field(repr=False)

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read the series; they have no identifiers."""
        for start in range(0, len(self.elements), batch_size):
            yield self._batch(self.elements[start : start + batch_size], start, labels)

    def _batch(self, elements: Sequence[Any], start: int, labels: bool) -> Dataset:
        pairs = _is_pair(self.elements[0])
        for number, element in enumerate(elements):
            if _is_pair(element) != pairs:
                raise DataError(
                    f"{self.name}: element {start + number} is {'no' if pairs else 'a'} pair of "
                    f"series and label, unlike element 0: give all series a label, or none"
                )
        classes = [_scalar(element[1]) for element in elements] if pairs else []
        for number, label in enumerate(classes, start):
            if isinstance(label, np.ndarray | list | tuple):
                shape = f" and shape {label.shape}" if isinstance(label, np.ndarray) else ""
                raise DataError(
                    f"{self.name}: the label of element {number} is of type "
                    f"{type(label).__name__}{shape}, expected text or a number. A tuple of two is "
                    f"read as series and label: stack the channels of a series in one array"
                )
        found = [element[0] for element in elements] if pairs else list(elements)
        try:
            series = as_series(found)
        except DataError as error:
            raise DataError(f"{self.name}, from element {start}: {error}") from error
        known = self._checked(classes, start) if labels and pairs else None
        return Dataset(series, known, None, self.name)

    def _checked(self, labels: Sequence[Any], start: int) -> AnyArray:
        """Refuse what NumPy would make text of: missing labels, and numbers among text."""
        gap = first_missing(labels)
        if gap is not None:
            raise DataError(
                f"{self.name}: the label of element {start + gap} is missing; fill it in or drop "
                f"the element"
            )
        first = _scalar(self.elements[0][1])
        for number, label in enumerate(labels, start):
            if isinstance(label, str) != isinstance(first, str):
                raise DataError(
                    f"{self.name}: the label of element {number} is {label!r}, and {first!r} of "
                    f"element 0: labels must be all text, or all numbers"
                )
        return np.asarray(labels)


def _is_pair(element: object) -> bool:
    return isinstance(element, tuple) and len(element) == 2


def _scalar(label: Any) -> Any:
    return label[()] if isinstance(label, np.ndarray) and label.ndim == 0 else label


@dataclass(frozen=True)
class FramePart:
    """A partition of a data frame in long form, with all rows of its series.

    Attributes
    ----------
    number
        Counted from 0.
    payload
        The partition as a dask `Delayed`.
    columns
        What the columns are.
    """

    number: int
    payload: Any = field(repr=False)
    columns: Columns

    @property
    def name(self) -> str:
        """Number of the partition."""
        return _frame_name(self.number)

    def holding(self, partition: Any) -> HeldFrame:
        """Return a part that reads what the payload computes to."""
        return HeldFrame(self.name, partition, self.columns)

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Compute the partition here and read it."""
        held = self.holding(_computed(self.payload))
        yield from held.batches(labels=labels, batch_size=batch_size)


@dataclass(frozen=True)
class HeldFrame:
    """A pandas frame in long form."""

    name: str
    frame: Any = field(repr=False)
    columns: Columns

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read the series."""
        rows = _FrameRows(self.name, self.frame)
        yield from iter_long(rows, self.columns, labels=labels, batch_size=batch_size)


class _FrameRows:
    """Rows of a pandas frame."""

    def __init__(self, name: str, frame: Any) -> None:
        self.name = name
        self._frame = frame

    def place(self, row: int) -> str:
        """Name a row by its position."""
        return f"{self.name}, row {row}"

    def chunks(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Chunk]:
        """Give the columns in slices of at most `rows` rows."""
        if len(self._frame) == 0:
            return
        table = self.table(names)
        for name in names:
            if name not in table.column_names:
                raise DataError(f"{self.name} has no column {name!r}, which partitions before have")
            dtype = table.schema.field(name).type
            # A column without any value has no type; that its values are missing is said later.
            if name in columns.channels and kind_of(dtype) not in NUMERIC and str(dtype) != "null":
                raise DataError(f"{self.name}: channel {name!r} has type {dtype}, expected numbers")
        whole = Chunk(table.select(list(names)), self.place, 1.0)
        for start in range(0, table.num_rows, rows):
            yield whole.between(start, min(table.num_rows, start + rows))

    def table(self, names: Sequence[str] | None = None) -> Any:
        """Return the rows as an Arrow table, with a named index as a column."""
        pa: Any = import_extra("pyarrow", "io")
        frame = self._frame
        if names is not None:
            frame = frame[[column for column in frame.columns if str(column) in names]]
        try:
            return pa.Table.from_pandas(frame)
        except pa.ArrowException as error:
            text = " ".join(str(part) for part in error.args)
            raise DataError(
                f"{self.name}: a column cannot be read, its values must be of one type: {text}"
            ) from error


class DaskOrigin:
    """Partitions of a dask collection.

    Parameters
    ----------
    collection
        A bag, or a data frame with partitions of pandas.
    wanted
        Columns of a data frame; those not named are guessed in the first rows.
    """

    n_bytes: int | None = None

    def __init__(self, collection: Any, wanted: Wanted) -> None:
        self._is_bag = _is_bag(collection)
        self.name = "dask bag" if self._is_bag else "dask DataFrame"
        if self._is_bag:
            given = [r for r in ("id", "time", "label", "channels") if getattr(wanted, r)]
            if given:
                raise DataError(f"a dask bag has no named columns, so {given[0]}= has no meaning")
            # Partitions of a bag may be iterators, which cannot be sent to other processes.
            collection = collection.map_partitions(list)
        self._payloads: list[Any] = list(collection.to_delayed())
        self.in_rows = not self._is_bag
        self.columns = None if self._is_bag else self._resolved(wanted)

    @property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the columns with the values; a bag has none."""
        return None if self.columns is None else self.columns.channels

    def parts(self, *, labels: bool) -> list[BagPart | FramePart]:
        """One part per partition."""
        del labels
        columns = self.columns
        return [
            BagPart(number, payload) if columns is None else FramePart(number, payload, columns)
            for number, payload in enumerate(self._payloads)
        ]

    def _resolved(self, wanted: Wanted) -> Columns:
        """Find the columns in the first partition that has rows."""
        dask: Any = import_extra("dask", "dask")
        for number, payload in enumerate(self._payloads):
            # Cut where the partition is: all of it may be large, and far away.
            frame = _computed(dask.delayed(_first_rows)(payload))
            if len(frame):
                rows = _FrameRows(_frame_name(number), frame)
                return resolve_columns(rows.table(), wanted, self.name, place=rows.place)
        raise DataError(f"{self.name} has no rows")


def _frame_name(number: int) -> str:
    return f"dask DataFrame, partition {number}"


def _first_rows(frame: Any) -> Any:
    return frame.iloc[:_SAMPLE_ROWS]


def _computed(payload: Any) -> Any:
    """Compute here, unless a client runs: what is persisted there cannot be computed elsewhere."""
    dask: Any = import_extra("dask", "dask")
    return dask.compute(payload, scheduler=dask_client() or "synchronous")[0]
