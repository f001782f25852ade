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
from slts.guarantees.held_out import copies_sentence
from slts.quantities import count
from slts.report import sections
from slts.report.collect import collect
from slts.report.markup import Content, fill, percent, resource

# Anchor, name in the navigation, and HTML of every section; an empty section is left out.
_SECTIONS: list[tuple[str, str, Callable[[Content], str]]] = [
    ("errors", "Errors", sections.errors),
    ("certificate", "Guarantee", sections.certificate),
    ("sets", "Sets", sections.sets),
    ("importance", "Channels", sections.importance),
    ("landmarks", "Landmarks", sections.landmarks),
    ("snippets", "Snippets", sections.snippets),
    ("space", "Similarity", sections.space),
    ("explorer", "Explorer", sections.explorer),
    ("data", "Data", sections.data),
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
            f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_digest(script)}'; "
            f"base-uri 'none'; form-action 'none'"
        ),
        "generator": escape(card["library"]),
        "title": escape(content["title"]),
        "style": resource("page.css"),
        "nav": f"<ul>{nav}</ul>",
        "masthead": _header(content),
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


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


def _header(content: Content) -> str:
    """Title, summary in sentences, key figures."""
    return (
        f'<p class="kicker">Model report, {escape(content["model"]["name"])}</p>\n'
        f"<h1>{escape(content['title'])}</h1>\n"
        f'<p class="lede">{_summary_sentences(content)}</p>\n{_key_figures(content)}'
    )


def _summary_sentences(content: Content) -> str:
    summary, accuracy = content["summary"], content["summary"]["accuracy"]
    sentences = []
    if summary["n_seen"]:
        sentences.append(
            f"<strong>{copies_sentence(summary['n_seen'], summary['n_series'])}</strong>, so the "
            f"figures do not show how well the model classifies new series."
        )
    sentences.append(f"This model distinguishes {len(content['model']['classes'])} classes.")
    if accuracy is not None:
        sentences.append(
            f"It classified <strong>{accuracy['correct']:,} of {accuracy['n']:,} series</strong> "
            f"correctly."
        )
    elif summary["n_series"] is not None:
        series = count(summary["n_series"], "series", "series")
        sentences.append(f"It was applied to {series} without labels.")
    references, snippets = count(summary["n_references"], "landmark"), ""
    if content["references"]["kind"] != "landmarks":
        references = f"{summary['n_references']:,} training series"
    if summary["n_snippets"] is not None:
        snippets = f" and with {count(summary['n_snippets'], 'snippet')} at every step"
    return " ".join([*sentences, f"It compares each series with {references}{snippets}."])


def _key_figures(content: Content) -> str:
    summary, certificate = content["summary"], content["certificate"]
    accuracy, data = summary["accuracy"], content["data"]
    cells: list[tuple[str, str, str]] = []
    if accuracy is not None:
        interval = f"95% interval {percent(accuracy['low'])} to {percent(accuracy['high'])}"
        if accuracy["n_groups"] is not None:
            interval += f" for the mean of a new group, from {count(accuracy['n_groups'], 'group')}"
        if not certificate["certified"]:
            interval += "; not certified"
        cells.append((percent(accuracy["value"]), "Accuracy", interval))
    if certificate["certified"]:
        confidence = f"at most, with {percent(1 - certificate['delta'], 0)} confidence"
        cells.append((percent(certificate["value"]), "Certified error", confidence))
    if data is not None:
        steps = f"{data['shortest']} to {count(data['longest'], 'step')}"
        cells.append((f"{summary['n_series']:,}", "Series", steps))
    channels = f"from {count(len(content['model']['channels']), 'channel')}"
    cells.append((str(len(content["model"]["classes"])), "Classes", channels))
    words = ("Training series", "stored")
    if content["references"]["kind"] == "landmarks":
        words = ("Landmarks", "with nonzero weight")
    cells.append((f"{summary['n_references']:,}", *words))
    cells.append((f"{summary['n_numbers']:,}", "Numbers stored", "metrics, weights and series"))
    figures = "".join(
        f'<div><dt>{escape(name)}</dt><dd class="number">{escape(value)}</dd>'
        f'<dd class="more">{escape(more)}</dd></div>'
        for value, name, more in cells
    )
    return f'<dl class="figures">{figures}</dl>'
