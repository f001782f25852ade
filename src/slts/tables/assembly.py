"""Rows of a table are checked, sorted and assembled into series: long, wide and list form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.batch import SeriesBatch
from slts.series.dataset import Columns, Dataset
from slts.series.flatten import offsets_of
from slts.series.missing import trim_padding
from slts.series.naming import names_of, plain_times
from slts.tables.columns import (
    INEXACT,
    Rows,
    first_true,
    joined,
    kind_of,
    plain_column,
)
from slts.tables.roles import call
from slts.tables.times import TIME_FORMS, first_other_time, on_grid, parse_times

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

# In nanoseconds.
_QUARTER_DAY = 6 * 3600 * 10**9
_WHOLE = re.compile(r"([-+]?\d+)\.0*")


def used_columns(columns: Columns, *, labels: bool) -> list[str]:
    """Return the columns to read; labels and groups only if labels are needed."""
    ids = columns.id_columns or (columns.id,)
    names = [*ids, columns.time, *((columns.label, columns.groups) if labels else ())]
    return [*dict.fromkeys(n for n in (*names, *columns.channels) if n is not None)]


def identifiers(table: Any, columns: Columns) -> Any:
    """Return the column of identifiers of rows as they were read."""
    if columns.id_columns:
        return joined(table, columns.id_columns)
    return plain_column(table[columns.id])


def checked_rows(rows: Rows, columns: Columns, *, labels: bool) -> Rows:
    """Raise an error for infinite values, and for rows without id, time or label.

    The columns of the result are the roles, and channels as float64.
    """
    roles: dict[str, Any] = {}
    names = {"id": columns.id, "time": columns.time}
    names |= {"label": columns.label, "groups": columns.groups} if labels else {}
    for role, name in names.items():
        if name is None or (role == "time" and columns.form == "lists"):
            continue
        table = rows.table
        column = identifiers(table, columns) if role == "id" else plain_column(table[name])
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
    return replace(rows, table=pa.table(roles))


def place_in_series(rows: Rows, columns: Columns, row: int) -> str:
    """Return file, row and, if there is one, identifier."""
    id = None if columns.id is None else identifiers(rows.table, columns)[row].as_py()
    return rows.place(row) if id in (None, "") else f"{rows.place(row)} (series {id!r})"


def _checked_numbers(rows: Rows, columns: Columns, name: str) -> Any:
    """Return a channel as float64, which must be finite and represent integers exactly."""
    column = rows.table[name]
    numbers = column.cast(pa.float64(), safe=False)
    row = _first_wrong(column, numbers.to_numpy())
    if row is not None:
        value = column[row].as_py()
        why = "is infinite" if np.isinf(float(value)) else "has more digits than float64 represents"
        raise DataError(
            f"{place_in_series(rows, columns, row)}: {name!r} {why} ({value}). Correct the value, "
            f"or drop the series"
        )
    return numbers


def _first_wrong(column: Any, numbers: FloatArray) -> int | None:
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
            row = first_other_time(column, str(form))
    assert row is not None
    raise DataError(
        f"{place_in_series(rows, columns, row)}: {columns.time!r} (time) holds "
        f"{column[row].as_py()!r}, expected {expected}, as in the first rows"
    )


# -- One row per step


def assemble(table: Any, columns: Columns, source: str, *, share: float | None = None) -> Dataset:
    """Make series from the rows of `checked_rows` in any order, with all steps of the series.

    Series have the order of their first rows.
    """
    encoded = table["id"].combine_chunks().dictionary_encode()
    ids, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    order: Any = np.argsort(codes, kind="stable")
    offsets = offsets_of(np.bincount(codes))
    of_series = {
        role: _of_series(table[role], codes, order[offsets[:-1]], role, ids, columns, source)
        for role in ("label", "groups")
        if role in table.column_names
    }
    is_mixed = bool((np.diff(codes) < 0).any())
    times, notes = None, tuple[str, ...]()
    if columns.time is None and is_mixed:
        notes = (
            "rows of different series are mixed, and there is no time column: the steps of a "
            "series are in the order of its rows",
        )
    if columns.time is not None:
        times = table["time"].to_numpy()
        later = (times[order][1:] > times[order][:-1]) | (np.diff(codes[order]) != 0)
        if not later.all():
            _raise_if_past_midnight(table["time"], codes, order, columns, ids, source)
            order = _sorted_by_time(codes, times, ids, columns, source)
            notes = (f"steps were sorted by {columns.time!r}: the rows are not in order of time",)
        elif not is_mixed:
            # Rows that are in order already are not copied.
            order = slice(None)
        times = times[order]
    values = np.empty((len(codes), len(columns.channels)))
    for c in range(len(columns.channels)):
        values[:, c] = table[str(c)].to_numpy()[order]
    of_series["id"] = np.asarray(ids)
    dataset = dataset_of(values, offsets, columns, source, times=times, of_series=of_series)
    return replace(dataset, notes=notes, share=share)


def dataset_of(
    values: FloatArray,
    offsets: IntArray,
    columns: Columns,
    source: str,
    *,
    times: AnyArray | None = None,
    of_series: Mapping[str, AnyArray],
    place: Callable[[int], str] | None = None,
) -> Dataset:
    """Make a data set of finite or missing values in order; steps without values at ends go.

    `of_series` has identifiers, labels and groups by role. `place` names a series for messages.
    """
    ids = of_series.get("id")
    if columns.every is not None:
        assert times is not None
        values, times, offsets = on_grid(values, times, offsets, columns.every, source)
    series = trim_padding(
        SeriesBatch.from_checked(
            values,
            offsets,
            columns.channel_names,
            None if ids is None else names_of(ids, columns.id),
            None if times is None else plain_times(times),
        )
    )
    values, offsets = series.values, series.offsets
    observed = np.logical_or.reduceat(~np.isnan(values).all(axis=1), offsets[:-1])
    if not observed.all():
        k = int(np.argmin(observed))
        where = f"{source}: series {ids[k]!r}" if place is None and ids is not None else ""
        raise DataError(f"{place(k) if place else where}: the series has no values. Leave it out")
    groups = of_series.get("groups")
    return Dataset(series, of_series.get("label"), ids, source, columns, groups=groups)


def _of_series(
    column: Any, codes: IntArray, first: IntArray, role: str, ids: Sequence[object],
    columns: Columns, source: str,
) -> AnyArray:  # fmt: skip
    """Return the value of every series; raise an error if a value varies within a series."""
    each = column.take(first)
    row = first_true(compute.not_equal(column, each.take(codes)))
    if row is not None:
        id_columns = columns.id_columns or (str(columns.id),)
        raise DataError(
            f"{source}: {getattr(columns, role)!r} ({role}) varies in series {ids[codes[row]]!r}: "
            f"{each[int(codes[row])].as_py()!r} and {column[row].as_py()!r}. It must be the same "
            f"in all rows of a series. If rows with equal {columns.id!r} are several series, name "
            f"all columns that identify one: {call('id', *id_columns, '...')}"
        )
    return plain_labels(each)


def _sorted_by_time(
    codes: IntArray, times: AnyArray, ids: Sequence[object], columns: Columns, source: str
) -> IntArray:
    """Return the order of rows by series and time, which must differ within a series."""
    ranks: IntArray = np.unique(times, return_inverse=True)[1]
    order: IntArray = np.lexsort((ranks, codes))
    twice = (np.diff(codes[order]) == 0) & (np.diff(ranks[order]) == 0)
    if twice.any():
        row = order[int(np.argmax(twice))]
        id_columns = columns.id_columns or (str(columns.id),)
        raise DataError(
            f"{source}: time {times[row]!s} occurs twice in series {ids[codes[row]]!r}: drop or "
            f"average the duplicates. If this id has several series, name all columns that "
            f"identify one: {call('id', *id_columns, '...')}. If another column names channels, "
            f"as after melt, give every channel a column: table.pivot(...) in pandas"
        )
    return order


def _raise_if_past_midnight(
    times: Any, codes: IntArray, order: IntArray, columns: Columns, ids: Sequence[object],
    source: str,
) -> None:  # fmt: skip
    """Raise an error if times of day start again within a series: they do not order its steps.

    A time that falls by less than a quarter of a day may as well be in a row that is not in order.
    """
    if pa.types.is_time(times.type):
        times = times.cast(pa.time64("ns"))
    elif columns.time_form != "clock":
        return
    numbers = times.cast(pa.int64()).to_numpy()[order]
    falls = (np.diff(numbers) <= 0) & (np.diff(codes[order]) == 0)
    of_fall, changes = codes[order][1:][falls], np.diff(numbers)[falls]
    again = np.setdiff1d(of_fall, of_fall[changes >= -_QUARTER_DAY])
    if len(again):
        raise DataError(
            f"{source}: the times of day {columns.time!r} start again within series "
            f"{ids[again[0]]!r}, as at midnight, so they do not order its steps. Add the dates, "
            f"or drop the column if the rows are in order. If all times are of one day, sort the "
            f"rows"
        )


# -- One row per series


def series_of_rows(rows: Rows, columns: Columns, source: str, *, labels: bool) -> Dataset:
    """Read series, one per row: wide form and list form."""
    roles = checked_rows(rows, columns, labels=labels).table
    named, times = roles.column_names, None
    if columns.wide:
        channels = [roles[str(c)].to_numpy() for c in range(len(columns.channels))]
        values = np.stack(channels, axis=1).reshape(-1, 1)
        lengths: IntArray = np.full(len(rows), len(channels), dtype=np.int64)
    else:
        arrays, lengths = _flat_lists(rows, columns)
        values = np.ascontiguousarray(np.stack([arrays[n] for n in columns.channels], axis=1))
        times = arrays.get(str(columns.time))
    of_series = {role: plain_labels(roles[role]) for role in ("label", "groups") if role in named}
    if "id" in named:
        of_series["id"] = plain_array(roles["id"])

    def place(row: int) -> str:
        return place_in_series(rows, columns, row)

    offsets = offsets_of(lengths)
    dataset = dataset_of(
        values, offsets, columns, source, times=times, of_series=of_series, place=place
    )
    return replace(dataset, share=rows.share)


def _flat_lists(rows: Rows, columns: Columns) -> tuple[Mapping[str, AnyArray], IntArray]:
    """Return the concatenated lists of channels and times, and the number of steps of each row."""
    names = [*columns.channels, *([columns.time] if columns.time is not None else [])]
    flat, lengths = {}, None
    for name in names:
        column = rows.table[name].combine_chunks()
        counts: IntArray = column.value_lengths().fill_null(0).to_numpy().astype(np.int64)
        lengths = counts if lengths is None else lengths
        wrong = (counts == 0) | (counts != lengths)
        if wrong.any():
            row = int(np.argmax(wrong))
            problem = (
                f"has {counts[row]} steps and {names[0]!r} has {lengths[row]}: all lists of a "
                f"series must have the same number of steps"
            )
            if counts[row] == 0:
                missing = "has no steps" if column[row].is_valid else "is missing"
                problem = f"{missing}: drop the row"
            raise DataError(f"{place_in_series(rows, columns, row)}: {name!r} {problem}")
        flat[name] = _flat_values(rows, columns, name, column.flatten(), counts)
    assert lengths is not None
    return flat, lengths


def _flat_values(
    rows: Rows, columns: Columns, name: str, values: Any, lengths: IntArray
) -> AnyArray:
    """Return the values of lists; infinite ones and times that do not rise are errors."""
    bounds = np.cumsum(lengths)
    if name == columns.time:
        times: AnyArray = values.to_numpy(zero_copy_only=False)
        starts = np.zeros(len(times), bool)
        starts[bounds[:-1]] = True
        wrong: AnyArray = ~(times[1:] > times[:-1]) & ~starts[1:]
        if wrong.any():
            row = int(np.searchsorted(bounds, int(np.argmax(wrong)) + 1, side="right"))
            place = place_in_series(rows, columns, row)
            raise DataError(f"{place}: the times in {name!r} do not increase: sort the lists")
        return times
    numbers: FloatArray = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    position = _first_wrong(values, numbers)
    if position is not None:
        row = int(np.searchsorted(bounds, position, side="right"))
        raise DataError(
            f"{place_in_series(rows, columns, row)}: step {position - bounds[row] + lengths[row]} "
            f"of {name!r} is {values[position].as_py()}, which is infinite or has more digits than "
            f"float64 represents. Correct the value, or drop the series"
        )
    return numbers


# -- Labels


def plain_array(column: Any) -> AnyArray:
    """Convert an Arrow column without missing values; text becomes an array of text."""
    array: AnyArray = column.to_numpy()
    return np.asarray(array.tolist()) if array.dtype == object else array


def plain_labels(column: Any) -> AnyArray:
    """Convert labels; text that differs only in its form becomes equal."""
    array = plain_array(column)
    if array.dtype.kind != "U":
        return array
    forms = {text: plain_label(text) for text in np.unique(array).tolist()}
    return np.asarray([forms[text] for text in array.tolist()])


def plain_label(text: str) -> str:
    r"""Return the usual form of a label: Unicode NFC, single spaces, whole numbers without point.

    Examples
    --------
    >>> from slts.tables.assembly import plain_label
    >>> plain_label("left\u00a0hand "), plain_label("1.0"), plain_label("cafe\u0301") == "café"
    ('left hand', '1', True)
    """
    text = " ".join(unicodedata.normalize("NFC", text).split())
    match = _WHOLE.fullmatch(text)
    return match[1] if match else text
