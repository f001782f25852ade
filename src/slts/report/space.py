"""Series as points: the two directions in which their similarities differ most."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from slts._typing import FloatArray, IntArray
from slts.estimators.base import SeriesClassifier
from slts.estimators.neighbors import NearestNeighbor
from slts.estimators.svm import SimilaritySVC
from slts.report.packing import shorts
from slts.report.sample import Sample

# Points, and training series that neighbours are measured against.
MOST_POINTS = 1500
_MOST_FEATURES = 300


def similarity_space(model: Any, sample: Sample, kept: IntArray) -> dict[str, Any] | None:
    """Principal components of similarities; None where there are too few to draw.

    Parameters
    ----------
    model
        A fitted classifier of series.
    sample
        Series and answers.
    kept
        Series in the explorer; they come first, in this order, and all are drawn.

    Returns
    -------
    dict
        Points, their labels, the share of the variance they show, and the landmarks' points.
    """
    others = np.setdiff1d(np.arange(len(sample.batch)), kept)
    room = max(0, MOST_POINTS - len(kept))
    if len(others) > room:
        others = np.sort(np.random.default_rng(0).choice(others, room, replace=False))
    shown = np.concatenate([kept, others])
    features = _features(model, sample.batch[shown])
    if features is None or len(shown) < 3 or features.shape[1] < 2:
        return None
    pca = PCA(2, svd_solver="randomized", iterated_power=7, random_state=0)
    points = pca.fit_transform(features)
    if not pca.explained_variance_.sum() > 0:
        return None
    landmarks = None
    if hasattr(model, "landmarks_"):
        coef = getattr(model, "coef_", np.ones((1, len(model.landmarks_))))
        used = np.flatnonzero(coef.any(axis=0))
        if len(used):
            landmarks = shorts(pca.transform(_features(model, model.landmarks_[used])))
    return {
        "points": shorts(points),
        "index": shown.tolist(),
        "ids": [sample.ids[i] for i in shown],
        "label": (sample.predicted if sample.truth is None else sample.truth)[shown].tolist(),
        "predicted": sample.predicted[shown].tolist(),
        "variance": round(float(pca.explained_variance_ratio_.sum()), 4),
        "landmarks": landmarks,
    }


def _features(model: Any, batch: Any) -> FloatArray | None:
    """Similarities to what the model compares with."""
    if isinstance(model, SeriesClassifier) and hasattr(model, "transform"):
        return np.asarray(model.transform(batch))
    if isinstance(model, SimilaritySVC):
        return model._similarities(model._new_rows(batch), _some(model.training_rows_))
    if isinstance(model, NearestNeighbor):
        nearness = model.nearness_of_rows(model._new_rows(batch))
        return nearness[:, _places(nearness.shape[1])]
    return None


def _some(batch: Any) -> Any:
    return batch[_places(len(batch))]


def _places(count: int) -> IntArray:
    """At most `_MOST_FEATURES` places, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, _MOST_FEATURES)).astype(np.int64))
