"""A scan as training data or for prediction: what is accepted, its batches, and a sample of it.

The sample is drawn in one pass: the distinct series with the smallest keys. Every class is topped
up to a few series. As keys are hashes of the values, the sample does not depend on the order of the
series, on how the scan is cut into parts, or on what reads the parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError, warn
from slts.execution import (
    DaskRunner,
    Progress,
    ThreadRunner,
    check_stopped,
    release_memory,
    running_client,
    silent,
)
from slts.quantities import count, format_bytes
from slts.series import SeriesBatch
from slts.series.dataset import Dataset, Part, SeriesScan
from slts.series.keys import (
    Digests,
    digests_of_ids,
    distinct,
    identifier_digests,
    join_digests,
    series_digests,
    series_keys,
    smallest_digests,
)
from slts.tables.assembly import same_step
from slts.training.training_set import PER_CLASS, TrainingSet

# Series that are read at a time.
BATCH = 1024


def require_labels(scan: SeriesScan) -> None:
    """Raise an error for a table without a label column, before anything is read."""
    columns = scan.columns
    if columns is not None and columns.label is None:
        others = ", ".join(columns.ignored) or "none"
        raise DataError(
            f"{scan.name} has no labels: name their column, scan_series(..., label='...'), "
            f"--label. Unused columns: {others}."
        )


def check_scan(scan: SeriesScan, expected: Sequence[str] | None, every: str | None) -> None:
    """Raise an error if a scan has another number of channels than a model was fitted on.

    Warn if its series are resampled on another time grid.
    """
    columns = scan.columns
    if columns is None:
        return
    if not same_step(columns.every, every):
        instead = "no --every" if every is None else f"--every {every}"
        warn(
            f"{scan.name} was scanned with every={columns.every}, but the model was fitted with "
            f"every={every}: use {instead} (every={every!r})"
        )
    names = columns.channel_names
    if expected is not None and names is not None and len(names) != len(expected):
        raise DataError(
            f"{scan.name} was scanned with {count(len(names), 'channel')}, but the model has "
            f"{len(expected)}: name as many with --channels (channels=)."
        )


def scan_runner(n_jobs: int | None) -> ThreadRunner | DaskRunner:
    """Return what reads the parts of a scan: a running Dask cluster, or threads."""
    client = running_client()
    return ThreadRunner(n_jobs) if client is None else DaskRunner(client)


def pieces(part: Part, *, labels: bool, batch_size: int = BATCH) -> Iterator[Dataset]:
    """Read a part batch by batch; raise an error if labels are wanted and missing."""
    for piece in part.batches(labels=labels, batch_size=batch_size):
        check_stopped()
        if labels and piece.labels is None:
            raise DataError(
                f"{part.name} has no labels. A table has them in a column (--label, label=), an "
                f".npz file in y, a .ts file in every line, a Dask bag in pairs (series, label)."
            )
        yield piece


def no_series(scan: SeriesScan) -> DataError:
    """Return the error for a scan without series."""
    return DataError(f"{scan.name} has no series.")


class RepeatedIdentifiers:
    """Finds series that begin twice, in one part or in two: they would be counted twice."""

    def __init__(self, scan: SeriesScan) -> None:
        self._requires_unique_ids = scan.requires_unique_ids
        self._digests: list[Digests] = []

    def add(self, digests: Digests) -> None:
        """Add the identifiers of the next part."""
        self._digests.append(digests if self._requires_unique_ids else digests[:0])

    def check(self, parts: Sequence[Part]) -> None:
        """Raise an error if a series begins twice."""
        digests = join_digests(self._digests)
        order = np.argsort(digests, kind="stable")
        repeated = np.flatnonzero(digests[order[1:]] == digests[order[:-1]])
        if not len(repeated):
            return
        ends = np.cumsum([len(of_part) for of_part in self._digests])
        pair = order[[repeated[0], repeated[0] + 1]]
        first, second = (int(k) for k in np.searchsorted(ends, pair, side="right"))
        one, other = parts[first].name, parts[second].name
        where = f"occurs twice in {one}" if one == other else f"appears in both {one} and {other}"
        raise DataError(
            f"Series {_identifier(parts[second], digests[pair[1]])} {where}. All rows of a series "
            f"must be contiguous. Sort the data by series. In a Dask data frame, all rows of a "
            f"series must be in one partition: frame.shuffle(id).persist()."
        )


def _identifier(part: Part, digest: np.uint64) -> str:
    for piece in part.batches(labels=False, batch_size=BATCH):
        if piece.ids is not None:
            for k in np.flatnonzero(identifier_digests(piece.ids) == digest):
                return repr(piece.ids.tolist()[k])
    return "?"


# ---- the sample

_LAST = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Series that were drawn; `indices` are their numbers among the series of the pass."""

    keys: Digests
    labels: AnyArray
    weights: FloatArray
    indices: IntArray
    groups: AnyArray
    series: SeriesBatch

    def take(self, rows: IntArray) -> _Drawn:
        return _Drawn(*(getattr(self, f.name)[rows] for f in fields(self)))

    @classmethod
    def joined(cls, several: list[_Drawn]) -> _Drawn:
        names = [f.name for f in fields(cls)][:-1]
        arrays = {n: np.concatenate([getattr(one, n) for one in several]) for n in names}
        return cls(**arrays, series=SeriesBatch.concatenate(one.series for one in several))


