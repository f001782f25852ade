import dataclasses

import pytest

from study.markdown import Grid, Picture, to_markdown
from study.paper import PAPER_METHODS, ROBOT_TASKS, TABLE_1, Published
from study.paper_document import build
from study.paper_tables import collect, compare
from study.protocol import PRESPLIT, REPRODUCTION_WORDS, parse_only
from study.sentences import remark_on
from study.statistics import Summary
from tests.study import synthetic

TINY = dataclasses.replace(synthetic.TINY, n_splits=3)
EVERYTHING = parse_only(None, REPRODUCTION_WORDS)

RUN = {
    "version": "1", "date": "2020-01-01", "protocol": "tiny", "digest": "0", "n_splits": 3,
    "units": 1, "planned": 2, "cpu_minutes": 0.1, "machine": "none",
    "wall": "1 units in 0.1 minutes with 1 process", "command": "python -m study reproduce",
    "missing": {"auslan": "not here"}, "failures": {"pca/auslan/0": "ValueError: wrong"},
    "unfinished": ["landmarks/auslan/7/5", "landmarks/auslan/8/5"],
}  # fmt: skip
LEVELS = dict(zip(PAPER_METHODS, (90.0, 95.0, 92.0, 94.0, 96.0), strict=True))


def made_up_results():
    """1NN once on published splits, the others on three splits; robot tasks ten points lower."""
    scores = []
    for name in TABLE_1:
        for method in PAPER_METHODS:
            for split in range(1 if method == "1nn" and name in PRESPLIT else 3):
                level = LEVELS[method] + split - 10.0 * (name in ROBOT_TASKS)
                score = {"method": method, "dataset": name, "split": split, "accuracy": level}
                score |= {"n_train": 40, "n_test": 20, "heldout": False}
                if method in ("bbs", "slts"):
                    few = {**score, "landmarks": 2, "selection": "random"}
                    few["accuracy"] = level - (20.0 if method == "bbs" else 1.0 + split)
                    score |= {"landmarks": 10, "selection": "random"}
                    scores.append(few)
                scores.append(score)
                if name not in PRESPLIT:
                    scores.append({**score, "accuracy": score["accuracy"] - 5.0, "heldout": True})
    return {str(k): {"scores": [score]} for k, score in enumerate(scores)}


@pytest.fixture(scope="module")
def tables():
    return collect(made_up_results(), TINY, EVERYTHING)


def cells(tables, method, table="table2"):
    return next(row["cells"] for row in tables[table] if row["method"] == method)


def test_cells_are_means_over_splits_with_the_most_landmarks(tables):
    slts, literal = cells(tables, "slts"), cells(tables, "slts", "table2_heldout")
    auslan = slts["auslan"]
    assert (auslan["paper"], auslan["mean"]) == (91.1, pytest.approx(97.0))
    assert auslan["interval"] == pytest.approx(2.484, abs=1e-3)
    assert auslan["difference"] == pytest.approx(5.9)
    assert slts["robot"]["mean"] == pytest.approx(87.0)
    # The average is weighted by test series.
    expected = (97.0 * (370 + 202 + 2200) + 87.0 * 139) / 2911
    assert slts["average"]["mean"] == pytest.approx(expected)
    means = {name: cell["mean"] for name, cell in literal.items()}
    assert means == pytest.approx({"auslan": 92.0, "robot": 82.0})
    assert cells(tables, "1nn")["japanese_vowels"]["interval"] is None
    points = tables["figure2"]["robot_lp3"]
    assert [point["landmarks"] for point in points] == [2, 10]
    assert points[1]["difference"] == pytest.approx(2.0)


@pytest.mark.parametrize(("ours", "paper", "differs"), [
    ((97.0, 0.2, 10), (96.0, 0.5), True), ((97.0, 1.2, 10), (96.0, 0.5), False),
    ((97.0, 0.2, 10), (96.0, 1.5), False), ((93.78, None, 1), (93.8,), False),
])  # fmt: skip
def test_only_differences_beyond_both_intervals_are_marked(ours, paper, differs):
    assert compare(Summary(*ours), Published(*paper))["differs"] == differs
    assert compare(None, Published(*paper)) is None


def test_claims_are_tested(tables):
    found = {row["claim"]: row for row in tables["tests"]}
    assert found["SLTS is above BBS on average"]["holds"]
    assert found["SLTS is above 1NN on Auslan"]["p"] == 0.0
    assert not found["SLTS is below LDMLT on Auslan"]["holds"]
    for amount in ("few", "fewest"):
        few = found[f"SLTS is above BBS on Japanese vowels, {amount} landmarks"]
        assert few["holds"]
        assert (few["landmarks"], few["difference"]) == ([2], pytest.approx(20.0))


def test_incomplete_columns_stay_empty():
    results = made_up_results().items()
    results = {k: found for k, found in results if found["scores"][0]["dataset"] != "robot_lp3"}
    slts = cells(collect(results, TINY, EVERYTHING), "slts")
    assert slts["robot"] is None
    assert slts["average"] is None
    assert slts["auslan"] is not None


def test_tables_without_results_or_selection_are_empty():
    selection = parse_only("figure2", REPRODUCTION_WORDS)
    found = collect(made_up_results(), TINY, selection)
    assert [name for name, table in found.items() if table] == ["figure2"]
    blocks = build(collect({}, TINY, EVERYTHING), RUN, [])
    assert not [block for block in blocks if isinstance(block, Grid | Picture)]


def test_cells_with_the_same_remark_share_a_paragraph(tables):
    cell = compare(Summary(90.0, 1.0, 10), Published(60.0, 2.0))
    row = {"share": 0.03, "landmarks": 2, "cells": {"dselect": cell, "random": cell}}
    row["cells"]["kmedoids"] = None
    blocks = build({**tables, "table4": [row]}, RUN, [])
    shared = next(b for b in blocks if isinstance(b, str) and b.startswith("- Table 4"))
    named = [text.split(":")[0] for text in shared.splitlines()]
    assert named == ["- Table 4, DSelect at 3%", "- Table 4, Random at 3%"]
    assert blocks[blocks.index(shared) + 1] == remark_on("table4", "random", "")


@pytest.mark.parametrize("text", [
    "| SLTS | 97.0±2.5 (97.1±0.4; -0.1) |", "95.0±2.5 (91.1±1.6; +3.9\\*)",
    "Table 2, BBS, Auslan: 95.0±2.5 here, 91.1±1.6 in the paper (+3.9).", "figure2.png",
    "- Auslan: not here.", "- pca/auslan/0 failed: ValueError: wrong.",
    "- Not finished, 2 units: landmarks/auslan/5 (2).",
    "SLTS is better than BBS in 16 of 16 points of Figure 2, significantly in 16",
    "BBS is significantly better in none", "fewest landmarks (2)\N{NO-BREAK SPACE}†",
])  # fmt: skip
def test_the_document_says_what_the_tables_show_and_what_is_missing(text, tables):
    assert text in to_markdown(build(tables, RUN, ["figure2"]))


def test_the_document_has_no_other_signs_pictures_and_remarks(tables):
    text = to_markdown(build(tables, RUN, ["figure2"]), pictures="svg")
    assert "(figure2.svg)" in text
    assert "figure1" not in text
    assert "-0.0" not in text
    assert "+0.0 " not in text
    remark = remark_on("table2", "bbs", "auslan")
    assert remark in text
    assert remark not in to_markdown(build(tables, {**RUN, "protocol": "fast"}, []))
    marked = sum(c["differs"] for row in tables["table2"] for c in row["cells"].values())
    assert f"{25 - marked} of 25 values agree with the paper" in text
