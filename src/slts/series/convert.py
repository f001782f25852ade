"""`as_series`: converts data of many kinds to a `SeriesBatch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import overload

import numpy as np

from slts._typing import AnyArray, Layout, Missing
from slts.columns import RequestedColumns
from slts.errors import DataError
from slts.series import frames
from slts.series.batch import SeriesBatch
from slts.series.flatten import (
    as_numbers,
    check_layout,
    check_missing,
    check_values,
    flatten_array,
    flatten_cells,
    flatten_list,
    is_sparse,
)
from slts.series.missing import fill_gaps, trim_padding

_ACCEPTED = (
    "a SeriesBatch, a list of 2-D arrays (channels, time), a 3-D array (n, channels, time), "
    "a 2-D array (n, time), or a data frame"
)


@overload
def as_series(
    X: object,
    *,
    layout: Layout = ...,
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
    layout: Layout = ...,
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
    layout: Layout = "channels_first",
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
        - a long data frame (pandas, polars or pyarrow), one row per step;
        - pandas frames of sktime and aeon: cells that hold series, an (instance, time) index, a
          list of frames. Text column labels are channel names; a frame without them is read as an
          array.
    layout : {"channels_first", "time_first"}
        Order of the axes: "time_first" reads 2-D series as (time, channels) and 3-D arrays as
        (n, time, channels), as tslearn does. The batch always returns its series channels first.
    padded : bool
        Whether NaN only pads the ends of short series. Trailing steps that are NaN in all channels
        are then removed, and NaN anywhere else is an error.
    id : str or sequence of str, optional
        Column of a long frame that identifies the series, or several that do so together. Series
        have the order of their first rows. Columns that are not named are guessed as `scan_series`
        does, and a warning states the guess.
    time : str, optional
        Column by which each series is sorted. If there is none, rows keep their order.
    channels : str or sequence of str, optional
        Columns that hold the values; by default all other columns of numbers and booleans that are
        not constant within every series.
    label : str, optional
        Column with the label, which must be constant within a series.
    missing : {"ignore", "interpolate", "error"}
        What to do with missing values (NaN, null or masked): "ignore" keeps them, and similarities
        and classifiers leave them out (see "Missing values" in the user guide); "interpolate" fills
        gaps within each series, and only channels without any value stay missing; "error" raises an
        error that names the first one. The first two remove steps at the end of a series at which
        nothing is observed: they may be padding.

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
    check_layout(layout)
    check_missing(missing)
    columns = {"id": id, "time": time, "channels": channels, "label": label}
    given = [name for name, value in columns.items() if value is not None]
    if frames.is_frame(X) and (given or frames.has_named_columns(X)):
        if padded:
            raise DataError("padded=True is for arrays: drop the rows that pad a long data frame")
        requested = RequestedColumns(id, time, label, channels)
        found = frames.read_table(X, requested, missing=missing)
        if isinstance(found, SeriesBatch):
            return _filled(found, missing)
        return _filled(found[0], missing), found[1]
    if given:
        raise DataError(
            f"{given[0]}= names a column of a pandas or polars DataFrame or a pyarrow Table, got "
            f"{type(X).__name__}"
        )
    if isinstance(X, SeriesBatch):
        if missing == "error":
            check_values(X.values, X.offsets, X.channel_names, missing=missing)
        return _filled(X, missing)
    values, offsets, names = _flatten(X, layout)
    batch = SeriesBatch(values, offsets, names, series_names=frames.instance_names(X))
    if padded or missing != "error":
        batch = trim_padding(batch)
    if padded or missing == "error":
        try:
            check_values(batch.values, batch.offsets, names, missing="error")
        except DataError as error:
            if layout == "time_first" or not padded:
                raise
            raise DataError(
                f"{error}. Padding was removed along the last axis: if X is (n, time, channels), "
                f"as in tslearn, also pass layout='time_first'"
            ) from error
    return _filled(batch, missing)


def _filled(batch: SeriesBatch, missing: Missing) -> SeriesBatch:
    if missing != "interpolate":
        return batch
    return fill_gaps(batch, np.full(batch.n_channels, np.nan))


def _flatten(X: object, layout: Layout) -> frames.Flat:
    """Read `X` according to its type."""
    if frames.is_frame(X):
        return frames.flatten_frame(X)
    if isinstance(X, list | tuple):
        if X and frames.is_pandas_frame(X[0]):
            return frames.flatten_frames(X, layout)
        return *flatten_list(X, layout), None
    if is_sparse(X):
        as_numbers(X, "X")  # raises the TypeError for sparse data
    if isinstance(X, Mapping):
        raise DataError(f"X is a {type(X).__name__}, expected {_ACCEPTED}: try list(X.values())")
    if isinstance(X, str | PathLike):
        raise DataError(
            f"X is of type {type(X).__name__}, expected {_ACCEPTED}. Read a file with "
            f"slts.files.read_series, or scan it with slts.scan_series"
        )
    if not hasattr(X, "__array__"):
        raise DataError(f"X is of type {type(X).__name__}, expected {_ACCEPTED}")
    array = X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    if array.dtype == object and _holds_series(array):
        if array.ndim == 1:
            return *flatten_list(array, layout), None
        return *flatten_cells(array), None
    return *flatten_array(as_numbers(array, "X"), layout), None


def _holds_series(array: AnyArray) -> bool:
    """Tell whether the cells of a 1-D or 2-D object array are series, not numbers."""
    return array.ndim in (1, 2) and array.size > 0 and frames.is_series_like(array.flat[0])
