"""Sections about the model: channels and metrics, landmarks, snippets, model card."""

from __future__ import annotations

from html import escape
from typing import Any

from slts.report.markup import MOST_COLUMNS, Cell, Content, heading, items, meter, percent, table

# Largest number of class names in the model card.
_MOST_NAMES = 60
# Representations and objectives in words.
_WORDS = {
    "values": "the values of the channels",
    "changes": "the values and their changes from step to step",
    "levels": "how far values exceed levels of their channel, and how that changes",
    "affinity": "steps are aligned for the largest similarity",
    "cost": "steps are aligned for the smallest distance",
    "snippets": "how often short pieces of training series occur",
}
_CONSTANT = (
    "&ldquo;constant&rdquo; is an added channel with the same value at every step. Paired with it, "
    "a channel counts by its level alone."
)


def importance_section(content: Content) -> str:
    """Importance of channels and comparisons, and the container of the metrics."""
    found = content["importance"]
    if found["channels"] is None and not found["metrics"]:
        return ""
    html = heading("importance", "Channels and metrics")
    parts = []
    if found["channels"] is not None:
        story, listing = _channels(content)
        html += story
        parts.append(listing)
    if found["comparisons"]:
        parts.append(_comparisons(found["comparisons"]))
    html += f'<div class="beside">{"".join(parts)}</div>' if parts else ""
    if found["metrics"]:
        html += (
            f'<h3>Metrics</h3><p class="note">{_about_metrics(found)} '
            "<span class='key for'></span>Blue pairs raise the similarity, "
            "<span class='key against'></span>orange pairs lower it. The largest and the smallest "
            "pair are named below each map. All maps have the same scale.</p>"
            '<noscript><p class="note">The maps need JavaScript.</p></noscript>'
            '<div id="maps" class="js"></div>'
        )
    else:
        html += "<p>The model has no learned metric: it compares each channel only with itself.</p>"
    return html


def _channels(content: Content) -> tuple[str, str]:
    """A sentence about the most important channel, and a table of all channels."""
    model, importance = content["model"], content["importance"]["channels"]
    names = [*model["channels"], "constant"][: len(importance[0])]
    mean = [sum(column) / len(importance) for column in zip(*importance, strict=True)]
    largest, peak = max(mean) or 1.0, max(map(max, importance)) or 1.0
    by_class = 1 < len(importance) <= MOST_COLUMNS
    rows: list[list[str | Cell]] = []
    for u in range(len(names)):
        rows.append(
            [names[u], Cell(meter(mean[u] / largest, f"{100 * mean[u]:.1f}"), "total left")]
        )
        if by_class:
            rows[-1] += [
                Cell(f"{100 * row[u]:.0f}", "yes", f"--t:{row[u] / peak:.2f}") for row in importance
            ]
    head: list[str | Cell] = [Cell("channel", "corner"), Cell("mean", "left")]
    if by_class:
        head += [model["classes"][c] for c in model["decision_classes"]]
    over = "the landmarks" if content["data"] is None else "the series of this report"
    caption = f"Share of the absolute contributions in percent, averaged over {over}."
    if by_class:
        caption += " One column per class."
    if len(names) > len(model["channels"]):
        caption += f" {_CONSTANT}"
    top = max(range(len(names)), key=mean.__getitem__)
    story = f"<strong>{escape(names[top])}</strong> is the most important channel"
    average = " on average over the classes" if len(importance) > 1 else ""
    listing = table("Importance of channels", rows, head=head, css="tint", caption=caption)
    return f"<p>{story}{average}: {percent(mean[top])} of all contributions.</p>", listing


def _comparisons(comparisons: list[list[Any]]) -> str:
    peak = max(share for _, share in comparisons) or 1.0
    rows = [
        [
            Cell(f"{escape(name)}<small>{_words(name)}</small>", "about"),
            Cell(meter(share / peak, f"{100 * share:.1f}"), "total left"),
        ]
        for name, share in comparisons
    ]
    caption = (
        "The model compares series in several ways, each with its own alignments and metrics. "
        "Share of each comparison in the scores, in percent."
    )
    return table("Importance of comparisons", rows, css="tint", caption=caption)


def _words(comparison: str) -> str:
    """What is compared, and how steps are aligned, in words."""
    what, _, objective = comparison.partition(", ")
    return "; ".join(_WORDS[part] for part in (what, objective) if part in _WORDS)


def _about_metrics(importance: Content) -> str:
    sentences = [
        "A metric has a weight for each pair of channels at aligned steps. Rows are channels of "
        "the series, columns are channels of the landmark."
    ]
    if importance["metrics"][0]["decision"] is None:
        sentences = ["All classes share one metric."]
    if any(metric["part"] is not None for metric in importance["metrics"]):
        sentences.append(
            "Landmarks are divided into parts in time, each with its own metrics. The maps show "
            "the metrics for landmarks of the same class."
        )
    if importance["metric_comparison"] is not None:
        name = importance["metric_comparison"]
        sentences.append(
            f"The maps belong to the comparison &ldquo;{escape(name)}&rdquo; ({_words(name)})."
        )
    if "constant" in importance["metric_channels"]:
        sentences.append(_CONSTANT)
    return " ".join(sentences)


