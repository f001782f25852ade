"""Exact explanations of decisions: `explain` for one series, `summarize` for a whole model.

A decision is linear in the aligned products, and a product is a sum over the cells of a path. Let
s_ij be the sum of the rows of landmark j aligned with step i, divided by the length of the path:

    decision_c = intercept_c + sum_j coef_cj sum_i a_i' M_c s_ij .

The contribution of channel u at step i is sum_j coef_cj a_iu (M_c s_ij)_u. With several phases,
s_ij is split by phase and each phase has its own metric. With several comparisons, their
contributions are added. The constant channel is not a channel of the data: its terms belong to the
offset. What a snippet adds at a step, compared with a mean step of the training series, is divided
evenly among the steps that it is compared with (an end that is repeated counts once), and among its
channels. What mean steps add belongs to the intercept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment import Alignment
from slts.models.linear_form import LinearForm, decision_of
from slts.models.row_map import RowMap
from slts.models.snippets import SnippetForm
from slts.quantities import count
from slts.series import SeriesBatch, as_series

__all__ = ["Explanation", "ModelSummary", "explain", "summarize"]

# Series that are averaged over, if each of them takes long.
_MOST_EXPLAINED = 100
# Number of smallest thresholds that count as a close occurrence.
_CLOSE = 2


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
    by_landmark
        Contribution of each landmark, shape (decisions, landmarks), with the constant channel.
    by_snippet
        Contribution of each snippet, compared with a mean training series, shape (decisions,
        snippets); no columns if the model has none.
    intercept
        The part that belongs to no landmark and no snippet, shape (decisions,): the model's
        intercept, and what the snippets of a mean training series with as many steps add.
        ``intercept + by_landmark.sum(axis=1) + by_snippet.sum(axis=1)`` is the decision.
    comparison_names, by_comparison
        The comparisons of the model and the contribution of each, shape (decisions, comparisons).
        These values plus the intercept sum to the decision.
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
    by_landmark: FloatArray
    by_snippet: FloatArray
    intercept: FloatArray
    comparison_names: tuple[str, ...]
    by_comparison: FloatArray
    channel_names: tuple[str, ...] | None
    series: SeriesBatch
    _name_of: Callable[[int], str]
    _aligned: tuple[_AlignedForm, ...]
    _snippets: _CountedForm | None

    @cached_property
    def landmark_names(self) -> tuple[str, ...]:
        """What the user calls the landmarks: "walk, recording 17"."""
        return tuple(map(self._name_of, self.landmark_indices.tolist()))

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
        """K_I to the landmarks in the first comparison, shape (landmarks,)."""
        return self._aligned[0].similarities()

    @cached_property
    def alignments(self) -> tuple[Alignment, ...]:
        """Path to each landmark in the first comparison.

        Paths count the steps that are aligned: the averaged steps of long series, without those at
        which nothing is observed.
        """
        return self._aligned[0].alignments()

    def of_landmark(self, position: int, comparison: int | None = None) -> FloatArray:
        """Contributions through one landmark, shape (decisions, steps, channels).

        Parameters
        ----------
        position
            Position in `landmark_indices`.
        comparison
            Position in `comparison_names`; None sums over all comparisons.

        Returns
        -------
        ndarray
            The sum over all landmarks and snippets is `contributions`.
        """
        chosen = self._aligned if comparison is None else (self._aligned[comparison],)
        return np.asarray(sum(form.of_landmark(position) for form in chosen))

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
        return self._counted().contributions(np.array([position]))[0]

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
        return self._counted().occurrences(position)

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

    def _counted(self) -> _CountedForm:
        if self._snippets is None:
            raise ValueError("The model has no snippets.")
        return self._snippets

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
        return decision_of(self.labels, self.predicted if label is None else label)

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
    return explain_with(model, linear_forms(model), x)


def explain_with(model: Any, forms: tuple[LinearForm | SnippetForm, ...], x: Any) -> Explanation:
    """`explain` for many series: the caller computes the linear forms of the model once."""
    batch = model.check_series(_one_series(x))
    traced = tuple(
        _CountedForm(form, batch) if isinstance(form, SnippetForm) else _AlignedForm(form, batch)
        for form in forms
    )
    aligned = tuple(form for form in traced if isinstance(form, _AlignedForm))
    counted = next((form for form in traced if isinstance(form, _CountedForm)), None)
    parts = [form.contributions() for form in traced]
    contributions = np.asarray(sum(terms for terms, _ in parts))
    intercept = np.asarray(sum(one.form.intercept for one in aligned))
    if counted is not None:
        intercept = intercept + counted.form.baseline(batch.n_steps)
    offset = intercept + np.asarray(sum(constant for _, constant in parts))
    decision = offset + contributions.sum(axis=(1, 2))
    return Explanation(
        predicted=model.classes_[decision.argmax() if len(decision) > 1 else int(decision[0] > 0)],
        classes=forms[0].positives,
        labels=model.classes_,
        decision=decision,
        offset=offset,
        contributions=contributions,
        landmark_indices=aligned[0].form.landmark_indices,
        by_landmark=np.asarray(sum(form.by_landmark() for form in aligned)),
        by_snippet=np.empty((len(decision), 0)) if counted is None else counted.by_snippet,
        intercept=intercept,
        comparison_names=tuple(form.name for form in forms),
        by_comparison=np.column_stack(
            [terms.sum(axis=(1, 2)) + constant for terms, constant in parts]
        ),
        channel_names=batch.channel_names or model.channel_names_in_,
        series=batch,
        _name_of=model.series_name,
        _aligned=aligned,
        _snippets=counted,
    )


class _CountedForm:
    """One series, and where the snippets of one form occur in it."""

    def __init__(self, form: SnippetForm, batch: SeriesBatch) -> None:
        self.form, self.batch = form, batch
        self._all = form.attribute(batch)
        self.by_snippet = self._all[1]

    def contributions(self, which: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Contributions of some or all snippets, and those of channels that are not observed."""
        terms, by_snippet = self._all if which is None else self.form.attribute(self.batch, which)
        return terms, by_snippet.sum(axis=1) - terms.sum(axis=(1, 2))

    def occurrences(self, position: int) -> IntArray:
        """Number of thresholds of one snippet that each step meets."""
        ((_, met),) = self.form.occurrences(self.batch, np.array([position]))
        return np.asarray(met[0], dtype=np.int64)


