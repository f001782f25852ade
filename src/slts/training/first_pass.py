"""The first pass over a source: count series and classes, and draw a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.execution import (
    Progress,
    TaskRunner,
    ThreadRunner,
    few_threads,
    release_memory,
    silent,
)
from slts.plural import count
from slts.series import SeriesBatch
from slts.series.outlines import outline_digests
from slts.series.source import Digests, Part, SeriesSource, series_keys
from slts.training.sampling import Ceilings, Reservoir, Sample, SampleSize
from slts.training.source import (
    ArraySource,
    RepeatedIdentifiers,
    digests_in,
    join_digests,
    no_series,
    pieces,
    require_labels,
)

# Most training series whose digests are kept: 8 MB. Of more, those with the smallest keys.
MOST_DIGESTS = 1_000_000
# Number of channels, and their names if there are any.
Channels = tuple[int, tuple[str, ...] | None]


@dataclass(frozen=True)
class FirstPass:
    """What one pass over a source finds.

    Attributes
    ----------
    classes, totals
        Sorted labels, and the weight of all series of each class.
    offsets
        Number of the first series of every part, and the number of all series.
    n_steps
        Number of steps of all series.
    sample
        The series that were drawn.
    complete
        Whether the sample holds every series of positive weight.
    outlines
        Sorted `outline_digests` of the distinct series of positive weight, of `MOST_DIGESTS` at
        most.
    """

    classes: AnyArray
    totals: FloatArray
    offsets: IntArray
    n_steps: int
    sample: Sample
    complete: bool
    outlines: Digests

    @property
    def n_series(self) -> int:
        """Number of series."""
        return int(self.offsets[-1])

    @property
    def indices(self) -> IntArray:
        """Numbers of the sampled series in the whole source."""
        return np.asarray(self.offsets[self.sample.parts] + self.sample.positions)

    @property
    def codes(self) -> IntArray:
        """Classes of the sampled series, 0 and up."""
        return np.searchsorted(self.classes, self.sample.labels).astype(np.int64)

    def multiplicities(self, rows: IntArray) -> FloatArray:
        """Return how many series each of some sampled series stands for, mean 1.

        Classes that were topped up are weighted down to their true share.
        """
        weights, codes = self.sample.weights[rows], self.codes[rows]
        if not (self.complete and len(rows) == len(self.sample)):
            own = np.bincount(codes, weights=weights, minlength=len(self.classes)) / weights.sum()
            share = self.totals / self.totals.sum()
            weights = weights * (share / np.where(own > 0.0, own, 1.0))[codes]
        return np.asarray(weights / weights.mean())


@dataclass(frozen=True)
class _PartCounts:
    n_series: int
    n_steps: int
    labels: AnyArray
    totals: FloatArray
    digests: Digests
    channels: Channels | None
    reservoir: Reservoir
    outlines: Digests


class _Outlines:
    """Digests of the distinct series with the smallest keys."""

    def __init__(self) -> None:
        self._held: list[Digests] = []
        self._size = 0

    def add(self, found: Digests) -> None:
        """Add the keys and digests of some series, shape (2, series)."""
        self._held.append(found)
        self._size += found.shape[1]
        if self._size > 2 * MOST_DIGESTS:
            self.add(self.take())

    def take(self) -> Digests:
        """Return keys and digests of the distinct series, and forget them."""
        keys, digests = np.hstack([np.empty((2, 0), np.uint64), *self._held])
        keys, first = np.unique(keys, return_index=True)
        self._held, self._size = [], 0
        return np.stack([keys, digests[first]])[:, :MOST_DIGESTS]


def count_and_sample(
    source: SeriesSource,
    runner: TaskRunner,
    size: SampleSize,
    *,
    seed: int,
    progress: Progress = silent,
) -> FirstPass:
    """Read all series once, count them and draw a sample."""
    require_labels(source)
    parts, repeated = source.parts(), RepeatedIdentifiers(source)
    reservoir, outlines = Reservoir(size), _Outlines()
    if isinstance(source, ArraySource):
        # Nothing is read, and hashes of short series are mostly Python.
        runner = ThreadRunner(few_threads(runner.n_workers))
    counts: list[_PartCounts] = []
    results = runner.map(
        _count, parts, (size, seed, source.requires_unique_ids),
        lambda number: (number, reservoir.ceilings), progress=progress,
    )  # fmt: skip
    for result in results:
        _check_channels(counts, result, parts)
        reservoir.merge(result.reservoir)
        repeated.add(result.digests)
        outlines.add(result.outlines)
        # The series and digests are merged: free the copies.
        none = result.digests[:0]
        counts.append(replace(result, reservoir=Reservoir(size), digests=none, outlines=none))
    sample = reservoir.sample()
    if sample is None:
        raise no_series(source)
    repeated.check(parts)
    if not isinstance(source, ArraySource):
        # Readers leave freed memory behind.
        release_memory()
    classes, totals = _classes(counts, parts)
    if len(classes) < 2:
        raise DataError(
            f"{source.name} holds one class only, {classes.tolist()[0]!r}: a classifier needs at "
            f"least two classes."
        )
    return FirstPass(
        classes,
        totals,
        np.cumsum([0, *(part.n_series for part in counts)], dtype=np.int64),
        sum(part.n_steps for part in counts),
        sample,
        reservoir.complete,
        # Their order must not tell the order of the series.
        np.sort(outlines.take()[1]),
    )


def read_everything(
    source: SeriesSource, runner: TaskRunner, *, seed: int, progress: Progress = silent
) -> FirstPass:
    """Read all series into memory: a first pass whose sample is complete."""
    return count_and_sample(
        source, runner, SampleSize(np.inf, np.inf), seed=seed, progress=progress
    )


def class_weights(given: Any, classes: AnyArray, totals: FloatArray) -> FloatArray:
    """Return the weight of a series by its class, from scikit-learn's `class_weight`."""
    if isinstance(given, str) and given == "balanced":
        return np.asarray(totals.sum() / (len(classes) * totals))
    by_label = dict(given) if isinstance(given, Mapping) else given
    weights = np.asarray(compute_class_weight(by_label, classes=classes, y=classes))
    if not (weights > 0.0).all():
        label = classes[int(np.argmin(weights > 0.0))]
        raise DataError(f"class {label} has no weight: every class needs a positive class_weight.")
    return weights


