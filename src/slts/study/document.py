"""The report as a list of blocks, which `markdown` and `page` write down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slts.study.blocks import Block, Grid, Heading, Items, Listing, Paragraph, Picture
from slts.study.claims import FEW_LANDMARK_SETS
from slts.study.paper import COLUMNS, METHOD_TITLES, ROBOT_TASKS, SELECTIONS, TABLE_1, TITLES
from slts.study.remarks import ASIDE_TEXTS, ASIDE_TITLE, remark_on
from slts.study.statistics import SIGNIFICANT

Table = dict[str, Any]

_SPACES = {
    "identity": "M = I",
    "learned_first_three": "metrics of the first three classes, mean",
    "learned_all": "metrics of all classes, mean",
}


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
        _datasets(tables), _path(figures), _landmarks(tables, figures), _accuracy(tables),
        _space(tables, figures), _selection(tables, run), _tests(tables, run), _aside(tables),
        _differences(tables, run),
    )  # fmt: skip
    for section in sections:
        blocks += section
    return blocks + _left_out(run)


def _about(run: Table) -> list[Block]:
    return [
        Paragraph(
            f"slts {run['version']}, {run['date']}, protocol {run['protocol']} "
            f"({run['digest']}), {run['n_splits']} splits, {run['units']} units of work, "
            f"{run['cpu_minutes']:.1f} minutes of processor time on {run['machine']}"
            + (f": {run['wall']}." if run["wall"] else ".")
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
    text = (
        "All sets are multivariate time series from the UCI repository. Of the 95 signs of Auslan "
        "the first 25 are taken, in alphabetical order whatever the case of the letters. The five "
        "tasks of Robot execution failures, LP1 to LP5, are problems of their own. Every row, one "
        "moment of a series, is scaled to unit norm."
    )
    return [Heading("Data sets"), Paragraph(text), Grid("table1", caption, header, tuple(rows))]


def _path(figures: Sequence[str]) -> list[Block]:
    if "figure1" not in figures:
        return []
    caption = (
        "Figure 1. An optimal path: two series of Japanese Vowels, the affinity of their steps, "
        "and the path of the largest total affinity."
    )
    text = (
        "Two series are aligned by the path through the grid of their moments along which the "
        "scalar products add up to the most. Their similarity is this sum divided by the length "
        "of the path; a learned metric enters the sum, not the path."
    )
    return [Heading("Alignment"), Paragraph(text), Picture("figure1", caption, small=True)]


def _accuracy(tables: Table) -> list[Block]:
    if not tables["table2"]:
        return []
    columns = (*COLUMNS, "average")
    rows, marked = _cells(
        [(METHOD_TITLES[row["method"]], row["cells"]) for row in tables["table2"]], columns
    )
    header = ("Method", *(TITLES[column] for column in columns))
    caption = "Table 2. Accuracy, with the paper's figure and the difference."
    text = (
        "1NN, SVM and BBS use the similarity without metric learning: the nearest neighbour, a "
        "linear SVM on the similarities to all training series, and the linear classifier over "
        "landmarks. LDMLT learns a distance for its nearest neighbour, SLTS a metric for the "
        "classifier over landmarks. BBS and SLTS have the most landmarks of Figure 2, chosen at "
        "random."
    )
    blocks: list[Block] = [
        Heading("Classification performance"),
        Paragraph(text),
        Grid("table2", caption, header, rows, marked),
        Paragraph(_agreement(tables["table2"])),
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
    blocks: list[Block] = [Heading("Number of landmarks"), Paragraph(_ahead(panels))]
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
                    "" if p is None else _signed(point["difference"]),
                    "" if p is None else _p(p),
                )
            )
    header = ("Data set", "Landmarks", "BBS", "SLTS", "SLTS - BBS", "p")
    blocks.append(Grid("figure2", "The points of Figure 2.", header, tuple(rows), folded=True))
    return blocks


def _ahead(panels: dict[str, list[Table]]) -> str:
    """What Figure 2 shows, in numbers."""
    points = [(name, point) for name, panel in panels.items() for point in panel if "p" in point]
    ahead = [point for _, point in points if point["difference"] > 0]
    clear = [point for point in ahead if point["p"] < SIGNIFICANT]
    behind = sum(p["difference"] < 0 and p["p"] < SIGNIFICANT for _, p in points)
    text = (
        f"The fewer the landmarks, the more there is to gain from the metric. SLTS is ahead of BBS "
        f"in {len(ahead)} of {len(points)} points of Figure 2, significantly in {len(clear)}; BBS "
        f"is significantly ahead in {behind or 'none'}."
    )
    if not points:
        return "Accuracy of BBS and SLTS against the number of landmarks."
    losses = []
    for name in FEW_LANDMARK_SETS:
        if name in panels:
            fewest, most = panels[name][0], panels[name][-1]
            losses.append(
                f"{TITLES[name]}: BBS {fewest['bbs']['mean']:.1f}, SLTS "
                f"{fewest['slts']['mean']:.1f} with {fewest['landmarks']} landmarks; "
                f"{most['bbs']['mean']:.1f} and {most['slts']['mean']:.1f} with "
                f"{most['landmarks']}."
            )
    return " ".join([text, *losses])


def _space(tables: Table, figures: Sequence[str]) -> list[Block]:
    space = tables["figure3"]
    if not space:
        return []
    text = (
        "The similarities of all series to ten random landmarks span a space; the first two "
        "principal components show it without metric learning, then under the metric of each class."
    )
    blocks: list[Block] = [Heading("The similarity space"), Paragraph(text)]
    if "figure3" in figures:
        caption = (
            "Figure 3. Two principal components of the similarities to ten random landmarks, "
            "Japanese Vowels: without metric learning, and under the metrics of three classes."
        )
        blocks.append(Picture("figure3", caption))
    rows, marked = _cells(
        [(title, {"variance": space[name]}) for name, title in _SPACES.items()], ("variance",)
    )
    caption = "Variance explained by two components, in percent, over draws of the landmarks."
    blocks.append(Grid("figure3", caption, ("Similarity", "Explained variance"), rows, marked))
    return blocks


def _selection(tables: Table, run: Table) -> list[Block]:
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
        blocks.append(Paragraph(f"{_agreement(tables[part])} {_means(title, tables[part])}"))
    text = (
        "DSelect starts with a random training series and adds the one least similar to those it "
        "has; KMedoids takes the centres of clusters; Random draws. The first two need the "
        "similarities of all pairs of training series. None looks at labels."
    )
    if not blocks:
        return []
    if _is_explained(run):
        blocks.append(Paragraph(remark_on("selection", "", "")))
    return [Heading("Choosing landmarks"), Paragraph(text), *blocks]


def _means(title: str, rows: Sequence[Table]) -> str:
    """The ways to choose landmarks, compared over all shares."""
    texts = []
    for how in SELECTIONS:
        cells = [row["cells"][how] for row in rows if row["cells"].get(how)]
        pairs = [(cell["mean"], cell["paper"]) for cell in cells if "paper" in cell]
        if pairs:
            ours, papers = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
            texts.append(f"{METHOD_TITLES[how]} {ours:.1f} ({papers:.1f})")
    return f"{title}, mean over the shares, the paper's in brackets: {', '.join(texts)}."


def _aside(tables: Table) -> list[Block]:
    """The sets with a random division once more, the tuning part kept aside for good."""
    blocks: list[Block] = []
    if tables["table2_aside"]:
        columns = tuple(tables["table2_aside"][0]["cells"])
        named = [(METHOD_TITLES[row["method"]], row["cells"]) for row in tables["table2_aside"]]
        rows, marked = _cells(named, columns)
        header = ("Method", *(TITLES[column] for column in columns))
        caption = "Table 2 read to the letter: plain random divisions, the tuning part kept aside."
        blocks.append(Grid("table2_aside", caption, header, rows, marked))
        blocks.append(Paragraph(_agreement(tables["table2_aside"])))
    if tables["table4_aside"]:
        named = [
            (f"{100 * row['share']:.0f}% ({row['landmarks']})", row["cells"])
            for row in tables["table4_aside"]
        ]
        rows, marked = _cells(named, SELECTIONS)
        header = ("Landmarks", *(METHOD_TITLES[how] for how in SELECTIONS))
        caption = "Table 4 (LP1) read to the letter."
        blocks.append(Grid("table4_aside", caption, header, rows, marked))
        agreement = _agreement(tables["table4_aside"])
        blocks.append(Paragraph(f"{agreement} {_means('LP1', tables['table4_aside'])}"))
    return [Heading(ASIDE_TITLE), *map(Paragraph, ASIDE_TEXTS), *blocks] if blocks else []


def _tests(tables: Table, run: Table) -> list[Block]:
    if not tables["tests"]:
        return []
    rows = tuple(
        (
            _claim(row),
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
        "mean over the numbers up to 35% of the largest. A dagger marks what the paper reads off "
        "its table or figure without a test."
    )
    remarks = [
        remark_on("tests", row["against"], row["where"])
        for row in tables["tests"]
        if not row["holds"] and _is_explained(run)
    ]
    return [
        Heading("The tests"),
        Grid("tests", caption, header, rows, marked),
        *(Paragraph(remark) for remark in remarks if remark),
    ]


def _claim(row: Table) -> str:
    counts = ", ".join(map(str, row["landmarks"] or ()))
    text = f"{row['claim']} ({counts})" if counts else row["claim"]
    return text if row["tested_in_paper"] else f"{text}\N{NO-BREAK SPACE}†"


def _verdict(row: Table) -> str:
    if row["holds"]:
        return "holds"
    if row["found"] == "not different from":
        return "not shown: no significant difference"
    return f"does not hold: significantly {row['found']}"


def _agreement(rows: Sequence[Table]) -> str:
    """How many cells agree with the paper, in words."""
    cells = [cell for row in rows for cell in row["cells"].values() if cell and "paper" in cell]
    above = sum(cell["differs"] and cell["difference"] > 0 for cell in cells)
    below = sum(cell["differs"] and cell["difference"] < 0 for cell in cells)
    return (
        f"Of {len(cells)} figures {len(cells) - above - below} agree with the paper within the "
        f"wider of the two intervals, {above} are above and {below} below it."
    )


def _differences(tables: Table, run: Table) -> list[Block]:
    """Every cell that differs from the paper by more than both intervals, and why."""
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
    for name, title in _SPACES.items():
        where = f"Figure 3, explained variance, {title}"
        found.append((where, tables["figure3"].get(name), remark_on("figure3", name, "")))
    explained = _is_explained(run)
    groups: dict[str, list[str]] = {}
    for where, cell, remark in found:
        if cell and cell.get("differs"):
            text = _difference(where, cell)
            # Cells with a remark in common share a paragraph.
            groups.setdefault(remark if explained and remark else text, []).append(text)
    if not groups:
        return []
    blocks: list[Block] = [Heading("Where we differ from the paper")]
    for remark, texts in groups.items():
        if texts == [remark]:
            blocks.append(Paragraph(remark))
        elif len(texts) == 1:
            blocks.append(Paragraph(f"{texts[0]} {remark}"))
        else:
            blocks += [Items(tuple(texts)), Paragraph(remark)]
    return blocks


def _is_explained(run: Table) -> bool:
    """Whether the remarks apply: they are about the full run, not about a quick look."""
    return bool(run["protocol"] != "fast")


def _difference(where: str, cell: Table) -> str:
    ours = _with_interval(cell["mean"], cell["interval"])
    paper = _with_interval(cell["paper"], cell["paper_interval"])
    return f"{where}: {ours} here, {paper} in the paper ({_signed(cell['difference'])})."


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
        text += f" ({paper}; {_signed(cell['difference'])}{star})"
    return text


def _with_interval(mean: float, interval: float | None) -> str:
    return f"{mean:.1f}" if interval is None else f"{mean:.1f}±{interval:.1f}"


def _signed(value: float) -> str:
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _against(ours: object, paper: object) -> str:
    return str(ours) if ours == paper else f"{ours} (paper: {paper})"


def _lengths(shortest: int, longest: int) -> str:
    return str(shortest) if shortest == longest else f"{shortest}-{longest}"
