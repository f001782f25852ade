"""Frames that the script fills: similarity space and prediction explorer."""

from __future__ import annotations

from html import escape

from slts.report.markup import Content, heading, percent


def space_section(content: Content) -> str:
    """Frame of the scatter plot."""
    space = content["space"]
    if space is None:
        return ""
    n, given = len(space["points"]), content["summary"]["n_series"]
    some = "" if n == given else f" {n:,} of {given:,} series are shown, misclassified ones first."
    what = "true" if content["explorer"]["labelled"] else "predicted"
    rings = " Small rings are landmarks." if space["landmarks"] else ""
    wrong = " Outlined shapes are mistakes." if content["explorer"]["n_wrong"] else ""
    return (
        heading("space", "Similarity space")
        + "<p>Series that the model finds alike lie close together. The picture shows the two "
        f"directions in which similarities differ most, {percent(space['variance'], 0)} of their "
        f"variance; colour and shape tell the {what} class.{wrong}{rings}{some}</p>"
        '<p class="note js">Point at a series to see it; click to select it for the explorer '
        "below.</p>"
        '<noscript><p class="note">The picture is drawn by a script.</p></noscript>'
        '<div id="scatter" class="js"></div>'
        '<p class="note js" id="picked" aria-live="polite"></p>'
    )


def explorer_section(content: Content) -> str:
    """Frame of the explorer, and what is left out of it."""
    explorer = content["explorer"]
    if explorer is None:
        return ""
    kept, given = len(explorer["entries"]), explorer["n_given"]
    order = "Misclassified ones come first." if explorer["n_wrong"] else ""
    notes = []
    if kept < given:
        notes.append(
            f"{kept:,} of {given:,} series are kept in this file: misclassified ones first, then "
            f"others at random."
        )
    longest = content["data"]["lengths"]["high"]
    steps, channels = content["limits"]["steps"], content["limits"]["channels"]
    if longest > steps:
        notes.append(
            f"Series of more than {steps} steps are drawn with {steps} points; contributions of "
            f"neighbouring steps are added up."
        )
    if content["summary"]["n_channels"] > channels:
        notes.append(
            f"The {channels} most important channels are drawn; contributions of all others are "
            f"added up."
        )
    notes += [content["model"]["drawn_as"], "Steps count from 0."]
    parts, scores = "", "Scores"
    if content["model"]["kind"] is not None:
        scores += "; choose a class to explain"
    if explorer["has_maps"]:
        parts += (
            '<div class="block"><h4 id="h-map">Which steps and channels spoke for it</h4>'
            '<div id="map"></div><p class="note" id="map-words"></p></div>'
        )
    if content["model"]["kind"] is not None:
        what = "landmarks" if content["model"]["kind"] == "landmarks" else "training series"
        parts += (
            f'<div class="block"><h4 id="h-alignment">Aligned with the strongest {what}</h4>'
            '<div id="chips" class="chips" role="radiogroup" aria-labelledby="h-alignment"></div>'
            '<div id="alignment"></div><p class="note" id="alignment-words"></p></div>'
        )
    else:
        parts += '<div class="block"><h4>The series</h4><div id="alone"></div></div>'
    return (
        heading("explorer", "Why did it say that?")
        + f"<p>Choose a series to see how each class scored and what the scores are made of. "
        f"{order}</p>"
        f'<noscript><p class="note">The explorer needs JavaScript.</p></noscript>'
        f'<p class="note">{escape(" ".join(notes))}</p>'
        '<div class="explorer js" id="explorer-body"><div class="picker">'
        '<label for="search">Find a series</label>'
        '<input id="search" type="search" autocomplete="off" placeholder="name or class">'
        '<ul id="list" role="listbox" tabindex="0" aria-label="Series"></ul></div>'
        '<div class="detail"><div class="stepper">'
        '<button type="button" id="previous">Previous</button>'
        '<button type="button" id="next">Next</button>'
        '<span class="note">or the keys <kbd>k</kbd> <kbd>j</kbd></span></div>'
        '<div aria-live="polite"><h3 id="which"></h3><p id="verdict"></p></div>'
        f'<h4 id="h-scores">{scores}</h4>'
        '<div id="scores" class="scores" role="radiogroup" aria-labelledby="h-scores"></div>'
        f"{parts}</div></div>"
    )
