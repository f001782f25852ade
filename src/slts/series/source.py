"""`SeriesScan`: series in parts that are read whenever they are needed; keys of series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from slts._typing import AnyArray
from slts.errors import DataError
from slts.quantities import format_bytes
from slts.series.batch import SeriesBatch
from slts.series.dataset import Columns, Dataset, call, join

__all__ = [
    "Digests",
    "Part",
    "SeriesScan",
    "identifier_digests",
    "series_digests",
    "series_keys",
    "splitmix64",
]

Digests: TypeAlias = npt.NDArray[np.uint64]
# Number of series that are read at once if all are wanted.
_MANY = 1 << 14


class Part(Protocol):
    """A share of a source; small and picklable, so that it can be read by a worker."""

    @property
    def name(self) -> str:
        """Name for messages."""

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Read the series; every series belongs to one part only."""


class SeriesScan:
    """Series that are not kept in memory but read when needed, in batches or in parts.

    `scan_series` makes it. Iteration yields batches of 1024 series with labels.

    Attributes
    ----------
    name
        Name for messages.
    columns
        Role of each column; None for sources without named columns.
    n_bytes
        Approximate memory of all series as float64; None if it is not known.
    requires_unique_ids
        Whether identifiers must not be repeated.
    """

    def __init__(
        self,
        name: str,
        columns: Columns | None = None,
        parts: Sequence[Part] = (),
        n_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.columns = columns
        self.n_bytes = n_bytes
        # Series are assembled from rows: a series that begins twice would be counted twice.
        self.requires_unique_ids = columns is not None and columns.id is not None
        self._parts = parts

    @cached_property
    def channel_names(self) -> tuple[str, ...] | None:
        """Names of the channels, if they have names."""
        if self.columns is not None:
            return self.columns.channel_names
        return next(self.batches(labels=False, batch_size=1)).series.channel_names

    def parts(self, *, labels: bool = True) -> Sequence[Part]:
        """Return parts that can be read independently, also by other processes.

        Parameters
        ----------
        labels : bool
            Whether labels will be read. If not, files need not agree on them.

        Returns
        -------
        sequence of parts
            In order, whatever reads them. Every series is in exactly one part; some may have none.
        """
        del labels
        return self._parts

    def batches(self, *, labels: bool = True, batch_size: int = 1024) -> Iterator[Dataset]:
        """Read all series in batches.

        Parameters
        ----------
        labels : bool
            Whether labels are needed. If not, they may be missing.
        batch_size : int
            Largest number of series in a batch.

        Yields
        ------
        Dataset
            The next series.
        """
        if batch_size < 1:
            raise DataError(f"batch_size must be at least 1, got {batch_size}")
        seen, is_empty = set[object](), True
        for part in self.parts(labels=labels):
            for batch in part.batches(labels=labels, batch_size=batch_size):
                for id in [] if batch.ids is None else batch.ids.tolist():
                    if id in seen and self.columns is not None:
                        raise DataError(f"{part.name}: {_repeated(id, self.columns)}")
                    seen.add(id)
                is_empty = False
                yield batch
        if is_empty:
            raise DataError(f"{self.name} has no series")

    def read(self, *, labels: bool = True) -> Dataset:
        """Read all series into memory."""
        return join(self.batches(labels=labels, batch_size=_MANY))

    def __iter__(self) -> Iterator[Dataset]:
        """Read all series in batches."""
        return self.batches()

    def __repr__(self) -> str:
        """Return a line with source, columns and size."""
        texts = [self.name]
        if self.columns is not None:
            texts.append(str(self.columns))
        if self.n_bytes is not None:
            texts.append(f"about {format_bytes(self.n_bytes)}")
        return f"SeriesScan({'; '.join(texts)})"


def _repeated(id: object, columns: Columns) -> str:
    """Return what is wrong if an identifier is repeated."""
    if columns.form == "long":
        return (
            f"series {id!r} is repeated after other series. All rows of a series must be "
            f"contiguous in a large table: sort it by {columns.id!r}"
        )
    return (
        f"series {id!r} is repeated, but every row is a series. If {columns.id!r} does not "
        f"identify a series, name all columns that do: {call('id', str(columns.id), '...')}"
    )


def series_digests(batch: SeriesBatch) -> Digests:
    """Return a 64-bit hash of the values of every series: equal series have equal digests."""
    key = batch.n_channels.to_bytes(4, "little")
    # Equal values must have equal bits: adding zero turns -0.0 into 0.0, and NaN has many forms.
    values = batch.values + 0.0
    values[np.isnan(values)] = np.nan
    values, bounds = values.reshape(-1), (batch.offsets * batch.n_channels).tolist()
    digests = (
        blake2b(values[begin:end].data, digest_size=8, key=key).digest()
        for begin, end in pairwise(bounds)
    )
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def series_keys(digests: Digests, seed: int) -> Digests:
    """Return a 64-bit random number for every series, from the seed and its digest.

    Random draws take the series with the smallest keys. So a draw depends on the seed and the
    series alone, not on their order, identifiers or storage.

    Examples
    --------
    >>> import slts
    >>> from slts.series.source import series_digests, series_keys
    >>> batch = slts.as_series([[1.0, 2.0], [3.0], [1.0, 2.0]])
    >>> a, b, c = series_keys(series_digests(batch), seed=0)
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    return splitmix64(digests ^ splitmix64(np.array([seed], dtype=np.uint64)))


def identifier_digests(ids: Sequence[Any] | AnyArray) -> Digests:
    """Return a 64-bit hash of every identifier; 19 and 19.0 are the same identifier.

    Examples
    --------
    >>> from slts.series.source import identifier_digests
    >>> a, b, c = identifier_digests(["left", "right", "left"])
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    array = np.asarray(ids)
    if array.dtype.kind in "iu":
        return splitmix64(array.astype(np.int64).view(np.uint64))
    if array.dtype.kind == "f" and (array == np.trunc(array)).all() and (abs(array) < 2**53).all():
        # An integer column with a missing value somewhere is stored as float.
        return identifier_digests(array.astype(np.int64))
    # `tolist` of a list with several types would turn all of them into text.
    plain = (
        (id.item() if isinstance(id, np.generic) else id for id in ids)
        if isinstance(ids, list)
        else array.tolist()
    )
    return np.frombuffer(b"".join(map(_identifier_digest, plain)), dtype=np.uint64)


def _identifier_digest(id: Any) -> bytes:
    if isinstance(id, float) and id.is_integer():
        id = int(id)
    if isinstance(id, int) and not isinstance(id, bool) and -(2**63) <= id < 2**64:
        return splitmix64(np.array([id % 2**64], dtype=np.uint64)).tobytes()
    return blake2b(repr(id).encode(), digest_size=8).digest()


def splitmix64(values: Digests) -> Digests:
    """Map 64-bit integers one-to-one to well distributed ones (splitmix64)."""
    with np.errstate(over="ignore"):
        return splitmix64_finalised(values + np.uint64(0x9E3779B97F4A7C15))


def splitmix64_finalised(values: Digests) -> Digests:
    """Apply the finaliser of splitmix64, which maps zero to zero."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(values ^ (values >> np.uint64(31)))
