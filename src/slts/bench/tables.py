"""From results to tables, as plain data: lists, numbers, text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from slts.bench.choices import leave_one_out
from slts.bench.methods import BY_NAME, CENTRE
from slts.bench.protocol import Protocol, Selection
from slts.bench.ranking import TIE, critical_difference, mean_ranks, signed_rank_test
from slts.bench.results import Results
from slts.study.statistics import paired_test

Table = dict[str, Any]


def collect(
    results: Mapping[str, Mapping[str, Any]], protocol: Protocol, wanted: Selection
) -> Table:
    """Put the results of a run together.

    Parameters
    ----------
    results
        Results by key of their unit.
    protocol
        The protocol they follow.
    wanted
        Data sets and methods to show.

    Returns
    -------
    dict
        JSON-able; what has no results is empty.
    """
    ordered = [results[key] for key in sorted(results)]
    found = Results(ordered, protocol.n_splits)
    datasets = [name for name in wanted.datasets if found.methods([name])]
    methods = [name for name in found.methods(datasets) if name in wanted.methods]
    main = [name for name in methods if BY_NAME[name].group == "main"]
    return {
        "datasets": datasets,
        "accuracy": [_row(found, name, datasets) for name in methods],
        "ranks": _ranks(found, main, datasets),
        "tests": [
            _test(found, name, datasets) for name in methods if CENTRE in methods and name != CENTRE
        ],
        "options": _options(found, methods, datasets),
        "wins": _wins(found, main, datasets),
        "choices": leave_one_out(ordered, found, datasets),
    }


def _row(found: Results, method: str, datasets: Sequence[str]) -> Table:
    cells, costs = {}, {}
    for name in datasets:
        summary, cost = found.summary(method, name), found.cost(method, name)
        cells[name] = dataclasses.asdict(summary) if summary else None
        costs[name] = dataclasses.asdict(cost) if cost else None
    return {
        "method": method,
        "group": BY_NAME[method].group,
        "cells": cells,
        "mean": _mean([cell["mean"] for cell in cells.values() if cell], len(datasets)),
        "costs": costs,
    }


def _mean(values: Sequence[float], needed: int) -> float | None:
    """Mean, None if one is missing."""
    return sum(values) / needed if values and len(values) == needed else None


def _complete(found: Results, methods: Sequence[str], datasets: Sequence[str]) -> list[str]:
    """Data sets on which every one of the methods has a result."""
    return [name for name in datasets if all(found.accuracies(m, name) for m in methods)]


def _ranks(found: Results, methods: Sequence[str], datasets: Sequence[str]) -> Table:
    shared = _complete(found, methods, datasets)
    if len(methods) < 2 or not shared:
        return {}
    columns = {}
    for method in methods:
        summaries = [found.summary(method, name) for name in shared]
        columns[method] = [summary.mean for summary in summaries if summary is not None]
    return {
        "datasets": shared,
        "ranks": mean_ranks(columns),
        "critical": critical_difference(len(methods), len(shared)),
    }


def _test(found: Results, other: str, datasets: Sequence[str], centre: str = CENTRE) -> Table:
    """`centre` against another method: on each data set over splits, and over the data sets."""
    cells: dict[str, Table | None] = {}
    for name in datasets:
        first, second = found.pairs(centre, other, name)
        cells[name] = None
        if first:
            difference = found.difference(centre, other, name)
            test = paired_test(first, second) if len(first) > 1 else None
            p = test.p if test else None
            cells[name] = {"difference": difference, "p": p, "n": len(first)}
    differences = [cell["difference"] for cell in cells.values() if cell]
    return {
        "method": other,
        "against": centre,
        "cells": cells,
        "difference": _mean(differences, len(differences)),
        "n_datasets": len(differences),
        "p": signed_rank_test(differences),
        "record": _record(differences),
    }


def _options(found: Results, methods: Sequence[str], datasets: Sequence[str]) -> list[Table]:
    """The options of SLTS, each against SLTS without it."""
    options = [name for name in methods if BY_NAME[name].group == "option"]
    return [_test(found, name, datasets, centre="slts") for name in options if "slts" in methods]


def _record(differences: Sequence[float]) -> list[int]:
    """Data sets won, tied and lost."""
    won = sum(value > TIE for value in differences)
    lost = sum(value < -TIE for value in differences)
    return [won, len(differences) - won - lost, lost]


def _wins(found: Results, methods: Sequence[str], datasets: Sequence[str]) -> list[Table]:
    """Each method against each: data sets won, tied, lost, by the mean over shared splits."""
    rows = []
    for first in methods:
        records = {}
        for second in methods:
            values = [found.difference(first, second, name) for name in datasets]
            records[second] = _record([value for value in values if value is not None])
        rows.append({"method": first, "records": records})
    return rows
