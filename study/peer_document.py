"""The document about the comparison with other methods."""

from __future__ import annotations

from collections.abc import Sequence

from study import sentences
from study.cues import CUES
from study.figures import RANKS
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
from study.methods import BY_NAME, CENTRE, GROUPS
from study.paper import ROBOT_TASKS
from study.pool_document import section
from study.protocol import DATASET_TITLES
from study.statistics import PROBABILITY_SCORES, SIGNIFICANT

_CENTRE_TITLE = BY_NAME[CENTRE].title


def build(tables: Table, run: Table, figures: Sequence[str]) -> list[Element]:
    """Build the document.

    Parameters
    ----------
    tables
        The tables of `study.peer_tables.collect`.
    run
        Facts about the run.
    figures
        Names of the figures that were drawn.
    """
    elements = opening("Accuracy", run, f"aeon {run['aeon']}")
    summary = sentences.in_short(tables)
    elements += [bullets(summary)] if summary else []
    elements += _accuracy(tables, run, figures)
    elements += _tests(tables)
    elements += _univariate(tables["univariate"], run)
    elements += section(tables, run, figures)
    elements += _cues(tables["cues"], run)
    elements += _probabilities(tables)
    elements += _costs(tables)
    elements += _variants(tables)
    elements += _choices(tables["choices"])
    if tables["datasets"]:
        notes = [*sentences.METHOD_NOTES, *sentences.splits_notes(run["grids"])]
        elements += ["## How it was run", bullets(notes)]
    missing = sentences.not_computed(run)
    return [*elements, "## Left out", bullets(missing)] if missing else elements


def _accuracy(tables: Table, run: Table, figures: Sequence[str]) -> list[Element]:
    grid = _accuracies(tables, run, "accuracy", sentences.CONVENTIONS)
    if grid is None:
        return []
    elements: list[Element] = [f"## Accuracy on {len(tables['datasets'])} data sets", grid]
    if RANKS in figures:
        elements += [Picture(RANKS, "Mean ranks over the data sets"), sentences.RANKS]
    elements.append(f"## Where {_CENTRE_TITLE} is worse")
    return [*elements, _losses(tables)]


def _univariate(tables: Table, run: Table) -> list[Element]:
    """The same for data sets with one channel."""
    caption = "Percentages, as above. The splits are seeds."
    grid = _accuracies(tables, run, "accuracy-univariate", caption)
    if grid is None:
        return []
    elements: list[Element] = [f"## One channel: {len(tables['datasets'])} data sets"]
    summary = sentences.in_short(tables)
    elements += [bullets(summary)] if summary else []
    tests = _tested_grid(tables, "tests-univariate")
    elements += [grid, *([tests] if tests is not None else [])]
    return [*elements, f"Where {_CENTRE_TITLE} is worse:", _losses(tables)]


def _cues(found: Table, run: Table) -> list[Element]:
    """Which differences between classes each method finds."""
    if not found:
        return []
    columns = [(size, name) for size in found["sizes"] for name in found["methods"]]
    rows = tuple(
        (
            CUES[row["cue"]].title,
            CUES[row["cue"]].difference,
            *(_mean_of(row["cells"][str(size)].get(name)) for size, name in columns),
        )
        for row in found["rows"]
    )
    header = (
        "cue", "classes differ in", *(f"{BY_NAME[name].title}, {size}" for size, name in columns)
    )  # fmt: skip
    grids = run["grids"]
    caption = sentences.CUES.format(
        seeds=min(grids["cue_seeds"], grids["n_splits"]), n_test=grids["cue_test"]
    )
    summary = sentences.on_cues(found)
    elements: list[Element] = ["## Which cue", Grid("cues", caption, header, rows)]
    return [*elements, bullets(summary)] if summary else elements


def _mean_of(cell: Table | None) -> str:
    return number(None if cell is None else cell["mean"])


def _accuracies(tables: Table, run: Table, name: str, caption: str) -> Grid | None:
    """Accuracies of the main methods with their mean ranks; None if there are none."""
    ranks = tables["ranks"].get("ranks", {})
    rows = tuple(
        (
            BY_NAME[row["method"]].title,
            *(_summary(row["cells"][name], run["n_splits"]) for name in tables["datasets"]),
            number(row["mean"], 2),
            number(ranks.get(row["method"]), 2),
        )
        for row in tables["accuracy"]
        if row["group"] == "main"
    )
    header = ("method", *_titles(tables), "mean", "mean rank")
    return Grid(name, caption, header, rows) if rows else None


