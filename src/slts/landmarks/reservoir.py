"""A uniform sample drawn in one pass, in any order, by anyone: the series of smallest key.

The key of a series is a hash of its identifier and of the seed. So the sample does not depend on
how the series are cut in parts, on the order in which these are seen, or on who sees them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.series import SeriesBatch
from slts.series.stream import Digests, mixed

_LAST = np.uint64(2**64 - 1)
# Series of every class in any case; more share the bytes among so many classes, or all there are.
_FEWEST_OF_CLASS, _CLASSES = 2, 20


def sampling_keys(digests: Digests, seed: int) -> Digests:
    """Keys of series by their digests; another seed gives another order."""
    return mixed(digests ^ mixed(np.array([seed], dtype=np.uint64)))


@dataclass(frozen=True)
class Ceilings:
    """Keys beyond which a series is sure not to be in the sample."""

    every: np.uint64 = _LAST
    # None where classes have no series of their own in the sample.
    by_class: Mapping[Any, np.uint64] | None = None

    def lowered(self, other: Ceilings) -> Ceilings:
        """The lower of both, everywhere."""
        by_class = self.by_class
        if by_class is not None:
            known = dict(by_class)
            for label, key in (other.by_class or {}).items():
                known[label] = min(known.get(label, _LAST), key)
            by_class = known
        return Ceilings(min(self.every, other.every), by_class)

    def admit(self, keys: Digests, labels: AnyArray) -> IntArray:
        """Positions of the series that may still be in the sample."""
        admitted = keys <= self.every
        if self.by_class is None:
            return np.flatnonzero(admitted)
        for label in np.unique(labels):
            ceiling = self.by_class.get(label.item(), _LAST)
            admitted |= (labels == label) & (keys <= ceiling)
        return np.flatnonzero(admitted)


@dataclass(frozen=True)
class Sample:
    """Series that were drawn.

    Attributes
    ----------
    keys, labels, series
        In order of key, first the uniform sample, then those that complete rare classes.
    parts, positions
        Where each was found: number of the part, and place in it.
    n_uniform
        The first so many are a uniform sample of all series.
    """

    keys: Digests
    labels: AnyArray
    parts: IntArray
    positions: IntArray
    series: SeriesBatch
    n_uniform: int

    def __len__(self) -> int:
        """Return the number of series."""
        return len(self.keys)

    def take(self, index: IntArray, n_uniform: int) -> Sample:
        """Some of them."""
        return Sample(
            self.keys[index], self.labels[index], self.parts[index], self.positions[index],
            self.series[index], n_uniform,
        )  # fmt: skip

    def first(self, count: int, per_class: int) -> Sample:
        """The first `count`, and the first of every class where these lack them."""
        if count >= len(self):
            return self
        wanted = np.arange(len(self)) < count
        for label in np.unique(self.labels):
            wanted[np.flatnonzero(self.labels == label)[:per_class]] = True
        return self.take(np.flatnonzero(wanted), min(count, self.n_uniform))


@dataclass(frozen=True)
class SampleSize:
    """How much a sample may hold.

    Attributes
    ----------
    n_series, n_bytes
        Limits of the uniform sample, whichever is reached first.
    at_least
        So many series in any case.
    per_class
        So many of every class besides, or all there are; fewer, but two, where all classes would
        take more than `n_bytes` again.
    """

    n_series: int
    n_bytes: float
    at_least: int = 1
    per_class: int = 0


class Reservoir:
    """Keeps the series of smallest key among all that are shown to it."""

    def __init__(self, size: SampleSize, ceilings: Ceilings | None = None) -> None:
        self._size = size
        self._held: list[Sample] = []
        self._shrunk(0, 0.0)
        self.ceilings = ceilings or Ceilings(by_class={} if size.per_class else None)

    def add(
        self, keys: Digests, labels: AnyArray, part: int, first: int, series: SeriesBatch
    ) -> None:
        """Show a batch of series; `first` is the place in the part of the first one."""
        index = self.ceilings.admit(keys, labels)
        if not len(index):
            return
        places = np.full(len(index), part)
        self._take(Sample(keys[index], labels[index], places, first + index, series[index], 0))

    def merge(self, other: Reservoir) -> None:
        """Show what another reservoir has kept of other series."""
        # What it let go was too much for it, hence for both.
        self.ceilings = self.ceilings.lowered(other.ceilings)
        for sample in other._held:
            self._take(sample)

    def _take(self, sample: Sample) -> None:
        self._held.append(sample)
        self._n_bytes += float(_sizes(sample.series).sum())
        if self._n_bytes > self._full_bytes or sum(map(len, self._held)) > self._full_series:
            self.sample()

    def _shrunk(self, n_series: int, n_bytes: float) -> None:
        """Shrink again when as much has come as may stay, or as could not be let go."""
        self._n_bytes = n_bytes
        self._full_bytes = 2 * max(self._size.n_bytes, n_bytes)
        self._full_series = 2 * max(self._size.n_series, n_series)

    def sample(self) -> Sample | None:
        """Give the sample of all series shown so far."""
        if not self._held:
            return None
        every = _joined(self._held)
        order = np.argsort(every.keys, kind="stable")
        sizes = _sizes(every.series)[order]
        rank = np.arange(len(order))
        fits = (np.cumsum(sizes) <= self._size.n_bytes) & (rank < self._size.n_series)
        fits |= rank < self._size.at_least
        fits &= every.keys[order] <= self.ceilings.every
        # Once something does not fit, nothing behind it does: the sample is the same in any order.
        n_uniform = int(np.argmin(fits)) if not fits.all() else len(fits)
        highest = self.ceilings.every
        if n_uniform < len(order):
            highest = min(highest, every.keys[order[n_uniform]] - np.uint64(1))
        kept = np.zeros(len(order), dtype=bool)
        kept[:n_uniform] = True
        by_class = dict(self.ceilings.by_class or {})
        keys, labels = every.keys[order], every.labels[order]
        classes = np.unique(labels) if self._size.per_class else labels[:0]
        for label in classes:
            ceiling = by_class.get(label.item(), _LAST)
            members = np.flatnonzero((labels == label) & (keys <= ceiling))
            count = self._of_class(sizes[members], len(classes))
            kept[members[:count]] = True
            if count == self._size.per_class:
                by_class[label.item()] = min(ceiling, keys[members[count - 1]])
            elif len(members) > count:
                # A smaller series before the first that did not fit might.
                by_class[label.item()] = min(ceiling, keys[members[count]] - np.uint64(1))
        self.ceilings = Ceilings(highest, by_class if self._size.per_class else None)
        found = every.take(order[kept], n_uniform)
        self._held = [found]
        self._shrunk(len(found), float(_sizes(found.series).sum()))
        return found

    def _of_class(self, sizes: FloatArray, n_classes: int) -> int:
        """How many of the series of a class, in order of key, are kept in any case.

        The more classes are seen, the fewer: what did not fit before will not fit later.
        """
        room = self._size.n_bytes / max(_CLASSES, n_classes)
        fits = np.cumsum(sizes[: self._size.per_class]) <= room
        fits[:_FEWEST_OF_CLASS] = True
        return int(fits.sum())


def _sizes(series: SeriesBatch) -> FloatArray:
    return np.asarray(series.lengths * (8.0 * series.n_channels), dtype=np.float64)


def _joined(samples: list[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    return Sample(
        np.concatenate([s.keys for s in samples]),
        np.concatenate([s.labels for s in samples]),
        np.concatenate([s.parts for s in samples]),
        np.concatenate([s.positions for s in samples]),
        SeriesBatch.concatenate(s.series for s in samples),
        0,
    )
