"""Lists, arrays and pandas containers of series -> flat values and offsets; checks of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, get_args

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray, Layout, Missing
from slts.errors import DataError, warn
from slts.quantities import count
from slts.series.naming import names_of

_NUMBER_KINDS = "biuf"
# Ratio of channels to steps from which the axes of equal series may be swapped.
_SWAPPED_RATIO = 4
_FRAME_CLASSES = {
    "pandas": {"DataFrame"},
    "polars": {"DataFrame", "LazyFrame"},
    "pyarrow": {"Table", "RecordBatch"},
    "narwhals": {"DataFrame", "LazyFrame"},
}
_ACCEPTED = (
    "a SeriesBatch, a list of 2-D arrays (channels, time), a 3-D array (n, channels, time), "
    "a 2-D array (n, time), or a data frame"
)


class Flat(NamedTuple):
    """Values and bounds of series; names of channels and of series, if they have names."""

    values: FloatArray
    offsets: IntArray
    channel_names: tuple[str, ...] | None = None
    series_names: AnyArray | None = None


def flatten(X: object, layout: Layout) -> Flat:
    """Flatten series according to the type of their container."""
    if isinstance(X, list | tuple):
        return _flatten_frames(X, layout) if X and _is_pandas(X[0]) else flatten_list(X, layout)
    if _is_pandas(X):
        return _flatten_frame(X)
    if is_sparse(X):
        as_numbers(X, "X")  # raises the TypeError for sparse data
    if isinstance(X, Mapping):
        raise DataError(f"X is a {type(X).__name__}, expected {_ACCEPTED}: try list(X.values())")
    if isinstance(X, str | PathLike):
        raise DataError(
            f"X is of type {type(X).__name__}, expected {_ACCEPTED}. Read a file with "
            f"slts.tables.read_series, or scan it with slts.scan_series"
        )
    if hasattr(X, "__dask_graph__"):
        raise DataError(
            "X is a Dask collection: use slts.scan_series(X, label='...'). A bag holds pairs "
            "(series, label)."
        )
    if not hasattr(X, "__array__"):
        remedy = ". Read a scan: X.read().series" if hasattr(X, "parts") else ""
        raise DataError(f"X is of type {type(X).__name__}, expected {_ACCEPTED}{remedy}")
    array = X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    holds_objects = array.dtype == object and array.ndim in (1, 2) and array.size > 0
    if holds_objects and _is_series_like(array.flat[0]):
        return flatten_list(array, layout) if array.ndim == 1 else _flatten_cells(array)
    return flatten_array(as_numbers(array, "X"), layout)


def check_layout(layout: str) -> None:
    """Raise `DataError` unless `layout` is one of the two known ones."""
    if layout not in get_args(Layout):
        raise DataError(f"layout must be 'channels_first' or 'time_first', got {layout!r}")


def warn_if_swapped(X: object) -> None:
    """Warn about equal series with far more channels than steps: their axes may be swapped."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    what, axes = f"X of shape {tuple(shape)}", "(n, time, channels)"
    fix = "slts.as_series(X, layout='time_first'), or save X.transpose(0, 2, 1) in a file"
    if isinstance(X, list | tuple) and X and not _is_pandas(X[0]):
        own = getattr(X[0], "shape", ())
        if all(getattr(x, "shape", None) == own for x in X):
            shape = (len(X), *own)
            what, axes = f"X with {count(len(X), 'array')} of shape {own}", "(time, channels)"
            fix = "slts.as_series(X, layout='time_first')"
    if len(shape) == 3 and shape[1] > _SWAPPED_RATIO * shape[2] > 0:
        warn(
            f"{what} is read as series of {shape[1]} channels and {count(shape[2], 'step')}. "
            f"If the axes are {axes}, use {fix}"
        )


def is_sparse(x: object) -> bool:
    """Tell whether `x` looks like a sparse matrix, without importing a sparse library."""
    return hasattr(x, "nnz") and hasattr(x, "toarray")


def as_numbers(x: object, where: str) -> AnyArray:
    """Convert `x` to an array of real numbers of any width.

    Parameters
    ----------
    x : object
        Array-like.
    where : str
        Name of `x` in error messages: "X" or "series 3".

    Returns
    -------
    AnyArray
        Array whose dtype is boolean, integer or floating; it shares memory with `x` if possible.

    Raises
    ------
    TypeError
        If `x` is sparse or holds Python objects that are not numbers.
    DataError
        If `x` is ragged or complex, or holds text or times.
    """
    # Most series of a list are plain arrays.
    if type(x) is np.ndarray and x.dtype.kind in _NUMBER_KINDS:
        return x
    if is_sparse(x):
        raise TypeError(
            f"{where} is sparse ({type(x).__name__}), which slts does not support: "
            "convert it with .toarray()"
        )
    if isinstance(x, np.ma.MaskedArray):
        # A masked entry is a missing value.
        x = np.ma.filled(x.astype(np.float64), np.nan) if np.ma.is_masked(x) else x.data
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise DataError(
            f"{where} is not rectangular ({error}): every channel of a series must have the same "
            "number of steps"
        ) from error
    kind = array.dtype.kind
    if kind in _NUMBER_KINDS:
        return array
    if kind == "O":
        return _from_objects(array, where)
    if kind == "c":
        raise DataError(
            f"Complex data not supported: {where} has dtype {array.dtype}. "
            "Pass its real and imaginary parts as two channels"
        )
    raise DataError(f"{where} has dtype {array.dtype}, expected real numbers: convert it first")


