"""`Bound` and `Certificate`: the result of `certify`, as text and as plain data."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.quantities import count

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
