"""Prediction sets in the report: how large they are, and which series have none or several."""

from __future__ import annotations

from html import escape
from math import sqrt
from typing import Any

import numpy as np

from slts.guarantees import LabelSets, prediction_sets
from slts.quantities import count
from slts.report.markup import Content, percent, section, table
from slts.report.predictions import Predictions

# The first is shown for single series.
_ALPHAS = (0.05, 0.1, 0.01)
# Series that the section lists.
_MOST_LISTED = 200
# Standard errors by which fewer sets have the true class than promised, if the series are others.
_LEAST_STANDARD_ERRORS = 3.0


def sets_content(
    model: Any, predictions: Predictions, entries: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Sizes of the sets, and the series whose set has none or several classes.

    Every series of the explorer, in `entries`, gets the classes in its set. The result is None if
    the model has no margins, or too few of them: then every set would have all classes.
    """
    margins = getattr(model, "held_out_margins_", None)
    if margins is None or predictions.decisions is None:
        return None
    usable = [alpha for alpha in _ALPHAS if alpha * (margins.weights.sum() + 1.0) >= 1.0]
    if not usable:
        return None
    sets = prediction_sets(model)
    by_alpha = [sets.from_decisions(predictions.decisions, alpha) for alpha in usable]
    first, truth = by_alpha[0], predictions.truth
    members = [np.flatnonzero(row).tolist() for row in first.members]
    for entry in entries:
        confidence = percent(1.0 - first.alpha, 0)
        entry["set"] = {"confidence": confidence, "classes": members[entry["index"]]}
    # Series with no class first, then those with the most.
    odd = np.flatnonzero(first.sizes != 1)
    odd = odd[np.lexsort((odd, -first.sizes[odd], first.sizes[odd] > 0))]
    return {
        "guarantee": sets.guarantee,
        "alpha": first.alpha,
        "sizes": [_sizes(one, predictions) for one in sorted(by_alpha, key=lambda s: -s.alpha)],
        "n_odd": len(odd),
        "odd": [
            {
                "id": predictions.ids[i],
                "set": members[i],
                "truth": None if truth is None else int(truth[i]),
                "predicted": int(predictions.predicted[i]),
            }
            for i in odd[:_MOST_LISTED].tolist()
        ],
    }


def _sizes(sets: LabelSets, predictions: Predictions) -> dict[str, Any]:
    sizes, labels = sets.sizes, predictions.labels
    return {
        "alpha": sets.alpha,
        "none": int(np.sum(sizes == 0)),
        "one": int(np.sum(sizes == 1)),
        "several": int(np.sum(sizes > 1)),
        "mean": round(float(sizes.mean()), 4),
        "covered": None if labels is None else round(float(sets.contains(labels).mean()), 6),
    }


def sets_section(content: Content) -> str:
    """Sizes by confidence, and the series that need a look."""
    sets, labels = content["sets"], content["labels"]
    if sets is None:
        return ""
    labelled = sets["sizes"][0]["covered"] is not None
    rows = []
    for one in sets["sizes"]:
        covered = [percent(one["covered"])] if labelled else []
        numbers = [f"{one[name]:,}" for name in ("none", "one", "several")]
        rows.append([percent(1 - one["alpha"], 0), *numbers, f"{one['mean']:.2f}", *covered])
    head = ["Confidence", "No class", "One class", "Several", "Mean size"]
    sizes = table(
        "Sizes of the prediction sets",
        rows,
        head=[*head, *(["True class in the set"] if labelled else [])],
        columns=["", *["n"] * 5],
        caption="Number of series by the size of their set.",
    )
    return section(
        "sets",
        confidence=percent(1 - sets["alpha"], 0),
        alpha=percent(sets["alpha"], 0),
        guarantee=escape(sets["guarantee"]),
        doubt=_doubt(sets),
        sizes=sizes,
        odd=_odd_table(sets, labels, labelled),
    )


def _doubt(sets: dict[str, Any]) -> str:
    """Say so if far fewer sets than promised have the true class."""
    (one,) = (one for one in sets["sizes"] if one["alpha"] == sets["alpha"])
    alpha, n = one["alpha"], one["none"] + one["one"] + one["several"]
    fewest = 1 - alpha - _LEAST_STANDARD_ERRORS * sqrt(alpha * (1 - alpha) / n)
    if one["covered"] is None or one["covered"] >= fewest:
        return ""
    return section("doubtful_sets", covered=percent(one["covered"]))


def _odd_table(sets: dict[str, Any], labels: list[str], labelled: bool) -> str:
    if not sets["odd"]:
        return ""
    rows = []
    for one in sets["odd"]:
        names = ", ".join(labels[c] for c in one["set"]) or "no class"
        truth = [labels[one["truth"]]] if labelled else []
        rows.append([one["id"], names, labels[one["predicted"]], *truth])
    head = ["Series", "Set", "Predicted class", *(["True class"] if labelled else [])]
    some = "" if len(rows) == sets["n_odd"] else f"{len(rows):,} of "
    caption = (
        f"{some}{count(sets['n_odd'], 'series', 'series')} whose set has no class or several, at "
        f"{percent(1 - sets['alpha'], 0)}."
    )
    return table(
        "Series with no class or several", rows, head=head, css="plain short", caption=caption
    )