def _from_objects(array: AnyArray, where: str) -> FloatArray:
    """Convert Python objects to float64; text is an error, even if it is a number."""
    text = next((v for v in array.flat if isinstance(v, str | bytes)), None)
    if text is not None:
        raise DataError(f"{where} holds the string {text!r}, expected numbers: convert it first")
    try:
        return array.astype(np.float64)
    except TypeError as error:
        raise TypeError(f"{where} holds an object that is not a number: {error}") from error
    except ValueError as error:
        raise DataError(f"{where} cannot be read as numbers: {error}") from error


def check_missing(missing: str) -> None:
    """Raise `DataError` unless `missing` is one of the known words."""
    if missing not in get_args(Missing):
        raise DataError(f"missing must be 'ignore', 'interpolate' or 'error', got {missing!r}")


def check_values(
    values: FloatArray,
    offsets: IntArray,
    channel_names: Sequence[str] | None = None,
    series_names: Sequence[object] | None = None,
    *,
    missing: Missing = "ignore",
) -> None:
    """Raise `DataError` for infinite values and for series in which nothing is observed.

    The message names series, step and channel.

    Parameters
    ----------
    values : FloatArray
        Flat values, shape (steps, channels).
    offsets : IntArray
        Bounds of the series in `values`.
    channel_names : Sequence[str] or None
        Names to show next to the channel number.
    series_names : Sequence[object] or None
        Identifiers to show next to the series number.
    missing : {"ignore", "interpolate", "error"}
        With "error", any NaN is an error.
    """
    finite = np.isfinite(values)
    if finite.all():
        return

    def name(series: int) -> str:
        known = "" if series_names is None else f" (id {series_names[series]!r})"
        return f"series {series}{known}"

    wrong = ~finite if missing == "error" else np.isinf(values)
    if wrong.any():
        row, channel = divmod(int(np.argmax(wrong)), values.shape[1])
        series = int(np.searchsorted(offsets, row, side="right")) - 1
        place = f"{name(series)}, step {row - int(offsets[series])}, channel {channel}"
        if channel_names is not None:
            place += f" ({channel_names[channel]!r})"
        value = values[row, channel]
        if np.isnan(value):
            raise DataError(
                f"{place} is NaN, but missing values are an error here: use missing='ignore', or "
                "impute them. If NaN only pads the ends of short series, use padded=True"
            )
        raise DataError(f"{place} is {value}: no value may be infinite. Clip or remove it")
    observed = np.logical_or.reduceat(finite.any(axis=1), offsets[:-1])
    if not observed.all():
        raise DataError(
            f"{name(int(np.argmin(observed)))} is NaN throughout: at least one value of a series "
            "must be observed. Leave it out, and its label too"
        )


