"""What the report says besides its tables; sentences about results follow from the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from slts.bench.methods import BY_NAME, CENTRE
from slts.bench.ranking import TIE
from slts.study.paper import COLUMNS, ROBOT_TASKS, TABLE_2, TITLES
from slts.study.statistics import SIGNIFICANT

Table = dict[str, Any]

CONVENTIONS = (
    "Percentages; ± is the half width of the 95% Student interval over the splits, in brackets "
    "their number where it is another than that of the protocol. Mean rank: among the methods of "
    "this table, on the sets where all have results."
)
HOW_CHOSEN = (
    "The ingredients (scalings, the constant channel, local metrics, several views) were found in "
    "exploratory runs that did look at test parts of these data sets. Which of them the default "
    "has, and its numbers, were then chosen by cross-validation inside training parts alone: those "
    "of Japanese Vowels, of LP1-5 (two divisions of their own, so that some of their series are "
    "test series here), and six small sets that come with public packages (BasicMotions, "
    "ItalyPowerDemand, GunPoint, ArrowHead and PickupGestureWiimoteZ of aeon, the watch data of "
    "seglearn). Auslan and Arabic digits had no part in it. Three lenses by two objectives under "
    "one penalty were steadier than any single one of them; a metric for each class with 10 "
    "landmarks of it lost nothing against all training series as landmarks; landmark-side rank 8 "
    "lost nothing against full rank; phases hurt some small sets, so they have to earn their place "
    "by two standard errors of leave-one-out."
)
METHOD_NOTES = (
    "Auslan (the paper's 25 classes) and LP1-5 are divided at random, 70/30, all classes in "
    "proportion; the same divisions for all methods, and those of `slts reproduce`. Japanese "
    "vowels and Arabic digits come divided: there the splits are seeds, and a method without "
    "chance runs once; in tests its figure stands for every split.",
    "LocalSLTS: `LocalSLTSClassifier()`. SLTS: `SLTSClassifierCV()`. MiniRocket and MultiRocket: "
    "aeon's classifiers with their defaults, series filled up with zeros to the longest one. "
    "1NN-DTW: aeon's `KNeighborsTimeSeriesClassifier`, k = 1, full window, raw values, ragged "
    "series as they are.",
    "Every model runs in one thread. Times are processor seconds, for units run side by side; "
    "peers are warmed up on a tiny problem in the same process, so that compilation is left out, "
    "and data are brought into the form a method takes before the clock starts.",
    "Numbers stored. LocalSLTS: metrics with their bases, intercepts, landmarks. SLTS: landmarks, "
    "metrics, weights. Rockets: parameters of the kernels, scales, coefficients. 1NN-DTW: training "
    "series.",
    "Tests over splits are optimistic: random training parts overlap, and a given test part is the "
    "same for all seeds. The test over the data sets is the one to go by. No p is corrected for "
    "the number of comparisons.",
    "Variants of a method share its seeds, so that landmarks are the same.",
    "LP2 and LP3 are the same 47 series under different labels, and have 14 test series: one more "
    "right or wrong is 7 points there.",
)


def in_short(tables: Table) -> list[str]:
    """The result in a few sentences."""
    means = {
        row["method"]: row["mean"]
        for row in tables["accuracy"]
        if row["group"] == "main" and row["mean"] is not None
    }
    if CENTRE not in means:
        return []
    texts = []
    if len(means) > 1:
        order = sorted(means, key=lambda name: -means[name])
        listed = ", ".join(f"{BY_NAME[name].title} {means[name]:.2f}" for name in order)
        texts.append(f"Mean over {len(tables['datasets'])} data sets: {listed}.")
    for row in tables["tests"]:
        if BY_NAME[row["method"]].group == "main" and row["n_datasets"] > 1:
            won, tied, lost = row["record"]
            texts.append(
                f"{BY_NAME[CENTRE].title} against {BY_NAME[row['method']].title}: ahead on {won}, "
                f"equal on {tied}, behind on {lost} of {row['n_datasets']} sets; "
                f"{row['difference']:+.2f} points on average, signed-rank test "
                f"{p_text(row['p'])}."
            )
    return texts + _against_paper(tables)


def _against_paper(tables: Table) -> list[str]:
    """The paper's best row, column by column."""
    centre = next(row for row in tables["accuracy"] if row["method"] == CENTRE)
    texts = []
    for column in COLUMNS:
        names = ROBOT_TASKS if column == "robot" else (column,)
        cells = [centre["cells"].get(name) for name in names]
        found = [cell["mean"] for cell in cells if cell]
        if len(found) == len(names):
            best = max(TABLE_2[method][column].mean for method in TABLE_2)
            texts.append(f"{TITLES[column]} {sum(found) / len(found):.1f} ({best:.1f})")
    if not texts:
        return []
    return [
        f"{BY_NAME[CENTRE].title}, in brackets the best of the paper's Table 2: {', '.join(texts)}."
    ]


