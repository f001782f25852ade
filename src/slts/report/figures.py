"""Figures about the answers: accuracy, confusion, certificate, lengths and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from slts.errors import DataError
from slts.guarantees import certify
from slts.guarantees.bounds import accuracy_interval
from slts.report.packing import short
from slts.report.sample import Sample
from slts.series import SeriesBatch

# Bars of the histogram of lengths, at most.
_MOST_BARS = 24


def accuracy(sample: Sample) -> dict[str, Any] | None:
    """Share of right answers with its exact 95% interval; None without labels."""
    if sample.truth is None:
        return None
    n = len(sample.truth)
    right = n - len(sample.wrong)
    low, high = accuracy_interval(right, n)
    return {
        "value": right / n,
        "right": right,
        "n": n,
        "low": low,
        "high": high,
    }


def confusion(sample: Sample, n_classes: int) -> dict[str, Any] | None:
    """How often each class was answered for each label; None without labels."""
    if sample.truth is None:
        return None
    counts = np.zeros((len(sample.names), n_classes), dtype=np.int64)
    np.add.at(counts, (sample.truth, sample.predicted), 1)
    off = [
        {"truth": int(i), "predicted": int(j), "count": int(counts[i, j])}
        for i, j in np.argwhere(counts > 0)
        if i != j
    ]
    off.sort(key=lambda pair: -int(pair["count"]))
    return {"rows": sample.names, "counts": counts.tolist(), "confused": off}


def certificate(model: Any, sample: Sample | None) -> dict[str, Any]:
    """The certificate, or the reason why there is none."""
    if sample is None:
        return {"given": False, "reason": "No series were given to this report."}
    if sample.labels is None:
        return {"given": False, "reason": "No labels were given to this report."}
    try:
        found = certify(model, sample.given, sample.labels)
    except DataError as error:
        return {"given": False, "reason": _sentence(str(error))}
    plain = found.to_dict()
    for bound in plain["bounds"]:
        # The page says what is bounded, not every number behind it.
        bound["details"] = {
            key: value for key, value in bound["details"].items() if key in ("errors", "n")
        }
        bound["value"] = short(bound["value"], 6)
    return {"given": True, "reason": None, **plain}


def data_summary(sample: Sample) -> dict[str, Any]:
    """Lengths and class balance."""
    n = len(sample.names)
    counts = right = None
    if sample.truth is not None:
        counts = np.bincount(sample.truth, minlength=n).tolist()
        hits = sample.truth[sample.truth == sample.predicted]
        right = np.bincount(hits, minlength=n).tolist()
    return {
        "n_series": len(sample.batch),
        "n_steps": sample.batch.n_steps,
        "n_channels": sample.batch.n_channels,
        "lengths": lengths(sample.batch),
        "labels": sample.names,
        "counts": counts,
        "right": right,
        "answered": np.bincount(sample.predicted, minlength=n).tolist(),
    }


def lengths(batch: SeriesBatch) -> dict[str, Any]:
    """Histogram of the lengths with whole numbers as edges."""
    steps = batch.lengths
    low, high = int(steps.min()), int(steps.max())
    width = max(1, -(-(high - low + 1) // _MOST_BARS))
    edges = np.arange(low, high + width + 1, width)
    counts, _ = np.histogram(steps, bins=edges)
    if counts[-1] == 0:
        counts, edges = counts[:-1], edges[:-1]
    return {
        "low": low,
        "high": high,
        "median": float(np.median(steps)),
        "edges": edges.tolist(),
        "counts": counts.tolist(),
    }


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
