"""Exact explanations of decisions: `explain` for one series, `summarize` for a whole model.

A decision is linear in the aligned products, and a product is a sum over the cells of a path. Let
s_ij be the sum of the rows of landmark j aligned with step i, divided by the length of the path:

    decision_c = intercept_c + sum_j weight_cj sum_i a_i' M_c s_ij .

The contribution of channel u at step i is sum_j weight_cj a_iu (M_c s_ij)_u. With several phases,
s_ij is split by phase and each phase has its own metric. Contributions of several feature maps are
added. The constant channel is not a channel of the data: its terms belong to the offset. What a
snippet adds at a step, compared with a mean training step, is divided evenly among the steps that
it is compared with (an end that is repeated counts once), and among its channels. What mean steps
add belongs to the offset.
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
from slts.features.linear_model import LinearModel
from slts.features.snippets import Snippets
from slts.quantities import count
from slts.series import SeriesBatch, as_series

__all__ = ["Explanation", "ModelSummary", "explain", "summarize"]

# Series that are averaged over: each of them is explained separately, which takes long.
_MOST_EXPLAINED = 100
# Number of smallest thresholds that count as a close occurrence.
_CLOSE = 2
_ON_CPU = Resources("cpu", 1)


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
        The part that belongs to no step and no channel: intercept, constant channel, and snippets
        in channels that have no value in the series; shape (decisions,).
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
        One series, (channels, time), or a batch of one series.

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


def _one_series(x: Any) -> SeriesBatch:
    # A list of (channels, time) arrays is a collection, any other list or array is one series.
    is_list = isinstance(x, list | tuple) and len(x) > 0 and np.ndim(x[0]) == 2
    no_array = not isinstance(x, list | tuple) and not hasattr(x, "__array__")
    collection = is_list or isinstance(x, SeriesBatch) or getattr(x, "ndim", 0) == 3 or no_array
    # The model knows its number of channels, so the order of the axes is not in doubt.
    batch = as_series(x if collection else [x], layout="channels_first")
    if len(batch) != 1:
        raise ValueError(
            f"The 'x' parameter of explain must be one series, such as X[0]. Got {len(batch)} "
            f"series instead."
        )
    return batch


@dataclass(frozen=True, eq=False)
class ModelSummary:
    """Importance and size of the parts of a model, one row per decision value.

    Parameters
    ----------
    classes
        The class that each decision value supports.
    channel_importance
        Mean absolute contribution of each channel, shape (decisions, channels). For a model with
        one metric per class the last channel can be the constant one.
    pair_importance
        Mean absolute contribution of each pair (channel of the series, channel of the landmarks),
        shape (decisions, d, d). None for a model with several metrics per class.
    map_names, map_importance
        The feature maps, and the mean absolute contribution of each, shape (decisions, maps).
    snippet_importance
        How much the contribution of each snippet differs between series: its mean absolute
        deviation from its mean, shape (decisions, snippets); no columns if the model has none.
        A contribution that is the same for all series has no importance.
    snippet_effect
        `snippet_importance` with a sign. Positive if a snippet adds more to series in which it
        occurs closely more often, so that it counts for the class. Negative if it adds less. Zero
        if it does not occur closely.
    landmark_indices
        Training series with a nonzero weight in at least one decision.
    landmark_weights
        Their weights, shape (decisions, landmarks).
    singular_values
        Singular values of each metric, largest first, shape (decisions, d). None for a model with
        several metrics per class.
    n_landmarks_used
        Number of landmarks with a nonzero weight, per decision.
    n_numbers
        Numbers stored by the model: metrics, nonzero weights, values of the landmarks.
    """

    classes: npt.NDArray[Any]
    channel_importance: FloatArray
    pair_importance: FloatArray | None
    map_names: tuple[str, ...]
    map_importance: FloatArray
    snippet_importance: FloatArray
    snippet_effect: FloatArray
    landmark_indices: IntArray
    landmark_weights: FloatArray
    singular_values: FloatArray | None
    n_landmarks_used: IntArray
    n_numbers: int


def summarize(model: Any, X: Any = None, *, n_jobs: int | None = None) -> ModelSummary:
    """Summarize which channels, feature maps and landmarks a model uses.

    Parameters
    ----------
    model
        A fitted classifier that `slts.explain` accepts. A model with one metric per class is
        aligned on its `device`.
    X
        Series to average over; None averages over the model's own landmarks. For a model with
        several metrics per class, about 100 of them are used.
    n_jobs
        Number of threads, by joblib's convention, for snippets and for the alignments of a model
        with one metric per class. Other models are explained series by series.

    Returns
    -------
    ModelSummary
        Importances, weights, singular values and sizes.
    """
    linear = linear_model(model)
    landmarks = linear.aligned[0]
    batch = landmarks.landmarks if X is None else model.check_series(X)
    pairs = singular_values = None
    strength = effect = np.empty((len(linear.intercept), 0))
    weights = np.broadcast_to(
        landmarks.weights.max(axis=0), (len(linear.intercept), landmarks.n_landmarks)
    )
    if landmarks.bank_per_output:
        weights, metrics = landmarks.weights, linear.coefs[0][:, 0, 0]
        # Shape (series, decisions, d, d).
        terms = np.zeros((1, *metrics.shape))
        if len(landmarks.used):
            resources = Resources(model.device, n_jobs)
            terms = landmarks(batch, resources)[:, :, 0] * metrics
        pairs = np.abs(terms).mean(axis=0)
        channels = np.abs(terms.sum(axis=3)).mean(axis=0)
        by_map = np.abs(terms.sum(axis=(2, 3))).mean(axis=0)[:, np.newaxis]
        singular_values = np.linalg.svd(metrics, compute_uv=False).astype(np.float64)
    else:
        # Each series is explained separately, which is slow: a part is enough for a mean.
        some = batch[even_choice(len(batch))]
        explanations = [explain(model, x) for x in some]
        if linear.snippets is not None:
            strength, effect = snippet_strength(linear, some, n_jobs)
        channels = np.mean([np.abs(one.by_channel) for one in explanations], axis=0)
        by_map = np.mean([np.abs(one.by_map) for one in explanations], axis=0)
    used = landmarks.used
    return ModelSummary(
        classes=model.positive_classes_,
        channel_importance=channels,
        pair_importance=pairs,
        map_names=tuple(feature_map.name for feature_map in linear.maps),
        map_importance=by_map,
        snippet_importance=strength,
        snippet_effect=effect,
        landmark_indices=model.landmark_indices_[used],
        landmark_weights=weights[:, used],
        singular_values=singular_values,
        n_landmarks_used=np.count_nonzero(weights, axis=1),
        n_numbers=linear.n_numbers,
    )


def even_choice(count: int, most: int = _MOST_EXPLAINED) -> IntArray:
    """Positions of at most `most` of `count` series, evenly chosen."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def landmark_effects(model: Any, features: FloatArray | None = None) -> tuple[FloatArray, bool]:
    """Effect of each landmark on each decision value, for pictures.

    Parameters
    ----------
    model
        A fitted classifier that `slts.explain` accepts.
    features
        What its `transform` returns for some series; None takes the landmarks.

    Returns
    -------
    effects : ndarray
        Shape (decisions, landmarks): the weights of the landmarks. In a model with local metrics,
        how much the contribution of a landmark differs between series: its mean absolute deviation.
    weighted : bool
        Whether the effects are weights.
    """
    landmarks = linear_model(model).aligned[0]
    if landmarks.bank_per_output:
        return landmarks.weights[:, landmarks.used], True
    features = model.transform(landmarks.landmarks) if features is None else features
    terms = features.reshape(len(features), len(model.positive_classes_), -1)
    terms = terms[:, :, : landmarks.n_landmarks]
    return np.abs(terms - terms.mean(axis=0)).mean(axis=0), False


