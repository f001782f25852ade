"""Bounds in words: from a classifier and a sample to `Bound` objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.guarantees import bounds
from slts.guarantees.certificate import Bound, BoundsWhat
from slts.guarantees.compression import Compression
from slts.guarantees.evidence import Evidence, Problem

INDEPENDENT = "the series are independent draws from the population the model will meet"
FIXED_LANDMARKS = "landmarks are independent of the certified series"
UNIT_ROWS = "rows have at most unit length, so every Z has norm at most 1"


@dataclass(frozen=True)
class Terms:
    """What all statements about one sample share.

    Attributes
    ----------
    delta
        Probability of failure of each bound.
    divisor
        Number of models it is divided among, before it is divided among one-vs-rest problems.
    source
        What the sample is called.
    checked, unchecked
        Assumptions.
    """

    delta: float
    divisor: int
    source: str
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def confidence(self) -> str:
        """Probability that a bound holds, for people."""
        return f"{100 * (1 - self.delta):.6g}%"

    def each(self, n_problems: int) -> float:
        """Probability of failure of one problem of one model."""
        return self.delta / (self.divisor * n_problems)

    def state(
        self,
        name: str,
        what: BoundsWhat,
        values: FloatArray,
        trivial: FloatArray,
        sentence: str,
        problems: Sequence[Problem],
        **details: Any,
    ) -> Bound:
        """Join the bounds of all problems into one; `sentence` has a place for the largest."""
        worst = float(values.max())
        by_class = {str(p.positive): float(v) for p, v in zip(problems, values, strict=True)}
        numbers = {"by_class": by_class, "mean": float(values.mean())}
        if len(problems) > 1:
            sentence += f" That holds for all {len(problems)} classes at once."
        useless = values >= trivial
        if useless.any() and not useless.all():
            sentence += f" It says nothing for {np.count_nonzero(useless)} of them."
        elif useless.all():
            constant = "M = 0" if what == "hinge risk of M" else "a constant answer"
            sentence += f" That says nothing: {constant} does as well."
        return Bound(
            name=name,
            bounds_what=what,
            value=worst,
            vacuous=bool(useless.any()),
            sentence=sentence.format(_figure(what, worst)),
            checked=self.checked,
            unchecked=self.unchecked,
            details={**numbers, "trivial": float(trivial.min()), **details},
        )


def hold_out_error(predicted: AnyArray, truth: AnyArray, terms: Terms) -> Bound:
    """Clopper-Pearson for the multiclass classifier."""
    errors, n = int(np.count_nonzero(predicted != truth)), len(truth)
    value = bounds.clopper_pearson(errors, n, terms.delta, n_models=terms.divisor)
    base = 1.0 - float(np.unique(truth, return_counts=True)[1].max()) / n
    vacuous = value >= base
    return Bound(
        "hold-out error",
        "0-1 error",
        value,
        vacuous,
        f"With confidence {terms.confidence}, the classifier is wrong on at most {value:.2%} of "
        f"new series; it was on {errors} of {n} ({errors / n:.2%}) {terms.source} series."
        + (" Always answering the most frequent class might do as well." if vacuous else ""),
        terms.checked,
        terms.unchecked,
        {"errors": errors, "n": n, "trivial": base},
    )


def hold_out_one_vs_rest(
    decisions: FloatArray, labels: FloatArray, problems: Sequence[Problem], terms: Terms
) -> Bound:
    """Clopper-Pearson for the sign of every decision value; both arrays (problems, series)."""
    wrong = np.count_nonzero(labels * decisions <= 0.0, axis=1)
    delta, n = terms.each(len(problems)), labels.shape[1]
    values = np.array([bounds.clopper_pearson(int(errors), n, delta) for errors in wrong])
    return terms.state(
        "hold-out error, one-vs-rest",
        "0-1 error",
        values,
        _base_rates(labels),
        f'With confidence {terms.confidence}, "is it this class or not" is answered wrongly on at '
        f"most {{}} of new series.",
        problems,
        errors=wrong.tolist(),
        n=n,
    )


def metric_bounds(
    problems: Sequence[Problem], everyone: Evidence, certified: Evidence, terms: Terms
) -> list[Bound]:
    """Bounds on the hinge risk of every M from the series it was learned on.

    Parameters
    ----------
    problems
        With learned metrics.
    everyone
        All training series.
    certified
        Those that the landmarks were not chosen from.
    terms
        What to say about the sample.
    """
    delta, m, d = terms.each(len(problems)), certified.m, problems[0].metric.shape[0]
    excluded = everyone.m - m
    risks, printed = certified.losses.mean(axis=1), everyone.losses.mean(axis=1)
    sizes = certified.squares.mean(axis=1)
    columns = []
    for p, risk, full, size in zip(problems, risks, printed, sizes, strict=True):
        assert p.lam is not None
        assert p.gap is not None
        given = (p.gamma, p.lam, delta)
        columns.append(
            (
                bounds.norm_hinge_bound(risk, p.norm, size, m, *given),
                bounds.a_priori_norm_bound(risk, m, *given),
                bounds.stability_bound(risk, everyone.m, *given, excluded=excluded, gap=p.gap),
                bounds.paper_bound(full, everyone.m, d, *given),
            )
        )
    values = np.array(columns).T
    names = ("norm", "norm, a priori", "stability", "the paper's theorem")
    notes = (None, None, None, _paper_remark(problems, d, excluded))
    saying = (
        f"With confidence {terms.confidence}, the mean hinge loss of the learned metric on new "
        f"series is at most {{}}."
    )
    risk_by_class = {str(p.positive): float(r) for p, r in zip(problems, risks, strict=True)}
    return [
        terms.state(
            name,
            "hinge risk of M",
            row,
            np.ones(len(problems)),
            saying,
            problems,
            n=m,
            risk_by_class=risk_by_class,
            **({} if note is None else {"remark": note}),
        )
        for name, row, note in zip(names, values, notes, strict=True)
    ]


def hold_out_hinge(problems: Sequence[Problem], evidence: Evidence, terms: Terms) -> Bound:
    """Hoeffding's bound for metrics that are independent of the sample."""
    delta, risks = terms.each(len(problems)), evidence.losses.mean(axis=1)
    values = [
        bounds.hold_out_hinge_bound(float(risk), p.operator_norm, evidence.m, p.gamma, delta)
        for p, risk in zip(problems, risks, strict=True)
    ]
    return terms.state(
        "hold-out hinge",
        "hinge risk of M",
        np.array(values),
        np.ones(len(problems)),
        f"With confidence {terms.confidence}, the mean hinge loss of the learned metric on new "
        f"series is at most {{}}.",
        problems,
        n=evidence.m,
    )


