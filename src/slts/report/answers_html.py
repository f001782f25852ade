"""Sections on the answers: right and wrong, certificate, data."""

from __future__ import annotations

from html import escape
from typing import Any

from slts.report.markup import (
    MOST_COLUMNS,
    Content,
    class_name,
    count,
    heading,
    items,
    percent,
    table_with_caption,
)

# Rows of tables that could grow without end.
_MOST_PAIRS = 15
_MOST_MISTAKES = 15
_MOST_CLASSES = 100


def errors_section(content: Content) -> str:
    """What was named right, and what was taken for what."""
    confusion = content["confusion"]
    if confusion is None:
        return ""
    classes = content["model"]["classes"]
    confused = confusion["confused"]
    wrong = sum(pair["count"] for pair in confused)
    if wrong == 0:
        story = "Every series was named right."
    else:
        first = confused[0]
        truth = class_name(confusion["rows"][first["truth"]])
        said = class_name(classes[first["predicted"]])
        often = "twice" if first["count"] == 2 else f"{first['count']} times"
        story = f"{count(wrong, 'series', 'series')} got a wrong name."
        if wrong == 1:
            story += f" It is {truth} and was taken for {said}."
        elif first["count"] > 1:
            story += f" Most often {truth} was taken for {said}: {often}."
        else:
            story += " No two classes were confused more than once."
    small = len(confusion["rows"]) <= MOST_COLUMNS
    table = _confusion_table if small else _confused_table
    return (
        heading("errors", "Right and wrong")
        + f"<p>{escape(story)}</p>"
        + f'<div class="beside">{table(classes, confusion)}{_mistakes(content)}</div>'
    )


def _confusion_table(classes: list[str], confusion: dict[str, Any]) -> str:
    counts = confusion["counts"]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in classes)
    rows = []
    for i, (name, row) in enumerate(zip(confusion["rows"], counts, strict=True)):
        total = sum(row)
        cells = []
        for j, n in enumerate(row):
            if n == 0:
                cells.append('<td class="zero">·</td>')
                continue
            kind = "yes" if i == j else "no"
            # A single mistake must be seen beside a long row of right answers.
            tint = max(0.5, n / total) if i != j else n / total
            cells.append(f'<td class="{kind}" style="--t:{tint:.2f}">{n}</td>')
        right = row[i] if i < len(row) else 0
        recall = percent(right / total) if total else "no series"
        rows.append(
            f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}'
            f'<td class="total">{recall}</td></tr>'
        )
    return table_with_caption(
        "Rows: the true class. Columns: what the model said.",
        "Confusion matrix",
        f'<table class="tint"><thead><tr><th scope="col" class="corner">true</th>{head}'
        f'<th scope="col">right</th></tr></thead><tbody>{"".join(rows)}</tbody></table>',
    )


def _confused_table(classes: list[str], confusion: dict[str, Any]) -> str:
    pairs = confusion["confused"]
    rows = "".join(
        f'<tr><th scope="row">{escape(confusion["rows"][pair["truth"]])}</th>'
        f'<td>{escape(classes[pair["predicted"]])}</td><td class="n">{pair["count"]}</td></tr>'
        for pair in pairs[:_MOST_PAIRS]
    )
    shown = min(len(pairs), _MOST_PAIRS)
    return table_with_caption(
        f"The {shown} of {len(pairs)} pairs of classes that are confused most often.",
        "Confused classes",
        '<table class="plain short"><thead><tr><th scope="col">True class</th>'
        '<th scope="col">The model said</th><th scope="col" class="n">Series</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>",
    )


def _mistakes(content: Content) -> str:
    explorer, classes = content["explorer"], content["model"]["classes"]
    wrong = [e for e in explorer["entries"] if e["truth"] != e["predicted"]]
    if not wrong:
        return ""
    rows = []
    for entry in wrong[:_MOST_MISTAKES]:
        p = entry["p"]
        sure = "" if p is None else percent(p[entry["predicted"]], 0)
        rows.append(
            f'<tr><th scope="row">{escape(entry["id"])}</th>'
            f"<td>{escape(explorer['labels'][entry['truth']])}</td>"
            f'<td>{escape(classes[entry["predicted"]])}</td><td class="n">{sure}</td></tr>'
        )
    n_wrong = explorer["n_wrong"]
    what = "The mistakes." if n_wrong == len(rows) else f"{len(rows)} of {n_wrong:,} mistakes."
    return table_with_caption(
        what,
        "Mistakes",
        '<table class="plain short"><thead><tr><th scope="col">Series</th>'
        '<th scope="col">True class</th><th scope="col">The model said</th>'
        '<th scope="col" class="n">with probability</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>",
    )


