"""What a report is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """A section."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of points."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Listing:
    """A command."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table; the first column names the rows.

    `marked` cells (row, column) deserve a look; a `folded` table is long and opens on demand.
    """

    name: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[tuple[int, int]] = frozenset()
    folded: bool = False


@dataclass(frozen=True)
class Picture:
    """A figure, by the stem of its files; a `small` one need not fill the page."""

    name: str
    caption: str
    small: bool = False


Block = Heading | Paragraph | Items | Listing | Grid | Picture
