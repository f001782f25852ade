"""Sections on the model: what it looks at, landmarks, model card."""

from __future__ import annotations

from html import escape
from typing import Any

from slts.report.markup import (
    MOST_COLUMNS,
    Content,
    facts_table,
    heading,
    items,
    many,
    percent,
    table_with_caption,
)

_MOST_NAMES = 60


def looks_section(content: Content) -> str:
    """Importance of channels, and the frame of the metric maps."""
    looks = content["looks"]
    if looks["importance"] is None and not looks["maps"]:
        return ""
    html = heading("looks", "What the model looks at")
    if looks["importance"] is not None:
        html += _importance(content)
    if looks["comparisons"]:
        html += _comparisons(looks["comparisons"])
    if looks["maps"]:
        html += f'<h3>Metrics</h3><p class="note">{_role_of_metrics(looks)} '
        html += (
            "<span class='key for'></span>Blue pairs raise the similarity, "
            "<span class='key against'></span>orange ones lower it; named are the two that count "
            "most. Every map has its own scale.</p>"
            '<noscript><p class="note">The maps are drawn by a script.</p></noscript>'
            '<div id="maps" class="js"></div>'
        )
    elif content["model"]["kind"] == "landmarks":
        html += "<p>It has no learned metric: each channel is compared with itself alone.</p>"
    return html


def _comparisons(comparisons: list[list[Any]]) -> str:
    peak = max(share for _, share in comparisons) or 1.0
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="total left"><span class="track">'
        f'<span class="meter" style="width:{100 * share / peak:.1f}%"></span></span> '
        f"{100 * share:.1f}</td></tr>"
        for name, share in comparisons
    )
    return "<h3>Views</h3>" + table_with_caption(
        "The model looks at series in several ways, each with alignments and metrics of its own. "
        "Share of each in the scores, in percent.",
        "Importance of comparisons",
        f'<table class="tint"><tbody>{rows}</tbody></table>',
    )


def _role_of_metrics(looks: Content) -> str:
    text = (
        "A metric says how much a channel of the series, down, and a channel of the landmark, "
        "across, count when both are large at aligned steps."
    )
    if looks["maps"][0]["problem"] is None:
        text = "One metric serves all classes."
    if any(m["part"] is not None for m in looks["maps"]):
        text += (
            " Landmarks have several parts in time, each with metrics of its own; shown are those "
            "for the landmarks of the class itself."
        )
    if looks["comparison"] is not None:
        text += f" The maps are of the comparison &ldquo;{escape(looks['comparison'])}&rdquo;."
    return text


def _importance(content: Content) -> str:
    model, looks = content["model"], content["looks"]
    importance = looks["importance"]
    names = [*model["channels"], "constant"][: len(importance[0])]
    mean = [sum(row[u] for row in importance) / len(importance) for u in range(len(names))]
    top = max(range(len(names)), key=mean.__getitem__)
    order = [
        u for u in range(len(names)) if u in set(model["drawn"]) or u >= len(model["channels"])
    ]
    by_class = 1 < len(importance) <= MOST_COLUMNS
    peak = max(max(row) for row in importance) or 1.0
    head = ""
    if by_class:
        head = "".join(
            f'<th scope="col">{escape(model["classes"][c])}</th>' for c in model["problems"]
        )
    rows = []
    for u in order:
        cells = ""
        if by_class:
            cells = "".join(
                f'<td class="yes" style="--t:{row[u] / peak:.2f}">{100 * row[u]:.0f}</td>'
                for row in importance
            )
        width = 100 * mean[u] / (max(mean) or 1.0)
        rows.append(
            f'<tr><th scope="row">{escape(names[u])}</th><td class="total left">'
            f'<span class="track"><span class="meter" '
            f'style="width:{width:.1f}%"></span></span> {100 * mean[u]:.1f}</td>{cells}</tr>'
        )
    on = "the series of this report" if looks["on"] == "series" else "its own landmarks"
    left_out = len(names) - len(order)
    more = f" The {left_out} channels that matter least are left out." if left_out else ""
    by = "; one column per class" if by_class else ""
    average = "Averaged over classes, " if len(importance) > 1 else ""
    story = (
        f"<p>{average}<strong>{escape(names[top])}</strong> moves the scores most: "
        f"{percent(mean[top])} of all contributions.</p>"
    )
    return story + table_with_caption(
        f"Share of the absolute contributions in percent, on {on}{by}.{more}",
        "Importance of channels",
        '<table class="tint"><thead><tr><th scope="col" class="corner">channel</th>'
        f'<th scope="col" class="left">mean</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>",
    )


