"""Sections about the series: errors, guarantee, similarity space, explorer, data."""

from __future__ import annotations

from html import escape
from typing import Any

from slts.plural import count
from slts.report.markup import (
    MOST_COLUMNS,
    Cell,
    Content,
    fill,
    heading,
    items,
    meter,
    percent,
    table,
)
from slts.series.naming import class_name


def errors_section(content: Content) -> str:
    """Correct and wrong predictions by class, and the misclassified series."""
    confusion, labels = content["confusion"], content["labels"]
    if confusion is None:
        return ""
    confused = confusion["confused"]
    wrong = sum(pair["count"] for pair in confused)
    story = "All series were classified correctly."
    if wrong:
        first = confused[0]
        truth, predicted = (class_name(labels[first[key]]) for key in ("truth", "predicted"))
        pair = f"{truth} was predicted as {predicted}"
        story = f"{wrong:,} series were misclassified."
        if wrong == 1:
            story = f"One series was misclassified: {pair}."
        elif first["count"] > 1:
            story += f" Most frequent error: {pair} ({first['count']} times)."
        else:
            story += " No two classes were confused more than once."
    by_class = _confusion_table if len(labels) <= MOST_COLUMNS else _confused_pairs
    return (
        heading("errors", "Correct and wrong predictions")
        + f"<p>{escape(story)}</p>"
        + f'<div class="beside">{by_class(content)}{_misclassified(content)}</div>'
    )


def _confusion_table(content: Content) -> str:
    rows = []
    for i, (name, counts) in enumerate(
        zip(content["labels"], content["confusion"]["counts"], strict=True)
    ):
        total = sum(counts)
        cells = []
        for j, n in enumerate(counts):
            # A single error must be visible in a row with many correct predictions.
            tint = max(0.0 if i == j else 0.5, n / (total or 1))
            kind = "yes" if i == j else "no"
            cells.append(Cell(str(n), kind, f"--t:{tint:.2f}") if n else Cell("·", "zero"))
        correct = counts[i] if i < len(counts) else 0
        recall = percent(correct / total) if total else "no series"
        rows.append([name, *cells, Cell(recall, "total")])
    head = [Cell("true", "corner"), *content["model"]["classes"], "correct"]
    caption = "Rows: true class. Columns: predicted class."
    return table("Confusion matrix", rows, head=head, css="tint", caption=caption)


def _confused_pairs(content: Content) -> str:
    labels, pairs = content["labels"], content["confusion"]["confused"]
    rows = [[labels[p["truth"]], labels[p["predicted"]], str(p["count"])] for p in pairs]
    head = ["True class", "Predicted class", "Series"]
    caption = f"{count(len(pairs), 'pair')} of confused classes, most frequent first."
    columns = ["", "", "n"]
    return table(
        "Confused classes", rows, head=head, columns=columns, css="plain short", caption=caption
    )


def _misclassified(content: Content) -> str:
    explorer, labels = content["explorer"], content["labels"]
    wrong = [e for e in explorer["entries"] if e["truth"] != e["predicted"]]
    if not wrong:
        return ""
    rows = []
    for entry in wrong:
        probability = "" if entry["p"] is None else percent(entry["p"][entry["predicted"]], 0)
        rows.append([entry["id"], labels[entry["truth"]], labels[entry["predicted"]], probability])
    n_wrong = explorer["n_wrong"]
    some = "The" if n_wrong == len(rows) else f"{len(rows):,} of {n_wrong:,}"
    head, columns = ["Series", "True class", "Predicted class", "Probability"], ["", "", "", "n"]
    caption = f"{some} misclassified series."
    return table(
        "Misclassified series", rows, head=head, columns=columns, css="plain short", caption=caption
    )


def certificate_section(content: Content) -> str:
    """The certificate as sentences, or the reason for its absence."""
    certificate = content["certificate"]
    html = heading("certificate", "Guarantee")
    if not certificate["given"]:
        return (
            f'{html}<div class="promise none"><p>Nothing is guaranteed. '
            f"{escape(certificate['reason'])}</p></div>"
            '<p class="note" style="margin-top:1rem">A certificate needs labelled series that were '
            "not used in training: <code>slts.certify(model, X, y)</code>.</p>"
        )
    first, *others = certificate["bounds"]
    html += (
        f'<div class="promise"><p>{escape(first["sentence"])}</p></div>'
        f'<div class="pair"><div><h3>Checked</h3>{items(first["checked"])}</div>'
        f"<div><h3>Not checked: your responsibility</h3>{items(first['unchecked'])}</div></div>"
    )
    if others:
        rows = [
            [b["name"], f"{b['value']:.4f}{' (vacuous)' if b['vacuous'] else ''}", b["sentence"]]
            for b in certificate["bounds"]
        ]
        bounds = table(
            "All bounds", rows, head=["Bound", "At most", "Statement"], columns=["", "n", "text"]
        )
        html += f"<details><summary>All bounds</summary>{bounds}</details>"
    return html


