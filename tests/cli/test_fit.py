"""What `slts fit` measures and prints: groups, folds, accuracy without test data, JSON."""

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")

import pyarrow as pa

import slts
from slts.cli import fit as fit_command
from slts.cli.data import open_scan, read_labels, split
from slts.cli.options import CommonOptions
from slts.guarantees.bounds import accuracy_interval, group_accuracy_interval
from tests.cli.conftest import draw
from tests.tables.forms import csv_text, long_table

FEW = ("--method", "bbs", "--param", "n_landmarks=15", "--param", "calibration_cv=2")


def write(path, count=48, seed=0, n_people=12, labels=None):
    """Series of some people, four of each by default."""
    X, y, ids = draw(count, seed)
    y = y if labels is None else np.asarray(labels)
    people = np.array([f"p{i:02d}" for i in np.arange(count) * n_people // count])
    table = long_table(X, y, ids)
    table = table.rename_columns([n.replace("speaker", "label") for n in table.column_names])
    column = pa.array(people[np.repeat(np.arange(count), X.lengths)])
    path.write_text(csv_text(table.append_column("subject", column)))
    return path, people


def groups_of_splits(data, cv):
    """Groups of the two sides of every split."""
    scan = open_scan(str(data), CommonOptions(quiet=True), groups="subject")
    return [[set(read_labels(side).groups) for side in pair] for pair in split(scan, 0, cv, "--cv")]


def test_groups_are_held_out_as_a_whole(tmp_path, run):
    data, people = write(tmp_path / "data.csv")
    arguments = ["fit", data, "--model", tmp_path / "m.slts", *FEW, "--groups", "subject"]
    output, messages = run.ok(*arguments, "--test-size", "0.25")
    ((rest, held_out),) = groups_of_splits(data, 0.25)
    assert not rest & held_out
    assert rest | held_out == set(people)
    assert len(held_out) == 3
    assert "groups=subject, channels=c1..c3" in messages
    assert "trained on 36 series" in output
    assert (
        "(12 of 12); mean over 3 groups 100.0% (95% interval for a new group 29.2% to 100" in output
    )
    found = run.json(*arguments, "--test-size", "0.25")["held_out"]
    assert (found["n"], found["n_groups"], found["group_accuracy"]) == (12, 3, 1.0)
    assert found["interval"] == list(group_accuracy_interval(1.0, 3))


def test_held_out_series_certify_the_model(tmp_path, run):
    """Later commands do not leave out the training series of the same file."""
    data, _ = write(tmp_path / "data.csv")
    test, _ = write(tmp_path / "test.csv", seed=1)
    arguments = ["fit", data, "--model", tmp_path / "m.slts", *FEW]
    for how in (["--test-size", "0.25"], ["--test", test]):
        output = run(*arguments, *how)[1]
        measured, _ = run.ok(*arguments, *how, "--json")
        certificate = json.loads(measured)["certificate"]
        assert certificate["bounds"][0]["sentence"] in output
        assert "With confidence 95%, " in output
        assert certificate["n"] == json.loads(measured)["held_out"]["n"]
    # The same bound as that of another command.
    sentence = certificate["bounds"][0]["sentence"]
    assert sentence in run("evaluate", tmp_path / "m.slts", test)[1]
    for how in (["--cv", "3"], ["--test", data], []):
        assert json.loads(run(*arguments, *how, "--json")[1])["certificate"] is None


def test_test_data_with_groups_of_the_training_data_are_an_error(tmp_path, run):
    train, _ = write(tmp_path / "train.csv")
    test, _ = write(tmp_path / "test.csv", seed=1)
    model = tmp_path / "m.slts"
    arguments = ["fit", train, "--model", model, *FEW, "--test", test]
    messages = run.error(*arguments, "--groups", "subject")
    assert "both have series of group 'p00' and 11 more groups. Accuracy on new groups" in messages
    assert not model.exists()
    run.ok(*arguments)
    test.write_text(test.read_text().replace("p0", "q0").replace("p1", "q1"))
    assert "mean over 12 groups" in run(*arguments, "--groups", "subject")[1]


def test_cross_validation_predicts_every_series_once(tmp_path, run):
    data, people = write(tmp_path / "data.csv")
    path = tmp_path / "m.slts"
    arguments = ["fit", data, "--model", path, *FEW, "--cv", "4"]
    output, _ = run.ok(*arguments, "--groups", "subject")
    # The model that is saved learns from all series.
    assert "trained on 48 series" in output
    assert slts.load(path).n_series_in_ == 48
    assert "cross-validation, 4 folds: accuracy" in output
    assert "mean over 12 groups" in output
    folds = groups_of_splits(data, 4)
    assert all(not rest & fold for rest, fold in folds)
    assert sorted(g for _, fold in folds for g in fold) == sorted(set(people))
    found = run.json(*arguments)
    assert (found["n_folds"], found["held_out"]["n"]) == (4, 48)


def test_folds_that_would_miss_a_class_are_fewer(tmp_path, run):
    labels = np.repeat(["a", "b", "c"], [30, 16, 2])
    data, _ = write(tmp_path / "data.csv", labels=labels)
    arguments = ["fit", data, "--model", tmp_path / "m.slts", "--method", "1nn"]
    output, messages = run.ok(*arguments, "--cv", "5")
    assert "--cv 5: only 2 folds, because a class has 2 series" in messages
    assert "cross-validation, 2 folds" in output
    data, _ = write(data, n_people=3)
    _, messages = run.ok(*arguments, "--cv", "5", "--groups", "subject")
    assert "--cv 5: only 3 folds, because only 3 groups can be held out" in messages


@pytest.mark.parametrize(
    ("method", "text", "kind"),
    [
        ("1nn", "leave-one-out: accuracy", "leave-one-out"),
        ("slts", "on training series that were held out: accuracy", "held-out"),
    ],
)
def test_without_test_data_the_accuracy_of_the_fit_is_printed(method, text, kind, tmp_path, run):
    data, _ = write(tmp_path / "data.csv")
    path = tmp_path / "m.slts"
    output, _ = run.ok("fit", data, "--model", path, "--method", method)
    assert text in output
    assert "95% interval" in output
    found = run.json("fit", data, "--model", path, "--method", method)["validation"]
    stored = slts.load(path).validation_
    assert (found["kind"], found["n"], found["accuracy"]) == (
        kind, stored.n_series, pytest.approx(stored.accuracy),
    )  # fmt: skip
    assert found["interval"] == list(accuracy_interval(found["right"], found["n"]))


def test_a_leave_one_out_below_chance_is_explained(tmp_path, run, monkeypatch):
    """Labels without information and balanced classes can give 0%."""
    data, _ = write(tmp_path / "data.csv")
    arguments = "fit", data, "--model", tmp_path / "m.slts", "--method", "1nn"
    output, _ = run.ok(*arguments)
    assert "no better than guessing" not in output
    useless = {"kind": "leave-one-out", "n": 60, "right": 0, "accuracy": 0.0, "interval": [0, 0.06]}
    monkeypatch.setattr(fit_command, "validation_accuracy", lambda _: useless)
    output, _ = run.ok(*arguments)
    assert "leave-one-out: accuracy 0.0%" in output
    assert "no better than guessing" in output


def test_groups_of_the_search_give_its_interval(tmp_path, run):
    data, _ = write(tmp_path / "data.csv")
    arguments = ["fit", data, "--model", tmp_path / "m.slts", "--method", "bbs-cv"]
    found = run.json(*arguments, "--groups", "subject")["validation"]
    assert (found["n_groups"], found["n"]) == (4, 16)
    assert found["interval"] == list(group_accuracy_interval(found["group_accuracy"], 4))


def test_groups_that_would_not_be_used_are_a_wrong_command_line(tmp_path, run):
    data, _ = write(tmp_path / "data.csv")
    for method in ("local", "1nn"):
        arguments = ["fit", data, "--model", tmp_path / "m.slts", "--method", method]
        messages = run.error(*arguments, "--groups", "subject", code=2)
        assert "does not hold out groups" in messages
        assert "--cv 5" in messages
    messages = run.error(*arguments, "--cv", "3", "--test-size", "0.3", code=2)
    assert "give --test-size or --cv, not both" in messages


@pytest.mark.parametrize("how", [("--test-size", "0.3"), ("--cv", "3")])
def test_the_only_series_of_a_class_is_not_held_out(how, tmp_path, run):
    labels = ["odd", *np.repeat(["a", "b"], [24, 23])]
    data, _ = write(tmp_path / "data.csv", labels=labels)
    path = tmp_path / "m.slts"
    arguments = ["fit", data, "--model", path, "--method", "1nn", *how]
    _, messages = run.ok(*arguments)
    assert "class 'odd' has one series: it is not held out" in messages
    assert slts.load(path).classes_.tolist() == ["a", "b", "odd"]
    _, messages = run.ok(*arguments, "--groups", "subject")
    assert "class 'odd' has one group: it is not tested" in messages


def test_without_two_series_of_a_class_nothing_can_be_held_out(tmp_path, run):
    data, _ = write(tmp_path / "data.csv", count=3, n_people=3)
    messages = run.error("fit", data, "--model", tmp_path / "m.slts", "--test-size", "0.3")
    assert "No class has two distinct series, but --test-size needs one to learn from" in messages


def test_quiet_prints_nothing_where_a_file_is_written(tmp_path, run):
    data, _ = write(tmp_path / "data.csv")
    path, page, out = tmp_path / "m.slts", tmp_path / "r.html", tmp_path / "p.csv"
    for arguments in (
        ["fit", data, "--model", path, *FEW, "--test-size", "0.3"],
        ["predict", path, data, "--out", out],
        ["report", path, "--out", page],
    ):
        assert run(*arguments, "--quiet") == (0, "", "")
    # What was asked for on standard output is printed.
    assert run("predict", path, data, "--quiet")[1].startswith("id,prediction")
    assert run("evaluate", path, data, "--quiet")[1].startswith("accuracy")
    output, messages = run.ok("fit", data, "--model", path, *FEW, "--quiet", "--json")
    assert messages == ""
    assert json.loads(output)["n_series"] == 48


def test_new_groups_are_evaluated_and_certified(tmp_path, run):
    data, _ = write(tmp_path / "data.csv")
    new, people = write(tmp_path / "new.csv", seed=1, n_people=6)
    path = tmp_path / "m.slts"
    run.ok("fit", data, "--model", path, *FEW, "--quiet")
    certificate = run.json("certify", path, new, "--groups", "subject")
    X, y, _ = draw(48, 1)
    expected = slts.certify(slts.load(path), X, y, groups=people).to_dict()
    assert {k: v for k, v in certificate.items() if k != "data"} == expected
    assert expected["independent"] == "6 groups (48 series)"
    found = run.json("evaluate", path, new, "--groups", "subject")
    assert found["certificate"] == expected
    assert found["interval"] == list(group_accuracy_interval(found["group_accuracy"], 6))
    output, _ = run.ok("evaluate", path, new, "--groups", "subject")
    assert "mean over 6 groups" in output
    page = tmp_path / "r.html"
    run.ok("report", path, new, "--groups", "subject", "--out", page)
    assert "for the mean of a new group, from 6 groups" in page.read_text()
    messages = run.error(
        "certify", path, data, "--groups", "subject", "--sample", "training", code=2
    )
    assert "needs --sample holdout" in messages