def landmarks_section(content: Content) -> str:
    """Container of the drawn landmarks, and a table."""
    references, model = content["references"], content["model"]
    if references is None or references["kind"] != "landmarks":
        return ""
    weighted = references["weighted"]
    rows = []
    for row in references["gallery"]:
        heaviest = ", ".join(
            f"{references['name'][j]} ({_effect(effect, weighted=weighted)})"
            for j, effect in zip(row["shown"], row["effect"], strict=True)
        )
        rows.append([model["classes"][row["class"]], str(row["used"]), heaviest])
    head = ["Class", "Landmarks", f"Largest: series and {'share' if weighted else 'effect'}"]
    listing = table("Landmarks", rows, head=head, columns=["", "n", "text"])
    return (
        heading("landmarks", "Landmarks" + (" and their weights" if weighted else ""))
        + "<p>A landmark is a training series that the model compares new series with. "
        f"{escape(_about_shares(model['classes'], weighted=weighted))}</p>"
        '<p class="note js">The three most important channels of a class are drawn and named.</p>'
        '<div id="gallery" class="js"></div>'
        f"<details><summary>Show as a table</summary>{listing}</details>"
    )


def _about_shares(classes: list[str], *, weighted: bool) -> str:
    if not weighted:
        return (
            "Landmarks are grouped by their class, strongest first. The number is the effect of "
            "the landmark on the score of its class: how much its contribution differs between "
            "series."
        )
    share = "The number is the share of the landmark in all weights."
    if len(classes) == 2:
        return (
            f"Similarity to a landmark with a positive weight raises the score of {classes[1]} and "
            f"lowers the score of {classes[0]}. A negative weight does the opposite. {share}"
        )
    return (
        "Each class has its own weights. Similarity to a landmark with a positive weight raises "
        f"the score of the class. A negative weight lowers it. {share}"
    )


def _effect(value: float, *, weighted: bool) -> str:
    return f"{100 * value:+.0f}%" if weighted else f"{value:.2g}"


def snippets_section(content: Content) -> str:
    """Container of the drawn snippets, and a table."""
    snippets, model = content["snippets"], content["model"]
    if snippets is None:
        return ""
    rows = []
    for decision, sides in enumerate(snippets["gallery"]):
        name = model["classes"][model["decision_classes"][decision]]
        for side, strongest in sides.items():
            rows += [
                [name, side, f"{item['weight']:+.2g}", snippets["text"][item["snippet"]]]
                for item in strongest
            ]
    head = ["Class", "Side", "Importance", "Snippet"]
    listing = table("Snippets", rows, head=head, columns=["", "", "n", "text"])
    given = "training series" if snippets["of_training"] else "series of this report"
    about = (
        f"A snippet is a short piece of a training series: {snippets['n_steps']} steps of some "
        "channels. The model compares it with every step of a series and counts how often it "
        "occurs. The number is the importance of the snippet: how much its contribution to the "
        "score differs between series, on average over the landmarks. The sign says whether it "
        "counts for the class or against it."
    )
    drawn = (
        "Lines are in the units of the data; the numbers below a name are the range of the "
        f"snippet. On the right is one of the {given}, in which the snippet adds most: the thick "
        "line is its closest occurrence, and shades show what it adds at each step. &ldquo;Shape "
        "only&rdquo; means that level, slope and amplitude do not matter."
    )
    return (
        heading("snippets", "Snippets")
        + f"<p>{about}</p>"
        + f'<p class="note js">{drawn}</p><div id="snippet-gallery" class="js"></div>'
        f"<details><summary>Show as a table</summary>{listing}</details>"
    )


def card_section(content: Content) -> str:
    """Facts, limits, provenance and parameters."""
    card, names = content["card"], content["model"]["classes"]
    provenance = [["Report made", card["made"]], ["Library", card["library"]], *card["provenance"]]
    parameters = [
        [Cell(f"<code>{escape(name)}</code>"), Cell(f"<code>{escape(value)}</code>"), origin]
        for name, value, origin in card["parameters"]
    ]
    head, text = ["Name", "Value", "Origin"], ["", "text"]
    listed = ", ".join(names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (
        heading("card", "Model card")
        + f'<div class="pair"><div><h3>Model</h3>{table("Model", card["facts"], columns=text)}'
        f'<p class="note" style="margin-top:.8rem">Classes: {escape(listed)}{more}.</p>'
        f"<h3>Limits</h3>{items(card['limits'])}"
        f"<h3>Provenance</h3>{table('Provenance', provenance, columns=text)}</div><div>"
        f"<h3>Parameters</h3>{table('Parameters', parameters, head=head, columns=text)}</div></div>"
    )