class _Pass:
    """One pass over series: counts, and the series with the smallest keys and the first of a class.

    Parameters
    ----------
    n_bytes
        Most memory of the series with the smallest keys.
    ceiling
        Series with larger keys are kept only as the first of their class.
    """

    def __init__(self, n_bytes: float, ceiling: np.uint64 = _LAST) -> None:
        self.n_bytes, self.ceiling = n_bytes, ceiling
        self.n_series, self.n_steps, self.totals = 0, 0, Counter[Any]()
        self.channels: tuple[int, tuple[str, ...] | None] = (0, None)
        self.has_groups = False
        self.digests, self.ids = list[Digests](), list[Digests]()
        self._drawn: list[_Drawn] = []

    def add(self, piece: Dataset, part: Part, seed: int) -> None:
        """Add the next series."""
        series, labels, n = piece.series, piece.labels, len(piece)
        assert labels is not None
        _check_labels(labels, part)
        digests = series_digests(series)
        groups = np.zeros(n) if piece.groups is None else piece.groups
        indices = self.n_series + np.arange(n)
        self._drawn.append(
            _Drawn(series_keys(digests, seed), labels, np.ones(n), indices, groups, series)
        )
        self.digests.append(digests)
        self.ids.append(digests_of_ids(piece))
        self.totals.update(labels.tolist())
        self.n_series, self.n_steps = self.n_series + n, self.n_steps + series.n_steps
        self.channels = series.n_channels, series.channel_names
        self.has_groups = piece.groups is not None
        self._shrink_if_large()

    def merge(self, other: _Pass) -> None:
        """Add the next part, of which only a sample is left."""
        # A series that was dropped from the part is dropped here too.
        self.ceiling = min(self.ceiling, other.ceiling)
        self._drawn += [replace(one, indices=one.indices + self.n_series) for one in other._drawn]
        self.digests = [smallest_digests(join_digests([*self.digests, *other.digests]))]
        self.totals.update(other.totals)
        self.has_groups = other.has_groups if other.n_series else self.has_groups
        self.n_series, self.n_steps = self.n_series + other.n_series, self.n_steps + other.n_steps
        self._shrink_if_large()

    def _shrink_if_large(self) -> None:
        if sum(one.series.values.nbytes for one in self._drawn) > 2 * self.n_bytes:
            self.shrink()

    def shrink(self) -> _Drawn | None:
        """Merge equal series, drop those that are not in the sample, and return the others.

        A series that is not dropped has been kept whenever it was added, so its weight is that of
        all equal series.
        """
        if not self._drawn:
            return None
        drawn = _Drawn.joined(self._drawn)
        lengths = drawn.series.lengths
        # Series were added in their order, so the first of equal ones is the first in the data.
        order, starts = distinct(drawn.keys, drawn.labels, drawn.groups, np.arange(len(drawn.keys)))
        first, weights = order[starts], np.add.reduceat(drawn.weights[order], starts)
        keys, labels = drawn.keys[first], drawn.labels[first]
        sizes = np.cumsum(lengths[first] * (8.0 * drawn.series.n_channels))
        kept = (sizes <= self.n_bytes) & (keys <= self.ceiling)
        if not kept.all():
            # Series with equal keys are kept or dropped together.
            kept = keys < keys[np.argmin(kept)]
            self.ceiling = min(self.ceiling, keys[np.argmin(kept)] - np.uint64(1))
        for label in np.unique(labels):
            kept[np.flatnonzero(labels == label)[:PER_CLASS]] = True
        sample = replace(drawn.take(first[kept]), weights=weights[kept])
        self._drawn = [sample]
        return sample


