"""The section on the pool of public data sets, in the document about the comparison."""

from __future__ import annotations

from collections.abc import Sequence

from study import sentences
from study.figures import POOL_RANKS
from study.markdown import Element, Grid, Picture, Table, bullets, number, p_value, signed
from study.methods import BY_NAME, CENTRE

_CENTRE_TITLE = BY_NAME[CENTRE].title


def section(tables: Table, run: Table, figures: Sequence[str]) -> list[Element]:
    """Build the section from the tables of `study.peer_tables.collect`; nothing without results."""
    groups = {name: table for name, table in tables["pool"].items() if table["datasets"]}
    if not groups:
        return []
    every, grids = groups["all"], run["grids"]
    seeds = min(grids["pool_seeds"], grids["n_splits"])
    elements: list[Element] = [
        f"## Pool: {len(every['datasets'])} public data sets",
        sentences.POOL.format(seeds=seeds),
        _summary(groups, tables["costs"]),
    ]
    if POOL_RANKS in figures:
        elements += [Picture(POOL_RANKS, "Mean ranks over the pool"), sentences.RANKS]
    elements += [_tests(groups)] if every["tests"] else []
    chances = sentences.pool_probabilities(groups)
    elements += [bullets(chances)] if chances else []
    if every["tests"]:
        losses = sentences.losses(every) or ["Nowhere in this run."]
        elements += [f"Where {_CENTRE_TITLE} is worse, by points:", bullets(losses)]
    return [*elements, _accuracies(every)]


def _title(name: str, table: Table) -> str:
    return f"{name} ({len(table['datasets'])})"


def _summary(groups: Table, costs: Table) -> Grid:
    """Means, mean ranks and times of the methods."""
    every = groups["all"]
    rows = []
    for row in every["accuracy"]:
        method = row["method"]
        means = [
            next((r["mean"] for r in table["accuracy"] if r["method"] == method), None)
            for table in groups.values()
        ]
        ranks = [t["ranks"].get("ranks", {}).get(method) for t in groups.values()]
        own = [costs[method].get(name) for name in every["datasets"]]
        seconds = [sum(c[part] for c in own) if all(own) else None for part in ("fit", "predict")]
        cells = (*(number(x, 2) for x in (*means, *ranks)), *map(number, seconds))
        rows.append((BY_NAME[method].title, *cells))
    titles = [_title(*item) for item in groups.items()]
    header = ("method", *titles, *(f"rank, {name}" for name in groups), "fit, s", "predict, s")
    caption = (
        "Mean accuracy in percent, mean rank among these methods, and processor seconds of one "
        "thread, summed over all data sets."
    )
    return Grid("pool", caption, header, tuple(rows))


def _tests(groups: Table) -> Grid:
    """The centre against every other method, by group of data sets."""
    rows = []
    for other in groups["all"]["tests"]:
        cells = []
        for table in groups.values():
            row = next((row for row in table["tests"] if row["method"] == other["method"]), None)
            record = " - ".join(map(str, row["record"])) if row else "-"
            cells += [
                record,
                signed(row and row["difference"], 2),
                p_value(row["p"]) if row else "-",
            ]
        rows.append((BY_NAME[other["method"]].title, *cells))
    header = [
        text
        for item in groups.items()
        for text in (f"{_title(*item)}: won - tied - lost", "points", "p")
    ]
    caption = (
        f"{_CENTRE_TITLE} against other methods: data sets, mean difference, and p of the exact "
        f"signed-rank test on the differences."
    )
    return Grid("pool-tests", caption, ("against", *header), tuple(rows))


def _accuracies(every: Table) -> Grid:
    methods = [row["method"] for row in every["accuracy"]]
    rows = []
    for name in every["datasets"]:
        cells = [row["cells"][name] for row in every["accuracy"]]
        rows.append((name, *(number(cell["mean"] if cell else None) for cell in cells)))
    header = ("data set", *(BY_NAME[method].title for method in methods))
    return Grid("accuracy-pool", "Accuracy in percent, by data set.", header, tuple(rows))
