"""Scans in training and prediction: what is accepted, which workers read it, its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from slts.errors import DataError, warn
from slts.execution import DaskRunner, ThreadRunner, check_stopped, running_client
from slts.quantities import count
from slts.series.dataset import Dataset
from slts.series.source import Digests, Part, SeriesSource, identifier_digests
from slts.tables.times import same_step

# Series that are read at a time.
BATCH = 1024


def require_labels(scan: SeriesSource) -> None:
    """Raise an error for a table without a label column, before anything is read."""
    columns = scan.columns
    if columns is not None and columns.label is None:
        others = ", ".join(columns.ignored) or "none"
        raise DataError(
            f"{scan.name} has no labels: name their column, scan_series(..., label='...'). "
            f"Unused columns: {others}."
        )


def check_scan(scan: SeriesSource, expected: Sequence[str] | None, every: str | None) -> None:
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


def no_series(scan: SeriesSource) -> DataError:
    """Return the error for a scan without series."""
    return DataError(f"{scan.name} has no series.")


class RepeatedIdentifiers:
    """Finds series whose rows lie in two parts: they would be counted twice."""

    def __init__(self, scan: SeriesSource) -> None:
        self._requires_unique_ids = scan.requires_unique_ids
        self._digests: list[Digests] = []

    def add(self, digests: Digests) -> None:
        """Add the identifiers of the next part."""
        self._digests.append(digests if self._requires_unique_ids else digests[:0])

    def check(self, parts: Sequence[Part]) -> None:
        """Raise an error if a series begins in two parts."""
        digests = join_digests(self._digests)
        order = np.argsort(digests, kind="stable")
        repeated = np.flatnonzero(digests[order[1:]] == digests[order[:-1]])
        if not len(repeated):
            return
        ends = np.cumsum([len(of_part) for of_part in self._digests])
        pair = order[[repeated[0], repeated[0] + 1]]
        first, second = (int(k) for k in np.searchsorted(ends, pair, side="right"))
        raise DataError(
            f"Series {_identifier(parts[second], digests[pair[1]])} appears in both "
            f"{parts[first].name} and {parts[second].name}. All rows of a series must be "
            f"contiguous. Sort the data by series. In a Dask data frame, all rows of a series must "
            f"be in one partition: frame.shuffle(id).persist()."
        )


def digests_of_ids(piece: Dataset) -> Digests:
    """Return the digests of the identifiers of a piece; none where it has no identifiers."""
    return np.empty(0, np.uint64) if piece.ids is None else identifier_digests(piece.ids)


def join_digests(digests: Sequence[Digests]) -> Digests:
    """Concatenate digests; the sequence may be empty."""
    return np.concatenate([np.empty(0, np.uint64), *digests])


def _identifier(part: Part, digest: np.uint64) -> str:
    for piece in part.batches(labels=False, batch_size=BATCH):
        if piece.ids is not None:
            for k in np.flatnonzero(identifier_digests(piece.ids) == digest):
                return repr(piece.ids.tolist()[k])
    return "?"
