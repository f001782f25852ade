"""The commands `demo` and `report`, and progress bars in a terminal."""

import re

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

import slts
from slts.cli import demo
from slts.execution import progress

pytestmark = pytest.mark.slow


@pytest.fixture
def some_data(monkeypatch):
    """Every fourth recording. The accuracy on all is tested with the estimators."""
    pytest.importorskip("aeon")
    load = demo._load
    monkeypatch.setattr(demo, "_load", lambda split: tuple(part[::4] for part in load(split)))


def test_the_demo_compares_with_the_paper_and_saves_the_model(
    some_data, tmp_path, run, monkeypatch
):
    reports = []
    monkeypatch.setattr(demo, "write_report", lambda *args, **options: reports.append(args))
    out = tmp_path / "demo"
    rows = {row["method"]: row for row in run.json("demo", "--out", out)["methods"]}
    assert list(rows) == ["1NN", "BBS", "SLTS", "local"]
    assert min(row["accuracy"] for row in rows.values()) > 0.8
    assert rows["1NN"]["landmarks"] == 68
    assert rows["SLTS"]["paper"] == 97.1
    assert reports[0][1] == out / "report.html"
    X_test, y_test = demo._load("test")
    assert slts.load(out / "model.slts").score(X_test, y_test) == rows["local"]["accuracy"]


def test_the_demo_prints_a_table_and_the_path_of_the_report_last(
    some_data, tmp_path, run, monkeypatch
):
    classifiers = {name: slts.OneNNClassifier() for name in ("1NN", "BBS")}
    monkeypatch.setattr(demo, "_classifiers", lambda seed: classifiers)
    out = tmp_path / "demo"
    assert run("demo", "--out", out, "--quiet") == (0, "", "")
    output, _ = run.ok("demo", "--out", out)
    header, *rows, line, model, page = output.splitlines()
    assert header.split("\t") == ["method", "accuracy %", "paper %", "series kept", "seconds"]
    cells = [row.split("\t") for row in rows]
    assert [(row[0], row[2]) for row in cells] == [("1NN", "93.8"), ("BBS", "97.1")]
    assert re.fullmatch(
        r"BBS: accuracy \d+\.\d% \(\d+ of 93; 95% interval [\d.]+% to [\d.]+%\); "
        r"SLTS in the paper: 97\.1%",
        line,
    )
    assert model == f"model:  {out / 'model.slts'}"
    report = (out / "report.html").resolve()
    assert page == f"report: {report}"
    assert "<html" in report.read_text(encoding="utf-8")[:200].lower()


def test_the_demo_needs_a_folder(tmp_path, run):
    file = tmp_path / "file"
    file.touch()
    messages = run.error("demo", "--out", file)
    assert "is not a folder" in messages


def test_bars_are_drawn_in_a_terminal(problem, model, tmp_path, run, monkeypatch):
    _, test = problem[".csv"]
    commands = {
        "evaluate": ["evaluate", model, test],
        "certify": ["certify", model, test],
        "report": ["report", model, test, "--out", tmp_path / "report.html"],
    }
    for watched in (False, True):
        monkeypatch.setattr(progress, "_is_interactive", lambda watched=watched: watched)
        for name, arguments in commands.items():
            bar = "explaining" if name == "report" else "aligning"
            assert (bar in run(*arguments)[2].lower()) == watched, name


def test_a_report_with_and_without_data(problem, model, tmp_path, run):
    _, test = problem[".csv"]
    out = tmp_path / "report.html"
    code, output, _ = run("report", model, "--out", out)
    assert (code, output) == (0, f"report: {out}\n")
    # The second report replaces the first.
    written = run.json("report", model, test, "--out", out, "--title", "Moods")
    assert written == {"report": str(out), "bytes": out.stat().st_size}
    page = out.read_text(encoding="utf-8")
    assert "Moods" in page
    assert "r004" in page
