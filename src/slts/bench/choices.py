"""Which configuration the other data sets would have chosen, by their training parts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slts._typing import FloatArray
from slts.bench.methods import CANDIDATES, CENTRE
from slts.bench.results import Results

Table = dict[str, Any]


def leave_one_out(
    results: Sequence[Mapping[str, Any]], found: Results, datasets: Sequence[str]
) -> Table:
    """For every data set, the configuration with the best mean over the others.

    Parameters
    ----------
    results
        What the units returned; those of choices are used.
    found
        Accuracies on test parts, shown beside.
    datasets
        Names, in order; those without every candidate are passed over.

    Returns
    -------
    dict
        Empty without at least two data sets.
    """
    folds = {(r["method"], r["dataset"]): r["folds"] for r in results if "folds" in r}
    candidates = [m for m in CANDIDATES if any(method == m for method, _ in folds)]
    names = [name for name in datasets if all((m, name) in folds for m in candidates)]
    if CENTRE not in candidates or len(names) < 2:
        return {}
    means = np.array([[np.mean(folds[m, name]) for name in names] for m in candidates])
    centre = candidates.index(CENTRE)
    left_out = [
        {
            "dataset": name,
            **_choice(means, np.arange(len(names)) != k, centre, candidates),
        }
        for k, name in enumerate(names)
    ]
    for row in left_out:
        row["test"] = found.difference(CENTRE, row["choice"], row["dataset"])
    return {
        "datasets": names,
        "cells": {
            m: dict(zip(names, row.tolist(), strict=True))
            for m, row in zip(candidates, means, strict=True)
        },
        "means": dict(zip(candidates, means.mean(axis=1).tolist(), strict=True)),
        "left_out": left_out,
        "all": _choice(means, np.ones(len(names), dtype=bool), centre, candidates),
    }


def _choice(means: FloatArray, kept: Any, centre: int, candidates: Sequence[str]) -> dict[str, Any]:
    """Best configuration on the data sets kept, and how far the default is behind it."""
    over = means[:, kept].mean(axis=1)
    # Of equally good ones the default, which comes first.
    best = int(np.argmax(np.round(over, 9)))
    behind = means[best, kept] - means[centre, kept]
    n = len(behind)
    error = float(behind.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    return {
        "choice": candidates[best],
        "mean": float(over[best]),
        "default": float(over[centre]),
        "behind": float(behind.mean()),
        "error": error,
        "rank": int(np.sum(over > over[centre] + 1e-9)) + 1,
        "n_candidates": len(candidates),
    }
