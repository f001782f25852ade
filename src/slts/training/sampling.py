"""A uniform sample drawn in one pass: the distinct series with the smallest keys.

The key of a series is a hash of the seed and its values (`series_keys`). So the sample does not
depend on the order of the series, on how they are cut into parts, or on which workers read the
parts. A series that occurs twice with the same label is one series of weight two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.hashing import splitmix64
from slts.series import SeriesBatch
from slts.series.source import Digests

_FIRST, _LAST = np.uint64(0), np.uint64(2**64 - 1)
# Fewest series of every class; the bytes are shared by this many classes, or by all if more.
_FEWEST_PER_CLASS, _CLASSES = 2, 20
# Arrays of a sample with one number per series.
_FIELDS = ("keys", "labels", "weights", "parts", "positions")


def shuffled(keys: Digests, purpose: int) -> IntArray:
    """Return a random order that depends on the keys alone; every purpose has its own order."""
    return np.argsort(
        splitmix64(keys ^ splitmix64(np.array([purpose], dtype=np.uint64))), kind="stable"
    )


@dataclass(frozen=True)
class Ceilings:
    """Keys above which a series cannot be in the sample, nor top up its class."""

    uniform: np.uint64 = _LAST
    by_class: Mapping[Any, np.uint64] = field(default_factory=dict)
    # Of classes that are not in `by_class`.
    other_classes: np.uint64 = _LAST

    def of_class(self, label: Any) -> np.uint64:
        """Return the key above which no series tops up a class."""
        return self.by_class.get(label, self.other_classes)

    def lowered(self, other: Ceilings) -> Ceilings:
        """Return the lower of both ceilings everywhere."""
        labels = {*self.by_class, *other.by_class}
        by_class = {label: min(self.of_class(label), other.of_class(label)) for label in labels}
        return Ceilings(min(self.uniform, other.uniform), by_class, self.other_classes)

    def admit(self, keys: Digests, labels: AnyArray) -> IntArray:
        """Return the positions of series that can still be in the sample."""
        admitted = keys <= self.uniform
        if self.other_classes > 0:
            for label in np.unique(labels):
                admitted |= (labels == label) & (keys <= self.of_class(label.item()))
        return np.flatnonzero(admitted)


@dataclass(frozen=True)
class Sample:
    """Distinct series that were drawn, in the order of their keys.

    Attributes
    ----------
    keys, labels, series
        Hash, label and values of every series.
    weights
        Sum of the weights of all equal series with this label.
    parts, positions
        Where the first of the equal series was found: number of the part, position in it.
    n_uniform
        Number of series at the beginning that are a uniform sample; the rest top up rare classes.
    groups
        Group of the first of the equal series; None if the source has no groups.
    """

    keys: Digests
    labels: AnyArray
    weights: FloatArray
    parts: IntArray
    positions: IntArray
    series: SeriesBatch
    groups: AnyArray | None = None
    n_uniform: int = 0

    def __len__(self) -> int:
        """Return the number of distinct series."""
        return len(self.keys)

    def take(self, index: IntArray, n_uniform: int = 0) -> Sample:
        """Return some of the series."""
        taken: dict[str, Any] = {
            name: None if value is None else value[index]
            for name, value in vars(self).items()
            if name != "n_uniform"
        }
        return Sample(**taken, n_uniform=n_uniform)

    def first(self, count: int, per_class: int) -> Sample:
        """Return the first `count` series, topped up to `per_class` series of every class."""
        if count >= len(self):
            return self
        wanted = np.arange(len(self)) < count
        for label in np.unique(self.labels):
            wanted[np.flatnonzero(self.labels == label)[:per_class]] = True
        return self.take(np.flatnonzero(wanted), min(count, self.n_uniform))


@dataclass(frozen=True)
class SampleSize:
    """How large a sample may be: as large as all series, unless limits are given.

    Attributes
    ----------
    n_series, n_bytes
        Limits of the uniform sample; the first that is reached counts.
    at_least
        Smallest number of series, regardless of their size.
    per_class
        Every class is topped up to this number, or to all its series; to fewer, but at least two,
        if the classes together would need more than `n_bytes` again.
    """

    n_series: float = np.inf
    n_bytes: float = np.inf
    at_least: int = 1
    per_class: int = 0


class Reservoir:
    """Keeps the distinct series with the smallest keys among all that are added."""

    def __init__(self, size: SampleSize, ceilings: Ceilings | None = None) -> None:
        self._size = size
        self._held: list[Sample] = []
        self._set_thresholds(0, 0.0)
        self.ceilings = ceilings or Ceilings(other_classes=_LAST if size.per_class else _FIRST)

    @property
    def complete(self) -> bool:
        """Whether no series was dropped."""
        return bool(self.ceilings.uniform == _LAST)

    def add(self, batch: Sample) -> None:
        """Add a batch of series."""
        index = self.ceilings.admit(batch.keys, batch.labels)
        index = index[batch.weights[index] > 0.0]
        if len(index):
            self._hold(batch if len(index) == len(batch) else batch.take(index))

    def merge(self, other: Reservoir) -> None:
        """Add the series that another reservoir kept."""
        # A series that the other one dropped is dropped here too.
        self.ceilings = self.ceilings.lowered(other.ceilings)
        for sample in other._held:
            self._hold(sample)

    def _hold(self, sample: Sample) -> None:
        self._held.append(sample)
        self._n_bytes += float(_sizes(sample.series).sum())
        if self._n_bytes > self._full_bytes or sum(map(len, self._held)) > self._full_series:
            self.sample()

    def _set_thresholds(self, n_series: int, n_bytes: float) -> None:
        """Reduce again when twice the limit is held, or twice what could not be dropped."""
        self._n_bytes = n_bytes
        self._full_bytes = 2 * max(self._size.n_bytes, n_bytes)
        self._full_series = 2 * max(self._size.n_series, n_series)

    def sample(self) -> Sample | None:
        """Return the sample of all series added so far; None if there are none."""
        if not self._held:
            return None
        # The keys tell which series are kept. Only these are copied: all may be twice the limit.
        fields = {name: _concatenated(self._held, name) for name in _FIELDS}
        order, weights = _distinct(**fields)
        keys, labels = fields["keys"][order], fields["labels"][order]
        sizes = np.concatenate([_sizes(sample.series) for sample in self._held])[order]
        n_uniform = self._uniform(keys, sizes)
        highest = self.ceilings.uniform
        if n_uniform < len(keys):
            highest = min(highest, keys[n_uniform] - np.uint64(1))
        kept = np.arange(len(keys)) < n_uniform
        by_class = dict(self.ceilings.by_class)
        classes = np.unique(labels) if self._size.per_class else labels[:0]
        for label in classes:
            ceiling = self.ceilings.of_class(label.item())
            members = np.flatnonzero((labels == label) & (keys <= ceiling))
            count = self._top_up(sizes[members], len(classes))
            kept[members[:count]] = True
            if count == self._size.per_class:
                by_class[label.item()] = min(ceiling, keys[members[count - 1]])
            elif len(members) > count:
                # A smaller series with a smaller key might still fit.
                by_class[label.item()] = min(ceiling, keys[members[count]] - np.uint64(1))
        self.ceilings = replace(self.ceilings, uniform=highest, by_class=by_class)
        found = replace(
            _take_from(self._held, order[kept]), weights=weights[kept], n_uniform=n_uniform
        )
        self._held = [found]
        self._set_thresholds(len(found), float(sizes[kept].sum()))
        return found

    def _uniform(self, keys: Digests, sizes: FloatArray) -> int:
        """Return how many series, in the order of their keys, fit in the uniform sample."""
        fits = np.cumsum(sizes) <= self._size.n_bytes
        fits &= np.arange(len(keys)) < self._size.n_series
        fits |= keys <= keys[min(self._size.at_least, len(keys)) - 1]
        fits &= keys <= self.ceilings.uniform
        # After the first series that does not fit nothing is taken, so the order of the parts does
        # not matter. Series with equal keys are taken or left together.
        if fits.all():
            return len(fits)
        return int(np.searchsorted(keys, keys[np.argmin(fits)]))

    def _top_up(self, sizes: FloatArray, n_classes: int) -> int:
        """Return how many series of a class are kept in any case.

        The number falls as more classes are seen, so what was dropped before stays dropped.
        """
        room = self._size.n_bytes / max(_CLASSES, n_classes)
        fits = np.cumsum(sizes[: self._size.per_class]) <= room
        fits[:_FEWEST_PER_CLASS] = True
        return int(fits.sum())


def _sizes(series: SeriesBatch) -> FloatArray:
    return np.asarray(series.lengths * (8.0 * series.n_channels), dtype=np.float64)


def _concatenated(samples: list[Sample], name: str) -> AnyArray:
    return np.concatenate([getattr(sample, name) for sample in samples])


def _distinct(
    keys: Digests, labels: AnyArray, weights: FloatArray, parts: IntArray, positions: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return the first of all equal series, sorted by key and label, and the sums of weights."""
    order = np.lexsort((positions, parts, labels, keys))
    keys, labels = keys[order], labels[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (labels[1:] != labels[:-1])
    first = np.flatnonzero(new)
    return order[first], np.add.reduceat(weights[order], first)


def _take_from(samples: list[Sample], index: IntArray) -> Sample:
    """Return series by their numbers in all samples. The list is emptied, which frees memory."""
    order = np.argsort(index, kind="stable")
    ascending, begin, taken = index[order], 0, []
    while samples:
        sample = samples.pop(0)
        own = ascending[(ascending >= begin) & (ascending < begin + len(sample))] - begin
        begin += len(sample)
        if len(own) == len(sample):
            taken.append(sample)
        elif len(own):
            taken.append(sample.take(own))
    joined = taken[0] if len(taken) == 1 else _joined(taken)
    if (order == np.arange(len(order))).all():
        return joined
    return joined.take(np.argsort(order))


def _joined(samples: list[Sample]) -> Sample:
    names = _FIELDS if samples[0].groups is None else (*_FIELDS, "groups")
    arrays: dict[str, Any] = {name: _concatenated(samples, name) for name in names}
    return Sample(**arrays, series=SeriesBatch.concatenate(sample.series for sample in samples))
