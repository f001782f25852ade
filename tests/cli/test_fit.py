"""What `slts fit` trains, holds out, measures and prints."""

import io
import json
import re

import numpy as np
import pyarrow as pa
import pytest

import slts
from slts.cli.fit import CLASSIFIERS, hold_out
from slts.guarantees.bounds import accuracy_interval, group_accuracy_interval
from slts.tables import Dataset, read_series
from tests.cli.conftest import draw
from tests.tables.forms import csv_text, long_table

FEW = ("--method", "bbs", "--param", "n_landmarks=15", "--param", "calibration_cv=2")


def write(path, count=48, seed=0, n_people=12, labels=None, grouped=True):
    """Series of some people, four of each by default."""
    X, y, ids = draw(count, seed)
    y = y if labels is None else np.asarray(labels)
    people = np.array([f"p{i:02d}" for i in np.arange(count) * n_people // count])
    table = long_table(X, y, ids)
    if grouped:
        column = pa.array(people[np.repeat(np.arange(count), X.lengths)])
        table = table.append_column("subject", column)
    path.write_text(csv_text(table))
    return path, people


@pytest.mark.slow
@pytest.mark.parametrize("method", CLASSIFIERS)
def test_every_method_trains(method, problem, tmp_path, run):
    train, test = problem[".parquet"]
    path = tmp_path / "m.slts"
    result = run.json("fit", train, "--model", path, "--test", test, "--method", method)
    model = slts.load(path)
    X, y, _ = draw(30, 1)
    assert result["held_out"]["right"] == np.count_nonzero(model.predict(X) == y)
    assert result["held_out"]["accuracy"] > 0.9
    assert result["classes"] == ["high", "low", "mid"]
    assert result["chosen"].keys() == set(getattr(model, "best_params_", {}))
    assert not model.verbose


def test_parameters_are_literals_or_text(problem, tmp_path, run):
    train, _ = problem[".npz"]
    texts = ["gamma=0.5", "landmarks=kmedoids", "calibration_cv=None", "n_landmarks=9"]
    words = [word for text in texts for word in ("--param", text)]
    path = tmp_path / "m.slts"
    run.ok("fit", train, "--model", path, "--method", "slts", "--random-state", "3", *words)
    parameters = slts.load(path).get_params()
    expected = {"gamma": 0.5, "landmarks": "kmedoids", "calibration_cv": None, "n_landmarks": 9}
    assert parameters | expected | {"random_state": 3} == parameters


def test_names_and_digests_can_be_left_out(problem, tmp_path, run):
    train, _ = problem[".csv"]
    path = tmp_path / "m.slts"
    for options, kept in (([], True), (["--no-identifiers", "--no-digests"], False)):
        run.ok("fit", train, "--model", path, "--method", "slts", *options)
        assert bool(re.findall(rb'"r0\d\d\\?"', path.read_bytes())) == kept
        assert (slts.load(path).training_digests_ is not None) == kept


@pytest.mark.parametrize("form", [".csv", ".parquet", "stdin"])
def test_the_same_series_are_held_out_in_every_form(form, problem, tmp_path, run, monkeypatch):
    """The model is trained on the other series only."""
    data = problem[".csv" if form == "stdin" else form][0]
    if form == "stdin":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data.read_bytes())))
        data = "-"
    path = tmp_path / "m.slts"
    fit = ["fit", data, "--model", path, "--method", "1nn", "--random-state", 7]
    result = run.json(*fit, "--test-size", "0.4")
    X, y, ids = draw(45, 0)
    dataset = Dataset(X, y, ids)[np.random.default_rng(0).permutation(45)]
    kept, left = hold_out(dataset, 0.4, 7)
    model = slts.load(path)
    assert (result["n_series"], result["held_out"]["n"]) == (27, 18)
    assert np.array_equal(np.sort(slts.series.keys.series_digests(kept.series)),
                          model.training_digests_)  # fmt: skip
    right = np.count_nonzero(model.predict(left.series) == left.labels)
    assert result["held_out"]["right"] == right


