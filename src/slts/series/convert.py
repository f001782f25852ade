"""`as_series`: arrays, lists and data frames -> `SeriesBatch`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any, overload

import numpy as np

from slts._typing import AnyArray, Layout, Missing
from slts.errors import DataError, warn
from slts.quantities import count
from slts.series.batch import SeriesBatch, as_numbers, check_values, offsets_of
from slts.series.values import fill_gaps, trim_padding

# Ratio of channels to steps from which the axes of equal series may be swapped.
_SWAPPED_RATIO = 4
_FRAME_CLASSES = {
    "pandas": {"DataFrame"},
    "polars": {"DataFrame", "LazyFrame"},
    "pyarrow": {"Table", "RecordBatch"},
    "narwhals": {"DataFrame", "LazyFrame"},
}


@overload
def as_series(
    X: object,
    *,
    layout: Layout | None = ...,
    padded: bool = ...,
    id: str | Sequence[str] | None = ...,
    time: str | None = ...,
    channels: str | Sequence[str] | None = ...,
    label: None = ...,
    missing: Missing = ...,
) -> SeriesBatch: ...
@overload
def as_series(
    X: object,
    *,
    layout: Layout | None = ...,
    padded: bool = ...,
    id: str | Sequence[str] | None = ...,
    time: str | None = ...,
    channels: str | Sequence[str] | None = ...,
    label: str,
    missing: Missing = ...,
) -> tuple[SeriesBatch, AnyArray]: ...
def as_series(
    X: object,
    *,
    layout: Layout | None = None,
    padded: bool = False,
    id: str | Sequence[str] | None = None,
    time: str | None = None,
    channels: str | Sequence[str] | None = None,
    label: str | None = None,
    missing: Missing = "ignore",
) -> SeriesBatch | tuple[SeriesBatch, AnyArray]:
    """Convert series to a `SeriesBatch`.

    Parameters
    ----------
    X : object
        One of

        - a `SeriesBatch`, which is returned unchanged, except by `missing`;
        - a list, tuple or object array of series, each a 2-D array (channels, time) or, for a
          single channel, a 1-D array (time,); lengths may differ;
        - a 3-D array (n, channels, time), or a 2-D array (n, time) of univariate series;
        - a data frame in long form (pandas, polars or pyarrow): one row per step. A pandas frame
          whose columns have no text labels is read as an array.
    layout : {"channels_first", "time_first"}, optional
        Order of the axes: "time_first" reads 2-D series as (time, channels) and 3-D arrays as
        (n, time, channels), as tslearn does. None means "channels_first", with a warning if series
        of equal shape have far more channels than steps. The batch always returns its series
        channels first.
    padded : bool
        Whether NaN only pads the ends of short series. Trailing steps that are NaN in all channels
        are then removed, and NaN anywhere else raises an error.
    id : str or sequence of str, optional
        Column of a data frame that identifies the series, or several columns that do so together.
        Series are in the order of their first rows. Columns that you do not name have usual names,
        as in `scan_series`.
    time : str, optional
        Column by which each series is sorted. If there is none, rows keep their order.
    channels : str or sequence of str, optional
        Columns that hold the values; by default all other columns, as in `scan_series`.
    label : str, optional
        Column with the label, which must be constant within a series.
    missing : {"ignore", "interpolate", "error"}
        What to do with missing values (NaN, null or masked). "ignore" keeps them, and similarities
        and classifiers leave them out (see "Missing values" in the user guide). "interpolate" fills
        gaps within each series; only channels without any value stay missing. "error" raises an
        error that names the first one. "ignore" and "interpolate" remove steps without any value at
        the end of a series, because they may be padding.

    Returns
    -------
    batch : SeriesBatch
        The series. It may share memory with `X`: do not write to `X` afterwards.
    labels : ndarray of shape (n_series,)
        Only if `label` is given.

    Raises
    ------
    DataError
        If `X` cannot be used; the message names the series and the remedy.
    TypeError
        If `X` is sparse or holds objects that are not numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.series import as_series
    >>> as_series([np.zeros((3, 20)), np.ones((3, 35))])
    SeriesBatch(2 series, 3 channels, 20-35 steps, 1.3 kB)
    >>> as_series(np.zeros((4, 7)))
    SeriesBatch(4 series, 1 channel, 7 steps, 224 bytes)
    """
    _check_word("layout", layout, (None, "channels_first", "time_first"))
    _check_word("missing", missing, ("ignore", "interpolate", "error"))
    columns = {"id": id, "time": time, "label": label, "channels": channels}
    named = [name for name, value in columns.items() if value is not None]
    labels = None
    if isinstance(X, SeriesBatch):
        batch = X
    elif isinstance(X, list | tuple | np.ndarray) or not is_table(X):
        batch = _read_arrays(X, layout)
        if padded or missing != "error":
            batch = trim_padding(batch)
        check_values(batch)
    elif padded:
        raise DataError("padded=True is for arrays: drop the rows that pad a long data frame")
    else:
        # Only data frames need the reader of tables.
        from slts.tables.arrow import read_frame

        frame = read_frame(X, id=id, time=time, label=label, channels=channels)
        batch, labels, named = frame.series, frame.labels, []
    if named:
        raise DataError(
            f"{named[0]}= names a column of a data frame (pandas, polars or pyarrow) whose columns "
            f"have names, got {type(X).__name__}"
        )
    if padded or missing == "error":
        check_values(batch, "error")
    if missing == "interpolate":
        batch = fill_gaps(batch, np.full(batch.n_channels, np.nan))
    return batch if labels is None else (batch, labels)


def _read_arrays(X: object, layout: Layout | None) -> SeriesBatch:
    """Read a list or an array of series, without a check of its values."""
    axes = layout or "channels_first"
    if isinstance(X, list | tuple):
        if isinstance(X, tuple) and len(X) == 2 and _is_collection(X[0]):
            raise DataError("X is a pair of series and labels: unpack it, as in X, y = load(...)")
        batch = from_list(X, axes)
    else:
        batch = from_array(X, axes)
    if layout is None:
        warn_if_swapped(batch)
    return batch


def _is_collection(x: Any) -> bool:
    """Tell whether `x` can only be several series."""
    if isinstance(x, list):
        return bool(x) and getattr(x[0], "ndim", 0) == 2
    return isinstance(x, SeriesBatch) or getattr(x, "ndim", 0) == 3


def from_list(series: Iterable[object], layout: Layout) -> SeriesBatch:
    """Concatenate 2-D series, or 1-D series of one channel, without a check of their values."""
    blocks = [_time_first(x, index, layout) for index, x in enumerate(series)]
    if not blocks:
        raise DataError(
            "X holds 0 sample(s) while a minimum of 1 is required: pass at least one series"
        )
    n_channels = blocks[0].shape[1]
    for index, block in enumerate(blocks):
        if block.size == 0:
            what = "steps" if len(block) == 0 else "channels"
            raise DataError(
                f"series {index} has 0 {what}: every series needs at least one step and one "
                f"channel. Leave it out, and its label too"
            )
        if block.shape[1] != n_channels:
            raise DataError(
                f"series {index} has {count(block.shape[1], 'channel')}, expected {n_channels} "
                f"(as series 0): all series must have the same channels. If their axes are not "
                f"{'(time, channels)' if layout == 'time_first' else '(channels, time)'}, pass "
                f"layout= to as_series"
            )
    offsets = offsets_of(len(block) for block in blocks)
    values = np.empty((int(offsets[-1]), n_channels), dtype=np.float64)
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf, an error later
        np.concatenate(blocks, out=values)
    return SeriesBatch.from_checked(values, offsets, None)


def _time_first(x: object, index: int, layout: Layout) -> AnyArray:
    """Return series number `index` as a (time, channels) array, a view if possible."""
    if not isinstance(x, np.ndarray) and is_frame(x):
        raise DataError(f"series {index} is a data frame: pass x.to_numpy().T for each frame x")
    array = as_numbers(x, f"series {index}")
    if array.ndim == 2:
        return array if layout == "time_first" else array.T
    if array.ndim == 1:
        return array[:, None]
    axes = "(time, channels)" if layout == "time_first" else "(channels, time)"
    raise DataError(
        f"series {index} has {array.ndim} dimensions (shape {array.shape}), expected {axes} or "
        f"(time,). Reshape your data: X is a list of series. Write one series as [x]"
    )


def from_array(X: Any, layout: Layout) -> SeriesBatch:
    """Read an array (n, time), (n, channels, time) or of objects, without a check of its values.

    The batch shares memory with the array if its axes allow it.
    """
    is_sparse = hasattr(X, "nnz")
    if hasattr(X, "__dask_graph__") or not (hasattr(X, "__array__") or is_sparse):
        raise DataError(
            f"X is of type {type(X).__name__}, expected a SeriesBatch, a list of 2-D arrays "
            f"(channels, time), a 3-D array (n, channels, time), a 2-D array (n, time), or a data "
            f"frame. For files and Dask collections use slts.scan_series, for a scan X.read()"
        )
    if getattr(X, "ndim", 0) == 1 and X.dtype == object:
        return from_list(X, layout)
    array = as_numbers(X, "X")
    axes = "(n, time, channels)" if layout == "time_first" else "(n, channels, time)"
    if array.ndim not in (2, 3):
        raise DataError(
            f"X has {array.ndim} dimension(s) (shape {array.shape}), expected 3: {axes}, or 2: "
            f"(n, time). Reshape your data: X.reshape(1, -1) if it is one series of one channel"
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
    return SeriesBatch.from_checked(np.ascontiguousarray(values), offsets, None)


def warn_if_swapped(batch: SeriesBatch) -> None:
    """Warn about equal series with far more channels than steps: their axes may be swapped."""
    n_steps = int(batch.lengths.max())
    if batch.n_channels > _SWAPPED_RATIO * n_steps and (batch.lengths == n_steps).all():
        warn(
            f"X is read as series of {batch.n_channels} channels and {count(n_steps, 'step')}. If "
            f"the axes of each series are (time, channels), use "
            f"slts.as_series(X, layout='time_first'), or save X.transpose(0, 2, 1) in a file"
        )


def is_frame(x: object) -> bool:
    """Tell whether `x` is a data frame, without importing its library."""
    for cls in type(x).__mro__:
        if cls.__name__ in _FRAME_CLASSES.get(cls.__module__.partition(".")[0], ()):
            return True
    return False


def is_table(x: Any) -> bool:
    """Tell whether `x` is a data frame whose columns have names; those of pandas may be numbers."""
    is_pandas = hasattr(x, "iloc")
    return is_frame(x) and (not is_pandas or all(isinstance(name, str) for name in x.columns))


def check_one_per_series(
    n_series: int, values: Sized, name: str, nouns: str, advice: str = ""
) -> None:
    """Raise an error unless there are as many values as series.

    The message names the parameter, what the values are, and what else the user can do.
    """
    if len(values) != n_series:
        raise DataError(
            f"X and {name} have inconsistent lengths: {n_series} series and {len(values)} {nouns}."
            f"{advice}"
        )


def _check_word(name: str, value: object, words: Sequence[str | None]) -> None:
    """Raise `DataError` unless a parameter is one of some words."""
    if value not in words:
        expected = " or ".join(repr(word) for word in words if word is not None)
        raise DataError(f"{name} must be {expected}, got {value!r}")
