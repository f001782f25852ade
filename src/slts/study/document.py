"""The report as a list of blocks, which `markdown` and `page` write down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slts.study.paper import COLUMNS, METHOD_TITLES, ROBOT_TASKS, SELECTIONS, TABLE_1, TITLES
from slts.study.remarks import remark_on

Table = dict[str, Any]


@dataclass(frozen=True)
class Heading:
    """A section."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of points."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Listing:
    """A command."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table; the first column names the rows. `marked` cells (row, column) deserve a look."""

    name: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Picture:
    """A figure, by the stem of its files."""

    name: str
    caption: str


Block = Heading | Paragraph | Items | Listing | Grid | Picture


def build(tables: Table, run: Table, figures: Sequence[str]) -> list[Block]:
    """Write the report.

    Parameters
    ----------
    tables
        What `collect` made.
    run
        Facts about the run: version, date, command, protocol, what was left out.
    figures
        Names of the figures that were drawn.
    """
    blocks: list[Block] = [Heading("Reproduction of the experimental study", 1)]
    blocks += _about(run)
    sections = (
        _datasets(tables), _path(figures), _accuracy(tables), _landmarks(tables, figures),
        _space(tables, figures), _selection(tables), _tests(tables), _differences(tables, run),
    )  # fmt: skip
    for section in sections:
        blocks += section
    return blocks + _left_out(run)


def _about(run: Table) -> list[Block]:
    return [
        Paragraph(
            f"slts {run['version']}, {run['date']}, protocol {run['protocol']} "
            f"({run['digest']}), {run['n_splits']} splits, {run['units']} units of work, "
            f"{run['cpu_minutes']:.1f} minutes of processor time on {run['machine']}."
        ),
        Listing(run["command"]),
        Paragraph(
            "Accuracies are percentages; ± is the half width of the 95% Student interval over the "
            "splits. In brackets the paper's figure, then the difference, ours minus the paper's. "
            "A star marks a difference larger than both intervals."
        ),
        Items(tuple(run["notes"])),
    ]


def _datasets(tables: Table) -> list[Block]:
    if not tables["table1"]:
        return []
    rows = []
    for facts in tables["table1"]:
        published = TABLE_1[facts["dataset"]]
        rows.append(
            (
                TITLES[facts["dataset"]],
                _against(facts["instances"], published.instances),
                _against(
                    _lengths(facts["shortest"], facts["longest"]),
                    _lengths(published.shortest, published.longest),
                ),
                _against(facts["features"], published.features),
                _against(facts["classes"], published.classes),
            )
        )
    header = ("Data set", "#Instances", "Length", "#Feat.", "#Classes")
    caption = "Table 1. The data sets; figures that differ from the paper's show both."
    return [Heading("Data sets"), Grid("table1", caption, header, tuple(rows))]


def _path(figures: Sequence[str]) -> list[Block]:
    if "figure1" not in figures:
        return []
    caption = (
        "Figure 1. An optimal path: two series of Japanese Vowels, the affinity of their steps, "
        "and the path of the largest total affinity."
    )
    return [Heading("Alignment"), Picture("figure1", caption)]


def _accuracy(tables: Table) -> list[Block]:
    if not tables["table2"]:
        return []
    columns = (*COLUMNS, "average")
    rows, marked = _cells(
        [(METHOD_TITLES[row["method"]], row["cells"]) for row in tables["table2"]], columns
    )
    header = ("Method", *(TITLES[column] for column in columns))
    caption = "Table 2. Accuracy, with the paper's figure and the difference."
    blocks: list[Block] = [
        Heading("Classification performance"),
        Grid("table2", caption, header, rows, marked),
    ]
    if tables["robot"]:
        tasks = [(METHOD_TITLES[row["method"]], row["cells"]) for row in tables["robot"]]
        robot, _ = _cells(tasks, ROBOT_TASKS)
        widths = [
            "" if row["mean_interval"] is None else f"{row['mean_interval']:.1f}"
            for row in tables["robot"]
        ]
        full = tuple((*row, width) for row, width in zip(robot, widths, strict=True))
        titles = ("Method", *(TITLES[task] for task in ROBOT_TASKS), "mean ±")
        note = (
            "Robot execution failures, task by task. The last column is the mean of the five "
            "intervals, the likely meaning of the wide intervals in the paper's Table 2; ours "
            "there is that of the mean of the five tasks over the splits."
        )
        blocks.append(Grid("robot", note, titles, full))
    return blocks


