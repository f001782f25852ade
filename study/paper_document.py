"""The document about the paper's study."""

from __future__ import annotations

from collections.abc import Sequence

from study import sentences
from study.markdown import (
    Element,
    Grid,
    Picture,
    Table,
    bullets,
    number,
    opening,
    p_value,
    signed,
    with_interval,
)
from study.paper import COLUMNS, METHOD_TITLES, ROBOT_TASKS, SELECTIONS, TABLE_1, TITLES

_SPACES = {
    "identity": "M = I",
    "learned_first_three": "metrics of the first three classes, mean",
    "learned_all": "metrics of all classes, mean",
}


def build(tables: Table, run: Table, figures: Sequence[str]) -> list[Element]:
    """Build the document.

    Parameters
    ----------
    tables
        The tables of `study.paper_tables.collect`.
    run
        Facts about the run.
    figures
        Names of the figures that were drawn.
    """
    fast = run["protocol"] == "fast"
    notes = (sentences.FAST_NOTE,) if fast else sentences.NOTES
    elements = opening("Reproduction of the experimental study", run)
    elements += [sentences.READING, bullets(notes)]
    elements += _datasets(tables)
    elements += _path(figures)
    elements += _landmarks(tables, figures)
    elements += _accuracy(tables)
    elements += _space(tables, figures)
    # Remarks are about the full study.
    elements += _selection(tables, explained=not fast)
    elements += _tests(tables, explained=not fast)
    elements += _heldout(tables)
    elements += _differences(tables, explained=not fast)
    missing = sentences.not_computed(run)
    return [*elements, "## Left out", bullets(missing)] if missing else elements


def _datasets(tables: Table) -> list[Element]:
    rows = []
    for facts in tables["table1"]:
        published = TABLE_1[facts["dataset"]]._asdict()
        cells = [TITLES[facts["dataset"]]]
        for names in (("instances",), ("shortest", "longest"), ("features",), ("classes",)):
            # A length that is the same for all series is printed once.
            ours, papers = (
                "-".join(dict.fromkeys(str(values[name]) for name in names))
                for values in (facts, published)
            )
            cells.append(ours if ours == papers else f"{ours} (paper: {papers})")
        rows.append(tuple(cells))
    header = ("Data set", "#Instances", "Length", "#Feat.", "#Classes")
    caption = "Table 1. The data sets. If a number differs from the paper's, both are shown."
    grid = Grid("table1", caption, header, tuple(rows))
    return ["## Data sets", sentences.DATASETS, grid] if rows else []


def _path(figures: Sequence[str]) -> list[Element]:
    caption = (
        "Figure 1. An optimal path: two series of Japanese Vowels, the affinity of their steps, "
        "and the path with the largest sum of affinities."
    )
    picture = Picture("figure1", caption)
    return ["## Alignment", sentences.ALIGNMENT, picture] if "figure1" in figures else []


def _landmarks(tables: Table, figures: Sequence[str]) -> list[Element]:
    panels = tables["figure2"]
    if not panels:
        return []
    elements: list[Element] = ["## Number of landmarks", sentences.landmark_gains(panels)]
    if "figure2" in figures:
        caption = (
            "Figure 2. Accuracy of BBS and SLTS for different numbers of landmarks, with 95% "
            "intervals. Filled circles: a paired t-test finds a difference (p < 5%)."
        )
        elements.append(Picture("figure2", caption))
    rows = tuple(
        (
            TITLES[name],
            str(point["landmarks"]),
            _cell(point["bbs"]),
            _cell(point["slts"]),
            signed(point.get("difference")),
            p_value(point["p"]) if "p" in point else "-",
        )
        for name, points in panels.items()
        for point in points
    )
    header = ("Data set", "Landmarks", "BBS", "SLTS", "SLTS - BBS", "p")
    return [*elements, Grid("figure2", "The points of Figure 2.", header, rows)]


def _accuracy(tables: Table) -> list[Element]:
    if not tables["table2"]:
        return []
    caption = "Table 2. Accuracy, with the paper's value and the difference."
    elements: list[Element] = ["## Classification performance", sentences.METHODS_OF_TABLE_2]
    elements += [_table_2("table2", caption, tables["table2"], (*COLUMNS, "average"))]
    elements += [sentences.agreement(tables["table2"])]
    if tables["robot"]:
        caption = (
            "Robot execution failures, task by task. The last column is the mean of the five "
            "intervals, which is probably what the paper's Table 2 prints. Our Table 2 gives the "
            "interval of the mean of the five tasks."
        )
        header = ("Method", *(TITLES[task] for task in ROBOT_TASKS), "mean ±")
        rows = tuple(
            (
                METHOD_TITLES[row["method"]],
                *(_cell(row["cells"][task]) for task in ROBOT_TASKS),
                number(row["mean_interval"]),
            )
            for row in tables["robot"]
        )
        elements.append(Grid("robot", caption, header, rows))
    return elements


def _table_2(name: str, caption: str, rows: Sequence[Table], columns: Sequence[str]) -> Grid:
    cells = [
        (METHOD_TITLES[row["method"]], *(_cell(row["cells"][c]) for c in columns)) for row in rows
    ]
    return Grid(name, caption, ("Method", *(TITLES[c] for c in columns)), tuple(cells))


