"""`slts demo` and `slts report`."""

import re

import pytest

import slts
from slts.cli import demo

pytestmark = pytest.mark.slow


@pytest.fixture
def few_recordings(monkeypatch):
    """Every fourth recording. The accuracy on all is tested with the estimators."""
    pytest.importorskip("aeon")
    load = slts.datasets.load
    monkeypatch.setattr(demo.datasets, "load", lambda *which: [part[::4] for part in load(*which)])


def test_the_demo_compares_with_the_paper_and_saves_the_model(few_recordings, tmp_path, run):
    out = tmp_path / "demo"
    result = run.json("demo", "--out", out)
    rows = {row["method"]: row for row in result["methods"]}
    assert list(rows) == ["1NN", "BBS", "SLTS", "local"]
    assert min(row["accuracy"] for row in rows.values()) > 0.8
    assert (rows["1NN"]["landmarks"], rows["SLTS"]["paper"]) == (68, 97.1)
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")[:200].lower()
    X_test, y_test = demo.datasets.load("japanese_vowels", "test")
    assert slts.load(out / "model.slts").score(X_test, y_test) == rows["local"]["accuracy"]


def test_the_demo_prints_a_table_and_the_paths(few_recordings, tmp_path, run, monkeypatch):
    classifiers = {name: slts.OneNNClassifier() for name in ("1NN", "BBS")}
    monkeypatch.setattr(demo, "_classifiers", lambda seed: classifiers)
    out = tmp_path / "demo"
    assert run("demo", "--out", out, "--quiet") == (0, "", "")
    header, *rows, line, model, page = run.ok("demo", "--out", out)[0].splitlines()
    assert header.split("\t") == ["method", "accuracy %", "paper %", "series kept", "seconds"]
    cells = [row.split("\t") for row in rows]
    assert [(row[0], row[2]) for row in cells] == [("1NN", "93.8"), ("BBS", "97.1")]
    assert re.fullmatch(r"BBS: accuracy .* \(\d+ of 93; .*\); SLTS in the paper: 97\.1%", line)
    assert (model, page) == (f"model:  {out / 'model.slts'}", f"report: {out / 'report.html'}")


def test_the_demo_needs_a_folder(tmp_path, run):
    file = tmp_path / "file"
    file.touch()
    assert "is not a folder" in run.error("demo", "--out", file)


def test_a_report_with_and_without_data(problem, model, tmp_path, run):
    test, out = problem[".csv"][1], tmp_path / "report.html"
    assert run.ok("report", model, "--out", out)[0] == f"report: {out}\n"
    for options, title in (([], "data.csv"), (["--title", "Moods\udcff"], "Moods?")):
        # The second report replaces the first.
        written = run.json("report", model, test, "--out", out, *options)
        assert written == {"report": str(out), "bytes": out.stat().st_size}
        page = out.read_text(encoding="utf-8")
        assert f"<h1>{title}</h1>" in page
        assert '"id":"r00' in page


def test_a_report_on_series_without_labels_says_so(problem, model, tmp_path, run):
    pd = pytest.importorskip("pandas")
    data = tmp_path / "unlabelled.csv"
    pd.read_csv(problem[".csv"][1]).drop(columns="label").to_csv(data, index=False)
    _, messages = run.ok("report", model, data, "--out", tmp_path / "r.html")
    assert f"{data} has no labels" in messages
