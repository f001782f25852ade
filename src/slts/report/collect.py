"""Collect the content of a report: a plain dict that JSON can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.execution import progress_bar
from slts.explanation import ModelSummary, even_choice, summarize
from slts.plural import count
from slts.report.card import card
from slts.report.downsampling import MOST_CHANNELS, MOST_STEPS, drawn_channels
from slts.report.explorer import Explorer, choose_series, points_to_show, similarity_space
from slts.report.importance import importance, shares
from slts.report.predictions import (
    Predictions,
    accuracy,
    certificate,
    confusion,
    data_summary,
    predict_series,
)
from slts.report.references import References, drawing_of, references_content, references_of
from slts.report.sets import add_sets, sets_content, sets_of
from slts.report.snippets import DrawnSnippets, snippets_of
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
    """Collect the content of a report.

    Parameters
    ----------
    model
        A fitted slts classifier, or a search or pipeline that contains one.
    X, y
        Series for the report, preferably not used in training, and their labels. Without X the
        report describes the model only.
    ids
        Identifiers of the series; None takes the names that X has, or numbers them.
    title
        Title; None uses the name of the classifier.
    verbose
        Show a progress bar.

    Returns
    -------
    dict
        Strings, numbers, lists and dicts only. Arrays are packed, see `slts.report.packing`.
    """
    check_is_fitted(model)
    if X is None and not (y is None and ids is None):
        raise ValueError("The 'X' parameter is None, but y or ids are given. Pass their series.")
    # The classifier in a search. A pipeline stays: its steps can change the series.
    inner = model
    while hasattr(inner, "best_estimator_"):
        inner = inner.best_estimator_
    predictions = None if X is None else predict_series(inner, X, y, ids)
    batch = None if predictions is None else predictions.batch
    n_channels = _n_channels(inner, batch)
    names = _channel_names(inner, batch, n_channels)
    summary = _summary(inner, batch)
    draw, note = drawing_of(inner, getattr(inner, "landmarks_", None) if batch is None else batch)
    references, snippets = references_of(inner, draw), snippets_of(inner)
    rows = None if batch is None else draw(batch)
    channels = _drawn_channels(summary, rows, references, n_channels)
    explorer = space = similarities = None
    if predictions is not None and rows is not None:
        explorer, similarities, space = _explore(
            predictions, rows, channels, references, snippets, verbose
        )
    sets = sets_of(inner, predictions)
    add_sets([] if explorer is None else explorer.entries, sets)
    name, classes = type(model).__name__, [str(c) for c in model.classes_.tolist()]
    n_numbers = _n_numbers(inner, summary)
    n_decisions = 0 if summary is None else len(summary.classes)
    return {
        "title": title or f"{name}: {len(classes)} classes, {count(n_channels, 'channel')}",
        "model": {
            "name": name,
            "classes": classes,
            # The class that each decision value supports.
            "decision_classes": [1] if n_decisions == 1 else list(range(n_decisions)),
            "channels": names,
        },
        "labels": classes if predictions is None else predictions.label_names,
        "drawing": {
            "channels": channels.tolist(),
            "most_steps": MOST_STEPS,
            "most_channels": MOST_CHANNELS,
            "note": note,
        },
        "summary": {
            "n_series": None if batch is None else len(batch),
            "n_classes": len(classes),
            "n_channels": n_channels,
            "n_seen": None if predictions is None else predictions.n_seen,
            "accuracy": None if predictions is None else accuracy(predictions),
            "n_references": None if references is None else len(references.indices),
            "n_snippets": None if snippets is None else len(snippets.form.snippets),
            "n_numbers": n_numbers,
        },
        "confusion": None if predictions is None else confusion(predictions, len(classes)),
        "certificate": certificate(model, predictions),
        "sets": sets_content(inner, predictions, sets),
        "importance": importance(inner, summary, names),
        "references": None
        if references is None
        else references_content(
            references, [] if explorer is None else list(explorer.named), similarities, channels
        ),
        # After the explorer, which names snippets too.
        "snippets": None if snippets is None else snippets.content(predictions),
        "space": space,
        "explorer": None if explorer is None else explorer.content(),
        "data": None if predictions is None else data_summary(predictions),
        "card": card(model, inner, predictions, n_numbers),
    }


def _explore(
    predictions: Predictions,
    rows: SeriesBatch,
    channels: IntArray,
    references: References | None,
    snippets: DrawnSnippets | None,
    verbose: bool,
) -> tuple[Explorer, FloatArray | None, dict[str, Any] | None]:
    """The explorer, the similarities of the series to the references, and the similarity space."""
    kept, most_classes = choose_series(predictions, len(channels), references, snippets)
    similarities = space = None
    if references is not None:
        # The series of the explorer come first.
        shown = points_to_show(len(predictions.batch), kept)
        similarities = references.similarities(predictions.batch[shown])
        space = similarity_space(predictions, shown, similarities, references)
    explorer = Explorer(predictions, rows, channels, references, snippets, most_classes)
    with progress_bar("Explaining", show=verbose) as progress:
        for k, index in enumerate(kept.tolist()):
            explorer.add(index, None if similarities is None else similarities[k])
            progress(k + 1, len(kept))
    return explorer, similarities, space


def _n_channels(model: Any, batch: SeriesBatch | None) -> int:
    if batch is not None:
        return batch.n_channels
    return int(getattr(model, "n_channels_in_", getattr(model, "n_features_in_", 0)))


def _channel_names(model: Any, batch: SeriesBatch | None, n_channels: int) -> list[str]:
    names = None if batch is None else batch.channel_names
    names = names or getattr(model, "channel_names_in_", None)
    return [f"channel {k}" for k in range(n_channels)] if names is None else list(names)


def _summary(model: Any, batch: SeriesBatch | None) -> ModelSummary | None:
    """Summary over the series, or over an even selection of many; None for other models."""
    if not hasattr(model, "linear_forms"):
        return None
    if batch is not None:
        batch = batch[even_choice(len(batch), _MOST_AVERAGED)]
    return summarize(model, batch, n_jobs=model.n_jobs)


def _drawn_channels(
    summary: ModelSummary | None,
    rows: SeriesBatch | None,
    references: References | None,
    n_channels: int,
) -> IntArray:
    """The most important channels, or those with the largest standard deviation."""
    if summary is not None:
        weight: FloatArray = shares(summary.channel_importance).mean(axis=0)
    else:
        drawn = references.rows if rows is None and references is not None else rows
        weight = np.ones(n_channels) if drawn is None else drawn.values.std(axis=0)
    return drawn_channels(weight[:n_channels])


def _n_numbers(model: Any, summary: ModelSummary | None) -> int | None:
    """Numbers that the model stores; None if unknown."""
    if summary is not None:
        return summary.n_numbers
    stored = getattr(model, "training_rows_", None)
    return None if stored is None else stored.values.size + np.size(getattr(model, "metric_", ()))
