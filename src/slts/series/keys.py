"""Digests and keys: hashes of the values of series, and of identifiers; distinct series."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from slts._typing import AnyArray, IntArray
from slts.series.batch import SeriesBatch
from slts.series.dataset import Dataset

Digests: TypeAlias = npt.NDArray[np.uint64]
# Most training series whose digests are kept: 8 MB. Of more, the smallest digests.
MOST_DIGESTS = 1_000_000


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
    >>> from slts.series.keys import series_digests, series_keys
    >>> batch = slts.as_series([[1.0, 2.0], [3.0], [1.0, 2.0]])
    >>> a, b, c = series_keys(series_digests(batch), seed=0)
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    return splitmix64(digests ^ splitmix64(np.array([seed], dtype=np.uint64)))


def distinct(
    keys: Digests, labels: AnyArray, groups: AnyArray | None, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """Sort rows by key, label and group; return them, and where each distinct series begins.

    Equal series keep the order of the rows.
    """
    columns = [labels, keys] if groups is None else [groups, labels, keys]
    order = np.lexsort((rows, *columns))
    new = np.arange(len(order)) == 0
    for column in columns:
        new[1:] |= column[order[1:]] != column[order[:-1]]
    return rows[order], np.flatnonzero(new)


def smallest_digests(digests: Digests) -> Digests:
    """Return sorted distinct digests, `MOST_DIGESTS` at most."""
    return np.unique(digests)[:MOST_DIGESTS]


def digests_of_ids(piece: Dataset) -> Digests:
    """Return the digests of the identifiers of a piece; none where it has no identifiers."""
    return np.empty(0, np.uint64) if piece.ids is None else identifier_digests(piece.ids)


def join_digests(digests: Sequence[Digests]) -> Digests:
    """Concatenate digests; the sequence may be empty."""
    return np.concatenate([np.empty(0, np.uint64), *digests])


def identifier_digests(ids: Sequence[Any] | AnyArray) -> Digests:
    """Return a 64-bit hash of every identifier; 19 and 19.0 are the same identifier.

    Examples
    --------
    >>> from slts.series.keys import identifier_digests
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
