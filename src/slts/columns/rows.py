"""Rows of a table in Arrow's form: chunks with their place, kinds of columns, times as text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from slts.errors import DataError
from slts.extras import LazyModule

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

Kind = Literal[
    "number", "integer", "boolean", "text", "bytes", "timestamp", "list", "empty", "other"
]
NUMERIC: tuple[Kind, ...] = ("number", "integer", "boolean")
# How text is read as time: a number, a timestamp, a timestamp with a time zone, a time of day.
TimeForm = Literal["number", "timestamp", "zoned", "clock"]
# The name that pyarrow gives to an index of pandas without a name.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
# Row numbers that pandas and Dask write with a frame.
ROW_NUMBERS = re.compile(r"|Unnamed: \d+|__index_level_\d+__|__null_dask_index__")
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "h": 3.6e12}
# Dates that are clear but not ISO 8601: 2024/01/31 and 31.01.2024.
_OTHER_DATES = {
    r"^(\d{4})/(\d\d)/(\d\d)": r"\1-\2-\3",
    r"^(\d\d)\.(\d\d)\.(\d{4})": r"\3-\2-\1",
}
# Decimal digits that float64 represents exactly.
_EXACT_DIGITS = 15
# Number of rows from which the columns are guessed.
SAMPLE_ROWS = 20_000


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a table.

    Attributes
    ----------
    rows
        A `pyarrow.Table`.
    file
        Name of the file, for messages.
    first
        Number of the first row in the file.
    unit
        What `first` counts: ``"row"`` from 0, or ``"line"`` from 1.
    share
        Share of the whole source that has been read, if it is known.
    """

    rows: Any
    file: str
    first: int = 0
    unit: str = "row"
    share: float | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.rows.num_rows)

    def place(self, row: int) -> str:
        """Return file and number of a row, such as ``"train.csv, line 12"``."""
        return f"{self.file}, {self.unit} {self.first + row}"

    def between(self, start: int, stop: int) -> Chunk:
        """Return the rows from `start` to before `stop`."""
        rows = self.rows.slice(start, stop - start)
        return replace(self, rows=rows, first=self.first + start)

    def cut(self, n_rows: int) -> Iterator[Chunk]:
        """Yield chunks of at most `n_rows` rows."""
        for start in range(0, len(self), n_rows):
            yield self.between(start, min(len(self), start + n_rows))


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


def joined_identifier(rows: Any, names: Sequence[str]) -> Any:
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


def plain_column(column: Any) -> Any:
    """Return a column whose type does not depend on how it was stored."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    target = plain_type(column.type)
    return column if column.type == target else column.cast(target)


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


def kind_of(dtype: Any) -> Kind:
    """Return what an Arrow type holds."""
    types = pa.types
    if types.is_dictionary(dtype):
        dtype = dtype.value_type
    if types.is_boolean(dtype):
        return "boolean"
    if types.is_integer(dtype):
        return "integer"
    if types.is_floating(dtype) or types.is_decimal(dtype):
        return "number"
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "text"
    if types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_binary_view(dtype):
        return "bytes"
    if types.is_null(dtype):
        return "empty"
    if types.is_temporal(dtype):
        return "timestamp"
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype):
        return "list"
    return "other"


def is_number(text: str) -> bool:
    """Tell whether text is a number, with a decimal point or a decimal comma."""
    try:
        float(text.replace(",", ".", 1))
    except ValueError:
        return False
    return True


def is_timestamp(text: str) -> bool:
    """Tell whether text is a timestamp or a time of day, as `parse_times` reads them."""
    date = r"(\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d|\d\d\.\d\d\.\d{4})"
    clock, zone = r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?", r"(Z|[+-]\d\d:?\d\d)"
    return bool(re.fullmatch(rf"{date}([ T]{clock}{zone}?)?|{clock}", text))


def time_form(column: Any) -> TimeForm | None:
    """Return how a text column is read as time; None if its values are not all times.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from slts.columns.rows import time_form
    >>> time_form(pa.array(["2024-03-01 00:00:03.25", "2024-03-01T00:00:04"]))
    'timestamp'
    >>> time_form(pa.array(["01.03.2024 12:30"]))
    'timestamp'
    >>> time_form(pa.array(["3/1/2024"]))
    """
    present = column.filter(compute.not_equal(column, "").fill_null(False))
    forms: tuple[TimeForm, ...] = ("number", "timestamp", "zoned", "clock")
    for form in forms:
        # Most columns fail at the first value.
        for part in (present[:1], present):
            try:
                parse_times(part, form)
            except pa.ArrowInvalid:
                break
        else:
            return form if len(present) else None
    return None


def grid_step(every: str, source: str, *, timestamps: bool) -> float:
    """Return the step of a time grid: in nanoseconds for timestamps, else in the unit of the time.

    Examples
    --------
    >>> from slts.columns.rows import grid_step
    >>> grid_step("20ms", "a.csv", timestamps=True), grid_step("0.5", "b.csv", timestamps=False)
    (20000000.0, 0.5)
    """
    number, unit = _number_and_unit(every)
    example = "a duration such as 20ms, 1s or 5min" if timestamps else "a number such as 0.02"
    step = number * (_NANOSECONDS.get(unit, math.nan) if timestamps else 1.0)
    if not 0.0 < step < math.inf or (unit and not timestamps):
        held = "holds timestamps" if timestamps else "holds numbers, whose unit is not known"
        raise DataError(
            f"{source}: --every (every=) must be {example}, because the time {held}; got {every}"
        )
    return step


def same_step(one: str | None, other: str | None) -> bool:
    """Whether two distances of steps are equal, whatever their units; None is no grid.

    Examples
    --------
    >>> from slts.columns.rows import same_step
    >>> same_step("20ms", "0.02s"), same_step("0.02", "0.02s"), same_step(None, "1")
    (True, False, False)
    """
    if one is None or other is None:
        return one is other
    (a, unit), (b, other_unit) = _number_and_unit(one), _number_and_unit(other)
    sizes = a * _NANOSECONDS.get(unit, 1), b * _NANOSECONDS.get(other_unit, 1)
    return bool(unit) == bool(other_unit) and math.isclose(*sizes, rel_tol=1e-9)


def _number_and_unit(every: str) -> tuple[float, str]:
    match = re.fullmatch(r"\s*(\d*\.?\d+(?:e[+-]?\d+)?)\s*([a-z]*)\s*", every)
    return (0.0, "") if match is None else (float(match[1]), match[2])


def parse_times(column: Any, form: TimeForm) -> Any:
    """Read text as numbers or timestamps; raise `pyarrow.ArrowInvalid` for any other text."""
    if form == "number":
        return column.cast(pa.float64())
    for pattern, written in _OTHER_DATES.items():
        column = compute.replace_substring_regex(column, pattern, written)
    if form == "clock":
        column = compute.binary_join_element_wise("1970-01-01", column, " ")
    return column.cast(pa.timestamp("ns", "UTC" if form == "zoned" else None))
