"""Collect the content of a report: a plain dict that JSON can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.estimators.linear import LinearClassifier
from slts.execution import progress_bar
from slts.features.summary import ModelSummary, even_choice, summarize
from slts.quantities import count
from slts.report.card import card
from slts.report.explorer import Explorer, choose_series, points_to_show, similarity_space
from slts.report.importance import importance, shares
from slts.report.packing import MOST_STEPS
from slts.report.predictions import (
    Predictions,
    accuracy,
    certificate,
    confusion,
    data_summary,
    predict_series,
)
from slts.report.references import References, drawing_of, references_of
from slts.report.sets import sets_content
from slts.report.snippets import DrawnSnippets
from slts.series import SeriesBatch

# Series that importances are averaged over.
_MOST_AVERAGED = 1000
# More channels are not legible in a picture.
MOST_CHANNELS = 24
# Parts about series.
_OF_SERIES = ("confusion", "sets", "space", "explorer", "data")


def collect(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    ids: Sequence[Any] | None = None,
    groups: Any = None,
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
    groups
        Group of each series, such as a person, if groups are the independent draws.
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
    if X is None and not (y is None and ids is None and groups is None):
        raise ValueError(
            "The 'X' parameter is None, but y, ids or groups are given. Pass their series."
        )
    # The classifier in a search. A pipeline stays: its steps can change the series.
    inner = model
    while hasattr(inner, "best_estimator_"):
        inner = inner.best_estimator_
    predictions = None if X is None else predict_series(inner, X, y, ids, groups)
    batch = None if predictions is None else predictions.batch
    channel_names = _channel_names(inner, batch)
    summary = snippets = None
    if isinstance(inner, LinearClassifier):
        summary = _summary(inner, batch)
        snippets = DrawnSnippets(inner) if inner.model_.snippets is not None else None
    draw, note = drawing_of(inner, batch)
    references = references_of(inner, draw)
    rows = None if batch is None else draw(batch)
    channels = _drawn_channels(summary, rows, references, len(channel_names))
    name, classes = type(model).__name__, [str(c) for c in model.classes_.tolist()]
    # What a report without series does not have.
    similarities, of_series = None, dict.fromkeys(_OF_SERIES)
    if predictions is not None and rows is not None:
        kept, most_classes = choose_series(predictions, len(channels), references, snippets)
        explorer = Explorer(predictions, rows, channels, references, snippets, most_classes)
        similarities, of_series["space"] = _space(predictions, kept, references)
        _explain(explorer, kept, similarities, verbose=verbose)
        of_series |= {
            "confusion": confusion(predictions, len(classes)),
            "sets": sets_content(inner, predictions, explorer.entries),
            "explorer": explorer.content(),
            "data": data_summary(predictions),
        }
    figures = _figures(predictions, references, snippets)
    figures |= {"n_classes": len(classes), "n_channels": len(channel_names)}
    n_decisions = 0 if summary is None else len(summary.classes)
    return {
        "title": title or f"{name}: {len(classes)} classes, {count(len(channel_names), 'channel')}",
        "model": {
            "name": name,
            "classes": classes,
            # The class that each decision value supports.
            "decision_classes": [1] if n_decisions == 1 else list(range(n_decisions)),
            "channels": channel_names,
        },
        "labels": classes if predictions is None else predictions.label_names,
        "drawing": {"channels": channels.tolist(), "most_steps": MOST_STEPS, "note": note},
        "summary": figures,
        **of_series,
        "certificate": certificate(model, predictions),
        "importance": importance(inner, summary, channel_names),
        # After the explorer, which numbers references and snippets too.
        "references": None if references is None else references.content(similarities, channels),
        "snippets": None if snippets is None else snippets.content(predictions),
        "card": card(model, inner, predictions, figures["n_numbers"]),
    }


def _space(
    predictions: Predictions, kept: IntArray, references: References | None
) -> tuple[FloatArray | None, dict[str, Any] | None]:
    """Similarities of the series that are points, those of the explorer first, and the points."""
    if references is None:
        return None, None
    shown = points_to_show(len(predictions.batch), kept)
    similarities = references.similarities(predictions.batch[shown])
    return similarities, similarity_space(predictions, shown, similarities, references)


def _explain(
    explorer: Explorer, kept: IntArray, similarities: FloatArray | None, *, verbose: bool
) -> None:
    """Explain the series of the explorer."""
    with progress_bar("Explaining", show=verbose) as progress:
        for k, index in enumerate(kept.tolist()):
            explorer.add(index, None if similarities is None else similarities[k])
            progress(k + 1, len(kept))


def _figures(
    predictions: Predictions | None, references: References | None, snippets: DrawnSnippets | None
) -> dict[str, Any]:
    """Numbers of series, references, snippets and stored numbers, and the accuracy."""
    return {
        "n_series": None if predictions is None else len(predictions.batch),
        "n_seen": None if predictions is None else predictions.n_seen,
        "accuracy": None if predictions is None else accuracy(predictions),
        "n_references": None if references is None else len(references.indices),
        "n_snippets": None if snippets is None else len(snippets.snippets),
        "n_numbers": None if references is None else references.n_numbers,
    }


def _channel_names(model: Any, batch: SeriesBatch | None) -> list[str]:
    names = None if batch is None else batch.channel_names
    names = names or getattr(model, "channel_names_in_", None)
    if names is not None:
        return list(names)
    n_trained = getattr(model, "n_channels_in_", getattr(model, "n_features_in_", 0))
    return [f"channel {k}" for k in range(n_trained if batch is None else batch.n_channels)]


def _summary(model: LinearClassifier, batch: SeriesBatch | None) -> ModelSummary:
    """Summary over the series, or over an even selection of many."""
    if batch is not None:
        batch = batch[even_choice(len(batch), _MOST_AVERAGED)]
    return summarize(model, batch, n_jobs=model.n_jobs)


def _drawn_channels(
    summary: ModelSummary | None,
    rows: SeriesBatch | None,
    references: References | None,
    n_channels: int,
) -> IntArray:
    """The most important channels, or those with the largest standard deviation, in order."""
    if summary is not None:
        weight: FloatArray = shares(summary.channel_importance).mean(axis=0)
    else:
        drawn = references.rows if rows is None and references is not None else rows
        weight = np.ones(n_channels) if drawn is None else drawn.values.std(axis=0)
    return np.sort(np.argsort(-weight[:n_channels], kind="stable")[:MOST_CHANNELS])
