"""What a whole model uses: channels, feature maps, landmarks and snippets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.features.explanation import decision_position, explain, linear_model, required_snippets
from slts.features.feature_map import Resources
from slts.features.models import LinearModel
from slts.features.snippets import Snippets
from slts.series import SeriesBatch

# Series that are averaged over: each of them is explained separately, which takes long.
_MOST_EXPLAINED = 100
# Number of smallest thresholds that count as a close occurrence.
_CLOSE = 2


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
    n_landmarks_used
        Number of landmarks with a nonzero weight, per decision.
    n_numbers
        Numbers stored by the model: metrics, nonzero weights, values of the landmarks.
    """

    classes: npt.NDArray[Any]
    channel_importance: FloatArray
    map_names: tuple[str, ...]
    map_importance: FloatArray
    snippet_importance: FloatArray
    snippet_effect: FloatArray
    landmark_indices: IntArray
    landmark_weights: FloatArray
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
        channels = np.abs(terms.sum(axis=3)).mean(axis=0)
        by_map = np.abs(terms.sum(axis=(2, 3))).mean(axis=0)[:, np.newaxis]
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
        map_names=tuple(feature_map.name for feature_map in linear.maps),
        map_importance=by_map,
        snippet_importance=strength,
        snippet_effect=effect,
        landmark_indices=model.landmark_indices_[used],
        landmark_weights=weights[:, used],
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
