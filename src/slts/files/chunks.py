"""Pieces of a table, with their place in the file, checked row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.extras import import_extra
from slts.files.dataset import Columns

__all__ = [
    "BATCH_BYTES",
    "Chunk",
    "Rows",
    "Table",
    "check_chunk",
    "first_missing",
    "first_true",
    "missing",
    "plain_column",
    "plain_type",
]

# Values in a batch, about, however many series were asked for: the number of series alone says
# nothing of the memory. A series that is larger is a batch of its own.
BATCH_BYTES = 1 << 24
# Decimal digits that any float64 holds.
_EXACT_DIGITS = 15


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a table.

    Attributes
    ----------
    rows
        A `pyarrow.Table`.
    place
        Names a row of the chunk in its file, such as ``"train.csv, line 12"``.
    share
        How much of the whole has been read, if that is known.
    """

    rows: Any
    place: Callable[[int], str]
    share: float | None

    def between(self, start: int, stop: int) -> Chunk:
        """Return some of the rows."""
        place = self.place
        return Chunk(
            self.rows.slice(start, stop - start), lambda row: place(start + row), self.share
        )


class Rows(Protocol):
    """Rows of a table that may be larger than memory."""

    @property
    def name(self) -> str:
        """What to call it in messages."""

    def chunks(self, columns: Columns, names: Sequence[str], rows: int) -> Iterator[Chunk]:
        """Give the columns `names` in order, about `rows` rows at a time; works once."""


class Table(Rows, Protocol):
    """A table whose columns are not known yet."""

    @property
    def sample(self) -> Any:
        """The first rows, a `pyarrow.Table`."""

    def place(self, row: int) -> str:
        """Name a row of the sample in its file."""


def check_chunk(chunk: Chunk, columns: Columns, names: Sequence[str]) -> Chunk:
    """Refuse missing and infinite values, and bring columns to plain types.

    Parameters
    ----------
    chunk : Chunk
        Rows in long form.
    columns : Columns
        What the columns are.
    names : sequence of str
        Those that are wanted.

    Returns
    -------
    Chunk
        Channels are float64; identifiers and labels are no dictionaries any more.
    """
    pa: Any = import_extra("pyarrow", "io")
    arrays = []
    for name in names:
        column = chunk.rows[name]
        if name in columns.channels:
            if column.type != pa.float64():
                column = column.cast(pa.float64(), safe=False)
            # Missing values become NaN, so one look suffices where all is well.
            finite = np.isfinite(column.to_numpy())
            if not finite.all():
                _refuse(chunk, columns, name, column.is_null(nan_is_null=True))
                row = int(np.argmin(finite))
                raise DataError(
                    f"{_where(chunk, columns, row)}: {name!r} is infinite; clip it or remove the "
                    f"series"
                )
        else:
            column = plain_column(column)
            _refuse(chunk, columns, name, missing(column))
        arrays.append(column)
    return Chunk(pa.table(arrays, names=list(names)), chunk.place, chunk.share)


def plain_column(column: Any) -> Any:
    """Return a column whose type does not depend on how it was stored."""
    pa: Any = import_extra("pyarrow", "io")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    target = plain_type(column.type)
    return column if column.type == target else column.cast(target)


def plain_type(dtype: Any) -> Any:
    """Return the type that identifiers, times and labels stored as `dtype` are read as."""
    pa: Any = import_extra("pyarrow", "io")
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return pa.string()
    if pa.types.is_float16(dtype):
        # Arrow does not compare these.
        return pa.float32()
    if pa.types.is_decimal(dtype) and dtype.precision <= _EXACT_DIGITS:
        return pa.float64() if dtype.scale > 0 else pa.int64()
    return dtype


def missing(column: Any) -> Any:
    """Tell which values of a plain Arrow column are missing: null, NaN, or empty text."""
    pa: Any = import_extra("pyarrow", "io")
    compute: Any = import_extra("pyarrow.compute", "io")
    found = column.is_null(nan_is_null=True)
    if pa.types.is_string(column.type):
        found = compute.or_(found, compute.equal(column, "").fill_null(False))
    return found


def first_missing(values: Sequence[Any]) -> int | None:
    """Return the position of the first value that is missing, as in `missing`."""
    return next((k for k, value in enumerate(values) if _is_missing(value)), None)


def _is_missing(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or (isinstance(value, str) and value == "")


def first_true(mask: Any) -> int | None:
    """Return the position of the first true value of an Arrow column."""
    found: AnyArray = mask.to_numpy(zero_copy_only=False) if len(mask) else np.empty(0, bool)
    return int(np.argmax(found)) if found.any() else None


def _refuse(chunk: Chunk, columns: Columns, name: str, mask: Any) -> None:
    row = first_true(mask.combine_chunks())
    if row is None:
        return
    role = {columns.id: "id", columns.time: "time", columns.label: "label"}.get(name)
    remedy = (
        "fill it in or drop the row"
        if role
        else "missing values are not dropped silently; impute them or drop the row"
    )
    what = f"{name!r} ({role})" if role else repr(name)
    raise DataError(f"{_where(chunk, columns, row)}: {what} is missing; {remedy}")


def _where(chunk: Chunk, columns: Columns, row: int) -> str:
    place = chunk.place(row)
    if columns.id is None or columns.id not in chunk.rows.column_names:
        return place
    value = chunk.rows[columns.id][row].as_py()
    return place if value is None or value == "" else f"{place} (series {value!r})"
