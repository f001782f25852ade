import dataclasses

import pytest

from slts.study.blocks import Grid, Heading, Items, Paragraph, Picture
from slts.study.document import build
from slts.study.markdown import to_markdown
from slts.study.page import to_page
from slts.study.paper import METHODS, ROBOT_TASKS, TABLE_1, Published
from slts.study.remarks import remark_on
from slts.study.statistics import Summary
from slts.study.tables import collect, compare
from tests.study import synthetic

TINY = dataclasses.replace(synthetic.TINY, n_splits=3)

RUN = {
    "version": "1",
    "date": "2020-01-01",
    "protocol": "tiny",
    "digest": "0",
    "n_splits": 3,
    "units": 1,
    "cpu_minutes": 0.1,
    "machine": "none",
    "wall": "1 unit in 0.1 minutes with 1 process",
    "command": "slts <reproduce>",
    "notes": ["note"],
    "missing": {"auslan": "not here"},
    "failures": {},
}
LEVELS = dict(zip(METHODS, (90.0, 95.0, 92.0, 94.0, 96.0), strict=True))


def made_up_results():
    """1NN once on divided sets, the others in three splits; robot tasks ten points lower."""
    results = {}
    for name in TABLE_1:
        divided = name in ("japanese_vowels", "arabic_digits")
        for method in METHODS:
            for split in range(1 if method == "1nn" and divided else 3):
                level = LEVELS[method] + split - 10.0 * (name in ROBOT_TASKS)
                score = {"method": method, "dataset": name, "split": split, "accuracy": level}
                score.update(n_train=40, n_test=20)
                if method in ("bbs", "slts"):
                    few = {**score, "landmarks": 2, "selection": "random"}
                    few["accuracy"] = level - (20.0 if method == "bbs" else 1.0 + split)
                    score.update(landmarks=10, selection="random")
                    results[f"{name}/{method}/{split}/few"] = {"scores": [few]}
                results[f"{name}/{method}/{split}"] = {"scores": [score]}
                if not divided:
                    lower = {**score, "accuracy": score["accuracy"] - 5.0}
                    results[f"{name}/{method}/{split}/aside"] = {"aside": [lower]}
    return results


@pytest.fixture(scope="module")
def tables():
    return collect(made_up_results(), TINY)


def cells(tables, method):
    return next(row["cells"] for row in tables["table2"] if row["method"] == method)


def test_table_2_has_the_most_landmarks_and_the_mean_over_splits(tables):
    slts = cells(tables, "slts")
    assert slts["auslan"]["mean"] == pytest.approx(97.0)
    assert slts["auslan"]["interval"] == pytest.approx(2.484, abs=1e-3)
    assert slts["auslan"]["paper"] == 91.1
    assert slts["auslan"]["difference"] == pytest.approx(5.9)
    assert slts["robot"]["mean"] == pytest.approx(87.0)


def test_a_method_without_chance_has_no_interval(tables):
    assert cells(tables, "1nn")["japanese_vowels"]["interval"] is None


def test_the_average_is_weighted_by_test_series(tables):
    expected = (97.0 * (370 + 202 + 2200) + 87.0 * 139) / 2911
    assert cells(tables, "slts")["average"]["mean"] == pytest.approx(expected)


def test_only_differences_beyond_both_intervals_are_marked():
    assert compare(Summary(97.0, 0.2, 10), Published(96.0, 0.5))["differs"]
    assert not compare(Summary(97.0, 1.2, 10), Published(96.0, 0.5))["differs"]
    assert not compare(Summary(97.0, 0.2, 10), Published(96.0, 1.5))["differs"]
    assert not compare(Summary(93.78, None, 1), Published(93.8))["differs"]
    assert compare(None, Published(1.0)) is None


def test_claims_are_tested(tables):
    found = {row["claim"]: row for row in tables["tests"]}
    assert found["SLTS is above BBS on the average"]["holds"]
    assert found["SLTS is above 1NN on Auslan"]["p"] == 0.0
    assert not found["SLTS is below LDMLT on Auslan"]["holds"]
    for amount in ("few", "fewest"):
        few = found[f"SLTS is above BBS on Japanese vowels, {amount} landmarks"]
        assert few["holds"]
        assert few["landmarks"] == [2]
        assert few["difference"] == pytest.approx(20.0)


