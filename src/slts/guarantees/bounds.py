"""The formulas of the bounds, as functions of numbers, and the results: `Bound` and `Certificate`.

docs/bounds.md states the formulas. Each bound holds with probability at least 1 - delta over an
independent sample of m examples, given landmarks that are independent of the sample. `risk` is the
mean hinge loss on the sample, a number or an array with one value for each metric.
"""

from __future__ import annotations

import html
import math
import numbers
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, rel_entr

from slts._typing import AnyArray, FloatArray
from slts.quantities import count

# After 60 halvings of [0, 1] the two ends are neighbouring doubles, or nearly so.
_HALVINGS = 60


def check_probability(name: str, value: Any) -> None:
    """Raise an error if a parameter is not a number strictly between 0 and 1."""
    usable = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not usable or not 0.0 < float(value) < 1.0:
        raise ValueError(
            f"The '{name}' parameter must be a number strictly between 0 and 1. "
            f"Got {value!r} instead."
        )


def stability_constant(gamma: float, lam: float) -> float:
    """Constant kappa = 1/(lam gamma^2): one of m examples changes no loss by more than kappa/m."""
    return 1.0 / (lam * gamma * gamma)


def margin_radius(gamma: float, lam: float) -> float:
    """Radius p = min(sqrt(kappa/2), kappa/2), an upper bound on ||M||_F/gamma at the minimiser."""
    half = 0.5 * stability_constant(gamma, lam)
    return min(math.sqrt(half), half)


def loss_range(radius: float) -> float:
    """Largest difference B = min(1 + p, 2 p) of two losses where ||M||_F/gamma <= p."""
    return min(1.0 + radius, 2.0 * radius)


def paper_bound(
    risk: FloatArray, m: int, d: int, gamma: float, lam: float, delta: float
) -> FloatArray:
    """The paper's generalization bound on the hinge risk of M, as printed."""
    stability = 4.0 * d / (gamma * gamma * lam)
    spread = stability + math.sqrt(2.0 * d / lam) / gamma
    return risk + stability / m + spread * math.sqrt(2.0 * math.log(2.0 / delta) / m)


def stability_bound(
    risk: FloatArray, m: int, gamma: float, lam: float, delta: float, *, excluded: int,
    gap: npt.ArrayLike,
) -> FloatArray:  # fmt: skip
    """The theorem with sharp constants, for landmarks that are among the training examples.

    Parameters
    ----------
    risk
        Mean hinge loss on the m - excluded certified examples.
    m
        Number of training examples.
    gamma, lam, delta
        Parameters of the metric problem, and the probability of failure.
    excluded
        Number of training examples left out of `risk`: the landmarks among them.
    gap
        Duality gap of M. Its distance from the minimiser is at most sqrt(gap/lam).
    """
    change, certified = stability_constant(gamma, lam) / m, m - excluded
    # McDiarmid: one series moves its own loss by at most B, and both mean losses by `change`.
    spread = 2.0 * certified * change + loss_range(margin_radius(gamma, lam))
    inexact = 2.0 * np.sqrt(np.maximum(gap, 0.0) / lam) / gamma
    return risk + change + spread * math.sqrt(math.log(1.0 / delta) / (2.0 * certified)) + inexact


def clopper_pearson(errors: int, n: int, delta: float) -> float:
    """Exact upper bound on an error rate from the errors among n held-out examples.

    It is the largest q with P(Bin(n, q) <= errors) >= delta.
    """
    return 1.0 if errors >= n else float(betainccinv(errors + 1.0, n - errors, delta))


def mean_over_groups(values: AnyArray, groups: AnyArray) -> tuple[float, int]:
    """Return the mean over the groups of the mean value in each, and the number of groups."""
    members = np.unique(groups, return_inverse=True)[1]
    means = np.bincount(members, weights=values) / np.bincount(members)
    return float(means.mean()), len(means)


