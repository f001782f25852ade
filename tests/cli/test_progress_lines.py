"""Progress of long commands without a terminal: lines for logs."""

import re

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from slts.execution import progress
from tests.execution.test_progress import Clock


@pytest.mark.parametrize("command", ["fit", "evaluate", "certify"])
def test_phases_are_printed(command, problem, model, tmp_path, run, monkeypatch):
    monkeypatch.setattr(progress, "time", Clock(40.0))
    train, test = problem[".csv"]
    arguments = [command, model, test]
    if command == "fit":
        arguments = ["fit", train, "--model", tmp_path / "m.slts", "--method", "slts"]
    output, messages = run.ok(*arguments)
    line = r"^.*aligning.*: 100%, {}(\d+ min )?\d+ s$"
    for words in ("", "done in "):
        assert re.search(line.format(words), messages, re.MULTILINE | re.IGNORECASE)
    assert "done in" not in output
    assert run(*arguments, "--quiet")[2] == ""


def test_predictions_are_counted(problem, model, run, monkeypatch):
    monkeypatch.setattr(progress, "time", Clock(20.0))
    output, messages = run.ok("predict", model, problem[".csv"][1], "--batch-size", 10)
    # The clock is read at the start, after each of three batches, and at the end.
    assert [line for line in messages.splitlines() if line.startswith("Predicting")] == [
        "Predicting: 20 series, 100%, 40 s",
        "Predicting: 30 series, 100%, done in 1 min 20 s",
    ]
    assert "Predicting" not in output
    assert run("predict", model, problem[".csv"][1], "--quiet")[2] == ""
