"""The first pass over a stream: how many series of which classes, and a sample of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.streams import (
    Identifiers,
    digests_in,
    empty,
    joined_digests,
    pieces_of,
    require_labels,
)
from slts.execution import Mapper, Progress, give_back_memory
from slts.landmarks.reservoir import Ceilings, Reservoir, Sample, SampleSize, sampling_keys
from slts.series.stream import Digests, Part, SeriesStream, digests_of

# Series without identifiers are numbered part by part, so many for each.
_PART_NUMBERS = 1 << 40
_NONE = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Survey:
    """What one pass over a stream tells.

    Attributes
    ----------
    classes, counts
        Labels, sorted, and how many series have each.
    offsets
        Number of the first series of every part, and of all series.
    n_steps
        Steps of all series together.
    sample
        Series that were drawn.
    """

    classes: AnyArray
    counts: IntArray
    offsets: IntArray
    n_steps: int
    sample: Sample

    @property
    def n_series(self) -> int:
        """Number of series."""
        return int(self.offsets[-1])

    @property
    def sample_indices(self) -> IntArray:
        """Numbers of the sampled series in the whole stream."""
        return np.asarray(self.offsets[self.sample.parts] + self.sample.positions)

    @property
    def sample_codes(self) -> IntArray:
        """Classes of the sampled series, 0 and up."""
        return np.searchsorted(self.classes, self.sample.labels).astype(np.int64)

    def importance(self, codes: IntArray) -> FloatArray | None:
        """How many series each of some stands for, mean 1; None if classes are as in the whole.

        A sample may have more of rare classes than their share.
        """
        own = np.bincount(codes, minlength=len(self.classes)) / len(codes)
        share = self.counts / self.n_series
        if np.array_equal(own, share):
            return None
        weights = (share / np.where(own > 0.0, own, 1.0))[codes]
        return np.asarray(weights / weights.mean())


@dataclass(frozen=True)
class _PartSurvey:
    n_series: int
    n_steps: int
    labels: AnyArray
    counts: IntArray
    digests: Digests
    channels: tuple[int, tuple[str, ...] | None] | None
    reservoir: Reservoir


def survey(
    stream: SeriesStream,
    mapper: Mapper,
    size: SampleSize,
    *,
    seed: int,
    progress: Progress | None = None,
) -> Survey:
    """Read all series once, count them and draw a sample."""
    require_labels(stream)
    parts, seen = stream.parts(), Identifiers(stream)
    reservoir = Reservoir(size)
    found: list[_PartSurvey] = []
    results = mapper.map(
        _look, parts, (size, seed, stream.in_rows),
        lambda number: (number, reservoir.ceilings), progress=progress,
    )  # fmt: skip
    for result in results:
        _check_channels(found, result, parts)
        reservoir.merge(result.reservoir)
        seen.add(result.digests)
        # Their series and identifiers are elsewhere now.
        found.append(replace(result, reservoir=Reservoir(size), digests=_NONE))
    sample = reservoir.sample()
    if sample is None:
        raise empty(stream)
    seen.check(parts)
    give_back_memory()
    labels = [part.labels for part in found if len(part.labels)]
    kinds = {
        part.labels.dtype.kind in "US": (parts[k].name, part.labels.tolist()[0])
        for k, part in enumerate(found)
        if len(part.labels)
    }
    if len(kinds) > 1:
        (one, text), (other, number) = kinds[True], kinds[False]
        raise DataError(
            f"{one} has labels that are text, such as {text!r}, and {other} has numbers, such as "
            f"{number!r}: labels must be all text, or all numbers."
        )
    classes, which = np.unique(np.concatenate(labels), return_inverse=True)
    weights = np.concatenate([part.counts for part in found if len(part.labels)])
    counts = np.bincount(which, weights=weights).astype(np.int64)
    if len(classes) < 2:
        raise DataError(
            f"{stream.name} holds one class only, {classes.tolist()[0]!r}: a classifier needs at "
            f"least two classes."
        )
    return Survey(
        classes,
        counts,
        np.cumsum([0, *(part.n_series for part in found)], dtype=np.int64),
        sum(part.n_steps for part in found),
        sample,
    )


def _look(
    part: Part, common: tuple[SampleSize, int, bool], own: tuple[int, Ceilings]
) -> _PartSurvey:
    size, seed, in_rows = common
    number, ceilings = own
    reservoir = Reservoir(size, ceilings)
    n_series = n_steps = 0
    digests: list[Digests] = []
    labels: list[AnyArray] = []
    channels: Any = None
    for piece in pieces_of(part, labels=True):
        series, n = piece.series, len(piece.series)
        found = digests_in(piece) if in_rows else _NONE
        if not len(found):
            # Identifiers that may come back, or none, do not tell series apart: places do.
            found = digests_of(np.arange(n_series, n_series + n) + number * _PART_NUMBERS)
        assert piece.labels is not None
        _check_labels(piece.labels, part)
        keys = sampling_keys(found, seed)
        reservoir.add(keys, piece.labels, number, n_series, series)
        digests.append(found)
        labels.append(piece.labels)
        n_series, n_steps = n_series + n, n_steps + series.n_steps
        channels = channels or (series.n_channels, series.channel_names)
    names, counts = np.unique(np.concatenate(labels or [np.empty(0)]), return_counts=True)
    reservoir.sample()
    return _PartSurvey(
        n_series, n_steps, names, counts, joined_digests(digests if in_rows else []),
        channels, reservoir,
    )  # fmt: skip


def _check_labels(labels: AnyArray, part: Part) -> None:
    """Labels are sorted and compared: text, whole numbers or booleans, none of them missing."""
    if labels.dtype.kind not in "biufUS":
        types = sorted({type(label).__name__ for label in labels.tolist()})
        raise DataError(
            f"{part.name} has labels of type {', '.join(types)}: store them as text, integers or "
            f"booleans, none of them missing."
        )
    if labels.dtype.kind != "f":
        return
    if np.isnan(labels).any():
        raise DataError(f"{part.name} has a label that is missing.")
    broken = labels != np.trunc(labels)
    if broken.any():
        raise DataError(
            f"{part.name} has the label {labels[broken][0]}: numbers with fractions are no "
            f"classes. Bin them, or is another column meant?"
        )


def _check_channels(found: Sequence[_PartSurvey], new: _PartSurvey, parts: Sequence[Part]) -> None:
    """Refuse a part with other channels than the first that has series."""
    first = next((k for k, part in enumerate(found) if part.channels is not None), None)
    if first is None or new.channels is None or new.channels == found[first].channels:
        return
    raise DataError(
        f"{parts[len(found)].name} has {_in_words(new.channels)}, and {parts[first].name} has "
        f"{_in_words(found[first].channels)}: all parts must have the same channels."
    )


def _in_words(channels: tuple[int, tuple[str, ...] | None] | None) -> str:
    assert channels is not None
    count, names = channels
    return f"{count} channels" + (f" ({', '.join(names)})" if names else "")
