"""One decision value as a sum over landmarks, time steps and channels.

A decision is linear in the aligned products, and a product is a sum over the cells of a path. So
with s_ij the rows of landmark j aligned with step i, divided by the length of the path,

    decision_c = intercept_c + sum_j coef_cj sum_i a_i' M_c s_ij ,

and the term of channel u at step i is a_iu (M_c s_ij)_u. With several metrics s_ij is cut by phase;
with several forms, each adds its terms. The homogeneous channel, where there is one, belongs to no
channel of the data: its terms make up the offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment import Alignment, align
from slts.models.linear_form import LinearForm
from slts.series import SeriesBatch, as_series


@dataclass(frozen=True, eq=False)
class Explanation:
    """Exact contributions to the decision values of one series.

    ``offset + contributions.sum(axis=(1, 2)) == decision``, the model's `decision_function`, to
    rounding. Explanations are made in float64: with ``dtype="float32"`` the model's own values
    agree to about 1e-5 of the largest, except where two paths nearly tie and it takes the other.

    Parameters
    ----------
    predicted
        The class the model gives the series.
    classes
        The class each decision value argues for, shape (problems,): all classes, or the second of
        two, against the first; see `for_class`.
    labels
        All classes of the model.
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
    comparison_names, by_comparison
        Views of the series the model takes, and their parts, shape (problems, comparisons), which with
        the intercept sum to the decision.
    similarities
        K_I to the landmarks, shape (landmarks,); with several comparisons, in the first. Of a realigned
        model what the paths of the predicted class maximise: the mean of a_i' P b_j.
    alignments
        The path to each landmark, likewise. Where steps of long series were averaged, paths count
        the means.
    channel_names
        Names, if the series had any.
    """

    predicted: Any
    classes: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    decision: FloatArray
    offset: FloatArray
    contributions: FloatArray
    landmark_indices: IntArray
    by_landmark: FloatArray
    comparison_names: tuple[str, ...]
    by_comparison: FloatArray
    similarities: FloatArray
    alignments: tuple[Alignment, ...]
    channel_names: tuple[str, ...] | None
    _parts: tuple[_FormParts, ...]
    _batch: SeriesBatch

    @cached_property
    def by_step(self) -> FloatArray:
        """Contributions summed over channels, shape (problems, steps)."""
        return np.asarray(self.contributions.sum(axis=2))

    @cached_property
    def by_channel(self) -> FloatArray:
        """Contributions summed over steps, shape (problems, channels)."""
        return np.asarray(self.contributions.sum(axis=1))

    def of_landmark(self, position: int, comparison: int | None = None) -> FloatArray:
        """Contributions through one landmark, shape (problems, steps, channels).

        Parameters
        ----------
        position
            Position in `landmark_indices`.
        comparison
            Position in `comparison_names`; None adds up all comparisons.

        Returns
        -------
        ndarray
            Summed over all positions: `contributions`.
        """
        own = [
            part.attribute(self._batch, slice(position, position + 1))[0]
            for part in (
                self._parts if comparison is None else self._parts[comparison : comparison + 1]
            )
        ]
        return np.asarray(sum(own))

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

    def for_class(self, label: Any = None) -> tuple[int, float]:
        """Say which decision value speaks for a class, and with which sign.

        With two classes there is one value, which argues for the second: times -1 it and its parts
        argue for the first.

        Parameters
        ----------
        label
            The class; None takes the predicted one.

        Returns
        -------
        position : int
            Position in `classes`.
        sign : float
            1 or -1, to multiply decision, offset and contributions with.
        """
        known = self.labels.tolist()
        wanted = self.predicted if label is None else label
        if wanted not in known:
            names = ", ".join(map(repr, known))
            raise ValueError(
                f"The 'label' parameter must be one of {names}. Got {label!r} instead."
            )
        position = known.index(wanted)
        if len(self.decision) == len(known):
            return position, 1.0
        return 0, 1.0 if position else -1.0

    def __repr__(self) -> str:
        problems, steps, channels = self.contributions.shape
        return (
            f"Explanation({problems} decision values, {steps} steps, {channels} channels, "
            f"{len(self.landmark_indices)} landmarks; predicted: {self.predicted})"
        )


def explain(model: Any, x: Any) -> Explanation:
    """Split the decision values of one series exactly.

    It takes the paths themselves, which are found on the CPU whatever the model's `device`.

    Parameters
    ----------
    model
        A fitted `LocalSLTSClassifier`, `SLTSClassifier`, `BBSClassifier` (or their CV variants) or
        `SimilaritySVC`.
    x
        One series, (channels, time), or a batch of one.

    Returns
    -------
    Explanation
        Contributions by landmark, step and channel; they sum to `model.decision_function([x])`.
    """
    if not hasattr(model, "linear_forms"):
        if hasattr(model, "best_estimator_"):
            raise TypeError(
                f"{type(model).__name__} is explained through its best_estimator_: pass that."
            )
        raise TypeError(
            f"{type(model).__name__} cannot be explained: its decisions are not linear in aligned "
            f"products. LocalSLTS, SLTS, BBS and SimilaritySVC can."
        )
    return explain_with(model, model.linear_forms(), x)


def explain_with(model: Any, forms: tuple[LinearForm, ...], x: Any) -> Explanation:
    """`explain`, for many series of one model: its forms are made once."""
    batch = _one(x)
    batch = model.check_series(batch)
    parts = tuple(_FormParts(form, batch) for form in forms)
    shares = [part.attribute(batch, slice(None)) for part in parts]
    contributions = np.asarray(sum(terms for terms, _ in shares))
    offset = np.asarray(
        sum(form.intercept + rest for form, (_, rest) in zip(forms, shares, strict=True))
    )
    decision = offset + contributions.sum(axis=(1, 2))
    by_comparison = np.column_stack([terms.sum(axis=(1, 2)) + rest for terms, rest in shares])
    best = int(decision.argmax())
    alignments = parts[comparison_of(forms, best)].alignments
    return Explanation(
        predicted=model.classes_[best if len(decision) > 1 else int(decision[0] > 0)],
        classes=forms[0].positives,
        labels=model.classes_,
        decision=decision,
        offset=offset,
        contributions=contributions,
        landmark_indices=forms[0].landmark_indices,
        by_landmark=np.asarray(sum(part.by_landmark() for part in parts)),
        comparison_names=tuple(form.name for form in forms),
        by_comparison=by_comparison,
        similarities=np.array([found.similarity for found in alignments]),
        alignments=alignments,
        channel_names=batch.channel_names or model.channel_names_in_,
        _parts=parts,
        _batch=batch,
    )


def comparison_of(forms: tuple[LinearForm, ...], problem: int) -> int:
    """The first form in which a decision value has weights: the first, or its own."""
    return next((k for k, form in enumerate(forms) if form.coef[problem].any()), 0)


class _FormParts:
    """The alignments of one series with the landmarks of one form."""

    def __init__(self, form: LinearForm, batch: SeriesBatch) -> None:
        self.form, self.rows = form, form.rows(batch).values
        alignments = []
        # Landmark rows by landmark, phase and step of the series.
        self.aligned = np.zeros((len(form.landmarks), form.n_phases, *self.rows.shape))
        for j, landmark in enumerate(form.landmarks):
            found = align(
                self.rows.T, landmark, objective=form.settings.objective,
                band=form.settings.band, normalize=False,
            )  # fmt: skip
            i, k = found.path.T
            phase = k * form.n_phases // landmark.shape[1]
            np.add.at(self.aligned[j], (phase, i), landmark.T[k] / found.length)
            alignments.append(found)
        self.alignments = tuple(alignments)

    def attribute(self, batch: SeriesBatch, which: slice) -> tuple[FloatArray, FloatArray]:
        """Contributions and rest of some landmarks: see `Rows.attribute`."""
        form = self.form
        slopes = np.zeros((len(form.coef), *self.rows.shape))
        groups = form.groups[which]
        for g in np.unique(groups):
            own = groups == g
            weighted = np.tensordot(form.coef[:, which][:, own], self.aligned[which][own], axes=1)
            slopes += (weighted @ form.local_metrics[:, g].swapaxes(2, 3)).sum(axis=1)
        return form.rows.attribute(batch, slopes)

    def by_landmark(self) -> FloatArray:
        """Value of the form through each landmark, shape (problems, landmarks)."""
        form = self.form
        values = np.zeros(form.coef.shape)
        for g in np.unique(form.groups):
            own = form.groups == g
            seen = self.rows @ form.local_metrics[:, g]
            values[:, own] = np.tensordot(seen, self.aligned[own], axes=([1, 2, 3], [1, 2, 3]))
        return values * form.coef


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
