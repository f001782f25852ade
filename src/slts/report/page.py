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
from slts.report.card import card_section
from slts.report.collect import collect
from slts.report.explorer import explorer_section, space_section
from slts.report.importance import importance_section
from slts.report.markup import Content, fill, percent, resource
from slts.report.predictions import certificate_section, data_section, errors_section
from slts.report.references import landmarks_section
from slts.report.sets import sets_section
from slts.report.snippets import snippets_section

# Anchor, name in the navigation, and HTML of every section; an empty section is left out.
_SECTIONS: list[tuple[str, str, Callable[[Content], str]]] = [
    ("errors", "Errors", errors_section),
    ("certificate", "Guarantee", certificate_section),
    ("sets", "Sets", sets_section),
    ("importance", "Channels", importance_section),
    ("landmarks", "Landmarks", landmarks_section),
    ("snippets", "Snippets", snippets_section),
    ("space", "Similarity", space_section),
    ("explorer", "Explorer", explorer_section),
    ("data", "Data", data_section),
    ("card", "Model card", card_section),
]
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


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
    nav, sections = "", []
    for anchor, name, make in _SECTIONS:
        inner = make(content)
        if inner:
            nav += f'<li><a href="#{anchor}">{escape(name)}</a></li>'
            sections.append(
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
        "main": "\n".join(sections),
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
    summary, certificate = content["summary"], content["certificate"]
    n_classes, accuracy = summary["n_classes"], summary["accuracy"]
    number = _NUMBERS[n_classes] if n_classes < len(_NUMBERS) else str(n_classes)
    sentences = []
    if summary["n_seen"]:
        sentences.append(
            f"<strong>{copies_sentence(summary['n_seen'], summary['n_series'])}</strong>, so the "
            f"figures do not show how well the model classifies new series."
        )
    sentences.append(f"This model distinguishes {number} classes.")
    if accuracy is not None:
        sentences.append(
            f"It classified <strong>{accuracy['correct']:,} of {accuracy['n']:,} series</strong> "
            f"correctly."
        )
    elif summary["n_series"] is not None:
        series = count(summary["n_series"], "series", "series")
        sentences.append(f"It was applied to {series} without labels.")
    if certificate["certified"]:
        sentences.append(
            f"With {percent(1 - certificate['delta'], 0)} confidence, its error on new series is "
            f"at most {percent(certificate['bounds'][0]['value'])}."
        )
    references, n = content["references"], summary["n_references"]
    if references is not None and references["kind"] == "landmarks":
        short = summary["n_snippets"]
        also = "" if short is None else f" and with {count(short, 'snippet')} at every step"
        sentences.append(f"It compares each series with {count(n, 'landmark')}{also}.")
    elif references is not None:
        sentences.append(f"It predicts the class of the nearest of {n:,} training series.")
    return " ".join(sentences)


def _key_figures(content: Content) -> str:
    summary, certificate = content["summary"], content["certificate"]
    cells: list[tuple[str, str, str]] = []
    accuracy = summary["accuracy"]
    if accuracy is not None:
        interval = f"95% interval {percent(accuracy['low'])} to {percent(accuracy['high'])}"
        if accuracy["n_groups"] is not None:
            interval += f" for the mean of a new group, from {count(accuracy['n_groups'], 'group')}"
        if not certificate["certified"]:
            interval += "; not certified"
        cells.append((percent(accuracy["value"]), "Accuracy", interval))
    if certificate["certified"]:
        confidence = f"at most, with {percent(1 - certificate['delta'], 0)} confidence"
        cells.append((percent(certificate["bounds"][0]["value"]), "Certified error", confidence))
    if summary["n_series"] is not None:
        low, high = (content["data"]["lengths"][key] for key in ("low", "high"))
        steps = f"{low} to {high} steps" if low < high else f"of {count(low, 'step')}"
        cells.append((f"{summary['n_series']:,}", "Series", steps))
    channels = count(summary["n_channels"], "channel")
    cells.append((str(summary["n_classes"]), "Classes", f"from {channels}"))
    if content["references"] is not None:
        landmarks = content["references"]["kind"] == "landmarks"
        words = ("Landmarks", "with nonzero weight") if landmarks else ("Training series", "stored")
        if summary["n_snippets"] is not None:
            words = ("Landmarks", f"and {count(summary['n_snippets'], 'snippet')}")
        cells.append((f"{summary['n_references']:,}", *words))
    if summary["n_numbers"] is not None:
        cells.append((f"{summary['n_numbers']:,}", "Numbers stored", "metrics, weights and series"))
    figures = "".join(
        f'<div><dt>{escape(name)}</dt><dd class="number">{escape(value)}</dd>'
        f'<dd class="more">{escape(more)}</dd></div>'
        for value, name, more in cells
    )
    return f'<dl class="figures">{figures}</dl>'
