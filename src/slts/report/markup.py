"""Pieces of HTML that all sections use."""

from __future__ import annotations

import re
from html import escape
from typing import Any

Content = dict[str, Any]
# Classes up to which a table has a column for each.
MOST_COLUMNS = 20


def heading(anchor: str, text: str) -> str:
    """The heading of a section, for its label to point at."""
    return f'<h2 id="h-{anchor}">{escape(text)}</h2>\n'


def percent(share: float, digits: int = 1) -> str:
    """A share as people write it."""
    return f"{100 * share:.{digits}f}%"


def count(number: int, noun: str, nouns: str | None = None) -> str:
    """A number with its noun: "1 step", "2 steps"."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def class_name(label: str) -> str:
    """A label within a sentence: bare numbers and letters need a word before them."""
    bare = len(label) == 1 or re.fullmatch(r"[-+.\d]+", label)
    return f"class {label}" if bare else label


def table_with_caption(caption: str, label: str, table: str) -> str:
    """A table that scrolls where it is too wide; its caption does not."""
    return (
        f'<div><p class="caption">{caption}</p><div class="wide" tabindex="0" role="region" '
        f'aria-label="{escape(label)}">{table}</div></div>'
    )


def many(names: list[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def items(texts: list[str]) -> str:
    """A list with bullets."""
    return '<ul class="card-list">' + "".join(f"<li>{escape(t)}</li>" for t in texts) + "</ul>"


def facts_table(facts: list[list[str]], label: str) -> str:
    """Two columns: what, and its value."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="text">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="plain"><tbody>{rows}</tbody></table></div>'
    )
