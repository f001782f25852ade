"""`SeriesBatch`: series of different lengths in two arrays."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import EllipsisType
from typing import Any, NoReturn, SupportsIndex, TypeAlias, overload

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray, Layout, Missing
from slts.errors import DataError
from slts.quantities import count, format_bytes

_NUMBER_KINDS = "biuf"
_WHOLE_NUMBER = re.compile(r"[-+]?\d+(\.0*)?")
# The end of a column's name that says "identifier": recording_id, RecordingID, id.
_IDENTIFIER = re.compile(r"(^|[\s_.-]+)(id|identifier|index|key|no|nr|number)$", re.IGNORECASE)
_CAPITAL_ID = re.compile(r"(?<=[a-z])(ID|Id)$")
Selection: TypeAlias = slice | Sequence[int] | Sequence[bool] | AnyArray


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SeriesBatch:
    """An immutable batch of multivariate series, each with its own length.

    `values` holds the steps of all series, one row per step; series i is
    `values[offsets[i]:offsets[i + 1]]`. Values are float64, NaN where a value is missing and finite
    elsewhere. Every series has at least one value. A selection may have no series.

    Parameters
    ----------
    values : array-like of shape (total steps, channels)
        The steps of all series. A C-contiguous float64 array is not copied: do not write to it
        afterwards.
    offsets : array-like of int, shape (n_series + 1,)
        Bounds of the series: 0, then strictly increasing up to the number of steps.
    channel_names : sequence of str, optional
        One distinct name per channel.
    series_names : sequence, optional
        What the user calls each series. Names need not be distinct.
    times : array-like of shape (total steps,), optional
        Time of every step, as numbers or dates. Only pictures use it.

    Attributes
    ----------
    values : ndarray of shape (n_steps, n_channels)
        Steps of all series, read-only.
    offsets : ndarray of shape (n_series + 1,)
        Bounds of the series in `values`, read-only.
    channel_names : tuple of str or None
        Names of the channels, if they have names.
    times : ndarray of shape (n_steps,) or None
        Time of every step as float64 or datetime64, if the source has one.
    n_steps, n_channels : int
        Total number of steps, and number of channels, the same for all series.

    Raises
    ------
    DataError
        If the arguments are not consistent, a value is infinite, or a series is NaN throughout.

    See Also
    --------
    slts.as_series : Make a batch from lists, arrays and data frames.

    Notes
    -----
    `batch[i]` and iteration return series as read-only (channels, time) views, the transpose of
    their rows in `values`; so `as_series(list(batch))` equals the batch, without channel names.
    Slices, boolean masks and integer arrays return batches; slices of step 1 share memory. Equality
    compares values, lengths and channel names. A batch is not hashable, because the caller may
    still write to its array.

    Examples
    --------
    >>> import numpy as np
    >>> from slts.series import SeriesBatch
    >>> batch = SeriesBatch(np.arange(10.0).reshape(5, 2), [0, 2, 5])
    >>> batch
    SeriesBatch(2 series, 2 channels, 2-3 steps, 80 bytes)
    >>> batch[0]
    array([[0., 2.],
           [1., 3.]])
    """

    values: FloatArray
    offsets: IntArray
    channel_names: tuple[str, ...] | None
    _series_names: AnyArray | None
    times: AnyArray | None
    n_steps: int
    n_channels: int

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        values: object,
        offsets: object,
        channel_names: Sequence[str] | None = None,
        *,
        series_names: Sequence[object] | AnyArray | None = None,
        times: object = None,
    ) -> None:
        flat = as_numbers(values, "values")
        if flat.ndim != 2 or flat.shape[1] == 0:
            raise DataError(
                f"values must have shape (steps, channels) with at least one channel, "
                f"got shape {flat.shape}"
            )
        flat = np.ascontiguousarray(flat, dtype=np.float64)
        bounds = _checked_offsets(offsets, len(flat))
        names = _checked_names(channel_names, flat.shape[1])
        called = None if series_names is None else _checked_series_names(series_names, bounds)
        checked_times = None if times is None else _checked_times(times, len(flat))
        self._set(flat, bounds, names, called, checked_times)
        check_values(self)

    def _set(
        self,
        values: FloatArray,
        offsets: IntArray,
        names: tuple[str, ...] | None,
        series_names: AnyArray | None,
        times: AnyArray | None,
    ) -> None:
        # Views, so that the arrays of the caller stay writeable.
        values, offsets = values.view(), offsets.view()
        values.flags.writeable = offsets.flags.writeable = False
        vars(self).update(
            values=values, offsets=offsets, channel_names=names, _series_names=series_names,
            times=times, n_steps=values.shape[0], n_channels=values.shape[1],
        )  # fmt: skip

    @classmethod
    def from_checked(
        cls,
        values: FloatArray,
        offsets: IntArray,
        channel_names: tuple[str, ...] | None,
        series_names: AnyArray | None = None,
        times: AnyArray | None = None,
    ) -> SeriesBatch:
        """Make a batch without checks.

        `values` must be C-contiguous float64 that `check_values` accepts, and `offsets` strictly
        increasing int64 from 0 to `len(values)`. `series_names` is an array of text, `times` comes
        from `plain_times`.
        """
        batch = cls.__new__(cls)
        batch._set(values, offsets, channel_names, series_names, times)
        return batch

    def with_values(self, values: FloatArray, channel_names: tuple[str, ...] | None) -> SeriesBatch:
        """Return the same series with other channels, without checks; see `from_checked`."""
        return self.from_checked(
            values, self.offsets, channel_names, self._series_names, self.times
        )

    def with_steps(self, values: FloatArray, offsets: IntArray) -> SeriesBatch:
        """Return series of the same names with other steps, without checks and times."""
        return self.from_checked(values, offsets, self.channel_names, self._series_names)

    def named(self, ids: Sequence[object] | AnyArray) -> SeriesBatch:
        """Return the same series with names.

        Parameters
        ----------
        ids : sequence
            An identifier per series. A number becomes ``"series 17"``, text stays.

        Returns
        -------
        SeriesBatch
            A batch that shares memory with this one.

        Examples
        --------
        >>> import numpy as np, slts
        >>> slts.as_series(np.zeros((2, 5))).named([17, "left hand"]).series_names
        ('series 17', 'left hand')
        """
        names = _checked_series_names(ids, self.offsets)
        return self.from_checked(self.values, self.offsets, self.channel_names, names, self.times)

    def name_of(self, index: int, source: str = "") -> str:
        """Return what a message calls a series: its name, else its number in a source."""
        if self._series_names is None:
            return f"series {index} of {source}" if source else f"series {index}"
        return str(self._series_names[index])

    def steps(self, keep: AnyArray) -> SeriesBatch:
        """Return the steps of a mask, which has at least one of every series."""
        if keep.all():
            return self
        lengths = np.add.reduceat(keep, self.offsets[:-1], dtype=np.int64)
        times = None if self.times is None else self.times[keep]
        return self.from_checked(
            self.values[keep], offsets_of(lengths), self.channel_names, self._series_names, times
        )

    def anonymous(self) -> SeriesBatch:
        """Return the same series without names and times."""
        return self.from_checked(self.values, self.offsets, self.channel_names)

    @classmethod
    def concatenate(cls, batches: Iterable[SeriesBatch]) -> SeriesBatch:
        """Concatenate batches with the same channels.

        Parameters
        ----------
        batches : iterable of SeriesBatch
            At least one. All channel names that are given must be equal.

        Returns
        -------
        SeriesBatch
            All series; a single batch is returned unchanged.
        """
        parts = list(batches)
        if not parts:
            raise DataError("batches is empty: concatenate needs at least one batch")
        first = parts[0]
        names = first.channel_names
        for index, part in enumerate(parts):
            if part.n_channels != first.n_channels:
                raise DataError(
                    f"batch {index} has {count(part.n_channels, 'channel')}, expected "
                    f"{first.n_channels} (as batch 0): only batches with the same channels can be "
                    "joined"
                )
            if names is None:
                names = part.channel_names
            elif part.channel_names not in (None, names):
                raise DataError(
                    f"batch {index} names its channels {part.channel_names}, expected {names}: "
                    "put the channels in the same order"
                )
        if len(parts) == 1:
            return first
        values = np.concatenate([part.values for part in parts])
        lengths = np.concatenate([part.lengths for part in parts])
        return cls.from_checked(
            values, offsets_of(lengths), names,
            _joined([part._series_names for part in parts]), _joined([p.times for p in parts]),
        )  # fmt: skip

    @property
    def series_names(self) -> tuple[str, ...] | None:
        """What the user calls each series, if the source has identifiers."""
        return None if self._series_names is None else tuple(self._series_names.tolist())

    @property
    def lengths(self) -> IntArray:
        """Number of steps of each series."""
        return np.diff(self.offsets)

    @property
    def n_missing(self) -> IntArray:
        """Number of missing values of each channel."""
        return np.asarray(np.count_nonzero(np.isnan(self.values), axis=0), dtype=np.int64)

    @property
    def shape(self) -> tuple[int]:
        """`(len(self),)`: scikit-learn indexes objects that have a shape with arrays."""
        return (len(self),)

    def to_list(self, layout: Layout = "channels_first") -> list[FloatArray]:
        """Return the series as a list of 2-D arrays.

        Parameters
        ----------
        layout : {"channels_first", "time_first"}
            Whether arrays are (channels, time), as in `list(batch)`, or (time, channels).

        Returns
        -------
        list of FloatArray
            Read-only views into the batch.
        """
        if layout not in ("channels_first", "time_first"):
            raise DataError(f"layout must be 'channels_first' or 'time_first', got {layout!r}")
        return [x.T if layout == "time_first" else x for x in self]

    def __len__(self) -> int:
        """Return the number of series."""
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield each series as a read-only (channels, time) view."""
        for start, stop in pairwise(self.offsets.tolist()):
            yield self.values[start:stop].T

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> FloatArray: ...
    @overload
    def __getitem__(self, key: Selection | tuple[Selection, EllipsisType]) -> SeriesBatch: ...
    def __getitem__(
        self, key: int | np.integer[Any] | Selection | tuple[Selection, EllipsisType]
    ) -> FloatArray | SeriesBatch:
        """Return one series (channels, time) for an integer, else a batch."""
        if isinstance(key, tuple):
            # scikit-learn writes X[indices, ...].
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError(
                    "a SeriesBatch has one axis, its series: write batch[i][channels, steps]"
                )
            key = key[0]
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._span(start, max(start, stop))
            return self._take(np.arange(start, stop, step))
        if isinstance(key, SupportsIndex) and np.ndim(key) == 0 and not isinstance(key, bool):
            index = operator.index(key)
            if not -len(self) <= index < len(self):
                raise IndexError(f"series {index} is out of range: the batch has {len(self)}")
            index %= len(self)
            return self.values[self.offsets[index] : self.offsets[index + 1]].T
        return self._take(self._indices(key))

    def _indices(self, key: object) -> IntArray:
        """Convert a mask or an array of indices to non-negative indices."""
        array = np.asarray(key)
        if array.ndim == 1 and array.dtype.kind == "b":
            if len(array) != len(self):
                raise IndexError(
                    f"the mask has {len(array)} entries, expected {len(self)}: one per series"
                )
            return np.flatnonzero(array)
        if array.ndim == 1 and array.size == 0:
            return np.empty(0, dtype=np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise IndexError(
                "series are selected by an integer, a slice, a 1-D boolean mask or a 1-D integer "
                f"array, got {type(key).__name__}"
            )
        outside = (array < -len(self)) | (array >= len(self))
        if outside.any():
            raise IndexError(
                f"series {array[outside][0]} is out of range: the batch has {len(self)}"
            )
        array = array.astype(np.int64, copy=False)
        return np.where(array < 0, array + len(self), array)

    def _span(self, start: int, stop: int) -> SeriesBatch:
        """Return series start..stop-1, which share memory."""
        bounds = self.offsets[start : stop + 1]
        values = self.values[bounds[0] : bounds[-1]]
        names = None if self._series_names is None else self._series_names[start:stop]
        times = None if self.times is None else self.times[bounds[0] : bounds[-1]]
        return self.from_checked(values, bounds - bounds[0], self.channel_names, names, times)

    def _take(self, indices: IntArray) -> SeriesBatch:
        """Return a copy of some series, in the given order."""
        lengths = self.lengths[indices]
        offsets = offsets_of(lengths)
        # Row r of the result is row r + shift of this batch; shift is constant within a series.
        rows = np.repeat(self.offsets[indices] - offsets[:-1], lengths)
        rows += np.arange(offsets[-1])
        return self.from_checked(
            self.values.take(rows, axis=0), offsets, self.channel_names,
            None if self._series_names is None else self._series_names[indices],
            None if self.times is None else self.times[rows],
        )  # fmt: skip

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise an error: NumPy would iterate over the series and choose its own layout."""
        raise TypeError(
            "a SeriesBatch is ragged and cannot be converted to an array: use .values (all steps), "
            "batch[i] (one series), .to_list(), or SeriesBatch.concatenate for several batches"
        )

    def __eq__(self, other: object) -> bool:
        """Compare values, offsets and channel names; missing values are equal to each other."""
        if not isinstance(other, SeriesBatch):
            return NotImplemented
        return (
            self.channel_names == other.channel_names
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.values, other.values, equal_nan=True)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle values, offsets and names; NumPy does not pickle the read-only flag."""
        own = self.values, self.offsets, self.channel_names, self._series_names, self.times
        return type(self).from_checked, own

    def __repr__(self) -> str:
        """Return a line with number of series, channels, lengths, size and missing values."""
        shortest, longest = (
            (int(self.lengths.min()), int(self.lengths.max())) if len(self) else (0, 0)
        )
        span = f"{shortest:,}-{longest:,} steps" if shortest < longest else count(longest, "step")
        channels = count(self.n_channels, "channel")
        size = format_bytes(self.values.nbytes)
        n_missing = int(self.n_missing.sum())
        gaps = f", {count(n_missing, 'missing value')}" if n_missing else ""
        return f"SeriesBatch({len(self):,} series, {channels}, {span}, {size}{gaps})"


def as_numbers(x: object, where: str) -> AnyArray:
    """Convert `x`, which messages call `where`, to an array of booleans, integers or floats.

    The array shares memory with `x` if possible. Text is an error, even if it is a number.
    """
    # Most series of a list are plain arrays.
    if type(x) is np.ndarray and x.dtype.kind in _NUMBER_KINDS:
        return x
    if hasattr(x, "nnz"):
        raise TypeError(
            f"{where} is sparse ({type(x).__name__}), which slts does not support: "
            "convert it with .toarray()"
        )
    if isinstance(x, np.ma.MaskedArray):
        # A masked entry is a missing value.
        x = np.ma.filled(x.astype(np.float64), np.nan)
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise DataError(
            f"{where} is not rectangular ({error}): every channel of a series must have the same "
            "number of steps"
        ) from error
    if array.dtype.kind in _NUMBER_KINDS:
        return array
    if array.dtype.kind == "c":
        raise DataError(
            f"Complex data not supported: {where} has dtype {array.dtype}. "
            "Pass its real and imaginary parts as two channels"
        )
    text = next((v for v in array.flat if isinstance(v, str | bytes)), None)
    if text is not None:
        raise DataError(f"{where} holds the text {str(text)!r}, expected numbers: convert it first")
    if array.dtype.kind != "O":
        raise DataError(f"{where} has dtype {array.dtype}, expected numbers: convert it first")
    try:
        return array.astype(np.float64)
    except TypeError as error:
        raise TypeError(f"{where} holds an object that is not a number: {error}") from error
    except ValueError as error:
        raise DataError(f"{where} cannot be read as numbers: {error}") from error


def check_values(batch: SeriesBatch, missing: Missing = "ignore") -> None:
    """Raise `DataError` for infinite values and for series in which nothing is observed.

    With ``missing="error"``, any NaN is an error.
    """
    finite = np.isfinite(batch.values)
    if finite.all():
        return
    wrong = ~finite if missing == "error" else np.isinf(batch.values)
    if wrong.any():
        row, channel = divmod(int(np.argmax(wrong)), batch.n_channels)
        series = int(np.searchsorted(batch.offsets, row, side="right")) - 1
        place = f"{batch.name_of(series)}, step {row - int(batch.offsets[series])}"
        place += f", channel {channel}"
        if batch.channel_names is not None:
            place += f" ({batch.channel_names[channel]!r})"
        value = batch.values[row, channel]
        if np.isinf(value):
            raise DataError(f"{place} is {value}: no value may be infinite. Clip or remove it")
        raise DataError(
            f"{place} is NaN, but missing values are an error here: use missing='ignore', or "
            "impute them. If NaN only pads the ends of short series, use padded=True; if X is "
            "(n, time, channels), as in tslearn, also layout='time_first'"
        )
    observed = np.logical_or.reduceat(finite.any(axis=1), batch.offsets[:-1])
    if not observed.all():
        raise DataError(
            f"{batch.name_of(int(np.argmin(observed)))} is NaN throughout: at least one value of a "
            "series must be observed. Leave it out, and its label too"
        )


def offsets_of(lengths: Iterable[int] | IntArray) -> IntArray:
    """Return the bounds of series of the given lengths: 0 and the cumulative sums."""
    lengths = np.fromiter(lengths, dtype=np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


def names_of(ids: Sequence[object] | AnyArray, column: str | None = None) -> AnyArray:
    """Return a name for every identifier, as an array of text.

    A number gets the noun of its column: 17 in ``recording_id`` is "recording 17". Without a noun
    it is "series 17". Other identifiers are names already.

    Examples
    --------
    >>> from slts.series.batch import names_of
    >>> names_of([17, 18.0], "recording_id").tolist()
    ['recording 17', 'recording 18']
    >>> names_of(["4", "left hand"], "id").tolist()
    ['series 4', 'left hand']
    """
    noun = "" if column is None else _CAPITAL_ID.sub("", _IDENTIFIER.sub("", column.strip()))
    names = np.empty(len(ids), dtype=object)
    for k, id in enumerate(ids.tolist() if isinstance(ids, np.ndarray) else ids):
        text = str(id)
        if _WHOLE_NUMBER.fullmatch(text):
            text = f"{noun or 'series'} {text.partition('.')[0]}"
        names[k] = text
    return names


def plain_times(times: AnyArray) -> AnyArray | None:
    """Return times as float64 or datetime64[ns], durations in seconds; None for other types."""
    kind = times.dtype.kind
    if kind in "iuf":
        return times.astype(np.float64)
    if kind == "M":
        return times.astype("datetime64[ns]")
    return times / np.timedelta64(1, "s") if kind == "m" else None


def _joined(arrays: Sequence[AnyArray | None]) -> AnyArray | None:
    """Concatenate what all batches have; None if one of them lacks it."""
    present = [array for array in arrays if array is not None]
    if len(present) < len(arrays) or len({array.dtype.kind for array in present}) > 1:
        return None
    return np.concatenate(present)


def _checked_series_names(ids: Sequence[object] | AnyArray, offsets: IntArray) -> AnyArray:
    """Return names of series, or raise `DataError`."""
    if isinstance(ids, str) or len(ids) != len(offsets) - 1:
        count = "a text" if isinstance(ids, str) else f"{len(ids)} names"
        raise DataError(
            f"series_names must have one name per series, {len(offsets) - 1}, got {count}"
        )
    return names_of(ids)


def _checked_times(times: object, n_steps: int) -> AnyArray:
    """Return times as float64 or datetime64, or raise `DataError`."""
    array = np.asarray(times)
    checked = plain_times(array) if array.shape == (n_steps,) else None
    if checked is None or not np.isfinite(checked).all():
        raise DataError(
            f"times must be {n_steps} finite numbers or dates, one per step, got shape "
            f"{array.shape} and dtype {array.dtype}"
        )
    return checked


def _checked_offsets(offsets: object, n_steps: int) -> IntArray:
    """Return offsets as int64, or raise `DataError` unless they divide n_steps into series."""
    array = np.asarray(offsets)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise DataError(
            "offsets must be a 1-D array of integers with one more entry than there are series, "
            f"got shape {array.shape} and dtype {array.dtype}"
        )
    # A copy: it is small, and the caller must not change it.
    bounds = array.astype(np.int64)
    if bounds[0] != 0 or bounds[-1] != n_steps:
        raise DataError(
            f"offsets must run from 0 to the number of steps, {n_steps}, "
            f"got {bounds[0]} to {bounds[-1]}. The values are (steps of all series, channels)"
        )
    if (np.diff(bounds) <= 0).any():
        index = int(np.argmax(np.diff(bounds) <= 0))
        raise DataError(
            f"offsets must increase strictly, got {bounds[index]} then {bounds[index + 1]}: "
            f"series {index} would have no steps"
        )
    return bounds


def _checked_names(names: Sequence[str] | None, n_channels: int) -> tuple[str, ...] | None:
    """Return channel names as a tuple, or raise `DataError`."""
    if names is None:
        return None
    result = tuple(str(name) for name in names)
    if isinstance(names, str) or len(result) != n_channels or len(set(result)) != n_channels:
        raise DataError(
            f"channel_names must be {n_channels} distinct names, one per channel, got {names!r}"
        )
    return result