def test_classes_keep_their_shares(tmp_path):
    labels = np.repeat(["a", "b"], [45, 15])
    data, _ = write(tmp_path / "data.csv", 60, labels=labels, grouped=False)
    rest, held_out = hold_out(read_series(data), 0.2, 0)
    assert np.unique(rest.labels, return_counts=True)[1].tolist() == [36, 12]
    assert np.unique(held_out.labels, return_counts=True)[1].tolist() == [9, 3]


def test_groups_are_held_out_as_a_whole(tmp_path, run):
    data, people = write(tmp_path / "data.csv")
    rest, held_out = hold_out(read_series(data, groups="subject"), 0.25, 0)
    assert set(rest.groups) | set(held_out.groups) == set(people)
    assert not set(rest.groups) & set(held_out.groups)
    fit = ["fit", data, "--model", tmp_path / "m.slts", *FEW, "--groups", "subject"]
    output, messages = run.ok(*fit, "--test-size", "0.25")
    assert "groups=subject, channels=c1..c3" in messages
    assert "trained on 36 series" in output
    assert "(12 of 12); mean over 3 groups 100.0% (95% interval for a new group 29.2%" in output
    result = run.json(*fit, "--test-size", "0.25")["held_out"]
    assert (result["n"], result["n_groups"], result["group_accuracy"]) == (12, 3, 1.0)
    assert result["interval"] == list(group_accuracy_interval(1.0, 3))


def test_large_groups_are_held_out_as_often_as_small_ones():
    """Bounds on the error in a new group need groups that are drawn with equal probability."""
    sizes = np.repeat([1, 12], [14, 6])
    groups = np.repeat(np.arange(20), sizes)
    n = len(groups)
    X = slts.as_series(list(np.random.default_rng(0).normal(size=(n, 1, 3))))
    dataset = Dataset(X, np.arange(n) % 2, groups=groups)
    drawn = [np.unique(hold_out(dataset, 0.25, seed)[1].groups) for seed in range(400)]
    assert {len(held_out) for held_out in drawn} == {5}
    share_of_large = np.mean([np.mean(sizes[held_out] > 1) for held_out in drawn])
    # 400 draws of 5 groups: three standard errors.
    assert share_of_large == pytest.approx(0.3, abs=3 * np.sqrt(0.3 * 0.7 / 2000))


def test_the_bound_for_new_groups_holds_for_groups_of_different_size():
    """Large groups have no errors, and half of the series of small ones are wrong."""
    rng, failures = np.random.default_rng(0), 0
    for seed in range(100):
        sizes = np.where(rng.random(60) < 0.3, 20, 2)
        groups = np.repeat(rng.permutation(60), sizes)
        wrong = (rng.random(len(groups)) < 0.5) & (np.repeat(sizes, sizes) == 2)
        X = slts.as_series(list(rng.normal(size=(len(groups), 1, 2))))
        dataset = Dataset(X, np.arange(len(groups)) % 2, ids=wrong, groups=groups)
        held_out = hold_out(dataset, 0.5, seed)[1]
        mean, n = slts.guarantees.bounds.mean_over_groups(held_out.ids, held_out.groups)
        failures += slts.guarantees.bounds.group_error_bound(mean, n, 0.05) < 0.7 * 0.5
    assert failures <= 5


@pytest.mark.parametrize(("labels", "groups", "message"), [
    (np.arange(48).astype(str), [], "--test-size 0.3"),
    (np.repeat(["a", "b", "odd"], [24, 20, 4]), ["--groups", "subject"], "'odd'"),
])  # fmt: skip
def test_a_class_that_cannot_be_held_out_is_an_error(labels, groups, message, tmp_path, run):
    data, _ = write(tmp_path / "data.csv", labels=labels, grouped=bool(groups))
    fit = ["fit", data, "--model", tmp_path / "m.slts", "--method", "1nn", "--test-size", "0.3"]
    # The only person with the odd class is held out with seed 0.
    message_of_fit = run.error(*fit, *groups)
    assert message in message_of_fit
    assert "--test-size" in message_of_fit


def test_the_only_series_of_a_class_is_learned_from(tmp_path, run):
    labels = [*np.repeat(["a", "b"], [24, 23]), "odd"]
    data, _ = write(tmp_path / "data.csv", labels=labels, grouped=False)
    fit = ["fit", data, "--model", tmp_path / "m.slts", "--method", "1nn", "--test-size", "0.3"]
    output, _ = run.ok(*fit)
    assert "No held-out series is of class 'odd'" in output
    assert "odd" in slts.load(tmp_path / "m.slts").classes_


