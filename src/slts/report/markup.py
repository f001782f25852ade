"""HTML elements used by all sections. Text is escaped here or by the caller, as documented."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

Content = dict[str, Any]
# Tables with more rows scroll.
_MOST_ROWS = 20
_SLOT = re.compile(r"\{\{(\w+)\}\}")


def resource(name: str) -> str:
    """The text of a file of this package."""
    return files("slts.report").joinpath(name).read_text(encoding="utf-8")


def fill(template: str, slots: dict[str, str]) -> str:
    """Replace the slots of a template in one pass: inserted text is not searched for slots."""
    return _SLOT.sub(lambda match: slots[match.group(1)], template)


@cache
def _templates() -> dict[str, str]:
    """The parts of sections.html, each after a comment with its name."""
    parts = re.split(r"\s*<!-- (\w+) -->\n", "\n" + resource("sections.html").rstrip())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def section(name: str, /, **slots: str) -> str:
    """A part of sections.html with its slots filled; their text must be escaped."""
    return fill(_templates()[name], slots)


@dataclass(frozen=True)
class Cell:
    """A table cell with a class and a style.

    Attributes
    ----------
    html
        Content, already escaped.
    css
        CSS class.
    style
        Inline style.
    """

    html: str
    css: str = ""
    style: str = ""


def table(
    label: str,
    rows: Sequence[Sequence[str | Cell]],
    head: Sequence[str | Cell] = (),
    css: str = "plain",
    caption: str = "",
) -> str:
    """A table that scrolls if it is too wide or has many rows.

    Parameters
    ----------
    label
        Accessible name.
    rows
        Cells; strings are escaped. The first cell of a row is its header.
    head
        Column headers.
    css
        CSS classes of the table.
    caption
        HTML of a caption above the table; it does not scroll.
    """
    top = f"<thead>{_row(head, 'col')}</thead>" if head else ""
    body = "".join(_row(row, "") for row in rows)
    tall = " tall" if len(rows) > _MOST_ROWS else ""
    html = (
        f'<div class="wide{tall}" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="{css}">{top}<tbody>{body}</tbody></table></div>'
    )
    return f'<div><p class="caption">{caption}</p>{html}</div>' if caption else html


def _row(cells: Sequence[str | Cell], scope: str) -> str:
    """A row of a table; with a scope, all cells are headers, else only the first is."""
    html = ""
    for k, content in enumerate(cells):
        cell = Cell(escape(content)) if isinstance(content, str) else content
        attributes = {
            "scope": scope or ("" if k else "row"),
            "class": cell.css,
            "style": cell.style,
        }
        tag = "th" if attributes["scope"] else "td"
        text = "".join(f' {key}="{value}"' for key, value in attributes.items() if value)
        html += f"<{tag}{text}>{cell.html}</{tag}>"
    return f"<tr>{html}</tr>"


def meter(share: float, value: str) -> str:
    """A bar and its value as text; a share of 1 has the full length."""
    return (
        f'<span class="track"><span class="meter" style="width:{100 * share:.1f}%"></span></span> '
        f"{escape(value)}"
    )


def items(texts: list[str]) -> str:
    """A bullet list; texts are escaped."""
    return '<ul class="card-list">' + "".join(f"<li>{escape(t)}</li>" for t in texts) + "</ul>"


def shown(condition: object) -> str:
    """An attribute that hides an element unless a condition holds."""
    return "" if condition else "hidden"


def percent(share: float, digits: int = 1) -> str:
    """A share in percent."""
    return f"{100 * share:.{digits}f}%"
