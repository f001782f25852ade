"""A sample of a scan, drawn in one pass: the distinct series with the smallest keys.

Every class is topped up to a few series. As keys are hashes of the values, the sample does not
depend on the order of the series, on how the scan is cut into parts, or on what reads the parts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.execution import DaskRunner, Progress, ThreadRunner, release_memory, silent
from slts.quantities import count, format_bytes
from slts.series import SeriesBatch
from slts.series.dataset import Dataset
from slts.series.source import Digests, Part, SeriesSource, series_digests, series_keys
from slts.training.scans import (
    RepeatedIdentifiers,
    digests_of_ids,
    join_digests,
    no_series,
    pieces,
    require_labels,
)
from slts.training.training_set import PER_CLASS, TrainingSet, distinct, smallest_digests

_LAST = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Series that were drawn; `parts` and `positions` say where the first of equal ones is."""

    keys: Digests
    labels: AnyArray
    weights: FloatArray
    parts: IntArray
    positions: IntArray
    groups: AnyArray
    series: SeriesBatch

    def take(self, rows: IntArray) -> _Drawn:
        return _Drawn(*(getattr(self, f.name)[rows] for f in fields(self)))

    @classmethod
    def joined(cls, several: list[_Drawn]) -> _Drawn:
        names = [f.name for f in fields(cls)][:-1]
        arrays = [np.concatenate([getattr(one, name) for one in several]) for name in names]
        series = SeriesBatch.concatenate(one.series for one in several)
        return cls(**dict(zip(names, arrays, strict=True)), series=series)


class Reservoir:
    """Keeps the distinct series with the smallest keys, and the first of every class.

    Parameters
    ----------
    n_bytes
        Most memory of the series with the smallest keys.
    ceiling
        Series with larger keys are kept only as the first of their class.
    """

    def __init__(self, n_bytes: float, ceiling: np.uint64 = _LAST) -> None:
        self._n_bytes, self.ceiling = n_bytes, ceiling
        self._held: list[_Drawn] = []
        self._size = 0.0

    @property
    def complete(self) -> bool:
        """Whether no series was dropped."""
        return bool(self.ceiling == _LAST)

    def add(self, drawn: _Drawn) -> None:
        """Add series."""
        self._held.append(drawn)
        self._size += drawn.series.values.nbytes
        if self._size > 2 * self._n_bytes:
            self.shrink()

    def merge(self, other: Reservoir) -> None:
        """Add the series that another reservoir kept."""
        # A series that the other one dropped is dropped here too.
        self.ceiling = min(self.ceiling, other.ceiling)
        for drawn in other._held:
            self.add(drawn)

    def shrink(self) -> _Drawn | None:
        """Merge equal series, drop those that are not in the sample, and return the others.

        A series that is not dropped has been kept whenever it was added, so its weight is that of
        all equal series.
        """
        if not self._held:
            return None
        drawn = _Drawn.joined(self._held)
        places = np.lexsort((drawn.positions, drawn.parts))
        order, starts = distinct(drawn.keys[places], drawn.labels[places], np.arange(len(places)))
        first = places[order[starts]]
        weights = np.add.reduceat(drawn.weights[places[order]], starts)
        keys, labels = drawn.keys[first], drawn.labels[first]
        sizes = np.cumsum(drawn.series.lengths[first] * (8.0 * drawn.series.n_channels))
        kept = (sizes <= self._n_bytes) & (keys <= self.ceiling)
        if not kept.all():
            # Series with equal keys are kept or dropped together.
            kept = keys < keys[np.argmin(kept)]
            self.ceiling = min(self.ceiling, keys[np.argmin(kept)] - np.uint64(1))
        for label in np.unique(labels):
            kept[np.flatnonzero(labels == label)[:PER_CLASS]] = True
        sample = replace(drawn.take(first[kept]), weights=weights[kept])
        self._held, self._size = [sample], float(sample.series.values.nbytes)
        return sample


