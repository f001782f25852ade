"""`Bound` and `Certificate`: the result of `certify`, as text, as HTML and as plain data."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Bounded = Literal["hinge risk of M", "0-1 error"]

_WIDTH = 100


@dataclass(frozen=True)
class Bound:
    """One proved upper bound.

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
        Whether the bound says no more than is known without learning: M = 0 has a hinge risk of 1,
        and a constant prediction has an error at the base rate.
    sentence
        What the bound says, in words.
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
        return _plain(asdict(self))


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
    notes
        Bounds that were not computed, and why.
    """

    bounds: tuple[Bound, ...]
    delta: float
    model: str
    n_models: int = 1
    notes: tuple[str, ...] = ()

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
        """What the headline takes as independent draws: the series, or groups of them."""
        n_groups, n_draws = map(self.headline.details.get, ("n_groups", "n_draws"))
        what = f"{self.n} series" if n_groups is None else f"{n_groups} groups ({self.n} series)"
        return what if n_draws is None else f"{n_draws} of {what}, the others are copies"

    def __getitem__(self, name: str) -> Bound:
        """The bound with the given name."""
        for bound in self.bounds:
            if bound.name == name:
                return bound
        raise KeyError(f"no bound is called {name!r}: {[bound.name for bound in self.bounds]}")

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
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        rows = [("bound", "of", "at most", "class mean"), *map(_cells, self.bounds)]
        verdicts = ["", *("  vacuous" if bound.vacuous else "" for bound in self.bounds)]
        widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:2]]
        lines = [f"{self._title}.", *_wrap(self.headline.sentence, "  ")]
        lines += [f"  Independent draws: {self.independent}.", ""]
        for (name, what, value, mean), verdict in zip(rows, verdicts, strict=True):
            cells = f"{name:<{widths[0]}}  {what:<{widths[1]}}  {value:>9}  {mean:>10}{verdict}"
            lines.append(cells.rstrip())
        for title, items in self._remarks():
            lines += ["", f"{title}:"]
            for item in items:
                lines += _wrap(item, "  ", first="- ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(bound))
            + f"<td>{'vacuous' if bound.vacuous else ''}</td>"
            + f"<td style='text-align:left'>{html.escape(bound.sentence)}</td></tr>"
            for bound in self.bounds
        )
        remarks = "".join(
            f"<p>{title}:</p><ul>{''.join(f'<li>{html.escape(item)}</li>' for item in items)}</ul>"
            for title, items in self._remarks()
        )
        return (
            f"<p><strong>{html.escape(self._title)}.</strong> "
            f"{html.escape(self.headline.sentence)} Independent draws: {self.independent}.</p>"
            f"<table><thead><tr><th>bound</th>"
            f"<th>of</th><th>at most</th><th>class mean</th><th></th><th></th></tr></thead>"
            f"<tbody>{rows}</tbody></table>{remarks}"
        )

    @property
    def _title(self) -> str:
        among = f", one of {self.n_models} models compared" if self.n_models > 1 else ""
        return (
            f"Certificate of {self.model}{among}: each bound holds with probability at least "
            f"{1 - self.delta:g}"
        )

    def _remarks(self) -> list[tuple[str, list[str]]]:
        unchecked = sorted({item for bound in self.bounds for item in bound.unchecked})
        remarks = [bound.details["remark"] for bound in self.bounds if "remark" in bound.details]
        found = [
            ("Assumptions that were not checked", unchecked),
            ("Remarks", remarks),
            ("Not computed", list(self.notes)),
        ]
        return [(title, items) for title, items in found if items]


def _cells(bound: Bound) -> tuple[str, str, str, str]:
    """Name, quantity, value and mean over several one-vs-rest problems, as text."""
    several = len(bound.details.get("by_class", ())) > 1
    mean = _number(bound.details["mean"]) if several else ""
    return bound.name, bound.bounds_what, _number(bound.value), mean


def _number(value: float) -> str:
    return f"{value:.4f}" if value < 10 else f"{value:.3g}"


def _wrap(text: str, indent: str, first: str = "") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent + first, subsequent_indent=indent + " " * len(first)
    )


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Replace tuples and NumPy values by lists and numbers."""
    plain: dict[str, Any] = json.loads(json.dumps(facts, default=lambda value: value.tolist()))
    return plain