def group_error_bound(error: float, n_groups: int, delta: float) -> float:
    """Upper bound on the mean error of a new group, from the mean over independent groups.

    `error` is the mean over the groups of the error rate in each. The relative-entropy form of
    Hoeffding's inequality holds for independent values in [0, 1].
    """
    return float(kl_inverse(error, math.log(1.0 / delta) / n_groups))


def accuracy_interval(right: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of Clopper and Pearson for the accuracy, from `right` of n."""
    each = (1 - confidence) / 2
    return 1 - clopper_pearson(n - right, n, each), clopper_pearson(right, n, each)


def group_accuracy_interval(
    accuracy: float, n_groups: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Two-sided interval for the mean accuracy of a new group, from the mean over groups."""
    each = (1 - confidence) / 2
    low = 1 - group_error_bound(1 - accuracy, n_groups, each)
    return low, group_error_bound(accuracy, n_groups, each)


def kl_inverse(q: npt.ArrayLike, budget: npt.ArrayLike) -> FloatArray:
    """Largest p in [q, 1] with kl(q, p) <= budget, rounded up, elementwise.

    With budget ln(1/delta)/m, it turns a mean of m values in [0, 1] into an upper bound.
    """
    low, budget = np.broadcast_arrays(np.asarray(q, dtype=np.float64), budget)
    q, high = low, np.ones_like(low)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        inside = rel_entr(q, middle) + rel_entr(1.0 - q, 1.0 - middle) <= budget
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray(high)


# ---- results, as text, HTML and plain data


Bounded = Literal["hinge risk of M", "0-1 error"]

_WIDTH = 100


@dataclass(frozen=True)
class Bound:
    """One proven upper bound.

    Attributes
    ----------
    name
        Name of the bound.
    bounds_what
        ``"hinge risk of M"`` or ``"0-1 error"``.
    value
        The bound. With several one-vs-rest problems, the largest of their bounds, which all hold
        together.
    vacuous
        Whether the bound is no better than without learning: M = 0 has a hinge risk of 1, and the
        error of a constant prediction is the base rate.
    sentence
        The statement of the bound in words.
    checked, unchecked
        Assumptions that were verified, and assumptions that only the user can verify.
    details
        The numbers behind the bound; ``"by_class"`` has the bound of every one-vs-rest problem.
    """

    name: str
    bounds_what: Bounded
    value: float
    vacuous: bool
    sentence: str
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, ready for JSON."""
        lists = {"checked": list(self.checked), "unchecked": list(self.unchecked)}
        return asdict(self) | lists


@dataclass(frozen=True)
class Conditions:
    """What all bounds from one sample share.

    Attributes
    ----------
    delta, n_models
        Probability of failure of each bound, and number of models that divide it among them.
    n
        Number of series that the bounds are computed from.
    checked, unchecked
        As in `Bound`.
    """

    delta: float
    n_models: int
    n: int
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]

    def share(self, n_problems: int = 1) -> float:
        """Probability of failure of one of several one-vs-rest problems of one model."""
        return self.delta / (self.n_models * n_problems)

    def bound(
        self, name: str, what: Bounded, value: float, vacuous: bool, claim: str, **details: Any
    ) -> Bound:
        """Make a bound whose sentence begins with the confidence."""
        sentence = f"With confidence {100 * (1 - self.delta):.6g}%, {claim}"
        details = {"n": self.n, **details}
        return Bound(name, what, value, vacuous, sentence, self.checked, self.unchecked, details)

    def joint_bound(
        self, name: str, what: Bounded, classes: AnyArray, values: FloatArray,
        trivial: FloatArray, claim: str, **details: Any,
    ) -> Bound:  # fmt: skip
        """Make one bound from those of all one-vs-rest problems: the largest, which `claim` states.

        `trivial` has the risk in each problem without learning.
        """
        vacuous, largest = values >= trivial, float(values.max())
        claim = claim.format(largest)
        if len(values) > 1:
            claim += f" This holds for all {len(values)} classes at once."
        if vacuous.all():
            without = "a constant prediction" if what == "0-1 error" else "M = 0"
            claim += f" This bound is vacuous: {without} does as well."
        elif vacuous.any():
            claim += f" It is vacuous for {np.count_nonzero(vacuous)} of them."
        by_class = dict(zip(map(str, classes), values.tolist(), strict=True))
        details |= {
            "by_class": by_class, "mean": float(values.mean()), "trivial": float(trivial.min())
        }  # fmt: skip
        return self.bound(name, what, largest, bool(vacuous.any()), claim, **details)


@dataclass(frozen=True)
class Certificate:
    """Bounds on the risk of one trained model.

    Attributes
    ----------
    bounds
        All bounds, the headline first. Each holds with probability at least 1 - delta.
    delta
        Probability of failure of each bound.
    model
        Name of the classifier.
    n_models
        Number of models compared on the same series. Every bound accounts for it.
    """

    bounds: tuple[Bound, ...]
    delta: float
    model: str
    n_models: int = 1

    @property
    def headline(self) -> Bound:
        """The bound to quote, chosen before any bound was computed.

        Quoting another bound because it is smaller is wrong, unless delta is divided by the number
        of bounds compared.
        """
        return self.bounds[0]

    @property
    def n(self) -> int:
        """Number of series that the headline is computed from."""
        return int(self.headline.details["n"])

    @property
    def independent(self) -> str:
        """The draws that the headline assumes to be independent: the series, or groups of them."""
        n_groups, series = self.headline.details.get("n_groups"), f"{self.n} series"
        return series if n_groups is None else f"{count(n_groups, 'group')} ({series})"

    def __getitem__(self, name: str) -> Bound:
        """The bound with this name."""
        for bound in self.bounds:
            if bound.name == name:
                return bound
        names = [bound.name for bound in self.bounds]
        raise KeyError(f"there is no bound {name!r}: choose from {names}")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, ready for JSON."""
        return {
            "model": self.model,
            "headline": self.headline.name,
            "delta": self.delta,
            "n": self.n,
            "independent": self.independent,
            "n_models": self.n_models,
            "bounds": [bound.to_dict() for bound in self.bounds],
        }

    def __str__(self) -> str:
        among = f", one of {self.n_models} models compared" if self.n_models > 1 else ""
        lines = [
            f"Certificate of {self.model}{among}: each bound holds with probability at least "
            f"{1 - self.delta:g}.",
            *_wrap(self.headline.sentence, "  "),
            f"  Independent draws: {self.independent}.",
            "",
        ]
        rows = [("bound", "of", "at most", "class mean", ""), *map(_cells, self.bounds)]
        # Without one-vs-rest problems there are no means over classes.
        columns = [column for column in zip(*rows, strict=True) if any(column[1:]) or not column[0]]
        widths = [max(map(len, column)) for column in columns]
        for row in zip(*columns, strict=True):
            cells = [f"{cell:{'<' if k < 2 else '>'}{widths[k]}}" for k, cell in enumerate(row)]
            lines.append("  ".join(cells).rstrip())
        unchecked = {item for bound in self.bounds for item in bound.unchecked}
        remarks = [bound.details["remark"] for bound in self.bounds if "remark" in bound.details]
        sections = {"Assumptions that were not checked": sorted(unchecked), "Remarks": remarks}
        for title, items in sections.items():
            lines += ["", f"{title}:"] if items else []
            for item in items:
                lines += _wrap(item, "  ", first="- ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _cells(bound: Bound) -> tuple[str, ...]:
    """Name, quantity, value, mean over several one-vs-rest problems, and verdict, as text."""
    several = len(bound.details.get("by_class", ())) > 1
    mean = f"{bound.details['mean']:.4g}" if several else ""
    verdict = "vacuous" if bound.vacuous else ""
    return bound.name, bound.bounds_what, f"{bound.value:.4g}", mean, verdict


def _wrap(text: str, indent: str, first: str = "") -> list[str]:
    later = indent + " " * len(first)
    return textwrap.wrap(text, _WIDTH, initial_indent=indent + first, subsequent_indent=later)
