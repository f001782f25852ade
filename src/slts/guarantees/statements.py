"""From a classifier and a sample to `Bound` objects: the formulas applied, and put in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.guarantees import bounds
from slts.guarantees.certificate import Bound, Bounded
from slts.quantities import count
from slts.series import SeriesBatch

INDEPENDENT = "the series are independent draws from the population of future series"
INDEPENDENT_GROUPS = (
    "the groups are independent draws from the population of future groups, and the model was not "
    "trained on series of these groups; series of the same group may depend on each other"
)
FIXED_LANDMARKS = "landmarks are independent of the certified series"
UNIT_ROWS = "rows have at most unit length, so every Z has norm at most 1"

_ONE_VS_REST = 'the classifier\'s "is it this class or not"'
_EQUAL_WEIGHTS = "the classifier with equal weights of all landmarks"

# Size of the aligned products held in memory at once.
_BLOCK_BYTES = 64 * 2**20


def signs_of(labels: AnyArray, classes: AnyArray) -> FloatArray:
    """+1 where a label is the class of a one-vs-rest problem, else -1; (problems, labels)."""
    return np.stack([np.where(labels == positive, 1.0, -1.0) for positive in classes])


@dataclass(frozen=True)
class BoundInputs:
    """Margins, similarities and sizes of a sample under every one-vs-rest problem.

    Attributes
    ----------
    labels
        +1 or -1, shape (problems, series).
    margins
        l_i <M, Z_i>/gamma, shape (problems, series).
    squares
        ||Z_i||_F^2, shape (problems, series).
    similarities
        K_M, shape (problems, series, landmarks).
    product_squares
        ||T_ij||_F^2, shape (series, landmarks).
    """

    labels: FloatArray
    margins: FloatArray
    squares: FloatArray
    similarities: FloatArray
    product_squares: FloatArray

    @property
    def m(self) -> int:
        """Number of series."""
        return int(self.labels.shape[1])

    @property
    def losses(self) -> FloatArray:
        """Hinge losses of M, shape (problems, series)."""
        return np.maximum(0.0, 1.0 - self.margins)

    def take(self, indices: IntArray) -> BoundInputs:
        """The inputs of some of the series."""
        return BoundInputs(
            self.labels[:, indices],
            self.margins[:, indices],
            self.squares[:, indices],
            self.similarities[:, indices],
            self.product_squares[indices],
        )


def bound_inputs(
    model: LandmarkClassifier, batch: SeriesBatch, labels: AnyArray, landmark_labels: AnyArray
) -> BoundInputs:
    """Align a sample with the landmarks, block by block, and keep what the bounds need."""
    rows, landmarks = model.row_map_(batch), model.row_map_(model.landmarks_)
    m, n, d, n_problems = len(rows), len(landmarks), rows.n_channels, len(model.coef_)
    metrics = np.asarray(model.metrics_).reshape(n_problems, d * d)
    landmark_signs = signs_of(landmark_labels, model.positive_classes_) / n
    scores, squares = np.empty((m, n_problems)), np.empty((m, n_problems))
    similarities, product_squares = np.empty((n_problems, m, n)), np.empty((m, n))
    step = max(1, _BLOCK_BYTES // (8 * n * d * d))
    aligner = Aligner(landmarks, model.row_map_.settings, model.device, model.n_jobs)
    for begin in range(0, m, step):
        part = slice(begin, begin + step)
        T = aligner.products(rows[part])
        flat = T.astype(np.float64, copy=False).reshape(len(T), n, d * d)
        Z = landmark_signs @ flat
        scores[part] = np.einsum("ice,ce->ic", Z, metrics)
        squares[part] = np.einsum("ice,ice->ic", Z, Z)
        similarities[:, part] = np.moveaxis(flat @ metrics.T, 2, 0)
        product_squares[part] = np.einsum("ije,ije->ij", flat, flat)
    signs = signs_of(labels, model.positive_classes_)
    margins = signs * scores.T / model.fit_params_["gamma"]
    # Rounding may push the norm of a unit matrix above 1.
    return BoundInputs(signs, margins, np.minimum(squares, 1.0).T, similarities, product_squares)


@dataclass(frozen=True)
class Conditions:
    """What all bounds from one sample share.

    Attributes
    ----------
    classes, labels
        Positive class of each one-vs-rest problem, and +1 or -1, shape (problems, series).
    delta
        Probability of failure of each bound.
    n_models
        Number of models that share delta. Each divides its share among its one-vs-rest problems.
    checked, unchecked
        Assumptions that were verified, and assumptions that only the user can verify.
    groups
        Group of every series if groups are the independent draws; None if the series are.
    draws
        Number of the draw of every series, if fewer series or groups are independent because some
        are copies of others; None otherwise.
    """

    classes: AnyArray
    labels: FloatArray
    delta: float
    n_models: int
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    groups: AnyArray | None = None
    draws: IntArray | None = None

    def rate(self, events: AnyArray) -> float:
        """Return how often an event occurs: in all series, or on average in a group."""
        if self.groups is None:
            return float(np.mean(events))
        return bounds.mean_over_groups(events, self.groups)[0]

    def error_bound(self, wrong: AnyArray, delta: float) -> float:
        """Bound the error from the errors among held-out series, or held-out groups.

        Copies may be independent draws that are equal by chance, or one draw that was repeated: the
        larger of both bounds holds in both cases. A draw is wrong if one of its copies is.
        """
        if self.groups is None:
            counts = [(int(np.count_nonzero(wrong)), len(wrong))]
            if self.draws is not None:
                counts.append((len(np.unique(self.draws[wrong])), int(self.draws.max()) + 1))
            return max(bounds.clopper_pearson(errors, n, delta) for errors, n in counts)
        return max(
            bounds.group_error_bound(*bounds.mean_over_groups(wrong, of), delta)
            for of in (self.groups, self.draws)
            if of is not None
        )

    @property
    def share(self) -> float:
        """Probability of failure of one one-vs-rest problem of one model."""
        return self.delta / (self.n_models * len(self.classes))

    @property
    def new_series(self) -> str:
        """What a bound on the error is about."""
        return "new series" if self.groups is None else "the series of a new group, on average"

    def state(
        self, name: str, what: Bounded, value: float, vacuous: bool, claim: str, details: Any
    ) -> Bound:
        """Build a bound whose sentence begins with the confidence."""
        sentence = f"With confidence {100 * (1 - self.delta):.6g}%, {claim}"
        return Bound(name, what, value, vacuous, sentence, self.checked, self.unchecked, details)

    def join(
        self,
        name: str,
        values: Sequence[float],
        *,
        what: Bounded = "0-1 error",
        subject: str = _ONE_VS_REST,
        **details: Any,
    ) -> Bound:
        """Join the bounds of all one-vs-rest problems into one: the largest.

        `subject` is what may be wrong, in the sentence about an error.
        """
        worst = float(max(values))
        if what == "0-1 error":
            positive = np.array([self.rate(signs > 0.0) for signs in self.labels])
            trivial, constant = np.minimum(positive, 1.0 - positive), "a constant prediction"
            claim = f"{subject} is wrong on at most {worst:.2%} of {self.new_series}."
        else:
            trivial, constant = np.ones(len(values)), "M = 0"
            claim = f"the mean hinge loss of the metric on new series is at most {worst:.4g}."
        vacuous = np.asarray(values) >= trivial
        if len(values) > 1:
            claim += f" This holds for all {len(values)} classes at once."
        if vacuous.all():
            claim += f" This bound is vacuous: {constant} does as well."
        elif vacuous.any():
            claim += f" It is vacuous for {np.count_nonzero(vacuous)} of them."
        common = {
            "by_class": self.by_class(values),
            "mean": float(np.mean(values)),
            "trivial": float(trivial.min()),
            "n": self.labels.shape[1],
        }
        return self.state(name, what, worst, bool(vacuous.any()), claim, {**common, **details})

    def by_class(self, values: Sequence[float]) -> dict[str, float]:
        """The value of every one-vs-rest problem by the name of its class."""
        names = map(str, self.classes)
        return {name: float(value) for name, value in zip(names, values, strict=True)}


def hold_out_error(predicted: AnyArray, truth: AnyArray, conditions: Conditions) -> Bound:
    """Bound for the multiclass classifier: Clopper-Pearson, or over the means of groups."""
    wrong = predicted != truth
    errors, n = int(np.count_nonzero(wrong)), len(truth)
    value = conditions.error_bound(wrong, conditions.delta / conditions.n_models)
    base_rate = min(conditions.rate(truth != label) for label in np.unique(truth))
    claim = (
        f"the classifier is wrong on at most {value:.2%} of {conditions.new_series}. It was wrong "
        f"on {errors} of {n} ({errors / n:.2%}) held-out series"
    )
    details: dict[str, Any] = {"errors": errors, "n": n, "trivial": base_rate}
    if conditions.groups is not None:
        rate, n_groups = bounds.mean_over_groups(wrong, conditions.groups)
        details |= {"n_groups": n_groups, "mean_of_groups": rate}
        claim += f"; the mean over {count(n_groups, 'group')} is {rate:.2%}"
    if conditions.draws is not None:
        details["n_draws"] = n_draws = int(conditions.draws.max()) + 1
        claim += f"; copies count once: {count(n_draws, 'independent draw')}"
    claim += "."
    if value >= base_rate:
        claim += " Always predicting the most frequent class might do as well."
    return conditions.state(
        "hold-out error", "0-1 error", value, value >= base_rate, claim, details
    )


def hold_out_one_vs_rest(decisions: FloatArray, conditions: Conditions) -> Bound:
    """Bound for the sign of every decision value, as `hold_out_error`; (problems, series)."""
    wrong = conditions.labels * decisions <= 0.0
    values = [conditions.error_bound(events, conditions.share) for events in wrong]
    errors = np.count_nonzero(wrong, axis=1).tolist()
    return conditions.join("hold-out error, one-vs-rest", values, errors=errors)


def metric_bounds(
    model: LandmarkClassifier, training: BoundInputs, certified: BoundInputs, conditions: Conditions
) -> list[Bound]:
    """Bounds on the hinge risk of every M from the series it was learned on.

    `training` are all training series, `certified` those that the landmarks are independent of.
    """
    gamma, lam = model.fit_params_["gamma"], model.fit_params_["lam"]
    m, n, d = certified.m, training.m, model.metrics_.shape[-1]
    given = (gamma, lam, conditions.share)
    gaps = [report.gap for report in model.reports_ if report.stage == "metric"]
    norms, sizes = np.linalg.norm(model.metrics_, axis=(1, 2)), certified.squares.mean(axis=1)
    risks, all_risks = certified.losses.mean(axis=1).tolist(), training.losses.mean(axis=1)
    found = {
        "norm": [
            bounds.norm_hinge_bound(risk, norm, size, m, *given)
            for risk, norm, size in zip(risks, norms, sizes, strict=True)
        ],
        "norm, a priori": [bounds.a_priori_norm_bound(risk, m, *given) for risk in risks],
        "stability": [
            bounds.stability_bound(risk, n, *given, excluded=n - m, gap=gap)
            for risk, gap in zip(risks, gaps, strict=True)
        ],
        "the paper's theorem": [bounds.paper_bound(risk, n, d, *given) for risk in all_risks],
    }
    remarks = {"the paper's theorem": {"remark": _paper_remark(d, gamma, lam, n > m)}}
    return [
        conditions.join(
            name,
            values,
            what="hinge risk of M",
            risk_by_class=conditions.by_class(risks),
            **remarks.get(name, {}),
        )
        for name, values in found.items()
    ]


def hold_out_hinge(model: LandmarkClassifier, inputs: BoundInputs, conditions: Conditions) -> Bound:
    """Hoeffding's bound for metrics that are independent of the sample."""
    gamma, norms = model.fit_params_["gamma"], np.linalg.norm(model.metrics_, 2, axis=(1, 2))
    values = [
        bounds.hold_out_hinge_bound(risk, norm, inputs.m, gamma, conditions.share)
        for risk, norm in zip(inputs.losses.mean(axis=1), norms, strict=True)
    ]
    return conditions.join("hold-out hinge", values, what="hinge risk of M")