def _landmarks(tables: Table, figures: Sequence[str]) -> list[Block]:
    panels = tables["figure2"]
    if not panels:
        return []
    blocks: list[Block] = [Heading("Number of landmarks")]
    if "figure2" in figures:
        caption = (
            "Figure 2. Accuracy of BBS and SLTS against the number of landmarks, with 95% "
            "intervals; filled circles where a paired t-test finds a difference (p < 5%)."
        )
        blocks.append(Picture("figure2", caption))
    rows = []
    for name, points in panels.items():
        for point in points:
            p = point.get("p")
            rows.append(
                (
                    TITLES[name],
                    str(point["landmarks"]),
                    _cell(point["bbs"]),
                    _cell(point["slts"]),
                    "" if p is None else f"{point['difference']:+.1f}",
                    "" if p is None else _p(p),
                )
            )
    header = ("Data set", "Landmarks", "BBS", "SLTS", "SLTS - BBS", "p")
    blocks.append(Grid("figure2", "The points of Figure 2.", header, tuple(rows)))
    return blocks


def _space(tables: Table, figures: Sequence[str]) -> list[Block]:
    space = tables["figure3"]
    if not space:
        return []
    blocks: list[Block] = [Heading("The similarity space")]
    if "figure3" in figures:
        caption = (
            "Figure 3. Two principal components of the similarities to ten random landmarks, "
            "Japanese Vowels: without metric learning, and under the metrics of three classes."
        )
        blocks.append(Picture("figure3", caption))
    names = {
        "identity": "M = I",
        "learned_first_three": "metrics of the first three classes, mean",
        "learned_all": "metrics of all classes, mean",
    }
    rows, marked = _cells(
        [(title, {"variance": space[name]}) for name, title in names.items()], ("variance",)
    )
    caption = "Variance explained by two components, in percent, over draws of the landmarks."
    blocks.append(Grid("figure3", caption, ("Similarity", "Explained variance"), rows, marked))
    return blocks


def _selection(tables: Table) -> list[Block]:
    blocks: list[Block] = []
    for part, title in (("table3", "Japanese vowels"), ("table4", "LP1")):
        if not tables[part]:
            continue
        named = [
            (f"{100 * row['share']:.0f}% ({row['landmarks']})", row["cells"])
            for row in tables[part]
        ]
        rows, marked = _cells(named, SELECTIONS)
        header = ("Landmarks", *(METHOD_TITLES[how] for how in SELECTIONS))
        caption = f"Table {part[-1]}. SLTS with landmarks chosen in three ways, {title}."
        blocks.append(Grid(part, caption, header, rows, marked))
    return [Heading("Choosing landmarks"), *blocks] if blocks else []


def _tests(tables: Table) -> list[Block]:
    if not tables["tests"]:
        return []
    rows = tuple(
        (
            row["claim"] + ("" if row["tested_in_paper"] else " (read, not tested, in the paper)"),
            f"{row['difference']:+.2f}",
            "" if row["t"] is None else f"{row['t']:.2f}",
            _p(row["p"]),
            str(row["n"]),
            _verdict(row),
        )
        for row in tables["tests"]
    )
    marked = frozenset((k, 5) for k, row in enumerate(tables["tests"]) if not row["holds"])
    header = ("Claim of the text", "Difference", "t", "p", "n", "Here")
    caption = (
        "Student t-tests for paired samples, two-sided at 5%, over the splits. Few landmarks: the "
        "mean over the numbers up to 35% of the largest."
    )
    return [Heading("The tests"), Grid("tests", caption, header, rows, marked)]


