"""Scans as commands use them: with notes printed, labels converted, series held out.

Estimators and `slts.certify` use these attributes of a scan: `name`, `in_rows` and `parts`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from slts._typing import AnyArray
from slts.cli.terminal import CommandError, Messages
from slts.errors import DataError
from slts.files import Dataset
from slts.series.source import Digests, series_keys
from slts.training.splits import make_splits

_BATCH_SIZE = 1024
# A number with a decimal point, such as "1.0" or "-2.".
_DECIMAL = re.compile(r"[-+]?\d+\.\d*")


class MemoryScan:
    """Series in memory as a scan: standard input can be read only once."""

    in_rows = False

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.name, self.columns = dataset.source, dataset.columns
        self.channel_names = dataset.series.channel_names

    def __repr__(self) -> str:
        """Return a line with the name and the size of the series."""
        return f"MemoryScan({self.name}; {self.dataset.series!r})"

    def parts(self, *, labels: bool = True) -> list[MemoryScan]:
        """Cut the series into parts for several threads."""
        size = max(1, len(self.dataset) // 16)
        return [MemoryScan(batch) for batch in self.batches(labels=labels, batch_size=size)]

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        """Yield some series at a time."""
        for begin in range(0, len(self.dataset), batch_size):
            yield self.dataset[begin : begin + batch_size]

    def read(self) -> Dataset:
        """Return all series."""
        return self.dataset


class ReportedScan:
    """A scan that prints the notes of its readers, such as "steps were sorted", once each."""

    def __init__(self, scan: Any, messages: Messages) -> None:
        self.scan, self.messages = scan, messages
        self.name: str = scan.name
        self.in_rows: bool = scan.in_rows

    def parts(self, *, labels: bool = True) -> list[_ReportedPart]:
        """Return the parts, in order."""
        return [_ReportedPart(part, self) for part in self.scan.parts(labels=labels)]

    def read(self) -> Dataset:
        """Read all series into memory."""
        return self.changed(self.scan.read())

    def changed(self, batch: Dataset) -> Dataset:
        """Return a batch as this scan shows it."""
        for note in batch.notes:
            self.messages.say_once(f"{batch.source}: {note}")
        return batch


@dataclass(frozen=True)
class _ReportedPart:
    part: Any
    scan: ReportedScan

    @property
    def name(self) -> str:
        return str(self.part.name)

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        return map(self.scan.changed, self.part.batches(labels=labels, batch_size=batch_size))


class RelabelledScan(ReportedScan):
    """A scan whose labels are replaced by equal classes of a model, as "1" by the integer 1."""

    def __init__(self, scan: Any, messages: Messages, classes: AnyArray) -> None:
        super().__init__(scan, messages)
        self.classes = classes

    def changed(self, batch: Dataset) -> Dataset:
        """Return a batch with labels that are classes of the model."""
        batch = super().changed(batch)
        return batch if batch.labels is None else replace(batch, labels=self._match(batch))

    def _match(self, batch: Dataset) -> AnyArray:
        assert batch.labels is not None
        classes = self.classes.tolist()
        by_text = {str(name): name for name in classes}
        # 1.0 is the class 1, unless the model has both.
        counts = Counter(map(_without_fraction, classes))
        for name in classes:
            if counts[_without_fraction(name)] == 1:
                by_text.setdefault(_without_fraction(name), name)
        matched = []
        for position, label in enumerate(batch.labels.tolist()):
            text = str(label) if str(label) in by_text else _without_fraction(label)
            if text not in by_text:
                series = "" if batch.ids is None else f" of series {batch.ids[position].item()!r}"
                raise DataError(
                    f"{batch.source}: label {label!r}{series} is not a class of the model; its "
                    f"classes are {', '.join(map(str, classes))}"
                )
            matched.append(by_text[text])
        return np.array(matched, dtype=self.classes.dtype)


def _without_fraction(label: object) -> str:
    """Return a label as text, a whole number without point and zeros.

    Examples
    --------
    >>> from slts.cli.scans import _without_fraction
    >>> [_without_fraction(label) for label in (1.0, "-2.00", 1.5, "1.0.0")]
    ['1', '-2', '1.5', '1.0.0']
    """
    text = str(label)
    return re.sub(r"\.0*$", "", text) if _DECIMAL.fullmatch(text) else text


class SubsetScan:
    """Some series of a scan: those that `kept`, a mask for every part, selects."""

    def __init__(self, scan: ReportedScan, kept: Sequence[AnyArray]) -> None:
        self.scan, self.kept = scan, kept
        self.name, self.in_rows = scan.name, scan.in_rows

    def parts(self, *, labels: bool = True) -> list[_SubsetPart]:
        """Return the parts, in order; some may have no series."""
        parts = self.scan.parts(labels=labels)
        return [_SubsetPart(part, kept) for part, kept in zip(parts, self.kept, strict=True)]


@dataclass(frozen=True)
class _SubsetPart:
    part: Any
    kept: AnyArray

    @property
    def name(self) -> str:
        return str(self.part.name)

    def batches(self, *, labels: bool, batch_size: int) -> Iterator[Dataset]:
        begin = 0
        for batch in self.part.batches(labels=labels, batch_size=batch_size):
            kept = self.kept[begin : begin + len(batch)]
            begin += len(batch)
            if kept.any():
                yield replace(
                    batch,
                    series=batch.series[kept],
                    labels=None if batch.labels is None else batch.labels[kept],
                    ids=None if batch.ids is None else batch.ids[kept],
                )


class Labels(NamedTuple):
    """The labels of a scan.

    Attributes
    ----------
    by_part
        Labels of the series of every part.
    n_channels
        Number of channels of the series.
    keys
        Hashes of the seed and the series, by which series are drawn.
    """

    by_part: list[AnyArray]
    n_channels: int
    keys: Digests

    @property
    def all(self) -> AnyArray:
        """Labels of all series, in order."""
        # Without empty parts, whose type of labels is arbitrary.
        return np.concatenate([labels for labels in self.by_part if len(labels)])


def read_labels(scan: ReportedScan, seed: int = 0) -> Labels:
    """Read a scan once for its labels; raise an error if it has none."""
    by_part, keys, n_channels = [], list[Digests](), 0
    for part in scan.parts():
        labels = []
        for batch in part.batches(labels=True, batch_size=_BATCH_SIZE):
            if batch.labels is None:
                raise CommandError(f"{scan.name} has no labels")
            labels.append(batch.labels)
            keys.append(series_keys(batch.series, seed))
            n_channels = batch.series.n_channels
        by_part.append(np.concatenate(labels) if labels else np.empty(0))
    if n_channels == 0:
        raise CommandError(f"{scan.name} has no series")
    return Labels(by_part, n_channels, np.concatenate(keys))


def hold_out(scan: ReportedScan, labels: Labels, test_size: float) -> tuple[SubsetScan, SubsetScan]:
    """Split a scan at random, stratified by label.

    The split depends on the seed and the series, not on their order. The only series of a class is
    not held out.
    """
    truth = labels.all
    codes = np.unique(truth, return_inverse=True)[1]
    ((_, chosen),) = make_splits(test_size, codes, labels.keys, name="test_size")
    held_out = np.zeros(len(truth), dtype=bool)
    held_out[chosen] = True
    masks = np.split(held_out, np.cumsum([len(part) for part in labels.by_part])[:-1])
    return SubsetScan(scan, [~mask for mask in masks]), SubsetScan(scan, masks)
