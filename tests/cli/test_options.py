"""How commands read series: columns, labels, time grids, missing values, standard input."""

import io
import json
import re

import numpy as np
import pytest

import slts
from slts.cli import options as command_options
from slts.execution import progress
from tests.cli.conftest import CLASSES, draw
from tests.execution.test_progress import Clock
from tests.tables.forms import csv_text, long_table

COLUMNS = "columns: id=recording, time=t, label=label, channels=c1..c3"


@pytest.fixture
def give_stdin(monkeypatch):
    def give(text):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


def test_the_columns_are_printed_once(problem, model, tmp_path, run):
    train, test = problem[".csv"]
    fit = ["fit", train, "--model", tmp_path / "m.slts", "--method", "1nn"]
    assert run(*fit)[2] == f"{COLUMNS}\n"
    for command in ("predict", "evaluate", "certify", "explain"):
        assert run.ok(command, model, test)[1] == f"{COLUMNS}\n"


@pytest.mark.slow
@pytest.mark.parametrize("form", [".ts", ".parquet", "folder"])
def test_from_data_to_predictions_and_back(form, problem, tmp_path, run):
    train, test = problem[form]
    path, out = tmp_path / "m.slts", tmp_path / "p.jsonl"
    output, _ = run.ok("fit", train, "--model", path, "--method", "slts", "--test", test)
    assert "trained on 45 series (3 channels, 3 classes)" in output
    assert "test: accuracy 100.0% (30 of 30; 95% interval 88.4% to 100.0%)" in output
    run.ok("predict", path, test, "--out", out)
    assert len(out.read_text().splitlines()) == 30
    assert run.json("evaluate", path, test)["accuracy"] == 1.0
    run.ok("certify", path, test)
    run.ok("explain", path, test)


@pytest.mark.parametrize(("command", "text"), [("predict", "Predi.*"), ("evaluate", "alig.*")])
def test_progress_is_shown_on_standard_error(command, text, problem, model, run, monkeypatch):
    arguments = [command, model, problem[".csv"][1]]
    expected = run.ok(*arguments)[0]
    monkeypatch.setattr(progress, "time", Clock(40.0))
    output, messages = run.ok(*arguments)
    assert output == expected
    assert re.search(rf"{text}: 100%, done in \d+", messages)
    assert run.ok(*arguments, "--quiet") == (expected, "")


def test_large_data_give_the_same_model_and_scores(problem, tmp_path, run, monkeypatch):
    """Small data are read into memory, and large ones in batches."""
    train, test = problem[".parquet"]
    models, scores = [tmp_path / "small.slts", tmp_path / "large.slts"], []
    for path, limit in zip(models, (command_options.SMALL_BYTES, 0), strict=True):
        monkeypatch.setattr(command_options, "SMALL_BYTES", limit)
        run.ok("fit", train, "--model", path, "--method", "local", "--param", "n_snippets=100")
        scores.append(run.json("evaluate", path, test))
    assert scores[0] == scores[1]
    assert run.ok("predict", models[0], test)[0] == run.ok("predict", models[1], test)[0]


@pytest.mark.filterwarnings("default")
def test_channels_are_matched_by_name(problem, model, tmp_path, run):
    X, y, ids = draw(30, 1)
    shuffled = long_table(X, y, ids).select(["c3", "recording", "c1", "t", "label", "c2"])
    path = tmp_path / "data.csv"
    path.write_text(csv_text(shuffled))
    expected = run.json("evaluate", model, problem[".csv"][1])
    assert run.json("evaluate", model, path)["confusion"] == expected["confusion"]
    path.write_text(csv_text(shuffled.rename_columns(["z", "recording", "x", "t", "label", "y"])))
    assert "no column 'c1'" in run.error("evaluate", model, path)
    output, messages = run.ok("evaluate", model, path, "--channels", "x,y,z", "--json")
    assert "the channels of X are used in the given order" in messages
    assert json.loads(output)["confusion"] == expected["confusion"]


@pytest.mark.parametrize("command", ["evaluate", "certify", "report"])
def test_the_label_column_need_not_be_named_again(command, tmp_path, run):
    """The labels are numbers, and so is another column that is constant in every series."""
    paths = [tmp_path / "train.csv", tmp_path / "test.csv"]
    for path, count, seed in zip(paths, (45, 30), (0, 1), strict=True):
        X, y, ids = draw(count, seed)
        table = long_table(X, np.searchsorted(CLASSES, y), ids)
        table = table.append_column("fold", [np.repeat(np.arange(count) % 2, X.lengths)])
        path.write_text(csv_text(table))
    (train, test), model = paths, tmp_path / "m.slts"
    columns = ("--label", "label", "--channels", "c1..c3")
    run.ok("fit", train, "--model", model, "--method", "slts", *columns)
    out = ["--out", tmp_path / "r.html"] if command == "report" else []
    messages = run.ok(command, model, test, *out)[1]
    assert "label=label, channels=c1..c3, not used: fold" in messages


def test_the_model_keeps_its_time_grid(problem, tmp_path, run):
    train, test = problem[".csv"]
    model = tmp_path / "m.slts"
    fit = ["fit", train, "--model", model, "--method", "bbs", "--param", "n_landmarks=9"]
    assert "every" in run.error(*fit, "--every", "20ms")
    run.ok(*fit, "--every", "2", "--test-size", "0.3")
    assert slts.load(model).every_ == "2"
    output, messages = run.ok("predict", model, test)
    assert "time=t (every 2)" in messages
    assert output == run("predict", model, test, "--every", "2.0")[1]
    assert "time=t (every 2)" in run("evaluate", model, test)[2]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_another_time_grid_is_warned_about(command, problem, tmp_path, run):
    train, test = problem[".csv"]
    model = tmp_path / "m.slts"
    run.ok("fit", train, "--model", model, "--method", "1nn", "--every", "2")
    _, messages = run.ok(command, model, test, "--every", "1")
    assert messages.count("Warning: ") == 1
    assert "every='2'" in messages


