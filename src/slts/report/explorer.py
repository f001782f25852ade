"""Explanations of single series, and series as points in similarity space."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from slts._typing import FloatArray, IntArray
from slts.report.packing import MOST_STEPS, Bins, clock, pack, rounded
from slts.report.predictions import Predictions
from slts.report.references import STRONGEST, References

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
