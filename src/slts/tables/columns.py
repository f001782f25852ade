"""Rows of tables in the form of Arrow: their place, and the kinds of their columns."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.extras import LazyModule

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

Kind = Literal["number", "integer", "boolean", "text", "time", "list", "empty", "other"]
NUMERIC: tuple[Kind, ...] = ("number", "integer", "boolean")
# Number of rows that show what the columns are.
SAMPLE_ROWS = 20_000
# Row numbers that pandas and Dask write with a frame.
ROW_NUMBERS = re.compile(r"|Unnamed: \d+|__index_level_\d+__|__null_dask_index__")
# The name that pyarrow gives to an index of pandas without a name.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
# Integers from which float64 does not represent all.
INEXACT = 2**53
# Decimal digits that float64 represents exactly.
_EXACT_DIGITS = 15


class Origin(Protocol):
    """Where rows come from."""

    @property
    def name(self) -> str:
        """Name for messages."""

    def place(self, row: int) -> str:
        """Return name and number of a row, counted from 0 in the origin."""


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of a table as a `pyarrow.Table`; `first` is the number of the first row.

    `share` is the share of the whole source that has been read, if it is known.
    """

    table: Any
    origin: Origin
    first: int = 0
    share: float | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.table.num_rows)

    def place(self, row: int) -> str:
        """Return the place of a row, such as ``"train.csv, line 12"``."""
        return self.origin.place(self.first + row)

    def between(self, start: int, stop: int) -> Rows:
        """Return the rows from `start` to before `stop`."""
        table = self.table.slice(start, stop - start)
        return replace(self, table=table, first=self.first + start)


@dataclass(frozen=True)
class Named:
    """An origin whose rows are numbered from 0."""

    name: str

    def place(self, row: int) -> str:
        """Return name and number of a row."""
        return f"{self.name}, row {row}"


def arrow_table(frame: Any, name: str) -> Any:
    """Convert a data frame of any library; a named index of pandas becomes a column."""
    if type(frame).__name__ == "LazyFrame":
        raise DataError("a LazyFrame has no rows yet: collect() it first")
    try:
        table = pa.table(frame)
        return table.drop_columns([n for n in table.column_names if _UNNAMED_INDEX.fullmatch(n)])
    except pa.ArrowException as error:
        text = " ".join(str(part) for part in error.args)
        raise DataError(
            f"{name}: a column cannot be read, because its values have several types: {text}"
        ) from error
    except ValueError as error:
        # pandas: columns of equal names.
        raise DataError(f"{name} cannot be read: {error}") from error


def require_distinct(names: Sequence[str], name: str) -> None:
    """Raise an error for two columns of the same name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{name} has two columns named {twice!r}: rename one")


def kind_of(dtype: Any) -> Kind:
    """Return what an Arrow type holds."""
    types = pa.types
    if types.is_dictionary(dtype):
        dtype = dtype.value_type
    kinds: dict[Kind, tuple[Any, ...]] = {
        "boolean": (types.is_boolean,),
        "integer": (types.is_integer,),
        "number": (types.is_floating, types.is_decimal),
        "text": (types.is_string, types.is_large_string, types.is_string_view),
        "time": (types.is_timestamp, types.is_date, types.is_duration),
        "list": (types.is_list, types.is_large_list, types.is_fixed_size_list),
        "empty": (types.is_null,),
    }  # fmt: skip
    return next((kind for kind, tests in kinds.items() if any(t(dtype) for t in tests)), "other")


def plain_type(dtype: Any) -> Any:
    """Return the type in which identifiers, times and labels of type `dtype` are read."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return pa.string()
    if pa.types.is_float16(dtype):
        # Arrow cannot compare float16.
        return pa.float32()
    if pa.types.is_decimal(dtype) and dtype.precision <= _EXACT_DIGITS:
        return pa.float64() if dtype.scale > 0 else pa.int64()
    return dtype


def plain_column(column: Any) -> Any:
    """Return a column whose type does not depend on how it was stored."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    target = plain_type(column.type)
    return column if column.type == target else column.cast(target)


def joined(rows: Any, names: tuple[str, ...]) -> Any:
    """Return one text per row for several columns, such as ``s1/3``; null where one is missing.

    Different rows have different texts: a slash in a value is escaped.
    """
    texts = []
    for name in names:
        text = rows[name].cast(pa.string())
        text = compute.if_else(compute.equal(text, ""), pa.scalar(None, pa.string()), text)
        for mark in ("\\", "/"):
            text = compute.replace_substring(text, mark, f"\\{mark}")
        texts.append(text)
    return compute.binary_join_element_wise(*texts, "/")


def first_true(mask: Any) -> int | None:
    """Return the first row of an Arrow mask that is true."""
    rows: AnyArray = mask.to_numpy(zero_copy_only=False) if len(mask) else np.empty(0, bool)
    return int(np.argmax(rows)) if rows.any() else None


def call(role: str, *names: str) -> str:
    """Return how to name columns in Python and, in brackets, on the command line.

    Examples
    --------
    >>> from slts.tables.columns import call
    >>> call("label", "gait"), call("id", "a", "b c")
    ("label='gait' (--label gait)", "id=['a', 'b c'] (--id a --id 'b c')")
    """
    value = repr(names[0]) if len(names) == 1 else repr(list(names))
    options = [f"--{role} {shlex.quote(name)}" for name in names]
    if role == "channels":
        options = [f"--channels {shlex.quote(','.join(names))}"]
    return f"{role}={value} ({' '.join(options)})"