def test_the_tuning_part_kept_aside_is_a_table_of_its_own(tables):
    assert cells(tables, "slts")["auslan"]["mean"] == pytest.approx(97.0)
    aside = next(row["cells"] for row in tables["table2_aside"] if row["method"] == "slts")
    assert aside["auslan"]["mean"] == pytest.approx(92.0)
    assert aside["robot"]["mean"] == pytest.approx(82.0)
    assert set(aside) == {"auslan", "robot"}


def test_figure_2_pairs_the_methods(tables):
    points = tables["figure2"]["robot_lp3"]
    assert [point["landmarks"] for point in points] == [2, 10]
    assert points[1]["difference"] == pytest.approx(2.0)


def test_incomplete_columns_stay_empty():
    results = made_up_results()
    for method in METHODS:
        for key in [key for key in results if key.startswith(f"robot_lp3/{method}")]:
            del results[key]
    slts = cells(collect(results, TINY), "slts")
    assert slts["robot"] is None
    assert slts["average"] is None
    assert slts["auslan"] is not None


def test_nothing_gives_nothing():
    blocks = build(collect({}, TINY), RUN, [])
    assert not [block for block in blocks if isinstance(block, Grid | Picture)]


def test_report_shows_ours_the_papers_and_the_difference(tables):
    text = to_markdown(build(tables, RUN, ["figure2"]))
    assert "| SLTS | 97.0±2.5 (97.1±0.4; -0.1) |" in text
    assert "95.0±2.5 (91.1±1.6; +3.9\\*)" in text
    assert "Table 2, BBS, Auslan: 95.0±2.5 here, 91.1±1.6 in the paper (+3.9)." in text
    assert "Auslan: not here." in text
    assert "figure2.png" in text
    assert "figure2.png" not in to_markdown(build(tables, RUN, ["figure2"]), pictures=False)


def test_cells_with_the_same_remark_share_a_paragraph(tables):
    cell = compare(Summary(90.0, 1.0, 10), Published(60.0, 2.0))
    row = {"share": 0.03, "landmarks": 2, "cells": {"dselect": cell, "random": cell}}
    blocks = build({**tables, "table4": [row]}, RUN, [])
    lists = [block for block in blocks if isinstance(block, Items)]
    shared = next(b for b in lists if b.texts[0].startswith("Table 4"))
    assert [text.split(":")[0] for text in shared.texts] == [
        "Table 4, DSelect at 3%",
        "Table 4, Random at 3%",
    ]
    assert blocks[blocks.index(shared) + 1] == Paragraph(remark_on("table4", "random", ""))


def test_a_quick_look_is_not_explained(tables):
    text = to_markdown(build(tables, {**RUN, "protocol": "fast"}, []))
    assert "Table 2, BBS, Auslan: 95.0±2.5 here, 91.1±1.6 in the paper (+3.9).\n" in text
    assert remark_on("table2", "bbs", "auslan") not in text


def test_the_text_counts_what_the_tables_show(tables):
    text = to_markdown(build(tables, RUN, []))
    # SLTS is two points ahead with the most landmarks, far ahead with the fewest.
    assert "SLTS is ahead of BBS in 16 of 16 points of Figure 2, significantly in 16" in text
    assert "BBS is significantly ahead in none" in text
    marked = sum(c["differs"] for row in tables["table2"] for c in row["cells"].values())
    assert f"Of 25 figures {25 - marked} agree with the paper" in text
    assert "fewest landmarks (2)\N{NO-BREAK SPACE}†" in text


def test_a_difference_of_nothing_has_no_sign(tables):
    text = to_markdown(build(tables, RUN, []))
    assert "-0.0" not in text
    assert "+0.0" not in text


def test_page_escapes_and_marks(tables):
    page = to_page(build(tables, RUN, ["figure2"]))
    assert "slts &lt;reproduce&gt;" in page
    assert 'class="mark">95.0±2.5 <small>(91.1±1.6; +3.9*)</small>' in page
    assert '<img src="figure2.svg"' in page
    assert page.count("<table>") == page.count("</table>") == 5
    assert page.count("<details>") == page.count("</details>") == 1
    assert to_page([Heading("A", 1), Paragraph("b & c")]).count("b &amp; c") == 1
