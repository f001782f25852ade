"""Dask bags and data frames as scans with one part per partition; this does not import Dask."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slts.errors import DataError
from slts.execution import dask_client
from slts.extras import LazyModule
from slts.series.convert import as_series
from slts.series.dataset import Dataset, SeriesScan, first_missing
from slts.tables.assembly import TablePart
from slts.tables.roles import RequestedColumns, resolve_columns
from slts.tables.rows import NUMERIC, SAMPLE_ROWS, Named, Rows, arrow_table, kind_of

pa: Any = LazyModule("pyarrow", "io")
dask: Any = LazyModule("dask", "dask")

# Names for messages.
_BAG, _FRAME = "Dask bag", "Dask DataFrame"


def is_collection(X: object) -> bool:
    """Tell whether `X` is a Dask bag or a Dask data frame."""
    frames = sys.modules.get("dask.dataframe")
    return is_bag(X) or isinstance(X, getattr(frames, "DataFrame", ()))


def is_bag(X: object) -> bool:
    """Tell whether `X` is a Dask bag."""
    return isinstance(X, getattr(sys.modules.get("dask.bag"), "Bag", ()))


def _compute(payload: Any) -> Any:
    # A running client must compute: it alone can reach data that it holds.
    return dask.compute(payload, scheduler=dask_client() or "synchronous")[0]


@dataclass(frozen=True)
class BagPart:
    """A partition of a bag, whose elements are series or pairs (series, label).

    Attributes
    ----------
    name
        Name for messages.
    payload
        The partition as a Dask `Delayed`; None if it is computed elsewhere.
    elements
        The computed partition.
    """

    name: str
    payload: Any = field(repr=False)
    elements: Sequence[Any] | None = field(default=None, repr=False)

    def holding(self, elements: Sequence[Any]) -> BagPart:
        """Return a part that reads the computed payload."""
        return replace(self, payload=None, elements=elements)

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read the series; they have no identifiers."""
        elements = _compute(self.payload) if self.elements is None else self.elements
        for start in range(0, len(elements), batch_size):
            batch = elements[start : start + batch_size]
            yield self._read(batch, elements[0], start, labels)

    def _read(self, elements: Sequence[Any], first: Any, start: int, labels: bool) -> Dataset:
        has_labels = _is_pair(first)
        for number, element in enumerate(elements, start):
            if _is_pair(element) != has_labels:
                raise DataError(
                    f"{self.name}: element {number} is {'not ' if has_labels else ''}a pair "
                    f"(series, label), unlike element 0: give all series a label, or none"
                )
        labels_of = [_scalar(element[1]) for element in elements] if has_labels else []
        if labels:
            self._check_labels(labels_of, first, start)
        try:
            values = [e[0] for e in elements] if has_labels else list(elements)
            series = as_series(values, layout="channels_first")
        except DataError as error:
            raise DataError(f"{self.name}, from element {start}: {error}") from error
        return Dataset(
            series, np.asarray(labels_of) if has_labels and labels else None, None, self.name
        )

    def _check_labels(self, labels: Sequence[Any], first: Any, start: int) -> None:
        """Check labels; NumPy would convert missing values and numbers among text to text."""
        for number, label in enumerate(labels, start):
            is_scalar = not isinstance(label, np.ndarray | list | tuple)
            same = isinstance(label, str) == isinstance(_scalar(first[1]), str)
            if not is_scalar or not same or first_missing([label]) is not None:
                raise DataError(
                    f"{self.name}: the label of element {number} is {label!r}, but labels must be "
                    f"all text, or all numbers, and not missing. (A tuple of two is read as "
                    f"(series, label): stack the channels of a series in one array.)"
                )


def _is_pair(element: object) -> bool:
    return isinstance(element, tuple) and len(element) == 2


def _scalar(label: Any) -> Any:
    return label[()] if isinstance(label, np.ndarray) and label.ndim == 0 else label


class BagScan(SeriesScan):
    """A Dask bag."""

    def __init__(self, bag: Any, requested: RequestedColumns) -> None:
        requested.require_none(_BAG)
        # The workers drop the partitions of a persisted bag together with the bag.
        self._bag = bag
        # Partitions of a bag may be iterators, which cannot be sent to other processes.
        payloads = bag.map_partitions(list).to_delayed()
        parts = [BagPart(f"{_BAG}, partition {k}", part) for k, part in enumerate(payloads)]
        super().__init__(_BAG, None, parts)


@dataclass(frozen=True)
class FramePart(TablePart):
    """A partition of a data frame, with all rows of its series.

    Attributes
    ----------
    payload
        The partition as a Dask `Delayed`; None if it is computed elsewhere.
    frame
        The computed partition, a pandas frame.
    """

    payload: Any = field(repr=False)
    frame: Any = field(default=None, repr=False)

    def holding(self, frame: Any) -> FramePart:
        """Return a part that reads the computed payload."""
        return replace(self, payload=None, frame=frame)

    def chunks(self, names: Sequence[str], n_rows: int) -> Iterator[Rows]:
        """Read some columns; see `TablePart.chunks`."""
        frame = _compute(self.payload) if self.frame is None else self.frame
        if len(frame) == 0:
            return
        chosen = frame[[column for column in frame.columns if str(column) in names]]
        table = arrow_table(chosen, self.name)
        for name in names:
            if name not in table.column_names:
                raise DataError(f"{self.name} has no column {name!r}, but other partitions have it")
            dtype = table.schema.field(name).type
            # A column without values has no type; missing values have their own message.
            if name in self.columns.channels and kind_of(dtype) not in (*NUMERIC, "empty", "list"):
                raise DataError(f"{self.name}: channel {name!r} has type {dtype}, expected numbers")
        yield Rows(table.select(list(names)), Named(self.name), share=1.0)


def _first_rows(frame: Any) -> Any:
    return frame.iloc[:SAMPLE_ROWS]


def scan_frame(frame: Any, requested: RequestedColumns) -> SeriesScan:
    """Scan a Dask data frame with partitions of pandas; its first rows tell the columns."""
    payloads = {f"{_FRAME}, partition {k}": part for k, part in enumerate(frame.to_delayed())}
    for name, payload in payloads.items():
        # The worker cuts the first rows: the partition may be large.
        first = _compute(dask.delayed(_first_rows)(payload))
        if len(first):
            rows = arrow_table(first, name)
            columns = resolve_columns(Rows(rows, Named(name)), requested)
            parts = [FramePart(n, _FRAME, columns, True, part) for n, part in payloads.items()]
            return SeriesScan(_FRAME, columns, parts)
    raise DataError(f"{_FRAME} has no rows")
