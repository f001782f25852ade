"""The report as a list of blocks, which `slts.study.markdown` and `slts.study.page` write down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slts.bench.methods import BY_NAME, CENTRE, GROUPS
from slts.bench.wording import (
    CONVENTIONS,
    HOW_CHOSEN,
    METHOD_NOTES,
    in_short,
    losses,
    on_choices,
    p_text,
    splits_notes,
    unfinished,
)
from slts.study.blocks import Block, Grid, Heading, Items, Listing, Paragraph, Picture
from slts.study.paper import ROBOT_TASKS, TITLES
from slts.study.statistics import SIGNIFICANT

Table = dict[str, Any]
RANKS = "accuracy-ranks"


def build(tables: Table, run: Table, figures: Sequence[str]) -> list[Block]:
    """Write the report.

    Parameters
    ----------
    tables
        What `collect` made.
    run
        Facts about the run.
    figures
        Names of the figures that were drawn.
    """
    blocks: list[Block] = [Heading("Accuracy", 1), *_about(tables, run)]
    if not tables["datasets"]:
        return blocks + _left_out(run)
    sections = (
        _accuracy(tables, run, figures), _tests(tables), _cost(tables), _ablations(tables),
        _options(tables), _choices(tables), _method(run),
    )  # fmt: skip
    for section in sections:
        blocks += section
    return blocks + _left_out(run)


def _about(tables: Table, run: Table) -> list[Block]:
    return [
        Paragraph(
            f"slts {run['version']}, {run['date']}, protocol {run['protocol']}, {run['units']} of "
            f"{run['planned']} units of work, {run['cpu_minutes']:.0f} minutes of processor time "
            f"on {run['machine']}; aeon {run['aeon']}."
        ),
        Listing(run["command"]),
        *([Items(tuple(in_short(tables)))] if in_short(tables) else []),
    ]


def _accuracy(tables: Table, run: Table, figures: Sequence[str]) -> list[Block]:
    rows = [row for row in tables["accuracy"] if row["group"] == "main"]
    if not rows:
        return []
    ranks = tables["ranks"].get("ranks", {})
    grid = Grid(
        "accuracy",
        CONVENTIONS,
        ("method", *_titles(tables), "mean", "mean rank"),
        tuple(
            (
                BY_NAME[row["method"]].title,
                *(_summary(row["cells"][name], run["n_splits"]) for name in tables["datasets"]),
                _number(row["mean"], 2),
                _number(ranks.get(row["method"]), 2),
            )
            for row in rows
        ),
    )
    blocks: list[Block] = [Heading("Accuracy on eight data sets"), grid]
    if RANKS in figures:
        text = (
            "Mean ranks, the best on the left. Methods under one bar cannot be told apart by ranks "
            "alone (Nemenyi, 5%)."
        )
        blocks += [Picture(RANKS, "Mean ranks over the data sets"), Paragraph(text)]
    worse = losses(tables)
    blocks.append(Heading(f"Where {BY_NAME[CENTRE].title} loses"))
    blocks.append(Items(tuple(worse)) if worse else Paragraph("Nowhere in this run."))
    return blocks


def _tests(tables: Table) -> list[Block]:
    rows = [row for row in tables["tests"] if BY_NAME[row["method"]].group == "main"]
    if not rows:
        return []
    centre = BY_NAME[CENTRE].title
    grid = Grid(
        "tests",
        f"{centre} minus the other method, in points; in brackets p of the paired t-test over the "
        f"splits both were run on. Last: mean over the sets, p of the exact signed-rank test on "
        f"their differences.",
        ("against", *_titles(tables), "mean", "p"),
        tuple(
            (
                BY_NAME[row["method"]].title,
                *(_tested(row["cells"][name]) for name in tables["datasets"]),
                _signed(row["difference"]),
                _p(row["p"]),
            )
            for row in rows
        ),
    )
    names = [row["method"] for row in tables["wins"]]
    wins = Grid(
        "wins",
        "Data sets won - tied - lost by the method of the row against that of the column.",
        ("method", *(BY_NAME[name].title for name in names)),
        tuple(
            (
                BY_NAME[row["method"]].title,
                *(_record(row["records"][n]) if n != row["method"] else "" for n in names),
            )
            for row in tables["wins"]
        ),
    )
    return [Heading("Tests"), grid, wins]


def _cost(tables: Table) -> list[Block]:
    rows = [row for row in tables["accuracy"] if row["group"] == "main"]
    columns = [name for name in tables["datasets"] if name not in ROBOT_TASKS]
    robot = [name for name in tables["datasets"] if name in ROBOT_TASKS]
    header = ("method", *(TITLES[name] for name in columns), *(["LP1-5, each"] if robot else []))
    seconds, numbers = [], []
    for row in rows:
        costs = [row["costs"][name] for name in columns]
        if robot:
            there = [row["costs"][name] for name in robot if row["costs"][name]]
            costs.append(_mean_cost(there))
        title = BY_NAME[row["method"]].title
        seconds.append((title, *(_seconds(cost) for cost in costs)))
        numbers.append((title, *(_count(cost) for cost in costs)))
    return [
        Heading("Time and size"),
        Grid("seconds", "Processor seconds to fit + to predict the test part, one thread.", header,
             tuple(seconds)),
        Grid("numbers", "Numbers a fitted model stores.", header, tuple(numbers)),
    ]  # fmt: skip


def _ablations(tables: Table) -> list[Block]:
    rows = [row for row in tables["tests"] if BY_NAME[row["method"]].group == "ablation"]
    if not rows:
        return []
    caption = (
        f"{GROUPS['ablation']}, minus {BY_NAME[CENTRE].title}, in points over shared splits; a "
        f"star: p < {SIGNIFICANT} on that set. p: signed-rank test over the sets. Time: fit and "
        f"predict on all sets, relative to {BY_NAME[CENTRE].title}."
    )
    return [Heading("Ablations"), _against(tables, rows, "ablations", caption)]


def _options(tables: Table) -> list[Block]:
    if not tables["options"]:
        return []
    caption = (
        f"{GROUPS['option']}, minus SLTSClassifierCV with its defaults, in points; a star: "
        f"p < {SIGNIFICANT} on that set."
    )
    return [Heading("Options of SLTS"), _against(tables, tables["options"], "options", caption)]


def _against(tables: Table, rows: Sequence[Table], name: str, caption: str) -> Grid:
    costs = {row["method"]: row["costs"] for row in tables["accuracy"]}
    return Grid(
        name,
        caption,
        ("change", *_titles(tables), "mean", "p", "time"),
        tuple(
            (
                BY_NAME[row["method"]].title,
                *(_starred(row["cells"][name]) for name in tables["datasets"]),
                _signed(_minus(row["difference"])),
                _p(row["p"]),
                _ratio(costs[row["method"]], costs[row["against"]]),
            )
            for row in rows
        ),
    )


def _choices(tables: Table) -> list[Block]:
    blocks: list[Block] = [Heading("How the defaults were chosen"), Paragraph(HOW_CHOSEN)]
    found = tables["choices"]
    if not found:
        return blocks
    left_out = Grid(
        "choices",
        "The configuration of the ablations with the best mean over the other data sets, by "
        "cross-validation inside their training parts. Behind: what the default gives away there, "
        "± its standard error over the data sets. Test: what the default gains over that choice on "
        "the test parts of the set left out.",
        ("left out", "best on the others", "its mean", "default", "behind", "default's rank",
         "test"),
        tuple(
            (
                TITLES[row["dataset"]],
                _choice_title(row["choice"]),
                _number(row["mean"], 2),
                _number(row["default"], 2),
                f"{row['behind']:.2f} ± {_number(row['error'], 2)}",
                f"{row['rank']} of {row['n_candidates']}",
                _signed(row["test"]),
            )
            for row in found["left_out"]
        ),
    )  # fmt: skip
    order = sorted(found["means"], key=lambda name: -found["means"][name])
    cells = Grid(
        "choice-accuracies",
        "Cross-validated accuracy of every configuration inside the training parts.",
        ("configuration", *(TITLES[name] for name in found["datasets"]), "mean"),
        tuple(
            (
                _choice_title(name),
                *(_number(found["cells"][name][one], 1) for one in found["datasets"]),
                _number(found["means"][name], 2),
            )
            for name in order
        ),
        folded=True,
    )
    return [*blocks, Paragraph(on_choices(found)), left_out, cells]


def _method(run: Table) -> list[Block]:
    notes = METHOD_NOTES + tuple(splits_notes(run["grids"]))
    return [Heading("How it was run"), Items(notes)]


def _left_out(run: Table) -> list[Block]:
    texts = [f"{_any_title(name)}: {why}." for name, why in run["missing"].items()]
    texts += [f"{key} failed: {why}." for key, why in run["failures"].items()]
    texts += unfinished(run["unfinished"])
    return [Heading("Left out"), Items(tuple(texts))] if texts else []


def _any_title(name: str) -> str:
    return TITLES[name] if name in TITLES else BY_NAME[name].title


def _choice_title(name: str) -> str:
    return "default" if name == CENTRE else BY_NAME[name].title


def _titles(tables: Table) -> list[str]:
    return [TITLES[name] for name in tables["datasets"]]


def _summary(cell: Table | None, n_splits: int) -> str:
    if cell is None:
        return "-"
    text = f"{cell['mean']:.1f}"
    text += f"±{cell['interval']:.1f}" if cell["interval"] is not None else ""
    return text if cell["n"] == n_splits else f"{text} ({cell['n']})"


def _tested(cell: Table | None) -> str:
    if cell is None:
        return "-"
    return _signed(cell["difference"]) + (f" ({_p(cell['p'])})" if cell["p"] is not None else "")


def _starred(cell: Table | None) -> str:
    if cell is None:
        return "-"
    star = cell["p"] is not None and cell["p"] < SIGNIFICANT
    return _signed(_minus(cell["difference"])) + "*" * star


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def _signed(value: float | None) -> str:
    # Adding zero turns a rounded -0.0 into 0.0.
    return "-" if value is None else f"{round(value, 1) + 0.0:+.1f}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _p(value: float) -> str:
    return p_text(value).removeprefix("p ").removeprefix("= ").replace(" ", "")


def _record(record: Sequence[int]) -> str:
    return " - ".join(map(str, record))


def _mean_cost(costs: Sequence[Table]) -> Table | None:
    if not costs:
        return None
    return {name: sum(cost[name] for cost in costs) / len(costs) for name in costs[0]}


def _seconds(cost: Table | None) -> str:
    if cost is None:
        return "-"
    return f"{_short(cost['fit'])} + {_short(cost['predict'])}"


def _short(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 100 else f"{seconds:.{1 if seconds >= 10 else 2}f}"


def _count(cost: Table | None) -> str:
    return "-" if cost is None else f"{round(cost['numbers']):,}"


def _ratio(costs: Table, base: Table) -> str:
    shared = [name for name in costs if costs[name] and base[name]]
    if not shared:
        return "-"
    own, other = (sum(c[n]["fit"] + c[n]["predict"] for n in shared) for c in (costs, base))
    return f"{own / other:.1f}x" if other > 0 else "-"
