"""Collect the content of a report: a plain dict that JSON can hold."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import joblib
import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from slts import __version__
from slts._typing import FloatArray, IntArray
from slts.estimators.base import SeriesClassifier
from slts.estimators.linear import LinearClassifier
from slts.estimators.neighbours import NearestNeighbor
from slts.execution import progress_bar
from slts.guarantees.held_out import required_inner_model
from slts.quantities import count
from slts.report.packing import MOST_STEPS, Bins, clock, pack, rounded
from slts.report.predictions import (
    Predictions,
    accuracy,
    certificate,
    confusion,
    missing_values,
    predict_series,
    set_sizes,
    without_channels,
)
from slts.report.references import STRONGEST, Landmarks, References, TrainingSeries
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
        references = TrainingSeries(classifier, channel_names)
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
        "without_channels": without_channels(predictions),
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


# ---- the explorer: explanations of single series, and series as points


# Points in similarity space: series and landmarks.
MOST_POINTS, _MOST_RINGS = 1500, 240
# Classes explained for one series: the predicted, the true and those with the next best scores.
MOST_CLASSES = 12
# Limits of the explorer: series, bytes, and pairs of steps that are aligned in about ten seconds.
# The fewest series are explained in any case.
MOST_SERIES, MOST_BYTES, MOST_CELLS, FEWEST_SERIES = 500, 4_000_000, 3e9, 50
# Size of a series or of a class without its arrays.
_BASE_BYTES = 450


def choose_series(wrong: IntArray, n_series: int, most: int) -> tuple[IntArray, IntArray]:
    """Series to explain, and others to draw as points.

    Parameters
    ----------
    wrong
        Indices of misclassified series, which are explained first.
    n_series, most
        Number of series, and largest number that is explained.

    Returns
    -------
    explained : ndarray
        Misclassified series, then others, each in increasing order: a random choice.
    others : ndarray
        A random choice of the other series.
    """
    rng = np.random.default_rng(0)
    right = np.setdiff1d(np.arange(n_series), wrong)
    order = np.concatenate([rng.permutation(wrong), rng.permutation(right)]).astype(np.int64)
    explained, others = np.split(order[:MOST_POINTS], [most])
    is_right = ~np.isin(explained, wrong)
    return explained[np.lexsort((explained, is_right))], np.sort(others)


def most_explained(predictions: Predictions, references: References) -> int:
    """Number of series that there is time and space for."""
    lengths, n_channels = predictions.batch.lengths, len(references.channels)
    n_classes = min(len(predictions.model.classes_), MOST_CLASSES)
    per_step = (n_classes * (n_channels + 2 * STRONGEST) + 2 * n_channels) * 4 / 3
    n_bytes = _BASE_BYTES * (1 + n_classes) + np.minimum(lengths, MOST_STEPS).mean() * per_step
    in_time = MOST_CELLS / (references.n_cells * lengths.mean())
    return int(min(MOST_SERIES, max(FEWEST_SERIES, min(in_time, MOST_BYTES / n_bytes))))


def explain_series(
    predictions: Predictions, references: References, index: int, features: FloatArray
) -> dict[str, Any]:
    """The entry of one series in the explorer; `features` is its row of them."""
    series = predictions.batch[index : index + 1]
    truth, p = predictions.truth, predictions.outputs.probabilities
    scores, predicted = predictions.decisions[index], int(predictions.predicted[index])
    true = None if truth is None else int(truth[index])
    best = np.argsort(-scores, kind="stable").tolist()
    # A label that the model does not know has no score.
    chosen = dict.fromkeys([predicted, *({true} & set(best)), *best])
    codes, bins = np.sort(list(chosen)[:MOST_CLASSES]), Bins(series.n_steps)
    return {
        "index": index,
        "id": predictions.ids[index],
        "clock": clock(series.times, bins),
        "length": series.n_steps,
        "bins": bins.count,
        "truth": true,
        "predicted": predicted,
        "p": None if p is None else p[index].round(4).tolist(),
        "scores": rounded(scores),
        "rows": pack(bins.sample(references.drawn(series, references.draw(series).values))),
        **references.explain(series, codes, features, bins),
    }


def similarity_space(
    predictions: Predictions, shown: IntArray, features: FloatArray, references: References
) -> dict[str, Any] | None:
    """First two principal components of features; None with too few series or features.

    Parameters
    ----------
    predictions
        Series and predictions.
    shown
        Indices of the series to show.
    features
        Their features, shape (series, features).
    references
        Their landmarks are drawn too.

    Returns
    -------
    dict
        Points of series and landmarks, labels, and the share of the variance that they explain.
    """
    if len(shown) < 3 or features.shape[1] < 2:
        return None
    pca = PCA(2, svd_solver="randomized", iterated_power=7, random_state=0)
    points = pca.fit_transform(features)
    if not pca.explained_variance_.sum() > 0:
        return None
    series, rings = references.series, []
    if series is not None and 0 < len(series) <= _MOST_RINGS:
        rings = rounded(pca.transform(predictions.model.features(series)))
    truth, predicted, ids = predictions.truth, predictions.predicted, predictions.ids
    return {
        "points": rounded(points),
        "ids": [ids[i] for i in shown],
        "label": (predicted if truth is None else truth)[shown].tolist(),
        "predicted": predicted[shown].tolist(),
        "variance": round(float(pca.explained_variance_ratio_.sum()), 4),
        "landmarks": rings,
        "landmark_labels": list(map(predictions.model.series_class, references.indices.tolist())),
    }


# ---- the model card


# Packages that determine the numbers of a model.
_PACKAGES = ("numpy", "scipy", "scikit-learn")
# Largest length of the text of a parameter.
_LONGEST = 160


def card(model: Any, references: References, predictions: Predictions | None) -> dict[str, Any]:
    """Parameters, facts and provenance of a model: a search, or the classifier itself."""
    inner = references.model
    # Parameters that were chosen by a search, of scikit-learn or of the classifier itself.
    chosen = {**getattr(model, "best_params_", {}), **getattr(inner, "best_params_", {})}
    facts = _facts(inner, references)
    if chosen:
        text = ", ".join(f"{name} = {value}" for name, value in chosen.items())
        facts.append(["Chosen by the search", text])
    provenance = [
        ["Software", ", ".join(f"{name} {version(name)}" for name in _PACKAGES)],
        ["Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"],
        ["Fingerprint of the model", _digest([inner.classes_, references.fitted])],
    ]
    if predictions is not None:
        batch = predictions.batch
        digest = _digest([batch.values, batch.offsets, predictions.labels])
        provenance.append(["Fingerprint of the data", digest])
    return {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "library": f"slts {__version__}",
        "facts": facts,
        "provenance": provenance,
        "parameters": _parameters(inner),
    }


def _parameters(model: SeriesClassifier) -> list[list[str]]:
    """Name, value and origin of every parameter."""
    defaults = type(model)().get_params(deep=False)
    rows = []
    for name, value in model.get_params(deep=False).items():
        text = repr(value)
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        rows.append([name, shown, "default" if repr(defaults[name]) == text else "set"])
    return rows


def _facts(model: SeriesClassifier, references: References) -> list[list[str]]:
    facts = [
        ["Classifier", f"slts.{type(model).__name__}"],
        ["Trained on", f"{model.n_series_in_:,} series with {model.n_steps_in_:,} steps in total"],
        *references.facts,
    ]
    validation, of = model.validation_, ""
    if validation is not None:
        if validation.n_groups is not None:
            of = f", {count(validation.n_groups, 'group')}"
        held_out = f"{100 * validation.accuracy:.1f}% ({validation.kind}{of})"
        facts.append(["Accuracy on training series that were held out", held_out])
    return facts


def _digest(content: Any) -> str:
    return f"sha1:{joblib.hash(content, hash_name='sha1')}"
