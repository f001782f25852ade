"""Rows of a table are checked, sorted and assembled into series: long, wide and list form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.extras import LazyModule
from slts.series.batch import SeriesBatch, offsets_of
from slts.series.dataset import Columns, Dataset
from slts.series.missing import trim_padding
from slts.series.naming import names_of, plain_times
from slts.tables.columns import (
    INEXACT,
    TIME_FORMS,
    Rows,
    call,
    first_other_time,
    first_true,
    joined,
    kind_of,
    on_grid,
    parse_times,
    plain_column,
)

pa: Any = LazyModule("pyarrow", "io")
compute: Any = LazyModule("pyarrow.compute", "io")

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
    return pa.table(roles)


def place_in_series(rows: Rows, columns: Columns, row: int) -> str:
    """Return file, row and, if there is one, identifier."""
    id = None if columns.id is None else identifiers(rows.table, columns)[row].as_py()
    return rows.place(row) if id in (None, "") else f"{rows.place(row)} (series {id!r})"


def _checked_numbers(rows: Rows, columns: Columns, name: str) -> Any:
    """Return a channel as float64, which must be finite and represent integers exactly."""
    column = plain_column(rows.table[name])
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


class Steps(NamedTuple):
    """Values of all steps, series by series in the order of time, and bounds of the series."""

    values: FloatArray
    offsets: IntArray
    times: AnyArray | None = None
    notes: tuple[str, ...] = ()


def steps_of(rows: Rows, checked: Any, columns: Columns) -> Steps:
    """Return the steps of rows, which `checked_rows` has checked, in the form of the table."""
    if columns.form == "long":
        return _long_steps(checked, *_series(checked["id"], whole=True), columns, rows.origin.name)
    if columns.form == "wide":
        channels = [checked[str(c)].to_numpy() for c in range(len(columns.channels))]
        values = np.stack(channels, axis=1).reshape(-1, 1)
        return Steps(values, len(channels) * np.arange(len(rows) + 1))
    arrays, lengths = _flat_lists(rows, columns)
    values = np.ascontiguousarray(np.stack([arrays[name] for name in columns.channels], axis=1))
    return Steps(values, offsets_of(lengths), arrays.get(str(columns.time)))


def read_series_of_rows(rows: Rows, columns: Columns, source: str, *, labels: bool) -> Dataset:
    """Read series, one per row: wide form and list form."""
    checked = checked_rows(rows, columns, labels=labels)
    steps = steps_of(rows, checked, columns)

    def place(row: int) -> str:
        return place_in_series(rows, columns, row)

    dataset = _dataset(steps, checked, np.arange(len(rows)), columns, source, place)
    return replace(dataset, share=rows.share)


def assemble(
    checked: Any, columns: Columns, source: str, *, share: float | None, whole: bool = False
) -> Dataset:
    """Make series from checked rows in long form, with all rows of the series.

    The rows of a series are contiguous, unless a table is read `whole`. Series have the order of
    their first rows.
    """
    codes, first = _series(checked["id"], whole=whole)
    for role in (role for role in ("label", "groups") if role in checked.column_names):
        column, each = checked[role], checked[role].take(first)
        row = first_true(compute.not_equal(column, each.take(codes)))
        if row is not None:
            raise DataError(
                f"{source}: {getattr(columns, role)!r} ({role}) varies in series "
                f"{checked['id'][row].as_py()!r}: {each[int(codes[row])].as_py()!r} and "
                f"{column[row].as_py()!r}. It must be the same in all rows of a series."
                f"{_several_ids(columns)}"
            )
    steps = _long_steps(checked, codes, first, columns, source)

    def place(series: int) -> str:
        return f"{source}: series {checked['id'][int(first[series])].as_py()!r}"

    dataset = _dataset(steps, checked, first, columns, source, place)
    return replace(dataset, share=share)


def _several_ids(columns: Columns) -> str:
    names = columns.id_columns or (str(columns.id),)
    return (
        f" If rows with equal {columns.id!r} are several series, name all columns that identify "
        f"one: {call('id', *names, '...')}"
    )


def _dataset(
    steps: Steps,
    checked: Any,
    first: IntArray,
    columns: Columns,
    source: str,
    place: Callable[[int], str],
) -> Dataset:
    """Make a data set; steps without values at the ends of series are removed.

    `first` is a row of every series, and `place` names a series for messages.
    """
    values, offsets, times, notes = steps
    if columns.every is not None:
        assert times is not None
        values, times, offsets = on_grid(values, times, offsets, columns.every, source)
    of_series = {
        role: plain_array(checked[role].take(first))
        for role in ("id", "label", "groups")
        if role in checked.column_names
    }
    ids, label, groups = map(of_series.get, ("id", "label", "groups"))
    names = None if ids is None else names_of(ids, columns.id)
    known = None if times is None else plain_times(times)
    series = trim_padding(
        SeriesBatch.from_checked(values, offsets, columns.channel_names, names, known)
    )
    missing = np.isnan(series.values).all(axis=1)
    empty = np.logical_and.reduceat(missing, series.offsets[:-1])
    if empty.any():
        raise DataError(f"{place(int(np.argmax(empty)))}: the series has no values. Leave it out")
    return Dataset(
        series, plain_labels(label), ids, source, columns, notes, groups=plain_labels(groups)
    )


# -- One row per step


def _series(ids: Any, *, whole: bool) -> tuple[IntArray, IntArray]:
    """Return the number of the series of every row, and the first row of every series."""
    if whole:
        ids = ids.combine_chunks()
        codes: IntArray = ids.dictionary_encode().indices.to_numpy()
        return codes, np.unique(codes, return_index=True)[1]
    first = series_starts(ids)
    return np.repeat(np.arange(len(first)), np.diff(np.append(first, len(ids)))), first


def series_starts(ids: Any) -> IntArray:
    """Return the rows at which another series starts."""
    ids = ids.combine_chunks()
    new = compute.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    return np.flatnonzero(np.append(True, new))


def _long_steps(
    checked: Any, codes: IntArray, first: IntArray, columns: Columns, source: str
) -> Steps:
    """Sort rows by series and time."""
    offsets = offsets_of(np.bincount(codes))
    is_mixed = bool((np.diff(codes) < 0).any())
    order: Any = np.argsort(codes, kind="stable") if is_mixed else slice(None)
    times, notes = None, tuple[str, ...]()
    if columns.time is not None:
        times = checked["time"].to_numpy()
        rises = times[order][1:] > times[order][:-1]
        if not (rises | (np.diff(codes[order]) != 0)).all():
            ids = checked["id"].take(first)
            order = _sorted_by_time(codes, times, ids, columns, source)
            notes = (f"steps were sorted by {columns.time!r}: the rows are not in order of time",)
        times = times[order]
    elif is_mixed:
        raise DataError(
            f"{source}: rows of different series are mixed, and there is no time column, so that "
            f"the order of the steps is not known. Name the time: time='...' (--time ...). If the "
            f"rows of every series are in order, sort the table by {columns.id!r} first"
        )
    values = np.empty((len(codes), len(columns.channels)))
    for c in range(len(columns.channels)):
        values[:, c] = checked[str(c)].to_numpy()[order]
    return Steps(values, offsets, times, notes)


def _sorted_by_time(
    codes: IntArray, times: AnyArray, ids: Any, columns: Columns, source: str
) -> IntArray:
    """Return the order of rows by series and time, which must differ within a series."""
    order: IntArray = np.lexsort((times, codes))
    ordered = times[order]
    twice = (np.diff(codes[order]) == 0) & (ordered[1:] == ordered[:-1])
    if twice.any():
        row = order[int(np.argmax(twice))]
        raise DataError(
            f"{source}: time {times[row]!s} occurs twice in series "
            f"{ids[int(codes[row])].as_py()!r}: drop or average the duplicates."
            f"{_several_ids(columns)}. If another column names channels, as after melt, give every "
            f"channel a column: table.pivot(...) in pandas"
        )
    return order


# -- One row per series


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
            raise DataError(
                f"{place_in_series(rows, columns, row)}: {name!r} has {counts[row]} steps and "
                f"{names[0]!r} has {lengths[row]}: all lists of a series must have the same number "
                f"of steps, at least one. Drop the row, or correct it"
            )
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


def plain_labels(labels: AnyArray | None) -> AnyArray | None:
    """Convert labels; text that differs only in its form becomes equal."""
    if labels is None or labels.dtype.kind != "U":
        return labels
    forms = {text: plain_label(text) for text in np.unique(labels).tolist()}
    return np.asarray([forms[text] for text in labels.tolist()])


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
