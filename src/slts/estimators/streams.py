"""Series that are read part by part: who reads them, and methods that take them batch by batch."""

from __future__ import annotations

import copy
import functools
import logging
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.execution import DaskMapper, Mapper, ThreadMapper, check_stopped, usable_memory
from slts.extras import running_client
from slts.files import is_collection, is_path_like, scan_series
from slts.series import SeriesBatch
from slts.series.stream import Digests, Part, Piece, SeriesStream, digests_of

_LOGGER = logging.getLogger("slts")
Method = TypeVar("Method", bound=Callable[..., Any])

# Memory for series and what is learned from them, where nobody says otherwise.
DEFAULT_LIMIT = 2**30
# Series read at a time: enough to hide the calls, little enough for any number of channels.
BATCH = 1024
# What to do where there are no labels, in tables and elsewhere.
_NAME = "name their column, for instance fit(path, 'label') or scan_series(path, label='label')"
_PAIR = "a Dask bag has them in pairs (series, label), an .npz file in y, a .ts file in every line"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{unit}I": 1024**k for k, unit in enumerate(_UNITS) if unit}


def as_stream(
    X: Any,
    label: str | None = None,
    expect: Sequence[str] | None = None,
    classes: AnyArray | None = None,
) -> SeriesStream | None:
    """Give the stream that X is or names; None if X is series in memory.

    Paths, lists of them and Dask collections are scanned; `label` names the column with the labels,
    `expect` and `classes` the channels and labels of a model.
    """
    if isinstance(X, SeriesBatch):
        return None
    if is_path_like(X):
        known = None if classes is None else classes.tolist()
        scan = scan_series(X, label=label, expect=expect, classes=known)
        _LOGGER.info("columns: %s", scan.columns)
        return scan
    if is_collection(X):
        return scan_series(X, label=label, expect=expect)
    if not isinstance(X, SeriesStream):
        return None
    columns = getattr(X, "columns", None)
    found = getattr(columns, "label", label)
    if label is not None and found != label:
        raise DataError(
            f"y names the column {label!r}, and the labels of {X.name} are in {found!r}: say "
            f"scan_series(..., label={label!r})."
        )
    if expect is not None and columns is not None and len(columns.channels) != len(expect):
        raise DataError(
            f"{X.name} was scanned with the channels {', '.join(columns.channels)}, and the model "
            f"was fitted on {', '.join(expect)}: say scan_series(..., channels={list(expect)})."
        )
    return X


def require_labels(stream: SeriesStream) -> None:
    """Refuse a table without a column of labels before anything is read."""
    columns = getattr(stream, "columns", None)
    if columns is not None and columns.label is None:
        others = ", ".join(columns.ignored) or "none"
        raise DataError(
            f"{stream.name} has no labels: {_NAME}. Columns that are not used: {others}."
        )


@dataclass(frozen=True)
class BatchPart:
    """Some series that are in memory, and their labels and numbers."""

    series: SeriesBatch
    labels: AnyArray
    ids: AnyArray

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return f"X[{self.ids[0]}:{self.ids[-1] + 1}]"

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[BatchPart]:
        """Give some series at a time."""
        for begin in range(0, len(self.series), batch_size):
            rows = slice(begin, begin + batch_size)
            yield BatchPart(self.series[rows], self.labels[rows], self.ids[rows])


