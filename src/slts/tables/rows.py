"""Rows of tables in Arrow's form: kinds of columns, times as text, and checks of values."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.dataset import Columns

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

Kind = Literal["number", "integer", "boolean", "text", "time", "list", "empty", "other"]
NUMERIC: tuple[Kind, ...] = ("number", "integer", "boolean")
# The identifier of series with a file each.
FILE_ID = "(file)"
# Number of rows that show what the columns are.
SAMPLE_ROWS = 20_000
# The name that pyarrow gives to an index of pandas without a name.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
# Integers from which float64 does not represent all.
INEXACT = 2**53
# Decimal digits that float64 represents exactly.
_EXACT_DIGITS = 15
# How text is read as time, with an example.
TIME_FORMS = {
    "number": "0.5",
    "timestamp": "2024-01-31 12:00:00",
    "zoned": "2024-01-31 12:00:00Z",
}
# Dates that are clear but not ISO 8601: 2024/01/31 and 31.01.2024.
_OTHER_DATES = {
    r"^(\d{4})/(\d\d)/(\d\d)": r"\1-\2-\3",
    r"^(\d\d)\.(\d\d)\.(\d{4})": r"\3-\2-\1",
}
_WHOLE = re.compile(r"([-+]?\d+)\.0*")


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

    def pieces(self, n_rows: int) -> Iterator[Rows]:
        """Yield at most `n_rows` rows at a time."""
        for start in range(0, len(self), n_rows):
            yield self.between(start, min(len(self), start + n_rows))


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
    except (pa.ArrowException, ValueError) as error:
        raise DataError(
            f"{name} cannot be read: {error}. Every column must have values of one type, and a "
            f"name of its own"
        ) from error


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
        text = plain_text(rows[name]).cast(pa.string())
        text = compute.if_else(compute.equal(text, ""), pa.scalar(None, pa.string()), text)
        for mark in ("\\", "/"):
            text = compute.replace_substring(text, mark, f"\\{mark}")
        texts.append(text)
    return compute.binary_join_element_wise(*texts, "/")


def first_true(mask: Any) -> int | None:
    """Return the first row of an Arrow mask that is true."""
    rows: AnyArray = mask.to_numpy(zero_copy_only=False) if len(mask) else np.empty(0, bool)
    return int(np.argmax(rows)) if rows.any() else None


def is_number(cell: object) -> bool:
    """Tell whether text is a number with a decimal point."""
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


# -- Times


def parse_times(column: Any, form: str) -> Any:
    """Read text as numbers or timestamps; raise `pyarrow.ArrowInvalid` for any other text.

    Integers that float64 cannot represent, such as nanoseconds since 1970, stay integers.
    """
    if form == "number":
        column = compute.utf8_trim_whitespace(column)
        numbers = column.cast(pa.float64())
        largest = compute.max(compute.abs(numbers)).as_py() or 0.0
        return column.cast(pa.int64()) if INEXACT <= largest < math.inf else numbers
    for pattern, written in _OTHER_DATES.items():
        column = compute.replace_substring_regex(column, pattern, written)
    return column.cast(pa.timestamp("ns", "UTC" if form == "zoned" else None))


def time_form(column: Any) -> str | None:
    """Return how the first value of a text column is read as time; None if it is none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from slts.tables.rows import time_form
    >>> time_form(pa.array(["2024-03-01 00:00:03.25"])), time_form(pa.array(["01.03.2024 12:30"]))
    ('timestamp', 'timestamp')
    >>> time_form(pa.array(["3/1/2024"]))
    """
    present = column.filter(compute.not_equal(column, "").fill_null(False))[:1]
    return next((f for f in TIME_FORMS if len(present) and _has_form(present, f)), None)


def _has_form(column: Any, form: str) -> bool:
    try:
        parse_times(column, form)
    except pa.ArrowInvalid:
        return False
    return True


# -- Checks of rows


def identifiers(table: Any, columns: Columns) -> Any:
    """Return the column of identifiers of rows as they were read."""
    if columns.id_columns:
        return joined(table, columns.id_columns)
    plain = plain_column if columns.id == FILE_ID else plain_text
    return plain(table[columns.id])


def checked_rows(rows: Rows, columns: Columns, *, labels: bool) -> Any:
    """Raise an error for infinite values, and for rows without id, time or label.

    The columns of the resulting table are the roles, and channels as float64, numbered.
    """
    roles: dict[str, Any] = {}
    names = {"id": columns.id, "time": columns.time}
    names |= {"label": columns.label, "groups": columns.groups} if labels else {}
    for role, name in names.items():
        if name is None or (role == "time" and columns.form == "lists"):
            continue
        table = rows.table
        plain = plain_column if role == "time" else plain_text
        column = identifiers(table, columns) if role == "id" else plain(table[name])
        missing = column.is_null(nan_is_null=True)
        if pa.types.is_string(column.type):
            missing = compute.or_(missing, compute.equal(column, "").fill_null(False))
        row = first_true(missing)
        if row is not None:
            place = place_in_series(rows, columns, row)
            raise DataError(f"{place}: {name!r} ({role}) is missing: fill it in or drop the row")
        roles[role] = column
    if "time" in roles:
        roles["time"] = _read_times(rows, columns, roles["time"])
    if columns.form != "lists":
        # A name may be that of a role.
        values = [_checked_numbers(rows, columns, name) for name in columns.channels]
        roles |= {str(c): value for c, value in enumerate(values)}
    return pa.table(roles)


def place_in_series(rows: Rows, columns: Columns, row: int) -> str:
    """Return file, row and, if there is one, identifier."""
    id = None if columns.id is None else identifiers(rows.table, columns)[row].as_py()
    return rows.place(row) if id in (None, "") else f"{rows.place(row)} (series {id!r})"


def _checked_numbers(rows: Rows, columns: Columns, name: str) -> Any:
    """Return a channel as float64, which must be finite and represent integers exactly."""
    column = plain_column(rows.table[name])
    numbers = column.cast(pa.float64(), safe=False)
    row = first_wrong(column, numbers.to_numpy())
    if row is not None:
        value = column[row].as_py()
        why = "is infinite" if np.isinf(float(value)) else "has more digits than float64 represents"
        raise DataError(
            f"{place_in_series(rows, columns, row)}: {name!r} {why} ({value}). Correct the value, "
            f"or drop the series"
        )
    return numbers


def first_wrong(column: Any, numbers: FloatArray) -> int | None:
    """Return the first row of a column that is infinite, or an integer that float64 rounds."""
    wrong = np.isinf(numbers)
    if kind_of(column.type) == "integer":
        wrong |= np.abs(numbers) >= INEXACT
    return int(np.argmax(wrong)) if wrong.any() else None


def _read_times(rows: Rows, columns: Columns, column: Any) -> Any:
    """Read times; raise an error if they are not finite, or not as in the first rows."""
    form = columns.time_form
    expected = f"text such as {TIME_FORMS[form]}" if form else "finite numbers or timestamps"
    is_text = pa.types.is_string(column.type)
    row: int | None = 0
    if is_text == (form is not None):
        try:
            times = column if form is None else parse_times(column, form)
            is_float = pa.types.is_floating(times.type)
            row = first_true(compute.invert(compute.is_finite(times))) if is_float else None
            if row is None:
                return times
        except pa.ArrowInvalid:
            each = range(len(column))
            row = next(k for k in each if not _has_form(column[k : k + 1], str(form)))
    assert row is not None
    raise DataError(
        f"{place_in_series(rows, columns, row)}: {columns.time!r} (time) holds "
        f"{column[row].as_py()!r}, expected {expected}, as in the first rows"
    )


# -- Identifiers, labels and groups


def plain_text(column: Any) -> Any:
    """Return a column in which text that differs only in its form is equal."""
    column = plain_column(column)
    if not pa.types.is_string(column.type):
        return column
    coded = column.combine_chunks().dictionary_encode()
    forms = [text and plain_label(text) for text in coded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(forms, pa.string()).take(coded.indices)])


def plain_label(text: str) -> str:
    r"""Return the usual form of text: Unicode NFC, single spaces, whole numbers without point.

    Examples
    --------
    >>> from slts.tables.rows import plain_label
    >>> plain_label("left\u00a0hand "), plain_label("1.0"), plain_label("cafe\u0301") == "café"
    ('left hand', '1', True)
    """
    text = " ".join(unicodedata.normalize("NFC", text).split())
    match = _WHOLE.fullmatch(text)
    return match[1] if match else text