def losses(tables: Table) -> list[str]:
    """Sets on which another method of the main table is ahead."""
    texts = []
    for row in tables["tests"]:
        if BY_NAME[row["method"]].group != "main":
            continue
        behind = [
            (name, cell)
            for name, cell in row["cells"].items()
            if cell and cell["difference"] < -TIE
        ]
        if behind:
            listed = ", ".join(f"{TITLES[name]} {_loss(cell)}" for name, cell in behind)
            texts.append(f"To {BY_NAME[row['method']].title}: {listed}.")
    return texts


def _loss(cell: Table) -> str:
    lost = -cell["difference"]
    text = f"by {lost:.{1 if lost >= 0.1 else 2}f}"
    if cell["p"] is None:
        return f"{text} (one split)"
    return f"{text} ({p_text(cell['p'])}{', significant' if cell['p'] < SIGNIFICANT else ''})"


def p_text(p: float) -> str:
    """A probability for people.

    Examples
    --------
    >>> from slts.bench.wording import p_text
    >>> p_text(0.0201), p_text(1e-9)
    ('p = 0.020', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def on_choices(found: Table) -> str:
    """What the check of the choices comes to."""
    rows = found["left_out"]
    same = sum(row["choice"] == CENTRE for row in rows)
    behind = max(row["behind"] for row in rows)
    counts = Counter(
        BY_NAME[row["choice"]].title for row in rows if row["choice"] != CENTRE
    ).most_common()
    others = ", ".join(f"{title} ({count})" for title, count in counts)
    text = f"The shipped default is the choice in {same} of {len(rows)} cases"
    text += f"; else it is {others}" if others else ""
    clear = [row for row in rows if row["error"] is not None and row["behind"] > 2 * row["error"]]
    return (
        f"{text}. The default is at most {behind:.2f} points behind the best mean, by more than "
        f"two standard errors in {len(clear)} of {len(rows)} cases."
    )


def splits_notes(grids: Mapping[str, Any]) -> list[str]:
    """Where fewer splits are run, and what choices are checked on."""
    texts = [f"{grids['n_splits']} splits."]
    fewer: dict[str, list[str]] = {}
    for dataset, which, count in grids["fewer_splits"]:
        title = BY_NAME[which].title if which in BY_NAME else _GROUP_WORDS[which]
        fewer.setdefault(TITLES[dataset], []).append(f"{title} {min(count, grids['n_splits'])}")
    for dataset, counts in fewer.items():
        texts.append(f"Fewer where a split costs much: on {dataset} {', '.join(counts)}.")
    if grids["most_train"] is not None:
        texts.append(
            f"At most {grids['most_train']} training series: to see that everything runs. The "
            f"figures say little about the methods."
        )
    texts.append(
        f"Choices: {grids['choice_repeats']} x {grids['choice_folds']} folds inside the training "
        f"part of the first split, of at most {grids['choice_series']} series."
    )
    return texts


_GROUP_WORDS = {"main": "other methods", "ablation": "ablations", "option": "options of SLTS"}


def unfinished(keys: Sequence[str]) -> list[str]:
    """Units that were not done, counted by method and data set."""
    counts = Counter("/".join(key.split("/")[:2]) for key in keys)
    if not counts:
        return []
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
    return [
        f"Not finished, {len(keys)} units: {listed}. The same command with the same folder goes on "
        f"where it stopped."
    ]