def class_metrics(model: Any, label: Any, feature_map: int = 0) -> FloatArray:
    """Metrics of one class for its own landmarks, one for each phase: shape (phases, d, d).

    Without landmarks of the class only, they are those for the bank with the largest metrics. The
    two classes of a classifier with landmark weights share their metric.
    """
    linear = linear_model(model)
    position, sign = decision_position(model.classes_, label)
    metrics = linear.metrics(feature_map)[position]
    if linear.aligned[feature_map].bank_per_output:
        return np.asarray(metrics[0])
    bank = int(np.square(metrics).sum(axis=(1, 2, 3)).argmax())
    if str(label) in model.bank_names_:
        bank = model.bank_names_.index(str(label))
    return np.asarray(sign * metrics[bank])


def snippet_strength(
    linear: LinearModel, batch: SeriesBatch, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Importance and effect of each snippet, shape (decisions, snippets).

    See `ModelSummary`. The mean of what a snippet adds has no useful sign: compared with a mean
    training series, it is nearly zero.
    """
    snippets, coef = required_snippets(linear)
    features = snippets(batch, Resources("cpu", n_jobs))
    terms = _snippet_terms(snippets, coef, features, batch)
    terms -= terms.mean(axis=0)
    shares = features[:, :, :_CLOSE, 0].sum(axis=2)
    shares -= shares.mean(axis=0)
    strength = np.abs(terms).mean(axis=0)
    return strength, np.sign(np.einsum("ick,ik->ck", terms, shares)) * strength


def _snippet_terms(
    snippets: Snippets, coef: FloatArray, features: FloatArray, batch: SeriesBatch
) -> FloatArray:
    """Return what each snippet adds, compared with a mean training series.

    Shape (series, decisions, snippets).
    """
    parts = np.einsum("ikqm,ckqm->ick", features, coef, optimize=True)
    return np.asarray(parts - snippets.usual(batch.lengths, coef))


class ShownSnippet(NamedTuple):
    """A snippet that counts for or against a class, and a series in which it adds most.

    Attributes
    ----------
    snippet
        Its position in the model's `snippets_`.
    weight
        Its `snippet_effect` over the landmarks; see `ModelSummary`.
    example, adds
        Position of the series, and what the snippet adds in it.
    """

    snippet: int
    weight: float
    example: int
    adds: float


def snippets_to_show(
    model: Any, batch: SeriesBatch | None, count: int
) -> list[tuple[list[ShownSnippet], list[ShownSnippet]]]:
    """For each decision value, up to `count` snippets for it and against it, strongest first.

    Examples are chosen among at most 100 series of the batch; None takes the landmarks.
    """
    linear, landmarks = linear_model(model), model.landmarks_
    snippets, coef = required_snippets(linear)
    _, weights = snippet_strength(linear, landmarks[even_choice(len(landmarks))], model.n_jobs)
    batch = landmarks if batch is None else batch
    places = even_choice(len(batch))
    some = batch[places]
    features = snippets(some, Resources("cpu", model.n_jobs))
    added = _snippet_terms(snippets, coef, features, some)

    def side(decision: int, sign: float) -> list[ShownSnippet]:
        effects, terms = weights[decision], added[:, decision]
        order = np.argsort(-np.abs(effects), kind="stable")
        shown = []
        for k in order[sign * effects[order] > 0][:count].tolist():
            best = int(np.argmax(sign * terms[:, k]))
            shown.append(
                ShownSnippet(k, float(effects[k]), int(places[best]), float(terms[best, k]))
            )
        return shown

    return [(side(decision, 1.0), side(decision, -1.0)) for decision in range(len(weights))]


def snippet_in_series(
    linear: LinearModel, snippet: int, series: SeriesBatch
) -> tuple[int, FloatArray]:
    """The step of one series at which a snippet is closest, and what it adds at each step.

    The second has shape (decisions, steps).
    """
    snippets, coef = required_snippets(linear)
    which = np.array([snippet])
    ((_, distances),) = snippets.distances(series, which)
    met = snippets.occurrences(series, which)[0]
    added = snippets.step_weights(series.n_steps, coef)[snippet, met].T
    return int(distances[0].argmin()), added