def _space(tables: Table, figures: Sequence[str]) -> list[Element]:
    if not tables["figure3"]:
        return []
    elements: list[Element] = ["## The similarity space", sentences.SPACE]
    if "figure3" in figures:
        caption = (
            "Figure 3. Two principal components of the similarities to ten random landmarks, "
            "Japanese Vowels: without metric learning, and under the metrics of three classes."
        )
        elements.append(Picture("figure3", caption))
    rows = tuple((title, _cell(tables["figure3"][name])) for name, title in _SPACES.items())
    caption = "Variance explained by two components, in percent, over draws of the landmarks."
    return [*elements, Grid("figure3", caption, ("Similarity", "Explained variance"), rows)]


def _selection(tables: Table, *, explained: bool) -> list[Element]:
    elements: list[Element] = []
    for part, title in (("table3", "Japanese vowels"), ("table4", "LP1")):
        caption = f"Table {part[-1]}. SLTS with landmarks selected in three ways, {title}."
        elements += _selection_table(part, caption, title, tables[part])
    if not elements:
        return []
    remark: list[Element] = [sentences.remark_on("selection")] if explained else []
    return ["## Selecting landmarks", sentences.SELECTION, *elements, *remark]


def _selection_table(name: str, caption: str, title: str, rows: Sequence[Table]) -> list[Element]:
    if not rows:
        return []
    header = ("Landmarks", *(METHOD_TITLES[way] for way in SELECTIONS))
    cells = tuple(
        (
            f"{100 * row['share']:.0f}% ({row['landmarks']})",
            *(_cell(row["cells"][way]) for way in SELECTIONS),
        )
        for row in rows
    )
    summary = f"{sentences.agreement(rows)} {sentences.selection_means(title, rows)}"
    return [Grid(name, caption, header, cells), summary]


def _tests(tables: Table, *, explained: bool) -> list[Element]:
    rows, remarks = [], []
    for row in tables["tests"]:
        counts = ", ".join(map(str, row["landmarks"] or ()))
        claim = f"{row['claim']} ({counts})" if counts else row["claim"]
        dagger = "" if row["tested_in_paper"] else "\N{NO-BREAK SPACE}†"
        rows.append(
            (
                claim + dagger,
                f"{row['difference']:+.2f}",
                number(row["t"], 2),
                p_value(row["p"]),
                str(row["n"]),
                sentences.verdict(row),
            )
        )
        if explained and not row["holds"]:
            remarks.append(sentences.remark_on("tests", row["against"], row["where"]))
    header = ("Claim of the text", "Difference", "t", "p", "n", "Here")
    caption = (
        "Paired Student t-tests over the splits, two-sided at 5%. Few landmarks: the mean over "
        "the numbers of landmarks up to 35% of the largest. A dagger marks claims that the paper "
        "reads from a table or figure without a test."
    )
    grid = Grid("tests", caption, header, tuple(rows))
    return ["## The tests", grid, *filter(None, remarks)] if rows else []


def _heldout(tables: Table) -> list[Element]:
    elements: list[Element] = []
    rows = tables["table2_heldout"]
    if rows:
        caption = "Table 2 by the literal reading: no stratification, the tuning set held out."
        elements = [_table_2("table2_heldout", caption, rows, tuple(rows[0]["cells"]))]
        elements.append(sentences.agreement(rows))
    caption = "Table 4 (LP1) by the literal reading."
    elements += _selection_table("table4_heldout", caption, "LP1", tables["table4_heldout"])
    title = f"## {sentences.HELDOUT_TITLE}"
    return [title, *sentences.HELDOUT_TEXTS, *elements] if elements else []


def _differences(tables: Table, *, explained: bool) -> list[Element]:
    """List all cells that differ from the paper by more than both intervals, with remarks."""
    found: list[tuple[str, Table | None, str]] = []
    for row in tables["table2"]:
        for column, cell in row["cells"].items():
            where = f"Table 2, {METHOD_TITLES[row['method']]}, {TITLES[column]}"
            found.append((where, cell, sentences.remark_on("table2", row["method"], column)))
    for part in ("table3", "table4"):
        for row in tables[part]:
            for way, cell in row["cells"].items():
                where = f"Table {part[-1]}, {METHOD_TITLES[way]} at {100 * row['share']:.0f}%"
                found.append((where, cell, sentences.remark_on(part)))
    for name, title in _SPACES.items():
        where = f"Figure 3, explained variance, {title}"
        found.append((where, tables["figure3"].get(name), sentences.remark_on("figure3", name)))
    # Cells with the same remark share a paragraph.
    groups: dict[str, list[str]] = {}
    for where, cell, remark in found:
        if cell and cell.get("differs"):
            ours = with_interval(cell["mean"], cell["interval"])
            paper = with_interval(cell["paper"], cell["paper_interval"])
            text = f"{where}: {ours} here, {paper} in the paper ({signed(cell['difference'])})."
            groups.setdefault(remark if explained and remark else text, []).append(text)
    elements: list[Element] = []
    for remark, texts in groups.items():
        if len(texts) > 1:
            elements += [bullets(texts), remark]
        else:
            elements.append(" ".join(dict.fromkeys([*texts, remark])))
    return ["## Differences from the paper", *elements] if elements else []


def _cell(cell: Table | None) -> str:
    if not cell:
        return "-"
    text = with_interval(cell["mean"], cell["interval"])
    if "paper" in cell:
        star = "*" if cell["differs"] else ""
        paper = with_interval(cell["paper"], cell["paper_interval"])
        text += f" ({paper}; {signed(cell['difference'])}{star})"
    return text
