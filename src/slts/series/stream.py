"""Series too many for memory: parts that are read batch by batch, as often as needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from slts._typing import AnyArray
from slts.series.batch import SeriesBatch

__all__ = ["Digests", "Part", "Piece", "SeriesStream", "digests_of"]

Digests: TypeAlias = npt.NDArray[np.uint64]


class Piece(Protocol):
    """Some series, with labels and identifiers where the source has them."""

    @property
    def series(self) -> SeriesBatch:
        """The series."""

    @property
    def labels(self) -> AnyArray | None:
        """One label per series."""

    @property
    def ids(self) -> AnyArray | None:
        """One identifier per series."""


class Part(Protocol):
    """A share of a stream; small and picklable, so that it can be read where the work is done."""

    @property
    def name(self) -> str:
        """What to call it in messages."""

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Piece]:
        """Read the series; every series belongs to one part only."""


@runtime_checkable
class SeriesStream(Protocol):
    """Series in parts; how they are cut does not depend on who reads them."""

    @property
    def name(self) -> str:
        """What to call it in messages."""

    @property
    def in_rows(self) -> bool:
        """Whether series are put together from rows, so that no identifier may come back."""

    def parts(self, *, labels: bool = True) -> Sequence[Part]:
        """The parts, in order; some may turn out to hold no series."""


def digests_of(ids: Sequence[Any] | AnyArray) -> Digests:
    """Numbers that stand for identifiers: equal for equal ones, as good as random otherwise.

    Examples
    --------
    >>> from slts.series.stream import digests_of
    >>> a, b, c = digests_of(["left", "right", "left"])
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    array = np.asarray(ids)
    if array.dtype.kind in "iu":
        return mixed(array.astype(np.int64).view(np.uint64))
    if array.dtype.kind == "f" and (array == np.trunc(array)).all() and (abs(array) < 2**53).all():
        # A column that lacks a value somewhere holds 19.0 where others hold 19.
        return digests_of(array.astype(np.int64))
    plain = (
        # As tolist gives them; it would turn all of a list of several types into text.
        (id.item() if isinstance(id, np.generic) else id for id in ids)
        if isinstance(ids, list)
        else array.tolist()
    )
    return np.frombuffer(b"".join(map(_digest, plain)), dtype=np.uint64)


def _digest(id: Any) -> bytes:
    """The digest of one identifier: whole numbers as in an array of them."""
    if isinstance(id, float) and id.is_integer():
        id = int(id)
    if isinstance(id, int) and not isinstance(id, bool) and -(2**63) <= id < 2**64:
        return mixed(np.array([id % 2**64], dtype=np.uint64)).tobytes()
    return blake2b(repr(id).encode(), digest_size=8).digest()


def mixed(values: Digests) -> Digests:
    """One-to-one scrambling of 64 bits (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        return scrambled(values + np.uint64(0x9E3779B97F4A7C15))


def scrambled(values: Digests) -> Digests:
    """Like `mixed`, but zero stays zero."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(values ^ (values >> np.uint64(31)))