@dataclass(frozen=True)
class BatchStream:
    """Series in memory whose alignments are too many for it: read part by part all the same."""

    series: SeriesBatch
    labels: AnyArray
    name = "X"
    in_rows = False

    def parts(self, *, labels: bool = True) -> list[BatchPart]:
        """Sixteen parts, more if the series are many."""
        n = len(self.series)
        whole = BatchPart(self.series, self.labels, np.arange(n))
        return list(whole.batches(labels=True, batch_size=max(1, min(n // 16, 1 << 15))))


def half_of_memory() -> int:
    """Bytes: half of what this process may use."""
    return usable_memory() // 2


def mapper_for(n_jobs: int | None, stream: SeriesStream | None = None) -> Mapper:
    """Who reads the parts: the workers of a running Dask client, else threads of this process."""
    # What is in the memory of this process stays here.
    client = None if isinstance(stream, BatchStream) else running_client()
    return ThreadMapper(n_jobs) if client is None else DaskMapper(client)


def memory_bytes(limit: Any, owner: str) -> int:
    """Bytes meant by `memory_limit`.

    Examples
    --------
    >>> from slts.estimators.streams import memory_bytes
    >>> memory_bytes("1.5GB", "fit"), memory_bytes("1 GiB", "fit"), memory_bytes(500, "fit")
    (1500000000, 1073741824, 500)
    """
    if limit is None:
        return DEFAULT_LIMIT
    number = -1.0
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?I?)B?\s*", limit.upper())
        if found and found[2] in _UNITS:
            number = float(found[1]) * _UNITS[found[2]]
    elif isinstance(limit, int | float | np.number) and not isinstance(limit, bool):
        number = float(limit)
    if not 1 <= number < float("inf"):
        raise ValueError(
            f"The 'memory_limit' parameter of {owner} must be None, a positive number of bytes, or "
            f"text such as '2GB' or '512 MiB'. Got {limit!r} instead."
        )
    return int(number)


def check_read_together(y: Any, sample_weight: Any, owner: str) -> None:
    """Labels come with the series of a stream; weights of single series do not."""
    if y is not None and not isinstance(y, str):
        raise DataError(
            "y must be None, or the name of the column with the labels, where X is read part by "
            "part: series and labels are read together."
        )
    if sample_weight is not None:
        raise DataError(
            f"{owner} takes no sample_weight with series that are read part by part; class_weight "
            f"is taken."
        )


def pieces_of(part: Part, *, labels: bool, batch_size: int = BATCH) -> Iterator[Piece]:
    """Batches of a part, as long as somebody wants them; series without labels are refused."""
    for piece in part.batches(labels=labels, batch_size=batch_size):
        check_stopped()
        if labels and piece.labels is None:
            is_table = getattr(piece, "columns", None) is not None
            raise DataError(f"{part.name} has no labels: {_NAME if is_table else _PAIR}.")
        yield piece


def takes_streams(method: Method) -> Method:
    """Let a method ``f(self, X) -> array`` take a stream: batch by batch, results joined.

    The result is mapped from a file if it is larger than half of the estimator's `memory_limit`.
    """

    @functools.wraps(method)
    def either(self: Any, X: Any) -> Any:
        stream = as_stream(X, expect=getattr(self, "channel_names_in_", None))
        if stream is None:
            return method(self, X)
        limit = memory_bytes(getattr(self, "memory_limit", None), type(self).__name__)
        with self._progress("Reading and aligning") as progress:
            found = _over_parts(self, stream, method.__name__, progress, labels=False)
            return _joined((results for results, _ in found), limit, stream)

    return either  # type: ignore[return-value]


def predictions(model: Any, stream: SeriesStream) -> tuple[AnyArray, AnyArray]:
    """Return what a model predicts, and the labels, from one pass."""
    require_labels(stream)
    with model._progress("Reading and aligning") as progress:
        found = list(_over_parts(model, stream, "predict", progress, labels=True))
    if not found:
        raise empty(stream)
    predicted, labels = zip(*found, strict=True)
    return np.concatenate(predicted), np.concatenate(labels)


def _over_parts(
    model: Any, stream: SeriesStream, method: str, progress: Any, *, labels: bool
) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Result of a model's method on every part that has series, in order, and the labels if any."""
    single = copy.copy(model)
    single.n_jobs, single.verbose = 1, False
    parts, seen = stream.parts(labels=labels), Identifiers(stream)
    common = (single, method, labels)
    with mapper_for(model.n_jobs, stream) as mapper:
        for result, truth, digests in mapper.map(_apply, parts, common, progress=progress):
            seen.add(digests)
            if result is not None:
                yield result, truth
    seen.check(parts)


def _apply(
    part: Part, common: tuple[Any, str, bool], _: None
) -> tuple[AnyArray | None, AnyArray, Digests]:
    model, method, labels = common
    results, truth, digests = [], [], []
    for piece in pieces_of(part, labels=labels):
        results.append(getattr(model, method)(piece.series))
        digests.append(digests_in(piece))
        if labels:
            assert piece.labels is not None
            truth.append(piece.labels)
    return (
        np.concatenate(results) if results else None,
        np.concatenate(truth) if truth else np.empty(0),
        joined_digests(digests),
    )


class Identifiers:
    """Digests of the series of all parts: one that comes back would count as two."""

    def __init__(self, stream: SeriesStream) -> None:
        self._in_rows = stream.in_rows
        self._digests: list[Digests] = []

    def add(self, digests: Digests) -> None:
        """Take those of the next part."""
        self._digests.append(digests if self._in_rows else digests[:0])

    def check(self, parts: Sequence[Part]) -> None:
        """Refuse a series that begins in two parts."""
        digests = joined_digests(self._digests)
        order = np.argsort(digests, kind="stable")
        twice = np.flatnonzero(digests[order[1:]] == digests[order[:-1]])
        if not len(twice):
            return
        ends = np.cumsum([len(found) for found in self._digests])
        pair = order[[twice[0], twice[0] + 1]]
        one, other = (int(k) for k in np.searchsorted(ends, pair, side="right"))
        raise DataError(
            f"series {_identifier(parts[other], digests[pair[1]])} comes back in "
            f"{parts[other].name} after {parts[one].name}; rows of a series must stand together, "
            f"in files that follow each other by name. Sort the data by their identifier; a Dask "
            f"data frame must have all of them in one partition: frame.shuffle(id).persist()."
        )


def digests_in(piece: Piece) -> Digests:
    """Digests of the series of a piece; none where it has no identifiers."""
    return np.empty(0, np.uint64) if piece.ids is None else digests_of(piece.ids)


def joined_digests(digests: Sequence[Digests]) -> Digests:
    """Digests one after the other."""
    return np.concatenate([np.empty(0, np.uint64), *digests])


def _identifier(part: Part, digest: np.uint64) -> str:
    for piece in part.batches(labels=False, batch_size=BATCH):
        if piece.ids is not None:
            for k in np.flatnonzero(digests_of(piece.ids) == digest):
                return repr(piece.ids.tolist()[k])
    return "?"


def empty(stream: SeriesStream) -> DataError:
    """The error for a stream without a series."""
    return DataError(f"{stream.name} holds no series.")


def _joined(results: Iterator[AnyArray], limit: float, stream: SeriesStream) -> AnyArray:
    held: list[AnyArray] = []
    size = 0
    for result in results:
        held.append(result)
        size += result.nbytes
        if 2 * size > limit:
            return _in_a_file(held, results)
    if not held:
        raise empty(stream)
    return np.concatenate(held)


def _in_a_file(held: list[AnyArray], more: Iterator[AnyArray]) -> AnyArray:
    shape, dtype, rows = held[0].shape[1:], held[0].dtype, 0
    with tempfile.TemporaryFile(prefix="slts-") as file:
        for results in (held, more):
            for result in results:
                file.write(np.ascontiguousarray(result).data.cast("B"))
                rows += len(result)
        held.clear()
        file.flush()
        # The map outlives the file's name, and the file the map.
        return np.memmap(file, dtype, "r+", shape=(rows, *shape))
