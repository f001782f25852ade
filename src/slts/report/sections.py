"""The sections of the page, made from the content that `collect` returns.

Elements come first: templates, tables, bars and lists. They escape text, or their callers do, as
documented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from math import sqrt
from typing import Any

from slts.guarantees.held_out import copies_sentence
from slts.quantities import class_name, count, list_first

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
    """A table cell: content, already escaped, a CSS class and an inline style."""

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

    Strings are escaped; the first cell of a row is its header. `label` is the accessible name, and
    `caption` is HTML that does not scroll.
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


# ---- sections


# Tables with one column per class have at most this many columns.
_MOST_COLUMNS = 20
# Largest number of class names in the model card.
_MOST_NAMES = 60
# Standard errors by which fewer sets have the true class than promised, if the series are others.
_LEAST_STANDARD_ERRORS = 3.0
# Feature maps in words.
_MAPS = {
    "landmarks": "whole training series, aligned with the series",
    "snippets": "how often short parts of training series occur",
}


def masthead(content: Content) -> str:
    """Title, summary in sentences, key figures."""
    summary, classes = content["summary"], content["model"]["classes"]
    accuracy, n = summary["accuracy"], count(summary["n_series"] or 0, "series", "series")
    references = f"{summary['n_references']:,} training series"
    if content["references"]["kind"] == "landmarks":
        references = count(summary["n_references"], "landmark")
    if summary["n_snippets"] is not None:
        references += f" and with {count(summary['n_snippets'], 'snippet')} at every step"
    return section(
        "masthead",
        name=content["model"]["name"],
        title=escape(content["title"]),
        seen=shown(summary["n_seen"]),
        copies=copies_sentence(summary["n_seen"], summary["n_series"] or 0),
        population="series of new groups" if summary["grouped"] else "new series",
        n_classes=str(len(classes)),
        labelled=shown(accuracy),
        correct=f"{accuracy['correct']:,} of {n}" if accuracy else "",
        unlabelled=shown(summary["n_series"] and not accuracy),
        n=n,
        references=references,
        figures=_key_figures(content),
    )


def _key_figures(content: Content) -> str:
    summary, certificate = content["summary"], content["certificate"]
    accuracy, explorer = summary["accuracy"], content["explorer"]
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
    if explorer is not None:
        shortest, longest = explorer["lengths"]
        steps = f"{shortest} to {count(longest, 'step')}"
        cells.append((f"{summary['n_series']:,}", "Series", steps))
    channels = f"from {count(len(content['model']['channels']), 'channel')}"
    cells.append((str(len(content["model"]["classes"])), "Classes", channels))
    words = ("Training series", "stored")
    if content["references"]["kind"] == "landmarks":
        words = ("Landmarks", "with nonzero weight")
    cells.append((f"{summary['n_references']:,}", *words))
    cells.append((f"{summary['n_numbers']:,}", "Numbers stored", "metrics, weights and series"))
    return "".join(
        f'<div><dt>{escape(name)}</dt><dd class="number">{escape(value)}</dd>'
        f'<dd class="more">{escape(more)}</dd></div>'
        for value, name, more in cells
    )


def predictions(content: Content) -> str:
    """Correct and wrong predictions by class, and the misclassified series."""
    if content["explorer"] is None:
        return ""
    confusion, story = content["confusion"], "The series have no labels."
    if confusion is not None:
        story = _errors_in_words(confusion["confused"])
    is_small = confusion is not None and len(content["labels"]) <= _MOST_COLUMNS
    tables = _confusion_matrix(content) if is_small else _by_class(content)
    tables += _misclassified(content) if content["explorer"]["n_wrong"] else ""
    gaps = content["explorer"]["missing"]
    shares = [f"{name} {percent(share)}" for name, share in gaps["channels"]]
    n, missing = content["explorer"]["n_series"], list_first(shares, _MOST_NAMES)
    missing = f"{gaps['n_series']:,} of {n:,} series (share of the values: {missing})"
    return section(
        "predictions",
        story=escape(story),
        tables=tables,
        gaps=shown(gaps["channels"]),
        missing=escape(missing),
    )


def _errors_in_words(confused: list[Content]) -> str:
    if not confused:
        return "All series were classified correctly."
    first, wrong = confused[0], sum(pair["count"] for pair in confused)
    pair = f"{class_name(first['truth'])} was predicted as {class_name(first['predicted'])}"
    if wrong == 1:
        return f"One series was misclassified: {pair}."
    most = f"Most frequent error: {pair} ({first['count']} times)."
    if first["count"] == 1:
        most = "No two classes were confused more than once."
    return f"{wrong:,} series were misclassified. {most}"


def _by_class(content: Content) -> str:
    """Number of series by class, or of predictions if there are no labels."""
    title, head, counts = "Predictions by class", ["Class", "Series"], content["predicted"]
    confusion = content["confusion"]
    if confusion is not None:
        title, head = "Series by class", [*head, "Correct"]
        counts = [sum(row) for row in confusion["counts"]]
    rows = []
    for k, (name, n) in enumerate(zip(content["labels"], counts, strict=True)):
        row = [name, Cell(meter(n / max(counts), str(n)))]
        if confusion is not None:
            row.append(_share(sum(confusion["counts"][k][k : k + 1]), n))
        rows.append(row)
    return table(title, rows, head, caption=f"{title}.")


def _confusion_matrix(content: Content) -> str:
    rows = []
    for i, counts in enumerate(content["confusion"]["counts"]):
        row: list[str | Cell] = [content["labels"][i]]
        for j, n in enumerate(counts):
            # A single error must be visible in a row with many correct predictions.
            tint = max(0.0 if i == j else 0.5, n / (sum(counts) or 1))
            kind = "yes" if i == j else "no"
            row.append(Cell(str(n), kind, f"--t:{tint:.2f}") if n else Cell("·", "zero"))
        correct = counts[i] if i < len(counts) else 0
        rows.append([*row, Cell(_share(correct, sum(counts)), "total")])
    head = [Cell("true", "corner"), *content["model"]["classes"], "correct"]
    caption = "Rows: true class. Columns: predicted class."
    return table("Confusion matrix", rows, head, css="tint", caption=caption)


def _misclassified(content: Content) -> str:
    explorer, labels, rows = content["explorer"], content["labels"], []
    for entry in explorer["entries"]:
        truth, predicted, p = entry["truth"], entry["predicted"], entry["p"]
        if truth != predicted:
            probability = "" if p is None else percent(p[predicted], 0)
            rows.append([entry["id"], labels[truth], labels[predicted], probability])
    some = (
        "The" if explorer["n_wrong"] == len(rows) else f"{len(rows):,} of {explorer['n_wrong']:,}"
    )
    head = ["Series", "True class", "Predicted class", "Probability"]
    caption = f"{some} misclassified series."
    return table("Misclassified series", rows, head, "plain short", caption)


def certificate(content: Content) -> str:
    """The certificate as sentences, or the reason for its absence."""
    parts = content["certificate"]
    if not parts["certified"]:
        return section("no_certificate", reason=escape(parts["reason"]))
    return section(
        "certificate",
        sentence=escape(parts["sentence"]),
        checked=items(parts["checked"]),
        unchecked=items(parts["unchecked"]),
    )


def sets(content: Content) -> str:
    """Number of series by the size of their prediction set."""
    parts = content["sets"]
    if parts is None:
        return ""
    alpha, covered, total = parts["alpha"], parts["covered"], sum(parts["sizes"])
    fewest = 1 - alpha - _LEAST_STANDARD_ERRORS * sqrt(alpha * (1 - alpha) / total)
    doubt = ""
    if covered is not None and covered < fewest:
        doubt = section("doubtful_sets", covered=percent(covered))
    names = ["one class", "several classes"]
    rows: list[list[str | Cell]] = [
        [name, Cell(meter(n / total, f"{n:,}"))]
        for name, n in zip(names, parts["sizes"], strict=True)
    ]
    caption = "Number of series by the size of their set."
    if covered is not None:
        caption += f" {percent(covered)} of the sets contain the true class."
    return section(
        "sets",
        confidence=percent(1 - alpha, 0),
        alpha=percent(alpha, 0),
        guarantee=escape(parts["guarantee"]),
        doubt=doubt,
        tables=table("Sizes of the prediction sets", rows, caption=caption),
    )


def importance(content: Content) -> str:
    """Importance of channels and feature maps, and the container of the metrics."""
    parts = content["importance"]
    if parts is None:
        return ""
    story, tables = _channels(content)
    maps = [
        f"{escape(name)} ({_MAPS[name]}) {percent(share)}" for name, share in parts["feature_maps"]
    ]
    return section(
        "importance",
        story=story,
        several=shown(maps),
        maps=", ".join(maps),
        tables=tables + _without_channels(content),
        metrics=shown(parts["metrics"]),
        no_metrics=shown(not parts["metrics"]),
        phases=shown(parts["metrics"] and parts["metrics"][0]["part"]),
        one_of_several=shown(parts["metric_map"]),
        map=escape(parts["metric_map"] or ""),
        constant=shown("constant" in parts["metric_channels"]),
    )


def _channels(content: Content) -> tuple[str, str]:
    """A sentence about the most important channel, and a table of all channels."""
    model, shares = content["model"], content["importance"]["channels"]
    names = [*model["channels"], "constant"][: len(shares[0])]
    mean = [sum(column) / len(shares) for column in zip(*shares, strict=True)]
    largest, peak = max(mean) or 1.0, max(map(max, shares)) or 1.0
    over = "the series of this report" if content["explorer"] else "the landmarks"
    caption = f"Share of the absolute contributions in percent, averaged over {over}."
    head: list[str | Cell] = [Cell("channel", "corner"), Cell("mean", "left")]
    by_class = shares if 1 < len(shares) <= _MOST_COLUMNS else []
    if by_class:
        head += [model["classes"][c] for c in model["decision_classes"]]
        caption += " One column per class."
    if len(names) > len(model["channels"]):
        caption += f" {section('constant_channel')}"
    rows = []
    for name, share, *row in zip(names, mean, *by_class, strict=True):
        bar = Cell(meter(share / largest, f"{100 * share:.1f}"), "total left")
        cells = [Cell(f"{100 * one:.0f}", "yes", f"--t:{one / peak:.2f}") for one in row]
        rows.append([name, bar, *cells])
    top = max(range(len(names)), key=mean.__getitem__)
    average = " on average over the classes" if len(shares) > 1 else ""
    story = (
        f"<p><strong>{escape(names[top])}</strong> is the most important channel{average}: "
        f"{percent(mean[top])} of all contributions.</p>"
    )
    return story, table("Importance of channels", rows, head, css="tint", caption=caption)


def _without_channels(content: Content) -> str:
    """The leave-one-out accuracy without each channel, highest first."""
    parts, names = content["without_channels"], content["model"]["channels"]
    if parts is None:
        return ""
    if "reason" in parts:
        return f"<p>The accuracy without each channel is unknown: {escape(parts['reason'])}</p>"
    rows = [["none", percent(parts["accuracy"])]]
    rows += [[names[k], percent(accuracy)] for k, accuracy in parts["channels"]]
    caption = (
        f"Each of {count(parts['n_series'], 'series', 'series')} of this report predicted by a "
        f"model that learns from all others, with the landmarks and snippets of this model."
    )
    head = ["Channel left out", "Accuracy"]
    return table("Accuracy without a channel", rows, head, "plain short", caption)


def landmarks(content: Content) -> str:
    """Container of the drawn landmarks."""
    references, classes = content["references"], content["model"]["classes"]
    if references["kind"] != "landmarks":
        return ""
    about = "weights" if len(classes) > 2 else "weights_of_two"
    first, second, *_ = map(escape, classes)
    return section(
        "landmarks",
        title="Landmarks" + (" and their weights" if references["weighted"] else ""),
        about=section(about if references["weighted"] else "effects", first=first, second=second),
    )


def snippets(content: Content) -> str:
    """Container of the drawn snippets."""
    parts = content["snippets"]
    if parts is None:
        return ""
    examples = "series of this report" if content["explorer"] else "training series"
    return section("snippets", n_steps=str(parts["n_steps"]), examples=examples)


def space(content: Content) -> str:
    """Container of the scatter plot."""
    parts, explorer = content["space"], content["explorer"]
    if parts is None:
        return ""
    n, total = len(parts["points"]), explorer["n_series"]
    words = "landmarks" if content["references"]["kind"] == "landmarks" else "training series"
    return section(
        "space",
        references=words,
        variance=percent(parts["variance"], 0),
        label="true" if explorer["labelled"] else "predicted",
        errors=shown(explorer["n_wrong"]),
        rings=shown(parts["landmarks"]),
        some=shown(n < total),
        n=f"{n:,}",
        total=f"{total:,}",
    )


def explorer(content: Content) -> str:
    """Container of the explorer, with notes on what it leaves out."""
    parts, drawing = content["explorer"], content["drawing"]
    if parts is None:
        return ""
    kept, total = len(parts["entries"]), parts["n_series"]
    n_drawn, steps = len(drawing["channels"]), drawing["most_steps"]
    return section(
        "explorer",
        errors=shown(parts["n_wrong"]),
        some=shown(kept < total),
        kept=f"{kept:,}",
        total=f"{total:,}",
        long=shown(parts["lengths"][1] > steps),
        steps=str(steps),
        many=shown(len(content["model"]["channels"]) > n_drawn),
        channels=str(n_drawn),
        aligned=shown(drawing["as_aligned"]),
        standardised=shown(not drawing["as_aligned"]),
        unit_steps=shown(drawing["unit_steps"]),
        values="Scores" if parts["entries"][0]["p"] is None else "Probabilities",
        map=shown(content["references"]["kind"] == "landmarks"),
        snippets=shown(content["snippets"]),
    )


def _share(part: int, total: int) -> str:
    return percent(part / total) if total else "no series"


def card(content: Content) -> str:
    """Facts, limits, provenance and parameters."""
    parts, names = content["card"], content["model"]["classes"]
    provenance = [["Report made", parts["made"]], ["Library", parts["library"]]]
    parameters = [
        [Cell(f"<code>{escape(name)}</code>"), Cell(f"<code>{escape(value)}</code>"), origin]
        for name, value, origin in parts["parameters"]
    ]
    return section(
        "card",
        facts=table("Model", parts["facts"]),
        classes=escape(list_first(names, _MOST_NAMES)),
        contributions=shown(content["references"]["kind"] == "landmarks"),
        amplitude=shown(not content["drawing"]["amplitude"]),
        provenance=table("Provenance", [*provenance, *parts["provenance"]]),
        parameters=table("Parameters", parameters, ["Name", "Value", "Origin"]),
    )