def pac_bayes(stage: str, problems: Sequence[Problem], evidence: Evidence, terms: Terms) -> Bound:
    """PAC-Bayes bound on the 0-1 error.

    Parameters
    ----------
    stage
        ``"metric"``: the sign of <M, Z>. ``"classifier"``: metric and separator both learned on the
        sample. ``"separator"``: the metric is independent of it.
    problems, evidence, terms
        The classifier, the sample, what to say about it.
    """
    delta, values, found = terms.each(len(problems)), [], []
    for c, p in enumerate(problems):
        cosines, n_used = _cosines(stage, p, evidence, c)
        if n_used == 0 and stage != "metric":
            values.append(1.0)
            continue
        extra = 0.0
        if stage != "metric":
            extra = bounds.choice_of_landmarks(len(p.coef), n_used)
        found.append(bounds.pac_bayes_bound(cosines, delta, extra=extra))
        values.append(found[-1].value)
    subject = (
        "the classifier that weighs all landmarks alike"
        if stage == "metric"
        else 'the classifier\'s "is it this class or not"'
    )
    return terms.state(
        f"PAC-Bayes, {stage}",
        "0-1 error",
        np.array(values),
        _base_rates(evidence.labels),
        f"With confidence {terms.confidence}, {subject} is wrong on at most {{}} of new series.",
        problems,
        n=evidence.m,
        **_multiclass(stage, values),
    )


