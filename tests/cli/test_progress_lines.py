"""Commands without a terminal: lines for logs, where the work takes long."""

import re

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from slts.execution import progress
from tests.execution.test_progress import Clock


@pytest.mark.parametrize("command", ["fit", "evaluate", "certify"])
def test_phases_are_told(command, problem, model, tmp_path, run, monkeypatch):
    monkeypatch.setattr(progress, "time", Clock(40.0))
    train, test = problem[".csv"]
    arguments = [command, model, test]
    if command == "fit":
        arguments = ["fit", train, "--model", tmp_path / "m.slts", "--method", "slts"]
    code, output, messages = run(*arguments)
    assert code == 0
    assert re.search(r"^Aligning.*: 100%, (\d+ min )?\d+ s$", messages, re.MULTILINE)
    assert re.search(r"^Aligning.*: 100%, done in (\d+ min )?\d+ s$", messages, re.MULTILINE)
    assert "done in" not in output
    assert "Aligning" not in run(*arguments, "--quiet")[2]


def test_predictions_are_counted(problem, model, run, monkeypatch):
    monkeypatch.setattr(progress, "time", Clock(20.0))
    code, output, messages = run("predict", model, problem[".csv"][1], "--batch-size", 10)
    assert code == 0
    # A look at the clock at the start, one for each of three batches, one at the end.
    assert [line for line in messages.splitlines() if line.startswith("Predicting")] == [
        "Predicting: 20 series, 100%, 40 s",
        "Predicting: 30 series, 100%, done in 1 min 20 s",
    ]
    assert "Predicting" not in output
    assert run("predict", model, problem[".csv"][1], "--quiet")[2] == ""
