"""Data frames as series: long frames, and the pandas containers of sktime and aeon."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray, Layout, Missing
from slts.errors import DataError
from slts.extras import import_extra
from slts.series.batch import SeriesBatch
from slts.series.flatten import (
    as_numbers,
    check_values,
    flatten_array,
    flatten_cells,
    flatten_list,
    offsets_of,
    trim_padding,
)

_FRAME_CLASSES = {
    "pandas": {"DataFrame"},
    "polars": {"DataFrame", "LazyFrame"},
    "pyarrow": {"Table", "RecordBatch"},
    "narwhals": {"DataFrame", "LazyFrame"},
}

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


def read_long(
    X: object,
    *,
    id: str,
    time: str | None,
    channels: str | Sequence[str] | None,
    label: str | None,
    missing: Missing = "ignore",
    check: bool = True,
) -> SeriesBatch | tuple[SeriesBatch, AnyArray]:
    """Read a long frame, one row per step; see `slts.as_series` for the parameters.

    Without `check`, the caller checks the values.
    """
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
    ids = _column(frame, id, "id").to_list()
    codes, names = _number(ids)
    times = None if time is None else _column(frame, time, "time").to_numpy()
    labels = None if label is None else _labels(frame, label, codes, names)
    chosen = _channels(nw, frame, channels, {id, time, label})
    order = _order(codes, times, names)
    values = np.empty((len(codes), len(chosen)))
    for j, name in enumerate(chosen):
        values[:, j] = frame[name].cast(nw.Float64).to_numpy()[order]
    offsets = offsets_of(np.bincount(codes))
    if check:
        check_values(values, offsets, chosen, names, missing=missing)
        values, offsets = trim_padding(values, offsets)
    batch = SeriesBatch.from_checked(values, offsets, chosen)
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
            "drop or average the duplicates, or check that id distinguishes all series"
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


def _channels(
    nw: Any, frame: Any, channels: str | Sequence[str] | None, taken: set[str | None]
) -> tuple[str, ...]:
    """Return the columns that hold values; they must be numeric."""
    schema = frame.schema
    if channels is None:
        chosen = tuple(c for c, dtype in schema.items() if dtype.is_numeric() and c not in taken)
        if not chosen:
            raise DataError(
                f"the frame has no numeric column left for the values; it has {dict(schema)}: "
                "convert a column, or name it with channels="
            )
        return chosen
    chosen = (channels,) if isinstance(channels, str) else tuple(channels)
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
        f"X is a {type(X).__name__}: name the column that identifies its series, "
        "as_series(X, id=...); if each row is a univariate series, pass X.to_numpy()"
    )


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
