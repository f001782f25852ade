"""Both studies from plan to files, on small data."""

import dataclasses
import json
import re
import shutil

import pytest

pytest.importorskip("matplotlib")

from study.__main__ import STUDIES, run_study
from study.protocol import parse_only
from study.work import Worker
from tests.study import synthetic
from tests.study.synthetic import TINY

pytestmark = pytest.mark.slow

# What of each study is run.
ONLY = {
    "reproduce": "japanese_vowels,auslan,robot_lp1,robot_lp2",
    "accuracy": "japanese_vowels,robot_lp1,gun_point,cues,pool,local,slts,no-snippets,"
    "slts-homogeneous,choices",
}
GRIDS = {
    "reproduce": {"table1", "table2", "table3", "table4", "table4_heldout", "figure2", "tests"},
    "accuracy": {
        *("accuracy", "tests", "wins", "seconds", "numbers", "ablations", "options"),
        *("accuracy-univariate", "tests-univariate", "ablations-univariate", "cues"),
        *("pool", "accuracy-pool"),
    },
}
FIGURES = {"reproduce": {"figure1", "figure2", "figure3"}, "accuracy": {"accuracy-ranks"}}


@dataclasses.dataclass
class Limited:
    """A worker that is interrupted after some units, and remembers what it did."""

    limit: int
    done: list = dataclasses.field(default_factory=list)

    def __call__(self, unit):
        if len(self.done) >= self.limit:
            raise KeyboardInterrupt
        self.done.append(unit.key)
        return Worker(TINY, synthetic.load)(unit)


def run(name, out, only="", **options):
    study = STUDIES[name]
    selection = parse_only(only or ONLY[name], study.words, study.datasets(TINY))
    options = {"protocol": TINY, "loader": synthetic.load, **options}
    return run_study(study, out, selection=selection, **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Folders and reports of both studies."""
    found = {}
    for name in STUDIES:
        out = tmp_path_factory.mktemp(name)
        found[name] = out, run(name, out, markdown=out / "docs" / "document.md")
    return found


@pytest.mark.parametrize("name", STUDIES)
def test_everything_is_written(name, finished):
    out, found = finished[name]
    assert (found.outcome.failures, found.run["unfinished"]) == ({}, [])
    names = {path.name for path in out.iterdir()}
    assert {f"{grid}.csv" for grid in GRIDS[name]} <= names
    assert {f"{f}.{suffix}" for f in FIGURES[name] for suffix in ("png", "svg")} <= names
    assert {"report.md", "tables.json", "run.json", "scores.csv"} <= names
    assert not [one for one in names if one.endswith(".part")]
    beside = {path.name for path in (out / "docs").iterdir()} - {"document.md"}
    assert beside == {f"{f}.{'png' if name == 'accuracy' else 'svg'}" for f in FIGURES[name]}
    document = (out / "docs" / "document.md").read_text()
    assert set(re.findall(r"^!\[.+\]\((.+)\)$", document, re.MULTILINE)) == beside
    tables = {key: table for key, table in found.tables.items() if key != "costs"}
    assert json.loads((out / "tables.json").read_text()) == json.loads(json.dumps(tables))
    header, *lines = (out / "scores.csv").read_text().splitlines()
    assert header.startswith("dataset,method,split,accuracy")
    assert len(lines) == sum(len(r.get("scores", ())) for r in found.outcome.results.values())


def test_the_paper_study_is_complete(finished):
    out, found = finished["reproduce"]
    tables = found.tables
    methods = {row["method"] for row in tables["table2"]}
    assert methods == {"1nn", "ldmlt", "svm", "bbs", "slts"}
    slts = tables["table2"][-1]["cells"]
    assert slts["auslan"]["n"] == 2
    assert slts["robot"] is None
    assert tables["figure3"]["identity"]["n"] == 2
    assert [row["landmarks"] for row in tables["table3"]] == [2, 12]
    for part in ("table4", "table4_heldout"):
        assert all(cell["n"] == 2 for row in tables[part] for cell in row["cells"].values())
    heldout = {row["method"]: row["cells"]["auslan"] for row in tables["table2_heldout"]}
    assert set(heldout) == methods
    assert all(cell["n"] == 2 for cell in heldout.values())
    # 42 series: 13 for testing, 9 for tuning, 20 for training.
    assert [row["landmarks"] for row in tables["table4_heldout"]] == [2, 10]
    assert "LP2: not here." in (out / "report.md").read_text()


def test_the_comparison_is_complete(finished):
    _, found = finished["accuracy"]
    assert found.tables["datasets"] == ["japanese_vowels", "robot_lp1"]
    local = found.tables["accuracy"][0]
    assert [cell["n"] for cell in local["cells"].values()] == [2, 2]
    assert all(cost["numbers"] > 0 for cost in found.tables["costs"]["local"].values())
    assert len(found.tables["choices"]["left_out"]) == 2
    single = found.tables["univariate"]
    assert single["datasets"] == ["gun_point"]
    assert [row["method"] for row in single["accuracy"]] == ["local", "slts", "no-snippets"]
    cues = found.tables["cues"]
    assert (len(cues["rows"]), cues["methods"]) == (9, ["local", "slts"])
    assert cues["rows"][0]["cells"]["10"]["local"]["n"] == 1
    scored = next(iter(found.outcome.results["model/robot_lp1/0/local"]["scores"]))
    assert 0.0 <= scored["ece"] <= 1.0
    assert {"log_loss", "brier"} <= scored.keys()


@pytest.mark.parametrize(("name", "only", "figure"), [
    ("reproduce", "auslan,robot_lp1,figure2", "figure2.svg"),
    ("accuracy", "robot_lp1,local,slts", "accuracy-ranks.svg"),
])  # fmt: skip
def test_an_interrupted_run_ends_with_the_same_tables(name, only, figure, finished, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "out"
    whole.mkdir()
    shutil.copy(finished[name][0] / "results.jsonl", whole)
    total = run(name, whole, only, only_write=True).run["planned"]
    first, second = Limited(total // 2), Limited(total)
    with pytest.raises(KeyboardInterrupt):
        run(name, out, only, work=first)
    half = run(name, out, only, only_write=True)
    assert len(half.run["unfinished"]) == total - total // 2
    assert "Not finished" in (out / "report.md").read_text()
    again = run(name, out, only, work=second)
    assert not set(first.done) & set(second.done)
    assert len(again.outcome.results) == total
    for file in ("tables.json", figure):
        assert (out / file).read_bytes() == (whole / file).read_bytes()


@pytest.mark.parametrize("name", STUDIES)
def test_a_finished_run_is_only_written_again(name, finished):
    out, found = finished[name]
    again = run(name, out, work=Limited(0))
    assert (again.tables, again.outcome.n_reused) == (found.tables, found.run["planned"])
    assert f"{found.run['planned']} units in" in again.run["wall"]


def test_some_parts_and_fewer_splits_use_what_there_is(finished):
    out, found = finished["reproduce"]
    some = run("reproduce", out, "robot_lp1,table4", work=Limited(0))
    assert [name for name, table in some.tables.items() if table] == ["table4", "table4_heldout"]
    protocol = dataclasses.replace(TINY, n_splits=1)
    fewer = run("reproduce", out, "auslan,figure2", protocol=protocol, work=Limited(0))
    assert fewer.tables["figure2"]["auslan"][0]["slts"]["n"] == 1
    assert found.tables["figure2"]["auslan"][0]["slts"]["n"] == 2