def fetch(
    source: SeriesSource, runner: TaskRunner, offsets: IntArray, indices: IntArray
) -> tuple[SeriesBatch, AnyArray]:
    """Return series by their numbers in the source, and their labels."""
    part_of = np.searchsorted(offsets, indices, side="right") - 1
    wanted = np.unique(part_of)
    parts = source.parts()

    def own(k: int) -> IntArray:
        return np.sort(indices[part_of == wanted[k]] - offsets[wanted[k]])

    found = list(runner.map(_pick, [parts[k] for k in wanted], None, own))
    series = SeriesBatch.concatenate(series for series, _ in found)
    labels = np.concatenate([labels for _, labels in found])
    # The result is sorted; return it in the order of `indices`.
    order = np.argsort(np.argsort(indices))
    return series[order], labels[order]


def _pick(part: Part, _: None, positions: IntArray) -> tuple[SeriesBatch, AnyArray]:
    first, series, labels = 0, [], []
    for piece in pieces(part, labels=True):
        n = len(piece.series)
        here = positions[(positions >= first) & (positions < first + n)] - first
        if len(here):
            assert piece.labels is not None
            series.append(piece.series[here])
            labels.append(piece.labels[here])
        first += n
    return SeriesBatch.concatenate(series), np.concatenate(labels)


def _count(
    part: Part, shared: tuple[SampleSize, int, bool], own: tuple[int, Ceilings]
) -> _PartCounts:
    size, seed, requires_unique_ids = shared
    number, ceilings = own
    reservoir, outlines = Reservoir(size, ceilings), _Outlines()
    n_series = n_steps = 0
    digests: list[Digests] = []
    totals: dict[Any, float] = {}
    channels: Channels | None = None
    for piece in pieces(part, labels=True):
        series, labels = piece.series, piece.labels
        assert labels is not None
        _check_labels(labels, part)
        weights = np.ones(len(series)) if piece.weights is None else piece.weights
        keys, used = series_keys(series, seed), weights > 0.0
        reservoir.add(keys, labels, weights, number, n_series, series, piece.groups)
        outlines.add(np.stack([keys, outline_digests(series)])[:, used])
        if requires_unique_ids:
            digests.append(digests_in(piece))
        names, which = np.unique(labels, return_inverse=True)
        sums = np.bincount(which.reshape(-1), weights=weights)
        for name, total in zip(names.tolist(), sums.tolist(), strict=True):
            totals[name] = totals.get(name, 0.0) + total
        n_series, n_steps = n_series + len(series), n_steps + series.n_steps
        channels = channels or (series.n_channels, series.channel_names)
    reservoir.sample()
    return _PartCounts(
        n_series, n_steps, np.array(list(totals)), np.array(list(totals.values())),
        join_digests(digests), channels, reservoir, outlines.take(),
    )  # fmt: skip


def _classes(counts: Sequence[_PartCounts], parts: Sequence[Part]) -> tuple[AnyArray, FloatArray]:
    """Return the sorted labels and their total weights."""
    used = [(part, found) for part, found in zip(parts, counts, strict=True) if len(found.labels)]
    kinds = {
        found.labels.dtype.kind in "US": (part.name, found.labels.tolist()[0])
        for part, found in used
    }
    if len(kinds) > 1:
        (one, text), (other, number) = kinds[True], kinds[False]
        raise DataError(
            f"{one} has text labels, such as {text!r}, and {other} has numbers, such as "
            f"{number!r}: labels must be all text, or all numbers."
        )
    labels = np.concatenate([found.labels for _, found in used])
    classes, which = np.unique(labels, return_inverse=True)
    totals = np.bincount(which, weights=np.concatenate([found.totals for _, found in used]))
    if (totals <= 0.0).any():
        label = classes[int(np.argmin(totals))]
        raise DataError(
            f"class {label} has no weight: every class needs a series whose sample_weight is "
            f"positive. Leave the class out instead."
        )
    return classes, np.asarray(totals, dtype=np.float64)


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


def _check_channels(known: Sequence[_PartCounts], new: _PartCounts, parts: Sequence[Part]) -> None:
    """Raise an error if a part has other channels than the first part that has series."""
    first = next((k for k, part in enumerate(known) if part.channels is not None), None)
    if first is None or new.channels is None or new.channels == known[first].channels:
        return
    raise DataError(
        f"{parts[len(known)].name} has {_describe(new.channels)}, and {parts[first].name} has "
        f"{_describe(known[first].channels)}: all parts must have the same channels."
    )


def _describe(channels: Channels | None) -> str:
    assert channels is not None
    number, names = channels
    return count(number, "channel") + (f" ({', '.join(names)})" if names else "")
