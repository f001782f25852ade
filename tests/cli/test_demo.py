import json
import re

import pytest

pytest.importorskip("typer")
pytest.importorskip("aeon")

from slts.execution import progress


def test_the_demo_ends_with_a_model_and_a_report(tmp_path, run):
    out = tmp_path / "demo"
    code, output, messages = run("demo", "--out", out, "--json")
    assert code == 0, messages
    found = json.loads(output)
    rows = {row["method"]: row for row in found["methods"]}
    assert rows["1NN"]["accuracy"] == pytest.approx(0.938, abs=0.001)
    assert rows["SLTS"]["accuracy"] > 0.96
    assert rows["SLTS"]["paper"] == 97.1
    assert (out / "model.slts").exists()
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")[:200].lower()
    code, output, _ = run("evaluate", out / "model.slts", "japanese_vowels:test", "--json")
    assert json.loads(output)["accuracy"] == found["methods"][-1]["accuracy"]


def test_the_demo_tells_the_accuracy_beside_the_papers_and_the_path_last(tmp_path, run):
    out = tmp_path / "demo"
    code, output, messages = run("demo", "--out", out, "--quiet")
    assert (code, messages) == (0, "")
    header, *rows, line, model, page = output.splitlines()
    assert header.split("\t") == ["method", "accuracy %", "paper %", "series kept", "seconds"]
    assert [row.split("\t")[0] for row in rows] == ["1NN", "BBS", "SLTS", "local"]
    assert rows[0].startswith("1NN\t93.8\t93.8\t270\t")
    assert re.fullmatch(
        r"local: accuracy 9[789]\.\d% \(\d+ of 370; 95% interval [\d.]+% to [\d.]+%\); "
        r"the paper's SLTS has 97\.1%",
        line,
    )
    assert model == f"model:  {out / 'model.slts'}"
    assert page == f"report: {(out / 'report.html').resolve()}"


def test_the_demo_needs_a_folder(tmp_path, run):
    file = tmp_path / "file"
    file.touch()
    code, _, messages = run("demo", "--out", file)
    assert code == 1
    assert "is not a folder" in messages


def test_bars_are_drawn_at_a_terminal(problem, model, tmp_path, run, monkeypatch):
    _, test = problem[".csv"]
    out = tmp_path / "report.html"
    commands = {
        "Aligning": (["evaluate", model, test], ["certify", model, test]),
        "Explaining": (["report", model, "--data", test, "--out", out],),
    }
    for bar, several in commands.items():
        for arguments in several:
            assert bar not in run(*arguments)[2]
    monkeypatch.setattr(progress, "_somebody_watches", lambda: True)
    for bar, several in commands.items():
        for arguments in several:
            assert bar in run(*arguments)[2], arguments


def test_a_report_with_and_without_data(problem, model, tmp_path, run):
    _, test = problem[".csv"]
    out = tmp_path / "report.html"
    code, output, _ = run("report", model, "--out", out)
    assert (code, output) == (0, f"{out}\n")
    code, output, messages = run(
        "report", model, "--data", test, "--out", out, "--title", "Three moods", "--json"
    )  # fmt: skip
    assert code == 0, messages
    assert json.loads(output) == {"report": str(out), "bytes": out.stat().st_size}
    page = out.read_text(encoding="utf-8")
    assert "Three moods" in page
    assert "r004" in page
