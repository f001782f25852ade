"""`as_series`: converts data of many kinds to a `SeriesBatch`; whether labels fit the series."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import overload

import numpy as np

from slts._typing import AnyArray, Layout, Missing
from slts.errors import DataError
from slts.series.batch import SeriesBatch
from slts.series.flatten import (
    check_layout,
    check_missing,
    check_values,
    flatten,
    is_frame,
    is_table,
    warn_if_swapped,
)
from slts.series.missing import fill_gaps, trim_padding


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
        - a data frame in long form (pandas, polars or pyarrow): one row per step;
        - pandas frames of sktime and aeon: cells that hold series, an (instance, time) index, a
          list of frames. Text column labels are channel names; a frame without them is read as an
          array.
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
    if layout is None:
        layout = "channels_first"
        warn_if_swapped(X)
    check_layout(layout)
    check_missing(missing)
    first = X[0] if isinstance(X, tuple) and len(X) == 2 else None
    listed = isinstance(first, list) and first and getattr(first[0], "ndim", 0) == 2
    if listed or isinstance(first, SeriesBatch) or getattr(first, "ndim", 0) == 3:
        raise DataError("X is a pair of series and labels: unpack it, as in X, y = load(...)")
    columns = {"id": id, "time": time, "channels": channels, "label": label}
    given = [name for name, value in columns.items() if value is not None]
    if given and not is_frame(X):
        raise DataError(
            f"{given[0]}= names a column of a pandas or polars DataFrame or a pyarrow Table, got "
            f"{type(X).__name__}"
        )
    labels = None
    if isinstance(X, SeriesBatch):
        batch = X
    elif given or is_table(X):
        if padded:
            raise DataError("padded=True is for arrays: drop the rows that pad a long data frame")
        from slts.tables.arrow import read_frame

        frame = read_frame(X, id=id, time=time, label=label, channels=channels)
        batch, labels = frame.series, frame.labels
    else:
        flat = flatten(X, layout)
        check_values(flat.values, flat.offsets, flat.channel_names)
        batch = SeriesBatch.from_checked(*flat)
        if padded or missing != "error":
            batch = trim_padding(batch)
    if padded or missing == "error":
        try:
            check_values(
                batch.values,
                batch.offsets,
                batch.channel_names,
                batch.series_names,
                missing="error",
            )
        except DataError as error:
            if layout == "time_first" or not padded:
                raise
            raise DataError(
                f"{error}. Padding was removed along the last axis: if X is (n, time, channels), "
                f"as in tslearn, also pass layout='time_first'"
            ) from error
    if missing == "interpolate":
        batch = fill_gaps(batch, np.full(batch.n_channels, np.nan))
    return batch if labels is None else (batch, labels)


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
