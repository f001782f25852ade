"""Documents as Markdown: text, tables and figures, and how numbers are printed."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Plain data: what JSON can hold.
Table = dict[str, Any]


@dataclass(frozen=True)
class Grid:
    """A table. The first column names the rows; `name` is the stem of its CSV file."""

    name: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_csv(self) -> str:
        """Return the table as CSV."""
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return the caption and the table as Markdown."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return f"{self.caption}\n\n" + "\n".join(map(_line, lines))


@dataclass(frozen=True)
class Picture:
    """A figure; `name` is the stem of its files."""

    name: str
    caption: str


# Text is Markdown already.
Element = str | Grid | Picture


def to_markdown(elements: Sequence[Element], *, pictures: str = "png") -> str:
    """Write a document; `pictures` is the format of the figures, which are in the same folder."""
    texts = []
    for element in elements:
        if isinstance(element, Grid):
            texts.append(element.to_markdown())
        elif isinstance(element, str):
            texts.append(element)
        else:
            texts.append(f"![{element.caption}]({element.name}.{pictures})")
    return "\n\n".join(texts) + "\n"


def bullets(texts: Sequence[str]) -> str:
    """Return a list of points."""
    return "\n".join(f"- {text}" for text in texts)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("*", "\\*") for cell in cells) + " |"


def opening(title: str, run: Table, *packages: str) -> list[Element]:
    """Return the title, the facts about a run, and its command."""
    versions = ", ".join([f"slts {run['version']}", *packages])
    wall = f": {run['wall']}" if run["wall"] else ""
    return [
        f"# {title}",
        f"{versions}. Date: {run['date']}. Protocol: {run['protocol']} ({run['digest']}), "
        f"{run['n_splits']} splits. {run['units']} of {run['planned']} units of work; "
        f"{run['cpu_minutes']:.1f} minutes of processor time on {run['machine']}{wall}.",
        f"```\n{run['command']}\n```",
    ]


def number(value: float | None, digits: int = 1) -> str:
    """Print a number; a dash stands for none."""
    return "-" if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 1) -> str:
    """Print a difference with its sign; zero has none."""
    if value is None:
        return "-"
    text = f"{value:+.{digits}f}"
    return text if text.strip("+-0.") else text[1:]


def with_interval(mean: float, interval: float | None) -> str:
    """Print a mean and the half width of its interval."""
    return f"{mean:.1f}" if interval is None else f"{mean:.1f}±{interval:.1f}"


def p_value(p: float) -> str:
    """Print a probability."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
