"""From results to the paper's tables, as plain data: lists, numbers, text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slts.landmarks import resolve_count
from slts.study.claims import check_claims
from slts.study.paper import (
    COLUMNS,
    LANDMARK_TABLES,
    METHODS,
    ROBOT_TASKS,
    SELECTIONS,
    TABLE_1,
    TABLE_2,
    VARIANCE_IDENTITY,
    VARIANCE_LEARNED,
    Published,
)
from slts.study.problems import aside_count
from slts.study.protocol import PCA_DATASET, SELECTION_TABLES, Protocol
from slts.study.scores import Scores, summary_of
from slts.study.statistics import Summary, paired_test, summarize

Table = dict[str, Any]

# Columns of Table 2 whose sets are divided at random.
ASIDE_COLUMNS = ("auslan", "robot")


def collect(results: Mapping[str, Mapping[str, Any]], protocol: Protocol) -> Table:
    """Put the results of a run together, table by table.

    Parameters
    ----------
    results
        Results by key of their unit.
    protocol
        The protocol they follow.

    Returns
    -------
    dict
        JSON-able; what has no results is empty.
    """
    ordered = [results[key] for key in sorted(results)]
    scores = Scores(ordered, protocol.n_splits)
    aside = Scores(({"scores": r["aside"]} for r in ordered if "aside" in r), protocol.n_splits)
    return {
        "table1": _table_1(ordered),
        "table2": _table_2(scores),
        "robot": _robot(scores),
        "figure2": _figure_2(scores, protocol),
        "figure3": _figure_3(ordered, protocol.n_splits),
        **{
            part: _selection(scores, name, protocol, resolve_count)
            for part, name in SELECTION_TABLES.items()
        },
        "table2_aside": _table_2(aside, ASIDE_COLUMNS),
        "table4_aside": _selection(aside, SELECTION_TABLES["table4"], protocol, aside_count),
        "tests": check_claims(scores),
    }


def compare(found: Summary | None, published: Published | None) -> Table | None:
    """One cell: our figure, the paper's, the difference, whether it exceeds both intervals."""
    if found is None:
        return None
    cell: Table = {"mean": found.mean, "interval": found.interval, "n": found.n}
    if published is not None:
        difference = found.mean - published.mean
        # The paper prints one decimal: half a unit of it is rounding.
        widest = max(found.interval or 0.0, published.interval or 0.0, 0.05)
        cell.update(
            paper=published.mean,
            paper_interval=published.interval,
            difference=difference,
            differs=abs(difference) > widest,
        )
    return cell


def _table_1(results: list[Mapping[str, Any]]) -> list[Table]:
    found = {r["facts"]["dataset"]: r["facts"] for r in results if "facts" in r}
    return [
        {**found[name], "agrees": all(found[name][k] == v for k, v in facts._asdict().items())}
        for name, facts in TABLE_1.items()
        if name in found
    ]


def _table_2(scores: Scores, columns: Sequence[str] = (*COLUMNS, "average")) -> list[Table]:
    rows = []
    for method in METHODS:
        cells = {
            column: compare(scores.summary(method, column), TABLE_2[method][column])
            for column in columns
        }
        if any(cells.values()):
            rows.append({"method": method, "cells": cells})
    return rows


def _robot(scores: Scores) -> list[Table]:
    """The five robot tasks one by one; the mean of their intervals is what the paper may print."""
    rows = []
    for method in METHODS:
        cells = {task: compare(scores.summary(method, task), None) for task in ROBOT_TASKS}
        if all(cells.values()):
            widths = [cell["interval"] for cell in cells.values() if cell and cell["interval"]]
            mean = sum(widths) / len(widths) if widths else None
            rows.append({"method": method, "cells": cells, "mean_interval": mean})
    return rows


def _figure_2(scores: Scores, protocol: Protocol) -> dict[str, list[Table]]:
    panels = {}
    for name in protocol.datasets:
        points = []
        for count in scores.counts(name):
            bbs = scores.with_landmarks("bbs", name, count)
            slts = scores.with_landmarks("slts", name, count)
            point: Table = {"landmarks": count}
            point["bbs"] = compare(summary_of(bbs), None)
            point["slts"] = compare(summary_of(slts), None)
            shared = sorted(set(bbs) & set(slts))
            if len(shared) > 1:
                test = paired_test([slts[s] for s in shared], [bbs[s] for s in shared])
                point["difference"], point["p"] = test.difference, test.p
            points.append(point)
        if points:
            panels[name] = points
    return panels


def _figure_3(results: list[Mapping[str, Any]], n_splits: int) -> Table:
    draws = [r["pca"] for r in results if "pca" in r and r["pca"]["split"] < n_splits]
    if not draws:
        return {}
    draws.sort(key=lambda draw: int(draw["split"]))
    identity = summarize([draw["variance"][0] for draw in draws])
    first = [sum(draw["variance"][1:4]) / len(draw["variance"][1:4]) for draw in draws]
    every = [sum(draw["variance"][1:]) / len(draw["variance"][1:]) for draw in draws]
    shown = draws[0] if draws[0]["points"] else None
    return {
        "dataset": PCA_DATASET,
        "identity": compare(identity, Published(VARIANCE_IDENTITY)),
        "learned_first_three": compare(summarize(first), Published(VARIANCE_LEARNED)),
        "learned_all": compare(summarize(every), Published(VARIANCE_LEARNED)),
        "shown": shown,
    }


def _selection(
    scores: Scores, name: str, protocol: Protocol, count_of: Callable[[float, int], int]
) -> list[Table]:
    if name not in scores.n_train:
        return []
    rows = []
    for share in protocol.shares:
        count = count_of(share, scores.n_train[name])
        cells = {
            how: compare(
                summary_of(scores.with_landmarks("slts", name, count, how)),
                LANDMARK_TABLES[name].get((how, share)),
            )
            for how in SELECTIONS
        }
        if any(cells.values()):
            rows.append({"share": share, "landmarks": count, "cells": cells})
    return rows