class _AlignedForm:
    """One series aligned with the landmarks of one linear form."""

    def __init__(self, form: LinearForm, batch: SeriesBatch) -> None:
        self.form = form
        self._traced = form.rows.traced(batch)
        self._rows = self._traced.rows
        # s_ij by landmark, phase, step of the series and channel (or direction of the basis).
        sums = form.exact_aligner.sums(self._rows, n_phases=form.n_phases)
        self._sums = np.asarray(sums, dtype=np.float64)

    def contributions(self) -> tuple[FloatArray, FloatArray]:
        """Contributions through all landmarks, and their constant part: see `TracedRows`."""
        return self._traced.attribute(self.form.slopes(self._sums))

    def of_landmark(self, position: int) -> FloatArray:
        """Contributions through one landmark."""
        form = self.form
        factors = form.factors[:, form.groups[position]]
        slopes = (self._sums[position] @ factors.swapaxes(2, 3)).sum(axis=1)
        slopes *= form.coef[:, position, np.newaxis, np.newaxis]
        return self._traced.attribute(slopes)[0]

    def by_landmark(self) -> FloatArray:
        """The part of each landmark, shape (decisions, landmarks)."""
        return self.form.by_landmark(self._rows.values, self._sums)

    def similarities(self) -> FloatArray:
        """K_I to each landmark."""
        return np.asarray(self.form.exact_aligner.similarities(self._rows)[0])

    def alignments(self) -> tuple[Alignment, ...]:
        """Path to each landmark."""
        landmarks = range(len(self.form.landmarks))
        return tuple(self.form.exact_aligner.path(self._rows, j) for j in landmarks)


def landmark_forms(model: Any) -> list[LinearForm]:
    """The linear forms over landmarks, one for each comparison."""
    return [form for form in linear_forms(model) if isinstance(form, LinearForm)]


def snippet_form(model: Any) -> SnippetForm | None:
    """The linear form over snippets; None if the model has none."""
    forms = model.linear_forms() if hasattr(model, "linear_forms") else ()
    return next((form for form in forms if isinstance(form, SnippetForm)), None)


def linear_forms(model: Any) -> tuple[LinearForm | SnippetForm, ...]:
    """Return the linear forms of a model, or raise an error that says what has them."""
    if hasattr(model, "linear_forms"):
        forms: tuple[LinearForm | SnippetForm, ...] = model.linear_forms()
        return forms
    name = type(model).__name__
    if hasattr(model, "best_estimator_"):
        raise TypeError(f"{name} is a search. Explain its best_estimator_ instead.")
    if hasattr(model, "steps"):
        raise TypeError(
            f"{name} is a pipeline. Explain its last step, pipeline[-1], for series that the other "
            f"steps have transformed."
        )
    raise TypeError(
        f"{name} cannot be explained: its decisions are not linear in aligned products. Use "
        f"LocalSLTSClassifier, SLTSClassifier, BBSClassifier or SimilaritySVC."
    )


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
    comparison_names, comparison_importance
        The comparisons, and the mean absolute contribution of each, shape (decisions,
        comparisons).
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
    comparison_names: tuple[str, ...]
    comparison_importance: FloatArray
    snippet_importance: FloatArray
    snippet_effect: FloatArray
    landmark_indices: IntArray
    landmark_weights: FloatArray
    singular_values: FloatArray | None
    n_landmarks_used: IntArray
    n_numbers: int


