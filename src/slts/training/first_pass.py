"""The first pass over a source: count series and classes, and draw a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import compute_class_weight

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError, warn
from slts.execution import (
    Progress,
    TaskRunner,
    ThreadRunner,
    release_memory,
    silent,
)
from slts.quantities import count, list_first
from slts.series import SeriesBatch
from slts.series.source import Digests, Part, SeriesSource, series_digests, series_keys
from slts.training.held_out import Split, make_splits
from slts.training.sampling import Ceilings, Reservoir, Sample, SampleSize
from slts.training.source import (
    READER_BYTES,
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


# Copies of a part while it is read, drawn from and handed over, and the memory for those of all
# threads, as a multiple of the sample.
_COPIES_IN_MEMORY, _READING = 4, 6
# Names that a warning lists.
_MOST_LISTED = 5


@dataclass(frozen=True)
class FirstPass:
    """What one pass over a source finds.

    Attributes
    ----------
    labels, classes, totals
        Sorted labels, what they are called, and the weight of all series of each class.
    offsets
        Number of the first series of every part, and the number of all series.
    n_steps
        Number of steps of all series.
    sample
        The series that were drawn.
    complete
        Whether the sample holds every series of positive weight.
    in_memory
        Whether the source is arrays, whose series users can name by index.
    digests_of_shapes
        Sorted `series_digests` of the distinct series of positive weight, of `MOST_DIGESTS` at
        most.
    """

    labels: AnyArray
    classes: AnyArray
    totals: FloatArray
    offsets: IntArray
    n_steps: int
    sample: Sample
    complete: bool
    in_memory: bool
    digests_of_shapes: Digests

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
        return np.searchsorted(self.labels, self.sample.labels).astype(np.int64)

    def splits(self, cv: Any, name: str, rows: IntArray | slice = slice(None)) -> list[Split]:
        """Return pairs (train, test) of positions among some sampled series; see `make_splits`."""
        groups = self.sample.groups
        return make_splits(
            cv, self.codes[rows], self.sample.keys[rows], name=name,
            groups=None if groups is None else groups[rows],
            indices=self.indices[rows] if self.in_memory else None, n_series=self.n_series,
        )  # fmt: skip

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


class _Form(NamedTuple):
    """What all parts must have in common, as one of them has it."""

    part: str
    n_channels: int
    channel_names: tuple[str, ...] | None
    label: Any

    def check(self, other: _Form) -> None:
        """Raise an error if another part has other channels, or other types of labels."""
        if self[1:3] != other[1:3]:
            raise DataError(
                f"{other.part} has {other._channels()}, but {self.part} has {self._channels()}: "
                f"all parts must have the same channels."
            )
        if isinstance(self.label, str | bytes) != isinstance(other.label, str | bytes):
            text, number = (self, other) if isinstance(self.label, str | bytes) else (other, self)
            raise DataError(
                f"{text.part} has text labels, such as {text.label!r}, but {number.part} has "
                f"numbers, such as {number.label!r}: labels must be all text, or all numbers."
            )

    def _channels(self) -> str:
        names = f" ({', '.join(self.channel_names)})" if self.channel_names else ""
        return count(self.n_channels, "channel") + names


class _PartCounts(NamedTuple):
    n_series: int
    n_steps: int
    totals: dict[Any, float]
    digests: Digests
    form: _Form | None
    reservoir: Reservoir
    digests_of_shapes: Digests


class _DigestSample:
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
    reservoir, digests_of_shapes = Reservoir(size), _DigestSample()
    in_memory = isinstance(source, ArraySource)
    if not in_memory and source.n_bytes and not runner.is_remote:
        # Every thread holds what it reads.
        per_thread = READER_BYTES + _COPIES_IN_MEMORY * source.n_bytes / len(parts)
        at_once = _READING * size.n_bytes / per_thread
        runner = ThreadRunner(int(min(runner.n_workers, max(1.0, at_once))))
    form: _Form | None = None
    totals, offsets, n_steps = Counter[Any](), [0], 0
    results = runner.map(
        _count, parts, (size, seed, source.requires_unique_ids),
        lambda number: (number, reservoir.ceilings), progress=progress,
    )  # fmt: skip
    for found in results:
        form = form or found.form
        if form is not None and found.form is not None:
            form.check(found.form)
        totals.update(found.totals)
        offsets.append(offsets[-1] + found.n_series)
        n_steps += found.n_steps
        reservoir.merge(found.reservoir)
        repeated.add(found.digests)
        digests_of_shapes.add(found.digests_of_shapes)
    sample = reservoir.sample()
    if sample is None:
        raise no_series(source)
    repeated.check(parts)
    _warn_about_empty_channels(sample.series, is_sample=not reservoir.complete)
    if not in_memory:
        # Readers leave freed memory behind.
        release_memory()
    labels, weights = _sorted_totals(totals)
    if len(labels) < 2:
        raise DataError(
            f"{source.name} holds one class only, {labels.tolist()[0]!r}: a classifier needs at "
            f"least two classes."
        )
    given = source.classes if isinstance(source, ArraySource) else None
    classes = labels if given is None else given
    _warn_about_similar_classes(classes)
    return FirstPass(
        labels,
        classes,
        weights,
        np.array(offsets, dtype=np.int64),
        n_steps,
        sample,
        reservoir.complete,
        in_memory,
        # Their order must not tell the order of the series.
        np.sort(digests_of_shapes.take()[1]),
    )


def _warn_about_empty_channels(series: SeriesBatch, *, is_sample: bool) -> None:
    names = series.channel_names or tuple(map(str, range(series.n_channels)))
    missing = np.flatnonzero(np.isnan(series.values[0]))
    empty = [names[k] for k in missing if np.isnan(series.values[:, k]).all()]
    if empty:
        which = (
            f"channel {empty[0]} has" if len(empty) == 1 else f"channels {', '.join(empty)} have"
        )
        where = f"a sample of {len(series)} training series" if is_sample else "any training series"
        warn(f"{which} no value in {where}: leave out channels that were never measured")


def _warn_about_similar_classes(classes: AnyArray) -> None:
    """Warn about text that differs only in case or in spaces around it; a and A are two letters."""
    alike: dict[str, list[str]] = {}
    for name in classes.tolist():
        text = str(name).strip()
        alike.setdefault(text.casefold() if len(text) > 1 else text, []).append(repr(name))
    found = [" and ".join(names) for names in alike.values() if len(names) > 1]
    if found:
        warn(
            f"labels that differ only in case or spaces are different classes: "
            f"{list_first(found, _MOST_LISTED)}. If they are the same class, write them in the "
            f"same way"
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
    reservoir, digests_of_shapes = Reservoir(size, ceilings), _DigestSample()
    n_series = n_steps = 0
    digests: list[Digests] = []
    totals: dict[Any, float] = {}
    form: _Form | None = None
    for piece in pieces(part, labels=True):
        series, labels = piece.series, piece.labels
        assert labels is not None
        _check_labels(labels, part)
        weights = np.ones(len(series)) if piece.weights is None else piece.weights
        values = series_digests(series)
        keys, used = series_keys(values, seed), weights > 0.0
        parts, positions = np.full(len(keys), number), n_series + np.arange(len(keys))
        reservoir.add(Sample(keys, labels, weights, parts, positions, series, piece.groups))
        digests_of_shapes.add(np.stack([keys, values])[:, used])
        if requires_unique_ids:
            digests.append(digests_in(piece))
        names, which = np.unique(labels, return_inverse=True)
        sums = np.bincount(which.reshape(-1), weights=weights)
        for name, total in zip(names.tolist(), sums.tolist(), strict=True):
            totals[name] = totals.get(name, 0.0) + total
        n_series, n_steps = n_series + len(series), n_steps + series.n_steps
        if form is None and len(labels):
            example = labels.tolist()[0]
            form = _Form(part.name, series.n_channels, series.channel_names, example)
    reservoir.sample()
    return _PartCounts(
        n_series, n_steps, totals, join_digests(digests), form, reservoir, digests_of_shapes.take()
    )


def _sorted_totals(totals: Mapping[Any, float]) -> tuple[AnyArray, FloatArray]:
    """Return the sorted labels and their total weights."""
    labels, weights = np.array(list(totals)), np.array(list(totals.values()), dtype=np.float64)
    order = np.argsort(labels)
    labels, weights = labels[order], weights[order]
    if (weights <= 0.0).any():
        raise DataError(
            f"class {labels[int(np.argmin(weights))]} has no weight: every class needs a series "
            f"whose sample_weight is positive. Leave the class out instead."
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
