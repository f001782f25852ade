"""What is said about columns; rows in the form of Arrow, the kinds of their columns, and times."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.batch import offsets_of

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
# The label of a folder with one file per series is no column of its files.
FILE_LABEL, FOLDER_LABEL = "(label)", "(folder)"
# How text is read as time, with an example.
TIME_FORMS = {
    "number": "0.5",
    "timestamp": "2024-01-31 12:00:00",
    "zoned": "2024-01-31 12:00:00Z",
}
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "h": 3.6e12}
# Dates that are clear but not ISO 8601: 2024/01/31 and 31.01.2024.
_OTHER_DATES = {
    r"^(\d{4})/(\d\d)/(\d\d)": r"\1-\2-\3",
    r"^(\d\d)\.(\d\d)\.(\d{4})": r"\3-\2-\1",
}
# Largest number of steps of the grid, in rows of the table: a smaller interval is a mistake.
_MOST_STEPS = 1000
# Largest rounding error of a time, in steps.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class ExpectedColumns:
    """What a trained model says about the columns of a table.

    Attributes
    ----------
    channels
        Names of its channels, which are read in this order if all are present.
    label, time, ids
        Columns of its training data, which have the same roles in other tables that have them.
    n_channels
        Number of its channels.
    """

    channels: Sequence[str] | None = None
    label: str | None = None
    n_channels: int | None = None
    time: str | None = None
    ids: Sequence[str] = ()

    @property
    def one_file_per_series(self) -> bool:
        """Whether the model was trained on a folder of files."""
        return self.label in (FILE_LABEL, FOLDER_LABEL)


@dataclass(frozen=True)
class RequestedColumns:
    """What the caller says about the columns; see `slts.scan_series`.

    `expected` is what a model says.
    """

    id: str | Sequence[str] | None = None
    time: str | None = None
    label: str | None = None
    channels: str | Sequence[str] | None = None
    groups: str | None = None
    every: str | float | None = None
    expected: ExpectedColumns = field(default_factory=ExpectedColumns)

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that identify the series together."""
        if self.id is None or isinstance(self.id, str):
            return () if self.id is None else (self.id,)
        return tuple(self.id)

    @property
    def names_channels(self) -> bool:
        """Whether the caller or a model names the channels: other columns do not matter then."""
        return self.channels is not None or self.expected.channels is not None

    def require_none(self, source: str) -> None:
        """Raise an error if a column of a source without named columns is requested."""
        for role in ("id", "time", "label", "channels", "groups", "every"):
            if getattr(self, role) is not None:
                raise DataError(
                    f"{source} has no named columns, so {role} (--{role}) cannot be used"
                )


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


def is_number(cell: object) -> bool:
    """Tell whether text is a number with a decimal point."""
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


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
    >>> from slts.tables.columns import time_form
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


def first_other_time(column: Any, form: str) -> int:
    """Return the first row whose text does not have a form."""
    return next(k for k in range(len(column)) if not _has_form(column[k : k + 1], form))


def grid_step(every: str, source: str, *, timestamps: bool) -> float:
    """Return the step of a time grid: in nanoseconds for timestamps, else in the unit of the time.

    Examples
    --------
    >>> from slts.tables.columns import grid_step
    >>> grid_step("20ms", "a.csv", timestamps=True), grid_step("0.5", "b.csv", timestamps=False)
    (20000000.0, 0.5)
    """
    number, unit = _number_and_unit(every)
    example = "a duration such as 20ms, 1s or 5min" if timestamps else "a number such as 0.02"
    step = number * (_NANOSECONDS.get(unit, math.nan) if timestamps else 1.0)
    if not 0.0 < step < math.inf or (unit and not timestamps):
        held = "holds timestamps" if timestamps else "holds numbers, whose unit is not known"
        raise DataError(
            f"{source}: every (--every) must be {example}, because the time {held}; got {every}"
        )
    return step


def same_step(one: str | None, other: str | None) -> bool:
    """Whether two intervals are equal, whatever their units; None is no grid.

    Examples
    --------
    >>> from slts.tables.columns import same_step
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


def on_grid(
    values: FloatArray, times: AnyArray, offsets: IntArray, every: str, source: str
) -> tuple[FloatArray, AnyArray, IntArray]:
    """Interpolate the channels of every series linearly, from its first time in equal steps.

    The times increase within each series.
    """
    unit = None
    if times.dtype.kind in "Mm":
        unit = f"{'datetime' if times.dtype.kind == 'M' else 'timedelta'}64[ns]"
        times = times.astype(unit).astype(np.int64)
    step = grid_step(every, source, timestamps=unit is not None)
    starts, stops = offsets[:-1], offsets[1:]
    # Rounding must not remove the last step.
    lengths = np.floor((times[stops - 1] - times[starts]) / step + _TOLERANCE).astype(np.int64) + 1
    if lengths.sum() > _MOST_STEPS * len(times):
        raise DataError(
            f"{source}: every={every} (--every {every}) is too small for these times: "
            f"{len(times):,} rows would become {lengths.sum():,}"
        )
    is_whole = times.dtype.kind in "iu" and step < 2.0**62 and step == int(step)
    passed = [np.arange(n) * (int(step) if is_whole else step) for n in lengths]
    series = [
        np.column_stack(
            [
                _interpolated(grid, times[a:b] - times[a], channel, _TOLERANCE * step)
                for channel in values[a:b].T
            ]
        )
        for grid, a, b in zip(passed, starts, stops, strict=True)
    ]
    grids = np.concatenate([times[a] + grid for a, grid in zip(starts, passed, strict=True)])
    if unit is not None:
        grids = grids.astype(unit)
    return np.ascontiguousarray(np.concatenate(series)), grids, offsets_of(lengths)


def _interpolated(
    grid: FloatArray, times: FloatArray, values: FloatArray, tolerance: float
) -> FloatArray:
    """Interpolate between observed values; before the first and after the last, they are NaN."""
    observed, result = ~np.isnan(values), np.full(len(grid), np.nan)
    if observed.any():
        known = times[observed]
        inside = (grid >= known[0] - tolerance) & (grid <= known[-1] + tolerance)
        result[inside] = np.interp(grid[inside], known, values[observed])
    return result
