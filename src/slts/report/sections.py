"""The sections of the page, made from the content that `collect` returns."""

from __future__ import annotations

from html import escape
from math import sqrt

from slts.quantities import count, list_first
from slts.report.markup import Cell, Content, items, meter, percent, section, table
from slts.series.naming import class_name

# Tables with one column per class have at most this many columns.
_MOST_COLUMNS = 20
# Largest number of class names in the model card.
_MOST_NAMES = 60
# Standard errors by which fewer sets have the true class than promised, if the series are others.
_LEAST_STANDARD_ERRORS = 3.0
# Feature maps in words.
_MAPS = {
    "values": "the values of the channels",
    "changes": "the values and their changes from step to step",
    "snippets": "how often short parts of training series occur",
}


def errors(content: Content) -> str:
    """Correct and wrong predictions by class, and the misclassified series."""
    if content["confusion"] is None:
        return ""
    confused = content["confusion"]["confused"]
    tables = _confusion_matrix(content) if len(content["labels"]) <= _MOST_COLUMNS else ""
    tables += _misclassified(content) if confused else ""
    return section("errors", story=escape(_errors_in_words(confused)), tables=tables)


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
    explorer, labels = content["explorer"], content["labels"]
    wrong = [entry for entry in explorer["entries"] if entry["truth"] != entry["predicted"]]
    rows = [
        [
            entry["id"],
            labels[entry["truth"]],
            labels[entry["predicted"]],
            "" if entry["p"] is None else percent(entry["p"][entry["predicted"]], 0),
        ]
        for entry in wrong
    ]
    n_wrong = explorer["n_wrong"]
    some = "The" if n_wrong == len(rows) else f"{len(rows):,} of {n_wrong:,}"
    head, caption = (
        ["Series", "True class", "Predicted class", "Probability"],
        "misclassified series",
    )
    return table(caption.capitalize(), rows, head, "plain short", f"{some} {caption}.")


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
    names = ["no class", "one class", "several classes"]
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
    metrics = section("no_metrics")
    if parts["metrics"]:
        metrics = section("metrics", about=_about_metrics(parts))
    story, tables = _channels(content)
    if parts["feature_maps"]:
        story += _feature_maps(parts["feature_maps"])
    return section("importance", story=story, tables=tables, metrics=metrics)


def _channels(content: Content) -> tuple[str, str]:
    """A sentence about the most important channel, and a table of all channels."""
    model, shares = content["model"], content["importance"]["channels"]
    names = [*model["channels"], "constant"][: len(shares[0])]
    mean = [sum(column) / len(shares) for column in zip(*shares, strict=True)]
    largest, peak = max(mean) or 1.0, max(map(max, shares)) or 1.0
    over = "the series of this report" if content["data"] else "the landmarks"
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


def _feature_maps(shares: list[tuple[str, float]]) -> str:
    named = [f"{escape(name)} ({_MAPS[name]}) {percent(share)}" for name, share in shares]
    return section("feature_maps", shares=", ".join(named))


def _about_metrics(parts: Content) -> str:
    name, sentences = parts["metric_map"], []
    if parts["metrics"][0]["part"] is not None:
        sentences.append(section("metrics_of_phases"))
    if name is not None:
        sentences.append(section("metrics_of_map", name=escape(name), words=_MAPS[name]))
    if "constant" in parts["metric_channels"]:
        sentences.append(section("constant_channel"))
    return " ".join(sentences)


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
    examples = "training series" if content["data"] is None else "series of this report"
    return section("snippets", n_steps=str(parts["n_steps"]), examples=examples)


def space(content: Content) -> str:
    """Container of the scatter plot."""
    parts, explorer = content["space"], content["explorer"]
    if parts is None:
        return ""
    n, total = len(parts["points"]), content["summary"]["n_series"]
    words = "landmarks" if content["references"]["kind"] == "landmarks" else "training series"
    sentences = [
        "Nearby points are similar series.",
        f"The axes are the first two principal components of the similarities to the {words}, "
        f"which explain {percent(parts['variance'], 0)} of their variance.",
        f"Colour and shape show the {'true' if explorer['labelled'] else 'predicted'} class.",
        "Outlined shapes are errors." if explorer["n_wrong"] else "",
        "Rings are landmarks, in the colour of their class." if parts["landmarks"] else "",
        f"{n:,} of {total:,} series are shown, misclassified series first." if n < total else "",
    ]
    return section("space", about=" ".join(filter(None, sentences)))


def explorer(content: Content) -> str:
    """Container of the explorer, with notes on what it leaves out."""
    parts, drawing = content["explorer"], content["drawing"]
    if parts is None:
        return ""
    kept, total = len(parts["entries"]), parts["n_series"]
    steps, channels = drawing["most_steps"], len(drawing["channels"])
    notes = []
    if kept < total:
        notes.append(section("some_series", kept=f"{kept:,}", total=f"{total:,}"))
    if content["data"]["longest"] > steps:
        notes.append(section("long_series", steps=str(steps)))
    if len(content["model"]["channels"]) > channels:
        notes.append(section("many_channels", channels=str(channels)))
    if content["snippets"] is not None:
        notes.append(section("ends_of_series"))
    notes.append(section("drawn_as_aligned" if drawing["as_aligned"] else "drawn_standardised"))
    if drawing["unit_steps"]:
        notes.append(section("drawn_in_unit_steps"))
    return section(
        "explorer",
        order="Misclassified series are listed first." if parts["n_wrong"] else "",
        notes=" ".join(notes),
        values="Scores" if parts["entries"][0]["p"] is None else "Probabilities",
        no_map="" if content["references"]["kind"] == "landmarks" else "hidden",
        no_snippets="hidden" if content["snippets"] is None else "",
    )


def data(content: Content) -> str:
    """Lengths, and number of series by class."""
    parts, confusion = content["data"], content["confusion"]
    if parts is None:
        return ""
    title, head, counts = "Predictions by class", ["Class", "Series"], parts["predicted"]
    if confusion is not None:
        title, head = "Series by class", [*head, "Correct"]
        counts = [sum(row) for row in confusion["counts"]]
    rows = []
    for k, (name, n) in enumerate(zip(content["labels"], counts, strict=True)):
        row = [name, Cell(meter(n / max(counts), str(n)))]
        if confusion is not None:
            row.append(_share(sum(confusion["counts"][k][k : k + 1]), n))
        rows.append(row)
    return section(
        "data",
        series=count(parts["n_series"], "series", "series"),
        steps=count(parts["n_steps"], "step"),
        channels=count(len(content["model"]["channels"]), "channel"),
        low=str(parts["shortest"]),
        high=str(parts["longest"]),
        median=f"{parts['median']:g}",
        balance=table(title, rows, head, caption=f"{title}."),
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
        no_contributions="" if content["references"]["kind"] == "landmarks" else "hidden",
        no_amplitude="hidden" if content["drawing"]["amplitude"] else "",
        provenance=table("Provenance", [*provenance, *parts["provenance"]]),
        parameters=table("Parameters", parameters, ["Name", "Value", "Origin"]),
    )
