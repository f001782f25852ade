"""Rows that are whole series: one list of values per channel."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.extras import import_extra
from slts.files.chunks import BATCH_BYTES, Chunk, Rows, first_true, missing, plain_column
from slts.files.dataset import Columns, Dataset
from slts.series import SeriesBatch

__all__ = ["iter_lists"]


def iter_lists(
    table: Rows, columns: Columns, *, labels: bool, batch_size: int, first: int | None = None
) -> Iterator[Dataset]:
    """Read a table with one row per series, batch by batch.

    Parameters
    ----------
    table : Rows
        Its channels are columns of lists.
    columns : Columns
        Its columns.
    labels : bool
        Whether to read labels, if there are any.
    batch_size : int
        Series in a batch, at most.
    first : int, optional
        Number of the first row: rows are numbered from there if they have no identifiers.

    Yields
    ------
    Dataset
        The next series.
    """
    names = columns.used(labels=labels)
    label = columns.label if labels else None
    pieces = (_pieces(chunk, columns) for chunk in table.chunks(columns, names, batch_size))
    for chunk in chain.from_iterable(pieces):
        ids = None if columns.id is None else _scalars(chunk, columns.id, "id")
        if ids is None and first is not None:
            ids = np.arange(first, first + chunk.rows.num_rows)
            first += chunk.rows.num_rows
        yield Dataset(
            _series(chunk, columns),
            None if label is None else _scalars(chunk, label, "label"),
            ids,
            table.name,
            columns,
            (),
            chunk.share,
        )


def _pieces(chunk: Chunk, columns: Columns) -> Iterator[Chunk]:
    """Cut where the lists together are larger than a batch."""
    compute: Any = import_extra("pyarrow.compute", "io")
    lengths = compute.list_value_length(chunk.rows[columns.channels[0]]).fill_null(0)
    ends = np.cumsum(lengths.to_numpy().astype(np.int64)) * 8 * len(columns.channels)
    start, before = 0, 0
    while start < len(ends):
        fitting = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
        stop = max(start + 1, fitting)
        yield chunk.between(start, stop)
        start, before = stop, int(ends[stop - 1])


def _scalars(chunk: Chunk, name: str, role: str) -> AnyArray:
    column = plain_column(chunk.rows[name])
    row = first_true(missing(column).combine_chunks())
    if row is not None:
        raise DataError(f"{chunk.place(row)}: {name!r} ({role}) is missing; fill it in")
    return np.asarray(column.to_pylist())


def _series(chunk: Chunk, columns: Columns) -> SeriesBatch:
    lengths: IntArray | None = None
    values: list[FloatArray] = []
    for name in columns.channels:
        found, counts = _flat(chunk, name)
        if lengths is None:
            lengths = counts
        elif (counts != lengths).any():
            row = int(np.argmax(counts != lengths))
            raise DataError(
                f"{chunk.place(row)}: {name!r} has {counts[row]} steps and "
                f"{columns.channels[0]!r} has {lengths[row]}; all channels of a series must have "
                f"the same number"
            )
        values.append(found)
    assert lengths is not None
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    flat = np.ascontiguousarray(np.stack(values, axis=1))
    return SeriesBatch.from_checked(flat, offsets.astype(np.int64), columns.channels)


def _flat(chunk: Chunk, name: str) -> tuple[FloatArray, IntArray]:
    """Return the values of a channel end to end, and the number of steps of every series."""
    pa: Any = import_extra("pyarrow", "io")
    compute: Any = import_extra("pyarrow.compute", "io")
    column = chunk.rows[name].combine_chunks()
    row = first_true(column.is_null())
    if row is not None:
        raise DataError(f"{chunk.place(row)}: {name!r} is missing; drop the row")
    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
    if (lengths == 0).any():
        row = int(np.argmax(lengths == 0))
        raise DataError(f"{chunk.place(row)}: {name!r} has no steps; drop the row")
    flat = column.flatten().cast(pa.float64(), safe=False)
    values: FloatArray = flat.to_numpy(zero_copy_only=False)
    usable = np.isfinite(values)
    if not usable.all():
        position = int(np.argmin(usable))
        row = int(np.searchsorted(np.cumsum(lengths), position, side="right"))
        step = position - int(lengths[:row].sum())
        what = "infinite" if np.isinf(values[position]) else "missing"
        raise DataError(
            f"{chunk.place(row)}: step {step} of {name!r} is {what}; impute it or drop the row"
        )
    return values, lengths