def space_section(content: Content) -> str:
    """Container of the scatter plot."""
    space, explorer = content["space"], content["explorer"]
    if space is None:
        return ""
    n, given = len(space["points"]), content["summary"]["n_series"]
    landmarks = content["references"]["kind"] == "landmarks"
    kind = "landmarks" if landmarks else "training series"
    sentences = [
        "Nearby points are similar series.",
        f"The axes are the first two principal components of the similarities to the {kind}, which "
        f"explain {percent(space['variance'], 0)} of their variance.",
        f"Colour and shape show the {'true' if explorer['labelled'] else 'predicted'} class.",
        "Outlined shapes are errors." if explorer["n_wrong"] else "",
        "Rings are landmarks, in the colour of their class." if space["landmarks"] else "",
        f"{n:,} of {given:,} series are shown, misclassified series first." if n < given else "",
    ]
    return (
        heading("space", "Similarity space") + f"<p>{' '.join(filter(None, sentences))}</p>"
        '<p class="note js">Point at a series to see it. Click to select it in the explorer '
        "below. With the keyboard, the arrow keys walk through all points.</p>"
        '<noscript><p class="note">The plot needs JavaScript.</p></noscript>'
        '<div id="scatter" class="js"></div>'
        '<p class="note js" id="picked" aria-live="polite"></p>'
    )


def explorer_section(content: Content) -> str:
    """Container of the explorer, with notes on what it leaves out."""
    explorer, drawing = content["explorer"], content["drawing"]
    if explorer is None:
        return ""
    kept, given = len(explorer["entries"]), explorer["n_given"]
    steps, channels = drawing["most_steps"], drawing["most_channels"]
    notes = []
    if kept < given:
        notes.append(
            f"This file contains {kept:,} of {given:,} series: misclassified series first, then a "
            f"random choice."
        )
    if content["data"]["lengths"]["high"] > steps:
        notes.append(
            f"Series of more than {steps} steps are drawn with {steps} points; contributions of "
            f"neighbouring steps are summed."
        )
    if content["summary"]["n_channels"] > channels:
        notes.append(
            f"The {channels} most important channels are drawn; contributions of all others are "
            f"summed."
        )
    notes.append(drawing["note"])
    if explorer["times"] is None:
        notes.append("Steps count from 0.")
    has_probabilities = explorer["entries"][0]["p"] is not None
    slots = {
        "order": "Misclassified series are listed first." if explorer["n_wrong"] else "",
        "notes": escape(" ".join(notes)),
        "values": "Probabilities" if has_probabilities else "Scores",
        "choose": "" if content["references"] is None else ": choose a class to explain",
        "no_map": "" if explorer["has_maps"] else "hidden",
        "no_snippets": "hidden" if content["snippets"] is None else "",
        "no_alignment": "hidden" if content["references"] is None else "",
        "not_alone": "" if content["references"] is None else "hidden",
    }
    return heading("explorer", "Explain a prediction") + fill("explorer.html", slots)


def data_section(content: Content) -> str:
    """Lengths, and number of series by class."""
    data = content["data"]
    if data is None:
        return ""
    series = count(data["n_series"], "series", "series")
    steps, channels = count(data["n_steps"], "step"), count(data["n_channels"], "channel")
    return (
        heading("data", "Data of this report")
        + f"<p>{series} with {steps} in total and {channels}.</p>"
        f'<div class="pair"><div>{_histogram(data["lengths"])}</div>'
        f"<div>{_balance(content)}</div></div>"
    )


def _histogram(lengths: dict[str, Any]) -> str:
    counts, low, high = lengths["counts"], lengths["low"], lengths["high"]
    peak = max(counts)
    bars = "".join(f'<span style="height:{100 * c / peak:.1f}%"></span>' for c in counts)
    median = f"{lengths['median']:g}"
    label = (
        f"Histogram of lengths: {low} to {high} steps, median {median}, at most {peak} series in "
        f"one bar"
    )
    return (
        f"<h3>Lengths</h3><p>The median length is {median} steps.</p>"
        f'<div class="histogram" role="img" aria-label="{escape(label)}">'
        f'<div class="bars">{bars}</div><div class="axis"><span>{low} steps</span>'
        f"<span>{high}</span></div></div>"
    )


def _balance(content: Content) -> str:
    data, labels = content["data"], content["labels"]
    labelled = data["counts"] is not None
    counts = data["counts"] if labelled else data["predicted"]
    peak = max(counts) or 1
    rows: list[list[str | Cell]] = []
    for k, name in enumerate(labels):
        rows.append([name, Cell(meter(counts[k] / peak, str(counts[k])))])
        if labelled:
            correct = percent(data["correct"][k] / counts[k]) if counts[k] else "no series"
            rows[-1].append(correct)
    title = "Series by class" if labelled else "Predictions by class"
    head = ["Class", "Series", "Correct"] if labelled else ["Class", "Series"]
    return f"<h3>{title}</h3>{table(title, rows, head=head, columns=['', '', 'n'])}"
