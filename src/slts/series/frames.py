"""Data frames as series: long frames, and the pandas containers of sktime and aeon."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray, Layout, Missing
from slts.columns import Columns, RequestedColumns, resolve_columns
from slts.columns.facts import SeriesRows
from slts.columns.rows import (
    NUMERIC,
    SAMPLE_ROWS,
    Chunk,
    arrow_table,
    kind_of,
    parse_times,
    time_form,
    with_identifier,
)
from slts.errors import DataError, warn
from slts.extras import LazyModule, import_extra
from slts.series.batch import SeriesBatch
from slts.series.flatten import (
    as_numbers,
    check_values,
    flatten_array,
    flatten_cells,
    flatten_list,
    offsets_of,
)
from slts.series.missing import trim_padding
from slts.series.naming import names_of, plain_times

pa: Any = LazyModule("pyarrow", "io")

_FRAME_CLASSES = {
    "pandas": {"DataFrame"},
    "polars": {"DataFrame", "LazyFrame"},
    "pyarrow": {"Table", "RecordBatch"},
    "narwhals": {"DataFrame", "LazyFrame"},
}

# How to overrule a guess.
_OVERRULE = "name the channels with --channels (channels=), and the time with --time (time=)"

# Values, offsets and channel names.
Flat = tuple[FloatArray, IntArray, tuple[str, ...] | None]


def _is_instance(x: object, library: str) -> bool:
    """Tell whether `x` is a frame of `library`, without importing it."""
    return any(
        cls.__module__.partition(".")[0] == library and cls.__name__ in _FRAME_CLASSES[library]
        for cls in type(x).__mro__
    )


def is_frame(x: object) -> bool:
    """Tell whether `x` is a data frame of a supported library."""
    return any(_is_instance(x, library) for library in _FRAME_CLASSES)


def is_pandas_frame(x: object) -> bool:
    """Tell whether `x` is a pandas DataFrame."""
    return _is_instance(x, "pandas")


def is_series_like(x: object) -> bool:
    """Tell whether a cell holds a sequence of values, not one value."""
    return (
        hasattr(x, "__len__")
        and hasattr(x, "__getitem__")
        and not isinstance(x, str | bytes | dict)
    )


def has_named_columns(X: Any) -> bool:
    """Tell whether a frame is a table with names, and not one of the containers of sktime."""
    if not is_pandas_frame(X):
        return True
    if X.index.nlevels > 1 or _text_labels(X) is None:
        return False
    return not (X.size and is_series_like(X.iat[0, 0]))


def read_table(
    X: Any, requested: RequestedColumns, *, missing: Missing
) -> SeriesBatch | tuple[SeriesBatch, AnyArray]:
    """Read a long frame; columns that are not requested are guessed, and a warning names them."""
    if is_pandas_frame(X) and X.index.nlevels == 1 and X.index.name not in (None, *X.columns):
        X = X.reset_index()
    given = requested.channels
    if not isinstance(requested.id, str) or requested.time is None or given is None:
        columns = _guess(X, requested)
        if columns.id_columns:
            rows = arrow_table(_eager(X).to_native(), "the data frame")
            X = with_identifier(rows, columns.id_columns)
        return read_long(X, columns, missing=missing)
    channels = (given,) if isinstance(given, str) else tuple(given)
    columns = Columns(requested.id, requested.time, requested.label, channels)
    return read_long(X, columns, missing=missing)


def _guess(X: object, requested: RequestedColumns) -> Columns:
    """Find the columns of a frame in its first rows; warn unless the roles are clear."""
    frame = _eager(X)
    rows = arrow_table(frame.head(SAMPLE_ROWS).to_native(), "the data frame")
    columns = resolve_columns(Chunk(rows, "the data frame"), requested)
    if not columns.long:
        raise DataError(
            "every row of the data frame is one series: use slts.scan_series(X), or for one "
            "channel pass the values, X[columns].to_numpy()"
        )
    if requested.label is None and columns.label is not None:
        ignored = (*columns.ignored, columns.label)
        columns = replace(columns, label=None, ignored=ignored, guessed=columns.guessed - {"label"})
    numbers = (n for n in columns.ignored if kind_of(rows.schema.field(n).type) in NUMERIC)
    if columns.guessed - {"channels"} or ("channels" in columns.guessed and any(numbers)):
        warn(
            f"the columns of the data frame were guessed: {columns}. Name them with id=, time=, "
            f"label= and channels= if this is wrong, or to silence this warning"
        )
    return columns


def _eager(X: object) -> Any:
    """Return a frame of any library as a narwhals frame; it must have rows."""
    nw: Any = import_extra("narwhals", "io")
    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError as error:
        hint = ": collect() it first" if type(X).__name__ == "LazyFrame" else ""
        raise DataError(
            f"id= reads a pandas or polars DataFrame or a pyarrow Table, "
            f"got {type(X).__name__}{hint}"
        ) from error
    if len(frame) == 0:
        raise DataError("X has 0 sample(s) (rows) while a minimum of 1 is required.")
    return frame


def read_long(
    X: object, columns: Columns, *, missing: Missing = "ignore", check: bool = True
) -> SeriesBatch | tuple[SeriesBatch, AnyArray]:
    """Read a long frame, one row per step, and its labels if there is a column for them.

    Raises an error if other rows contradict what was guessed from the first rows. Without `check`,
    the caller checks the values.
    """
    frame, nw = _eager(X), import_extra("narwhals", "io")
    assert columns.id is not None
    codes, names = _number(_column(frame, columns.id, "id").to_list())
    times = None if columns.time is None else _times(nw, frame, columns.time)
    for name in columns.constant:
        varying = SeriesRows(codes).varying(frame[name].cast(nw.Float64).to_numpy())
        if len(varying):
            raise DataError(
                f"column {name!r} is constant in every series of the first rows, so it is not a "
                f"channel, but it varies in series {names[varying[0]]!r}: {_OVERRULE}"
            )
    if times is not None and columns.rising and len(SeriesRows(codes).falling(times)):
        series = names[SeriesRows(codes).falling(times)[0]]
        raise DataError(
            f"column {columns.time!r} rises in every series of the first rows, so it is the time, "
            f"but it does not rise in series {series!r}: {_OVERRULE}"
        )
    labels = None if columns.label is None else _labels(frame, columns.label, codes, names)
    chosen = _channels(nw, frame, columns.channels)
    order = _order(codes, times, names)
    values = np.empty((len(codes), len(chosen)))
    for j, name in enumerate(chosen):
        values[:, j] = frame[name].cast(nw.Float64).to_numpy()[order]
    offsets = offsets_of(np.bincount(codes))
    moments = None if times is None else plain_times(times[order])
    batch = SeriesBatch.from_checked(values, offsets, chosen, names_of(names, columns.id), moments)
    if check:
        check_values(values, offsets, chosen, names, missing=missing)
        batch = trim_padding(batch)
    return batch if labels is None else (batch, labels)


def _column(frame: Any, name: str, argument: str) -> Any:
    """Return a column; it must exist and have no missing entries."""
    if name not in frame.columns:
        raise DataError(
            f"{argument}={name!r} is not a column of the frame; it has {list(frame.columns)}"
        )
    column = frame[name]
    missing = column.is_null().to_numpy()
    if column.dtype.is_float():
        missing = missing | np.isnan(column.to_numpy())
    if missing.any():
        raise DataError(
            f"column {name!r} ({argument}) is missing in row {int(np.argmax(missing))}: "
            "fill it or drop the row"
        )
    return column


def _number(ids: Sequence[Hashable]) -> tuple[IntArray, list[Hashable]]:
    """Number the series in order of appearance; return the number for each row, and the ids."""
    seen: dict[Hashable, int] = {}
    codes = np.fromiter((seen.setdefault(value, len(seen)) for value in ids), np.int64, len(ids))
    return codes, list(seen)


def _times(nw: Any, frame: Any, name: str) -> AnyArray:
    """Return the times as numbers or moments; text would sort 10 before 9."""
    column = _column(frame, name, "time")
    if column.dtype not in (nw.String, nw.Categorical, nw.Enum):
        times: AnyArray = column.to_numpy()
        return times
    text = pa.array(column.to_list(), pa.string())
    form = time_form(text)
    if form is None:
        raise DataError(
            f"column {name!r} (time) holds text such as {text[0].as_py()!r}, expected numbers or "
            f"times such as 2024-01-31T12:00:00"
        )
    parsed: AnyArray = parse_times(text, form).to_numpy(zero_copy_only=False)
    return parsed


def _order(codes: IntArray, times: AnyArray | None, names: Sequence[Hashable]) -> AnyArray:
    """Return the order of rows by series and, within a series, by time if it is given."""
    if times is None:
        return np.argsort(codes, kind="stable")
    try:
        ranks: IntArray = np.unique(times, return_inverse=True)[1]
    except TypeError as error:
        raise DataError(f"the time column cannot be sorted: {error}") from error
    order: IntArray = np.lexsort((ranks, codes))
    twice = (np.diff(codes[order]) == 0) & (np.diff(ranks[order]) == 0)
    if twice.any():
        row = order[int(np.argmax(twice))]
        raise DataError(
            f"time {times[row]!s} occurs twice in the series with id {names[codes[row]]!r}: "
            "drop or average the duplicates. If this id has several series, name all columns that "
            "identify one: --id subject --id trial (id=['subject', 'trial'])"
        )
    return order


def _labels(frame: Any, label: str, codes: IntArray, names: Sequence[Hashable]) -> AnyArray:
    """Return one label per series; it must be constant within the series."""
    labels: AnyArray = _column(frame, label, "label").to_numpy()
    _, first = np.unique(codes, return_index=True)
    expected = labels[first][codes]
    differs = labels != expected
    if differs.any():
        row = int(np.argmax(differs))
        raise DataError(
            f"label {label!r} varies in the series with id {names[codes[row]]!r}: "
            f"{expected[row]!s} and {labels[row]!s}; a series must have one label"
        )
    return labels[first]


def _channels(nw: Any, frame: Any, channels: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that hold values; they must be numeric."""
    schema, chosen = frame.schema, tuple(channels)
    if not chosen or len(set(chosen)) != len(chosen):
        raise DataError(f"channels must be one or more distinct columns, got {channels!r}")
    for name in chosen:
        if name not in schema:
            raise DataError(
                f"channels holds {name!r}, which is not a column of the frame; it has "
                f"{list(schema)}"
            )
        if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
            raise DataError(
                f"channel {name!r} has dtype {schema[name]}, expected numbers: convert it first"
            )
    return chosen


