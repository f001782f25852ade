"""The series of a report and their predictions: errors, guarantee, lengths and classes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import column_or_1d

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.estimators.base import SeriesClassifier
from slts.estimators.training_data import check_groups, unknown_labels
from slts.guarantees.bounds import accuracy_interval, group_accuracy_interval, mean_over_groups
from slts.guarantees.held_out import HeldOut, Predicted, check_labels, find_copies
from slts.quantities import count
from slts.report.markup import MOST_COLUMNS, Cell, Content, items, meter, percent, section, table
from slts.report.packing import rounded
from slts.series import SeriesBatch, as_series
from slts.series.convert import check_one_per_series
from slts.series.naming import class_name
from slts.solvers.calibration import two_sided

# Largest number of bars in the histogram of lengths.
_MOST_BARS = 24


@dataclass(frozen=True, eq=False)
class Predictions:
    """Series with labels and predictions.

    Attributes
    ----------
    batch
        The series.
    labels
        True labels; None if unknown.
    label_names
        Names of the classes of the model, then of labels that the model does not know.
    truth
        Position of each true label in `label_names`; None without labels.
    predicted
        Position of each predicted class.
    decisions
        Shape (series, classes), also for two classes; None if the model has none.
    probabilities
        Shape (series, classes); None if the model has none.
    outputs
        What the model returned.
    ids
        Name of each series: "recording 17", or "series 3" if X has no identifiers.
    copies
        Positions of the copies of training series; None if the training series are unknown.
    groups
        Group of each series if groups are the independent draws; None if the series are.
    """

    batch: SeriesBatch
    labels: AnyArray | None
    label_names: list[str]
    truth: IntArray | None
    predicted: IntArray
    decisions: FloatArray | None
    probabilities: FloatArray | None
    outputs: Predicted
    ids: list[str]
    copies: IntArray | None
    groups: AnyArray | None

    @property
    def n_seen(self) -> int:
        """Number of series that are copies of training series."""
        return 0 if self.copies is None else len(self.copies)

    @property
    def wrong(self) -> IntArray:
        """Indices of misclassified series."""
        if self.truth is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.truth != self.predicted)


def predict_series(
    model: Any,
    X: Any,
    y: Any = None,
    ids: Sequence[Any] | None = None,
    groups: Any = None,
) -> Predictions:
    """Check the data and predict.

    Parameters
    ----------
    model
        A fitted classifier.
    X, y
        Series, and their labels if known.
    ids
        Identifiers of the series; None takes the names that X has, or numbers them.
    groups
        Group of each series, if there are any.
    """
    # A pipeline may accept only the form of X that it was fitted on.
    direct = isinstance(model, SeriesClassifier)
    batch = model.check_series(X) if direct else as_series(X)
    if len(batch) == 0:
        raise DataError("X is empty: a report needs at least one series, or X=None.")
    if ids is not None:
        check_one_per_series(len(batch), ids, "ids", "ids")
    if ids is not None or batch.series_names is None:
        batch = batch.named(range(len(batch)) if ids is None else ids)
    X = batch if direct else X
    classes = model.classes_.tolist()
    labels = truth = None
    unknown: list[Any] = []
    if y is not None:
        labels = column_or_1d(y)
        check_one_per_series(len(batch), labels, "y", "labels")
        unknown = unknown_labels(np.unique(labels), model.classes_)
        position = {c: k for k, c in enumerate([*classes, *unknown])}
        truth = np.array([position[c] for c in labels.tolist()], dtype=np.int64)
    predicted, decisions, probabilities = outputs = _outputs(model, X)
    decisions = None if decisions is None else two_sided(decisions)
    if decisions is not None and decisions.shape[1] != len(classes):
        # One-vs-one decision values do not belong to single classes.
        decisions = None
    return Predictions(
        batch=batch,
        labels=labels,
        label_names=[str(c) for c in [*classes, *unknown]],
        truth=truth,
        predicted=np.array([classes.index(c) for c in predicted.tolist()], dtype=np.int64),
        decisions=decisions,
        probabilities=probabilities,
        outputs=outputs,
        ids=list(batch.series_names or ()),
        copies=find_copies(model, X),
        groups=None if groups is None else check_groups(groups, len(batch)),
    )


def _outputs(model: Any, X: Any) -> Predicted:
    """Predicted classes, decision values and probabilities, None where there are none."""
    if isinstance(model, SeriesClassifier):
        return model.outputs(X)
    decisions = probabilities = None
    if hasattr(model, "decision_function"):
        decisions = np.asarray(model.decision_function(X), dtype=np.float64)
    if hasattr(model, "predict_proba"):
        # A classifier fitted without calibration raises NotFittedError.
        with suppress(NotFittedError):
            probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
    return np.asarray(model.predict(X)), decisions, probabilities


def accuracy(predictions: Predictions) -> dict[str, Any] | None:
    """Share of correct predictions with its 95% interval; None without labels.

    The interval is exact for independent series; with groups, it is for the mean of a new group.
    """
    if predictions.truth is None:
        return None
    n, groups, n_groups = len(predictions.truth), predictions.groups, None
    correct = n - len(predictions.wrong)
    low, high = accuracy_interval(correct, n)
    if groups is not None:
        mean, n_groups = mean_over_groups(predictions.truth == predictions.predicted, groups)
        low, high = group_accuracy_interval(mean, n_groups)
    return {
        "value": correct / n, "correct": correct, "n": n, "low": low, "high": high,
        "n_groups": n_groups,
    }  # fmt: skip


def confusion(predictions: Predictions, n_classes: int) -> dict[str, Any] | None:
    """Number of series by true label and predicted class; None without labels.

    ``counts`` has a row per label and a column per class of the model. ``confused`` lists the pairs
    of labels that differ, most frequent first.
    """
    if predictions.truth is None:
        return None
    names = predictions.label_names
    counts = np.zeros((len(names), n_classes), dtype=np.int64)
    np.add.at(counts, (predictions.truth, predictions.predicted), 1)
    confused = [
        {"truth": names[i], "predicted": names[j], "count": int(counts[i, j])}
        for i, j in np.argwhere(counts > 0)
        if i != j
    ]
    confused.sort(key=lambda pair: -pair["count"])
    return {"counts": counts.tolist(), "confused": confused}


def certificate(model: Any, predictions: Predictions | None) -> dict[str, Any]:
    """The certificate, or the reason for its absence."""
    if predictions is None:
        return {"certified": False, "reason": "This report has no series."}
    if predictions.labels is None:
        return {"certified": False, "reason": "This report has no labels."}
    try:
        labels = check_labels(model, predictions.labels, predictions.batch)
        copies, groups = predictions.copies, predictions.groups
        held_out = HeldOut(model, labels, *predictions.outputs, copies, groups, predictions.batch)
        certificate = held_out.certificate().to_dict()
    except DataError as error:
        reason = str(error)
        return {"certified": False, "reason": reason[:1].upper() + reason[1:]}
    for bound in certificate["bounds"]:
        # The page shows the statement, not the numbers behind it.
        del bound["details"]
        bound["value"] = rounded(bound["value"], 6)
    return {"certified": True, "reason": None, **certificate}


def data_summary(predictions: Predictions) -> dict[str, Any]:
    """Lengths of the series, and number of series by class."""
    truth, predicted, n = predictions.truth, predictions.predicted, len(predictions.label_names)
    counts = correct = None
    if truth is not None:
        counts = np.bincount(truth, minlength=n).tolist()
        correct = np.bincount(truth[truth == predicted], minlength=n).tolist()
    return {
        "n_series": len(predictions.batch),
        "n_steps": predictions.batch.n_steps,
        "n_channels": predictions.batch.n_channels,
        "lengths": _lengths(predictions.batch.lengths),
        "counts": counts,
        "correct": correct,
        "predicted": np.bincount(predicted, minlength=n).tolist(),
    }


def _lengths(lengths: IntArray) -> dict[str, Any]:
    """Histogram of the lengths, in bars of equal integer width."""
    low, high = int(lengths.min()), int(lengths.max())
    width = max(1, -(-(high - low + 1) // _MOST_BARS))
    counts = np.bincount((lengths - low) // width).tolist()
    return {"low": low, "high": high, "median": float(np.median(lengths)), "counts": counts}


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
        truth, predicted = (class_name(first[key]) for key in ("truth", "predicted"))
        pair = f"{truth} was predicted as {predicted}"
        story = f"{wrong:,} series were misclassified."
        if wrong == 1:
            story = f"One series was misclassified: {pair}."
        elif first["count"] > 1:
            story += f" Most frequent error: {pair} ({first['count']} times)."
        else:
            story += " No two classes were confused more than once."
    by_class = _confusion_table if len(labels) <= MOST_COLUMNS else _confused_pairs
    return section(
        "errors",
        story=escape(story),
        by_class=by_class(content),
        misclassified=_misclassified(content),
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
    pairs = content["confusion"]["confused"]
    rows = [[p["truth"], p["predicted"], str(p["count"])] for p in pairs]
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
    if not certificate["certified"]:
        return section("no_certificate", reason=escape(certificate["reason"]))
    first, *others = certificate["bounds"]
    bounds = ""
    if others:
        rows = [
            [b["name"], f"{b['value']:.4f}{' (vacuous)' if b['vacuous'] else ''}", b["sentence"]]
            for b in certificate["bounds"]
        ]
        head, columns = ["Bound", "At most", "Statement"], ["", "n", "text"]
        listing = table("All bounds", rows, head=head, columns=columns)
        bounds = f"<details><summary>All bounds</summary>{listing}</details>"
    return section(
        "certificate",
        sentence=escape(first["sentence"]),
        checked=items(first["checked"]),
        unchecked=items(first["unchecked"]),
        bounds=bounds,
    )


def data_section(content: Content) -> str:
    """Lengths, and number of series by class."""
    data = content["data"]
    if data is None:
        return ""
    series = count(data["n_series"], "series", "series")
    steps, channels = count(data["n_steps"], "step"), count(data["n_channels"], "channel")
    lengths, labelled = data["lengths"], data["counts"] is not None
    low, high, median = lengths["low"], lengths["high"], f"{lengths['median']:g}"
    peak = max(lengths["counts"])
    bars = (f'<span style="height:{100 * c / peak:.1f}%"></span>' for c in lengths["counts"])
    label = (
        f"Histogram of lengths: {low} to {high} steps, median {median}, at most {peak} series in "
        f"one bar"
    )
    title = "Series by class" if labelled else "Predictions by class"
    return section(
        "data",
        counts=f"{series} with {steps} in total and {channels}.",
        median=median,
        label=label,
        bars="".join(bars),
        low=str(low),
        high=str(high),
        title=title,
        balance=_balance(title, data, content["labels"]),
    )


def _balance(title: str, data: dict[str, Any], labels: list[str]) -> str:
    labelled = data["counts"] is not None
    counts = data["counts"] if labelled else data["predicted"]
    peak = max(counts) or 1
    rows: list[list[str | Cell]] = []
    for k, name in enumerate(labels):
        rows.append([name, Cell(meter(counts[k] / peak, str(counts[k])))])
        if labelled:
            correct = percent(data["correct"][k] / counts[k]) if counts[k] else "no series"
            rows[-1].append(correct)
    head = ["Class", "Series", "Correct"] if labelled else ["Class", "Series"]
    return table(title, rows, head=head, columns=["", "", "n"])