def sample_scan(
    scan: SeriesScan,
    runner: ThreadRunner | DaskRunner,
    *,
    n_bytes: float,
    seed: int,
    progress: Progress = silent,
) -> TrainingSet:
    """Read all series once, count them, and draw a sample of at most `n_bytes` of memory."""
    require_labels(scan)
    repeated, whole = RepeatedIdentifiers(scan), _Pass(n_bytes)
    channels = dict[tuple[int, tuple[str, ...] | None], str]()
    parts, ceiling = scan.parts(), lambda _: whole.ceiling
    passes = runner.map(_read_part, parts, (n_bytes, seed), ceiling, progress=progress)
    for part, of_part in zip(parts, passes, strict=True):
        if of_part.n_series:
            channels.setdefault(of_part.channels, part.name)
        if len(channels) > 1:
            raise _other_channels(channels)
        whole.merge(of_part)
        repeated.add(join_digests(of_part.ids))
    sample = whole.shrink()
    if sample is None:
        raise no_series(scan)
    repeated.check(parts)
    if sample.series.values.nbytes > 2 * n_bytes:
        raise DataError(
            f"{scan.name} has too many classes or too long series for memory_limit: a sample of up "
            f"to {PER_CLASS} series of every class needs "
            f"{format_bytes(sample.series.values.nbytes)}, expected at most "
            f"{format_bytes(2 * n_bytes)}. Raise memory_limit."
        )
    labels, totals = _sorted_totals(whole.totals, scan.name)
    # Readers leave freed memory behind.
    release_memory()
    complete = bool(whole.ceiling == _LAST)
    drawn = TrainingSet(
        series=sample.series, codes=np.searchsorted(labels, sample.labels), keys=sample.keys,
        weights=sample.weights, indices=sample.indices,
        groups=sample.groups if whole.has_groups else None, classes=labels, totals=totals,
        n_series=whole.n_series, n_steps=whole.n_steps, digests=whole.digests[0],
        scan=None if complete else scan,
    )  # fmt: skip
    return drawn if complete else drawn.take(np.arange(len(drawn)))


def _read_part(part: Part, shared: tuple[float, int], ceiling: np.uint64) -> _Pass:
    n_bytes, seed = shared
    one = _Pass(n_bytes, ceiling)
    for piece in pieces(part, labels=True):
        one.add(piece, part, seed)
    one.shrink()
    one.digests = [smallest_digests(join_digests(one.digests))]
    return one


def _other_channels(parts: Mapping[tuple[int, tuple[str, ...] | None], str]) -> DataError:
    """Return the error for parts with different channels."""
    these, others = (
        f"{part} has {count(n, 'channel')}" + (f" ({', '.join(names)})" if names else "")
        for (n, names), part in parts.items()
    )
    return DataError(f"{others}, but {these}: all parts must have the same channels.")


def _sorted_totals(totals: Counter[Any], name: str) -> tuple[AnyArray, FloatArray]:
    """Return the sorted labels and the number of series of each."""
    text = [isinstance(label, str | bytes) for label in totals]
    if any(text) and not all(text):
        one, other = (next(x for x, t in zip(totals, text, strict=True) if t == k) for k in (1, 0))
        raise DataError(
            f"{name} has text labels, such as {one!r}, and numbers, such as {other!r}: labels must "
            f"be all text, or all numbers."
        )
    labels, weights = np.array(list(totals)), np.array(list(totals.values()), dtype=np.float64)
    order = np.argsort(labels)
    labels, weights = labels[order], weights[order]
    if len(labels) < 2:
        raise DataError(
            f"{name} holds one class only, {labels.tolist()[0]!r}: a classifier needs at least two "
            f"classes."
        )
    return labels, weights


def _check_labels(labels: AnyArray, part: Part) -> None:
    """Raise an error unless labels are text, whole numbers or booleans, none of them missing."""
    if labels.dtype.kind not in "biufUS":
        types = sorted({type(label).__name__ for label in labels.tolist()})
        raise DataError(
            f"{part.name} has labels of type {', '.join(types)}: store them as text, integers or "
            f"booleans, without missing values."
        )
    if labels.dtype.kind != "f":
        return
    if np.isnan(labels).any():
        raise DataError(f"{part.name} has a missing label.")
    broken = labels != np.trunc(labels)
    if broken.any():
        raise DataError(
            f"{part.name} has the label {labels[broken][0]}: labels must not have fractions. Is "
            f"another column the label? Otherwise bin the values."
        )