def flatten_frame(X: Any) -> Flat:
    """Read a frame without `id` according to its structure.

    Supported are sktime's frames whose cells hold series, the (instance, time) index of sktime
    and aeon, and frames without text labels that hold one univariate series per row.

    Parameters
    ----------
    X : DataFrame
        A frame of any library; only pandas frames have such a structure.

    Returns
    -------
    values : FloatArray
        Flat values.
    offsets : IntArray
        Bounds of the series.
    channel_names : tuple of str or None
        Column labels, if they name channels.
    """
    if is_pandas_frame(X):
        if X.index.nlevels == 2:
            return _flatten_multiindex(X)
        if X.index.nlevels == 1 and X.size and is_series_like(X.iat[0, 0]):
            return *flatten_cells(X.to_numpy(dtype=object)), _text_labels(X)
        if X.index.nlevels == 1 and _text_labels(X) is None:
            return *flatten_array(_frame_numbers(X, "X"), "channels_first"), None
    raise DataError(
        f"X is a {type(X).__name__} with an index of {X.index.nlevels} levels, expected one level, "
        "or two: instance and time"
    )


def instance_names(X: Any) -> AnyArray | None:
    """Return the names of the series of a pandas frame with an (instance, time) index."""
    if not is_pandas_frame(X) or X.index.nlevels != 2:
        return None
    column = X.index.names[0]
    ids = _number(X.index.get_level_values(0).tolist())[1]
    return names_of(ids, None if column is None else str(column))


