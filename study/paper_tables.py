"""From results to the tables of the paper, as plain data: lists, numbers and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from study.markdown import Table
from study.paper import (
    CLAIMS,
    COLUMNS,
    LANDMARK_TABLES,
    PAPER_METHODS,
    ROBOT_TASKS,
    SELECTIONS,
    TABLE_1,
    TABLE_2,
    VARIANCE_IDENTITY,
    VARIANCE_LEARNED,
    WEIGHTS,
    Claim,
    Published,
)
from study.problems import count_of
from study.protocol import SELECTION_TABLES, Protocol, Selection
from study.statistics import (
    BySplit,
    Scores,
    Summary,
    summarize,
    summary_by_split,
    tested_by_split,
)

# Columns of Table 2 whose data sets are split at random.
HELDOUT_COLUMNS = ("auslan", "robot")
# "Few" landmarks: at most this share of the largest number of Figure 2.
FEW = 0.35


def collect(
    results: Mapping[str, Mapping[str, Any]], protocol: Protocol, selection: Selection
) -> Table:
    """Collect the results of a run by table. Tables without results, or not selected, are empty.

    Parameters
    ----------
    results
        Results by the key of their unit.
    protocol
        Their protocol.
    selection
        The selected tables and figures.
    """
    ordered = [results[key] for key in sorted(results)]
    scores = Scores(ordered, protocol.n_splits)
    heldout = Scores(ordered, protocol.n_splits, heldout=True)
    columns = _Columns(scores, protocol.n_splits)
    selections = {
        part: (scores, name, protocol, False) for part, name in SELECTION_TABLES.items()
    } | {"table4_heldout": (heldout, SELECTION_TABLES["table4"], protocol, True)}
    tables = {
        "table1": _table_1(ordered),
        "table2": _table_2(columns, (*COLUMNS, "average")),
        "robot": _robot(columns),
        "table2_heldout": _table_2(_Columns(heldout, protocol.n_splits), HELDOUT_COLUMNS),
        **{part: _selection(*arguments) for part, arguments in selections.items()},
        "figure1": next((result["path"] for result in ordered if "path" in result), []),
        "figure2": _figure_2(scores, protocol),
        "figure3": _figure_3(ordered, protocol.n_splits),
        "tests": [row for claim in CLAIMS if (row := _test(columns, claim))],
    }
    owners = {"robot": "table2", "table2_heldout": "table2", "table4_heldout": "table4"}
    return {
        name: table if owners.get(name, name) in selection.parts else type(table)()
        for name, table in tables.items()
    }


def compare(found: Summary | None, published: Published | None = None) -> Table | None:
    """Return a cell: our figure, the paper's, and whether they differ by more than both intervals.

    None stands for no result.
    """
    if found is None:
        return None
    cell: Table = {"mean": found.mean, "interval": found.interval, "n": found.n}
    if published is not None:
        difference = found.mean - published.mean
        # The paper prints one decimal, so differences up to 0.05 are rounding.
        widest = max(found.interval or 0.0, published.interval or 0.0, 0.05)
        cell.update(
            paper=published.mean,
            paper_interval=published.interval,
            difference=difference,
            differs=abs(difference) > widest,
        )
    return cell


class _Columns:
    """Accuracies by split in the columns of Table 2."""

    def __init__(self, scores: Scores, n_splits: int) -> None:
        self.scores, self.n_splits = scores, n_splits

    def of(self, method: str, column: str) -> BySplit:
        """Return one column: a data set, the mean of the robot tasks, or the weighted average."""
        if column == "robot":
            return _mean([self.of(method, task) for task in ROBOT_TASKS])
        if column == "average":
            weights = [float(WEIGHTS[name]) for name in COLUMNS]
            return _mean([self.every_split(method, name) for name in COLUMNS], weights)
        if method in ("bbs", "slts"):
            counts = self.scores.counts(column)
            return self.scores.accuracies(method, column, "random", counts[-1]) if counts else {}
        return self.scores.accuracies(method, column)

    def every_split(self, method: str, column: str) -> BySplit:
        """Return a column with all splits. The mean stands for splits that were not run."""
        found = self.of(method, column)
        mean = sum(found.values()) / max(len(found), 1)
        return {split: found.get(split, mean) for split in range(self.n_splits)} if found else {}

    def claimed(self, method: str, claim: Claim, counts: Sequence[int] | None) -> BySplit:
        """Return the accuracies that a claim is about; `counts` are numbers of landmarks."""
        if counts is None:
            return self.every_split(method, claim.where)
        scores = self.scores
        return _mean([scores.accuracies(method, claim.where, "random", n) for n in counts])


def _mean(parts: Sequence[BySplit], weights: Sequence[float] | None = None) -> BySplit:
    """Return the weighted mean by split, over the splits that all parts have."""
    shared = set[int].intersection(*map(set, parts)) if parts else set()
    weights = weights or [1.0] * len(parts)
    return {
        split: sum(w * part[split] for w, part in zip(weights, parts, strict=True)) / sum(weights)
        for split in sorted(shared)
    }


def _table_1(results: Sequence[Mapping[str, Any]]) -> list[Table]:
    found = {r["facts"]["dataset"]: r["facts"] for r in results if "facts" in r}
    return [found[name] for name in TABLE_1 if name in found]


def _table_2(columns: _Columns, names: Sequence[str]) -> list[Table]:
    rows = []
    for method in PAPER_METHODS:
        cells = {
            name: compare(summary_by_split(columns.of(method, name)), TABLE_2[method][name])
            for name in names
        }
        if any(cells.values()):
            rows.append({"method": method, "cells": cells})
    return rows


def _robot(columns: _Columns) -> list[Table]:
    """The robot tasks one by one, and the mean of their intervals, which the paper may print."""
    rows = []
    for method in PAPER_METHODS:
        cells = {task: compare(summary_by_split(columns.of(method, task))) for task in ROBOT_TASKS}
        if all(cells.values()):
            widths = [cell["interval"] for cell in cells.values() if cell and cell["interval"]]
            mean = sum(widths) / len(widths) if widths else None
            rows.append({"method": method, "cells": cells, "mean_interval": mean})
    return rows


def _figure_2(scores: Scores, protocol: Protocol) -> dict[str, list[Table]]:
    panels: dict[str, list[Table]] = {}
    for name in protocol.datasets:
        for count in scores.counts(name):
            bbs, slts = (scores.accuracies(m, name, "random", count) for m in ("bbs", "slts"))
            cells = {"bbs": compare(summary_by_split(bbs)), "slts": compare(summary_by_split(slts))}
            point: Table = {"landmarks": count, **cells}
            test = tested_by_split(slts, bbs)
            if test is not None:
                point.update(difference=test.difference, p=test.p)
            panels.setdefault(name, []).append(point)
    return panels


def _figure_3(results: Sequence[Mapping[str, Any]], n_splits: int) -> Table:
    draws = [r["pca"] for r in results if "pca" in r and r["pca"]["split"] < n_splits]
    draws.sort(key=lambda draw: int(draw["split"]))
    if not draws:
        return {}

    def variance(first: int, last: int | None, published: float) -> Table | None:
        parts = [draw["variance"][first:last] for draw in draws]
        return compare(summarize(sum(p) / len(p) for p in parts), Published(published))

    return {
        "identity": variance(0, 1, VARIANCE_IDENTITY),
        "learned_first_three": variance(1, 4, VARIANCE_LEARNED),
        "learned_all": variance(1, None, VARIANCE_LEARNED),
        "shown": draws[0] if draws[0]["points"] else None,
    }


def _selection(scores: Scores, name: str, protocol: Protocol, heldout: bool) -> list[Table]:
    rows = []
    for share in protocol.shares if name in scores.n_train else ():
        count = count_of(share, scores.n_train[name], heldout)
        cells = {}
        for way in SELECTIONS:
            found = summary_by_split(scores.accuracies("slts", name, way, count))
            cells[way] = compare(found, LANDMARK_TABLES[name].get((way, share)))
        if any(cells.values()):
            rows.append({"share": share, "landmarks": count, "cells": cells})
    return rows


def _test(columns: _Columns, claim: Claim) -> Table | None:
    """Test a claim by a paired t-test over the splits; None without results."""
    counts = None
    if claim.landmarks != "most":
        counts = columns.scores.counts(claim.where)
        most = FEW * counts[-1] if counts else 0.0
        counts = counts[:1] if claim.landmarks == "fewest" else [n for n in counts if n <= most]
    test = tested_by_split(
        columns.claimed("slts", claim, counts), columns.claimed(claim.other, claim, counts)
    )
    if test is None:
        return None
    direction = "above" if test.difference > 0 else "below"
    found = direction if test.significant else "not different from"
    return {
        "claim": str(claim),
        "against": claim.other,
        "where": claim.where,
        "tested_in_paper": claim.tested,
        "landmarks": counts,
        "difference": test.difference,
        "t": test.t,
        "p": test.p,
        "n": test.n,
        "found": found,
        "holds": found == claim.relation,
    }
