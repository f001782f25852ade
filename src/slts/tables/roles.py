"""The role of each column of a table: named by the caller, or by a short list of usual names.

Nothing is guessed from values. A table that is not clear raises an error with the call that makes
it clear.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from slts.errors import DataError
from slts.quantities import list_first
from slts.series.dataset import Columns, call
from slts.series.values import Mask
from slts.tables.assembly import grid_step, steps_of
from slts.tables.rows import (
    NUMERIC,
    Kind,
    Rows,
    checked_rows,
    is_number,
    joined,
    kind_of,
    plain_column,
    require_distinct,
    time_form,
)

# Usual names of columns, in any case.
ID_NAMES = ("id", "series", "series_id", "case_id", "recording", "recording_id")
TIME_NAMES = ("time", "t", "timestamp", "step", "date", "datetime")
LABEL_NAMES = ("label", "class", "class_label", "target", "category")
# Columns without a name, such as the row numbers that pandas and Dask write with a frame.
_UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__|__null_dask_index__")
# The label of a folder with one file per series is no column of its files.
FILE_LABEL, FOLDER_LABEL = "(label)", "(folder)"
# Numbers with a decimal comma, or with separators of thousands.
_SEPARATED = re.compile(r"[-+]?(\d+|\d{1,3}([.,' ]\d{3})+)([.,]\d+)?")
# Least number of columns that can be the steps of series, one series per row.
LEAST_STEPS = 7
# Steps that show that a column rises.
_LEAST_INCREASES = 8
# Kinds of columns that cannot have a role, whatever their name.
_UNUSABLE: dict[str, tuple[Kind, ...]] = {
    "id": ("list", "other", "empty"),
    "time": ("boolean", "other", "empty"),
    "label": ("list", "other", "empty"),
}


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


@dataclass(frozen=True)
class _Table:
    """The first rows of a table, and the kinds of its columns."""

    rows: Rows
    has_header: bool

    @property
    def name(self) -> str:
        return self.rows.origin.name

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        return {f.name: kind_of(f.type) for f in self.rows.table.schema}

    def column(self, name: str) -> Any:
        return self.rows.table[name]

    def described(self) -> str:
        """List the columns with their types."""
        texts = [f"{name!r} ({kind})" for name, kind in self.kinds.items()]
        return list_first(texts, 20) or "none"

    def error(self, problem: str) -> DataError:
        return DataError(f"{self.name}: {problem}. The columns are {self.described()}")

    def first(self, name: str) -> Any:
        """Return the first value of a column."""
        values = self.column(name)[:1000].to_pylist()
        return next((value for value in values if value not in (None, "")), None)

    def example(self, name: str) -> str:
        """Return the first value of a column, for messages."""
        value = self.first(name)
        return "no value" if value is None else repr(value)

    def is_unique(self, *names: str) -> bool:
        """Tell whether columns together differ in all rows."""
        rows = self.rows.table
        column = joined(rows, names) if names[1:] else rows[names[0]]
        return len(column.unique()) == len(self.rows)

    def numbers(self, names: Sequence[str]) -> list[str]:
        """Return those columns that have a name and hold numbers."""
        return [n for n in names if self.kinds[n] in NUMERIC and not _UNNAMED.fullmatch(n)]

    def numbers_rows(self, name: str) -> bool:
        """Tell whether a column without a name is empty or an index: 0, 1, 2, ... in every file."""
        kind = self.kinds[name]
        if kind != "integer" or name.startswith("__"):
            return kind in ("integer", "empty")
        numbers = self.column(name).to_numpy()
        return bool(((np.diff(numbers, prepend=-1) == 1) | (numbers == 0)).all())

    def stored(self, name: str) -> str:
        """Return the column of a name, which may be in another form of Unicode."""
        forms = {unicodedata.normalize("NFC", own): own for own in self.kinds}
        return name if name in self.kinds else forms.get(unicodedata.normalize("NFC", name), name)

    def require(self, name: str, role: str) -> None:
        """Raise an error for a column that does not exist."""
        if name not in self.kinds:
            raise self.error(f"there is no column {name!r} ({role})")

    def with_usual_name(self, names: Sequence[str], role: str, taken: set[str]) -> str | None:
        """Return the only free column with one of the usual names."""
        matches = [
            name
            for name, kind in self.kinds.items()
            if name.lower() in names and name not in taken and kind not in _UNUSABLE[role]
        ]
        if len(matches) > 1:
            calls = " or ".join(call(role, name) for name in matches)
            raise self.error(f"{' and '.join(map(repr, matches))} may be the {role}: use {calls}")
        return matches[0] if matches and self.has_header else None

    def span(self, name: str) -> Sequence[str]:
        """Return the columns of a span such as ``c1..c12``."""
        first, dots, last = name.partition("..")
        names = list(self.kinds)
        if dots and name not in self.kinds and first in self.kinds and last in self.kinds:
            return names[names.index(first) : names.index(last) + 1] or [name]
        return [name]


def resolve_columns(
    rows: Rows,
    requested: RequestedColumns,
    *,
    has_header: bool = True,
    one_series: bool = False,
) -> Columns:
    """Find the role of each column from its name and the first rows of a table.

    `one_series` says that the rows are those of files with one series each.
    """
    table = _Table(rows, has_header)
    if not rows.table.num_rows:
        raise DataError(f"{table.name} has no rows")
    names = rows.table.schema.names
    require_distinct(names, table.name)
    chosen = _requested_channels(table, requested)
    requested = _with_roles_of_model(table, requested, chosen or (), one_series)
    roles = _named_roles(table, requested, chosen or (), one_series)
    taken = {*roles.values(), *requested.ids, *(chosen or ())}
    free = [name for name in names if name not in taken]
    row_numbers = [n for n in free if _UNNAMED.fullmatch(n) and table.numbers_rows(n)]
    free = [name for name in free if name not in row_numbers]
    form = _form(table, requested, roles, free, chosen) if not one_series else "long"
    if not has_header and not one_series:
        roles["label"] = _label_without_header(table, requested, free, chosen)
        free = [name for name in free if name != roles["label"]]
    id_columns = requested.ids if len(requested.ids) > 1 else ()
    columns = Columns(
        channels=chosen or tuple(free), form=form, id_columns=id_columns, has_header=has_header,
        every=None if requested.every is None else str(requested.every),
        id=roles["id"], time=roles["time"], label=roles["label"], groups=roles["groups"],
    )  # fmt: skip
    _check_channels(table, columns, named=chosen is not None)
    columns = replace(columns, time_form=_time_form(table, columns))
    if chosen is None and columns.form != "wide":
        _check_values(table, columns)
    return replace(columns, ignored=(*row_numbers, *(() if chosen is None else free)))


def _named_roles(
    table: _Table, requested: RequestedColumns, channels: Sequence[str], one_series: bool
) -> dict[str, str | None]:
    """Return id, time, label and groups: as requested, else by the usual names."""
    taken = {*channels}
    roles = {role: getattr(requested, role) for role in ("time", "label", "groups")}
    named = [("id", name) for name in requested.ids]
    named += [(role, name) for role, name in roles.items() if name is not None]
    roles["id"] = ", ".join(requested.ids) or None
    for role, name in named:
        table.require(name, role)
        # The group may be a part of the identifier: trials of a subject.
        if name in taken and not (role == "groups" and name in requested.ids):
            raise DataError(f"{table.name}: column {name!r} cannot have two roles ({role})")
        taken.add(name)
    usual = {"id": ID_NAMES, "time": TIME_NAMES, "label": LABEL_NAMES}
    for role, names in usual.items():
        if roles[role] is None and not (one_series and role == "id"):
            roles[role] = table.with_usual_name(names, role, taken)
            taken.add(roles[role] or "")
    return roles


def _with_roles_of_model(
    table: _Table, requested: RequestedColumns, channels: Sequence[str], one_series: bool
) -> RequestedColumns:
    """Give columns that the caller does not name the roles that they had in training."""
    expected = requested.expected
    taken = {*channels, *requested.ids, requested.time, requested.label, requested.groups}
    free = set(table.kinds) - taken
    if requested.label is None and expected.label in free:
        requested = replace(requested, label=expected.label)
    if requested.time is None and expected.time in free:
        requested = replace(requested, time=expected.time)
    if not requested.ids and not one_series and expected.ids and free.issuperset(expected.ids):
        requested = replace(requested, id=tuple(expected.ids))
    return requested


def _requested_channels(table: _Table, requested: RequestedColumns) -> tuple[str, ...] | None:
    """Return the channels that the caller or a model names."""
    names, expected = requested.channels, requested.expected
    of_model = tuple(map(table.stored, expected.channels or ()))
    if names is None:
        if expected.channels is None or not table.has_header:
            return None
        absent = [name for name in of_model if name not in table.kinds]
        if absent:
            near = {name.casefold(): name for name in table.kinds}
            raise table.error(
                f"there is no column {absent[0]!r}, a channel of the model. Name the columns to "
                f"use for {list_first(of_model)}: "
                f"{call('channels', *(near.get(name.casefold(), '...') for name in of_model))}"
            )
        return of_model
    if isinstance(names, str):
        # A comma may be part of the name of a column.
        names = [names] if names in table.kinds else [name.strip() for name in names.split(",")]
    chosen = tuple(column for name in names for column in table.span(table.stored(name)))
    if not chosen or len(set(chosen)) != len(chosen):
        raise DataError(f"channels must be one or more distinct columns, got {list(names)}")
    for name in chosen:
        table.require(name, "channels")
    # Names decide, not positions.
    return of_model if set(of_model) == set(chosen) else chosen


# -- What a row is


def _form(
    table: _Table,
    requested: RequestedColumns,
    roles: Mapping[str, str | None],
    free: Sequence[str],
    chosen: tuple[str, ...] | None,
) -> Literal["long", "wide", "lists"]:
    """Return what a row is: a step, or a series; raise an error if that is not clear."""
    lists = [name for name in chosen or free if table.kinds[name] == "list"]
    if lists and (chosen is None or len(lists) == len(chosen)):
        numbers = table.numbers(free)
        if chosen is None and numbers:
            raise table.error(
                f"{lists[0]!r} holds lists and {numbers[0]!r} one number per row. If a row is a "
                f"series, use {call('channels', *lists)}. If it is a step, use "
                f"{call('channels', *numbers)}"
            )
        return "lists"
    if not table.has_header:
        return "wide"
    id, steps = roles["id"], chosen or _numbered(table, free)
    may_be_wide = requested.expected.channels is None and roles["time"] is None
    may_be_wide = may_be_wide and len(steps) >= LEAST_STEPS
    is_series = id is None or table.is_unique(*(requested.ids or (id,)))
    if may_be_wide and is_series:
        return "wide"
    if may_be_wide and chosen is None:
        raise table.error(
            f"{id!r} (id) is repeated, but the numbered columns may be the steps of a series per "
            f"row. If a row is a step, use {call('channels', _span(table, steps))}. If it is a "
            f"series, name all columns that identify it, id=[...] (--id ... --id ...), or drop "
            f"{id!r}; in pandas: table.drop(columns={list(requested.ids or (id,))})"
        )
    if id is None:
        raise _no_identifier(table, free, roles)
    is_short = table.rows.table.num_rows > 1 and table.is_unique(*(requested.ids or (id,)))
    all_named = chosen is not None and roles["time"] is not None
    if is_short and not all_named and requested.expected.channels is None:
        raise table.error(
            f"{id!r} (id) differs in every row, so every series would have one step. Name the "
            f"column that identifies a series: id='...' (--id ...){_if_wide(table, free)}"
        )
    return "long"


def _numbered(table: _Table, free: Sequence[str]) -> tuple[str, ...]:
    """Return the columns whose names are a stem and increasing numbers, such as time_0, time_1.

    All free columns of numbers must be such columns.
    """
    kinds = (*NUMERIC, "empty")
    numbers = [name for name in free if table.kinds[name] in kinds]
    matches = [re.fullmatch(r"(.*?)(\d+(?:\.\d+)?)", name) for name in numbers]
    parts = [(match[1], float(match[2])) for match in matches if match]
    same = len(parts) == len(numbers) > 0 and len({stem for stem, _ in parts}) == 1
    if not same or any(np.diff([number for _, number in parts]) <= 0):
        return ()
    return tuple(numbers)


def _if_wide(table: _Table, free: Sequence[str]) -> str:
    """Return how to name the steps if every row is a series; nothing for a few columns."""
    numbers = table.numbers(free)
    stems = Counter(name.rstrip("0123456789.") for name in numbers)
    stem, size = max(stems.items(), key=lambda item: item[1], default=("", 0))
    if size >= LEAST_STEPS:
        # Others, such as the number of the row, are no steps.
        numbers = [name for name in numbers if name.rstrip("0123456789.") == stem]
    if len(numbers) < LEAST_STEPS:
        return ""
    return f". If a row is a series, name its steps: {call('channels', _span(table, numbers))}"


def _span(table: _Table, names: Sequence[str]) -> str:
    """Return the shortest text that names some columns."""
    span = f"{names[0]}..{names[-1]}"
    return span if list(table.span(span)) == list(names) else ",".join(names)


def _no_identifier(
    table: _Table, free: Sequence[str], roles: Mapping[str, str | None]
) -> DataError:
    """Return the question about the identifier; columns with repeated values may be it."""
    n_rows = table.rows.table.num_rows
    repeated = [
        name
        for name in free
        if table.kinds[name] in ("text", "integer")
        and 1 < len(table.column(name).unique()) < n_rows
    ]
    proposed = [[name] for name in repeated[:2]] + ([repeated[:2]] if repeated[1:] else [])
    calls = " or ".join(call("id", *names) for names in proposed) or call("id", "...")
    if_wide = _if_wide(table, free) if roles["time"] is None else ""
    melted = _if_melted(table, free[-2], table.numbers(free)) if free[1:] else ""
    return table.error(
        f"no column is named as the identifier of the series. Name it, such as {calls}"
        f"{if_wide}. If there is none, add one, or put every series in a file of its own, in one "
        f"folder{'. ' if melted else ''}{melted}"
    )


def _label_without_header(
    table: _Table, requested: RequestedColumns, free: Sequence[str], chosen: object
) -> str | None:
    """Return the first column, as in the UCR archive, unless the caller says otherwise."""
    if requested.label is not None or chosen is not None:
        return requested.label
    first, last = free[0], free[-1]
    values = table.column(first).drop_null().to_pylist()
    if table.kinds[first] == "text":
        return first
    if table.kinds[last] != "text" and all(value == int(value) for value in values):
        return first
    raise DataError(
        f"{table.name} has no header, and its first column is not a label, as in files of the UCR "
        f"archive. Name the label: {call('label', last)}, or the steps if there is none: "
        f"{call('channels', f'{first}..{last}')}"
    )


# -- Columns that nobody named


def _check_channels(table: _Table, columns: Columns, *, named: bool) -> None:
    """Raise an error unless every channel holds numbers, and was named unless it has values."""
    kinds: tuple[Kind, ...] = ("list",) if columns.form == "lists" else NUMERIC
    if not columns.channels:
        raise table.error("no column is left for the channels")
    for name in columns.channels:
        kind, dtype = table.kinds[name], table.rows.table.schema.field(name).type
        may_be_empty = columns.form == "wide" or (named and columns.form == "long")
        is_question = not named and _UNNAMED.fullmatch(name) is not None
        if is_question or (kind not in kinds and not (kind == "empty" and may_be_empty)):
            _raise_if_misspelt(table, name)
            if not named:
                raise _nobody_named(table, columns, name)
            raise DataError(
                f"{table.name}: channel {name!r} holds {kind}, such as {table.example(name)}, "
                f"expected numbers"
            )
        if kind == "list" and kind_of(dtype.value_type) not in (*NUMERIC, "empty"):
            raise DataError(
                f"{table.name}: channel {name!r} has type {dtype}, expected lists of numbers"
            )


def _check_values(table: _Table, columns: Columns) -> None:
    """Raise an error if a channel that nobody named is constant or rising in every series."""
    checked = checked_rows(table.rows, columns, labels=False)
    values, offsets, *_ = steps_of(table.rows, checked, replace(columns, every=None))
    if len(values) == len(offsets) - 1:
        return
    high, low = (f.reduceat(values, offsets[:-1]) for f in (np.fmax, np.fmin))
    constant = ((high == low) | np.isnan(high)).all(axis=0)
    same = np.ones(len(values) - 1, dtype=bool)
    same[offsets[1:-1] - 1] = False
    increases = np.diff(values, axis=0)[same]
    rising = (increases > 0).all(axis=0) & (len(increases) >= _LEAST_INCREASES)
    if constant.any():
        raise _safety(table, columns, constant, "constant in every series", "label")
    if rising.any():
        raise _safety(table, columns, rising, "rising in every series, like a time", "time")


def _safety(table: _Table, columns: Columns, wrong: Mask, problem: str, role: str) -> DataError:
    """Return the question about channels that may be something else."""
    names = [name for name, is_wrong in zip(columns.channels, wrong, strict=True) if is_wrong]
    others = [name for name in columns.channels if name not in names]
    answers = [f"{list_first([*map(repr, names)])}: {problem}"]
    if getattr(columns, role) is None:
        answers.append(f"If {names[0]!r} is the {role}, use {call(role, names[0])}")
    if others:
        answers.append(f"To leave out what is no channel, use {call('channels', *others)}")
    answers.append(f"To use all as channels, use {call('channels', *columns.channels)}")
    return table.error(". ".join(answers))


def without_column(columns: Columns, name: str, others: Sequence[str]) -> str:
    """Return what to do if one file has a column that another, with columns `others`, lacks."""
    channels = [channel for channel in columns.channels if channel in others]
    if not channels or name in (columns.id, *columns.id_columns, columns.time, columns.label):
        return "Add the column, or leave the file out"
    return f"To use the channels that both have, use {call('channels', *channels)}"


def _nobody_named(table: _Table, columns: Columns, name: str) -> DataError:
    """Return the question about a column that cannot be a channel; it may name channels."""
    is_text, dtype = table.kinds[name] == "text", table.rows.table.schema.field(name).type
    holds = f"text, such as {table.example(name)}," if is_text else f"values of type {dtype}"
    numbers = table.numbers(columns.channels)
    may_be = ("time", "label") if columns.form == "long" else ("id", "label")
    calls = [call(role, name) for role in may_be if getattr(columns, role) is None]
    answers = [_if_time_of_day(table, name)]
    if not answers[0] and calls:
        answers = [f"If it is one of these, use {' or '.join(calls)}"]
    if _UNNAMED.fullmatch(name) and table.kinds[name] in NUMERIC:
        answers.append(f"To use all as channels, use {call('channels', *columns.channels)}")
    pivot = _if_melted(table, name, numbers) if columns.form == "long" else ""
    if pivot or numbers:
        answers.append(pivot or f"To leave it out, use {call('channels', *numbers)}")
    how = ". ".join(filter(None, answers)) or "Drop it, or name the channels"
    return table.error(f"column {name!r} holds {holds} and has no role. {how}")


def _if_melted(table: _Table, name: str, numbers: Sequence[str]) -> str:
    """Return how to pivot a table if text names its channels; nothing if it does not.

    The values are the only numbers, or the column after the text, as in pandas. The other columns
    identify a row only together with the text.
    """
    names = [n for n in table.kinds if n == name or not _UNNAMED.fullmatch(n)]
    after = names[names.index(name) + 1 :]
    values = numbers if len(numbers) == 1 else after if after == [*numbers][-1:] else []
    index = [n for n in names if n not in (name, *values)]
    may_be = table.kinds[name] == "text" and len(values) == 1 and len(index) > 1
    if not may_be or any(table.kinds[n] in ("list", "other") for n in index):
        return ""
    if table.is_unique(*index) and len(table.column(name).unique()) > 1:
        return ""
    return (
        f"If {name!r} names channels, as after melt, give every channel a column; in pandas: "
        f"table.pivot(index={index}, columns={name!r}, values={values[0]!r}).reset_index()"
    )


def _if_time_of_day(table: _Table, name: str) -> str:
    """Return how to add a date to times such as 12:30:00; nothing for other columns."""
    if re.fullmatch(r"\d\d:\d\d(:\d\d(\.\d+)?)?", str(table.first(name))) is None:
        return ""
    return (
        f"A time of day needs a date. If no series passes midnight, add the same date to all; in "
        f"pandas: table[{name!r}] = '2024-01-31 ' + table[{name!r}].astype(str)"
    )


def _raise_if_misspelt(table: _Table, name: str) -> None:
    """Raise an error that names the cell if all cells of text but a few are numbers."""
    if table.kinds[name] != "text":
        return
    cells = table.column(name).to_pylist()
    wrong = [row for row, cell in enumerate(cells) if cell and not is_number(cell)]
    has_marks = all(_SEPARATED.fullmatch(cells[row].strip()) for row in wrong)
    if wrong and (has_marks or 2 * len(wrong) < len(cells)):
        holds = "holds numbers with separators, such as" if has_marks else "holds"
        raise DataError(
            f"{table.rows.place(wrong[0])}: {name!r} {holds} {cells[wrong[0]]!r}, expected a "
            f"number with a decimal point. Correct the cell, or leave it empty if it is missing. "
            f"Thousands have no separators, and decimal commas need semicolons between cells"
        )


def _time_form(table: _Table, columns: Columns) -> str | None:
    """Return how text is read as time; raise an error for other columns than times."""
    name, every = columns.time, columns.every
    if name is None:
        if every is not None:
            raise DataError(
                f"{table.name}: every={every} (--every) resamples on a time grid, but there is no "
                f"time column. Name it: time='...' (--time ...)"
            )
        return None
    kind, form = table.kinds[name], None
    if kind == "text":
        # Reading names a later time of another form.
        form = time_form(plain_column(table.column(name)))
    wanted = ("list",) if columns.form == "lists" else ("number", "integer", "time")
    if form is None and kind not in wanted:
        add_date = _if_time_of_day(table, name)
        raise DataError(
            f"{table.name}: column {name!r} (time) holds {kind}, such as {table.example(name)}, "
            f"expected a number, or a date and time such as 2024-01-31 12:00:00"
            f"{'. ' if add_date else ''}{add_date}"
        )
    if every is not None and columns.form == "long":
        grid_step(every, table.name, timestamps=form not in (None, "number") or kind == "time")
    return form