def summarize(model: Any, X: Any = None, *, n_jobs: int | None = None) -> ModelSummary:
    """Summarize which channels, comparisons and landmarks a model uses.

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
    forms = linear_forms(model)
    form = forms[0]
    assert isinstance(form, LinearForm)
    pairs = singular_values = None
    strength = effect = np.empty((len(form.positives), 0))
    if len(forms) == 1 and form.has_one_metric and isinstance(form.rows, RowMap):
        rows = form.landmarks if X is None else form.rows(model.check_series(X))
        # Shape (series, decisions, d, d).
        terms = np.zeros((1, *form.metrics.shape))
        if len(form.landmarks):
            aligner = replace(form.aligner, device=model.device, n_jobs=n_jobs)
            terms = form.metrics * aligner.grouped(rows, form.coef)
        pairs = np.abs(terms).mean(axis=0)
        channels = np.abs(terms.sum(axis=3)).mean(axis=0)
        comparisons = np.abs(terms.sum(axis=(2, 3))).mean(axis=0)[:, np.newaxis]
        singular_values = np.linalg.svd(form.metrics, compute_uv=False).astype(np.float64)
        n_numbers = form.metrics.size + np.count_nonzero(form.coef) + form.landmarks.values.size
    else:
        batch = model.landmarks_ if X is None else model.check_series(X)
        # Each series is explained separately, which is slow: a part is enough for a mean.
        some = batch[even_choice(len(batch))]
        found = [explain_with(model, forms, x) for x in some]
        if isinstance(forms[-1], SnippetForm):
            strength, effect = snippet_strength(forms[-1], some, n_jobs)
        channels = np.mean([np.abs(one.by_channel) for one in found], axis=0)
        comparisons = np.mean([np.abs(one.by_comparison) for one in found], axis=0)
        n_numbers = model.n_numbers_
    return ModelSummary(
        classes=form.positives,
        channel_importance=channels,
        pair_importance=pairs,
        comparison_names=tuple(form.name for form in forms),
        comparison_importance=comparisons,
        snippet_importance=strength,
        snippet_effect=effect,
        landmark_indices=form.landmark_indices,
        landmark_weights=form.coef,
        singular_values=singular_values,
        n_landmarks_used=np.count_nonzero(form.coef, axis=1),
        n_numbers=int(n_numbers),
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
    form = landmark_forms(model)[0]
    if isinstance(form.rows, RowMap):
        return form.coef, True
    features = model.transform(model.landmarks_) if features is None else features
    terms = features.reshape(len(features), len(form.coef), -1)[:, :, : len(form.landmarks)]
    return np.abs(terms - terms.mean(axis=0)).mean(axis=0), False


def snippet_strength(
    form: SnippetForm, batch: SeriesBatch, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Importance and effect of each snippet, shape (decisions, snippets).

    See `ModelSummary`. The mean of what a snippet adds has no useful sign: compared with a mean
    training series, it is nearly zero.
    """
    counts = form.snippets.counts(batch, n_jobs)
    terms = form.contributions(counts, batch.lengths)
    terms -= terms.mean(axis=0)
    close = counts[:, :, :_CLOSE].sum(axis=2)
    shares = close / batch.lengths[:, np.newaxis]
    shares -= shares.mean(axis=0)
    strength = np.abs(terms).mean(axis=0)
    return strength, np.sign(np.einsum("ick,ik->ck", terms, shares)) * strength


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
    form, landmarks = snippet_form(model), model.landmarks_
    assert form is not None
    _, weights = snippet_strength(form, landmarks[even_choice(len(landmarks))], model.n_jobs)
    batch = landmarks if batch is None else batch
    places = even_choice(len(batch))
    some = batch[places]
    added = form.contributions(form.snippets.counts(some, model.n_jobs), some.lengths)

    def side(decision: int, sign: float) -> list[ShownSnippet]:
        own, terms = weights[decision], added[:, decision]
        order = np.argsort(-np.abs(own), kind="stable")
        found = []
        for k in order[sign * own[order] > 0][:count].tolist():
            best = int(np.argmax(sign * terms[:, k]))
            found.append(ShownSnippet(k, float(own[k]), int(places[best]), float(terms[best, k])))
        return found

    return [(side(decision, 1.0), side(decision, -1.0)) for decision in range(len(weights))]


def snippet_in_series(
    form: SnippetForm, snippet: int, series: SeriesBatch
) -> tuple[int, FloatArray]:
    """The step of one series at which a snippet is closest, and what it adds at each step.

    The second has shape (decisions, steps).
    """
    which = np.array([snippet])
    ((_, distances),) = form.snippets.distances(series, which)
    ((_, met),) = form.occurrences(series, which)
    added = form.step_weights(series.n_steps)[:, snippet, met[0]]
    return int(distances[0].argmin()), added