def _losses(tables: Table) -> str:
    losses = sentences.losses(tables)
    return bullets(losses) if losses else "Nowhere in this run."


def _tested_grid(tables: Table, name: str) -> Grid | None:
    """The centre against every other main method; None if there is none."""
    rows = tuple(
        (
            BY_NAME[row["method"]].title,
            *(_tested(row["cells"][name]) for name in tables["datasets"]),
            signed(row["difference"]),
            p_value(row["p"]),
        )
        for row in tables["tests"]
        if BY_NAME[row["method"]].group == "main"
    )
    caption = (
        f"{_CENTRE_TITLE} minus the other method, in points. In brackets: p of the paired t-test "
        f"over the splits that both have. Last columns: the mean over the data sets, and p of the "
        f"exact signed-rank test on their differences."
    )
    header = ("against", *_titles(tables), "mean", "p")
    return Grid(name, caption, header, rows) if rows else None


def _tests(tables: Table) -> list[Element]:
    tests = _tested_grid(tables, "tests")
    if tests is None:
        return []
    names = [row["method"] for row in tables["wins"]]
    wins = tuple(
        (
            BY_NAME[row["method"]].title,
            *(" - ".join(map(str, row["records"][n])) if n != row["method"] else "" for n in names),
        )
        for row in tables["wins"]
    )
    caption = (
        "Data sets won - tied - lost by the method of the row against the method of the column."
    )
    header = ("method", *(BY_NAME[name].title for name in names))
    return ["## Tests", tests, Grid("wins", caption, header, wins)]


def _probabilities(tables: Table) -> list[Element]:
    """Scores of the probabilities of the main methods, on all data sets."""
    datasets = [*tables["datasets"], *tables["univariate"]["datasets"]]
    known = {
        method: own
        for method, own in tables["probabilities"].items()
        if BY_NAME[method].group == "main"
    }
    if not known:
        return []
    elements: list[Element] = ["## Probabilities", sentences.PROBABILITIES]
    for score, title in PROBABILITY_SCORES.items():
        rows = tuple(
            (
                BY_NAME[method].title,
                *(number(own[name][score] if name in own else None, 3) for name in datasets),
            )
            for method, own in known.items()
        )
        header = ("method", *(DATASET_TITLES[name] for name in datasets))
        elements.append(
            Grid(score.replace("_", "-"), f"{title} (smaller is better).", header, rows)
        )
    return elements


def _costs(tables: Table) -> list[Element]:
    names = [name for name in tables["datasets"] if name not in ROBOT_TASKS]
    columns = {DATASET_TITLES[name]: [name] for name in names}
    robot = [name for name in tables["datasets"] if name in ROBOT_TASKS]
    if robot:
        columns["LP1-5, each"] = robot
    columns |= {DATASET_TITLES[name]: [name] for name in tables["univariate"]["datasets"]}
    seconds, numbers = [], []
    for method in tables["costs"]:
        own = tables["costs"][method]
        if BY_NAME[method].group == "main":
            means = [_mean([own[n] for n in names if n in own]) for names in columns.values()]
            title = BY_NAME[method].title
            seconds.append((title, *map(_seconds, means)))
            numbers.append((title, *(f"{m['numbers']:,.0f}" if m else "-" for m in means)))
    if not (seconds and columns):
        return []
    caption = "Processor seconds of fit + prediction of the test set, with one thread."
    return [
        "## Time and size",
        Grid("seconds", caption, ("method", *columns), tuple(seconds)),
        Grid(
            "numbers", "Numbers that a fitted model stores.", ("method", *columns), tuple(numbers)
        ),
    ]


def _mean(costs: Sequence[Table]) -> Table:
    """Return the mean of each cost; nothing if there is none."""
    return {name: sum(c[name] for c in costs) / len(costs) for c in costs[:1] for name in c}


def _seconds(cost: Table) -> str:
    def short(seconds: float) -> str:
        return f"{seconds:.{2 if seconds < 10 else 1 if seconds < 100 else 0}f}"

    return f"{short(cost['fit'])} + {short(cost['predict'])}" if cost else "-"