def _verdict(row: Table) -> str:
    if row["holds"]:
        return "holds"
    if row["found"] == "not different from":
        return "not shown: no significant difference"
    return f"does not hold: significantly {row['found']}"


def _differences(tables: Table, run: Table) -> list[Block]:
    """A paragraph for every cell that differs from the paper by more than both intervals."""
    found: list[tuple[str, Table | None, str]] = []
    for row in tables["table2"]:
        for column, cell in row["cells"].items():
            where = f"Table 2, {METHOD_TITLES[row['method']]}, {TITLES[column]}"
            found.append((where, cell, remark_on("table2", row["method"], column)))
    for part in ("table3", "table4"):
        for row in tables[part]:
            for how, cell in row["cells"].items():
                where = f"Table {part[-1]}, {METHOD_TITLES[how]} at {100 * row['share']:.0f}%"
                found.append((where, cell, remark_on(part, how, "")))
    for name, title in (("identity", "M = I"), ("learned_all", "metrics of all classes")):
        where = f"Figure 3, explained variance, {title}"
        found.append((where, tables["figure3"].get(name), remark_on("figure3", name, "")))
    # The remarks are about the paper's protocol, not about a quick look.
    explained = run["protocol"] != "fast"
    texts = [
        _difference(where, cell, remark if explained else "")
        for where, cell, remark in found
        if cell and cell.get("differs")
    ]
    if not texts:
        return []
    return [Heading("Where we differ from the paper"), *(Paragraph(text) for text in texts)]


def _difference(where: str, cell: Table, remark: str) -> str:
    ours = _with_interval(cell["mean"], cell["interval"])
    paper = _with_interval(cell["paper"], cell["paper_interval"])
    text = f"{where}: {ours} here, {paper} in the paper ({cell['difference']:+.1f})."
    return f"{text} {remark}" if remark else text


def _left_out(run: Table) -> list[Block]:
    blocks: list[Block] = []
    if run["missing"]:
        blocks += [
            Heading("Left out"),
            Items(tuple(f"{TITLES[name]}: {why}." for name, why in run["missing"].items())),
        ]
    if run["failures"]:
        blocks += [
            Heading("Units that failed"),
            Items(tuple(f"{key}: {why}" for key, why in run["failures"].items())),
        ]
    return blocks


def _cells(
    named: Sequence[tuple[str, Table]], columns: Sequence[str]
) -> tuple[tuple[tuple[str, ...], ...], frozenset[tuple[int, int]]]:
    rows, marked = [], set()
    for r, (title, cells) in enumerate(named):
        row = [title]
        for c, column in enumerate(columns):
            cell = cells.get(column)
            row.append(_cell(cell))
            if cell and cell.get("differs"):
                marked.add((r, c + 1))
        rows.append(tuple(row))
    return tuple(rows), frozenset(marked)


def _cell(cell: Table | None) -> str:
    if not cell:
        return "-"
    text = _with_interval(cell["mean"], cell["interval"])
    if "paper" in cell:
        star = "*" if cell["differs"] else ""
        paper = _with_interval(cell["paper"], cell["paper_interval"])
        text += f" ({paper}; {cell['difference']:+.1f}{star})"
    return text


def _with_interval(mean: float, interval: float | None) -> str:
    return f"{mean:.1f}" if interval is None else f"{mean:.1f}±{interval:.1f}"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _against(ours: object, paper: object) -> str:
    return str(ours) if ours == paper else f"{ours} (paper: {paper})"


def _lengths(shortest: int, longest: int) -> str:
    return str(shortest) if shortest == longest else f"{shortest}-{longest}"
