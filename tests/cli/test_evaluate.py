"""`slts evaluate` and `slts certify`: scores, bounds, groups, copies."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

import slts
from slts.guarantees.bounds import group_accuracy_interval
from tests.cli.conftest import CLASSES, draw
from tests.cli.test_fit import FEW, write


def test_scores_are_those_of_python(problem, model, run):
    fitted, test = slts.load(model), problem[".csv"][1]
    X, y, _ = draw(30, 1)
    # Some labels are wrong, so that scores differ from one.
    result = run.json("evaluate", model, test)
    assert (result["n"], result["n_copies"]) == (30, 0)
    assert result["accuracy"] == result["balanced_accuracy"] == fitted.score(X, y)
    assert result["log_loss"] == pytest.approx(log_loss(y, fitted.predict_proba(X)))
    assert result["confusion"] == (10 * np.eye(3, dtype=int)).tolist()
    assert [row["class"] for row in result["by_class"]] == result["classes"] == CLASSES
    certificate = slts.certify(fitted, X, y).to_dict()
    assert result["certificate"] == certificate
    assert run.json("certify", model, test) == {"data": str(test), **certificate}


def test_classes_without_series_have_no_recall(model, tmp_path, run):
    X, y, _ = draw(30, 1)
    kept = X[y != "mid"]
    arrays = {"values": kept.values, "offsets": kept.offsets, "y": y[y != "mid"]}
    # The first series is predicted as another class.
    arrays["y"][0] = "low"
    np.savez(tmp_path / "data.npz", **arrays)
    result = run.json("evaluate", model, tmp_path / "data.npz")
    high, low, mid = result["by_class"]
    assert (high["recall"], high["precision"]) == (1.0, 0.9)
    assert (low["recall"], low["series"]) == (pytest.approx(10 / 11), 11)
    assert (mid["recall"], mid["precision"], mid["series"]) == (None, None, 0)
    assert result["balanced_accuracy"] == pytest.approx(21 / 22)
    output, _ = run.ok("evaluate", model, tmp_path / "data.npz")
    assert "\nhigh\t0.900\t1.000\t0.947\t9\n" in output
    assert "\nmid\t\t\t\t0\n" in output


def test_scores_and_the_bound_are_printed(problem, model, run):
    output, _ = run.ok("evaluate", model, problem[".csv"][1])
    lines = output.splitlines()
    assert lines[0] == "accuracy 100.0% (30 of 30; 95% interval 88.4% to 100.0%)"
    assert lines[1] == "balanced accuracy 100.0%"
    assert "true\thigh\tlow\tmid" in lines
    assert lines[-1].startswith("With confidence 95%, ")


def test_the_options_of_a_certificate(problem, model, run):
    train, test = problem[".csv"]
    output, _ = run.ok("certify", model, test, "--delta", "0.01", "--n-models", "3")
    assert "With confidence 99%" in output
    assert "one of 3 models compared" in output
    assert "training" in run.ok("certify", model, train, "--sample", "training")[0]


@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_training_series_give_no_certificate(command, problem, model, run):
    code, _, messages = run(command, model, problem[".csv"][0])
    assert code == int(command == "certify")
    assert ("no certificate: " in messages) == (command == "evaluate")
    assert "45 of 45 series are copies of training series: r000, " in messages


def test_new_groups_are_evaluated_and_certified(tmp_path, run):
    data, _ = write(tmp_path / "data.csv", grouped=False)
    new, people = write(tmp_path / "new.csv", seed=1, n_people=6)
    path = tmp_path / "m.slts"
    run.ok("fit", data, "--model", path, *FEW)
    X, y, _ = draw(48, 1)
    expected = slts.certify(slts.load(path), X, y, groups=people).to_dict()
    assert run.json("certify", path, new, "--groups", "subject") == {"data": str(new), **expected}
    result = run.json("evaluate", path, new, "--groups", "subject")
    assert result["certificate"] == expected
    assert result["interval"] == list(group_accuracy_interval(result["group_accuracy"], 6))
    assert "mean over 6 groups" in run.ok("evaluate", path, new, "--groups", "subject")[0]
    page = tmp_path / "r.html"
    run.ok("report", path, new, "--groups", "subject", "--out", page)
    assert "from 6 groups" in page.read_text()
    training = ("--groups", "subject", "--sample", "training")
    assert "groups" in run.error("certify", path, data, *training)


def test_channels_are_left_out_on_request(problem, model, tmp_path, run):
    train, path = problem[".csv"][0], tmp_path / "m.slts"
    run.ok("fit", train, "--model", path, "--param", "n_snippets=100")
    X, y, _ = draw(45, 0)
    found = slts.load(path).accuracy_without_channels(X, y)
    shares = dict(zip(("c1", "c2", "c3"), found.without.tolist(), strict=True))
    result = run.json("evaluate", path, train, "--without-channels")["without_channels"]
    assert result == {"n_series": found.n_series, "all": found.accuracy, "without": shares}
    output, _ = run.ok("evaluate", path, train, "--without-channels")
    best = max(shares, key=shares.get)
    first = f"none\t{found.accuracy:.1%}\n{best}\t{shares[best]:.1%}\n"
    assert f"\nchannel left out\tleave-one-out accuracy\n{first}" in output
    assert "channel left out" not in run.ok("evaluate", path, train)[0]
    assert "method local" in run.error("evaluate", model, train, "--without-channels")