def pac_bayes(
    stage: str, model: LandmarkClassifier, inputs: BoundInputs, conditions: Conditions
) -> Bound:
    """PAC-Bayes bound on the 0-1 error.

    The stage ``"metric"`` is the sign of <M, Z>; ``"classifier"``, a metric and a separator both
    learned on the sample; ``"separator"``, a separator whose metric is independent of the sample.
    """
    values = []
    for c, (metric, coef) in enumerate(zip(model.metrics_, model.coef_, strict=True)):
        used, price, norm = np.flatnonzero(coef), 0.0, np.linalg.norm(metric)
        if stage == "metric":
            scores = model.fit_params_["gamma"] * inputs.margins[c]
            lengths = norm * np.sqrt(inputs.squares[c])
        else:
            price = bounds.choice_of_landmarks(len(coef), len(used))
            K = inputs.similarities[c][:, used]
            scores = inputs.labels[c] * (K @ coef[used])
            sizes = np.linalg.norm(K, axis=1)
            if stage == "classifier":
                sizes = norm * np.sqrt(inputs.product_squares[:, used].sum(axis=1))
            lengths = np.linalg.norm(coef[used]) * sizes
        # Without features nothing is known: the cosine is 0, and the bound is 1.
        cosines = scores / np.where(lengths > 0.0, lengths, np.inf)
        values.append(bounds.pac_bayes_bound(cosines, conditions.share, extra=price))
    name = f"PAC-Bayes, {stage}"
    if stage == "metric":
        return conditions.join(name, values, subject=_EQUAL_WEIGHTS)
    return conditions.join(name, values, multiclass=multiclass(values))


def multiclass(values: Sequence[float]) -> float:
    """Bound for the predicted class: it is wrong only if one of the signs is wrong."""
    return min(1.0, float(np.sum(values)))


def _paper_remark(d: int, gamma: float, lam: float, landmarks_from_sample: bool) -> str:
    lemma = bounds.paper_loss_bound(d, gamma, lam)
    largest = 1.0 + bounds.margin_radius(gamma, lam)
    verdict = (
        f"still exceeds {largest:.3g}, the largest possible loss"
        if lemma >= largest
        else f"is too small here: losses up to {largest:.3g} are possible"
    )
    text = (
        f'The paper\'s theorem rests on its Lemma "bound on the loss function", which is false in '
        f"general; its value, {lemma:.3g}, {verdict}. The theorem is true nevertheless for fixed "
        f"landmarks."
    )
    if landmarks_from_sample:
        text += " These landmarks are training series, which its proof does not allow."
    return text
