"""From results to the tables of the comparison, as plain data: lists, numbers and text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from study.cues import CUES
from study.markdown import Table
from study.methods import BY_NAME, CANDIDATES, CENTRE, CUE_METHODS
from study.pool import GROUPS, POOL_SETS
from study.protocol import POOL, PRESPLIT, SYNTHETIC, Protocol, Selection, cue_dataset
from study.statistics import (
    PROBABILITY_SCORES,
    TIE,
    BySplit,
    Scores,
    critical_difference,
    mean_ranks,
    on_shared_splits,
    paired_test,
    signed_rank_test,
    summarize,
    summary_by_split,
)


def collect(
    results: Mapping[str, Mapping[str, Any]], protocol: Protocol, selection: Selection
) -> Table:
    """Collect the results of a run. Tables without results are empty.

    Parameters
    ----------
    results
        Results by the key of their unit.
    protocol
        Their protocol.
    selection
        The selected data sets and methods.
    """
    ordered = [results[key] for key in sorted(results)]
    scores = Scores(ordered, protocol.n_splits)
    wanted = [name for name in BY_NAME if name in selection.parts]
    datasets = [
        name for name in selection.datasets if any(scores.of(method, name) for method in wanted)
    ]
    several, single = (
        [name for name in datasets if name in names]
        for names in (protocol.datasets, protocol.univariate)
    )
    pool = [
        name
        for name in (protocol.pool if POOL in selection.datasets else ())
        if any(scores.of(method, name) for method in wanted)
    ]
    costs = {name: _costs(scores, name, [*datasets, *pool]) for name in wanted}
    return {
        **_compare(scores, wanted, several),
        "univariate": _compare(scores, wanted, single),
        "cues": _cues(scores, wanted, protocol) if SYNTHETIC in selection.datasets else {},
        "pool": _pool(scores, wanted, pool),
        "choices": _leave_one_out(ordered, scores, selection.datasets),
        "probabilities": {
            name: found for name in wanted if (found := _probabilities(scores, name, datasets))
        },
        "costs": {name: found for name, found in costs.items() if found},
    }


def _compare(scores: Scores, wanted: Sequence[str], datasets: Sequence[str]) -> Table:
    """Compare the methods on some data sets."""
    methods = [name for name in wanted if any(scores.of(name, dataset) for dataset in datasets)]
    main = [name for name in methods if BY_NAME[name].group == "main"]
    others = {CENTRE: [name for name in methods if name != CENTRE]}
    others["slts"] = [name for name in methods if BY_NAME[name].group == "option"]
    tests = {
        centre: [_test(scores, centre, name, datasets) for name in names]
        for centre, names in others.items()
    }
    return {
        "datasets": list(datasets),
        "accuracy": [_row(scores, name, datasets) for name in methods],
        "ranks": _ranks(scores, main, datasets),
        "tests": tests[CENTRE] if CENTRE in methods else [],
        "options": tests["slts"] if "slts" in methods else [],
        "wins": [
            {
                "method": name,
                "records": {n: _test(scores, name, n, datasets)["record"] for n in main},
            }
            for name in main
        ],
    }


def _cues(scores: Scores, wanted: Sequence[str], protocol: Protocol) -> Table:
    """Mean accuracies on synthetic families, by family, number of training series and method."""
    methods = [name for name in CUE_METHODS if name in wanted]
    rows = []
    for cue in CUES:
        cells = {
            str(size): {
                name: asdict(found)
                for name in methods
                if (found := summary_by_split(scores.accuracies(name, cue_dataset(cue, size))))
            }
            for size in protocol.cue_sizes
        }
        if any(cells.values()):
            rows.append({"cue": cue, "cells": cells})
    return {"methods": methods, "sizes": list(protocol.cue_sizes), "rows": rows} if rows else {}


def _pool(scores: Scores, wanted: Sequence[str], datasets: Sequence[str]) -> Table:
    """Compare the methods on the data sets of the pool, by group."""
    tables = {}
    for group, names in GROUPS.items():
        members = [name for name in datasets if name in names]
        found = _probabilities(scores, CENTRE, members, ("ece", "overconfidence"))
        tables[group] = {
            **_compare(scores, wanted, members),
            "probabilities": {
                name: float(np.mean([one[name] for one in found.values()]))
                for name in next(iter(found.values()), ())
            },
        }
    return tables


def _probabilities(
    scores: Scores,
    method: str,
    datasets: Sequence[str],
    names: Iterable[str] = PROBABILITY_SCORES,
) -> Table:
    """Mean scores of the probabilities by data set; methods without probabilities have none."""
    found = {}
    for dataset in datasets:
        known = [score for score in scores.of(method, dataset) if "ece" in score]
        if known:
            found[dataset] = {
                name: sum(score[name] for score in known) / len(known) for name in names
            }
    return found


def _costs(scores: Scores, method: str, datasets: Sequence[str]) -> Table:
    """Mean times (seconds of one thread) and sizes, by data set."""
    names = {"fit": "fit_seconds", "predict": "predict_seconds", "numbers": "numbers"}
    found = {name: scores.of(method, name) for name in datasets}
    return {
        dataset: {
            name: sum(score[field] for score in known) / len(known) for name, field in names.items()
        }
        for dataset, known in found.items()
        if known
    }


def _row(scores: Scores, method: str, datasets: Sequence[str]) -> Table:
    found = {name: summary_by_split(scores.accuracies(method, name)) for name in datasets}
    cells = {name: None if mean is None else asdict(mean) for name, mean in found.items()}
    means = [cell["mean"] for cell in cells.values() if cell]
    return {
        "method": method,
        "group": BY_NAME[method].group,
        "cells": cells,
        "mean": sum(means) / len(means) if len(means) == len(datasets) else None,
    }


def _ranks(scores: Scores, methods: Sequence[str], datasets: Sequence[str]) -> Table:
    """Mean ranks over the data sets on which all methods have results."""
    shared = [name for name in datasets if all(scores.of(m, name) for m in methods)]
    if len(methods) < 2 or not shared:
        return {}
    columns = {
        m: [summarize(scores.accuracies(m, name).values()).mean for name in shared] for m in methods
    }
    return {
        "datasets": shared,
        "ranks": mean_ranks(columns),
        "critical": critical_difference(len(methods), len(shared)),
    }


def pairs(scores: Scores, first: str, second: str, dataset: str) -> tuple[list[float], list[float]]:
    """Return the accuracies of two methods on the splits that both were run on.

    On a published split, the single run of a method without seed stands for all splits. On the
    pool, this is the run of any method but the centre.
    """
    a, b = scores.accuracies(first, dataset), scores.accuracies(second, dataset)
    if a and b and dataset in PRESPLIT:
        a, b = _repeated(first, dataset, a, b), _repeated(second, dataset, b, a)
    return on_shared_splits(a, b)


def _repeated(method: str, dataset: str, own: BySplit, other: BySplit) -> BySplit:
    once = not BY_NAME[method].seeded or (dataset in POOL_SETS and method != CENTRE)
    return dict.fromkeys([*own, *other], own[0]) if once else own


def _test(scores: Scores, centre: str, other: str, datasets: Sequence[str]) -> Table:
    """Compare two methods: on each data set over the splits, and over the data sets."""
    cells: dict[str, Table | None] = {}
    for name in datasets:
        first, second = pairs(scores, centre, other, name)
        cells[name] = None
        if first:
            difference = sum(first) / len(first) - sum(second) / len(second)
            # On the pool, one method has one run, so splits show nothing about the other.
            tested = len(first) > 1 and name not in POOL_SETS
            p = paired_test(first, second).p if tested else None
            cells[name] = {"difference": difference, "p": p, "n": len(first)}
    differences = [cell["difference"] for cell in cells.values() if cell]
    won = sum(value > TIE for value in differences)
    lost = sum(value < -TIE for value in differences)
    return {
        "method": other,
        "against": centre,
        "cells": cells,
        "difference": sum(differences) / len(differences) if differences else None,
        "n_datasets": len(differences),
        "p": signed_rank_test(differences),
        "record": [won, len(differences) - won - lost, lost],
    }


def _leave_one_out(
    results: Sequence[Mapping[str, Any]], scores: Scores, datasets: Sequence[str]
) -> Table:
    """For every data set, the configuration with the best mean over the others.

    Only the training sets decide. The test sets show what the choice would have gained.
    """
    choices = [result["choice"] for result in results if "choice" in result]
    folds = {(c["method"], c["dataset"]): c["folds"] for c in choices}
    candidates = [m for m in CANDIDATES if any(method == m for method, _ in folds)]
    names = [name for name in datasets if all((m, name) in folds for m in candidates)]
    if CENTRE not in candidates or len(names) < 2:
        return {}
    means = np.array([[np.mean(folds[m, name]) for name in names] for m in candidates])
    left_out = []
    for k, name in enumerate(names):
        row = _choice(np.delete(means, k, axis=1), candidates)
        test = _test(scores, CENTRE, row["choice"], [name])["difference"]
        left_out.append({"dataset": name, **row, "test": test})
    return {
        "datasets": names,
        "cells": {
            m: dict(zip(names, row.tolist(), strict=True))
            for m, row in zip(candidates, means, strict=True)
        },
        "means": dict(zip(candidates, means.mean(axis=1).tolist(), strict=True)),
        "left_out": left_out,
    }


def _choice(means: npt.NDArray[np.float64], candidates: Sequence[str]) -> Table:
    """The best configuration, and how far the default is behind it."""
    over = means.mean(axis=1)
    default = candidates.index(CENTRE)
    # Of equally good configurations the default is taken: it comes first.
    best = int(np.argmax(np.round(over, 9)))
    behind = means[best] - means[default]
    n = len(behind)
    return {
        "choice": candidates[best],
        "mean": float(over[best]),
        "default": float(over[default]),
        "behind": float(behind.mean()),
        "error": float(behind.std(ddof=1)) / math.sqrt(n) if n > 1 else None,
        "rank": int(np.sum(over > over[default] + TIE)) + 1,
        "n_candidates": len(candidates),
    }