def test_the_figure_says_what_it_is_worth(tmp_path, run):
    fit = ["fit", "--model", tmp_path / "m.slts", "-p", "n_snippets=20"]
    alone, _ = write(tmp_path / "alone.csv", grouped=False)
    assert "name them with --groups" in run.ok(*fit, alone)[0]
    data, _ = write(tmp_path / "data.csv")
    output, _ = run.ok(*fit, data, "--groups", "subject")
    assert "leave-one-group-out: accuracy" in output
    assert "interval for a new group" in output
    assert "--groups" not in output


def test_held_out_series_certify_the_model(tmp_path, run):
    data, _ = write(tmp_path / "data.csv", grouped=False)
    test, _ = write(tmp_path / "test.csv", seed=1, grouped=False)
    fit = ["fit", data, "--model", tmp_path / "m.slts", *FEW]
    for how in (["--test-size", "0.25"], ["--test", test]):
        output, _ = run.ok(*fit, *how)
        result = run.json(*fit, *how)
        sentence = result["certificate"]["bounds"][0]["sentence"]
        assert sentence in output
        assert sentence.startswith("With confidence 95%, ")
        assert result["certificate"]["n"] == result["held_out"]["n"]
    # The same bound as that of another command.
    assert sentence in run("evaluate", tmp_path / "m.slts", test)[1]


def test_training_series_give_no_certificate(problem, tmp_path, run):
    train, _ = problem[".csv"]
    fit = ["fit", train, "--model", tmp_path / "m.slts", "--method", "1nn", "--test", train]
    output, messages = run.ok(*fit, "--json")
    result = json.loads(output)
    assert messages.count("no certificate: 45 of 45 series are copies") == 1
    assert (result["held_out"]["n_copies"], result["certificate"]) == (45, None)


def test_test_data_with_groups_of_the_training_data_are_an_error(tmp_path, run):
    train, _ = write(tmp_path / "train.csv")
    test, _ = write(tmp_path / "test.csv", seed=1)
    model = tmp_path / "m.slts"
    fit = ["fit", train, "--model", model, *FEW, "--test", test, "--groups", "subject"]
    message = run.error(*fit)
    assert "both have series of p00..p11" in message
    assert not model.exists()
    test.write_text(test.read_text().replace("p0", "q0").replace("p1", "q1"))
    assert "mean over 12 groups" in run.ok(*fit)[0]


@pytest.mark.parametrize(("method", "kind"), [("1nn", "leave-one-out"), ("slts", "held-out")])
def test_without_test_series_the_accuracy_of_the_fit_is_printed(method, kind, tmp_path, run):
    data, _ = write(tmp_path / "data.csv", grouped=False)
    path = tmp_path / "m.slts"
    fit = ["fit", data, "--model", path, "--method", method]
    assert f"\n{kind}: accuracy" in run.ok(*fit)[0]
    result, stored = run.json(*fit)["validation"], slts.load(path).validation_
    assert (result["kind"], result["n"]) == (kind, stored.n_series)
    assert result["accuracy"] == pytest.approx(stored.accuracy)
    assert result["interval"] == list(accuracy_interval(result["right"], result["n"]))


def test_groups_of_the_search_give_its_interval(tmp_path, run):
    data, _ = write(tmp_path / "data.csv")
    fit = ["fit", data, "--model", tmp_path / "m.slts", "--method", "bbs-cv"]
    result = run.json(*fit, "--groups", "subject")["validation"]
    assert (result["n_groups"], result["n"]) == (4, 16)
    assert result["interval"] == list(group_accuracy_interval(result["group_accuracy"], 4))


def test_groups_that_would_not_be_used_are_a_wrong_command_line(tmp_path, run):
    data, _ = write(tmp_path / "data.csv")
    fit = ["fit", data, "--model", tmp_path / "m.slts", "--method", "1nn"]
    assert "--test-size 0.3" in run.error(*fit, "--groups", "subject", code=2)
