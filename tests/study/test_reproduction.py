import dataclasses
import json

import pytest

from slts.study import reproduce
from slts.study.protocol import plan
from slts.study.sessions import SESSIONS, read_sessions
from slts.study.work import Worker
from tests.study import synthetic
from tests.study.synthetic import HERE, MISSING, TINY

pytest.importorskip("matplotlib")


@dataclasses.dataclass
class Fused:
    """A worker that is interrupted after some units, and remembers what it did."""

    fuse: int
    done: list = dataclasses.field(default_factory=list)

    def __call__(self, unit):
        if len(self.done) >= self.fuse:
            raise KeyboardInterrupt
        self.done.append(unit.key)
        return Worker(TINY, synthetic.load)(unit)


def run(out, **options):
    options = {"protocol": TINY, "loader": synthetic.load, "missing": MISSING, **options}
    return reproduce(out, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    return out, run(out, markdown=out / "docs" / "tables.md")


def test_everything_is_written(whole):
    out, found = whole
    assert found.outcome.failures == {}
    names = {path.name for path in out.iterdir()}
    for stem in ("figure1", "figure2", "figure3"):
        assert {f"{stem}.png", f"{stem}.svg"} <= names
    tables = {f"{name}.csv" for name in ("table1", "table2", "table3", "table4", "tests")}
    assert names >= {"index.html", "report.md", "tables.json", "run.json", "scores.csv"} | tables
    assert all(path.exists() for path in found.files)
    assert not [name for name in names if name.endswith(".new")]
    assert json.loads((out / "tables.json").read_text()) == json.loads(json.dumps(found.tables))
    assert "figure1" not in (out / "docs" / "tables.md").read_text()


def test_scores_are_complete(whole):
    _, found = whole
    methods = {row["method"] for row in found.tables["table2"]}
    assert methods == {"1nn", "ldmlt", "svm", "bbs", "slts"}
    slts = found.tables["table2"][-1]["cells"]
    assert slts["auslan"]["n"] == 2
    assert slts["robot"] is None
    assert found.tables["figure3"]["identity"]["n"] == 2
    assert [row["landmarks"] for row in found.tables["table3"]] == [2, 12]
    for part in ("table4", "table4_aside"):
        assert all(cell["n"] == 2 for row in found.tables[part] for cell in row["cells"].values())
    aside = {row["method"]: row["cells"]["auslan"] for row in found.tables["table2_aside"]}
    assert set(aside) == methods
    assert all(cell["n"] == 2 for cell in aside.values())
    # 42 series: 13 to test on, 9 to tune on, 20 to learn on.
    assert [row["landmarks"] for row in found.tables["table4_aside"]] == [2, 10]
    assert "kept aside" in (whole[0] / "scores.csv").read_text()


def test_the_time_it_took_is_kept(whole):
    out, found = whole
    total = len(plan(TINY, HERE))
    (session,) = read_sessions(out / SESSIONS, "tiny")
    assert session["units"] == total
    assert f"{total} units in" in found.run["wall"]
    assert found.run["wall"] in (out / "report.md").read_text()
    assert read_sessions(out / SESSIONS, "full") == []


def test_an_interrupted_run_ends_with_the_tables_of_an_uninterrupted_one(whole, tmp_path):
    out, found = whole
    total = len(plan(TINY, HERE))
    first = Fused(total // 3)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, work=first)
    second = Fused(total)
    again = run(tmp_path, work=second)
    assert not set(first.done) & set(second.done)
    assert len(first.done) + len(second.done) == total
    assert again.tables == found.tables
    assert (tmp_path / "tables.json").read_bytes() == (out / "tables.json").read_bytes()
    assert (tmp_path / "figure2.svg").read_bytes() == (out / "figure2.svg").read_bytes()


def test_a_finished_run_is_only_written_down_again(whole):
    out, found = whole
    again = run(out, work=Fused(0))
    assert again.tables == found.tables
    assert again.outcome.n_reused == len(plan(TINY, HERE))


def test_only_some_parts(whole):
    out, _ = whole
    found = run(out, parts=("table4",), work=Fused(0))
    assert found.tables["table4"]
    assert not found.tables["table2"]
    assert not found.tables["figure2"]


def test_fewer_splits_use_the_first_ones(whole):
    out, found = whole
    fewer = run(
        out, protocol=dataclasses.replace(TINY, n_splits=1), parts=("figure2",), work=Fused(0)
    )
    assert fewer.tables["figure2"]["auslan"][0]["slts"]["n"] == 1
    assert found.tables["figure2"]["auslan"][0]["slts"]["n"] == 2


def test_without_data_only_the_rest_is_run_and_the_report_says_so(tmp_path):
    missing = {name: "set SLTS_DATA" for name in TINY.datasets if name != "japanese_vowels"}
    found = run(tmp_path, missing=missing, parts=("table1", "figure1", "figure3", "table4"))
    assert [row["dataset"] for row in found.tables["table1"]] == ["japanese_vowels"]
    assert found.tables["table4"] == []
    page = (tmp_path / "index.html").read_text()
    assert "Left out" in page
    assert "LP1: set SLTS_DATA." in page
