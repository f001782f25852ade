"""What a fitted model looks at, by itself and on data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment.reductions import grouped_products
from slts.estimators.linear_form import LinearForm
from slts.series import as_series


@dataclass(frozen=True, eq=False)
class ModelSummary:
    """Sizes of the parts of a model, one row per decision value.

    Parameters
    ----------
    classes
        The class each decision value argues for.
    channel_importance
        Mean absolute contribution of each channel on the data, shape (problems, d). The last
        channel may be the homogeneous one.
    pair_importance
        Mean absolute contribution of each pair (channel of the series, channel of the landmarks),
        shape (problems, d, d).
    landmark_indices
        Training series with a weight in some problem.
    landmark_weights
        Their weights, shape (problems, landmarks).
    singular_values
        Of each metric, largest first, shape (problems, d).
    n_landmarks_used
        Landmarks with a weight, per problem.
    n_numbers
        Numbers the model stores: metrics, weights that are not zero, values of the landmarks.
    """

    classes: npt.NDArray[Any]
    channel_importance: FloatArray
    pair_importance: FloatArray
    landmark_indices: IntArray
    landmark_weights: FloatArray
    singular_values: FloatArray
    n_landmarks_used: IntArray
    n_numbers: int


def summarize(model: Any, X: Any = None, *, n_jobs: int | None = None) -> ModelSummary:
    """Say what a model looks at.

    Parameters
    ----------
    model
        A fitted classifier that `slts.explain` can explain.
    X
        Series to average over; None takes the model's own landmarks.
    n_jobs
        Threads, by joblib's convention.

    Returns
    -------
    ModelSummary
        Importances, weights, spectra and sizes.
    """
    form: LinearForm = model.linear_form()
    rows = form.landmarks if X is None else model._new_rows(as_series(X))
    d = form.metrics.shape[1]
    pairs = np.zeros_like(form.metrics, dtype=np.float64)
    channels = np.zeros((len(form.coef), d))
    if len(form.landmarks):
        sums = grouped_products(rows, form.landmarks, form.coef, form.settings, n_jobs=n_jobs)
        terms = sums * form.metrics
        pairs = np.abs(terms).mean(axis=0)
        channels = np.abs(terms.sum(axis=3)).mean(axis=0)
    return ModelSummary(
        classes=form.positives,
        channel_importance=channels,
        pair_importance=pairs,
        landmark_indices=form.landmark_indices,
        landmark_weights=form.coef,
        singular_values=np.linalg.svd(form.metrics, compute_uv=False).astype(np.float64),
        n_landmarks_used=np.count_nonzero(form.coef, axis=1),
        n_numbers=int(form.metrics.size + np.count_nonzero(form.coef) + form.landmarks.values.size),
    )