def landmarks_section(content: Content) -> str:
    """Landmarks by class: a frame for their pictures, and a table."""
    if content["model"]["kind"] != "landmarks":
        return ""
    gallery = content["companions"]["gallery"]
    classes, problems = content["model"]["classes"], content["model"]["problems"]
    two, weighted = len(classes) == 2, content["companions"]["weighted"]
    sign = "+" if weighted else ""
    rows = []
    for problem, row in zip(problems, gallery, strict=True):
        heaviest = ", ".join(
            f"{content['companions']['index'][j]} "
            f"({100 * content['companions']['share'][j][0 if two else problem]:{sign}.0f}%)"
            for j in row["shown"]
        )
        rows.append(
            f'<tr><th scope="row">{escape(classes[problem])}</th><td class="n">{row["used"]}</td>'
            f'<td class="text">{escape(heaviest)}</td></tr>'
        )
    return (
        heading("landmarks", "The landmarks" + (" and their weights" if weighted else ""))
        + "<p>A landmark is a training series that new ones are compared with. "
        f"{escape(_role_of_landmarks(classes, weighted=weighted))}</p>"
        '<p class="note js">Channels are drawn as lines. The three that matter most to a class are '
        'coloured and named.</p><div id="gallery" class="js"></div>'
        "<details><summary>As a table</summary>"
        '<div class="wide" tabindex="0" role="region" aria-label="Landmarks">'
        '<table class="plain"><thead><tr><th scope="col">Class</th>'
        '<th scope="col" class="n">Landmarks</th><th scope="col">Heaviest: series and share'
        f"</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _role_of_landmarks(classes: list[str], *, weighted: bool) -> str:
    if not weighted:
        return "The number says how much of a score goes through the landmark, on average."
    share = "The number says how much of all weight lies on the landmark."
    if len(classes) == 2:
        return (
            f"A positive weight raises the score of {classes[1]}, against {classes[0]}, for series "
            f"similar to the landmark; a negative one lowers it. {share}"
        )
    return (
        "Each class has weights of its own. A positive one raises the score of series that the "
        f"class finds similar to the landmark, a negative one lowers it. {share}"
    )


def card_section(content: Content) -> str:
    """Facts, limits, provenance and parameters."""
    card = content["card"]
    facts = [["Classifier", card["classifier"]], *card["facts"]]
    if card["chosen"]:
        chosen = ", ".join(f"{name} = {value}" for name, value in card["chosen"])
        facts.append(["Chosen by the search", chosen])
    provenance = card["provenance"]
    sources = [
        ["Report made", provenance["made"]],
        ["Library", provenance["library"]],
        ["Software", provenance["software"]],
        ["Python", provenance["python"]],
    ]
    if provenance["model"]:
        sources.append(["Fingerprint of the model", provenance["model"]])
    if provenance["data"]:
        sources.append(["Fingerprint of the data", provenance["data"]])
    parameters = "".join(
        f'<tr><th scope="row"><code>{escape(p["name"])}</code></th>'
        f'<td class="text"><code>{escape(p["value"])}</code></td>'
        f"<td>{'default' if p['default'] else 'set'}</td></tr>"
        for p in card["parameters"]
    )
    names = content["model"]["classes"]
    listed = many([escape(name) for name in names[:_MOST_NAMES]])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (
        heading("card", "Model card")
        + f'<div class="pair"><div><h3>The model</h3>{facts_table(facts, "The model")}'
        f'<p class="note" style="margin-top:.8rem">Classes: {listed}{more}.</p>'
        f"<h3>What it cannot say</h3>{items(card['limits'])}"
        f"<h3>Provenance</h3>{facts_table(sources, 'Provenance')}</div>"
        '<div><h3>Parameters</h3><div class="wide" tabindex="0" role="region" '
        'aria-label="Parameters"><table class="plain"><thead><tr><th scope="col">Name</th>'
        '<th scope="col">Value</th><th scope="col">Origin</th></tr></thead>'
        f"<tbody>{parameters}</tbody></table></div></div></div>"
    )
