"""What a fitted model looks at, by itself and on data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment.reductions import grouped_products
from slts.explanation.prediction import explain_with
from slts.models.linear_form import LinearForm
from slts.models.row_map import RowMap
from slts.series import SeriesBatch, as_series

# Series a model with several comparisons is averaged over, at most about.
_EXPLAINED = 100


@dataclass(frozen=True, eq=False)
class ModelSummary:
    """Sizes of the parts of a model, one row per decision value.

    Parameters
    ----------
    classes
        The class each decision value argues for.
    channel_importance
        Mean absolute contribution of each channel on the data, shape (problems, d). Of a model with
        one metric per class the last channel may be the homogeneous one.
    pair_importance
        Mean absolute contribution of each pair (channel of the series, channel of the landmarks),
        shape (problems, d, d); None where several comparisons are at work.
    comparison_names, comparison_importance
        The comparisons, and the mean absolute contribution of each, shape (problems, comparisons).
    landmark_indices
        Training series with a weight in some problem.
    landmark_weights
        Their weights, shape (problems, landmarks).
    singular_values
        Of each metric, largest first, shape (problems, d); None where a class has several.
    n_landmarks_used
        Landmarks with a weight, per problem.
    n_numbers
        Numbers the model stores: metrics (those of the paths too, where there are any), weights
        that are not zero, values of the landmarks.
    """

    classes: npt.NDArray[Any]
    channel_importance: FloatArray
    pair_importance: FloatArray | None
    comparison_names: tuple[str, ...]
    comparison_importance: FloatArray
    landmark_indices: IntArray
    landmark_weights: FloatArray
    singular_values: FloatArray | None
    n_landmarks_used: IntArray
    n_numbers: int


def summarize(model: Any, X: Any = None, *, n_jobs: int | None = None) -> ModelSummary:
    """Say what a model looks at.

    Parameters
    ----------
    model
        A fitted classifier that `slts.explain` can explain. Its `device` aligns where there is one
        metric per class.
    X
        Series to average over; None takes the model's own landmarks. With several comparisons, about 100
        of them.
    n_jobs
        Threads, by joblib's convention, where there is one metric per class.

    Returns
    -------
    ModelSummary
        Importances, weights, spectra and sizes.
    """
    forms: tuple[LinearForm, ...] = model.linear_forms()
    form = forms[0]
    if len(forms) > 1 or form.local_metrics.shape[1:3] != (1, 1) or not _rows_are_channels(form):
        return _several_comparisons(model, forms, model.landmarks_ if X is None else as_series(X))
    rows = form.landmarks if X is None else form.rows(model.check_series(as_series(X)))
    d = form.metrics.shape[1]
    pairs = np.zeros_like(form.metrics, dtype=np.float64)
    channels, whole = np.zeros((len(form.coef), d)), np.zeros((len(form.coef), 1))
    if len(form.landmarks):
        sums = grouped_products(
            rows, form.landmarks, form.coef, form.settings, device=model.device, n_jobs=n_jobs
        )
        terms = sums * form.metrics
        pairs = np.abs(terms).mean(axis=0)
        channels = np.abs(terms.sum(axis=3)).mean(axis=0)
        whole = np.abs(terms.sum(axis=(2, 3))).mean(axis=0)[:, np.newaxis]
    return ModelSummary(
        classes=form.positives,
        channel_importance=channels,
        pair_importance=pairs,
        comparison_names=(form.name,),
        comparison_importance=whole,
        landmark_indices=form.landmark_indices,
        landmark_weights=form.coef,
        singular_values=np.linalg.svd(form.metrics, compute_uv=False).astype(np.float64),
        n_landmarks_used=np.count_nonzero(form.coef, axis=1),
        n_numbers=int(form.metrics.size + np.count_nonzero(form.coef) + form.landmarks.values.size),
    )


def _rows_are_channels(form: LinearForm) -> bool:
    return isinstance(form.rows, RowMap)


def _several_comparisons(
    model: Any, forms: tuple[LinearForm, ...], batch: SeriesBatch
) -> ModelSummary:
    # Every series is explained by itself, which takes a while: some are enough for a mean.
    shown = np.linspace(0, len(batch) - 1, min(len(batch), _EXPLAINED)).round().astype(np.int64)
    found = [explain_with(model, forms, x) for x in batch[np.unique(shown)]]
    channels = np.mean([np.abs(e.by_channel) for e in found], axis=0)
    return ModelSummary(
        classes=forms[0].positives,
        channel_importance=channels,
        pair_importance=None,
        comparison_names=tuple(form.name for form in forms),
        comparison_importance=np.mean([np.abs(e.by_comparison) for e in found], axis=0),
        landmark_indices=forms[0].landmark_indices,
        landmark_weights=forms[0].coef,
        singular_values=None,
        n_landmarks_used=np.count_nonzero(forms[0].coef, axis=1),
        n_numbers=model.n_numbers_,
    )