def certificate_section(content: Content) -> str:
    """The certificate in words, or why there is none."""
    certificate = content["certificate"]
    html = heading("certificate", "What is guaranteed")
    if not certificate["given"]:
        return (
            f'{html}<div class="promise none"><p>Nothing is certified here. '
            f"{escape(certificate['reason'])}</p></div>"
            '<p class="note" style="margin-top:1rem">A certificate needs labelled series that '
            "played no part in training: <code>slts.certify(model, X, y)</code>.</p>"
        )
    first, *others = certificate["bounds"]
    html += f'<div class="promise"><p>{escape(first["sentence"])}</p></div>'
    checked = items(first["checked"])
    unchecked = items(first["unchecked"])
    html += (
        '<div class="pair"><div><h3>What was checked</h3>'
        f"{checked}</div><div><h3>What only you can vouch for</h3>{unchecked}</div></div>"
    )
    if others:
        rows = "".join(
            f'<tr><th scope="row">{escape(bound["name"])}</th><td class="n">'
            f"{bound['value']:.4f}{' (vacuous)' if bound['vacuous'] else ''}</td>"
            f'<td class="text">{escape(bound["sentence"])}</td></tr>'
            for bound in certificate["bounds"]
        )
        html += (
            "<details><summary>All bounds</summary>"
            '<div class="wide" tabindex="0" role="region" aria-label="All bounds">'
            '<table class="plain"><thead><tr><th scope="col">Bound</th>'
            '<th scope="col" class="n">at most</th><th scope="col">in words</th></tr></thead>'
            f"<tbody>{rows}</tbody></table></div></details>"
        )
    return html


def data_section(content: Content) -> str:
    """Lengths and class balance."""
    data = content["data"]
    if data is None:
        return ""
    series = count(data["n_series"], "series", "series")
    steps, channels = count(data["n_steps"], "step"), count(data["n_channels"], "channel")
    return (
        heading("data", "The data of this report")
        + f"<p>{series}, together {steps} of {channels}.</p>"
        f'<div class="pair"><div>{_lengths(data["lengths"])}</div><div>{_balance(data)}</div></div>'
    )


def _lengths(lengths: dict[str, Any]) -> str:
    counts, edges = lengths["counts"], lengths["edges"]
    peak = max(counts)
    bars = "".join(f'<span style="height:{100 * c / peak:.1f}%"></span>' for c in counts)
    typical = f"{lengths['median']:g}"
    label = (
        f"Histogram of lengths: {lengths['low']} to {lengths['high']} steps, median {typical}, "
        f"at most {peak} series in one bar"
    )
    return (
        f"<h3>Lengths</h3><p>Half of the series have at most {typical} steps.</p>"
        f'<div class="histogram" role="img" aria-label="{escape(label)}">'
        f'<div class="bars">{bars}</div><div class="axis"><span>{edges[0]} steps</span>'
        f"<span>{lengths['high']}</span></div></div>"
    )


def _balance(data: dict[str, Any]) -> str:
    labelled = data["counts"] is not None
    counts = data["counts"] if labelled else data["answered"]
    peak = max(counts) or 1
    rows = []
    for k, name in enumerate(data["labels"][:_MOST_CLASSES]):
        width = 100 * counts[k] / peak
        right = ""
        if labelled:
            share = percent(data["right"][k] / counts[k]) if counts[k] else "no series"
            right = f'<td class="n">{share}</td>'
        rows.append(
            f'<tr><th scope="row">{escape(name)}</th><td><span class="track"><span class="meter" '
            f'style="width:{width:.1f}%"></span></span> {counts[k]}</td>{right}</tr>'
        )
    left = len(data["labels"]) - len(rows)
    more = f'<p class="note">and {left:,} more</p>' if left > 0 else ""
    title = "Series by class" if labelled else "Answers by class"
    head = '<th scope="col" class="n">named right</th>' if labelled else ""
    return (
        f'<h3>{title}</h3><div class="wide" tabindex="0" role="region" aria-label="{title}">'
        f'<table class="plain"><thead><tr><th scope="col">Class</th><th scope="col">Series</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{more}"
    )