def sample_scan(
    scan: SeriesSource,
    runner: ThreadRunner | DaskRunner,
    *,
    n_bytes: float,
    seed: int,
    progress: Progress = silent,
) -> TrainingSet:
    """Read all series once, count them, and draw a sample of at most `n_bytes` of memory."""
    require_labels(scan)
    parts, repeated = scan.parts(), RepeatedIdentifiers(scan)
    reservoir, digests = Reservoir(n_bytes), list[Digests]()
    channels, has_groups = dict[str, str](), False
    totals, offsets, n_steps = Counter[Any](), [0], 0
    shared = n_bytes, seed, scan.requires_unique_ids
    results = runner.map(
        _count, parts, shared, lambda number: (number, reservoir.ceiling), progress=progress
    )
    for part, counts in zip(parts, results, strict=True):
        if counts.n_series:
            channels.setdefault(counts.channels, part.name)
            has_groups = counts.has_groups
        if len(channels) > 1:
            these, others = (f"{name} has {what}" for what, name in channels.items())
            raise DataError(f"{others}, but {these}: all parts must have the same channels.")
        totals.update(counts.totals)
        offsets.append(offsets[-1] + counts.n_series)
        n_steps += counts.n_steps
        reservoir.merge(counts.reservoir)
        repeated.add(counts.ids)
        digests = [smallest_digests(np.concatenate([*digests, counts.digests]))]
    sample = reservoir.shrink()
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
    # Readers leave freed memory behind.
    release_memory()
    labels, sums = _sorted_totals(totals, scan.name)
    drawn = TrainingSet(
        series=sample.series, codes=np.searchsorted(labels, sample.labels), keys=sample.keys,
        weights=sample.weights, indices=np.array(offsets)[sample.parts] + sample.positions,
        groups=sample.groups if has_groups else None, classes=labels,
        totals=sums, n_series=offsets[-1], n_steps=n_steps, digests=digests[0],
        scan=None if reservoir.complete else scan,
    )  # fmt: skip
    return drawn if reservoir.complete else drawn.take(np.arange(len(drawn)))


class _PartCounts(NamedTuple):
    n_series: int
    n_steps: int
    totals: Counter[Any]
    ids: Digests
    digests: Digests
    reservoir: Reservoir
    channels: str
    has_groups: bool


def _count(part: Part, shared: tuple[float, int, bool], own: tuple[int, np.uint64]) -> _PartCounts:
    (n_bytes, seed, requires_unique_ids), (number, ceiling) = shared, own
    reservoir, totals = Reservoir(n_bytes, ceiling), Counter[Any]()
    ids, digests = list[Digests](), list[Digests]()
    n_series, n_steps, channels, has_groups = 0, 0, "", False
    for piece in pieces(part, labels=True):
        drawn, piece_digests = _read(piece, part, seed, number, n_series)
        reservoir.add(drawn)
        digests.append(piece_digests)
        if requires_unique_ids:
            ids.append(digests_of_ids(piece))
        totals.update(drawn.labels.tolist())
        n_series, n_steps = n_series + len(piece.series), n_steps + piece.series.n_steps
        listed = f" ({', '.join(piece.series.channel_names)})" if piece.series.channel_names else ""
        channels = count(piece.series.n_channels, "channel") + listed
        has_groups = piece.groups is not None
    reservoir.shrink()
    return _PartCounts(
        n_series, n_steps, totals, join_digests(ids), smallest_digests(join_digests(digests)),
        reservoir, channels, has_groups,
    )  # fmt: skip


def _read(
    piece: Dataset, part: Part, seed: int, number: int, n_before: int
) -> tuple[_Drawn, Digests]:
    """Return the series of a piece with their keys, and their digests."""
    series, labels = piece.series, piece.labels
    assert labels is not None
    _check_labels(labels, part)
    n = len(series)
    digests = series_digests(series)
    drawn = _Drawn(
        series_keys(digests, seed), labels,
        np.ones(n), np.full(n, number), n_before + np.arange(n),
        np.zeros(n) if piece.groups is None else piece.groups, series,
    )  # fmt: skip
    return drawn, digests


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