def _flatten_multiindex(X: Any) -> Flat:
    """Read a pandas frame with an (instance, time) index and one column per channel."""
    if X.size == 0:
        raise DataError("X has 0 sample(s) (rows) while a minimum of 1 is required.")
    codes, names = _number(X.index.get_level_values(0).tolist())
    order = _order(codes, X.index.get_level_values(1).to_numpy(), names)
    values = _frame_numbers(X, "X").astype(np.float64, copy=False)[order]
    return values, offsets_of(np.bincount(codes)), _text_labels(X)


def flatten_frames(items: Sequence[Any], layout: Layout) -> Flat:
    """Read a list of pandas frames, one per series.

    Parameters
    ----------
    items : sequence of DataFrame
        With text column labels, rows are steps and columns are channels (sktime). Without them,
        `layout` applies, as for arrays (aeon's frames are (channels, time)).
    layout : {"channels_first", "time_first"}
        Order of the axes of frames without text labels.

    Returns
    -------
    values : FloatArray
        Flat values.
    offsets : IntArray
        Bounds of the series.
    channel_names : tuple of str or None
        Column labels, if they are text.
    """
    names = _text_labels(items[0])
    arrays = []
    for index, item in enumerate(items):
        if not is_pandas_frame(item):
            raise DataError(
                f"series {index} is a {type(item).__name__}, expected a DataFrame (as series 0)"
            )
        if _text_labels(item) != names:
            raise DataError(
                f"series {index} has the columns {list(item.columns)}, expected "
                f"{list(items[0].columns)} (as series 0): put the channels in the same order"
            )
        arrays.append(_frame_numbers(item, f"series {index}"))
    return *flatten_list(arrays, layout if names is None else "time_first"), names


def _text_labels(X: Any) -> tuple[str, ...] | None:
    """Return the column labels of a pandas frame if all are text."""
    labels = X.columns.tolist()
    return tuple(labels) if labels and all(isinstance(c, str) for c in labels) else None


def _frame_numbers(X: Any, where: str) -> AnyArray:
    """Return the cells of a pandas frame as numbers; missing ones become NaN."""
    array = X.to_numpy()
    if array.dtype == object:
        # Nullable dtypes become objects, and pd.NA is not a number.
        array = X.to_numpy(dtype=object, na_value=np.nan)
    return as_numbers(array, where)
