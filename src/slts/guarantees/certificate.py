"""`Bound` and `Certificate`: the result of `certify`, as text, as HTML and as plain data."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

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
        """The draws that the headline assumes to be independent: the series, or groups of them."""
        n_groups, n_draws = map(self.headline.details.get, ("n_groups", "n_draws"))
        what = f"{self.n} series"
        if n_groups is not None:
            what = f"{count(n_groups, 'group')} ({what})"
        return what if n_draws is None else f"{n_draws} of {what}, the others are copies"

    def __getitem__(self, name: str) -> Bound:
        """The bound with the given name."""
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
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self._title}.", *_wrap(self.headline.sentence, "  ")]
        lines += [f"  Independent draws: {self.independent}.", ""]
        for row in rows:
            cells = [f"{cell:{'<' if k < 2 else '>'}{widths[k]}}" for k, cell in enumerate(row)]
            lines.append("  ".join(cells).rstrip())
        for title, items in self._remarks():
            lines += ["", f"{title}:"]
            for item in items:
                lines += _wrap(item, "  ", first="- ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        header, *cells = self._rows()
        names = "".join(f"<th>{name}</th>" for name in (*header, ""))
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
            + f"<td style='text-align:left'>{html.escape(bound.sentence)}</td></tr>"
            for row, bound in zip(cells, self.bounds, strict=True)
        )
        remarks = "".join(
            f"<p>{title}:</p><ul>{''.join(f'<li>{html.escape(item)}</li>' for item in items)}</ul>"
            for title, items in self._remarks()
        )
        return (
            f"<p><strong>{html.escape(self._title)}.</strong> "
            f"{html.escape(self.headline.sentence)} Independent draws: {self.independent}.</p>"
            f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>{remarks}"
        )

    def _rows(self) -> list[list[str]]:
        """Return the table, header first; class means are left out if no bound has one."""
        rows = [["bound", "of", "at most", "class mean", ""], *map(_cells, self.bounds)]
        has_means = any(row[3] for row in rows[1:])
        return rows if has_means else [[*row[:3], row[4]] for row in rows]

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


def _cells(bound: Bound) -> list[str]:
    """Name, quantity, value, mean over several one-vs-rest problems, and verdict, as text."""
    several = len(bound.details.get("by_class", ())) > 1
    mean = _number(bound.details["mean"]) if several else ""
    verdict = "vacuous" if bound.vacuous else ""
    return [bound.name, bound.bounds_what, _number(bound.value), mean, verdict]


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
