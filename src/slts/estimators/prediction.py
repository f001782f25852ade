"""Apply a fitted classifier: checks of series, batches of them, scans part by part."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.errors import DataError, warn
from slts.execution import map_threads, one_blas_thread, progress_bar
from slts.features.feature_map import Resources
from slts.quantities import count, list_first
from slts.series import SeriesBatch, as_series
from slts.series.dataset import Part, SeriesScan
from slts.series.keys import Digests, digests_of_ids, join_digests
from slts.training.scans import (
    RepeatedIdentifiers,
    check_scan,
    no_series,
    pieces,
    require_labels,
    scan_runner,
)

# One row per series, from a model and some series that it has checked.
Method: TypeAlias = Callable[[Any, SeriesBatch], AnyArray]
# Series in memory that a thread takes at a time.
_SERIES = 64


def apply(model: Any, method: Method, X: Any) -> AnyArray:
    """Apply a method of a fitted model to series that it checks, or to a scan part by part."""
    if not isinstance(X, SeriesBatch) and isinstance(X, SeriesScan):
        results = [result for (result,) in _over_parts(model, X, (method,), labels=False)]
        if not results:
            raise no_series(X)
        return np.concatenate(results)
    series = check_series(model, X)
    if len(series) == 1:
        return method(model, series)
    # Products of a few series gain nothing from threads of BLAS, which spin between them.
    with one_blas_thread():
        return _apply_to_several(model, series, method)


def _apply_to_several(model: Any, series: SeriesBatch, method: Method) -> AnyArray:
    """Apply a method to some series at a time.

    How many does not depend on the number of threads, so results have the same bits. A GPU takes as
    many as the model allows.
    """
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
        if series.series_names is not None:
            raise
        # It names a series by its position in a part: raise it again for its name.
        named = series.named([f"series {number} of X" for number in range(len(series))])
        return np.concatenate(
            [method(quiet, named[k : k + size]) for k in range(0, len(named), size)]
        )


def _with_threads(model: Any, n_jobs: int | None) -> Any:
    """Return a quiet model with another number of threads."""
    quiet = copy.copy(model)
    quiet.n_jobs, quiet.verbose = n_jobs, False
    return quiet


def finite_decisions(model: Any, series: SeriesBatch) -> FloatArray:
    """Return decision values, or raise an error if a series is too large for the weights."""
    with np.errstate(over="ignore", invalid="ignore"):
        values: FloatArray = model.model_.decide(series, Resources(model.device, model.n_jobs))
    broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(broken):
        raise DataError(
            f"{series.name_of(broken[0], 'X')} has a decision value that is not finite: the "
            f"weights of this {type(model).__name__} or the values of the series are too large."
        )
    return values


# ---- series


def check_series(model: Any, X: Any) -> SeriesBatch:
    """Convert X and compare it with the training series of a model; order its channels."""
    columns, owner = columns_of_table(X), type(model).__name__
    if None not in (columns, model.n_columns_in_) and columns != model.n_columns_in_:
        raise DataError(
            f"X has {columns} features, but {owner} is expecting {model.n_columns_in_} features as "
            f"input: it was fitted on a table with that many columns. Pass series of other lengths "
            f"as a list: list(X)."
        )
    # A number of channels as in training is right.
    batch = as_series(X, layout="channels_first")
    if batch.n_channels != model.n_channels_in_:
        hint = ""
        if getattr(X, "ndim", 0) == 2 and len(X) == model.n_channels_in_:
            hint = " X is one series, not a collection: pass [x]."
        elif (batch.lengths == model.n_channels_in_).all():
            hint = " Is the layout time_first? Then use as_series(X, layout='time_first')."
        elif batch.channel_names is not None and model.channel_names_in_ is not None:
            hint = (
                f" Its channels are {list_first(batch.channel_names)}; those of the model are "
                f"{list_first(model.channel_names_in_)}."
            )
        raise DataError(
            f"X has {count(batch.n_channels, 'channel')}, but {owner} was fitted on "
            f"{model.n_channels_in_}.{hint}"
        )
    if None in (model.channel_names_in_, batch.channel_names):
        return batch
    return _in_training_order(batch, model.channel_names_in_, owner)


def _in_training_order(batch: SeriesBatch, expected: tuple[str, ...], owner: str) -> SeriesBatch:
    """Order channels by name. Entirely different names are taken by position; this warns."""
    names = batch.channel_names
    if names is None or names == expected:
        return batch
    differ = f"X has channels {list_first(names)}, but {owner} was fitted on {list_first(expected)}"
    if set(expected).isdisjoint(names):
        warn(f"{differ}: the channels of X are used in the given order")
        return batch
    absent = [name for name in expected if name not in names]
    if absent:
        raise DataError(f"{differ}: X has no {absent[0]!r}.")
    values = np.ascontiguousarray(batch.values[:, [names.index(name) for name in expected]])
    return batch.with_values(values, expected)


def columns_of_table(X: Any) -> int | None:
    """Return the number of columns if X is a table of numbers, else None.

    A table has a fixed number of columns; scikit-learn's users expect an error when it changes.
    """
    shape = getattr(X, "shape", None)
    if shape is not None and not isinstance(X, SeriesBatch):
        return int(shape[1]) if len(shape) == 2 else None
    if isinstance(X, list | tuple) and X and all(isinstance(row, list | tuple) for row in X):
        widths = {len(row) for row in X}
        if len(widths) == 1 and all(np.ndim(row[0]) == 0 for row in X if row):
            return widths.pop()
    return None


# ---- scans


def apply_with_labels(
    model: Any, source: SeriesScan, *methods: Method
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
    model: Any, source: SeriesScan, methods: tuple[Method, ...], *, labels: bool
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
        series = check_series(model, piece.series)
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
