"""The page above and between its pictures: masthead and the order of the sections."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from slts.report.answers_html import certificate_section, data_section, errors_section
from slts.report.explorer_html import explorer_section, space_section
from slts.report.markup import Content, count, percent
from slts.report.model_html import card_section, landmarks_section, looks_section

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def masthead(content: Content) -> str:
    """Title, the story in two sentences, key figures."""
    name = content["model"]["name"]
    return (
        f'<p class="kicker">Model report, {escape(name)}</p>\n'
        f"<h1>{escape(content['title'])}</h1>\n"
        f'<p class="lede">{_lede(content)}</p>\n{_key_figures(content)}'
    )


def sections(content: Content) -> list[tuple[str, str, str]]:
    """Sections that have something to say: (anchor, short name, HTML)."""
    made: list[tuple[str, str, Callable[[Content], str]]] = [
        ("errors", "Right and wrong", errors_section),
        ("certificate", "Guarantee", certificate_section),
        ("looks", "What it looks at", looks_section),
        ("landmarks", "Landmarks", landmarks_section),
        ("space", "Similarity space", space_section),
        ("explorer", "Explorer", explorer_section),
        ("data", "Data", data_section),
        ("card", "Model card", card_section),
    ]
    found = []
    for anchor, name, make in made:
        inner = make(content)
        if inner:
            html = f'<section id="{anchor}" aria-labelledby="h-{anchor}">\n{inner}\n</section>'
            found.append((anchor, name, html))
    return found


def _lede(content: Content) -> str:
    summary, certificate = content["summary"], content["certificate"]
    n_classes = summary["n_classes"]
    number = _WORDS[n_classes] if n_classes < len(_WORDS) else str(n_classes)
    what = f"This model tells {number} classes apart"
    accuracy = summary["accuracy"]
    if accuracy is not None:
        what += (
            f" and named the right one for <strong>{accuracy['right']:,} of {accuracy['n']:,} "
            f"series</strong>"
        )
    elif summary["n_series"] is not None:
        what += f"; it was given {count(summary['n_series'], 'series', 'series')} without labels"
    text = what + "."
    if certificate["given"]:
        bound = certificate["bounds"][0]
        confidence = percent(1 - certificate["delta"], 0)
        text += (
            f" With {confidence} confidence it is wrong on at most "
            f"{percent(bound['value'])} of new ones."
        )
    n = summary["n_landmarks"]
    if content["model"]["kind"] == "landmarks":
        text += f" It decides by comparing a series with {count(n, 'landmark')}."
    elif content["model"]["kind"] == "neighbours":
        text += f" It decides by the nearest of {count(n, 'training series', 'training series')}."
    return text


def _key_figures(content: Content) -> str:
    summary, certificate = content["summary"], content["certificate"]
    cells: list[tuple[str, str, str]] = []
    accuracy = summary["accuracy"]
    if accuracy is not None:
        interval = f"95% interval {percent(accuracy['low'])} to {percent(accuracy['high'])}"
        if not certificate["given"]:
            interval += "; not certified"
        cells.append((percent(accuracy["value"]), "Accuracy", interval))
    if certificate["given"]:
        bound = certificate["bounds"][0]
        confidence = f"at most, with {percent(1 - certificate['delta'], 0)} confidence"
        cells.append((percent(bound["value"]), "Certified error", confidence))
    if summary["n_series"] is not None:
        steps = content["data"]["lengths"]
        span = f"{steps['low']} to {steps['high']} steps"
        span = span if steps["low"] < steps["high"] else f"of {count(steps['low'], 'step')}"
        cells.append((f"{summary['n_series']:,}", "Series", span))
    channels = count(summary["n_channels"], "channel")
    cells.append((str(summary["n_classes"]), "Classes", f"from {channels}"))
    if summary["n_landmarks"] is not None:
        kind = content["model"]["kind"]
        words = ("Landmarks", "with a weight") if kind == "landmarks" else ("Neighbours", "kept")
        cells.append((f"{summary['n_landmarks']:,}", *words))
    if summary["n_numbers"] is not None:
        cells.append((f"{summary['n_numbers']:,}", "Numbers stored", "metrics, weights and series"))
    return (
        '<dl class="figures">'
        + "".join(
            f'<div><dt>{escape(name)}</dt><dd class="number">{escape(value)}</dd>'
            f'<dd class="more">{escape(more)}</dd></div>'
            for value, name, more in cells
        )
        + "</dl>"
    )
