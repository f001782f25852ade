"""From a fitted model and data to a plain dict that JSON can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.estimators.base import SeriesClassifier
from slts.execution import progress_bar
from slts.report import figures
from slts.report.card import card
from slts.report.companions import Companions, Landmarks, Neighbours, companions_of
from slts.report.drawing import drawing_of
from slts.report.explorer import Explorer, choose_series
from slts.report.insight import looks_at
from slts.report.packing import pack, shorts
from slts.report.sample import Sample, ask
from slts.report.space import similarity_space
from slts.report.thinning import MOST_CHANNELS, MOST_STEPS, Bins, drawn_channels
from slts.series import SeriesBatch

# Series that importances are averaged over.
_MOST_AVERAGED = 1000


def collect(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    ids: Sequence[Any] | None = None,
    title: str | None = None,
    verbose: bool = False,
) -> dict[str, Any]:
    """Gather everything a report shows.

    Parameters
    ----------
    model
        A fitted classifier: one of slts, or a search or pipeline around one.
    X, y
        Series to report on, best held out from training, and their labels. Without X the report
        is about the model alone.
    ids
        Names of the series; None numbers them.
    title
        Heading; None makes one of the classifier's name.
    verbose
        Show a progress bar.

    Returns
    -------
    dict
        Strings, numbers, lists and dicts only. Arrays are packed, see `slts.report.packing`.
    """
    check_is_fitted(model)
    if X is None and not (y is None and ids is None):
        raise ValueError("The 'X' parameter is None: y and ids need the series they belong to.")
    inner = _inner(model)
    sample = None if X is None else ask(model, X, y, ids)
    n_channels = _n_channels(inner, sample)
    names = _channel_names(inner, sample, n_channels)
    averaged = _averaged(inner, sample)
    looks = looks_at(inner, averaged, names)
    drawing = drawing_of(
        inner, getattr(inner, "landmarks_", None) if sample is None else sample.batch
    )
    companions = companions_of(inner, drawing, averaged)
    rows = None if sample is None else drawing.rows(sample.batch)
    channels = _channels(looks["importance"], rows, companions, n_channels)
    n_classes = len(model.classes_)
    n_numbers = looks.pop("n_numbers") or _n_numbers(inner)
    explorer, kept = None, np.empty(0, dtype=np.int64)
    if sample is not None and rows is not None:
        kept, most_classes = choose_series(sample, len(channels), companions)
        explorer = Explorer(sample, rows, channels, companions, most_classes)
        with progress_bar("Explaining", show=verbose) as progress:
            for done, index in enumerate(kept.tolist(), start=1):
                explorer.add(index)
                if progress is not None:
                    progress(done, len(kept))
    certified = figures.certificate(model, sample)
    name = type(model).__name__
    return {
        "title": title or f"{name}: {n_classes} classes, {n_channels} channels",
        "model": {
            "name": name,
            "classes": [str(c) for c in model.classes_.tolist()],
            "problems": _problems(inner, n_classes),
            "channels": names,
            "drawn": channels.tolist(),
            "constant": getattr(getattr(inner, "row_map_", None), "constant", None) is not None,
            "drawn_as": drawing.note,
            "kind": None if companions is None else companions.kind,
        },
        "summary": {
            "n_series": None if sample is None else len(sample.batch),
            "n_classes": n_classes,
            "n_channels": n_channels,
            "accuracy": None if sample is None else figures.accuracy(sample),
            "n_landmarks": None if companions is None else len(companions.indices),
            "n_numbers": n_numbers,
        },
        "confusion": None if sample is None else figures.confusion(sample, n_classes),
        "certificate": certified,
        "looks": looks,
        "companions": _companions(companions, explorer, channels),
        "space": None if sample is None else similarity_space(inner, sample, kept),
        "explorer": None if explorer is None else explorer.content(),
        "data": None if sample is None else figures.data_summary(sample),
        "card": card(model, inner, sample, n_numbers),
        "limits": {"steps": MOST_STEPS, "channels": MOST_CHANNELS},
    }


def _inner(model: Any) -> Any:
    """The classifier inside a search. Inside a pipeline series look different, so it stays."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def _n_channels(model: Any, sample: Sample | None) -> int:
    if sample is not None:
        return sample.batch.n_channels
    return int(getattr(model, "n_channels_in_", getattr(model, "n_features_in_", 0)))


def _averaged(model: Any, sample: Sample | None) -> SeriesBatch | None:
    """Series to average importances over: the data, or an even choice of many."""
    if sample is None or not isinstance(model, SeriesClassifier):
        return None
    n = len(sample.batch)
    places = np.unique(np.linspace(0, n - 1, min(n, _MOST_AVERAGED)).astype(np.int64))
    return sample.batch[places]


def _channels(
    importance: Any, rows: SeriesBatch | None, companions: Companions | None, n_channels: int
) -> IntArray:
    """Channels to draw: the most important ones, or those that vary most."""
    if importance is not None:
        weight: FloatArray = np.asarray(importance).mean(axis=0)[:n_channels]
    else:
        drawn = rows if rows is not None else None if companions is None else companions.rows
        weight = np.ones(n_channels) if drawn is None else drawn.values.std(axis=0)[:n_channels]
    return drawn_channels(weight)


def _channel_names(model: Any, sample: Sample | None, n_channels: int) -> list[str]:
    names = None if sample is None else sample.batch.channel_names
    if names is None:
        names = getattr(model, "channel_names_in_", None)
    return [f"channel {k}" for k in range(n_channels)] if names is None else list(names)


def _problems(model: Any, n_classes: int) -> list[int]:
    """The class each decision value argues for."""
    if not hasattr(model, "linear_forms"):
        return []
    return [1] if n_classes == 2 else list(range(n_classes))


def _n_numbers(model: Any) -> int | None:
    stored = getattr(model, "training_rows_", None)
    if stored is None:
        return None
    return int(stored.values.size + getattr(model, "metric_", np.empty(0)).size)


def _companions(
    companions: Companions | None, explorer: Explorer | None, channels: IntArray
) -> dict[str, Any] | None:
    """Landmarks (heaviest first) or neighbours that the page draws, in the explorer's numbering."""
    if companions is None:
        return None
    named = {} if explorer is None else dict(explorer.named)
    gallery = companions.gallery() if isinstance(companions, Landmarks) else []
    for j in (j for row in gallery for j in row):
        named.setdefault(j, len(named))
    order = list(named)
    drawn, lengths = [], []
    for j in order:
        steps = companions.rows[j].T
        bins = Bins.of(len(steps))
        drawn.append(bins.sample(steps[:, channels]))
        lengths.append(len(steps))
    content: dict[str, Any] = {
        "index": companions.indices[order].tolist() if order else [],
        "length": lengths,
        "rows": pack(drawn, bits=16),
        "classes": None,
        "share": None,
        "gallery": None,
        "weighted": None,
    }
    if isinstance(companions, Landmarks):
        content["share"] = shorts(companions.share[:, order].T, 3) if order else []
        content["weighted"] = companions.weighted
        content["gallery"] = [
            {"used": int(np.count_nonzero(share)), "shown": [named[j] for j in row]}
            for share, row in zip(companions.share, gallery, strict=True)
        ]
    if isinstance(companions, Neighbours):
        content["classes"] = companions.classes[order].tolist() if order else []
    return content
