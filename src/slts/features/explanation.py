"""Exact explanations of decisions for one series.

A decision is linear in the aligned products, and a product is a sum over the cells of a path. Let
s_ij be the sum of the rows of landmark j aligned with step i, divided by the length of the path:

    decision_c = intercept_c + sum_j weight_cj sum_i a_i' M_c s_ij .

The contribution of channel u at step i is sum_j weight_cj a_iu (M_c s_ij)_u. With several phases,
s_ij is split by phase and each phase has its own metric. Contributions of several feature maps are
added. The constant channel is not a channel of the data: its terms belong to the offset. What a
snippet adds at a step, compared with a mean training step, is divided among the values that it is
compared with, in proportion to the squares of its own compared values, and evenly among the steps
of a mean. What falls beyond the ends of the series or on missing values belongs to the offset, and
so does what mean steps add.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from slts._typing import FloatArray, IntArray
from slts.alignment import Alignment
from slts.features.aligned_products import AlignedSeries
from slts.features.feature_map import Resources
from slts.features.models import LinearModel
from slts.features.snippets import Snippets
from slts.quantities import count
from slts.series import SeriesBatch, as_series
from slts.series.convert import is_table

_ON_CPU = Resources("cpu", 1)


class Stretch(NamedTuple):
    """Consecutive steps that support a class more than the mean step of the series does.

    Attributes
    ----------
    first, last
        The first and the last step.
    contribution
        Sum of the contributions of these steps.
    share
        Its share of the sum of all steps that support the class: those with a positive sum.
    channel
        The channel that contributes most there.
    """

    first: int
    last: int
    contribution: float
    share: float
    channel: int


@dataclass(frozen=True, eq=False)
class Explanation:
    """Exact contributions to the decision values of one series.

    ``offset + contributions.sum(axis=(1, 2)) == decision`` to rounding, and `decision` equals the
    model's `decision_function`. Explanations are computed in float64. A model with
    ``dtype="float32"`` agrees to about 1e-5 of its largest value, unless two paths nearly tie and
    it follows the other one.

    Parameters
    ----------
    predicted
        The predicted class.
    classes
        The class that each decision value supports, shape (decisions,): all classes, or the second
        of two. See `for_class`.
    labels
        All classes of the model.
    decision
        Decision values, shape (decisions,).
    offset
        The part that belongs to no step and no channel: intercept, constant channel, snippets in a
        mean training series, and what snippets add beyond the ends of the series and at missing
        values; shape (decisions,).
    contributions
        Shape (decisions, steps, channels); zero for missing values.
    landmark_indices
        Training series used as landmarks, with a nonzero weight.
    map_names, by_map
        The feature maps of the model and the contribution of each, shape (decisions, maps): of
        snippets compared with a mean training series. With the intercept they sum to the decision.
    channel_names
        Names of the channels, or None.
    series
        The series itself: a batch of one, with its name and times if they are known.
    """

    predicted: Any
    classes: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    decision: FloatArray
    offset: FloatArray
    contributions: FloatArray
    landmark_indices: IntArray
    map_names: tuple[str, ...]
    by_map: FloatArray
    channel_names: tuple[str, ...] | None
    series: SeriesBatch
    _model: LinearModel
    _name_of: Callable[[int], str]

    @cached_property
    def landmark_names(self) -> tuple[str, ...]:
        """What the user calls the landmarks: "walk, recording 17"."""
        return tuple(map(self._name_of, self.landmark_indices.tolist()))

    @property
    def landmark_positions(self) -> IntArray:
        """Positions of these landmarks among all landmarks of the model."""
        return self._model.aligned[0].used

    @cached_property
    def by_landmark(self) -> FloatArray:
        """Contribution of each landmark with the constant channel: (decisions, landmarks)."""
        parts = (
            feature_map.by_landmark_aligned(aligned, coef)
            for feature_map, aligned, coef in zip(
                self._model.aligned, self._aligned, self._model.coefs, strict=False
            )
        )
        return np.asarray(sum(parts))

    @cached_property
    def by_snippet(self) -> FloatArray:
        """Contribution of each snippet, compared with a mean training series.

        Shape (decisions, snippets); no columns if the model has none.
        """
        if self._model.snippets is None or self._model.snippet_coef is None:
            return self._usual
        coef = self._model.snippet_coef
        parts = self._model.snippets.by_landmark(self.series, coef, _ON_CPU)[0]
        return np.asarray(parts - self._usual)

    @cached_property
    def intercept(self) -> FloatArray:
        """The part that belongs to no landmark and no snippet, shape (decisions,).

        The model's intercept, and what the snippets of a mean training series with as many steps
        add. ``intercept + by_landmark.sum(axis=1) + by_snippet.sum(axis=1)`` is the decision.
        """
        return np.asarray(self._model.intercept + self._usual.sum(axis=1))

    @cached_property
    def _usual(self) -> FloatArray:
        snippets, coef = self._model.snippets, self._model.snippet_coef
        if snippets is None or coef is None:
            return np.zeros((len(self.decision), 0))
        return np.asarray(snippets.usual(self.series.lengths, coef)[0])

    @cached_property
    def _aligned(self) -> tuple[AlignedSeries, ...]:
        return tuple(feature_map.align(self.series) for feature_map in self._model.aligned)

    @cached_property
    def by_step(self) -> FloatArray:
        """Contributions summed over channels, shape (decisions, steps)."""
        return np.asarray(self.contributions.sum(axis=2))

    @cached_property
    def by_channel(self) -> FloatArray:
        """Contributions summed over steps, shape (decisions, channels)."""
        return np.asarray(self.contributions.sum(axis=1))

    @cached_property
    def similarities(self) -> FloatArray:
        """K_I to the landmarks in the first map, shape (landmarks,)."""
        return self._model.aligned[0].exact_similarities(self.series)

    @cached_property
    def alignments(self) -> tuple[Alignment, ...]:
        """Path to each landmark in the first map; see `alignment`."""
        return tuple(map(self.alignment, range(len(self.landmark_indices))))

    def alignment(self, position: int) -> Alignment:
        """Path to one landmark in the first map.

        Paths count the steps that are aligned: the averaged steps of long series, without those at
        which nothing is observed.

        Parameters
        ----------
        position
            Position in `landmark_indices`.
        """
        return self._model.aligned[0].path(self._aligned[0], position)

    def steps_through(self, decisions: IntArray, positions: IntArray) -> FloatArray:
        """Contributions of steps through landmarks in the first map, shape (pairs, steps).

        Parameters
        ----------
        decisions, positions
            Positions in `decision` and in `landmark_indices`, one of each for every pair.
        """
        aligned, coef = self._model.aligned[0], self._model.coefs[0]
        pairs = aligned.attribute_pairs(self._aligned[0], coef, decisions, positions)
        return np.asarray(pairs.contributions.sum(axis=2))

    def of_landmark(self, position: int, feature_map: int | None = None) -> FloatArray:
        """Contributions through one landmark, shape (decisions, steps, channels).

        Parameters
        ----------
        position
            Position in `landmark_indices`.
        feature_map
            Position in `map_names`; None sums over all maps with whole landmarks.

        Returns
        -------
        ndarray
            The sum over all landmarks and snippets is `contributions`.
        """
        landmark = int(self.landmark_positions[position])
        maps = self._model.aligned
        chosen = range(len(maps)) if feature_map is None else [feature_map]
        terms = (
            maps[k].attribute_aligned(self._aligned[k], self._model.coefs[k], landmark)
            for k in chosen
        )
        return np.asarray(sum(term.contributions for term in terms))

    def of_snippet(self, position: int) -> FloatArray:
        """Contributions of one snippet, shape (decisions, steps, channels).

        Parameters
        ----------
        position
            Position in the model's `snippets_`.

        Returns
        -------
        ndarray
            The sum over all landmarks and snippets is `contributions`.
        """
        snippets, coef = required_snippets(self._model)
        return snippets.attribute(self.series, coef, position).contributions

    def occurrences(self, position: int) -> IntArray:
        """How closely one snippet occurs at each step, shape (steps,).

        Parameters
        ----------
        position
            Position in the model's `snippets_`.

        Returns
        -------
        ndarray
            The number of its thresholds that the step meets; 0 where it does not occur.
        """
        snippets, _ = required_snippets(self._model)
        met = snippets.occurrences(self.series, np.array([position]))[0]
        return np.asarray(met, dtype=np.int64)

    def strongest_snippets(self, count: int = 5, label: Any = None) -> IntArray:
        """Positions of the snippets with the largest absolute contribution, largest first.

        Parameters
        ----------
        count
            Largest number of positions.
        label
            The class; None is the predicted class.

        Returns
        -------
        ndarray
            Positions in the model's `snippets_`.
        """
        row, _ = self.for_class(label)
        return np.argsort(-np.abs(self.by_snippet[row]), kind="stable")[:count]

    def stretches(self, label: Any = None, count: int = 3) -> list[Stretch]:
        """Stretches of steps that support a class most.

        The first one has the largest sum of contributions above the mean of the steps (above zero
        if the mean is negative), the second the largest beside it, and so on. They do not overlap.

        Parameters
        ----------
        label
            The class; None is the predicted class.
        count
            Largest number of stretches.

        Returns
        -------
        list of Stretch
            Empty if no step is above the mean.
        """
        row, sign = self.for_class(label)
        terms = sign * self.contributions[row]
        steps = terms.sum(axis=1)
        total = steps[steps > 0.0].sum()
        found = []
        for first, end in _largest_sums(steps - max(float(steps.mean()), 0.0), count):
            sums = terms[first:end].sum(axis=0)
            own = float(sums.sum())
            found.append(Stretch(first, end - 1, own, own / float(total), int(sums.argmax())))
        return found

    def nearest_landmarks(self, count: int = 5) -> IntArray:
        """Positions of the most similar landmarks, most similar first.

        Parameters
        ----------
        count
            Largest number of positions.

        Returns
        -------
        ndarray
            Positions in `landmark_indices`.
        """
        return np.argsort(-self.similarities, kind="stable")[:count]

    def for_class(self, label: Any = None) -> tuple[int, float]:
        """Find the decision value of a class and its sign.

        Two classes share one decision value, which supports the second class. Multiplied by -1,
        the value and its contributions support the first class.

        Parameters
        ----------
        label
            The class; None is the predicted class.

        Returns
        -------
        position : int
            Position in `classes`.
        sign : float
            1 or -1: the factor for decision, offset and contributions.
        """
        return decision_position(self.labels, self.predicted if label is None else label)

    def __repr__(self) -> str:
        decisions, steps, channels = self.contributions.shape
        return (
            f"Explanation({count(decisions, 'decision value')}, {count(steps, 'step')}, "
            f"{count(channels, 'channel')}, {count(len(self.landmark_indices), 'landmark')}; "
            f"predicted: {self.predicted})"
        )


def explain(model: Any, x: Any) -> Explanation:
    """Divide the decision values of one series into exact contributions.

    The paths are found on the CPU, regardless of the model's `device`.

    Parameters
    ----------
    model
        A fitted `LocalSLTSClassifier`, `SLTSClassifier`, `BBSClassifier` (or their CV variants) or
        `SimilaritySVC`.
    x
        One series, (channels, time), or anything that `predict` accepts with one series, such as
        a data frame in long form.

    Returns
    -------
    Explanation
        Contributions by landmark, step and channel. With the offset they sum to
        `model.decision_function([x])`.
    """
    linear = linear_model(model)
    series = model.check_series(_one_series(x))
    parts = linear.attribute(series)
    contributions = np.asarray(sum(part.contributions for part in parts))
    offset = linear.intercept + np.asarray(sum(part.rest for part in parts))
    decision = offset + contributions.sum(axis=(1, 2))
    by_map = np.column_stack([part.contributions.sum(axis=(1, 2)) + part.rest for part in parts])
    if linear.snippets is not None and linear.snippet_coef is not None:
        usual = linear.snippets.usual(series.lengths, linear.snippet_coef)
        by_map[:, -1] -= usual[0].sum(axis=1)
    return Explanation(
        predicted=model.classes_[decision.argmax() if len(decision) > 1 else int(decision[0] > 0)],
        classes=model.positive_classes_,
        labels=model.classes_,
        decision=decision,
        offset=offset,
        contributions=contributions,
        landmark_indices=model.landmark_indices_[linear.aligned[0].used],
        map_names=tuple(feature_map.name for feature_map in linear.maps),
        by_map=by_map,
        channel_names=series.channel_names or model.channel_names_in_,
        series=series,
        _model=linear,
        _name_of=model.series_name,
    )


def linear_model(model: Any) -> LinearModel:
    """Return the linear model of a classifier, or raise an error that says which have one."""
    linear = getattr(model, "model_", None)
    if isinstance(linear, LinearModel):
        return linear
    name = type(model).__name__
    if hasattr(model, "best_estimator_"):
        raise TypeError(f"{name} is a search. Explain its best_estimator_ instead.")
    if hasattr(model, "steps"):
        raise TypeError(
            f"{name} is a pipeline. Explain its last step, pipeline[-1], for series that the other "
            f"steps have transformed."
        )
    if hasattr(type(model), "landmarks_"):
        check_is_fitted(model)
    raise TypeError(
        f"{name} cannot be explained: its decisions are not linear in aligned products. Use "
        f"LocalSLTSClassifier, SLTSClassifier, BBSClassifier or SimilaritySVC."
    )


def required_snippets(linear: LinearModel) -> tuple[Snippets, FloatArray]:
    """Return the snippets of a model and their coefficients, or raise an error."""
    if linear.snippets is None or linear.snippet_coef is None:
        raise ValueError("The model has no snippets.")
    return linear.snippets, linear.snippet_coef


def decision_position(labels: npt.NDArray[Any], label: Any) -> tuple[int, float]:
    """Return the position of the decision value of a class, and its sign: 1 or -1.

    Two classes share one decision value, which supports the second class. Multiplied by -1, it
    supports the first class.
    """
    names = labels.tolist()
    if label not in names:
        listed = ", ".join(map(repr, names))
        raise ValueError(f"The 'label' parameter must be one of {listed}. Got {label!r} instead.")
    position = names.index(label)
    return (position, 1.0) if len(names) > 2 else (0, 1.0 if position else -1.0)


def _largest_sums(values: FloatArray, count: int) -> list[tuple[int, int]]:
    """Return begin and end of disjoint parts: the largest sum, then the largest beside it, ..."""

    def largest(begin: int, end: int) -> tuple[float, int, int, int, int]:
        sums = np.append(0.0, np.cumsum(values[begin:end]))
        last = int((sums - np.minimum.accumulate(sums)).argmax())
        # Of equal sums, the shortest.
        first = last - int(sums[last::-1].argmin())
        return float(sums[last] - sums[first]), begin, begin + first, begin + last, end

    found, pieces = list[tuple[int, int]](), [largest(0, len(values))]
    while len(found) < count and (best := max(pieces))[0] > 0.0:
        pieces.remove(best)
        _, begin, first, last, end = best
        found.append((first, last))
        pieces += [largest(begin, first), largest(last, end)]
    return found


def _one_series(x: Any) -> SeriesBatch:
    # A list of (channels, time) arrays is a collection, any other list or array is one series.
    is_list = isinstance(x, list | tuple) and len(x) > 0 and np.ndim(x[0]) == 2
    no_array = not isinstance(x, list | tuple) and (is_table(x) or not hasattr(x, "__array__"))
    collection = is_list or isinstance(x, SeriesBatch) or getattr(x, "ndim", 0) == 3 or no_array
    # The model knows its number of channels, so the order of the axes is not in doubt.
    batch = as_series(x if collection else [x], layout="channels_first")
    if len(batch) != 1:
        raise ValueError(
            f"The 'x' parameter of explain must be one series, such as X[0]. Got {len(batch)} "
            f"series instead."
        )
    return batch
