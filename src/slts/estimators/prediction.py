"""Apply a fitted classifier to series in memory or to a source, part by part."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from slts._typing import AnyArray
from slts.errors import DataError
from slts.execution import map_threads, one_blas_thread, progress_bar
from slts.series import SeriesBatch
from slts.series.source import Digests, Part, SeriesSource
from slts.training.scans import (
    RepeatedIdentifiers,
    check_scan,
    digests_of_ids,
    join_digests,
    no_series,
    pieces,
    require_labels,
    scan_runner,
)

# One row per series, from a model and some series that it has checked.
Method: TypeAlias = Callable[[Any, SeriesBatch], AnyArray]
# Series in memory that a thread takes at a time.
_SERIES = 64


def apply_to_series(model: Any, series: SeriesBatch, method: Method) -> AnyArray:
    """Return the results of a model's method for checked series.

    Threads take some series at a time. How many does not depend on the number of threads, so that
    this does not change a bit. A GPU takes as many as the model allows.
    """
    if len(series) == 1:
        return method(model, series)
    # Products of a few series gain nothing from threads of BLAS, which spin between them.
    with one_blas_thread():
        return _apply_to_several(model, series, method)


def _apply_to_several(model: Any, series: SeriesBatch, method: Method) -> AnyArray:
    on_cpu = model.device == "cpu"
    size = _SERIES if on_cpu else model._series_at_once or len(series)
    if len(series) <= size:
        return method(model, series)
    parts = [series[begin : begin + size] for begin in range(0, len(series), size)]
    quiet = _with_threads(model, 1 if on_cpu else model.n_jobs)
    try:
        with progress_bar("Aligning", show=bool(model.verbose)) as progress:
            n_jobs = model.n_jobs if on_cpu else 1
            results = map_threads(
                lambda part: method(quiet, part), parts, n_jobs=n_jobs, progress=progress
            )
            return np.concatenate(results)
    except DataError:
        # It names a series by its position in a part: raise it again for all series.
        return method(model, series)


def _with_threads(model: Any, n_jobs: int | None) -> Any:
    """Return a quiet model with another number of threads."""
    quiet = copy.copy(model)
    quiet.n_jobs, quiet.verbose = n_jobs, False
    return quiet


def apply_to_source(model: Any, source: SeriesSource, method: Method) -> AnyArray:
    """Return the results of a model's method for all series, in order."""
    results = [result for (result,) in _over_parts(model, source, (method,), labels=False)]
    if not results:
        raise no_series(source)
    return np.concatenate(results)


def apply_with_labels(
    model: Any, source: SeriesSource, *methods: Method
) -> tuple[list[AnyArray], AnyArray, AnyArray | None]:
    """Return the results of some methods, labels and groups of all series, from one pass."""
    require_labels(source)
    by_part = list(_over_parts(model, source, methods, labels=True))
    if not by_part:
        raise no_series(source)
    joined = [np.concatenate(results) for results in zip(*by_part, strict=True)]
    n = len(methods)
    return joined[:n], joined[n], joined[n + 1] if len(joined) > n + 1 else None


def _over_parts(
    model: Any, source: SeriesSource, methods: tuple[Method, ...], *, labels: bool
) -> Iterator[list[AnyArray]]:
    """Yield results, and labels and groups if they are wanted, of every part that has series."""
    check_scan(source, model.channel_names_in_, model.every_)
    parts, repeated = source.parts(labels=labels), RepeatedIdentifiers(source)
    # Parts run in threads, so each uses one; a single part uses all threads itself.
    quiet = _with_threads(model, 1 if len(parts) > 1 else model.n_jobs)
    shared = (quiet, methods, labels, source.requires_unique_ids)
    with (
        one_blas_thread(),
        progress_bar("Reading and aligning", show=bool(model.verbose)) as progress,
    ):
        runner = scan_runner(model.n_jobs)
        for results, digests in runner.map(_apply, parts, shared, progress=progress):
            repeated.add(digests)
            if results:
                yield results
    repeated.check(parts)


def _apply(
    part: Part, shared: tuple[Any, tuple[Method, ...], bool, bool], _: None
) -> tuple[list[AnyArray], Digests]:
    model, methods, labels, requires_unique_ids = shared
    rows: list[list[AnyArray]] = []
    digests = []
    first = 0
    for piece in pieces(part, labels=labels):
        series = model.check_series(piece.series)
        try:
            rows.append([method(model, series) for method in methods])
        except DataError:
            if series.series_names is not None:
                raise
            # It names a series by its position in the batch: raise it again for its name.
            numbers = range(first, first + len(series))
            series = series.named([f"series {number} of {part.name}" for number in numbers])
            rows.append([method(model, series) for method in methods])
        first += len(series)
        if requires_unique_ids:
            digests.append(digests_of_ids(piece))
        if labels:
            assert piece.labels is not None
            rows[-1] += [piece.labels] if piece.groups is None else [piece.labels, piece.groups]
    return [np.concatenate(results) for results in zip(*rows, strict=True)], join_digests(digests)