def gappy(path, *, cell=""):
    """Write a CSV of 12 series: c2 is missing in one step in four, `cell` in the fourth series."""
    X, y, ids = draw(12, 5)
    rows = [line.split(",") for line in csv_text(long_table(X, y, ids)).splitlines()]
    position = [name.strip('"') for name in rows[0]].index("c2")
    for row in rows[1::4]:
        row[position] = ""
    rows[1 + int(X.offsets[3])][position] = cell
    path.write_text("\n".join(",".join(row) for row in rows))
    return sum(row[position] == "" for row in rows), X.n_steps


@pytest.mark.parametrize("source", ["file", "stdin"])
@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "report"])
def test_missing_values_are_counted_once(command, source, model, tmp_path, run, give_stdin):
    path = tmp_path / "data.csv"
    n_missing, n_steps = gappy(path)
    give_stdin(path.read_text())
    data = path if source == "file" else "-"
    arguments = [model, data]
    if command == "fit":
        arguments = [data, "--model", tmp_path / "m.slts", "--method", "bbs"]
    if command == "report":
        arguments += ["--out", tmp_path / "r.html"]
    _, messages = run.ok(command, *arguments)
    message = f"missing values in {n_steps} steps: {n_missing} ({n_missing / n_steps:.1%}) in c2\n"
    assert messages.count("missing values") == 1
    assert message in messages


def test_missing_values_of_large_data_are_of_the_first_series(model, tmp_path, run, monkeypatch):
    monkeypatch.setattr(command_options, "SMALL_BYTES", 0)
    n_missing, _ = gappy(tmp_path / "data.csv")
    _, messages = run.ok("evaluate", model, tmp_path / "data.csv")
    assert f"of the first series: {n_missing} (" in messages


def test_notes_of_readers_are_printed_once(tmp_path, run):
    path = tmp_path / "train.csv"
    table = long_table(*draw(40, 0)).sort_by([("recording", "ascending"), ("t", "descending")])
    path.write_text(csv_text(table))
    fit = ["fit", path, "--model", tmp_path / "m.slts", "--method", "1nn", "--test-size", "0.5"]
    assert run.ok(*fit)[1].count("steps were sorted by 't'") == 1


@pytest.mark.parametrize("cell", ["inf", "oops"])
def test_a_bad_cell_is_an_error(cell, model, tmp_path, run):
    gappy(tmp_path / "data.csv", cell=cell)
    message = run.error("predict", model, tmp_path / "data.csv")
    assert "data.csv" in message
    assert "c2" in message


def test_standard_input_is_predicted(model, run, give_stdin):
    X, y, ids = draw(30, 1)
    give_stdin(csv_text(long_table(X, y, ids, label=False)))
    output, messages = run.ok("predict", model, "-")
    assert [line.split(",")[1] for line in output.splitlines()[1:]] == y.tolist()
    assert messages == "columns: id=recording, time=t, channels=c1..c3\n"


def test_standard_input_is_evaluated(problem, model, run, give_stdin):
    test = problem[".csv"][1]
    expected = run.json("evaluate", model, test)
    give_stdin(test.read_text())
    result = run.json("evaluate", model, "-")
    assert result == expected | {"data": result["data"]}


def test_mistakes_get_a_message(problem, model, tmp_path, run):
    train, test = problem[".csv"]
    X, y, ids = draw(30, 1)
    names = ("unlabelled.csv", "odd.csv", "narrow.npz", "plain.npz", "fresh.slts")
    unlabelled, odd, narrow, plain, fresh = (tmp_path / name for name in names)
    unlabelled.write_text(csv_text(long_table(X, y, ids, label=False)))
    odd.write_text(csv_text(long_table(X, np.where(y == "mid", "odd", y), ids)))
    np.savez(narrow, X=np.ones((2, 2, 5)), y=["high", "low"])
    np.savez(plain, values=X.values, offsets=X.offsets)
    for arguments, message in (
        (["predict", tmp_path / "no.slts", test], "no.slts"),
        (["predict", test, model], "data.csv"),
        (["predict", model, tmp_path / "no.csv"], "no.csv: there is no such file"),
        (["predict", model, narrow], "2 channels"),
        (["evaluate", model, narrow], "2 channels"),
        (["evaluate", model, test, "--channels", "c1,c2"], "--channels"),
        (["evaluate", model, test, "--label", "lable"], "'label'"),
        (["evaluate", model, unlabelled], "--label"),
        (["certify", model, unlabelled], "--label"),
        (["evaluate", model, plain], "--label"),
        (["evaluate", model, odd], "'odd', first for r002"),
        (["fit", unlabelled, "--model", fresh], "--label"),
        (["fit", unlabelled, "--model", fresh, "--test-size", "0.3"], "--label"),
        (["fit", train, "--model", fresh, "--test", tmp_path / "no.csv"], "no.csv"),
        (["fit", train, "--model", fresh, "--test-size", "0.3", "--memory-limit", "1kB"], "1 kB"),
    ):
        assert message in run.error(*arguments), arguments
    assert not fresh.exists()


def test_test_data_without_a_channel_are_an_error_before_training(problem, tmp_path, run):
    train, test = problem[".csv"]
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(test.read_text().replace("c2", "other"))
    model = tmp_path / "m.slts"
    assert "'c2'" in run.error("fit", train, "--model", model, "--test", renamed)
    assert not model.exists()