def offsets_of(lengths: Iterable[int] | IntArray) -> IntArray:
    """Return the bounds of series of the given lengths: 0 and the cumulative sums."""
    lengths = np.fromiter(lengths, dtype=np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


def flatten_list(series: Iterable[object], layout: Layout) -> Flat:
    """Concatenate a list of 1-D or 2-D series.

    Parameters
    ----------
    series : Iterable[object]
        Array-likes: (channels, time) or (time, channels) by `layout`, or (time,) for one channel.
    layout : {"channels_first", "time_first"}
        Order of the axes of 2-D series.

    Returns
    -------
    Flat
        The values are a new array of shape (total steps, channels).
    """
    blocks = [_time_first(x, index, layout) for index, x in enumerate(series)]
    if not blocks:
        raise DataError(
            "X holds 0 sample(s) while a minimum of 1 is required: pass at least one series"
        )
    _check_blocks(blocks, layout)
    offsets = offsets_of(len(block) for block in blocks)
    values = np.empty((int(offsets[-1]), blocks[0].shape[1]), dtype=np.float64)
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf, an error later
        np.concatenate(blocks, out=values)
    return Flat(values, offsets)


def _time_first(x: object, index: int, layout: Layout) -> AnyArray:
    """Return series number `index` as a (time, channels) array, a view if possible."""
    array = as_numbers(x, f"series {index}")
    if array.ndim == 2:
        return array if layout == "time_first" else array.T
    if array.ndim == 1:
        return array[:, None]
    axes = "(time, channels)" if layout == "time_first" else "(channels, time)"
    if array.ndim == 0:
        raise DataError(
            f"series {index} is a single number, expected an array {axes} or (time,). "
            "Reshape your data: X is a list of series. Write one series as [x]"
        )
    raise DataError(
        f"series {index} has {array.ndim} dimensions (shape {array.shape}), expected 2: {axes}"
    )


def _check_blocks(blocks: list[AnyArray], layout: Layout) -> None:
    """Raise `DataError` unless all (time, channels) arrays have steps and the same channels."""
    widths = np.fromiter((block.shape[1] for block in blocks), dtype=np.int64)
    lengths = np.fromiter((block.shape[0] for block in blocks), dtype=np.int64)
    empty = np.flatnonzero((lengths == 0) | (widths == 0))
    if empty.size:
        index = int(empty[0])
        what = "steps" if lengths[index] == 0 else "channels"
        raise DataError(
            f"series {index} has 0 {what}: every series needs at least one step and one channel. "
            "Leave it out, and its label too"
        )
    odd = np.flatnonzero(widths != widths[0])
    if odd.size:
        index = int(odd[0])
        if (lengths == lengths[0]).all():
            other: Layout = "channels_first" if layout == "time_first" else "time_first"
            fix = (
                f"the other axis has size {lengths[0]} in every series. Is the layout {other}? "
                f"Then pass as_series(X, layout={other!r})"
            )
        else:
            fix = "all series must have the same channels"
        raise DataError(
            f"series {index} has {count(widths[index], 'channel')}, expected {widths[0]} (as "
            f"series 0): {fix}"
        )


def flatten_array(array: AnyArray, layout: Layout) -> Flat:
    """Flatten a 2-D (n, time) or 3-D (n, channels, time) array of numbers.

    The values share memory with `array` if its layout allows it.

    Parameters
    ----------
    array : AnyArray
        Numbers; with `layout="time_first"`, 3-D arrays are (n, time, channels).
    layout : {"channels_first", "time_first"}
        Order of the last two axes of 3-D arrays.
    """
    if array.ndim not in (2, 3):
        hint = (
            " Reshape your data: X.reshape(1, -1) if it is one series of one channel, "
            "X.reshape(-1, 1) if it is many series of one step"
            if array.ndim < 2
            else ""
        )
        axes = "(n, time, channels)" if layout == "time_first" else "(n, channels, time)"
        raise DataError(
            f"X has {array.ndim} dimension(s) (shape {array.shape}), expected 3: {axes}, "
            f"or 2: (n, time).{hint}"
        )
    if array.size == 0:
        what = "sample(s)" if len(array) == 0 else "feature(s)"
        raise DataError(f"X has 0 {what} (shape={array.shape}) while a minimum of 1 is required.")
    if array.ndim == 2:
        array = array[:, :, None]
    elif layout == "channels_first":
        array = array.transpose(0, 2, 1)
    n_series, n_steps, n_channels = array.shape
    with np.errstate(over="ignore"):
        values = array.astype(np.float64, copy=False).reshape(-1, n_channels)
    offsets = np.arange(n_series + 1, dtype=np.int64) * n_steps
    return Flat(np.ascontiguousarray(values), offsets)


def _flatten_cells(cells: AnyArray) -> Flat:
    """Flatten an (n, channels) object array whose cells are 1-D series."""
    return flatten_list([_stack_row(row, i) for i, row in enumerate(cells)], "channels_first")


def _stack_row(row: AnyArray, index: int) -> AnyArray:
    """Stack the cells of one row into a (channels, time) array."""
    channels = [as_numbers(cell, f"series {index}, channel {j}") for j, cell in enumerate(row)]
    for j, channel in enumerate(channels):
        if channel.ndim != 1:
            raise DataError(
                f"series {index}, channel {j} has {channel.ndim} dimensions, expected 1: "
                "a cell must hold the steps of one channel"
            )
        if len(channel) != len(channels[0]):
            raise DataError(
                f"series {index}, channel {j} has {len(channel)} steps, expected "
                f"{len(channels[0])} (as channel 0): resample the channels to the same steps"
            )
    return np.stack(channels)


# -- Frames


def is_frame(x: object, libraries: Iterable[str] = tuple(_FRAME_CLASSES)) -> bool:
    """Tell whether `x` is a data frame of one of some libraries, without importing them."""
    for cls in type(x).__mro__:
        library = cls.__module__.partition(".")[0]
        if library in libraries and cls.__name__ in _FRAME_CLASSES[library]:
            return True
    return False


def is_table(x: Any) -> bool:
    """Tell whether `x` is a frame with named columns, not one of the containers of sktime."""
    if not is_frame(x) or not _is_pandas(x):
        return is_frame(x)
    if x.index.nlevels > 1 or _text_labels(x) is None:
        return False
    return not (x.size and _is_series_like(x.iat[0, 0]))


def _is_pandas(x: object) -> bool:
    return is_frame(x, ("pandas",))


def _is_series_like(x: object) -> bool:
    """Tell whether a cell holds a sequence of values, not one value."""
    is_sequence = hasattr(x, "__len__") and hasattr(x, "__getitem__")
    return is_sequence and not isinstance(x, str | bytes | dict)


def _flatten_frame(X: Any) -> Flat:
    """Read a pandas frame without named columns according to its structure.

    Supported are sktime's frames whose cells hold series, the (instance, time) index of sktime
    and aeon, and frames without text labels that hold one univariate series per row.
    """
    if X.index.nlevels == 2:
        if X.size == 0:
            raise DataError("X has 0 sample(s) (rows) while a minimum of 1 is required.")
        column, instances = X.index.names[0], X.index.get_level_values(0)
        codes, ids = instances.factorize()
        order = sorted_rows(codes, X.index.get_level_values(1).to_numpy(), ids.tolist(), "X")
        values = _frame_numbers(X, "X").astype(np.float64, copy=False)[order]
        names = names_of(ids.tolist(), None if column is None else str(column))
        return Flat(values, offsets_of(np.bincount(codes)), _text_labels(X), names)
    if X.index.nlevels != 1:
        raise DataError(
            f"X is a {type(X).__name__} with an index of {X.index.nlevels} levels, expected one "
            "level, or two: instance and time"
        )
    if X.size and _is_series_like(X.iat[0, 0]):
        return _flatten_cells(X.to_numpy(dtype=object))._replace(channel_names=_text_labels(X))
    return flatten_array(_frame_numbers(X, "X"), "channels_first")


def _flatten_frames(items: Sequence[Any], layout: Layout) -> Flat:
    """Read a list of pandas frames, one per series.

    With text column labels, rows are steps and columns are channels (sktime). Without them,
    `layout` applies, as for arrays (aeon's frames are (channels, time)).
    """
    names = _text_labels(items[0])
    arrays = []
    for index, item in enumerate(items):
        if not _is_pandas(item):
            raise DataError(
                f"series {index} is a {type(item).__name__}, expected a DataFrame (as series 0)"
            )
        if _text_labels(item) != names:
            raise DataError(
                f"series {index} has the columns {list(item.columns)}, expected "
                f"{list(items[0].columns)} (as series 0): put the channels in the same order"
            )
        arrays.append(_frame_numbers(item, f"series {index}"))
    flat = flatten_list(arrays, layout if names is None else "time_first")
    return flat._replace(channel_names=names)


def _text_labels(X: Any) -> tuple[str, ...] | None:
    """Return the column labels of a pandas frame if all are text; they must be distinct."""
    labels = X.columns.tolist()
    if not labels or not all(isinstance(label, str) for label in labels):
        return None
    if len(set(labels)) < len(labels):
        raise DataError(f"X has columns with the same name: rename them. The columns are {labels}")
    return tuple(labels)


def _frame_numbers(X: Any, where: str) -> AnyArray:
    """Return the cells of a pandas frame as numbers; missing ones become NaN."""
    array = X.to_numpy()
    if array.dtype == object:
        # Nullable dtypes become objects, and pd.NA is not a number.
        array = X.to_numpy(dtype=object, na_value=np.nan)
    return as_numbers(array, where)


def sorted_rows(codes: IntArray, times: AnyArray, ids: Sequence[object], where: str) -> IntArray:
    """Return the order of rows by series and time, which must differ within a series.

    Parameters
    ----------
    codes, times
        Number of the series, and time, of every row.
    ids
        Identifiers of the series, for messages.
    where
        Name of the table, for messages.
    """
    if times.dtype.kind in "fmM" and not np.isfinite(times).all():
        row = int(np.argmin(np.isfinite(times)))
        raise DataError(f"{where}: the time in row {row} is {times[row]!s}: drop the row")
    try:
        ranks: IntArray = np.unique(times, return_inverse=True)[1]
    except TypeError as error:
        raise DataError(f"{where}: the times cannot be sorted: {error}") from error
    order: IntArray = np.lexsort((ranks, codes))
    twice = (np.diff(codes[order]) == 0) & (np.diff(ranks[order]) == 0)
    if twice.any():
        row = order[int(np.argmax(twice))]
        raise DataError(
            f"{where}: time {times[row]!s} occurs twice in the series with id {ids[codes[row]]!r}: "
            "drop or average the duplicates. If this id has several series, name all columns that "
            "identify one: --id subject --id trial (id=['subject', 'trial'])"
        )
    return order