def _variants(tables: Table) -> list[Element]:
    """Ablations of the centre, and options of SLTS."""
    star = f"A star marks p < {SIGNIFICANT} on that data set."
    elements: list[Element] = []
    caption = (
        f"{GROUPS['ablation']}, minus {_CENTRE_TITLE}, in points over shared splits. {star} "
        f"p: signed-rank test over the data sets. Time: fit and predict on all data sets of the "
        f"table, relative to {_CENTRE_TITLE}."
    )
    for name, part in (("ablations", tables), ("ablations-univariate", tables["univariate"])):
        ablations = [row for row in part["tests"] if BY_NAME[row["method"]].group == "ablation"]
        if ablations:
            text = "The same for data sets with one channel." if elements else caption
            elements.append(_against(part, tables["costs"], ablations, name, text))
    elements = ["## Ablations", *elements] if elements else []
    if tables["options"]:
        caption = f"{GROUPS['option']}, minus SLTSClassifierCV with its defaults, in points. {star}"
        options = _against(tables, tables["costs"], tables["options"], "options", caption)
        elements += ["## Options of SLTS", options]
    return elements


def _against(tables: Table, costs: Table, rows: Sequence[Table], name: str, caption: str) -> Grid:
    cells = tuple(
        (
            BY_NAME[row["method"]].title,
            *(_starred(row["cells"][dataset]) for dataset in tables["datasets"]),
            signed(_minus(row["difference"])),
            p_value(row["p"]),
            _relative_time(costs[row["method"]], costs[row["against"]], tables["datasets"]),
        )
        for row in rows
    )
    return Grid(name, caption, ("change", *_titles(tables), "mean", "p", "time"), cells)


def _choices(found: Table) -> list[Element]:
    elements: list[Element] = ["## How the defaults were chosen", sentences.HOW_CHOSEN]
    if not found:
        return elements
    rows = tuple(
        (
            DATASET_TITLES[row["dataset"]],
            _choice_title(row["choice"]),
            number(row["mean"], 2),
            number(row["default"], 2),
            f"{row['behind']:.2f} ± {number(row['error'], 2)}",
            f"{row['rank']} of {row['n_candidates']}",
            signed(row["test"]),
        )
        for row in found["left_out"]
    )
    names = ("left out", "best on the others", "its mean", "default", "behind", "default's rank")
    caption = (
        "For each data set that is left out, the configuration with the best mean over the other "
        "data sets, by cross-validation inside their training sets. The candidates are the default "
        "and its ablations. Behind: how far the default is below this mean, ± the standard error "
        "over the data sets. Test: the gain of the default over this configuration on the test "
        "sets of the data set that was left out."
    )
    left_out = Grid("choices", caption, (*names, "test"), rows)
    every = tuple(
        (
            _choice_title(name),
            *(number(found["cells"][name][dataset]) for dataset in found["datasets"]),
            number(found["means"][name], 2),
        )
        for name in sorted(found["means"], key=lambda name: -found["means"][name])
    )
    caption = "Cross-validated accuracy of every configuration inside the training sets."
    header = ("configuration", *(DATASET_TITLES[name] for name in found["datasets"]), "mean")
    accuracies = Grid("choice-accuracies", caption, header, every)
    return [*elements, sentences.on_choices(found), left_out, accuracies]


def _choice_title(name: str) -> str:
    return "default" if name == CENTRE else BY_NAME[name].title


def _titles(tables: Table) -> list[str]:
    return [DATASET_TITLES[name] for name in tables["datasets"]]


def _summary(cell: Table | None, n_splits: int) -> str:
    if cell is None:
        return "-"
    text = with_interval(cell["mean"], cell["interval"])
    return text if cell["n"] == n_splits else f"{text} ({cell['n']})"


def _tested(cell: Table | None) -> str:
    if cell is None:
        return "-"
    p = "" if cell["p"] is None else f" ({p_value(cell['p'])})"
    return signed(cell["difference"]) + p


def _starred(cell: Table | None) -> str:
    if cell is None:
        return "-"
    star = cell["p"] is not None and cell["p"] < SIGNIFICANT
    return signed(_minus(cell["difference"])) + "*" * star


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def _relative_time(costs: Table, base: Table, datasets: Sequence[str]) -> str:
    shared = costs.keys() & base.keys() & set(datasets)
    own, other = (sum(c[n]["fit"] + c[n]["predict"] for n in shared) for c in (costs, base))
    return f"{own / other:.1f}x" if other > 0 else "-"
