"""Collect the content of a report: a plain dict that JSON can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slts.estimators.base import SeriesClassifier
from slts.estimators.linear import LinearClassifier
from slts.estimators.neighbours import NearestNeighbor
from slts.execution import progress_bar
from slts.guarantees.held_out import required_inner_model
from slts.quantities import count
from slts.report.card import card
from slts.report.explorer import choose_series, explain_series, most_explained, similarity_space
from slts.report.landmarks import Landmarks
from slts.report.packing import MOST_STEPS
from slts.report.predictions import (
    Predictions,
    accuracy,
    certificate,
    confusion,
    missing_values,
    predict_series,
    set_sizes,
)
from slts.report.references import Neighbours, References
from slts.series import SeriesBatch

# What a report without series does not have.
_OF_SERIES = ("confusion", "sets", "space", "explorer", "predicted")


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
    # Of a pipeline, the last step is described, and the series as it sees them.
    classifier, X = required_inner_model(model, X)
    predictions = None if X is None else predict_series(classifier, X, y, ids, groups)
    batch = None if predictions is None else predictions.batch
    channel_names = _channel_names(classifier, batch)
    references: References
    if isinstance(classifier, LinearClassifier):
        references = Landmarks(classifier, batch, channel_names)
    else:
        assert isinstance(classifier, NearestNeighbor)
        references = Neighbours(classifier, channel_names)
    features, of_series = None, dict.fromkeys(_OF_SERIES)
    if predictions is not None:
        features, of_series = _of_series(predictions, references, channel_names, verbose)
    rows = references.row_map
    name, classes = type(model).__name__, list(map(str, classifier.classes_.tolist()))
    # After the explorer, which numbers references and snippets too.
    snippets = None if references.snippets is None else references.snippets.content(predictions)
    return {
        "title": title or f"{name}: {len(classes)} classes, {count(len(channel_names), 'channel')}",
        "model": {
            "name": name,
            "classes": classes,
            # The class that each decision value supports.
            "decision_classes": [1] if len(classes) == 2 else list(range(len(classes))),
            "channels": channel_names,
        },
        "labels": classes if predictions is None else predictions.label_names,
        "drawing": {
            "channels": references.channels.tolist(),
            "most_steps": MOST_STEPS,
            "as_aligned": rows is not None,
            "unit_steps": rows is not None and rows.normalize,
            "amplitude": rows is None or not rows.normalize or rows.constant is not None,
        },
        "summary": {
            "n_series": None if batch is None else len(batch),
            "n_seen": 0 if predictions is None else predictions.n_seen,
            "grouped": groups is not None,
            "accuracy": None if predictions is None else accuracy(predictions),
            "n_references": len(references.indices),
            "n_snippets": None if snippets is None else snippets["n_snippets"],
            "n_numbers": references.n_numbers,
        },
        **of_series,
        "certificate": certificate(predictions),
        "importance": references.importance,
        "references": references.content(features),
        "snippets": snippets,
        "card": card(model, references, predictions),
    }


def _of_series(
    predictions: Predictions, references: References, names: list[str], verbose: bool
) -> tuple[Any, dict[str, Any]]:
    """Features of the series that are points, and the parts about series."""
    most = most_explained(predictions, references)
    explained, others = choose_series(predictions.wrong, len(predictions.batch), most)
    shown = np.append(explained, others)
    features = predictions.model.features(predictions.batch[shown])
    entries, lengths, n_labels = [], predictions.batch.lengths, len(predictions.label_names)
    with progress_bar("Explaining", show=verbose) as progress:
        for k, index in enumerate(explained.tolist()):
            entries.append(explain_series(predictions, references, index, features[k]))
            progress(k + 1, len(explained))
    return features, {
        "confusion": confusion(predictions),
        "sets": set_sizes(predictions, entries),
        "space": similarity_space(predictions, shown, features, references),
        "explorer": {
            "n_series": len(predictions.batch),
            "n_wrong": len(predictions.wrong),
            "labelled": predictions.truth is not None,
            "lengths": [int(lengths.min()), int(lengths.max())],
            "missing": missing_values(predictions.batch, names),
            "entries": entries,
        },
        "predicted": np.bincount(predictions.predicted, minlength=n_labels).tolist(),
    }


def _channel_names(model: SeriesClassifier, batch: SeriesBatch | None) -> list[str]:
    names = (None if batch is None else batch.channel_names) or model.channel_names_in_
    return list(names or (f"channel {k}" for k in range(model.n_channels_in_)))
