import json

import pytest

pytest.importorskip("typer")
pytest.importorskip("aeon")


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


def test_the_demo_needs_a_folder(tmp_path, run):
    file = tmp_path / "file"
    file.touch()
    code, _, messages = run("demo", "--out", file)
    assert code == 1
    assert "is not a folder" in messages


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
