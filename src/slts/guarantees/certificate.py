"""What a certificate says, and how it looks."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

BoundsWhat = Literal["hinge risk of M", "0-1 error"]

_WIDTH = 100


@dataclass(frozen=True)
class Bound:
    """One proved upper bound.

    Attributes
    ----------
    name
        Which bound.
    bounds_what
        ``"hinge risk of M"`` or ``"0-1 error"``.
    value
        The bound; with several one-vs-rest problems the largest of theirs, which hold together.
    vacuous
        Whether it says no more than is known without learning: a hinge risk of 1 is that of M = 0,
        an error at the base rate is that of a constant answer.
    sentence
        What it says, for a practitioner.
    checked, unchecked
        Assumptions that were verified, and those that only the user can vouch for.
    details
        The numbers behind it; ``"by_class"`` holds the bound of every one-vs-rest problem.
    """

    name: str
    bounds_what: BoundsWhat
    value: float
    vacuous: bool
    sentence: str
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, ready for JSON."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


@dataclass(frozen=True)
class Certificate:
    """Bounds on the risk of one trained model.

    Attributes
    ----------
    headline
        The bound to quote, chosen before any was computed. None of the others may replace it
        because it came out smaller, unless delta is divided among those compared.
    bounds
        All of them, the headline first. Each holds with probability at least 1 - delta.
    delta
        Probability of failure of each bound.
    n
        Number of series the headline rests on.
    model
        Name of the classifier.
    n_models
        Number of models compared on the same series; already paid for in every bound.
    notes
        Bounds that were not computed, and why.
    """

    headline: Bound
    bounds: tuple[Bound, ...]
    delta: float
    n: int
    model: str
    n_models: int = 1
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Bound:
        """The bound of the given name."""
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
            "n_models": self.n_models,
            "bounds": [bound.to_dict() for bound in self.bounds],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"{self._title}.", *_wrap(self.headline.sentence, "  "), ""]
        name_width = max(len(bound.name) for bound in self.bounds)
        what_width = max(len(bound.bounds_what) for bound in self.bounds)
        header = (
            f"{'bound':<{name_width}}  {'of':<{what_width}}  {'at most':>9}  {'class mean':>10}"
        )
        lines.append(header)
        for bound in self.bounds:
            verdict = "  vacuous" if bound.vacuous else ""
            lines.append(
                f"{bound.name:<{name_width}}  {bound.bounds_what:<{what_width}}  "
                f"{_number(bound.value):>9}  {_class_mean(bound):>10}{verdict}".rstrip()
            )
        for title, items in self._remarks():
            lines += ["", f"{title}:"]
            for item in items:
                lines += _wrap(item, "  ", first="- ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(bound.name)}</td><td>{html.escape(bound.bounds_what)}</td>"
            f"<td style='text-align:right'>{_number(bound.value)}</td>"
            f"<td style='text-align:right'>{_class_mean(bound)}</td>"
            f"<td>{'vacuous' if bound.vacuous else ''}</td>"
            f"<td style='text-align:left'>{html.escape(bound.sentence)}</td></tr>"
            for bound in self.bounds
        )
        remarks = "".join(
            f"<p>{title}:</p><ul>{''.join(f'<li>{html.escape(item)}</li>' for item in items)}</ul>"
            for title, items in self._remarks()
        )
        return (
            f"<p><strong>{html.escape(self._title)}.</strong> "
            f"{html.escape(self.headline.sentence)}</p><table><thead><tr><th>bound</th>"
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
        unchecked = {item for bound in self.bounds for item in bound.unchecked}
        remarks = [
            str(b.details["remark"]) for b in self.bounds if b.details.get("remark") is not None
        ]
        found = [
            ("Only you can vouch for", sorted(unchecked)),
            ("Remarks", remarks),
            ("Not computed", list(self.notes)),
        ]
        return [(title, items) for title, items in found if items]


def _class_mean(bound: Bound) -> str:
    """Mean over one-vs-rest problems, where there are several."""
    several = len(bound.details.get("by_class", ())) > 1
    return _number(bound.details["mean"]) if several else ""


def _number(value: float) -> str:
    return f"{value:.4f}" if value < 10 else f"{value:.3g}"


def _wrap(text: str, indent: str, first: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent + first,
        subsequent_indent=indent + " " * len(first),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    return value.item() if isinstance(value, np.generic) else value