def compression(
    problems: Sequence[Problem],
    labels: FloatArray,
    found: Sequence[Compression | None],
    terms: Terms,
) -> Bound:
    """Compression bound on the 0-1 error of separators learned on the sample."""
    delta, m, values = terms.each(len(problems)), labels.shape[1], []
    for p, scheme in zip(problems, found, strict=True):
        value = 1.0
        if scheme is not None:
            value = bounds.compression_bound(
                scheme.errors, m, len(p.coef), len(scheme.used), len(scheme.tight), delta,
                radius_binds=scheme.radius_binds,
            )  # fmt: skip
        values.append(value)
    failed = [str(p.positive) for p, scheme in zip(problems, found, strict=True) if scheme is None]
    return terms.state(
        "compression",
        "0-1 error",
        np.array(values),
        _base_rates(labels),
        f'With confidence {terms.confidence}, the classifier\'s "is it this class or not" is wrong '
        f"on at most {{}} of new series.",
        problems,
        n=m,
        n_used=[None if scheme is None else len(scheme.used) for scheme in found],
        n_tight=[None if scheme is None else len(scheme.tight) for scheme in found],
        not_rebuilt=failed,
        **_multiclass("separator", values),
    )


def _cosines(stage: str, problem: Problem, evidence: Evidence, c: int) -> tuple[FloatArray, int]:
    """Cosines l f/(||w|| ||x||), and how many landmarks have a weight."""
    used = np.flatnonzero(problem.coef)
    if stage == "metric":
        scores = problem.gamma * evidence.margins[c]
        lengths = problem.norm * np.sqrt(evidence.squares[c])
    else:
        K = evidence.similarities[c][:, used]
        scores = evidence.labels[c] * (K @ problem.coef[used])
        lengths = np.full(len(K), float(np.linalg.norm(problem.coef)))
        if stage == "separator":
            lengths *= np.linalg.norm(K, axis=1)
        else:
            lengths *= problem.norm * np.sqrt(evidence.product_squares[:, used].sum(axis=1))
    cosines = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0.0)
    return cosines, len(used)


def _base_rates(labels: FloatArray) -> FloatArray:
    """Share of mistakes of the better constant answer to each problem."""
    positive = (labels > 0.0).mean(axis=1)
    return np.asarray(np.minimum(positive, 1.0 - positive))


def _multiclass(stage: str, values: Sequence[float]) -> dict[str, float]:
    """A wrong class needs a wrong sign somewhere, so the bounds add up to one for the argmax."""
    return {} if stage == "metric" else {"multiclass": min(1.0, float(np.sum(values)))}


def _paper_remark(problems: Sequence[Problem], d: int, excluded: int) -> str:
    p = problems[0]
    assert p.lam is not None
    lemma = bounds.paper_loss_bound(d, p.gamma, p.lam)
    largest = 1.0 + bounds.margin_radius(p.gamma, p.lam)
    verdict = (
        f"still exceeds {largest:.3g}, which no loss does"
        if lemma >= largest
        else f"is too small here: losses up to {largest:.3g} are possible"
    )
    text = (
        f'The paper\'s theorem rests on its Lemma "bound on the loss function", which is false in '
        f"general; its number, {lemma:.3g}, {verdict}. The theorem is true nevertheless for fixed "
        f"landmarks."
    )
    if excluded:
        text += " These came from the training series, which its proof does not allow."
    return text


def _figure(what: BoundsWhat, value: float) -> str:
    return f"{value:.2%}" if what == "0-1 error" else f"{value:.4g}"
