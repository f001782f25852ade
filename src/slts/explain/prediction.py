"""One decision value as a sum over landmarks, time steps and channels.

A decision is linear in the aligned products, and a product is a sum over the cells of a path. So
with s_ij the rows of landmark j aligned with step i, divided by the length of the path,

    decision_c = intercept_c + sum_j coef_cj sum_i a_i' M_c s_ij ,

and the term of channel u at step i is a_iu (M_c s_ij)_u. The homogeneous channel, where there is
one, belongs to no channel of the data: its terms make up the offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment import Alignment, align
from slts.estimators.linear_form import LinearForm
from slts.series import SeriesBatch, as_series


@dataclass(frozen=True, eq=False)
class Explanation:
    """Exact contributions to the decision values of one series.

    ``offset + contributions.sum(axis=(1, 2)) == decision``, the model's `decision_function`.

    Parameters
    ----------
    predicted
        The class the model gives the series.
    classes
        The class each decision value argues for, shape (problems,): all classes, or the second of
        two, against the first.
    decision
        Decision values, shape (problems,).
    offset
        What belongs to no step and channel: intercept and homogeneous channel.
    contributions
        Shape (problems, steps, channels).
    landmark_indices
        Training series that serve as landmarks with a weight.
    by_landmark
        Shape (problems, landmarks); with the intercept these sum to the decision as well.
    similarities
        K_I to the landmarks, shape (landmarks,).
    alignments
        The path to each landmark.
    channel_names
        Names, if the series had any.
    """

    predicted: Any
    classes: npt.NDArray[Any]
    decision: FloatArray
    offset: FloatArray
    contributions: FloatArray
    landmark_indices: IntArray
    by_landmark: FloatArray
    similarities: FloatArray
    alignments: tuple[Alignment, ...]
    channel_names: tuple[str, ...] | None
    _form: LinearForm
    _rows: FloatArray
    _aligned: FloatArray

    @cached_property
    def by_step(self) -> FloatArray:
        """Contributions summed over channels, shape (problems, steps)."""
        return np.asarray(self.contributions.sum(axis=2))

    @cached_property
    def by_channel(self) -> FloatArray:
        """Contributions summed over steps, shape (problems, channels)."""
        return np.asarray(self.contributions.sum(axis=1))

    def of_landmark(self, position: int) -> FloatArray:
        """Contributions through one landmark, shape (problems, steps, channels).

        Parameters
        ----------
        position
            Position in `landmark_indices`.

        Returns
        -------
        ndarray
            Summed over all positions: `contributions`.
        """
        terms = _terms(self._form, self._rows, self._aligned[[position]], [position])
        return terms[:, :, : self.contributions.shape[2]]

    def nearest_landmarks(self, count: int = 5) -> IntArray:
        """Positions of the most similar landmarks, nearest first.

        Parameters
        ----------
        count
            How many at most.

        Returns
        -------
        ndarray
            Positions in `landmark_indices`.
        """
        return np.argsort(-self.similarities, kind="stable")[:count]

    def __repr__(self) -> str:
        problems, steps, channels = self.contributions.shape
        return (
            f"Explanation({problems} decision values, {steps} steps, {channels} channels, "
            f"{len(self.landmark_indices)} landmarks; predicted: {self.predicted})"
        )


def explain(model: Any, x: Any) -> Explanation:
    """Split the decision values of one series exactly.

    Parameters
    ----------
    model
        A fitted `SLTSClassifier`, `BBSClassifier` (or their CV variants) or `SimilaritySVC`.
    x
        One series, (channels, time), or a batch of one.

    Returns
    -------
    Explanation
        Contributions by landmark, step and channel; they sum to `model.decision_function([x])`.
    """
    if not hasattr(model, "linear_form"):
        if hasattr(model, "best_estimator_"):
            raise TypeError(
                f"{type(model).__name__} is explained through its best_estimator_: pass that."
            )
        raise TypeError(
            f"{type(model).__name__} cannot be explained: its decisions are not linear in aligned "
            f"products. SLTS, BBS and SimilaritySVC can."
        )
    form: LinearForm = model.linear_form()
    batch = _one(x)
    rows = model._new_rows(batch).values
    alignments = []
    aligned = np.zeros((len(form.landmarks), *rows.shape))
    for j, landmark in enumerate(form.landmarks):
        found = align(
            rows.T, landmark, objective=form.settings.objective, band=form.settings.band,
            normalize=False,
        )  # fmt: skip
        np.add.at(aligned[j], found.path[:, 0], landmark.T[found.path[:, 1]] / found.length)
        alignments.append(found)
    terms = _terms(form, rows, aligned, slice(None))
    own = batch.n_channels
    by_landmark = np.einsum(
        "cj,iu,cuv,jiv->cj", form.coef, rows, form.metrics, aligned, optimize=True
    )
    offset = form.intercept + terms[:, :, own:].sum(axis=(1, 2))
    contributions = terms[:, :, :own]
    decision = offset + contributions.sum(axis=(1, 2))
    return Explanation(
        predicted=model.classes_[decision.argmax() if len(decision) > 1 else int(decision[0] > 0)],
        classes=form.positives,
        decision=decision,
        offset=offset,
        contributions=contributions,
        landmark_indices=form.landmark_indices,
        by_landmark=by_landmark,
        similarities=np.array([found.similarity for found in alignments]),
        alignments=tuple(alignments),
        channel_names=batch.channel_names or _names_of(model),
        _form=form,
        _rows=rows,
        _aligned=aligned,
    )


def _terms(form: LinearForm, rows: FloatArray, aligned: FloatArray, which: Any) -> FloatArray:
    """Terms a_iu (M_c sum_j coef_cj s_ij)_u, shape (problems, steps, d)."""
    weighted = np.einsum("cj,jiv->civ", form.coef[:, which], aligned, optimize=True)
    result: FloatArray = rows * np.einsum("cuv,civ->ciu", form.metrics, weighted, optimize=True)
    return result


def _names_of(model: Any) -> tuple[str, ...] | None:
    landmarks = getattr(model, "landmarks_", None)
    return None if landmarks is None else landmarks.channel_names


def _one(x: Any) -> SeriesBatch:
    if isinstance(x, SeriesBatch):
        batch = x
    elif isinstance(x, list | tuple) and len(x) and np.ndim(x[0]) == 2:
        # A list of (channels, time) arrays is a collection.
        batch = as_series(x)
    else:
        batch = as_series([x])
    if len(batch) != 1:
        raise ValueError(
            f"The 'x' parameter must be one series, such as X[0]. Got {len(batch)} instead."
        )
    return batch
