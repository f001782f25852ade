"""Render the content as one HTML file: masthead, sections, script and style."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from slts.atomic_files import write_atomically
from slts.report import sections
from slts.report.collect import collect
from slts.report.sections import Content, fill, resource

# Anchor, name in the navigation, and HTML of every section; an empty section is left out.
_SECTIONS: list[tuple[str, str, Callable[[Content], str]]] = [
    ("predictions", "Predictions", sections.predictions),
    ("certificate", "Guarantee", sections.certificate),
    ("sets", "Sets", sections.sets),
    ("importance", "Channels", sections.importance),
    ("landmarks", "Landmarks", sections.landmarks),
    ("snippets", "Snippets", sections.snippets),
    ("space", "Similarity", sections.space),
    ("explorer", "Explorer", sections.explorer),
    ("card", "Model card", sections.card),
]


def render(content: Content) -> str:
    """Render the content as a self-contained page.

    Parameters
    ----------
    content
        From `collect`.

    Returns
    -------
    str
        HTML. Its content security policy blocks all requests and all other scripts.
    """
    script = resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    nav, main = "", []
    for anchor, name, make in _SECTIONS:
        inner = make(content)
        if inner:
            nav += f'<li><a href="#{anchor}">{escape(name)}</a></li>'
            main.append(
                f'<section id="{anchor}" aria-labelledby="h-{anchor}">\n{inner}\n</section>'
            )
    card = content["card"]
    slots = {
        "policy": (
            f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
            f"base-uri 'none'; form-action 'none'"
        ),
        "generator": escape(card["library"]),
        "title": escape(content["title"]),
        "style": resource("page.css"),
        "nav": f"<ul>{nav}</ul>",
        "masthead": sections.masthead(content),
        "main": "\n".join(main),
        "footer": escape(f"Made {card['made']} by {card['library']}."),
        "content": _embedded(content),
        "script": script,
    }
    return fill(resource("page.html"), slots)


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    y: Any = None,
    ids: Sequence[Any] | None = None,
    groups: Any = None,
    title: str | None = None,
    verbose: bool = False,
) -> Path:
    """Write a report of a fitted model: one HTML file that needs no network.

    Parameters
    ----------
    model
        A fitted slts classifier, or a search or pipeline that contains one.
    path
        File to write. If the report fails, the file does not change.
    X, y
        Series for the report, preferably not used in training, and their labels. Without X the
        report describes the model only.
    ids
        Identifiers of the series; None takes the names that X has, or numbers them.
    groups
        Group of each series, such as a person, if groups are the independent draws.
    title
        Title of the report; None uses the name of the classifier.
    verbose
        Show a progress bar.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import numpy as np, slts, tempfile
    >>> from slts.report import write_report
    >>> rng = np.random.default_rng(0)
    >>> y = np.tile(["left", "right"], 20)
    >>> X = [rng.normal(size=(2, 15)) + (c == "right") * np.array([[4.0], [0.0]]) for c in y]
    >>> model = slts.SLTSClassifier(random_state=0).fit(X[:20], y[:20])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, f"{folder}/report.html", X=X[20:], y=y[20:]).name
    'report.html'
    """
    content = collect(model, X, y, ids=ids, groups=groups, title=title, verbose=verbose)
    return write_page(content, path)


def write_page(content: Content, path: str | os.PathLike[str]) -> Path:
    """Write the content from `collect` as a page, completely or not at all."""
    target = Path(path)
    # Names of files that are not UTF-8 have characters that cannot be encoded.
    write_atomically(os.fspath(target), render(content).encode(errors="replace"))
    return target


def _embedded(content: Content) -> str:
    """JSON without characters that could end its script element or start a comment."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
